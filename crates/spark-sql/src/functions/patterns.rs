//! Regular expressions, written as Java writes them.
//!
//! They are said to the engine's matcher, which is linear in the length of the text: what it has not (looking around, references
//! back, possessive repeats) is an error that says so. Classes such as `\d` hold the signs of ASCII only, as in Java.

use regex::{Captures, Regex, RegexBuilder};
use tributary_lake::arrow::array::{Array, ArrayRef, BooleanArray, Int32Array, StringArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::{Int, Text};
use super::own::{Arguments, Gives, Own, column, fault, ints, or_literal, texts};
use super::texts::lists;
use super::{Entry, own};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    own(
        &["regexp_like", "rlike", "regexp"],
        Own::new("regexp_like", &[Text, Text], Gives::Boolean, |a, _| {
            column(matched(&a[0], &a[1], |pattern, text| pattern.is_found(text).map(Some))?.into_iter().collect::<BooleanArray>())
        })
        .looking(pattern_behind),
    ),
    own(
        &["regexp_extract"],
        Own::new("regexp_extract", &[Text, Text, Int], Gives::Text, regexp_extract).at_least(2).looking(pattern_behind),
    ),
    own(
        &["regexp_extract_all"],
        Own::new("regexp_extract_all", &[Text, Text, Int], Gives::Texts, regexp_extract_all).at_least(2).looking(pattern_behind),
    ),
    own(
        &["regexp_replace"],
        Own::new("regexp_replace", &[Text, Text, Text, Int], Gives::Text, regexp_replace).at_least(3).looking(pattern_behind),
    ),
    own(
        &["regexp_count"],
        Own::new("regexp_count", &[Text, Text], Gives::Int, |a, _| {
            let counts = matched(&a[0], &a[1], |pattern, text| Ok(i32::try_from(pattern.every(text)?.len()).ok()))?;
            column(counts.into_iter().collect::<Int32Array>())
        })
        .looking(pattern_behind),
    ),
    own(
        &["regexp_substr"],
        Own::new("regexp_substr", &[Text, Text], Gives::Text, |a, _| {
            let found = matched(&a[0], &a[1], |pattern, text| {
                Ok(pattern.first(text)?.map(|captures| captures[0].to_owned()).filter(|text| !text.is_empty()))
            })?;
            column(found.into_iter().collect::<StringArray>())
        })
        .looking(pattern_behind),
    ),
    own(
        &["regexp_instr"],
        Own::new("regexp_instr", &[Text, Text, Int], Gives::Int, |a, _| {
            let places = matched(&a[0], &a[1], |pattern, text| {
                let start =
                    pattern.first(text)?.and_then(|captures| captures.get(0)).map(|found| text[..found.start()].chars().count() + 1);
                Ok(i32::try_from(start.unwrap_or(0)).ok())
            })?;
            column(places.into_iter().collect::<Int32Array>())
        })
        .at_least(2)
        .looking(pattern_behind),
    ),
    own(&["split"], Own::new("split", &[Text, Text, Int], Gives::Texts, split).at_least(2).looking(pattern_behind)),
];

/// A regular expression.
fn pattern_behind(arguments: &Arguments<'_>) -> Result<()> {
    arguments.text(1).map_or(Ok(()), |java| Pattern::new(java).map(drop))
}

/// A pattern and whether `$` stands in it, which Java also finds before a line's end at the end of the text.
struct Pattern {
    regex: Regex,
    ends: bool,
}

impl Pattern {
    fn new(java: &str) -> Result<Self> {
        let (translated, ends) = translated(java)?;
        let built = RegexBuilder::new(&translated).size_limit(1 << 22).build();
        let regex = built.map_err(|_| {
            let text = "a regular expression cannot be read, or looks around or back, which this release does not execute";
            DataFusionError::Execution(text.to_owned())
        })?;
        Ok(Self { regex, ends })
    }

    fn check(&self, text: &str) -> Result<()> {
        if self.ends && text.ends_with(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            return fault("`$` in a regular expression and a text that ends with a line's end are not executed together");
        }
        Ok(())
    }

    fn is_found(&self, text: &str) -> Result<bool> {
        self.check(text)?;
        Ok(self.regex.is_match(text))
    }

    fn first<'t>(&self, text: &'t str) -> Result<Option<Captures<'t>>> {
        self.check(text)?;
        Ok(self.regex.captures(text))
    }

    fn every<'t>(&self, text: &'t str) -> Result<Vec<Captures<'t>>> {
        self.check(text)?;
        let mut found = Vec::new();
        let mut from = 0;
        // Java also finds what is empty right after what is not
        while from <= text.len() {
            let Some(captures) = self.regex.captures_at(text, from) else { break };
            let Some(all) = captures.get(0) else { break };
            from = if all.is_empty() { all.end() + text[all.end()..].chars().next().map_or(1, char::len_utf8) } else { all.end() };
            found.push(captures);
        }
        Ok(found)
    }
}

/// A pattern of Java in the words of the matcher, and whether `$` stands in it.
fn translated(java: &str) -> Result<(String, bool)> {
    let mut told = String::with_capacity(java.len() + 8);
    let (mut ends, mut class, mut quoted, mut start_of_class) = (false, 0_usize, false, false);
    let mut all_signs = false;
    let mut signs = java.chars().peekable();
    while let Some(sign) = signs.next() {
        if quoted {
            if sign == '\\' && signs.peek() == Some(&'E') {
                signs.next();
                quoted = false;
            } else {
                told.push_str(&regex::escape(&sign.to_string()));
            }
            continue;
        }
        let first_in_class = std::mem::take(&mut start_of_class);
        match sign {
            '\\' => match signs.next() {
                Some('Q') => quoted = true,
                Some('d') => told.push_str(if class > 0 { "0-9" } else { "[0-9]" }),
                Some('D') => told.push_str("[^0-9]"),
                Some('w') => told.push_str(if class > 0 { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
                Some('W') => told.push_str("[^0-9A-Za-z_]"),
                Some('s') => told.push_str(if class > 0 { r" \t\n\x0B\f\r" } else { r"[ \t\n\x0B\f\r]" }),
                Some('S') => told.push_str(r"[^ \t\n\x0B\f\r]"),
                Some('h') => told.push_str(if class > 0 {
                    r" \t\u{A0}"
                } else {
                    r"[ \t\u{A0}\u{1680}\u{180e}\u{2000}-\u{200a}\u{202f}\u{205f}\u{3000}]"
                }),
                Some('R') => told.push_str(r"(?:\r\n|[\n\x0B\f\r\u{85}\u{2028}\u{2029}])"),
                Some('Z') => return fault("`\\Z` in a regular expression is not executed by this release"),
                Some('e') => told.push_str(r"\x1B"),
                Some('u') => {
                    let digits: String = signs.by_ref().take(4).collect();
                    told.push_str(&format!(r"\u{{{digits}}}"));
                }
                Some(digit @ '1'..='9') => {
                    return fault(&format!("`\\{digit}` in a regular expression looks back, which this release does not execute"));
                }
                Some(other) if other.is_alphanumeric() => {
                    told.push('\\');
                    told.push(other);
                }
                Some(other) => told.push_str(&regex::escape(&other.to_string())),
                None => return fault("a regular expression ends with a backslash"),
            },
            '[' => {
                if class > 0 && signs.peek() == Some(&':') {
                    // no class of POSIX for Java, but its signs
                    told.push_str(r"[\[:");
                    signs.next();
                } else {
                    told.push('[');
                }
                class += 1;
                if signs.peek() == Some(&'^') {
                    signs.next();
                    told.push('^');
                }
                start_of_class = true;
            }
            ']' if class > 0 && !first_in_class => {
                told.push(']');
                class -= 1;
            }
            ']' => told.push_str(r"\]"),
            '-' | '~' if class > 0 && signs.peek() == Some(&sign) => {
                return fault("doubled signs in a class of a regular expression are not executed by this release");
            }
            '.' if class == 0 => told.push_str(if all_signs { "(?s:.)" } else { r"[^\n\r\u{85}\u{2028}\u{2029}]" }),
            '$' if class == 0 => {
                ends = true;
                told.push('$');
            }
            '(' if class == 0 && signs.peek() == Some(&'?') => {
                told.push('(');
                let mut ahead = signs.clone();
                ahead.next();
                let flags: String = ahead.take_while(|sign| sign.is_ascii_alphabetic() || *sign == '-').collect();
                let on = flags.split('-').next().unwrap_or_default();
                if flags.contains('U') {
                    return fault("the flag U of a regular expression is not executed by this release");
                }
                all_signs |= on.contains('s') && !java.contains("(?s:");
            }
            '{' if class == 0 && !signs.peek().is_some_and(char::is_ascii_digit) => return fault("a regular expression cannot be read"),
            '+' | '*' | '?' | '}' if class == 0 => {
                told.push(sign);
                if signs.peek() == Some(&'+') {
                    return fault("a possessive repeat in a regular expression is not executed by this release");
                }
            }
            other => told.push(other),
        }
    }
    Ok((told, ends))
}

/// A result a row of a text and a pattern; patterns that stay the same are read once.
fn matched<R>(of: &ArrayRef, patterns: &ArrayRef, f: impl Fn(&Pattern, &str) -> Result<Option<R>>) -> Result<Vec<Option<R>>> {
    let mut last: Option<(String, Pattern)> = None;
    let rows = texts(of).iter().zip(texts(patterns));
    rows.map(|row| match row {
        (Some(text), Some(java)) => f(read(&mut last, java)?, text),
        _ => Ok(None),
    })
    .collect()
}

fn read<'p>(last: &'p mut Option<(String, Pattern)>, java: &str) -> Result<&'p Pattern> {
    if last.as_ref().is_none_or(|(known, _)| known != java) {
        *last = Some((java.to_owned(), Pattern::new(java)?));
    }
    match last {
        Some((_, pattern)) => Ok(pattern),
        None => fault("a regular expression cannot be read"),
    }
}

/// Which group is asked for: the first where there is nothing said.
fn groups(arguments: &[ArrayRef]) -> Vec<Option<i32>> {
    or_literal(arguments.get(2).map(ints), 1, arguments[0].len())
}

fn group<'t>(captures: &Captures<'t>, at: i32) -> Result<&'t str> {
    match usize::try_from(at) {
        Ok(at) if at < captures.len() => Ok(captures.get(at).map_or("", |found| found.as_str())),
        _ => fault("a regular expression has no group of this number"),
    }
}

fn has_group(pattern: &Pattern, at: i32) -> Result<()> {
    match usize::try_from(at) {
        Ok(at) if at < pattern.regex.captures_len() => Ok(()),
        _ => fault("a regular expression has no group of this number"),
    }
}

fn regexp_extract(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let mut last = None;
    let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).zip(groups(arguments));
    let found = rows.map(|row| match row {
        ((Some(text), Some(java)), Some(at)) => {
            let pattern = read(&mut last, java)?;
            match pattern.first(text)? {
                Some(captures) => group(&captures, at).map(|text| Some(text.to_owned())),
                None => Ok(Some(String::new())),
            }
        }
        _ => Ok(None),
    });
    column(found.collect::<Result<StringArray>>()?)
}

fn regexp_extract_all(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let mut last = None;
    let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).zip(groups(arguments));
    let found = rows.map(|row| match row {
        ((Some(text), Some(java)), Some(at)) => {
            let pattern = read(&mut last, java)?;
            let every = pattern.every(text)?;
            if !every.is_empty() {
                has_group(pattern, at)?;
            }
            every.iter().map(|captures| group(captures, at).map(str::to_owned)).collect::<Result<Vec<String>>>().map(Some)
        }
        _ => Ok(None),
    });
    Ok(lists(found.collect::<Result<Vec<_>>>()?))
}

fn regexp_replace(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let mut last = None;
    let starts = or_literal(arguments.get(3).map(ints), 1, arguments[0].len());
    let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).zip(texts(&arguments[2]).iter().zip(starts));
    let replaced = rows.map(|row| match row {
        ((Some(text), Some(java)), (Some(with), Some(start))) => {
            let Some(skipped) = usize::try_from(start).ok().and_then(|start| start.checked_sub(1)) else {
                return fault("the start of `regexp_replace` is counted from 1");
            };
            let at = text.char_indices().map(|(at, _)| at).nth(skipped);
            let Some(at) = at.or((skipped == 0).then_some(0)) else { return Ok(Some(text.to_owned())) };
            let pattern = read(&mut last, java)?;
            let rest = &text[at..];
            let mut told = text[..at].to_owned();
            let mut end = 0;
            for captures in pattern.every(rest)? {
                let Some(found) = captures.get(0) else { continue };
                told.push_str(&rest[end..found.start()]);
                said(with, &captures, pattern, &mut told)?;
                end = found.end();
            }
            told.push_str(&rest[end..]);
            Ok(Some(told))
        }
        _ => Ok(None),
    });
    column(replaced.collect::<Result<StringArray>>()?)
}

/// A replacement as Java reads it: `$1`, `${name}`, and a backslash before a sign that is meant.
fn said(with: &str, captures: &Captures<'_>, pattern: &Pattern, told: &mut String) -> Result<()> {
    let mut signs = with.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.next() {
                Some(meant) => told.push(meant),
                None => return fault("a replacement ends with a backslash"),
            },
            '$' if signs.peek() == Some(&'{') => {
                signs.next();
                let name: String = signs.by_ref().take_while(|sign| *sign != '}').collect();
                if !pattern.regex.capture_names().flatten().any(|known| known == name) {
                    return fault("a replacement names a group that the regular expression has not");
                }
                told.push_str(captures.name(&name).map_or("", |found| found.as_str()));
            }
            '$' => {
                let Some(mut at) = signs.next().and_then(|sign| sign.to_digit(10)).map(|digit| digit as usize) else {
                    return fault("`$` in a replacement stands before the number of a group");
                };
                if at >= captures.len() {
                    return fault("a regular expression has no group of this number");
                }
                while let Some(digit) = signs.peek().and_then(|sign| sign.to_digit(10)) {
                    let longer = at * 10 + digit as usize;
                    if longer >= captures.len() {
                        break;
                    }
                    at = longer;
                    signs.next();
                }
                told.push_str(captures.get(at).map_or("", |found| found.as_str()));
            }
            sign => told.push(sign),
        }
    }
    Ok(())
}

fn split(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let mut last = None;
    let limits = or_literal(arguments.get(2).map(ints), -1, arguments[0].len());
    let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).zip(limits);
    let parts = rows.map(|row| match row {
        ((Some(text), Some(java)), Some(limit)) => parts(text, java, read(&mut last, java)?, limit).map(Some),
        _ => Ok(None),
    });
    Ok(lists(parts.collect::<Result<Vec<_>>>()?))
}

/// The parts of a text between what is found, as `String.split` of Java gives them; a limit of 0 means none here.
fn parts(text: &str, java: &str, pattern: &Pattern, limit: i32) -> Result<Vec<String>> {
    let most = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    if java.is_empty() {
        // a text is split into its signs, and there is nothing after the last
        let signs: Vec<char> = text.chars().collect();
        if signs.is_empty() {
            return Ok(vec![String::new()]);
        }
        let mut parts: Vec<String> = signs.iter().take(most.saturating_sub(1).min(signs.len())).map(char::to_string).collect();
        if parts.len() < signs.len() {
            parts.push(signs[parts.len()..].iter().collect());
        }
        return Ok(parts);
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for captures in pattern.every(text)? {
        let Some(found) = captures.get(0) else { continue };
        if parts.len() + 1 >= most {
            break;
        }
        // what is empty at the start parts nothing
        if found.end() == 0 {
            continue;
        }
        parts.push(text[start..found.start()].to_owned());
        start = found.end();
    }
    parts.push(text[start..].to_owned());
    Ok(parts)
}
