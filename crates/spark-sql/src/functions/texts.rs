//! Texts.

use tributary_lake::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, ListBuilder, StringArray, StringBuilder,
};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::utils::datafusion_strsim;
use tributary_lake::datafusion::error::Result;

use super::own::Kind::{Any, Boolean, Bytes, Int, Long, Text, TextOrBytes};
use super::own::{Arguments, Gives, Own, bytes, column, fault, ints, longs, one, or_literal, texts, three, two};
use super::{Entry, own, refused};
use crate::value::{Value, build, list_type, read};
use crate::{convert, substring};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    own(&["lower", "lcase"], Own::new("lower", &[Text], Gives::Text, |a, _| each(a, |text| Some(text.to_lowercase())))),
    own(&["upper", "ucase"], Own::new("upper", &[Text], Gives::Text, |a, _| each(a, |text| Some(text.to_uppercase())))),
    own(&["initcap"], Own::new("initcap", &[Text], Gives::Text, |a, _| each(a, |text| Some(initcap(text))))),
    own(&["trim"], Own::new("trim", &[Text], Gives::Text, |a, _| each(a, |text| Some(text.trim_matches(' ').to_owned())))),
    own(&["btrim"], Own::new("btrim", &[Text, Text], Gives::Text, |a, _| trimmed(a, 0, 1, true, true)).at_least(1)),
    own(&["ltrim"], Own::new("ltrim", &[Text, Text], Gives::Text, |a, _| side_trimmed(a, true)).at_least(1)),
    own(&["rtrim"], Own::new("rtrim", &[Text, Text], Gives::Text, |a, _| side_trimmed(a, false)).at_least(1)),
    own(&["length", "len", "char_length", "character_length"], Own::new("length", &[TextOrBytes], Gives::Int, |a, _| length(a))),
    own(&["octet_length"], Own::new("octet_length", &[Bytes], Gives::Int, |a, _| sizes(a, 1))),
    own(&["bit_length"], Own::new("bit_length", &[Bytes], Gives::Int, |a, _| sizes(a, 8))),
    own(&["reverse"], Own::new("reverse", &[Any], Gives::By(list_or_text), reverse)),
    own(&["concat"], Own::new("concat", &[], Gives::By(concat_type), concat).and_more(Any)),
    own(&["concat_ws"], Own::new("concat_ws", &[Text], Gives::Text, concat_ws).and_more(Any)),
    own(
        &["repeat"],
        Own::new("repeat", &[Text, Int], Gives::Text, |a, _| {
            column::<StringArray>(two(texts(&a[0]), ints(&a[1]), |text: &str, times| Ok(Some(text.repeat(count(times)))))?)
        }),
    ),
    own(
        &["space"],
        Own::new("space", &[Int], Gives::Text, |a, _| column::<StringArray>(one(ints(&a[0]), |times| Ok(Some(" ".repeat(count(times)))))?)),
    ),
    own(&["lpad"], Own::new("lpad", &[Text, Int, Text], Gives::Text, |a, _| padded(a, true)).at_least(2)),
    own(&["rpad"], Own::new("rpad", &[Text, Int, Text], Gives::Text, |a, _| padded(a, false)).at_least(2)),
    own(
        &["left"],
        Own::new("left", &[Text, Int], Gives::Text, |a, _| {
            column::<StringArray>(two(texts(&a[0]), ints(&a[1]), |text: &str, signs| {
                Ok(Some(text.chars().take(count(signs)).collect::<String>()))
            })?)
        }),
    ),
    own(
        &["right"],
        Own::new("right", &[Text, Int], Gives::Text, |a, _| {
            column::<StringArray>(two(texts(&a[0]), ints(&a[1]), |text: &str, signs| {
                let skipped = text.chars().count().saturating_sub(count(signs));
                Ok(Some(text.chars().skip(skipped).collect::<String>()))
            })?)
        }),
    ),
    own(&["substring", "substr"], Own::new("substring", &[TextOrBytes, Long, Long], Gives::First, substring).at_least(2)),
    own(
        &["substring_index"],
        Own::new("substring_index", &[Text, Text, Int], Gives::Text, |a, _| {
            column::<StringArray>(three(texts(&a[0]), texts(&a[1]), ints(&a[2]), |text: &str, mark: &str, times| {
                Ok(Some(substring_index(text, mark, times)))
            })?)
        }),
    ),
    own(
        &["split_part"],
        Own::new("split_part", &[Text, Text, Int], Gives::Text, |a, _| {
            column::<StringArray>(three(texts(&a[0]), texts(&a[1]), ints(&a[2]), split_part)?)
        }),
    ),
    own(
        &["translate"],
        Own::new("translate", &[Text, Text, Text], Gives::Text, |a, _| {
            column::<StringArray>(three(texts(&a[0]), texts(&a[1]), texts(&a[2]), |text: &str, from: &str, to: &str| {
                Ok(Some(translate(text, from, to)))
            })?)
        }),
    ),
    own(
        &["replace"],
        Own::new("replace", &[Text, Text, Text], Gives::Text, |a, _| {
            let with: Vec<Option<&str>> = or_literal(a.get(2).map(texts), "", a[0].len());
            column::<StringArray>(three(texts(&a[0]), texts(&a[1]), with, |text: &str, from: &str, to: &str| {
                Ok(Some(if from.is_empty() { text.to_owned() } else { text.replace(from, to) }))
            })?)
        })
        .at_least(2),
    ),
    own(
        &["instr"],
        Own::new("instr", &[Text, Text], Gives::Int, |a, _| {
            column::<Int32Array>(two(texts(&a[0]), texts(&a[1]), |text: &str, part: &str| Ok(Some(place(text, part, 1))))?)
        }),
    ),
    own(&["locate", "position"], Own::new("locate", &[Text, Text, Int], Gives::Int, locate).at_least(2)),
    own(&["startswith"], Own::new("startswith", &[Text, Text], Gives::Boolean, |a, _| asked(a, |text, part| text.starts_with(part)))),
    own(&["endswith"], Own::new("endswith", &[Text, Text], Gives::Boolean, |a, _| asked(a, |text, part| text.ends_with(part)))),
    own(&["contains"], Own::new("contains", &[Text, Text], Gives::Boolean, |a, _| asked(a, |text, part| text.contains(part)))),
    own(
        &["ascii"],
        Own::new("ascii", &[Text], Gives::Int, |a, _| {
            column::<Int32Array>(one(texts(&a[0]), |text: &str| Ok(Some(text.chars().next().map_or(0, |sign| sign as i32))))?)
        }),
    ),
    own(
        &["chr", "char"],
        Own::new("chr", &[Long], Gives::Text, |a, _| {
            column::<StringArray>(one(longs(&a[0]), |code| {
                // of a code below 256 there is a sign
                let sign = u8::try_from(code.rem_euclid(256)).map(char::from).unwrap_or_default();
                Ok(Some(if code < 0 { String::new() } else { sign.to_string() }))
            })?)
        }),
    ),
    own(
        &["levenshtein"],
        Own::new("levenshtein", &[Text, Text, Int], Gives::Int, |a, _| {
            let most = or_literal(a.get(2).map(ints), i32::MAX, a[0].len());
            column::<Int32Array>(three(texts(&a[0]), texts(&a[1]), most, |left: &str, right: &str, most| {
                Ok(Some(levenshtein(left, right, most)))
            })?)
        })
        .at_least(2),
    ),
    own(&["soundex"], Own::new("soundex", &[Text], Gives::Text, |a, _| each(a, |text| Some(soundex(text))))),
    own(&["overlay"], Own::new("overlay", &[Text, Text, Int, Int], Gives::Text, overlay).at_least(3)),
    own(
        &["find_in_set"],
        Own::new("find_in_set", &[Text, Text], Gives::Int, |a, _| {
            column::<Int32Array>(two(texts(&a[0]), texts(&a[1]), |text: &str, set: &str| {
                let at = if text.contains(',') { None } else { set.split(',').position(|one| one == text) };
                Ok(Some(at.map_or(0, |at| i32::try_from(at + 1).unwrap_or(i32::MAX))))
            })?)
        }),
    ),
    own(&["elt"], Own::new("elt", &[Int, Text], Gives::Text, elt).and_more(Text)),
    own(&["mask"], Own::new("mask", &[Text, Text, Text, Text, Text], Gives::Text, mask).at_least(1)),
    own(
        &["luhn_check"],
        Own::new("luhn_check", &[Text], Gives::Boolean, |a, _| {
            column::<BooleanArray>(one(texts(&a[0]), |text: &str| Ok(Some(luhn(text))))?)
        }),
    ),
    own(
        &["assert_true"],
        Own::new("assert_true", &[Boolean, Text], Gives::By(|_| Ok(DataType::Null)), |a, _| {
            let held = a[0].as_boolean();
            if held.iter().all(|held| held == Some(true)) {
                Ok(tributary_lake::arrow::array::new_null_array(&DataType::Null, held.len()))
            } else {
                fault("what `assert_true` asserts does not hold")
            }
        })
        .at_least(1),
    ),
    refused(&["raise_error"], "an error of a row's own is no answer; say assert_true(condition)"),
    refused(
        &["to_number", "try_to_number", "to_char", "to_varchar"],
        "number formats are not read in this release; say format_number or cast",
    ),
    refused(&["collate", "collation"], "texts have one order in this release, of their bytes"),
];

/// A result a row of one text.
pub(super) fn each(arguments: &[ArrayRef], f: impl Fn(&str) -> Option<String>) -> Result<ArrayRef> {
    column::<StringArray>(one(texts(&arguments[0]), |text: &str| Ok(f(text)))?)
}

fn asked(arguments: &[ArrayRef], f: impl Fn(&str, &str) -> bool) -> Result<ArrayRef> {
    column::<BooleanArray>(two(texts(&arguments[0]), texts(&arguments[1]), |text: &str, part: &str| Ok(Some(f(text, part))))?)
}

/// A number of signs; none where it is negative.
fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// The first sign of each word in its title form, the others in lower case; words end with a blank.
fn initcap(text: &str) -> String {
    let mut first = true;
    let mut told = String::with_capacity(text.len());
    for sign in text.to_lowercase().chars() {
        if first {
            told.extend(title(sign));
        } else {
            told.push(sign);
        }
        first = sign == ' ';
    }
    told
}

/// The title form of a sign: of one that stands for two, only the first is large.
fn title(sign: char) -> Vec<char> {
    match sign {
        'ǆ' => vec!['ǅ'],
        'ǉ' => vec!['ǈ'],
        'ǌ' => vec!['ǋ'],
        'ǳ' => vec!['ǲ'],
        sign => {
            sign.to_uppercase().enumerate().flat_map(|(at, one)| if at == 0 { vec![one] } else { one.to_lowercase().collect() }).collect()
        }
    }
}

/// `trim` with the signs to take off in another argument; blanks where there is none.
fn trimmed(arguments: &[ArrayRef], text: usize, signs: usize, start: bool, end: bool) -> Result<ArrayRef> {
    let signs: Vec<Option<&str>> = or_literal(arguments.get(signs).map(texts), " ", arguments[0].len());
    column::<StringArray>(two(texts(&arguments[text]), signs, |text: &str, signs: &str| {
        let is_one = |sign: char| signs.contains(sign);
        let text = if start { text.trim_start_matches(is_one) } else { text };
        Ok(Some(if end { text.trim_end_matches(is_one) } else { text }.to_owned()))
    })?)
}

/// `ltrim(text)` and `ltrim(signs, text)`.
fn side_trimmed(arguments: &[ArrayRef], start: bool) -> Result<ArrayRef> {
    match arguments.len() {
        1 => trimmed(arguments, 0, usize::MAX, start, !start),
        _ => trimmed(arguments, 1, 0, start, !start),
    }
}

fn length(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    match arguments[0].data_type() {
        DataType::Binary => sizes(arguments, 1),
        _ => column::<Int32Array>(one(texts(&arguments[0]), |text: &str| Ok(i32::try_from(text.chars().count()).ok()))?),
    }
}

fn sizes(arguments: &[ArrayRef], unit: usize) -> Result<ArrayRef> {
    column::<Int32Array>(one(bytes(&arguments[0]), |bytes: &[u8]| Ok(i32::try_from(bytes.len() * unit).ok()))?)
}

fn list_or_text(arguments: &Arguments<'_>) -> Result<DataType> {
    Ok(match &arguments.types[0] {
        list @ DataType::List(_) => list.clone(),
        _ => DataType::Utf8,
    })
}

fn reverse(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    if let DataType::List(_) = to {
        let reversed = |row| {
            Ok(match read(&arguments[0], row)? {
                Value::List(mut inside) => {
                    inside.reverse();
                    Value::List(inside)
                }
                other => other,
            })
        };
        return build((0..arguments[0].len()).map(reversed).collect::<Result<_>>()?, to);
    }
    each(&[convert::cast(&arguments[0], &DataType::Utf8, false)?], |text| Some(text.chars().rev().collect()))
}

fn concat_type(arguments: &Arguments<'_>) -> Result<DataType> {
    if arguments.types.iter().any(|data_type| matches!(data_type, DataType::List(_))) {
        return super::arrays::common_list(arguments.types);
    }
    let all_bytes = !arguments.types.is_empty() && arguments.types.iter().all(|data_type| *data_type == DataType::Binary);
    Ok(if all_bytes { DataType::Binary } else { DataType::Utf8 })
}

fn concat(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    if arguments.is_empty() {
        return column(StringArray::from(vec![""]));
    }
    let columns = arguments.iter().map(|column| convert::cast(column, to, false)).collect::<Result<Vec<_>>>()?;
    let joined = |row| {
        let mut all = Value::Null;
        for (at, column) in columns.iter().enumerate() {
            all = match (read(column, row)?, all) {
                (Value::Null, _) => return Ok(Value::Null),
                (value, _) if at == 0 => value,
                (Value::Text(text), Value::Text(before)) => Value::Text(before + &text),
                (Value::Bytes(bytes), Value::Bytes(mut before)) => {
                    before.extend(bytes);
                    Value::Bytes(before)
                }
                (Value::List(list), Value::List(mut before)) => {
                    before.extend(list);
                    Value::List(before)
                }
                (_, before) => before,
            };
        }
        Ok(all)
    };
    build((0..arguments[0].len()).map(joined).collect::<Result<_>>()?, to)
}

/// Texts and lists of texts, nulls left out.
fn concat_ws(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let rest = arguments[1..]
        .iter()
        .map(|column| match column.data_type() {
            DataType::List(_) => convert::cast(column, &list_type(DataType::Utf8), false),
            _ => convert::cast(column, &DataType::Utf8, false),
        })
        .collect::<Result<Vec<_>>>()?;
    let marks = texts(&arguments[0]);
    let joined = |row| {
        if marks.is_null(row) {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for column in &rest {
            match read(column, row)? {
                Value::Text(text) => parts.push(text),
                Value::List(inside) => {
                    parts.extend(inside.into_iter().filter_map(|value| if let Value::Text(text) = value { Some(text) } else { None }))
                }
                _ => {}
            }
        }
        Ok(Some(parts.join(marks.value(row))))
    };
    column((0..marks.len()).map(joined).collect::<Result<StringArray>>()?)
}

fn padded(arguments: &[ArrayRef], before: bool) -> Result<ArrayRef> {
    let with: Vec<Option<&str>> = or_literal(arguments.get(2).map(texts), " ", arguments[0].len());
    column::<StringArray>(three(texts(&arguments[0]), ints(&arguments[1]), with, |text: &str, signs, with: &str| {
        let (signs, has) = (count(signs), text.chars().count());
        let cut: String = text.chars().take(signs).collect();
        let pad: String = if has >= signs { String::new() } else { with.chars().cycle().take(signs - has).collect() };
        Ok(Some(if before { pad + &cut } else { cut + &pad }))
    })?)
}

fn substring(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let lengths = or_literal(arguments.get(2).map(longs), i64::MAX, arguments[0].len());
    let starts = longs(&arguments[1]);
    match to {
        DataType::Binary => column::<BinaryArray>(three(bytes(&arguments[0]), starts, lengths, |bytes: &[u8], start, length| {
            Ok(Some(substring::of_bytes(bytes, start, length).to_vec()))
        })?),
        _ => column::<StringArray>(three(texts(&arguments[0]), starts, lengths, |text: &str, start, length| {
            Ok(Some(substring::of(text, start, length).to_owned()))
        })?),
    }
}

fn substring_index(text: &str, mark: &str, times: i32) -> String {
    let wanted = times.unsigned_abs() as usize;
    if mark.is_empty() || wanted == 0 {
        return String::new();
    }
    let mut found = 0;
    if times > 0 {
        let mut from = 0;
        while let Some(at) = text[from..].find(mark) {
            found += 1;
            if found == wanted {
                return text[..from + at].to_owned();
            }
            from += at + text[from + at..].chars().next().map_or(1, char::len_utf8);
        }
        return text.to_owned();
    }
    let mut to = text.len();
    while let Some(at) = text[..to].rfind(mark) {
        found += 1;
        if found == wanted {
            return text[at + mark.len()..].to_owned();
        }
        // the next may overlap this one
        to = at + mark.len() - mark.chars().next_back().map_or(1, char::len_utf8);
    }
    text.to_owned()
}

fn split_part(text: &str, mark: &str, part: i32) -> Result<Option<String>> {
    if part == 0 {
        return fault("parts of `split_part` are counted from 1");
    }
    let parts: Vec<&str> = if mark.is_empty() { vec![text] } else { text.split(mark).collect() };
    let wanted = part.unsigned_abs() as usize;
    let at = if part > 0 { wanted.checked_sub(1) } else { parts.len().checked_sub(wanted) };
    Ok(Some(at.and_then(|at| parts.get(at)).copied().unwrap_or("").to_owned()))
}

fn translate(text: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    text.chars()
        .filter_map(|sign| match from.chars().position(|one| one == sign) {
            Some(at) => to.get(at).copied(),
            None => Some(sign),
        })
        .collect()
}

/// Where a part begins, counted in signs from 1, looked for from a sign on; 0 where it is not.
fn place(text: &str, part: &str, from: i32) -> i32 {
    let Some(skipped) = usize::try_from(from).ok().and_then(|from| from.checked_sub(1)) else { return 0 };
    if part.is_empty() {
        return 1;
    }
    let Some(start) = text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(skipped) else { return 0 };
    match text[start..].find(part) {
        Some(at) => i32::try_from(text[..start + at].chars().count() + 1).unwrap_or(i32::MAX),
        None => 0,
    }
}

fn locate(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let (parts, texts) = (texts(&arguments[0]), texts(&arguments[1]));
    let starts = or_literal(arguments.get(2).map(ints), 1, arguments[0].len());
    let found = parts.iter().zip(texts).zip(starts).map(|row| match row {
        // an unknown start is none
        ((_, _), None) => Some(0),
        ((Some(part), Some(text)), Some(start)) => Some(place(text, part, start)),
        _ => None,
    });
    column(found.collect::<Int32Array>())
}

fn levenshtein(left: &str, right: &str, most: i32) -> i32 {
    let distance = i32::try_from(datafusion_strsim::levenshtein(left, right)).unwrap_or(i32::MAX);
    if distance > most || most < 0 { -1 } else { distance }
}

fn soundex(text: &str) -> String {
    const CODES: &[u8; 26] = b"01230127022455012623017202";
    let code = |sign: u8| if sign.is_ascii_uppercase() { CODES[usize::from(sign - b'A')] } else { b'7' };
    let signs = text.as_bytes();
    let Some(first) = signs.first().map(u8::to_ascii_uppercase).filter(u8::is_ascii_uppercase) else { return text.to_owned() };
    let mut told = vec![first];
    let mut last = code(first);
    for sign in signs[1..].iter().map(u8::to_ascii_uppercase) {
        if !sign.is_ascii_uppercase() {
            last = b'0';
            continue;
        }
        let next = code(sign);
        if next == b'7' {
            continue;
        }
        if next != b'0' && next != last {
            told.push(next);
            if told.len() == 4 {
                break;
            }
        }
        last = next;
    }
    told.resize(4, b'0');
    told.into_iter().map(char::from).collect()
}

fn overlay(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let lengths = or_literal(arguments.get(3).map(ints), -1, arguments[0].len());
    let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).zip(ints(&arguments[2]).iter().zip(lengths));
    let laid = rows.map(|row| match row {
        ((Some(text), Some(over)), (Some(from), Some(length))) => {
            let length = if length >= 0 { length } else { i32::try_from(over.chars().count()).unwrap_or(i32::MAX) };
            let before = substring::of(text, 1, i64::from(from) - 1);
            let after = substring::of(text, i64::from(from) + i64::from(length), i64::MAX);
            Some(format!("{before}{over}{after}"))
        }
        _ => None,
    });
    column(laid.collect::<StringArray>())
}

fn elt(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let chosen = ints(&arguments[0]).iter().enumerate().map(|(row, at)| match at {
        None => Ok(None),
        Some(at) => match usize::try_from(at).ok().filter(|at| *at > 0).and_then(|at| arguments.get(at)) {
            Some(column) => Ok(column.is_valid(row).then(|| texts(column).value(row).to_owned())),
            None => fault("the place of `elt` is outside its arguments"),
        },
    });
    column(chosen.collect::<Result<StringArray>>()?)
}

/// Letters and digits said by others; a null leaves them as they are.
fn mask(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let rows = arguments[0].len();
    let with = |at: usize, otherwise: Option<char>| -> Vec<Option<char>> {
        match arguments.get(at) {
            Some(column) => texts(column).iter().map(|text| text.and_then(|text| text.chars().next())).collect(),
            None => vec![otherwise; rows],
        }
    };
    let (upper, lower, digit, other) = (with(1, Some('X')), with(2, Some('x')), with(3, Some('n')), with(4, None));
    let masked = texts(&arguments[0]).iter().enumerate().map(|(row, text)| {
        let told = |sign: char| {
            let kind = if sign.is_uppercase() {
                upper[row]
            } else if sign.is_lowercase() {
                lower[row]
            } else if sign.is_numeric() {
                digit[row]
            } else {
                other[row]
            };
            kind.unwrap_or(sign)
        };
        text.map(|text| text.chars().map(told).collect::<String>())
    });
    column(masked.collect::<StringArray>())
}

fn luhn(text: &str) -> bool {
    let digits: Option<Vec<u32>> = text.chars().map(|sign| sign.to_digit(10)).collect();
    let Some(digits) = digits.filter(|digits| !digits.is_empty()) else { return false };
    let doubled = |(at, digit): (usize, &u32)| match at % 2 {
        0 => *digit,
        _ if digit * 2 > 9 => digit * 2 - 9,
        _ => digit * 2,
    };
    digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

/// Lists of texts.
pub(super) fn lists<S: AsRef<str>>(rows: impl IntoIterator<Item = Option<Vec<S>>>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        match row {
            Some(parts) => {
                parts.iter().for_each(|part| lists.values().append_value(part));
                lists.append(true);
            }
            None => lists.append(false),
        }
    }
    std::sync::Arc::new(lists.finish())
}
