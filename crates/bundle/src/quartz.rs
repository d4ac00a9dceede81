//! Quartz expressions and time zones: whether they name times at all.

use std::str::FromStr;

/// One field of an expression.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    words: &'static [&'static str],
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 7] = [
    Field { name: "second", least: 0, most: 59, words: &[] },
    Field { name: "minute", least: 0, most: 59, words: &[] },
    Field { name: "hour", least: 0, most: 23, words: &[] },
    Field { name: "day of month", least: 1, most: 31, words: &[] },
    Field { name: "month", least: 1, most: 12, words: MONTHS },
    Field { name: "day of week", least: 1, most: 7, words: DAYS },
    Field { name: "year", least: 1970, most: 2199, words: &[] },
];

/// What is wrong with a Quartz expression: six or seven fields, exactly one of the two days `?`.
pub(crate) fn check_expression(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    if !(6..=7).contains(&parts.len()) {
        let hint = if parts.len() == 5 { "; the first field is the second" } else { "" };
        return Err(format!("it has {} fields, not six or seven{hint}", parts.len()));
    }
    for (field, part) in FIELDS.iter().zip(&parts) {
        field.check(part)?;
    }
    match (parts[3] == "?", parts[5] == "?") {
        (true, true) => Err("both days are `?`; one of them must say when".to_owned()),
        (false, false) => Err("neither day is `?`; day of month and day of week cannot both say when".to_owned()),
        _ => Ok(()),
    }
}

impl Field {
    fn check(&self, part: &str) -> Result<(), String> {
        if part == "?" {
            return if self.is_day() { Ok(()) } else { Err(format!("the {} cannot be `?`", self.name)) };
        }
        part.split(',').try_for_each(|item| self.check_item(&item.to_uppercase()))
    }

    fn is_day(&self) -> bool {
        matches!(self.name, "day of month" | "day of week")
    }

    fn check_item(&self, item: &str) -> Result<(), String> {
        if let Some((range, step)) = item.split_once('/') {
            if step.parse::<u32>().ok().is_none_or(|step| step == 0 || step > self.most) {
                return Err(format!("`/{step}` is no step of the {}", self.name));
            }
            return if range.is_empty() { Ok(()) } else { self.check_range(range) };
        }
        match self.name {
            "day of month" if self.is_last_day(item) => Ok(()),
            "day of week" if self.is_weekday(item)? => Ok(()),
            _ => self.check_range(item),
        }
    }

    /// `L`, `LW`, `L-3`, `15W`.
    fn is_last_day(&self, item: &str) -> bool {
        let before = item.strip_prefix("L-").map(|days| days.strip_suffix('W').unwrap_or(days));
        matches!(item, "L" | "LW")
            || before.is_some_and(|days| days.parse::<u32>().is_ok_and(|days| days <= 30))
            || item.strip_suffix('W').is_some_and(|day| self.number(day).is_ok())
    }

    /// `L`, `6L`, `FRI#2`.
    fn is_weekday(&self, item: &str) -> Result<bool, String> {
        if let Some((day, nth)) = item.split_once('#') {
            self.number(day)?;
            return match nth.parse::<u32>() {
                Ok(1..=5) => Ok(true),
                _ => Err(format!("`#{nth}` is no week of a month")),
            };
        }
        Ok(item == "L" || item.strip_suffix('L').is_some_and(|day| self.number(day).is_ok()))
    }

    fn check_range(&self, item: &str) -> Result<(), String> {
        if item == "*" {
            return Ok(());
        }
        match item.split_once('-') {
            Some((from, to)) => self.number(from).and(self.number(to)).map(drop),
            None => self.number(item).map(drop),
        }
    }

    fn number(&self, word: &str) -> Result<u32, String> {
        if let Some(at) = self.words.iter().position(|known| *known == word) {
            return Ok(at as u32 + 1);
        }
        match word.parse() {
            Ok(number) if (self.least..=self.most).contains(&number) => Ok(number),
            _ => Err(format!("{word:?} is no {}, which is {} to {}", self.name, self.least, self.most)),
        }
    }
}

/// Whether a time zone is one of the IANA database or a fixed distance from Greenwich.
pub(crate) fn is_zone(name: &str) -> bool {
    chrono_tz::Tz::from_str(name).is_ok() || is_distance(name)
}

/// `GMT+2`, `UTC-03:30`.
fn is_distance(name: &str) -> bool {
    let rest = ["GMT", "UTC", "UT"].iter().find_map(|prefix| name.strip_prefix(prefix));
    let Some(distance) = rest.and_then(|rest| rest.strip_prefix(['+', '-'])) else { return false };
    let (hours, minutes) = distance.split_once(':').unwrap_or((distance, "0"));
    let within = |text: &str, most: u32| !text.is_empty() && text.len() <= 2 && text.parse::<u32>().is_ok_and(|number| number <= most);
    within(hours, 18) && within(minutes, 59)
}

/// Names of all time zones.
pub(crate) fn zones() -> impl Iterator<Item = &'static str> {
    chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_as_people_write_them_are_taken() {
        for text in [
            "0 0 6 * * ?",
            "0 */15 * * * ?",
            "0 0/5 14,18 * * ?",
            "0 15 10 ? * MON-FRI",
            "0 15 10 L * ?",
            "0 15 10 LW * ? 2026-2030",
            "0 15 10 L-2 * ?",
            "0 15 10 15W * ?",
            "0 15 10 ? * 6L",
            "0 15 10 ? * FRI#2",
            "0 0 0 1 JAN,jul ?",
            "59 59 23 31 12 ? 2099",
        ] {
            assert_eq!(check_expression(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn an_expression_that_names_no_time_says_why() {
        for (text, reason) in [
            ("0 6 * * *", "it has 5 fields, not six or seven; the first field is the second"),
            ("", "it has 0 fields, not six or seven"),
            ("0 0 6 * * *", "neither day is `?`; day of month and day of week cannot both say when"),
            ("0 0 6 ? * ?", "both days are `?`; one of them must say when"),
            ("60 0 6 * * ?", "\"60\" is no second, which is 0 to 59"),
            ("0 0 24 * * ?", "\"24\" is no hour, which is 0 to 23"),
            ("0 0 6 32 * ?", "\"32\" is no day of month, which is 1 to 31"),
            ("0 0 6 * FEBR ?", "\"FEBR\" is no month, which is 1 to 12"),
            ("0 0 6 ? * 0", "\"0\" is no day of week, which is 1 to 7"),
            ("0 0 6 ? * MON#6", "`#6` is no week of a month"),
            ("0 */0 6 * * ?", "`/0` is no step of the minute"),
            ("? 0 6 * * ?", "the second cannot be `?`"),
            ("0 0 6 * * ? 1969", "\"1969\" is no year, which is 1970 to 2199"),
            ("0 0,, 6 * * ?", "\"\" is no minute, which is 0 to 59"),
        ] {
            assert_eq!(check_expression(text), Err(reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn zones_are_known_by_name_or_distance() {
        for zone in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "GMT+2", "UTC-03:30", "Etc/GMT-14"] {
            assert!(is_zone(zone), "{zone}");
        }
        for zone in ["Europe/Berlinn", "", "GMT+99", "+2", "Mars/Base"] {
            assert!(!is_zone(zone), "{zone}");
        }
        assert!(zones().any(|zone| zone == "Asia/Tokyo"));
    }
}
