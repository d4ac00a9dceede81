//! Dates and times as numbers, from text and to text. Proleptic Gregorian calendar, no zone but the one written.

use std::fmt::Write;

use crate::words::{above_nine, pairs};

/// Microseconds of a second.
pub(crate) const SECOND: i64 = 1_000_000;
/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// What a text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsed<T> {
    /// A value; `cut` = it had digits below a microsecond.
    Value {
        /// The number.
        value: T,
        /// Whether something below a microsecond was cut towards the past.
        cut: bool,
    },
    /// Month or day zero, which stands for "never set" in MySQL and is no date.
    ZeroDate,
    /// `infinity` or `-infinity`.
    Infinite,
    /// Of the right form, but beyond what 64 bits of microseconds hold.
    TooFar,
    /// Not of this form.
    Malformed,
}

/// A moment and whether its text named an offset from UTC (`Z` included).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// µs since 1970-01-01T00:00:00, the offset already taken off.
    pub micros: i64,
    /// The offset in seconds, `None` when the text has none.
    pub offset: Option<i32>,
}

/// Days since 1970-01-01 of a date; the month and day must be in range.
pub(crate) const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads a date, a blank or `T`, and a time with or without offset; a date alone is its midnight.
#[inline]
pub(crate) fn parse_moment(text: &[u8]) -> Parsed<Moment> {
    match parse_usual(text) {
        Some(micros) => Parsed::Value { value: Moment { micros, offset: Some(0) }, cut: false },
        None => parse_any_moment(text),
    }
}

/// `yyyy-mm-ddThh:mm:ssZ` or the same with six digits of a second, as connectors write nearly all of them.
#[inline]
pub(crate) fn parse_usual(text: &[u8]) -> Option<i64> {
    let mut last = LastDate::default();
    match text.len() {
        20 => last.parse_seconds(text.first_chunk()?),
        27 => last.parse_micros(text.first_chunk()?),
        _ => None,
    }
}

/// Reads moments of the usual form. The date is mostly that of the moment before.
#[derive(Debug)]
pub(crate) struct LastDate {
    text: [u8; 10],
    /// Its midnight, µs since the epoch.
    micros: i64,
}

impl Default for LastDate {
    fn default() -> Self {
        Self { text: *b"1970-01-01", micros: 0 }
    }
}

impl LastDate {
    /// `yyyy-mm-ddThh:mm:ssZ`.
    #[inline]
    pub(crate) fn parse_seconds(&mut self, text: &[u8; 20]) -> Option<i64> {
        if text[19] != b'Z' {
            return None;
        }
        self.parse_head(text.first_chunk()?)
    }

    /// `yyyy-mm-ddThh:mm:ss.ffffffZ`.
    #[inline]
    pub(crate) fn parse_micros(&mut self, text: &[u8; 27]) -> Option<i64> {
        // The last eight: a digit, six of the fraction and the Z; the digit belongs to the head and is looked at there.
        let tail = word(text, 19) ^ u64::from_le_bytes(*b".000000Z");
        if tail & 0xff00_0000_0000_00ff != 0 || above_nine(tail) != 0 {
            return None;
        }
        let tail = pairs(tail);
        let micros = pair(tail, 1) * 10_000 + pair(tail, 3) * 100 + pair(tail, 5);
        Some(self.parse_head(text.first_chunk()?)? + i64::from(micros))
    }

    /// `yyyy-mm-ddThh:mm:ss`.
    #[inline(always)]
    fn parse_head(&mut self, text: &[u8; 19]) -> Option<i64> {
        let date = text.first_chunk()?;
        if *date != self.text {
            *self = Self { text: *date, micros: parse_day(date)? * DAY };
        }
        let [_, _, _, _, _, _, _, _, _, _, b'T', ..] = text else { return None };
        let clock = word(text, 11) ^ u64::from_le_bytes(*b"00:00:00");
        if clock & 0x0000_ff00_00ff_0000 != 0 || above_nine(clock) != 0 {
            return None;
        }
        let clock = pairs(clock);
        let (hour, minute, second) = (pair(clock, 0), pair(clock, 3), pair(clock, 6));
        let in_range = hour < 24 && minute < 60 && second < 60;
        in_range.then(|| self.micros + i64::from(hour * 3600 + minute * 60 + second) * SECOND)
    }
}

/// Days since 1970-01-01 of `yyyy-mm-dd`: every digit becomes its value and every mark zero, eight characters at a time.
#[inline]
fn parse_day(text: &[u8; 10]) -> Option<i64> {
    let head = word(text, 0) ^ u64::from_le_bytes(*b"0000-00-");
    let tail = word(text, 2) ^ u64::from_le_bytes(*b"00-00-00");
    if head & 0xff00_00ff_0000_0000 != 0 || above_nine(head) != 0 || above_nine(tail) != 0 {
        return None;
    }
    let (head, tail) = (pairs(head), pairs(tail));
    let (year, month, day) = (pair(head, 0) * 100 + pair(head, 2), pair(head, 5), pair(tail, 6));
    let in_range = (1..=12).contains(&month) && day >= 1;
    if !in_range || (day > 28 && i64::from(day) > month_length(i64::from(year), i64::from(month))) {
        return None;
    }
    Some(days(i64::from(year), i64::from(month), i64::from(day)))
}

/// The number of two digits whose first is at a byte of [`pairs`].
#[inline(always)]
fn pair(pairs: u64, at: u32) -> u32 {
    u32::from((pairs >> (8 * at)) as u8)
}

#[inline(always)]
fn word<const LENGTH: usize>(text: &[u8; LENGTH], at: usize) -> u64 {
    text.get(at..).and_then(<[u8]>::first_chunk).map_or(u64::MAX, |word| u64::from_le_bytes(*word))
}

fn parse_any_moment(text: &[u8]) -> Parsed<Moment> {
    let mut reader = Reader { rest: text };
    let date = match reader.date() {
        Parsed::Value { value, .. } => value,
        other => return other.without_value(),
    };
    let (of_day, cut) = if reader.rest.is_empty() {
        (0, false)
    } else {
        if !(reader.byte(b'T') || reader.byte(b' ')) {
            return Parsed::Malformed;
        }
        match reader.time_of_day() {
            Some((micros, cut)) if micros <= DAY => (micros, cut),
            _ => return Parsed::Malformed,
        }
    };
    let Some(offset) = reader.offset() else { return Parsed::Malformed };
    if !reader.rest.is_empty() {
        return Parsed::Malformed;
    }
    let wide = i128::from(date) * i128::from(DAY) + i128::from(of_day) - i128::from(offset.unwrap_or(0)) * i128::from(SECOND);
    let micros = i64::try_from(wide).ok();
    match micros {
        Some(micros) => Parsed::Value { value: Moment { micros, offset }, cut },
        None => Parsed::TooFar,
    }
}

/// Reads a date, with or without `Z`, as days since 1970-01-01.
pub(crate) fn parse_date(text: &[u8]) -> Parsed<i64> {
    let mut reader = Reader { rest: text };
    let date = reader.date();
    if !matches!(date, Parsed::Value { .. }) {
        return date;
    }
    let _ = reader.byte(b'Z');
    if reader.rest.is_empty() { date } else { Parsed::Malformed }
}

/// Reads a time of day, with or without `Z`, as µs since midnight. MySQL's may be negative or longer than a day.
pub(crate) fn parse_time(text: &[u8]) -> Parsed<i64> {
    let mut reader = Reader { rest: text };
    let negative = reader.byte(b'-');
    let Some((micros, cut)) = reader.time_of_day() else { return Parsed::Malformed };
    let _ = reader.byte(b'Z') || reader.literal(b"+00:00");
    if !reader.rest.is_empty() {
        return Parsed::Malformed;
    }
    Parsed::Value { value: if negative { -micros - i64::from(cut) } else { micros }, cut }
}

impl<T> Parsed<T> {
    fn without_value<U>(self) -> Parsed<U> {
        match self {
            Self::ZeroDate => Parsed::ZeroDate,
            Self::Infinite => Parsed::Infinite,
            Self::TooFar => Parsed::TooFar,
            Self::Value { .. } | Self::Malformed => Parsed::Malformed,
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn literal(&mut self, word: &[u8]) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Between `least` and `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let mut value: i64 = 0;
        let mut count = 0;
        while let Some(byte @ b'0'..=b'9') = self.rest.get(count) {
            if count == most {
                return None;
            }
            value = value * 10 + i64::from(byte - b'0');
            count += 1;
        }
        if count < least {
            return None;
        }
        self.rest = &self.rest[count..];
        Some(value)
    }

    fn date(&mut self) -> Parsed<i64> {
        if self.literal(b"infinity") || self.literal(b"-infinity") {
            return if self.rest.is_empty() { Parsed::Infinite } else { Parsed::Malformed };
        }
        let negative = self.byte(b'-');
        if !negative {
            let _ = self.byte(b'+');
        }
        let parts = (|| {
            let year = self.number(4, 9)?;
            let month = self.byte(b'-').then(|| self.number(2, 2))??;
            let day = self.byte(b'-').then(|| self.number(2, 2))??;
            Some((if negative { -year } else { year }, month, day))
        })();
        match parts {
            Some((_, month, day)) if month == 0 && day <= 31 || day == 0 && month <= 12 => Parsed::ZeroDate,
            Some((year, month, day)) if month <= 12 && day <= month_length(year, month) => {
                Parsed::Value { value: days(year, month, day), cut: false }
            }
            _ => Parsed::Malformed,
        }
    }

    /// `hh:mm[:ss[.f…]]` in µs, and whether digits below a microsecond were cut.
    fn time_of_day(&mut self) -> Option<(i64, bool)> {
        let hours = self.number(2, 3)?;
        let minutes = self.byte(b':').then(|| self.number(2, 2))??;
        let seconds = if self.byte(b':') { self.number(2, 2)? } else { 0 };
        if minutes > 59 || seconds > 59 {
            return None;
        }
        let mut micros = (hours * 3600 + minutes * 60 + seconds) * SECOND;
        let mut cut = false;
        if self.byte(b'.') {
            let mut unit = SECOND / 10;
            let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count == 0 {
                return None;
            }
            let (digits, rest) = self.rest.split_at(count);
            for digit in digits {
                cut |= unit == 0 && *digit != b'0';
                micros += i64::from(digit - b'0') * unit;
                unit /= 10;
            }
            self.rest = rest;
        }
        Some((micros, cut))
    }

    /// `Z`, `±hh`, `±hh:mm`, `±hhmm`, with seconds too, or nothing. The outer `None` = malformed.
    #[allow(clippy::option_option)]
    fn offset(&mut self) -> Option<Option<i32>> {
        if self.byte(b'Z') || self.byte(b'z') {
            return Some(Some(0));
        }
        let sign = if self.byte(b'+') {
            1
        } else if self.byte(b'-') {
            -1
        } else {
            return Some(None);
        };
        let mut parts = [0i64; 3];
        for (at, part) in parts.iter_mut().enumerate() {
            if self.rest.is_empty() && at > 0 {
                break;
            }
            if at > 0 {
                let _ = self.byte(b':');
            }
            let (pair, rest) = self.rest.split_at_checked(2)?;
            let mut pair = Reader { rest: pair };
            *part = pair.number(2, 2)?;
            self.rest = rest;
        }
        let [hours, minutes, seconds] = parts;
        if hours > 18 || minutes > 59 || seconds > 59 {
            return None;
        }
        i32::try_from(sign * (hours * 3600 + minutes * 60 + seconds)).ok().map(Some)
    }
}

/// `yyyy-mm-dd`, the year with its sign where it is not of four digits.
pub(crate) fn write_date(days: i64, out: &mut String) {
    let (year, month, day) = civil(days);
    // Writing into a string cannot fail.
    let _ = match year {
        0..=9999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        10_000.. => write!(out, "+{year}-{month:02}-{day:02}"),
        _ => write!(out, "-{:04}-{month:02}-{day:02}", -year),
    };
}

/// `hh:mm:ss[.ffffff]`, with a sign when negative.
pub(crate) fn write_time(micros: i64, out: &mut String) {
    if micros < 0 {
        out.push('-');
    }
    let micros = micros.unsigned_abs();
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        let _ = write!(out, ".{fraction:06}");
    }
}

/// `yyyy-mm-ddThh:mm:ss[.ffffff]`.
pub(crate) fn write_moment(micros: i64, out: &mut String) {
    write_date(micros.div_euclid(DAY), out);
    out.push('T');
    write_time(micros.rem_euclid(DAY), out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moment(text: &str) -> Parsed<Moment> {
        parse_moment(text.as_bytes())
    }

    fn value(micros: i64, offset: Option<i32>) -> Parsed<Moment> {
        Parsed::Value { value: Moment { micros, offset }, cut: false }
    }

    #[test]
    fn moments_are_read_in_the_forms_connectors_write() {
        assert_eq!(moment("1970-01-01T00:00:00Z"), value(0, Some(0)));
        assert_eq!(moment("2026-02-03T17:51:04Z"), value(1_770_141_064_000_000, Some(0)));
        assert_eq!(moment("2026-02-03T17:51:04.5+05:30"), value(1_770_121_264_500_000, Some(19_800)));
        assert_eq!(moment("2026-02-03 17:51:04.123456"), value(1_770_141_064_123_456, None));
        assert_eq!(moment("2026-02-03"), value(1_770_076_800_000_000, None));
        assert_eq!(moment("1969-12-31T23:59:59.999999Z"), value(-1, Some(0)));
        assert_eq!(moment("0000-12-31T00:00:00Z"), value(days(0, 12, 31) * DAY, Some(0)));
        assert_eq!(moment("-0043-03-15T00:00:00Z"), value(days(-43, 3, 15) * DAY, Some(0)));
        assert_eq!(moment("-290308-12-21T19:59:27.6Z"), value(-9_223_372_036_832_400_000, Some(0)));
        assert_eq!(
            moment("2026-02-03T17:51:04.123456789Z"),
            Parsed::Value { value: Moment { micros: 1_770_141_064_123_456, offset: Some(0) }, cut: true }
        );
    }

    #[test]
    fn what_is_no_moment_is_named() {
        for zero in ["0000-00-00 00:00:00", "2024-01-00 10:00:00", "2024-00-10", "0000-00-00"] {
            assert_eq!(moment(zero), Parsed::ZeroDate, "{zero}");
        }
        for infinite in ["infinity", "-infinity"] {
            assert_eq!(moment(infinite), Parsed::Infinite, "{infinite}");
        }
        assert_eq!(moment("+999999999-01-01T00:00:00Z"), Parsed::TooFar);
        for bad in [
            "",
            "x",
            "2026-02-30T00:00:00Z",
            "2026-13-01",
            "2026-02-03T25:00:00Z",
            "2026-02-03T00:60:00Z",
            "2026-02-03T",
            "20260203",
            "2026-02-03T00:00:00+",
            "2026-02-03T00:00:00.Z",
            "infinityx",
            "2026-02-03Tüü:00:00Z",
        ] {
            assert_eq!(moment(bad), Parsed::Malformed, "{bad}");
        }
    }

    #[test]
    fn times_of_day_may_reach_midnight_and_beyond() {
        let time = |text: &str| parse_time(text.as_bytes());
        assert_eq!(time("24:00:00"), Parsed::Value { value: DAY, cut: false });
        assert_eq!(time("23:59:59.999999Z"), Parsed::Value { value: DAY - 1, cut: false });
        assert_eq!(time("-838:59:59"), Parsed::Value { value: -3_020_399 * SECOND, cut: false });
        assert_eq!(time("00:00"), Parsed::Value { value: 0, cut: false });
        for bad in ["", "1:00:00", "00", "00:61", "00:00:00x"] {
            assert_eq!(time(bad), Parsed::Malformed, "{bad}");
        }
    }

    #[test]
    fn a_date_may_end_in_z_and_lie_before_christ() {
        assert_eq!(parse_date(b"2024-02-29Z"), Parsed::Value { value: 19_782, cut: false });
        assert_eq!(parse_date(b"-5877611-06-21Z"), Parsed::Value { value: -2_147_483_648 + 10_956, cut: false });
        assert_eq!(parse_date(b"2023-02-29"), Parsed::Malformed);
    }

    proptest! {
        #[test]
        fn a_day_survives_being_written_and_read(day in -3_000_000i64..3_000_000) {
            let (year, month, date) = civil(day);
            prop_assert_eq!(days(year, month, date), day);
            let mut text = String::new();
            write_date(day, &mut text);
            prop_assert_eq!(parse_date(text.as_bytes()), Parsed::Value { value: day, cut: false });
        }

        #[test]
        fn a_moment_survives_being_written_and_read(micros in -100_000_000_000_000_000i64..200_000_000_000_000_000) {
            let mut text = String::new();
            write_moment(micros, &mut text);
            prop_assert_eq!(parse_moment(text.as_bytes()), value(micros, None));
        }

        #[test]
        fn the_usual_form_is_read_as_every_form_is(text in "[0-2][0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{6})?Z") {
            if let Some(micros) = parse_usual(text.as_bytes()) {
                prop_assert_eq!(parse_any_moment(text.as_bytes()), value(micros, Some(0)));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in prop::collection::vec(prop_oneof![any::<u8>(), b'0'..=b'9', Just(b'-'), Just(b':'), Just(b'.'), Just(b'T'), Just(b'+')], 0..32)) {
            let _ = (parse_moment(&text), parse_date(&text), parse_time(&text));
        }
    }
}
