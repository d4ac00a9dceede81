//! Instants, and times on a clock.

use tributary_lake::arrow::array::{Array, ArrayRef, Date32Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::{Any, Instant, Int, Local, Long, Number, Text};
use super::own::{Arguments, Gives, Own, column, fault, instants, ints, longs, one, or_literal, texts, three, two};
use super::{Entry, of_the_moment, own, refused};
use crate::calendar::{self, Civil, DAY, SECOND, split};
use crate::convert;
use crate::form::Form;
use crate::times::Zone;
use crate::value::{Value, build, instant_type, local_type, read_all};

/// A pattern that times are written by.
fn form_to_write(arguments: &Arguments<'_>) -> Result<()> {
    arguments.text(1).map_or(Ok(()), |pattern| Form::parse(pattern).map(drop))
}

/// A pattern that times are read by.
fn form_to_read(arguments: &Arguments<'_>) -> Result<()> {
    arguments.text(1).map_or(Ok(()), |pattern| Form::parse(pattern)?.check_readable())
}

/// A zone.
fn zone_behind(arguments: &Arguments<'_>) -> Result<()> {
    arguments.text(1).map_or(Ok(()), |name| zone(name).map(drop))
}

/// A unit of time.
fn unit_before(arguments: &Arguments<'_>) -> Result<()> {
    arguments.text(0).map_or(Ok(()), |unit| Unit::of(unit).map(drop))
}

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    of_the_moment(&["current_timestamp", "now"], "now", 0, 0),
    own(&["current_timezone"], Own::new("current_timezone", &[], Gives::Text, |_, _| column(StringArray::from(vec!["UTC"])))),
    own(&["hour"], Own::new("hour", &[Instant], Gives::Int, |a, _| of_day(a, |time| time / 3600))),
    own(&["minute"], Own::new("minute", &[Instant], Gives::Int, |a, _| of_day(a, |time| time / 60 % 60))),
    own(&["second"], Own::new("second", &[Instant], Gives::Int, |a, _| of_day(a, |time| time % 60))),
    own(
        &["date_trunc"],
        Own::new("date_trunc", &[Text, Instant], Gives::Instant, |a, to| {
            of_type(two(texts(&a[0]), instants(&a[1]), |unit: &str, at| Ok(start_of(&unit.to_lowercase(), at)))?, to)
        }),
    ),
    own(
        &["timestampdiff"],
        Own::new("timestampdiff", &[Text, Instant, Instant], Gives::Long, |a, _| {
            column::<Int64Array>(three(texts(&a[0]), instants(&a[1]), instants(&a[2]), |unit: &str, start, end| {
                Ok(Some(between(unit, start, end)?))
            })?)
        })
        .looking(unit_before),
    ),
    own(
        &["timestampadd"],
        Own::new("timestampadd", &[Text, Long, Any], Gives::By(|a| Ok(kept(&a.types[2]))), |a, to| {
            let at = convert::cast(&a[2], to, false)?;
            of_type(three(texts(&a[0]), longs(&a[1]), instants(&at), |unit: &str, count, at| later(unit, count, at).map(Some))?, to)
        })
        .looking(unit_before),
    ),
    own(&["timestamp_seconds"], Own::new("timestamp_seconds", &[Number], Gives::Instant, timestamp_seconds)),
    own(
        &["timestamp_millis"],
        Own::new("timestamp_millis", &[Long], Gives::Instant, |a, _| {
            of_type(one(longs(&a[0]), |millis| millis.checked_mul(1000).map_or_else(too_far, |at| Ok(Some(at))))?, &instant_type())
        }),
    ),
    own(
        &["timestamp_micros"],
        Own::new("timestamp_micros", &[Long], Gives::Instant, |a, _| {
            of_type(one(longs(&a[0]), |micros| Ok(Some(micros)))?, &instant_type())
        }),
    ),
    own(&["unix_seconds"], Own::new("unix_seconds", &[Instant], Gives::Long, |a, _| counted(a, |at| at.div_euclid(SECOND)))),
    own(&["unix_millis"], Own::new("unix_millis", &[Instant], Gives::Long, |a, _| counted(a, |at| at.div_euclid(1000)))),
    own(&["unix_micros"], Own::new("unix_micros", &[Instant], Gives::Long, |a, _| counted(a, |at| at))),
    own(
        &["from_unixtime"],
        Own::new("from_unixtime", &[Long, Text], Gives::Text, |a, _| {
            let forms: Vec<Option<&str>> = or_literal(a.get(1).map(texts), FORM, a[0].len());
            let instants = longs(&a[0]).iter().map(|seconds| seconds.map(|seconds| seconds.wrapping_mul(SECOND)));
            written(instants.collect(), forms)
        })
        .at_least(1)
        .looking(form_to_write),
    ),
    own(
        &["unix_timestamp", "to_unix_timestamp"],
        Own::new("unix_timestamp", &[Any, Text], Gives::Long, unix_timestamp).at_least(1).looking(form_to_read),
    ),
    own(&["make_timestamp"], Own::new("make_timestamp", &[Int, Int, Int, Int, Int, Any, Text], Gives::Instant, make_timestamp).at_least(6)),
    own(
        &["from_utc_timestamp"],
        Own::new("from_utc_timestamp", &[Instant, Text], Gives::Instant, |a, _| moved(a, |at, zone| at + zone.offset_at(at) * SECOND))
            .looking(zone_behind),
    ),
    own(
        &["to_utc_timestamp"],
        Own::new("to_utc_timestamp", &[Instant, Text], Gives::Instant, |a, _| moved(a, |at, zone| zone.instant_of(at)))
            .looking(zone_behind),
    ),
    own(&["convert_timezone"], Own::new("convert_timezone", &[Text, Any, Local], Gives::Local, convert_timezone).at_least(2)),
    own(
        &["date_format"],
        Own::new("date_format", &[Instant, Text], Gives::Text, |a, _| {
            written(instants(&a[0]).iter().collect(), texts(&a[1]).iter().collect())
        })
        .looking(form_to_write),
    ),
    own(
        &["to_timestamp", "to_timestamp_ltz"],
        Own::new("to_timestamp", &[Any, Text], Gives::Instant, |a, to| to_timestamp(a, to, false)).at_least(1).looking(form_to_read),
    ),
    own(
        &["to_timestamp_ntz"],
        Own::new("to_timestamp_ntz", &[Any, Text], Gives::Local, |a, to| to_timestamp(a, to, false)).at_least(1).looking(form_to_read),
    ),
    own(
        &["try_to_timestamp"],
        Own::new("try_to_timestamp", &[Any, Text], Gives::Instant, |a, to| to_timestamp(a, to, true)).at_least(1).looking(form_to_read),
    ),
    own(&["to_date"], Own::new("to_date", &[Any, Text], Gives::Date, |a, _| to_date(a, false)).at_least(1).looking(form_to_read)),
    own(&["try_to_date"], Own::new("try_to_date", &[Any, Text], Gives::Date, |a, _| to_date(a, true)).at_least(1).looking(form_to_read)),
    refused(&["localtimestamp"], "a time without a zone of the moment is not told; say current_timestamp()"),
    refused(&["window_time"], "say window.end, which is the first instant behind the window"),
    refused(
        &["make_interval", "make_dt_interval", "make_ym_interval", "try_make_interval"],
        "say an interval as a literal, such as interval '1' day",
    ),
];

/// The form of `from_unixtime` and `unix_timestamp` where none is said.
const FORM: &str = "yyyy-MM-dd HH:mm:ss";

/// Without a zone where it has none, else an instant.
fn kept(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(_, None) => local_type(),
        _ => instant_type(),
    }
}

fn too_far<T>() -> Result<T> {
    fault("an instant is too far away")
}

fn of_type(found: Vec<Option<i64>>, to: &DataType) -> Result<ArrayRef> {
    column(found.into_iter().collect::<TimestampMicrosecondArray>().with_data_type(to.clone()))
}

fn of_day(arguments: &[ArrayRef], f: impl Fn(i64) -> i64) -> Result<ArrayRef> {
    column::<Int32Array>(one(instants(&arguments[0]), |at| Ok(i32::try_from(f(at.rem_euclid(DAY) / SECOND)).ok()))?)
}

fn counted(arguments: &[ArrayRef], f: impl Fn(i64) -> i64) -> Result<ArrayRef> {
    column::<Int64Array>(one(instants(&arguments[0]), |at| Ok(Some(f(at))))?)
}

/// The start of the unit that an instant is in; none for a word that is no unit.
fn start_of(unit: &str, at: i64) -> Option<i64> {
    let to = |step: i64| Some(at - at.rem_euclid(step));
    match unit {
        "microsecond" => Some(at),
        "millisecond" => to(1000),
        "second" => to(SECOND),
        "minute" => to(60 * SECOND),
        "hour" => to(3600 * SECOND),
        unit => super::dates::start_of_day_unit(split(at).0, unit).map(|day| day * DAY),
    }
}

/// Months, or microseconds, of a unit.
enum Unit {
    Months(i64),
    Micros(i64),
}

impl Unit {
    fn of(word: &str) -> Result<Self> {
        Ok(match word.to_lowercase().as_str() {
            "microsecond" => Self::Micros(1),
            "millisecond" => Self::Micros(1000),
            "second" => Self::Micros(SECOND),
            "minute" => Self::Micros(60 * SECOND),
            "hour" => Self::Micros(3600 * SECOND),
            "day" | "dayofyear" => Self::Micros(DAY),
            "week" => Self::Micros(7 * DAY),
            "month" => Self::Months(1),
            "quarter" => Self::Months(3),
            "year" => Self::Months(12),
            _ => return fault("a unit of time is not known"),
        })
    }
}

/// Whole units from one instant to another.
fn between(unit: &str, start: i64, end: i64) -> Result<i64> {
    Ok(match Unit::of(unit)? {
        Unit::Micros(micros) => end.checked_sub(start).map_or_else(too_far, |span| Ok(span / micros))?,
        Unit::Months(of_unit) => {
            let ((from, from_time), (to, to_time)) = (split(start), split(end));
            let (from, to) = (Civil::of(from), Civil::of(to));
            let mut months = (to.year - from.year) * 12 + i64::from(to.month) - i64::from(from.month);
            let (late, early) = ((to.day, to_time), (from.day, from_time));
            if months > 0 && late < early {
                months -= 1;
            } else if months < 0 && late > early {
                months += 1;
            }
            months / of_unit
        }
    })
}

fn later(unit: &str, count: i64, at: i64) -> Result<i64> {
    let found = match Unit::of(unit)? {
        Unit::Micros(micros) => count.checked_mul(micros).and_then(|micros| at.checked_add(micros)),
        Unit::Months(of_unit) => count.checked_mul(of_unit).and_then(|months| calendar::add_months(at, months)),
    };
    found.map_or_else(too_far, Ok)
}

fn timestamp_seconds(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let instant = |value| {
        Ok(match value {
            Value::Whole(seconds) => seconds.checked_mul(SECOND).map_or_else(too_far, |at| Ok(Value::Instant(at)))?,
            Value::Decimal(digits, scale) => {
                let exact = scale <= 6 || digits % 10_i128.pow(u32::from((scale - 6).unsigned_abs())) == 0;
                let micros = convert::rescaled(digits, i32::from(scale), 6, false).and_then(|micros| i64::try_from(micros).ok());
                match micros.filter(|_| exact) {
                    Some(at) => Value::Instant(at),
                    None => return fault("seconds have more than six digits behind the point, or are too far away"),
                }
            }
            Value::Double(seconds) if seconds.is_finite() => Value::Instant((seconds * SECOND as f64) as i64),
            Value::Float(seconds) if seconds.is_finite() => Value::Instant((f64::from(seconds) * SECOND as f64) as i64),
            _ => Value::Null,
        })
    };
    build(read_all(&arguments[0])?.into_iter().map(instant).collect::<Result<_>>()?, to)
}

/// Instants in forms, in UTC.
fn written(at: Vec<Option<i64>>, forms: Vec<Option<&str>>) -> Result<ArrayRef> {
    let mut last: Option<(&str, Form)> = None;
    let texts = at.into_iter().zip(forms).map(|row| match row {
        (Some(at), Some(pattern)) => {
            let form = form(&mut last, pattern)?;
            form.write(at).map(Some)
        }
        _ => Ok(None),
    });
    column(texts.collect::<Result<StringArray>>()?)
}

fn form<'l, 'p>(last: &'l mut Option<(&'p str, Form)>, pattern: &'p str) -> Result<&'l Form> {
    if last.as_ref().is_none_or(|(known, _)| *known != pattern) {
        *last = Some((pattern, Form::parse(pattern)?));
    }
    match last {
        Some((_, form)) => Ok(form),
        None => fault("the form of a time cannot be read"),
    }
}

/// A time on a clock, and its zone where one is said.
type Shown = (i64, Option<Zone>);

/// Times on a clock that texts say in forms, and their zones.
fn read_in_forms(of: &ArrayRef, forms: &ArrayRef, lenient: bool) -> Result<Vec<Option<Shown>>> {
    let mut last = None;
    let rows = texts(of).iter().zip(texts(forms));
    rows.map(|row| match row {
        (Some(text), Some(pattern)) => {
            let form = form(&mut last, pattern)?;
            form.check_readable()?;
            match form.read(text) {
                Some(found) => Ok(Some(found)),
                None if lenient => Ok(None),
                None => fault("a string is no time of its form"),
            }
        }
        _ => Ok(None),
    })
    .collect()
}

fn utc((local, zone): Shown) -> i64 {
    zone.map_or(local, |zone| zone.instant_of(local))
}

fn unix_timestamp(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let seconds: Vec<Option<i64>> = match (arguments[0].data_type(), arguments.get(1)) {
        (DataType::Utf8, None) => {
            let forms: ArrayRef = std::sync::Arc::new(StringArray::from(vec![FORM; arguments[0].len()]));
            read_in_forms(&arguments[0], &forms, false)?.into_iter().map(|found| found.map(utc)).collect()
        }
        (DataType::Utf8, Some(forms)) => read_in_forms(&arguments[0], forms, false)?.into_iter().map(|found| found.map(utc)).collect(),
        (DataType::Date32 | DataType::Timestamp(..) | DataType::Null, _) => {
            instants(&convert::cast(&arguments[0], &instant_type(), false)?).iter().collect()
        }
        _ => return Err(DataFusionError::Plan("`unix_timestamp` takes a string, a date or a timestamp".to_owned())),
    };
    column(seconds.into_iter().map(|at| at.map(|at| at / SECOND)).collect::<Int64Array>())
}

fn make_timestamp(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let seconds = read_all(&convert::cast(&arguments[5], &DataType::Decimal128(16, 6), false)?)?;
    let parts: Vec<_> = arguments[..5].iter().map(ints).collect();
    let instant = |row: usize| {
        let Value::Decimal(micros, _) = seconds[row] else { return Ok(None) };
        if parts.iter().any(|part| part.is_null(row)) || arguments.get(6).is_some_and(|zone| zone.is_null(row)) {
            return Ok(None);
        }
        let [year, month, day, hour, minute] = [0, 1, 2, 3, 4].map(|part: usize| i64::from(parts[part].value(row)));
        let small = |number: i64| u32::try_from(number).unwrap_or(0);
        let micros = i64::try_from(micros).unwrap_or(-1);
        let civil = Civil::new(year, small(month), small(day));
        let whole = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60 * SECOND).contains(&micros);
        let Some(civil) = civil.filter(|_| whole) else { return fault("the parts of `make_timestamp` are no time") };
        let Some(local) = calendar::micros(civil.days(), (hour * 60 + minute) * 60 * SECOND + micros) else { return too_far() };
        match arguments.get(6) {
            Some(zones) => zone(texts(zones).value(row)).map(|zone| Some(zone.instant_of(local))),
            None => Ok(Some(local)),
        }
    };
    of_type((0..arguments[0].len()).map(instant).collect::<Result<_>>()?, to)
}

fn zone(text: &str) -> Result<Zone> {
    Zone::parse(text).map_or_else(|| fault("a time zone is not known"), Ok)
}

fn moved(arguments: &[ArrayRef], f: impl Fn(i64, Zone) -> i64) -> Result<ArrayRef> {
    of_type(two(instants(&arguments[0]), texts(&arguments[1]), |at, name: &str| Ok(Some(f(at, zone(name)?))))?, &instant_type())
}

fn convert_timezone(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let utc: ArrayRef = std::sync::Arc::new(StringArray::from(vec!["UTC"; arguments[0].len()]));
    let (from, into, at) = match arguments {
        [into, at] => (utc, into.clone(), at),
        [from, into, at, ..] => (from.clone(), convert::cast(into, &DataType::Utf8, false)?, at),
        _ => return fault("`convert_timezone` takes two or three arguments"),
    };
    let at = convert::cast(at, &local_type(), false)?;
    let shown = three(texts(&from), texts(&into), instants(&at), |from: &str, into: &str, local| {
        let at = zone(from)?.instant_of(local);
        Ok(Some(at + zone(into)?.offset_at(at) * SECOND))
    })?;
    of_type(shown, to)
}

fn to_timestamp(arguments: &[ArrayRef], to: &DataType, lenient: bool) -> Result<ArrayRef> {
    match (arguments[0].data_type(), arguments.get(1)) {
        (DataType::Utf8, Some(forms)) => {
            let found = read_in_forms(&arguments[0], forms, lenient)?.into_iter();
            of_type(found.map(|found| found.map(|found| if *to == local_type() { found.0 } else { utc(found) })).collect(), to)
        }
        _ => convert::cast(&arguments[0], to, lenient),
    }
}

fn to_date(arguments: &[ArrayRef], lenient: bool) -> Result<ArrayRef> {
    match (arguments[0].data_type(), arguments.get(1)) {
        (DataType::Utf8, Some(forms)) => {
            let found = read_in_forms(&arguments[0], forms, lenient)?.into_iter();
            column(found.map(|found| found.and_then(|found| i32::try_from(split(utc(found)).0).ok())).collect::<Date32Array>())
        }
        _ => convert::cast(&arguments[0], &DataType::Date32, lenient),
    }
}
