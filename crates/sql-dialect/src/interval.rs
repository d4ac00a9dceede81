//! Intervals that the parser does not read: of several units, with a sign, within one string, and from one unit to another.

use sqlparser::ast::{Expr, Interval, Value};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token};

/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// Units, and how many of them are a month, a day or a second: `(months, days, nanoseconds)` of one.
const UNITS: &[(&str, (i64, i64, i128))] = &[
    ("year", (12, 0, 0)),
    ("quarter", (3, 0, 0)),
    ("month", (1, 0, 0)),
    ("week", (0, 7, 0)),
    ("day", (0, 1, 0)),
    ("hour", (0, 0, 3600 * SECOND)),
    ("minute", (0, 0, 60 * SECOND)),
    ("second", (0, 0, SECOND)),
    ("millisecond", (0, 0, SECOND / 1000)),
    ("microsecond", (0, 0, 1000)),
    ("nanosecond", (0, 0, 1)),
];

/// What an interval comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Span {
    months: i64,
    days: i64,
    nanoseconds: i128,
}

/// The interval that stands next; none where the parser reads what stands there, or it is no interval.
pub(crate) fn read(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if !is_word(&parser.peek_token_ref().token, "interval") {
        return None;
    }
    let place = parser.peek_token_ref().span.start;
    let (span, tokens) = several(parser).or_else(|| between_units(parser)).or_else(|| within_a_string(parser))?;
    let Some(span) = span.filter(|span| span.months == 0 || (span.days == 0 && span.nanoseconds == 0)) else {
        let reason = "an interval is whole units of years and months, or of days, hours and minutes with seconds";
        return Some(Err(ParserError::ParserError(format!("{reason}{}", at(place)))));
    };
    (0..tokens).for_each(|_| parser.advance_token());
    let text = Value::SingleQuotedString(span.text()).with_span(sqlparser::tokenizer::Span::new(place, place));
    Some(Ok(Expr::Interval(Interval {
        value: Box::new(Expr::Value(text)),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })))
}

fn at(place: Location) -> String {
    format!(" at Line: {}, Column: {}", place.line, place.column)
}

/// `1 day 2 hours`: numbers, or strings of them, with units. One plain number and unit is the parser's own.
fn several(parser: &Parser<'_>) -> Option<(Option<Span>, usize)> {
    let token = |n: usize| &parser.peek_nth_token_ref(n).token;
    let (mut total, mut next, mut parts, mut is_plain) = (Some(Span::default()), 1, 0, true);
    loop {
        let signs = usize::from(matches!(token(next), Token::Minus | Token::Plus));
        let number = match token(next + signs) {
            Token::Number(digits, false) => digits.clone(),
            Token::SingleQuotedString(text) => text.clone(),
            _ => break,
        };
        let Some(unit) = unit(token(next + signs + 1)) else { break };
        let sign = if matches!(token(next), Token::Minus) { "-" } else { "" };
        is_plain &= signs == 0 && !number.contains('.') && !unit.0.ends_with("lisecond") && !unit.0.ends_with("osecond");
        total = total.and_then(|total| total.and(&format!("{sign}{}", number.trim()), unit));
        next += signs + 2;
        parts += 1;
    }
    let is_range = is_word(token(next), "to");
    (parts > 1 || (parts == 1 && !is_plain && !is_range)).then_some((total, next))
}

/// `'1 2:03:04' day to second`.
fn between_units(parser: &Parser<'_>) -> Option<(Option<Span>, usize)> {
    let token = |n: usize| &parser.peek_nth_token_ref(n).token;
    let signs = usize::from(matches!(token(1), Token::Minus | Token::Plus));
    let Token::SingleQuotedString(text) = token(1 + signs) else { return None };
    let (first, last) = (unit(token(2 + signs))?, unit(token(4 + signs))?);
    if !is_word(token(3 + signs), "to") {
        return None;
    }
    let text = text.trim();
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let span = match (first.0, last.0) {
        ("year", "month") => text
            .split_once('-')
            .and_then(|(years, months)| Span::default().and(years, first)?.and(months, last).filter(|_| bounded(months, 12))),
        _ => of_a_clock(text, first.0, last.0),
    };
    let negative = negative != matches!(token(1), Token::Minus);
    Some((span.map(|span| if negative { span.negated() } else { span }), 5 + signs))
}

/// `D H:M:S.f` from one of these on to another: the first may be of any size, those behind it are bounded.
fn of_a_clock(text: &str, first: &str, last: &str) -> Option<Span> {
    const PARTS: [(&str, u32); 4] = [("day", u32::MAX), ("hour", 24), ("minute", 60), ("second", 60)];
    let at = |unit: &str| PARTS.iter().position(|(name, _)| *name == unit);
    let (from, to) = (at(first)?, at(last)?);
    let (day, clock) = if from == 0 { text.split_once(' ').map(|(day, clock)| (Some(day), clock))? } else { (None, text) };
    let written: Vec<&str> = day.into_iter().chain(clock.trim().split(':')).collect();
    if from >= to || written.len() != to - from + 1 {
        return None;
    }
    let mut span = Span::default();
    for (place, (number, (name, bound))) in written.iter().zip(&PARTS[from..=to]).enumerate() {
        let unit = *UNITS.iter().find(|(unit, _)| unit == name)?;
        if number.starts_with('-') || (place > 0 && !bounded(number, *bound)) {
            return None;
        }
        span = span.and(number, unit)?;
    }
    Some(span)
}

/// `'1 day 2 hours'`.
fn within_a_string(parser: &Parser<'_>) -> Option<(Option<Span>, usize)> {
    let token = |n: usize| &parser.peek_nth_token_ref(n).token;
    let signs = usize::from(matches!(token(1), Token::Minus | Token::Plus));
    let Token::SingleQuotedString(text) = token(1 + signs) else { return None };
    if unit(token(2 + signs)).is_some() {
        return None;
    }
    let mut words = text.split_whitespace();
    let mut span = Some(Span::default());
    while let Some(number) = words.next() {
        let named = words.next().and_then(|word| UNITS.iter().find(|(name, _)| is_named(word, name)));
        span = span.and_then(|span| span.and(number, *named?));
    }
    let negative = matches!(token(1), Token::Minus);
    Some((span.filter(|_| !text.trim().is_empty()).map(|span| if negative { span.negated() } else { span }), 2 + signs))
}

fn bounded(number: &str, below: u32) -> bool {
    number.split('.').next().and_then(|whole| whole.parse::<u32>().ok()).is_some_and(|whole| whole < below)
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

fn is_named(word: &str, unit: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.strip_suffix('s').unwrap_or(&word) == unit
}

fn unit(token: &Token) -> Option<(&'static str, (i64, i64, i128))> {
    let Token::Word(word) = token else { return None };
    UNITS.iter().find(|(name, _)| word.quote_style.is_none() && is_named(&word.value, name)).copied()
}

impl Span {
    /// This, and so many of a unit; only seconds may be broken.
    fn and(self, number: &str, (name, (months, days, nanoseconds)): (&str, (i64, i64, i128))) -> Option<Self> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (!fraction.is_empty() && name != "second") || fraction.len() > 9 {
            return None;
        }
        let negative = whole.starts_with('-');
        let count: i64 = if whole.trim_start_matches(['-', '+']).is_empty() && !fraction.is_empty() { 0 } else { whole.parse().ok()? };
        let part: i128 = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse().ok()? };
        Some(Self {
            months: self.months.checked_add(months.checked_mul(count)?)?,
            days: self.days.checked_add(days.checked_mul(count)?)?,
            nanoseconds: self.nanoseconds + nanoseconds * i128::from(count) + if negative { -part } else { part },
        })
    }

    fn negated(self) -> Self {
        Self { months: -self.months, days: -self.days, nanoseconds: -self.nanoseconds }
    }

    /// As one string that the engine reads.
    fn text(self) -> String {
        let mut parts = Vec::new();
        if self.months != 0 {
            parts.push(format!("{} months", self.months));
        }
        if self.days != 0 {
            parts.push(format!("{} days", self.days));
        }
        if self.nanoseconds != 0 || parts.is_empty() {
            let (sign, all) = (if self.nanoseconds < 0 { "-" } else { "" }, self.nanoseconds.unsigned_abs());
            let (whole, rest) = (all / SECOND.unsigned_abs(), all % SECOND.unsigned_abs());
            parts.push(if rest == 0 { format!("{sign}{whole} seconds") } else { format!("{sign}{whole}.{rest:09} seconds") });
        }
        parts.join(" ")
    }
}
