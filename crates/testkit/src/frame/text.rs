//! Cells as text, and back.

use arrow_schema::{DataType, Field, TimeUnit};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};
use serde_json::Value as Json;

use super::schema::plain;
use crate::value::{Value, hex};

/// The text of a value of this type, as a frame literal has it.
pub(super) fn write(value: &Value, data_type: &DataType) -> String {
    let data_type = plain(data_type);
    match (value, &data_type) {
        (Value::Null, _) => "null".to_owned(),
        (Value::Text(text), _) => write_text(text),
        (Value::List(_) | Value::Struct(_) | Value::Map(_), _) => to_json(value, &data_type).to_string(),
        _ => scalar(value, &data_type),
    }
}

/// Reads back what [`write`] wrote, and what people write.
pub(super) fn read(text: &str, data_type: &DataType) -> Result<Value, String> {
    let data_type = plain(data_type);
    match data_type {
        _ if text == "null" => Ok(Value::Null),
        DataType::Utf8 if text.starts_with('"') => match serde_json::from_str(text) {
            Ok(Json::String(text)) => Ok(Value::Text(text)),
            _ => Err(format!("{text} is not a JSON text")),
        },
        DataType::Utf8 => Ok(Value::text(text)),
        DataType::List(_) | DataType::FixedSizeList(..) | DataType::Struct(_) | DataType::Map(..) => {
            let json = serde_json::from_str(text).map_err(|why| format!("{text} is not JSON: {why}"))?;
            from_json(&json, &data_type)
        }
        _ => read_scalar(text, &data_type),
    }
}

/// Bare where it cannot be taken for anything else, else as JSON text.
fn write_text(text: &str) -> String {
    let plain_char = |c: char| c.is_alphanumeric() || "_-.:/@+ ".contains(c);
    let bare = !text.is_empty() && text != "null" && text.trim() == text && !text.starts_with("//") && text.chars().all(plain_char);
    if bare { text.to_owned() } else { Json::from(text).to_string() }
}

fn scalar(value: &Value, data_type: &DataType) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Int(whole) => write_whole(*whole, data_type),
        Value::Float(float) => write_float(*float),
        Value::Bytes(bytes) => hex(bytes),
        Value::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

fn write_float(float: f64) -> String {
    match float {
        float if float.is_nan() => "NaN".to_owned(),
        float if float == f64::INFINITY => "inf".to_owned(),
        float if float == f64::NEG_INFINITY => "-inf".to_owned(),
        float => format!("{float:?}"),
    }
}

fn write_whole(whole: i128, data_type: &DataType) -> String {
    let ticks = || format!("@{whole}");
    match data_type {
        DataType::Decimal128(_, scale) => write_decimal(whole, *scale),
        DataType::Date32 => date(whole).map_or_else(ticks, |date| date.format("%Y-%m-%d").to_string()),
        DataType::Timestamp(unit, zone) => instant(whole, *unit).map_or_else(ticks, |instant| {
            let end = if zone.is_some() { "Z" } else { "" };
            format!("{}{end}", instant.format("%Y-%m-%dT%H:%M:%S%.f"))
        }),
        DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) => ticks(),
        _ => whole.to_string(),
    }
}

fn write_decimal(unscaled: i128, scale: i8) -> String {
    let Ok(places) = usize::try_from(scale) else { return format!("{unscaled}e{}", -i16::from(scale)) };
    if places == 0 {
        return unscaled.to_string();
    }
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    format!("{}{whole}.{fraction}", if unscaled < 0 { "-" } else { "" })
}

/// Only years with four digits are written as dates.
fn date(days: i128) -> Option<NaiveDate> {
    let days = i32::try_from(days).ok()?;
    NaiveDate::from_epoch_days(days).filter(|date| (0..=9999).contains(&date.year()))
}

fn instant(ticks: i128, unit: TimeUnit) -> Option<NaiveDateTime> {
    let a_second = per_second(unit);
    let seconds = i64::try_from(ticks.div_euclid(a_second)).ok()?;
    let nanos = u32::try_from(ticks.rem_euclid(a_second) * (1_000_000_000 / a_second)).ok()?;
    DateTime::from_timestamp(seconds, nanos).map(|instant| instant.naive_utc()).filter(|instant| (0..=9999).contains(&instant.year()))
}

const fn per_second(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn read_scalar(text: &str, data_type: &DataType) -> Result<Value, String> {
    let misfit = || format!("{text:?} is not a {data_type}");
    let whole = |text: &str| text.parse::<i128>().map(Value::Int).map_err(|_| misfit());
    match data_type {
        DataType::Boolean => text.parse().map(Value::Bool).map_err(|_| misfit()),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => text.parse().map(Value::Float).map_err(|_| misfit()),
        DataType::Binary | DataType::FixedSizeBinary(_) => read_bytes(text).map(Value::Bytes).ok_or_else(misfit),
        DataType::Decimal128(precision, scale) => read_decimal(text, *precision, *scale).map(Value::Int).ok_or_else(misfit),
        _ if text.starts_with('@') => whole(&text[1..]),
        DataType::Date32 => {
            let date = text.parse::<NaiveDate>().map_err(|_| misfit())?;
            Ok(Value::Int(date.to_epoch_days().into()))
        }
        DataType::Timestamp(unit, zone) => {
            let instant = if zone.is_some() {
                DateTime::parse_from_rfc3339(text).map(|instant| instant.naive_utc()).map_err(|_| misfit())?
            } else {
                text.replace(' ', "T").parse::<NaiveDateTime>().map_err(|_| misfit())?
            };
            let utc = instant.and_utc();
            let nanos = i128::from(utc.timestamp()) * 1_000_000_000 + i128::from(utc.timestamp_subsec_nanos());
            let a_tick = 1_000_000_000 / per_second(*unit);
            if nanos % a_tick != 0 {
                return Err(format!("{text:?} is finer than the unit of {data_type}"));
            }
            Ok(Value::Int(nanos / a_tick))
        }
        _ => whole(text),
    }
}

fn read_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?;
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

fn read_decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (digits, places) = match (text.split_once('.'), text.split_once('e')) {
        (Some((whole, fraction)), _) => (format!("{whole}{fraction}"), i32::try_from(fraction.len()).ok()?),
        (None, Some((digits, exponent))) => (digits.to_owned(), -exponent.parse::<i32>().ok()?),
        (None, None) => (text.to_owned(), 0),
    };
    let shift = u32::try_from(i32::from(scale) - places).ok()?;
    let unscaled = digits.parse::<i128>().ok()?.checked_mul(10i128.checked_pow(shift)?)?;
    (unscaled.unsigned_abs() < 10u128.checked_pow(precision.into())?).then_some(unscaled)
}

fn to_json(value: &Value, data_type: &DataType) -> Json {
    match (value, data_type) {
        (Value::Null, _) => Json::Null,
        (Value::Bool(truth), _) => (*truth).into(),
        (Value::List(elements), DataType::List(element) | DataType::FixedSizeList(element, _)) => {
            elements.iter().map(|value| to_json(value, element.data_type())).collect()
        }
        (Value::Struct(values), DataType::Struct(fields)) => Json::Object(
            fields.iter().zip(values).map(|(field, (_, value))| (field.name().clone(), to_json(value, field.data_type()))).collect(),
        ),
        (Value::Map(entries), DataType::Map(pair, _)) => {
            let (key, item) = pair_types(pair);
            entries.iter().map(|(k, v)| Json::Array(vec![to_json(k, &key), to_json(v, &item)])).collect()
        }
        (Value::Int(whole), DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64) => {
            i64::try_from(*whole).map_or_else(|_| whole.to_string().into(), Into::into)
        }
        (Value::Text(text), _) => text.clone().into(),
        (value, data_type) => scalar(value, data_type).into(),
    }
}

/// The value of a JSON value of this type.
pub(super) fn from_json(json: &Json, data_type: &DataType) -> Result<Value, String> {
    match (json, data_type) {
        (Json::Null, _) => Ok(Value::Null),
        (Json::Array(elements), DataType::List(element) | DataType::FixedSizeList(element, _)) => {
            elements.iter().map(|json| from_json(json, element.data_type())).collect::<Result<_, _>>().map(Value::List)
        }
        (Json::Object(object), DataType::Struct(fields)) => {
            if let Some(unknown) = object.keys().find(|name| !fields.iter().any(|field| field.name() == *name)) {
                return Err(format!("the struct has no field {unknown:?}"));
            }
            let value = |field: &Field| from_json(object.get(field.name()).unwrap_or(&Json::Null), field.data_type());
            fields.iter().map(|field| Ok((field.name().clone(), value(field)?))).collect::<Result<_, _>>().map(Value::Struct)
        }
        (Json::Array(entries), DataType::Map(pair, _)) => {
            let (key, item) = pair_types(pair);
            let entry = |json: &Json| match json.as_array().map(Vec::as_slice) {
                Some([k, v]) => Ok((from_json(k, &key)?, from_json(v, &item)?)),
                _ => Err(format!("{json} is not a pair of a map")),
            };
            entries.iter().map(entry).collect::<Result<_, _>>().map(Value::Map)
        }
        (Json::String(text), DataType::Utf8) => Ok(Value::text(text)),
        (Json::String(text), other) => read_scalar(text, &plain(other)),
        (Json::Number(_) | Json::Bool(_), other) => read_scalar(&json.to_string(), &plain(other)),
        (json, other) => Err(format!("{json} is not a {other}")),
    }
}

fn pair_types(entries: &Field) -> (DataType, DataType) {
    match entries.data_type() {
        DataType::Struct(pair) if pair.len() == 2 => (pair[0].data_type().clone(), pair[1].data_type().clone()),
        other => panic!("a map's entries are pairs, not {other}"),
    }
}
