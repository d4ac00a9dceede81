//! Scalars without quotes by YAML 1.2's core schema.

use serde_json::Number;

/// What a scalar without quotes is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainScalar {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number, also in base 8 or 16.
    Number(Number),
    /// Anything else is a text.
    Text,
}

impl PlainScalar {
    /// What the text of a scalar is.
    ///
    /// ```
    /// use tributary_specs::PlainScalar;
    /// assert_eq!(PlainScalar::of("0x1F"), PlainScalar::Number(31.into()));
    /// assert_eq!(PlainScalar::of("no"), PlainScalar::Text);
    /// ```
    pub fn of(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Self::Null,
            "true" | "True" | "TRUE" => Self::Boolean(true),
            "false" | "False" | "FALSE" => Self::Boolean(false),
            _ => number(text).map_or(Self::Text, Self::Number),
        }
    }
}

fn number(text: &str) -> Option<Number> {
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok().map(Number::from);
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !body.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if !body.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-')) {
        return None;
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let whole = unsigned.parse::<u64>().map(Number::from).or_else(|_| unsigned.parse::<i64>().map(Number::from));
    whole.ok().or_else(|| unsigned.parse::<f64>().ok().and_then(Number::from_f64))
}
