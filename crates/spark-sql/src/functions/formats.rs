//! `format_string` and `decode`.

use tributary_lake::arrow::array::{Array, ArrayRef, StringArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::conditions::common;
use super::numbers::in_thousands;
use super::own::Kind::{Any, Text};
use super::own::{Arguments, Gives, Own, bytes, column, fault, texts, two};
use super::{Entry, own};
use crate::convert;
use crate::value::{Value, build, read};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    own(&["format_string", "printf"], Own::new("format_string", &[Text], Gives::Text, format_string).and_more(Any)),
    own(&["decode"], Own::new("decode", &[Any, Any], Gives::By(decode_type), decode).and_more(Any)),
];

fn format_string(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let forms = texts(&arguments[0]);
    let one = |row| {
        if forms.is_null(row) {
            return Ok(None);
        }
        let values = arguments[1..].iter().map(|column| Ok((read(column, row)?, column.data_type()))).collect::<Result<Vec<_>>>()?;
        formatted(forms.value(row), &values).map(Some)
    };
    column((0..forms.len()).map(one).collect::<Result<StringArray>>()?)
}

/// `%[place$][flags][width][.precision]kind`.
#[derive(Debug, Default)]
struct Slot {
    place: Option<usize>,
    left: bool,
    plus: bool,
    zeros: bool,
    commas: bool,
    width: usize,
    precision: Option<usize>,
}

fn formatted(form: &str, values: &[(Value, &DataType)]) -> Result<String> {
    let mut told = String::new();
    let mut next = 0;
    let mut signs = form.chars().peekable();
    while let Some(sign) = signs.next() {
        if sign != '%' {
            told.push(sign);
            continue;
        }
        let mut slot = Slot::default();
        let mut digits = String::new();
        let kind = loop {
            match signs.next() {
                Some('-') => slot.left = true,
                Some('+') => slot.plus = true,
                Some(',') => slot.commas = true,
                Some('0') if digits.is_empty() => slot.zeros = true,
                Some(digit) if digit.is_ascii_digit() => digits.push(digit),
                Some('$') => slot.place = std::mem::take(&mut digits).parse::<usize>().ok().and_then(|place| place.checked_sub(1)),
                Some('.') => {
                    let mut precision = String::new();
                    while let Some(digit) = signs.next_if(char::is_ascii_digit) {
                        precision.push(digit);
                    }
                    slot.precision = precision.parse().ok();
                }
                Some(kind) => break kind,
                None => return fault("the form of `format_string` ends within a place"),
            }
        };
        slot.width = digits.parse().unwrap_or(0);
        if slot.width > 10_000 || slot.precision.is_some_and(|precision| precision > 10_000) {
            return fault("a width in the form of `format_string` is too large");
        }
        match kind {
            '%' => told.push('%'),
            'n' => told.push('\n'),
            kind => {
                let at = slot.place.unwrap_or_else(|| {
                    next += 1;
                    next - 1
                });
                let Some((value, of)) = values.get(at) else { return fault("the form of `format_string` has more places than arguments") };
                told.push_str(&placed(&slot, one(&slot, kind, value, of)?));
            }
        }
    }
    Ok(told)
}

fn placed(slot: &Slot, text: String) -> String {
    let missing = slot.width.saturating_sub(text.chars().count());
    if slot.left {
        return text + &" ".repeat(missing);
    }
    if slot.zeros {
        let (sign, digits) = if text.starts_with(['-', '+']) { text.split_at(1) } else { ("", text.as_str()) };
        return format!("{sign}{}{digits}", "0".repeat(missing));
    }
    " ".repeat(missing) + &text
}

fn one(slot: &Slot, kind: char, value: &Value, of: &DataType) -> Result<String> {
    let cut = |text: String| match slot.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text,
    };
    let signed = |text: String| if slot.plus && !text.starts_with('-') { format!("+{text}") } else { text };
    let commas = |text: String| if slot.commas { in_thousands(&text) } else { text };
    let wrong = || fault("a value does not go with its place in the form of `format_string`");
    Ok(match (kind, value) {
        ('s', Value::Null) => cut("null".to_owned()),
        ('S', Value::Null) => cut("NULL".to_owned()),
        ('b', Value::Null) => "false".to_owned(),
        ('b', Value::Boolean(yes)) => yes.to_string(),
        ('b', _) => "true".to_owned(),
        (_, Value::Null) => "null".to_owned(),
        ('s' | 'S', Value::Whole(_) | Value::Text(_) | Value::Boolean(_) | Value::Double(_) | Value::Float(_) | Value::Decimal(..)) => {
            let text = cut(convert::text(value, of).unwrap_or_default());
            if kind == 'S' { text.to_uppercase() } else { text }
        }
        ('s' | 'S', _) => return fault("`%s` of `format_string` takes texts, numbers and booleans in this release: cast to string"),
        ('d', Value::Whole(number)) => signed(commas(number.to_string())),
        ('x', Value::Whole(number)) => format!("{number:x}"),
        ('X', Value::Whole(number)) => format!("{number:X}"),
        ('o', Value::Whole(number)) => format!("{number:o}"),
        ('c', Value::Whole(code)) => match u32::try_from(*code).ok().and_then(char::from_u32) {
            Some(sign) => sign.to_string(),
            None => return wrong(),
        },
        ('f', Value::Double(_) | Value::Float(_) | Value::Decimal(..)) => {
            let places = slot.precision.unwrap_or(6);
            signed(commas(fixed(value, places)?))
        }
        ('e' | 'E', Value::Double(number)) => {
            let text = format!("{number:.*e}", slot.precision.unwrap_or(6));
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            let told = signed(format!("{mantissa}e{sign}{digits:0>2}"));
            if kind == 'E' { told.to_uppercase() } else { told }
        }
        _ => return wrong(),
    })
}

/// So many digits behind the point, halves away from zero in the decimal form.
fn fixed(value: &Value, places: usize) -> Result<String> {
    let small = i32::try_from(places).unwrap_or(i32::MAX);
    let number = match value {
        Value::Decimal(digits, scale) => match convert::rescaled(*digits, i32::from(*scale), small, true) {
            Some(digits) if places <= 100 => return Ok(crate::shortest::decimal(digits, places as i8)),
            _ => return fault("a decimal is too large for `format_string`"),
        },
        value => convert::real(value).unwrap_or(f64::NAN),
    };
    if !number.is_finite() {
        return Ok(crate::shortest::double(number));
    }
    Ok(format!("{:.*}", places, crate::rounding::round(number, small, false)))
}

fn decode_type(arguments: &Arguments<'_>) -> Result<DataType> {
    let types = arguments.types;
    if types.len() == 2 {
        return match types[0] {
            DataType::Binary | DataType::Utf8 | DataType::Null => Ok(DataType::Utf8),
            _ => Err(DataFusionError::Plan("`decode` takes a binary".to_owned())),
        };
    }
    let answers = types[1..].iter().enumerate().filter(|(at, _)| at % 2 == 1 || *at + 2 == types.len());
    common(&answers.map(|(_, data_type)| data_type.clone()).collect::<Vec<_>>())
}

/// `decode(bytes, set)`, or `decode(value, is, then, …[, else])`, where null is null.
fn decode(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    if arguments.len() == 2 {
        let of = convert::cast(&arguments[0], &DataType::Binary, false)?;
        let sets = convert::cast(&arguments[1], &DataType::Utf8, false)?;
        return column::<StringArray>(two(bytes(&of), texts(&sets), |bytes: &[u8], set: &str| {
            super::digests::decoded(bytes, set).map(Some)
        })?);
    }
    let (pairs, otherwise) = match arguments[1..].len() % 2 {
        0 => (&arguments[1..], None),
        _ => (&arguments[1..arguments.len() - 1], arguments.last()),
    };
    let wanted: Vec<DataType> =
        [&arguments[0]].into_iter().chain(pairs.iter().step_by(2)).map(|column| column.data_type().clone()).collect();
    let wanted = common(&wanted)?;
    let of = convert::cast(&arguments[0], &wanted, false)?;
    let pairs = pairs.chunks(2).map(|pair| Ok((convert::cast(&pair[0], &wanted, false)?, convert::cast(&pair[1], to, false)?)));
    let pairs = pairs.collect::<Result<Vec<_>>>()?;
    let otherwise = otherwise.map(|column| convert::cast(column, to, false)).transpose()?;
    let one = |row| {
        let value = read(&of, row)?;
        for (is, then) in &pairs {
            if read(is, row)?.is(&value) {
                return read(then, row);
            }
        }
        otherwise.as_ref().map_or(Ok(Value::Null), |column| read(column, row))
    };
    build((0..of.len()).map(one).collect::<Result<_>>()?, to)
}
