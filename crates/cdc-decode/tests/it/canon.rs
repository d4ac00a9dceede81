//! One form for a value as a database prints it and as a column holds it.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType as Arrow;

/// A value in the form both sides are brought to.
pub type Canon = Option<String>;

/// What the database printed.
pub fn expected(sql_type: &str, text: Option<&str>) -> Canon {
    let text = text?;
    let lower = sql_type.to_ascii_lowercase();
    Some(if lower.starts_with("bit(") {
        let bits = text.trim_start_matches("b'").trim_end_matches('\'');
        if lower == "bit(1)" { boolean(bits == "1") } else { format!("bits:{}", bits.trim_start_matches('0')) }
    } else if is_number(&lower) {
        number(text)
    } else if lower == "boolean" {
        boolean(text == "t")
    } else if lower == "real" || lower == "float" {
        float(text.parse::<f32>().unwrap().into())
    } else if lower.starts_with("double") {
        float(text.parse().unwrap())
    } else if lower == "timestamp with time zone" || lower.starts_with("timestamp(") && !lower.contains("zone") || lower == "timestamp" {
        format!("instant:{}", moment(text))
    } else if lower.starts_with("timestamp") || lower.starts_with("datetime") {
        format!("clock:{}", moment(text))
    } else if lower == "date" {
        format!("date:{}", era(text))
    } else if lower.starts_with("time with ") {
        format!("timetz:{text}")
    } else if lower.starts_with("time") {
        format!("time:{}", micros_of_day(text))
    } else if lower == "bytea" {
        text.trim_start_matches("\\x").to_owned()
    } else if lower.contains("blob") || lower.starts_with("varbinary") {
        text.trim_start_matches("0x").to_ascii_lowercase()
    } else if lower == "text[]" {
        array(text)
    } else if lower == "hstore" {
        hstore(text)
    } else if lower == "jsonb" {
        json(text)
    } else {
        text.to_owned()
    })
}

/// What a column of such a source holds.
pub fn actual(sql_type: &str, column: &ArrayRef, row: usize) -> Canon {
    if column.is_null(row) {
        return None;
    }
    let lower = sql_type.to_ascii_lowercase();
    Some(match column.data_type() {
        Arrow::Boolean => boolean(column.as_boolean().value(row)),
        Arrow::Int8 => number(&column.as_primitive::<Int8Type>().value(row).to_string()),
        Arrow::Int16 => number(&column.as_primitive::<Int16Type>().value(row).to_string()),
        Arrow::Int32 => number(&column.as_primitive::<Int32Type>().value(row).to_string()),
        Arrow::Int64 if lower.starts_with("time") => format!("time:{}", column.as_primitive::<Int64Type>().value(row)),
        Arrow::Int64 => number(&column.as_primitive::<Int64Type>().value(row).to_string()),
        Arrow::Float32 => float(column.as_primitive::<Float32Type>().value(row).into()),
        Arrow::Float64 if is_number(&lower) => number(&format!("{:?}", column.as_primitive::<Float64Type>().value(row))),
        Arrow::Float64 => float(column.as_primitive::<Float64Type>().value(row)),
        Arrow::Decimal128(..) => number(&column.as_primitive::<Decimal128Type>().value_as_string(row)),
        Arrow::Date32 => {
            let mut text = String::new();
            let days = column.as_primitive::<Date32Type>().value(row);
            date(i64::from(days), &mut text);
            format!("date:{text}")
        }
        Arrow::Timestamp(_, zone) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            let kind = if zone.is_some() { "instant" } else { "clock" };
            format!("{kind}:{}", micros_text(micros))
        }
        Arrow::Binary if lower.starts_with("bit") => {
            let bits: String = column.as_binary::<i32>().value(row).iter().map(|byte| format!("{byte:08b}")).collect();
            format!("bits:{}", bits.trim_start_matches('0'))
        }
        Arrow::Binary => column.as_binary::<i32>().value(row).iter().map(|byte| format!("{byte:02x}")).collect(),
        Arrow::List(_) => {
            let list = column.as_list::<i32>().value(row);
            let list = list.as_string::<i32>();
            let items: Vec<Option<&str>> = (0..list.len()).map(|item| list.is_valid(item).then(|| list.value(item))).collect();
            format!("{items:?}")
        }
        Arrow::Map(..) => {
            let entries = column.as_map().value(row);
            let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
            let map: BTreeMap<&str, Option<&str>> =
                (0..entries.len()).map(|at| (keys.value(at), values.is_valid(at).then(|| values.value(at)))).collect();
            format!("{map:?}")
        }
        Arrow::Utf8 => {
            let text = column.as_string::<i32>().value(row);
            if is_number(&lower) {
                number(text)
            } else if lower == "hstore" {
                let map: BTreeMap<String, Option<String>> = serde_json::from_str(text).unwrap();
                format!("{map:?}")
            } else if lower == "jsonb" {
                json(text)
            } else {
                text.to_owned()
            }
        }
        other => panic!("no form for {other}"),
    })
}

fn is_number(lower: &str) -> bool {
    ["numeric", "decimal", "bigint", "int", "smallint", "mediumint", "tinyint", "year"].iter().any(|name| lower.starts_with(name))
        && !lower.starts_with("interval")
        && !lower.starts_with("int4range")
}

fn boolean(value: bool) -> String {
    value.to_string()
}

fn number(text: &str) -> String {
    if text == "NaN" || text == "NAN" {
        return "NaN".to_owned();
    }
    let text = match text {
        "true" => "1",
        "false" => "0",
        other => other,
    };
    if text.contains('e') {
        return number(&format!("{:.0}", text.parse::<f64>().unwrap()));
    }
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn float(value: f64) -> String {
    if value.is_nan() { "NaN".to_owned() } else { format!("{value:e}") }
}

/// `yyyy-mm-dd hh:mm:ss[.f]`, without the zone (all are UTC) and trailing zeros.
fn moment(text: &str) -> String {
    let (text, bc) = match text.strip_suffix(" BC") {
        Some(text) => (text, " BC"),
        None => (text, ""),
    };
    let text = text.trim_end_matches("+00");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    format!("{text}{bc}")
}

fn era(text: &str) -> String {
    text.to_owned()
}

fn micros_text(micros: i64) -> String {
    let (days, of_day) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000));
    let mut text = String::new();
    date(days, &mut text);
    let (text, bc) = match text.strip_suffix(" BC") {
        Some(text) => (text.to_owned(), " BC"),
        None => (text, ""),
    };
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let time = format!("{:02}:{:02}:{:02}.{fraction:06}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{text} {}{bc}", time.trim_end_matches('0').trim_end_matches('.'))
}

/// By counting, so that it shares nothing with the crate's own calendar.
fn date(days: i64, out: &mut String) {
    let leap = |year: i64| year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    let (mut year, mut rest) = (1970 + 400 * days.div_euclid(146_097), days.rem_euclid(146_097));
    while rest >= 365 + i64::from(leap(year)) {
        rest -= 365 + i64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    let (year, bc) = if year <= 0 { (1 - year, " BC") } else { (year, "") };
    out.push_str(&format!("{year:04}-{month:02}-{:02}{bc}", rest + 1));
}

fn micros_of_day(text: &str) -> i64 {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text),
    };
    let (time, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let parts: Vec<i64> = time.split(':').map(|part| part.parse().unwrap()).collect();
    let micros: i64 = format!("{fraction:0<6}").parse().unwrap();
    sign * ((parts[0] * 3600 + parts[1] * 60 + parts[2]) * 1_000_000 + micros)
}

/// PostgreSQL's array text of one dimension.
fn array(text: &str) -> String {
    let mut items: Vec<Option<String>> = Vec::new();
    let mut letters = text[1..text.len() - 1].chars().peekable();
    while let Some(letter) = letters.next() {
        let mut item = String::new();
        let quoted = letter == '"';
        if quoted {
            while let Some(letter) = letters.next() {
                match letter {
                    '\\' => item.extend(letters.next()),
                    '"' => break,
                    other => item.push(other),
                }
            }
        } else {
            item.push(letter);
            while letters.peek().is_some_and(|letter| *letter != ',') {
                item.extend(letters.next());
            }
        }
        items.push((quoted || item != "NULL").then_some(item));
        letters.next();
    }
    format!("{items:?}")
}

/// PostgreSQL's hstore text.
fn hstore(text: &str) -> String {
    let as_json = format!("{{{}}}", text.replace("=>NULL", ":null").replace("\"=>\"", "\":\""));
    // A value that is itself an arrow is quoted and so was left alone.
    let map: BTreeMap<String, Option<String>> = serde_json::from_str(&as_json).unwrap_or_else(|_| panic!("{as_json}"));
    format!("{map:?}")
}

fn json(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text).unwrap().to_string()
}
