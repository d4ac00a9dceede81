//! Lengths of time: `15`, `500ms`, `15 seconds`, `1 minute 30 seconds`.

use std::time::Duration;

const UNITS: [(&[&str], u64); 5] = [
    (&["ms", "millisecond", "milliseconds"], 1),
    (&["s", "sec", "second", "seconds"], 1_000),
    (&["m", "min", "minute", "minutes"], 60_000),
    (&["h", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
];

/// A bare number is seconds; otherwise one or more pairs of whole number and unit, which add up.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim().to_lowercase();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let mut rest = text.as_str();
    let mut millis = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = &rest[..letters];
        let (_, millis_each) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
        millis = millis.checked_add(count.checked_mul(*millis_each)?)?;
        rest = rest[letters..].trim_start();
    }
    (!text.is_empty()).then_some(Duration::from_millis(millis))
}

/// The same length in the largest unit that keeps it whole.
pub(super) fn show(duration: Duration) -> String {
    let millis = duration.as_millis();
    let names = ["ms", "s", "m", "h", "d"];
    let fits = |each: u64| millis > 0 && millis.is_multiple_of(u128::from(each));
    match UNITS.iter().zip(names).rev().find(|((_, each), _)| fits(*each)) {
        Some(((_, each), name)) => format!("{}{name}", millis / u128::from(*each)),
        None => "0s".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds() {
        assert_eq!(parse("15"), Some(Duration::from_secs(15)));
        assert_eq!(parse(" 0 "), Some(Duration::ZERO));
    }

    #[test]
    fn units_may_be_written_out_and_added_up() {
        for (text, millis) in [
            ("15 seconds", 15_000),
            ("1 second", 1_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1 Minute 30 Seconds", 90_000),
            ("1h30m", 5_400_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "soon", "15 parsecs", "-3", "1.5", "seconds", "3 4", "99999999999999999999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_shown_form_reads_back() {
        for millis in [0, 1, 999, 1_000, 15_000, 90_000, 120_000, 86_400_000, 90_061_001] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(&show(duration)), Some(duration));
        }
    }
}
