//! Days: their parts, and others counted from them.

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Float64Array, Int32Array, StringArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::{Any, Boolean, Date, Instant, Int, Text};
use super::own::{Arguments, Gives, Own, column, days, fault, instants, ints, one, or_literal, texts, three, two};
use super::{Entry, of_the_moment, own};
use crate::calendar::{self, Civil, DAY, SECOND, split, weekday};
use crate::convert;

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    of_the_moment(&["current_date", "curdate"], "current_date", 0, 0),
    own(&["year"], Own::new("year", &[Date], Gives::Int, |a, _| part(a, |day| Civil::of(day).year))),
    own(&["quarter"], Own::new("quarter", &[Date], Gives::Int, |a, _| part(a, |day| i64::from(Civil::of(day).quarter())))),
    own(&["month"], Own::new("month", &[Date], Gives::Int, |a, _| part(a, |day| i64::from(Civil::of(day).month)))),
    own(&["day", "dayofmonth"], Own::new("day", &[Date], Gives::Int, |a, _| part(a, |day| i64::from(Civil::of(day).day)))),
    own(&["dayofweek"], Own::new("dayofweek", &[Date], Gives::Int, |a, _| part(a, |day| (weekday(day) + 1) % 7 + 1))),
    own(&["weekday"], Own::new("weekday", &[Date], Gives::Int, |a, _| part(a, weekday))),
    own(&["dayofyear"], Own::new("dayofyear", &[Date], Gives::Int, |a, _| part(a, |day| Civil::of(day).day_of_year()))),
    own(&["weekofyear"], Own::new("weekofyear", &[Date], Gives::Int, |a, _| part(a, |day| calendar::iso_week(day).1))),
    own(
        &["dayname"],
        Own::new("dayname", &[Date], Gives::Text, |a, _| {
            column::<StringArray>(one(days(&a[0]), |day| Ok(calendar::DAYS.get(weekday(day) as usize).map(|name| &name[..3])))?)
        }),
    ),
    own(
        &["monthname"],
        Own::new("monthname", &[Date], Gives::Text, |a, _| {
            column::<StringArray>(one(days(&a[0]), |day| {
                Ok(calendar::MONTHS.get(Civil::of(day).month as usize - 1).map(|name| &name[..3]))
            })?)
        }),
    ),
    own(
        &["last_day"],
        Own::new("last_day", &[Date], Gives::Date, |a, _| {
            other_day(one(days(&a[0]), |day| {
                let civil = Civil::of(day);
                Ok(Some(Civil { day: calendar::length_of_month(civil.year, civil.month), ..civil }.days()))
            })?)
        }),
    ),
    own(
        &["next_day"],
        Own::new("next_day", &[Date, Text], Gives::Date, |a, _| {
            other_day(two(days(&a[0]), texts(&a[1]), |day, name: &str| match day_of_week(name) {
                Some(wanted) => Ok(Some(day + 1 + (wanted - weekday(day) - 1).rem_euclid(7))),
                None => fault("the name of a day of the week is not known"),
            })?)
        }),
    ),
    own(&["date_add", "dateadd"], Own::new("date_add", &[Date, Any], Gives::Date, |a, _| added(a, 1))),
    own(&["date_sub"], Own::new("date_sub", &[Date, Any], Gives::Date, |a, _| added(a, -1))),
    own(
        &["datediff", "date_diff"],
        Own::new("datediff", &[Date, Date], Gives::Int, |a, _| {
            column::<Int32Array>(two(days(&a[0]), days(&a[1]), |end, start| Ok(i32::try_from(end - start).ok()))?)
        }),
    ),
    own(
        &["add_months"],
        Own::new("add_months", &[Date, Int], Gives::Date, |a, _| {
            other_day(two(days(&a[0]), ints(&a[1]), |day, months| Ok(Some(Civil::of(day).add_months(i64::from(months)).days())))?)
        }),
    ),
    own(
        &["months_between"],
        Own::new("months_between", &[Instant, Instant, Boolean], Gives::Double, |a, _| {
            let rounds = or_literal(a.get(2).map(|column| column.as_boolean()), true, a[0].len());
            column::<Float64Array>(three(instants(&a[0]), instants(&a[1]), rounds, |later, earlier, rounds| {
                Ok(Some(months_between(later, earlier, rounds)))
            })?)
        })
        .at_least(2),
    ),
    own(
        &["trunc"],
        Own::new("trunc", &[Date, Text], Gives::Date, |a, _| {
            other_day(two(days(&a[0]), texts(&a[1]), |day, unit: &str| {
                Ok(match unit.to_lowercase().as_str() {
                    "day" | "dd" => None,
                    unit => start_of_day_unit(day, unit),
                })
            })?)
        }),
    ),
    own(
        &["make_date"],
        Own::new("make_date", &[Int, Int, Int], Gives::Date, |a, _| {
            other_day(three(ints(&a[0]), ints(&a[1]), ints(&a[2]), |year, month, day| {
                let there = |number: i32| u32::try_from(number).unwrap_or(0);
                match Civil::new(i64::from(year), there(month), there(day)) {
                    Some(civil) => Ok(Some(civil.days())),
                    None => fault("a year, month and day are no date"),
                }
            })?)
        }),
    ),
    own(&["unix_date"], Own::new("unix_date", &[Date], Gives::Int, |a, _| part(a, |day| day))),
    own(
        &["date_from_unix_date"],
        Own::new("date_from_unix_date", &[Int], Gives::Date, |a, _| column::<Date32Array>(one(ints(&a[0]), |day| Ok(Some(day)))?)),
    ),
    own(&["date_part", "datepart"], Own::new("date_part", &[Text, Any], Gives::By(part_type), date_part)),
];

fn part(arguments: &[ArrayRef], f: impl Fn(i64) -> i64) -> Result<ArrayRef> {
    column::<Int32Array>(one(days(&arguments[0]), |day| Ok(i32::try_from(f(day)).ok()))?)
}

/// Days that are far away are an error.
fn other_day(found: Vec<Option<i64>>) -> Result<ArrayRef> {
    let narrow = |day: Option<i64>| match day {
        Some(day) => i32::try_from(day).map(Some).map_err(|_| DataFusionError::Execution("a date is too far away".to_owned())),
        None => Ok(None),
    };
    column(found.into_iter().map(narrow).collect::<Result<Date32Array>>()?)
}

/// `date_add` of whole days: of a small whole number, or of a text that is one.
fn added(arguments: &[ArrayRef], sign: i64) -> Result<ArrayRef> {
    let count = arguments[1].data_type();
    if !(count.is_integer() || count.is_null() || *count == DataType::Utf8) {
        return Err(DataFusionError::Plan("`date_add` and `date_sub` take a whole number of days".to_owned()));
    }
    let counts = convert::cast(&arguments[1], &DataType::Int32, false)?;
    other_day(two(days(&arguments[0]), ints(&counts), |day, count| Ok(Some(day + sign * i64::from(count))))?)
}

/// Monday is 0.
fn day_of_week(name: &str) -> Option<i64> {
    let name = name.to_lowercase();
    let is = |day: &str| {
        let day = day.to_lowercase();
        name == day || name == day[..3] || name == day[..2]
    };
    calendar::DAYS.iter().position(|day| is(day)).and_then(|day| i64::try_from(day).ok())
}

fn months_between(later: i64, earlier: i64, rounds: bool) -> f64 {
    let ((days_later, time_later), (days_earlier, time_earlier)) = (split(later), split(earlier));
    let (a, b) = (Civil::of(days_later), Civil::of(days_earlier));
    let months = ((a.year - b.year) * 12 + i64::from(a.month) - i64::from(b.month)) as f64;
    if a.day == b.day || (a.is_last() && b.is_last()) {
        return months;
    }
    let seconds = (i64::from(a.day) - i64::from(b.day)) * 86_400 + time_later / SECOND - time_earlier / SECOND;
    let all = months + seconds as f64 / (31.0 * 86_400.0);
    if rounds { (all * 1e8).round() / 1e8 } else { all }
}

/// The first day of the year, quarter, month or week that a day is in.
pub(super) fn start_of_day_unit(day: i64, unit: &str) -> Option<i64> {
    let civil = Civil::of(day);
    Some(match unit {
        "year" | "yyyy" | "yy" => Civil { month: 1, day: 1, ..civil }.days(),
        "quarter" => Civil { month: (civil.quarter() - 1) * 3 + 1, day: 1, ..civil }.days(),
        "month" | "mm" | "mon" => Civil { day: 1, ..civil }.days(),
        "week" => day - weekday(day),
        "day" | "dd" => day,
        _ => return None,
    })
}

/// What a word stands for in `extract` and `date_part`.
pub(crate) fn field(word: &str) -> Option<&'static str> {
    Some(match word.to_lowercase().as_str() {
        "year" | "y" | "years" | "yr" | "yrs" => "year",
        "yearofweek" => "yearofweek",
        "quarter" | "qtr" => "quarter",
        "month" | "mon" | "mons" | "months" => "month",
        "week" | "w" | "weeks" => "week",
        "day" | "d" | "days" => "day",
        "dayofweek" | "dow" => "dayofweek",
        "dayofweek_iso" | "dow_iso" => "dayofweek_iso",
        "doy" => "doy",
        "hour" | "h" | "hours" | "hr" | "hrs" => "hour",
        "minute" | "m" | "min" | "mins" | "minutes" => "minute",
        "second" | "s" | "sec" | "seconds" | "secs" => "second",
        _ => return None,
    })
}

fn part_type(arguments: &Arguments<'_>) -> Result<DataType> {
    match arguments.text(0).map(field) {
        Some(Some("second")) => Ok(DataType::Decimal128(8, 6)),
        Some(Some(_)) => Ok(DataType::Int32),
        Some(None) => Err(DataFusionError::Plan("`date_part` does not know its field".to_owned())),
        None => Err(DataFusionError::Plan("the field of `date_part` must be written in quotes".to_owned())),
    }
}

fn date_part(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let fields = texts(&arguments[0]);
    let field = fields.iter().flatten().next().and_then(field).unwrap_or_default();
    let day = |f: fn(i64) -> i64| part(&[convert::cast(&arguments[1], &DataType::Date32, false)?], f);
    let time = |f: fn(i64) -> i64| -> Result<ArrayRef> {
        let at = convert::cast(&arguments[1], &crate::value::instant_type(), false)?;
        column::<Int32Array>(one(instants(&at), |at| Ok(i32::try_from(f(at.rem_euclid(DAY))).ok()))?)
    };
    match field {
        "year" => day(|day| Civil::of(day).year),
        "yearofweek" => day(|day| calendar::iso_week(day).0),
        "quarter" => day(|day| i64::from(Civil::of(day).quarter())),
        "month" => day(|day| i64::from(Civil::of(day).month)),
        "week" => day(|day| calendar::iso_week(day).1),
        "dayofweek" => day(|day| (weekday(day) + 1) % 7 + 1),
        "dayofweek_iso" => day(|day| weekday(day) + 1),
        "doy" => day(|day| Civil::of(day).day_of_year()),
        "hour" => time(|time| time / SECOND / 3600),
        "minute" => time(|time| time / SECOND / 60 % 60),
        "second" => {
            let at = convert::cast(&arguments[1], &crate::value::instant_type(), false)?;
            let seconds: Decimal128Array = one(instants(&at), |at| Ok(Some(i128::from(at.rem_euclid(60 * SECOND)))))?;
            column(seconds.with_data_type(to.clone()))
        }
        _ => day(|day| i64::from(Civil::of(day).day)),
    }
}
