//! Forms of times as Java writes them: `yyyy-MM-dd'T'HH:mm:ss.SSSXXX`. Letters that the dialect refuses are refused.

use tributary_lake::datafusion::error::Result;

use crate::calendar::{self, Civil, SECOND, split, weekday};
use crate::functions::own::fault;
use crate::times::Zone;

/// A part of a form.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Literal(String),
    /// A letter and how many times it stands there.
    Field(char, usize),
    /// What may be left out when read.
    Optional(Vec<Part>),
}

/// A form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Form {
    parts: Vec<Part>,
}

impl Form {
    /// Reads a pattern.
    ///
    /// # Errors
    /// For letters that the dialect does not know, or refuses.
    pub fn parse(pattern: &str) -> Result<Self> {
        let mut open: Vec<Vec<Part>> = vec![Vec::new()];
        let mut signs = pattern.chars().peekable();
        while let Some(sign) = signs.next() {
            let part = match sign {
                '\'' if signs.peek() == Some(&'\'') => {
                    signs.next();
                    Part::Literal("'".to_owned())
                }
                '\'' => {
                    let mut text = String::new();
                    loop {
                        match signs.next() {
                            Some('\'') if signs.peek() == Some(&'\'') => {
                                signs.next();
                                text.push('\'');
                            }
                            Some('\'') => break,
                            Some(sign) => text.push(sign),
                            None => return fault("the form of a time has an open quote"),
                        }
                    }
                    Part::Literal(text)
                }
                '[' => {
                    open.push(Vec::new());
                    continue;
                }
                ']' => match (open.pop(), open.last()) {
                    (Some(inside), Some(_)) => Part::Optional(inside),
                    _ => return fault("the form of a time closes a bracket that is not open"),
                },
                letter if letter.is_ascii_alphabetic() => {
                    let mut count = 1;
                    while signs.peek() == Some(&letter) {
                        signs.next();
                        count += 1;
                    }
                    if !is_known(letter, count) {
                        return fault(&format!("`{letter}` so many times in the form of a time is not known to the dialect"));
                    }
                    Part::Field(letter, count)
                }
                '{' | '}' | '#' => return fault("`{`, `}` and `#` in the form of a time are reserved"),
                other => Part::Literal(other.to_string()),
            };
            match open.last_mut() {
                Some(parts) => parts.push(part),
                None => return fault("the form of a time cannot be read"),
            }
        }
        let Some(mut parts) = open.pop() else { return fault("the form of a time cannot be read") };
        // what is left open ends with the pattern
        while let Some(mut around) = open.pop() {
            around.push(Part::Optional(parts));
            parts = around;
        }
        Ok(Self { parts })
    }

    /// An instant in this form, in UTC.
    pub fn write(&self, at: i64) -> Result<String> {
        let mut told = String::new();
        write(&self.parts, at, &mut told)?;
        Ok(told)
    }

    /// Refuses letters that are only written.
    pub fn check_readable(&self) -> Result<()> {
        fn check(parts: &[Part]) -> Result<()> {
            parts.iter().try_for_each(|part| match part {
                Part::Field(letter @ ('E' | 'F' | 'Q' | 'q' | 'O'), _) => {
                    fault(&format!("`{letter}` in the form of a time is not read by the dialect"))
                }
                Part::Optional(inside) => check(inside),
                _ => Ok(()),
            })
        }
        check(&self.parts)
    }

    /// The time on a clock that a text says, in microseconds since 1970-01-01, and its zone; none where the text is not of this form.
    pub fn read(&self, text: &str) -> Option<(i64, Option<Zone>)> {
        let mut found = Found::default();
        let rest = found.read(&self.parts, text)?;
        if rest.is_empty() { found.time() } else { None }
    }
}

fn is_known(letter: char, count: usize) -> bool {
    match letter {
        'y' => count <= 6,
        'M' | 'L' | 'E' | 'Q' | 'q' | 'z' | 'G' => count <= 4,
        'd' | 'H' | 'h' | 'k' | 'K' | 'm' | 's' => count <= 2,
        'D' => count <= 3,
        'S' => count <= 9,
        'a' | 'F' => count == 1,
        'X' | 'x' | 'Z' => count <= 5,
        'O' => count == 1 || count == 4,
        'V' => count == 2,
        _ => false,
    }
}

fn write(parts: &[Part], at: i64, told: &mut String) -> Result<()> {
    let (days, time) = split(at);
    let civil = Civil::of(days);
    let (seconds, micros) = (time / SECOND, time % SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let name = |names: &[&'static str], at: usize, count: usize| names.get(at).map_or("", |name| if count < 4 { &name[..3] } else { name });
    let padded = |number: i64, count: usize| format!("{number:0count$}");
    for part in parts {
        match part {
            Part::Literal(text) => told.push_str(text),
            Part::Optional(inside) => write(inside, at, told)?,
            Part::Field(letter, count) => told.push_str(&match (letter, *count) {
                ('y', 2) => padded(civil.year.rem_euclid(100), 2),
                ('y', count) if count > 3 && civil.year > 9999 => format!("+{}", civil.year),
                ('y', count) => padded(civil.year, count),
                ('M' | 'L', count) if count > 2 => name(&calendar::MONTHS, civil.month as usize - 1, count).to_owned(),
                ('M' | 'L', count) => padded(i64::from(civil.month), count),
                ('d', count) => padded(i64::from(civil.day), count),
                ('D', count) => padded(civil.day_of_year(), count),
                ('E', count) => name(&calendar::DAYS, weekday(days) as usize, count).to_owned(),
                ('F', _) => ((civil.day - 1) % 7 + 1).to_string(),
                ('a', _) => if hour < 12 { "AM" } else { "PM" }.to_owned(),
                ('H', count) => padded(hour, count),
                ('h', count) => padded((hour + 11) % 12 + 1, count),
                ('k', count) => padded((hour + 23) % 24 + 1, count),
                ('K', count) => padded(hour % 12, count),
                ('m', count) => padded(minute, count),
                ('s', count) => padded(second, count),
                ('S', count) => format!("{micros:06}000")[..count].to_owned(),
                ('Q' | 'q', count @ (1 | 2)) => padded(i64::from(civil.quarter()), count),
                ('Q' | 'q', 3) => format!("Q{}", civil.quarter()),
                ('Q' | 'q', _) => format!("{} quarter", ["1st", "2nd", "3rd", "4th"][civil.quarter() as usize - 1]),
                ('G', count) if count < 4 => if civil.year > 0 { "AD" } else { "BC" }.to_owned(),
                ('G', _) => if civil.year > 0 { "Anno Domini" } else { "Before Christ" }.to_owned(),
                ('z', 4) => "Coordinated Universal Time".to_owned(),
                ('z' | 'V', _) => "UTC".to_owned(),
                ('X', _) | ('Z', 5) => "Z".to_owned(),
                ('x', 1) => "+00".to_owned(),
                ('x', 2 | 4) | ('Z', 1..=3) => "+0000".to_owned(),
                ('x', _) => "+00:00".to_owned(),
                ('Z', _) | ('O', _) => "GMT".to_owned(),
                (other, _) => return fault(&format!("`{other}` in the form of a time is not known")),
            }),
        }
    }
    Ok(())
}

/// What has been read of a text.
#[derive(Debug, Default, Clone)]
struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    half_hour: Option<i64>,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    zone: Option<Zone>,
}

impl Found {
    /// Reads parts and gives back what follows them.
    fn read<'t>(&mut self, parts: &[Part], mut text: &'t str) -> Option<&'t str> {
        for (at, part) in parts.iter().enumerate() {
            // digits that follow without a sign between take just their own
            let packed = matches!(parts.get(at + 1), Some(Part::Field(next, count)) if is_number(*next, *count));
            text = match part {
                Part::Literal(literal) => after(text, literal)?,
                Part::Optional(inside) => {
                    let mut ahead = self.clone();
                    match ahead.read(inside, text) {
                        Some(rest) => {
                            *self = ahead;
                            rest
                        }
                        None => text,
                    }
                }
                Part::Field(letter, count) => self.field(*letter, *count, packed, text)?,
            };
        }
        Some(text)
    }

    fn field<'t>(&mut self, letter: char, count: usize, packed: bool, text: &'t str) -> Option<&'t str> {
        let number = |least: usize, most: usize| digits(text, least, most);
        // one letter takes as many digits as there are, several take theirs
        let plain = |longest: usize| match count {
            1 if packed => number(1, 1),
            1 => number(1, longest),
            count => number(count, count),
        };
        let (rest, value) = match letter {
            'y' if count == 2 => {
                let (rest, year) = number(2, 2)?;
                (rest, 2000 + year)
            }
            'y' if count == 4 => number(4, 4)?,
            'y' => number(count.min(4), if packed { count } else { 9 })?,
            'M' | 'L' if count > 2 => {
                let names = calendar::MONTHS.iter().enumerate();
                names.filter_map(|(at, name)| Some((after(text, if count == 3 { &name[..3] } else { name })?, at as i64 + 1))).next()?
            }
            'M' | 'L' | 'd' | 'H' | 'h' | 'k' | 'K' | 'm' | 's' => plain(if count == 1 { 2 } else { count })?,
            'D' => plain(3)?,
            'S' => {
                let (rest, value) = digits(text, 1, count)?;
                let length = text.len() - rest.len();
                (rest, value * 10_i64.pow(9 - length as u32) / 1000)
            }
            'a' => ["AM", "PM"].iter().enumerate().find_map(|(at, name)| Some((after(text, name)?, at as i64)))?,
            'G' => ["AD", "Anno Domini"].iter().find_map(|name| Some((after(text, name)?, 0)))?,
            'X' | 'x' | 'Z' | 'z' | 'V' => {
                let length = text.find(|sign: char| !(sign.is_ascii_alphanumeric() || "+-:/_".contains(sign))).unwrap_or(text.len());
                let (zone, rest) = text.split_at(length);
                let fits = match letter {
                    'X' => zone == "Z" || zone.starts_with(['+', '-']),
                    'x' | 'Z' => zone.starts_with(['+', '-']) || (count == 5 && zone == "Z"),
                    _ => !zone.starts_with(['+', '-']) || letter == 'V',
                };
                if !fits {
                    return None;
                }
                self.zone = Some(Zone::parse(zone)?);
                return Some(rest);
            }
            _ => return None,
        };
        match letter {
            'y' => self.year = Some(value),
            'M' | 'L' => self.month = Some(value),
            'd' => self.day = Some(value),
            'D' => self.day_of_year = Some(value),
            'H' => self.hour = within(value, 0, 23),
            'k' => self.hour = within(value, 1, 24).map(|hour| hour % 24),
            'h' => self.half_hour = within(value, 1, 12).map(|hour| hour % 12),
            'K' => self.half_hour = within(value, 0, 11),
            'm' => self.minute = within(value, 0, 59)?,
            's' => self.second = within(value, 0, 59)?,
            'S' => self.micros = value,
            'a' => self.afternoon = Some(value == 1),
            _ => {}
        }
        let read = match letter {
            'H' | 'k' => self.hour.is_some(),
            'h' | 'K' => self.half_hour.is_some(),
            _ => true,
        };
        read.then_some(rest)
    }

    fn time(&self) -> Option<(i64, Option<Zone>)> {
        let year = self.year.unwrap_or(1970);
        let days = match self.day_of_year {
            Some(day) => {
                let first = Civil::new(year, 1, 1)?.days();
                Some(first + day - 1).filter(|found| day >= 1 && Civil::of(*found).year == year)?
            }
            None => Civil::new(year, u32::try_from(self.month.unwrap_or(1)).ok()?, u32::try_from(self.day.unwrap_or(1)).ok()?)?.days(),
        };
        let hour = match (self.hour, self.half_hour) {
            (Some(hour), _) => hour,
            (None, Some(hour)) => hour + if self.afternoon == Some(true) { 12 } else { 0 },
            (None, None) => 0,
        };
        let seconds = (hour * 60 + self.minute) * 60 + self.second;
        Some((calendar::micros(days, seconds * SECOND + self.micros)?, self.zone))
    }
}

fn is_number(letter: char, count: usize) -> bool {
    match letter {
        'M' | 'L' => count < 3,
        'y' | 'd' | 'D' | 'H' | 'h' | 'k' | 'K' | 'm' | 's' | 'S' => true,
        _ => false,
    }
}

fn within(value: i64, least: i64, most: i64) -> Option<i64> {
    (least..=most).contains(&value).then_some(value)
}

/// What follows a literal, without regard to case.
fn after<'t>(text: &'t str, literal: &str) -> Option<&'t str> {
    let head = text.get(..literal.len())?;
    (head == literal || head.eq_ignore_ascii_case(literal)).then(|| &text[literal.len()..])
}

fn digits(text: &str, least: usize, most: usize) -> Option<(&str, i64)> {
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if length < least {
        return None;
    }
    Some((&text[length..], text[..length].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_written_in_a_form_is_read_back(at in -62_135_596_800_000_000_i64..253_402_300_799_999_999) {
            for pattern in ["yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "yyyyMMddHHmmssSSSSSS", "d MMMM yyyy hh:mm:ss.SSSSSS a", "yyyy-DDD kk:mm:ss.SSSSSS"] {
                let form = Form::parse(pattern).unwrap();
                let text = form.write(at).unwrap();
                proptest::prop_assert_eq!(form.read(&text).map(|found| found.0), Some(at), "{} as {}", pattern, text);
            }
        }

        #[test]
        fn no_form_makes_the_reader_panic(pattern in "[yMdHhkKmsSaEDQXxZzVG'\\[\\] :ä-]{0,12}", text in "[0-9A-Za-zä:+ -]{0,20}") {
            if let Ok(form) = Form::parse(&pattern) {
                let _ = form.read(&text);
                let _ = form.write(0);
            }
        }
    }
}
