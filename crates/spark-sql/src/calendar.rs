//! Days and instants in the calendar: the Gregorian one for all times, as the dialect has it.

/// Microseconds of a second and of a day.
pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// The years of which microseconds since 1970 are 64 bits.
pub(crate) const YEARS: std::ops::RangeInclusive<i64> = -290_307..=294_247;

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

impl Civil {
    /// Of days since 1970-01-01.
    pub fn of(days: i64) -> Self {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        // both are small
        Self { year, month: month as u32, day: day as u32 }
    }

    /// A day that there is.
    pub fn new(year: i64, month: u32, day: u32) -> Option<Self> {
        ((1..=12).contains(&month) && day >= 1 && day <= length_of_month(year, month) && YEARS.contains(&year)).then_some(Self {
            year,
            month,
            day,
        })
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month = i64::from(if self.month > 2 { self.month - 3 } else { self.month + 9 });
        let of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
    }

    /// The day so many months later; the last of its month where that is shorter.
    pub fn add_months(self, months: i64) -> Self {
        let all = self.year * 12 + i64::from(self.month) - 1 + months;
        let (year, month) = (all.div_euclid(12), all.rem_euclid(12) as u32 + 1);
        Self { year, month, day: self.day.min(length_of_month(year, month)) }
    }

    /// The place in its year, from 1.
    pub fn day_of_year(self) -> i64 {
        self.days() - Self { month: 1, day: 1, ..self }.days() + 1
    }

    /// 1 to 4.
    pub fn quarter(self) -> u32 {
        (self.month - 1) / 3 + 1
    }

    /// Whether it is the last of its month.
    pub fn is_last(self) -> bool {
        self.day == length_of_month(self.year, self.month)
    }
}

/// 28 to 31.
pub(crate) fn length_of_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Monday is 0.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7)
}

/// The year and the number of the week that a day is in, by ISO 8601.
pub(crate) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - weekday(days) + 3;
    let civil = Civil::of(thursday);
    (civil.year, (civil.day_of_year() - 1) / 7 + 1)
}

/// The day that an instant is in, and the microseconds since its start.
pub(crate) fn split(instant: i64) -> (i64, i64) {
    (instant.div_euclid(DAY), instant.rem_euclid(DAY))
}

/// Days and microseconds as microseconds; none beyond 64 bits.
pub(crate) fn micros(days: i64, time: i64) -> Option<i64> {
    days.checked_mul(DAY)?.checked_add(time)
}

/// The instant so many months later, at the same time of day.
pub(crate) fn add_months(instant: i64, months: i64) -> Option<i64> {
    let (days, time) = split(instant);
    micros(Civil::of(days).add_months(months).days(), time)
}

/// English names.
pub(crate) const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
pub(crate) const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_in_both_directions() {
        for (days, year, month, day) in
            [(0, 1970, 1, 1), (-1, 1969, 12, 31), (19_782, 2024, 2, 29), (-719_162, 1, 1, 1), (2_932_896, 9999, 12, 31)]
        {
            assert_eq!(Civil::of(days), Civil { year, month, day }, "{days}");
            assert_eq!(Civil { year, month, day }.days(), days);
        }
        assert_eq!(Civil::new(2023, 2, 29), None);
        assert_eq!(Civil::new(2024, 1, 31).map(|day| day.add_months(1)), Civil::new(2024, 2, 29));
        assert_eq!(iso_week(18_628), (2020, 53), "the first of January 2021");
        assert_eq!(weekday(0), 3, "a Thursday");
    }

    proptest::proptest! {
        #[test]
        fn every_day_is_itself_again(days in -100_000_000_i64..100_000_000) {
            proptest::prop_assert_eq!(Civil::of(days).days(), days);
        }
    }
}
