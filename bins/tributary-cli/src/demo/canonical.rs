//! One text form for a value, whether it comes from the source's own dump or from a Delta table.
//!
//! Equal values have equal texts: numbers without trailing zeros, instants in UTC microseconds, floats by their bits,
//! sets in order, JSON compact. A text that does not parse as its type stays as it is, so that it differs visibly.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use tributary::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, ListArray, StringArray, StructArray,
};
use tributary::arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};

use super::expected::Server;

/// What a source type means for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    Integer,
    Number,
    Double,
    Float,
    Date,
    Instant,
    WallClock,
    Time,
    ZonedTime,
    Interval,
    TextArray,
    Json,
    Hstore,
    Bytes,
    Bits,
    Set,
    Text,
}

impl Kind {
    /// From the source's name of the type.
    pub fn of(server: Server, source_type: &str) -> Self {
        let base = source_type.split(['(', ' ']).next().unwrap_or(source_type);
        match (server, base) {
            (Server::Postgres, "boolean") => Self::Boolean,
            (Server::MariaDb, "bit") if source_type == "bit(1)" => Self::Boolean,
            (Server::MariaDb, "bit") => Self::Bits,
            (_, "bigint" | "integer" | "smallint" | "oid" | "int" | "tinyint" | "mediumint" | "year") => Self::Integer,
            (_, "numeric" | "decimal") => Self::Number,
            (_, "double") => Self::Double,
            (_, "real" | "float") => Self::Float,
            (_, "date") => Self::Date,
            (Server::Postgres, "timestamp") if source_type.ends_with("with time zone") => Self::Instant,
            (Server::MariaDb, "timestamp") => Self::Instant,
            (_, "timestamp" | "datetime") => Self::WallClock,
            (Server::Postgres, "time") if source_type.ends_with("with time zone") => Self::ZonedTime,
            (_, "time") => Self::Time,
            (_, "interval") => Self::Interval,
            (_, "json" | "jsonb" | "longtext") => Self::Json,
            (_, "hstore") => Self::Hstore,
            (_, "bytea" | "blob" | "varbinary" | "binary" | "longblob" | "mediumblob" | "tinyblob") => Self::Bytes,
            (_, "set") => Self::Set,
            _ if source_type.ends_with("[]") => Self::TextArray,
            _ => Self::Text,
        }
    }
}

/// The canonical text of what the source's dump says.
pub fn of_source(server: Server, kind: Kind, text: &str) -> String {
    match kind {
        Kind::Boolean => match text {
            "t" | "1" | "b'1'" => "true".to_owned(),
            "f" | "0" | "b'0'" => "false".to_owned(),
            other => other.to_owned(),
        },
        Kind::Integer => number(text),
        Kind::Number => number(text),
        Kind::Double => text.parse::<f64>().map_or_else(|_| text.to_owned(), double),
        Kind::Float => text.parse::<f32>().map_or_else(|_| text.to_owned(), float),
        Kind::Date => date_text(text),
        Kind::Instant => instant_text(text),
        Kind::WallClock => wall_clock_text(text),
        Kind::Time => time_text(text),
        Kind::ZonedTime => zoned_time(text),
        Kind::Interval => interval(text),
        Kind::TextArray => list(&array_literal(text)),
        Kind::Json => json(text),
        Kind::Hstore => map(&hstore_literal(text)),
        Kind::Bytes => match server {
            Server::Postgres => text.strip_prefix("\\x").unwrap_or(text).to_ascii_lowercase(),
            Server::MariaDb => text.strip_prefix("0x").unwrap_or(text).to_ascii_lowercase(),
        },
        Kind::Bits => bits_text(text),
        Kind::Set => set(text.split(',')),
        Kind::Text => text.to_owned(),
    }
}

/// The canonical text of row `row` of a column; `None` for null.
pub fn of_arrow(kind: Kind, column: &ArrayRef, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Boolean => down::<BooleanArray>(column).value(row).to_string(),
        DataType::Int8 => integer(kind, down::<Int8Array>(column).value(row).into()),
        DataType::Int16 => integer(kind, down::<Int16Array>(column).value(row).into()),
        DataType::Int32 => integer(kind, down::<Int32Array>(column).value(row).into()),
        DataType::Int64 => integer(kind, down::<Int64Array>(column).value(row)),
        DataType::Float32 => float(down::<Float32Array>(column).value(row)),
        DataType::Float64 if kind == Kind::Float =>
        {
            #[allow(clippy::cast_possible_truncation, reason = "the source has the narrower type")]
            float(down::<Float64Array>(column).value(row) as f32)
        }
        DataType::Float64 if kind == Kind::Double => double(down::<Float64Array>(column).value(row)),
        DataType::Float64 => number(&down::<Float64Array>(column).value(row).to_string()),
        DataType::Decimal128(_, _) => number(&down::<Decimal128Array>(column).value_as_string(row)),
        DataType::Date32 => date(i64::from(column.as_primitive::<Date32Type>().value(row))),
        DataType::Timestamp(TimeUnit::Microsecond, _) => micros(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::Binary => binary(kind, down::<BinaryArray>(column).value(row)),
        DataType::Utf8 => text(kind, down::<StringArray>(column).value(row)),
        DataType::List(_) => {
            let items = down::<ListArray>(column).value(row);
            let texts: Vec<Option<String>> = (0..items.len()).map(|item| of_arrow(Kind::Text, &items, item)).collect();
            if kind == Kind::Set { set(texts.iter().flatten().map(String::as_str)) } else { list(&texts) }
        }
        DataType::Struct(_) => variable_scale(down::<StructArray>(column), row),
        other => format!("<{other}>"),
    })
}

#[allow(clippy::expect_used, reason = "callers have matched the data type")]
fn down<T: Array + 'static>(column: &ArrayRef) -> &T {
    column.as_any().downcast_ref::<T>().expect("the array has its data type")
}

fn integer(kind: Kind, value: i64) -> String {
    match kind {
        Kind::Time => time(value),
        Kind::Interval => format!("{value}us"),
        Kind::Boolean => (value != 0).to_string(),
        Kind::Date => date(value),
        _ => value.to_string(),
    }
}

fn binary(kind: Kind, bytes: &[u8]) -> String {
    match kind {
        Kind::Bits => bits(bytes),
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn text(kind: Kind, value: &str) -> String {
    match kind {
        Kind::Integer | Kind::Number => number(value),
        Kind::Double => value.parse::<f64>().map_or_else(|_| value.to_owned(), double),
        Kind::Float => value.parse::<f32>().map_or_else(|_| value.to_owned(), float),
        Kind::Date => date_text(value.trim_end_matches('Z')),
        Kind::Instant => instant_text(value),
        Kind::WallClock => wall_clock_text(value.trim_end_matches('Z')),
        Kind::Time => time_text(value.trim_end_matches('Z')),
        Kind::ZonedTime => zoned_time(value),
        Kind::Interval => interval(value),
        Kind::Json => json(value),
        Kind::Hstore => {
            serde_json::from_str::<BTreeMap<String, Option<String>>>(value).map_or_else(|_| value.to_owned(), |pairs| map(&pairs))
        }
        Kind::Bytes => value.to_ascii_lowercase(),
        Kind::Set => set(value.split(',')),
        Kind::TextArray | Kind::Bits | Kind::Boolean | Kind::Text => value.to_owned(),
    }
}

/// `-0012.500` → `-12.5`; exponents are written out; anything else stays.
fn number(text: &str) -> String {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let Ok(exponent) = exponent.parse::<i32>() else { return text.to_owned() };
    if whole.is_empty() || !whole.chars().chain(fraction.chars()).all(|digit| digit.is_ascii_digit()) || exponent.abs() > 400 {
        return text.to_owned();
    }
    let all = format!("{whole}{fraction}");
    let point = i32::try_from(whole.len()).unwrap_or(i32::MAX).saturating_add(exponent);
    let (whole, fraction) = match usize::try_from(point) {
        Ok(point) if point >= all.len() => (format!("{all:0<point$}"), String::new()),
        Ok(point) => (all[..point].to_owned(), all[point..].to_owned()),
        Err(_) => (String::new(), format!("{}{all}", "0".repeat(point.unsigned_abs() as usize))),
    };
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let value = if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") };
    if negative && value != "0" { format!("-{value}") } else { value }
}

fn double(value: f64) -> String {
    if value.is_nan() { "NaN".to_owned() } else { format!("{value:e}") }
}

fn float(value: f32) -> String {
    if value.is_nan() { "NaN".to_owned() } else { format!("{value:e}") }
}

fn date(days: i64) -> String {
    let date = i32::try_from(days).ok().and_then(NaiveDate::from_epoch_days);
    date.map_or_else(|| format!("{days} days"), |date| date.to_string())
}

fn date_text(text: &str) -> String {
    let (text, before_christ) = text.strip_suffix(" BC").map_or((text, false), |text| (text, true));
    let parts: Vec<&str> = text.splitn(3, '-').collect();
    let parsed = match parts.as_slice() {
        [year, month, day] => year.parse::<i32>().ok().zip(month.parse().ok()).zip(day.parse().ok()),
        _ => None,
    };
    let date = parsed.and_then(|((year, month), day)| NaiveDate::from_ymd_opt(if before_christ { 1 - year } else { year }, month, day));
    date.map_or_else(|| text.to_owned(), |date| date.to_string())
}

fn micros(value: i64) -> String {
    DateTime::from_timestamp_micros(value).map_or_else(|| format!("{value} µs"), |at| at.naive_utc().to_string())
}

fn instant_text(text: &str) -> String {
    let normal = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00")).unwrap_or(text);
    wall_clock_text(normal)
}

fn wall_clock_text(text: &str) -> String {
    let (text_ad, before_christ) = text.strip_suffix(" BC").map_or((text, false), |text| (text, true));
    let Some((day, time)) = text_ad.split_once([' ', 'T']) else { return text.to_owned() };
    let day = date_text(&if before_christ { format!("{day} BC") } else { day.to_owned() });
    let parsed = NaiveDate::parse_from_str(&day, "%Y-%m-%d").ok().zip(NaiveTime::parse_from_str(time, "%H:%M:%S%.f").ok());
    parsed.map_or_else(|| text.to_owned(), |(day, time)| micros(NaiveDateTime::new(day, time).and_utc().timestamp_micros()))
}

/// Hours may pass 24.
fn time(micros: i64) -> String {
    let (sign, seconds, fraction) =
        (if micros < 0 { "-" } else { "" }, micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:06}") };
    format!("{sign}{:02}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// `[-]HH…:MM:SS[.ffffff]`; hours may pass 24.
fn time_text(text: &str) -> String {
    time_micros(text).map_or_else(|| text.to_owned(), time)
}

fn time_micros(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let mut parts = text.splitn(3, ':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let (seconds, fraction) = parts.next()?.split_once('.').unwrap_or_else(|| (text.rsplit(':').next().unwrap_or("0"), ""));
    let fraction: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    Some(sign * ((hours * 60 + minutes) * 60 + seconds.parse::<i64>().ok()?) * 1_000_000 + sign * fraction)
}

/// The time in UTC: sources that keep the zone lose it on the way.
fn zoned_time(text: &str) -> String {
    let text = text.trim_end_matches('Z');
    let split = text.rfind(['+', '-']).filter(|at| *at > 0);
    let (clock, zone) = split.map_or((text, "+00"), |at| text.split_at(at));
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let mut parts = zone[1..].split(':').map(|part| part.parse::<i64>().unwrap_or(0));
    let offset = sign * (parts.next().unwrap_or(0) * 60 + parts.next().unwrap_or(0)) * 60_000_000;
    time_micros(clock).map_or_else(|| text.to_owned(), |micros| time((micros - offset).rem_euclid(86_400_000_000)))
}

/// Microseconds of an ISO-8601 duration, a month being 365.25 / 12 days as Debezium's numeric mode has it.
fn interval(text: &str) -> String {
    let micros = text.parse().ok().or_else(|| iso_duration_micros(text));
    micros.map_or_else(|| text.to_owned(), |micros: i64| format!("{micros}us"))
}

fn iso_duration_micros(text: &str) -> Option<i64> {
    const DAY: f64 = 86_400.0;
    let mut total: f64 = 0.0;
    let mut micros: i64 = 0;
    let mut in_time = false;
    let mut digits = String::new();
    for letter in text.strip_prefix('P')?.chars() {
        match letter {
            'T' => in_time = true,
            'S' => {
                let (negative, plain) = digits.strip_prefix('-').map_or((false, digits.as_str()), |plain| (true, plain));
                let (seconds, fraction) = plain.split_once('.').unwrap_or((plain, ""));
                let fraction: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
                let value = seconds.parse::<i64>().ok()? * 1_000_000 + fraction;
                micros += if negative { -value } else { value };
                digits.clear();
            }
            'Y' | 'M' | 'D' | 'H' | 'W' => {
                let value: f64 = digits.parse().ok()?;
                total += value
                    * match (letter, in_time) {
                        ('Y', _) => 365.25 * DAY,
                        ('M', false) => 365.25 / 12.0 * DAY,
                        ('W', _) => 7.0 * DAY,
                        ('D', _) => DAY,
                        ('H', _) => 3600.0,
                        _ => 60.0,
                    };
                digits.clear();
            }
            other => digits.push(other),
        }
    }
    #[allow(clippy::cast_possible_truncation, reason = "durations of a database fit")]
    let days = (total * 1_000_000.0).round() as i64;
    Some(days + micros)
}

/// PostgreSQL's `{a,"b,c",NULL}`.
fn array_literal(text: &str) -> Vec<Option<String>> {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let mut items = Vec::new();
    let mut letters = inner.chars().peekable();
    while letters.peek().is_some() {
        let mut item = String::new();
        let quoted = letters.next_if_eq(&'"').is_some();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => item.extend(letters.next()),
                '"' if quoted => break,
                ',' if !quoted => break,
                other => item.push(other),
            }
        }
        if quoted {
            letters.next_if_eq(&',');
        }
        items.push((quoted || item != "NULL").then_some(item));
    }
    items
}

/// PostgreSQL's `"a"=>"b", "c"=>NULL`.
fn hstore_literal(text: &str) -> BTreeMap<String, Option<String>> {
    let mut words: Vec<Option<String>> = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                let mut word = String::new();
                while let Some(letter) = letters.next() {
                    match letter {
                        '\\' => word.extend(letters.next()),
                        '"' => break,
                        other => word.push(other),
                    }
                }
                words.push(Some(word));
            }
            'N' => words.push(None),
            _ => {}
        }
    }
    words.chunks_exact(2).filter_map(|pair| Some((pair[0].clone()?, pair[1].clone()))).collect()
}

fn list(items: &[Option<String>]) -> String {
    format!("{items:?}")
}

fn map(pairs: &BTreeMap<String, Option<String>>) -> String {
    format!("{pairs:?}")
}

fn set<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    let mut labels: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
    labels.sort_unstable();
    labels.join(",")
}

/// JSON without insignificant blanks; numbers keep their digits.
fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for letter in text.chars() {
        if in_string {
            out.push(letter);
            in_string = escaped || letter != '"';
            escaped = letter == '\\' && !escaped;
        } else if !letter.is_whitespace() {
            out.push(letter);
            in_string = letter == '"';
        }
    }
    out
}

/// `b'0101'` → its significant digits.
fn bits_text(text: &str) -> String {
    text.trim_start_matches("b'").trim_end_matches('\'').trim_start_matches('0').to_owned()
}

/// Big-endian bytes → significant binary digits.
fn bits(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    digits.trim_start_matches('0').to_owned()
}

/// Debezium's `{scale, value}` where it was kept as a struct.
fn variable_scale(column: &StructArray, row: usize) -> String {
    let fields: Vec<String> =
        column.columns().iter().map(|field| of_arrow(Kind::Text, field, row).unwrap_or_else(|| "null".to_owned())).collect();
    format!("{{{}}}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_equal_have_one_text() {
        for (given, canonical) in [
            ("0.00", "0"),
            ("-0", "0"),
            ("12.50", "12.5"),
            ("-0012.500", "-12.5"),
            ("1.5e3", "1500"),
            ("25e-3", "0.025"),
            ("123456789012345678901234567890.123456789", "123456789012345678901234567890.123456789"),
            ("NaN", "NaN"),
        ] {
            assert_eq!(number(given), canonical, "{given}");
        }
    }

    #[test]
    fn a_source_text_and_its_arrow_value_agree() {
        let time: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![-3_600_000_000, 86_400_000_000]));
        assert_eq!(of_arrow(Kind::Time, &time, 0), Some(of_source(Server::MariaDb, Kind::Time, "-01:00:00")));
        assert_eq!(of_arrow(Kind::Time, &time, 1), Some(of_source(Server::Postgres, Kind::Time, "24:00:00")));
        let text: ArrayRef = std::sync::Arc::new(StringArray::from(vec!["{\"a\":  1}", "P0Y0M0DT0H15M0S", "05:30:00Z"]));
        assert_eq!(of_arrow(Kind::Json, &text, 0), Some(of_source(Server::Postgres, Kind::Json, "{\"a\": 1}")));
        assert_eq!(of_arrow(Kind::Interval, &text, 1), Some(of_source(Server::Postgres, Kind::Interval, "PT15M")));
        assert_eq!(of_arrow(Kind::ZonedTime, &text, 2), Some(of_source(Server::Postgres, Kind::ZonedTime, "07:30:00+02")));
        let bytes: ArrayRef = std::sync::Arc::new(BinaryArray::from(vec![&[0x01_u8, 0x76][..]]));
        assert_eq!(of_arrow(Kind::Bits, &bytes, 0), Some(of_source(Server::MariaDb, Kind::Bits, "b'0101110110'")));
        assert_eq!(of_arrow(Kind::Bytes, &bytes, 0), Some(of_source(Server::MariaDb, Kind::Bytes, "0x0176")));
    }

    #[test]
    fn times_are_shown_as_people_write_them() {
        assert_eq!(wall_clock_text("2024-02-29 12:30:00.5"), "2024-02-29 12:30:00.500");
        assert_eq!(micros(1_709_209_800_500_000), "2024-02-29 12:30:00.500");
        assert_eq!(time(-3_600_000_000), "-01:00:00");
        assert_eq!(time_text("24:00:00.25"), "24:00:00.250000");
    }

    #[test]
    fn literals_of_postgres_are_read_with_their_quotes() {
        assert_eq!(
            array_literal(r#"{"a,b","quo\"te",NULL,"NULL",""}"#),
            [Some("a,b".to_owned()), Some("quo\"te".to_owned()), None, Some("NULL".to_owned()), Some(String::new())]
        );
        assert_eq!(array_literal("{}"), Vec::<Option<String>>::new());
        let pairs = hstore_literal(r#""n"=>NULL, "a b"=>"=>", "empty"=>"""#);
        assert_eq!(pairs.get("a b"), Some(&Some("=>".to_owned())));
        assert_eq!(pairs.get("n"), Some(&None));
    }

    #[test]
    fn years_before_christ_and_zero_dates_stay_apart() {
        assert_eq!(date_text("0044-03-15 BC"), "-0043-03-15");
        assert_eq!(date_text("2024-02-00"), "2024-02-00");
        assert_eq!(wall_clock_text("0000-00-00 00:00:00"), "0000-00-00 00:00:00");
    }
}
