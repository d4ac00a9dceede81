//! Days and instants as texts, in the forms that a cast reads and writes.

use std::str::FromStr;

use chrono::{Offset, TimeZone};
use chrono_tz::Tz;
use tributary_lake::arrow::datatypes::DataType;

use crate::calendar::{Civil, DAY, SECOND, micros, split};

/// `2024-02-29`.
pub(crate) fn day_as_text(days: i64) -> String {
    let Civil { year, month, day } = Civil::of(days);
    let year = if year > 9999 {
        format!("+{year}")
    } else if year < 0 {
        format!("-{:04}", -year)
    } else {
        format!("{year:04}")
    };
    format!("{year}-{month:02}-{day:02}")
}

/// `2024-02-29 13:14:15.5`, in UTC.
pub(crate) fn instant_as_text(instant: i64) -> String {
    let (days, time) = split(instant);
    let (seconds, micros) = (time / SECOND, time % SECOND);
    let mut text = format!("{} {:02}:{:02}:{:02}", day_as_text(days), seconds / 3600, seconds / 60 % 60, seconds % 60);
    if micros > 0 {
        text.push_str(format!(".{micros:06}").trim_end_matches('0'));
    }
    text
}

/// A zone: fixed, in seconds east of UTC, or by its rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Zone {
    Fixed(i64),
    Named(Tz),
}

impl Zone {
    /// `Europe/Berlin`, `Z`, `UTC`, `GMT+1`, `+05:30`, `-8`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text {
            "Z" | "UTC" | "GMT" | "UT" => return Some(Self::Fixed(0)),
            _ => {}
        }
        let offset = ["UTC", "GMT", "UT"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
        if let Some(sign) = offset.chars().next().filter(|sign| matches!(sign, '+' | '-')) {
            let seconds = offset_seconds(&offset[1..])?;
            return Some(Self::Fixed(if sign == '-' { -seconds } else { seconds }));
        }
        Tz::from_str(text).ok().map(Self::Named)
    }

    /// Seconds east of UTC at an instant in microseconds.
    pub fn offset_at(self, instant: i64) -> i64 {
        match self {
            Self::Fixed(seconds) => seconds,
            Self::Named(zone) => match chrono::DateTime::from_timestamp(instant.div_euclid(SECOND), 0) {
                Some(instant) => i64::from(zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc()),
                None => 0,
            },
        }
    }

    /// The instant at which clocks of the zone show a time: the earlier of two, and in a gap as if the clock had not been moved.
    pub fn instant_of(self, local: i64) -> i64 {
        let before = self.offset_at(local - DAY);
        let after = self.offset_at(local + DAY);
        let early = local - before * SECOND;
        if self.offset_at(early) == before {
            return early;
        }
        let late = local - after * SECOND;
        if self.offset_at(late) == after { late } else { early }
    }
}

/// `8`, `08`, `08:30`, `0830`, `083015`, `08:30:15`: at most 18 hours.
fn offset_seconds(text: &str) -> Option<i64> {
    let digits = |text: &str| {
        (text.len() <= 2 && !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())).then(|| text.parse::<i64>().ok()).flatten()
    };
    let parts: Vec<&str> = if text.contains(':') {
        text.split(':').collect()
    } else if matches!(text.len(), 4 | 6) && text.is_ascii() {
        (0..text.len() / 2).map(|at| &text[at * 2..at * 2 + 2]).collect()
    } else {
        vec![text]
    };
    let hours = digits(parts.first()?)?;
    let minutes = parts.get(1).map_or(Some(0), |text| digits(text))?;
    let seconds = parts.get(2).map_or(Some(0), |text| digits(text))?;
    let all = hours * 3600 + minutes * 60 + seconds;
    (parts.len() <= 3 && minutes < 60 && seconds < 60 && all <= 18 * 3600).then_some(all)
}

/// Blanks and signs below them, which a cast takes off both ends.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || c == '\u{7f}')
}

/// A part of a day or a time: digits, at most so many.
fn part(text: &mut &str, least: usize, most: usize) -> Option<i64> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    if length < least || length > most {
        return None;
    }
    let (digits, rest) = text.split_at(length);
    *text = rest;
    digits.parse().ok()
}

fn take(text: &mut &str, sign: char) -> bool {
    match text.strip_prefix(sign) {
        Some(rest) => {
            *text = rest;
            true
        }
        None => false,
    }
}

/// `[+-]yyyy[-m[m][-d[d]]]`, and what follows it.
fn day_before(text: &str) -> Option<(i64, &str)> {
    let mut rest = text;
    let negative = take(&mut rest, '-');
    if !negative {
        take(&mut rest, '+');
    }
    let year = part(&mut rest, 4, 7)?;
    let year = if negative { -year } else { year };
    let (mut month, mut day) = (1, 1);
    if take(&mut rest, '-') {
        month = part(&mut rest, 1, 2)?;
        if take(&mut rest, '-') {
            day = part(&mut rest, 1, 2)?;
        } else if !rest.is_empty() {
            return None;
        }
    } else if !rest.is_empty() {
        return None;
    }
    let civil = Civil::new(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?;
    Some((civil.days(), rest))
}

/// Whether what a text says depends on when it is asked: `now`, `today`, or a time without a day where a timestamp is wanted.
pub(crate) fn is_of_the_moment(text: &str, to: &DataType) -> bool {
    let text = trimmed(text).to_lowercase();
    let word = text.split_whitespace().next().unwrap_or_default();
    let time = text.strip_prefix('t').unwrap_or(&text);
    let digits = time.bytes().take_while(u8::is_ascii_digit).count();
    let is_time = (1..=2).contains(&digits) && time[digits..].starts_with(':');
    matches!(word, "now" | "today" | "tomorrow" | "yesterday") || (is_time && !matches!(to, DataType::Date32))
}

/// The day that a text says, as a cast reads it: what follows a `T` or a blank does not matter.
pub(crate) fn day(text: &str) -> Option<i32> {
    if trimmed(text).eq_ignore_ascii_case("epoch") {
        return Some(0);
    }
    let (days, rest) = day_before(trimmed(text))?;
    if rest.is_empty() || rest.starts_with([' ', 'T']) { i32::try_from(days).ok() } else { None }
}

/// The time on a clock that a text says, in microseconds since 1970-01-01, and its zone.
pub(crate) fn local_and_zone(text: &str) -> Option<(i64, Option<Zone>)> {
    if trimmed(text).eq_ignore_ascii_case("epoch") {
        return Some((0, None));
    }
    let (days, mut rest) = day_before(trimmed(text))?;
    if rest.is_empty() {
        return Some((micros(days, 0)?, None));
    }
    if !take(&mut rest, 'T') && !take(&mut rest, ' ') {
        return None;
    }
    let (mut hour, mut minute, mut second, mut fraction) = (0, 0, 0, 0);
    if !rest.is_empty() {
        hour = part(&mut rest, 1, 2)?;
        if take(&mut rest, ':') {
            minute = part(&mut rest, 1, 2)?;
            if take(&mut rest, ':') {
                second = part(&mut rest, 1, 2)?;
                if take(&mut rest, '.') {
                    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
                    let digits: String = rest[..length].chars().chain("000000".chars()).take(6).collect();
                    fraction = digits.parse().ok()?;
                    rest = &rest[length..];
                }
            }
        }
    }
    let zone = match trimmed(rest) {
        "" => None,
        zone => Some(Zone::parse(zone)?),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some((micros(days, ((hour * 60 + minute) * 60 + second) * SECOND + fraction)?, zone))
}

/// The instant that a text says, as a cast reads it; without a zone it is in UTC.
pub(crate) fn instant(text: &str) -> Option<i64> {
    let (local, zone) = local_and_zone(text)?;
    Some(zone.map_or(local, |zone| zone.instant_of(local)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_back() {
        for instant in [0, -1, 1_709_212_455_123_000, -62_135_596_800_000_000, 253_402_300_799_999_999] {
            assert_eq!(super::instant(&instant_as_text(instant)), Some(instant));
        }
        assert_eq!(instant_as_text(1_709_212_455_120_000), "2024-02-29 13:14:15.12");
    }

    #[test]
    fn clocks_of_a_zone_show_an_instant() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let local = instant("2024-07-01 12:00:00").unwrap();
        assert_eq!(instant_as_text(berlin.instant_of(local)), "2024-07-01 10:00:00");
        assert_eq!(Zone::parse("-03:30"), Some(Zone::Fixed(-12_600)));
        assert_eq!(Zone::parse("Nowhere/City"), None);
    }
}
