//! Days: the lookup's rows, and the age of a person on one.

use chrono::{Datelike as _, NaiveDate};
use serde::Serialize;

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// A row of the lookup, all of it text as the file has it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LookupDay {
    pub date: String,
    pub week: String,
    pub year: String,
    pub month: String,
    pub dayofweek: String,
    pub dayofmonth: String,
    pub dayofyear: String,
    pub week_part: String,
}

impl LookupDay {
    pub(super) fn of(day: NaiveDate) -> Self {
        Self {
            date: day.to_string(),
            week: week(day).to_string(),
            year: day.year().to_string(),
            month: day.month().to_string(),
            dayofweek: day.weekday().number_from_sunday().to_string(),
            dayofmonth: day.day().to_string(),
            dayofyear: day.ordinal().to_string(),
            week_part: week_part(day),
        }
    }
}

/// The week of the year, counted from 1 January on.
pub(super) fn week(day: NaiveDate) -> u32 {
    day.ordinal0() / 7 + 1
}

/// `YYYY-WW`.
pub(super) fn week_part(day: NaiveDate) -> String {
    format!("{}-{:02}", day.year(), week(day))
}

/// The day, in UTC, of seconds since 1970.
pub(super) fn day_of(seconds: i64) -> NaiveDate {
    NaiveDate::from_epoch_days(i32::try_from(seconds.div_euclid(DAY)).unwrap_or(i32::MAX)).unwrap_or(NaiveDate::MAX)
}

/// The age group of someone born on a day, on the day `on`: whole years as months between the days divided by 12, where the last days of
/// two months are whole months apart.
pub fn age_group(dob: NaiveDate, on: NaiveDate) -> &'static str {
    let is_last = |day: NaiveDate| day.succ_opt().is_none_or(|next| next.month() != day.month());
    let month = |day: NaiveDate| i64::from(day.year()) * 12 + i64::from(day.month0());
    let begun = on.day() < dob.day() && !(is_last(on) && is_last(dob));
    match (month(on) - month(dob) - i64::from(begun)).div_euclid(12) {
        ..18 => "under 18",
        18..25 => "18-25",
        25..35 => "25-35",
        35..45 => "35-45",
        45..55 => "45-55",
        55..65 => "55-65",
        65..75 => "65-75",
        75..85 => "75-85",
        85..95 => "85-95",
        95.. => "95+",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn weeks_are_counted_from_1_january() {
        for (date, part) in [("2023-01-01", "2023-01"), ("2023-01-07", "2023-01"), ("2023-01-08", "2023-02"), ("2023-12-31", "2023-53")] {
            assert_eq!(week_part(day(date)), part);
        }
        assert_eq!(LookupDay::of(day("2023-01-01")).dayofweek, "1");
    }

    #[test]
    fn a_birthday_makes_a_person_older_and_the_last_days_of_months_are_one_another() {
        for (dob, on, group) in [
            ("2005-06-15", "2023-06-14", "under 18"),
            ("2005-06-15", "2023-06-15", "18-25"),
            ("2000-02-29", "2025-02-28", "25-35"),
            ("2000-02-28", "2025-02-27", "18-25"),
            ("1928-01-31", "2023-01-30", "85-95"),
            ("1928-01-31", "2023-01-31", "95+"),
        ] {
            assert_eq!(age_group(day(dob), day(on)), group, "{dob} on {on}");
        }
    }
}
