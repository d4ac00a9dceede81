//! Lengths of time as tables say them: `interval 7 days`, `168 hours`, `1 week`, or several together.

use chrono::{DateTime, TimeDelta, Utc};

/// Seconds; none where it is no length of time. Months and years have none.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let lower = text.trim().to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let words = if words.first() == Some(&"interval") { &words[1..] } else { &words[..] };
    if words.is_empty() || words.len() % 2 != 0 {
        return None;
    }
    let part = |pair: &[&str]| {
        let number: u64 = pair[0].parse().ok()?;
        let unit = match pair[1].strip_suffix('s').unwrap_or(pair[1]) {
            "week" => 604_800,
            "day" => 86_400,
            "hour" => 3_600,
            "minute" => 60,
            "second" => 1,
            "millisecond" => return Some(number / 1000),
            "microsecond" => return Some(number / 1_000_000),
            _ => return None,
        };
        number.checked_mul(unit)
    };
    words.chunks(2).map(part).try_fold(0_u64, |sum, part| sum.checked_add(part?))
}

/// So many seconds before an instant; the earliest there is where there is none.
pub(crate) fn before(instant: DateTime<Utc>, seconds: u64) -> DateTime<Utc> {
    let delta = i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds);
    delta.and_then(|delta| instant.checked_sub_signed(delta)).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_tables_say_them() {
        for (text, expected) in [
            ("interval 7 days", Some(604_800)),
            ("INTERVAL 1 week", Some(604_800)),
            ("168 hours", Some(604_800)),
            ("interval 1 day 12 hours", Some(129_600)),
            ("interval 0 seconds", Some(0)),
            ("interval 1 month", None),
            ("7", None),
            ("", None),
            ("interval", None),
            ("-1 day", None),
            ("99999999999999999999 days", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        assert_eq!(before(DateTime::UNIX_EPOCH, u64::MAX), DateTime::<Utc>::MIN_UTC);
    }
}
