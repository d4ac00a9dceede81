//! One plain value, for frames and for the oracle alike.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A value without its type: a date is its days, a timestamp its ticks, a decimal its unscaled digits, as the column's type
/// says. Values have a total order: null first, numbers by size (floats by IEEE total order), text and bytes by bytes, lists
/// and structs part by part.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// Truth.
    Bool(bool),
    /// Every whole number, date, time, timestamp, duration and decimal.
    Int(i128),
    /// Every float; 32-bit ones are widened exactly.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Elements in order.
    List(Vec<Value>),
    /// Fields in order.
    Struct(Vec<(String, Value)>),
    /// Entries in order.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// Whether it is null.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Text of a string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The value of a JSON document: whole numbers, floats, text, lists; an object is a struct with its fields by name.
    pub fn from_json(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(*truth),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Int(whole.into()),
                None => match number.as_u64() {
                    Some(whole) => Self::Int(whole.into()),
                    None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
                },
            },
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(elements) => Self::List(elements.iter().map(Self::from_json).collect()),
            serde_json::Value::Object(fields) => {
                Self::Struct(fields.iter().map(|(name, value)| (name.clone(), Self::from_json(value))).collect())
            }
        }
    }

    /// The JSON document of a value; bytes become hexadecimal text, floats without a JSON form text, maps lists of pairs.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(truth) => (*truth).into(),
            Self::Int(whole) => match (i64::try_from(*whole), u64::try_from(*whole)) {
                (Ok(whole), _) => whole.into(),
                (_, Ok(whole)) => whole.into(),
                _ => whole.to_string().into(),
            },
            Self::Float(float) => serde_json::Number::from_f64(*float).map_or_else(|| float.to_string().into(), Into::into),
            Self::Text(text) => text.clone().into(),
            Self::Bytes(bytes) => hex(bytes).into(),
            Self::List(elements) => elements.iter().map(Self::to_json).collect(),
            Self::Struct(fields) => serde_json::Value::Object(fields.iter().map(|(name, value)| (name.clone(), value.to_json())).collect()),
            Self::Map(entries) => entries.iter().map(|(key, value)| serde_json::json!([key.to_json(), value.to_json()])).collect(),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::Float(_) => 3,
            Self::Text(_) => 4,
            Self::Bytes(_) => 5,
            Self::List(_) => 6,
            Self::Struct(_) => 7,
            Self::Map(_) => 8,
        }
    }
}

/// `0x` and two digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) => a.cmp(b),
            (Self::Struct(a), Self::Struct(b)) => a.cmp(b),
            (Self::Map(a), Self::Map(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match self {
            Self::Null => {}
            Self::Bool(truth) => truth.hash(state),
            Self::Int(whole) => whole.hash(state),
            Self::Float(float) => float.to_bits().hash(state),
            Self::Text(text) => text.hash(state),
            Self::Bytes(bytes) => bytes.hash(state),
            Self::List(elements) => elements.hash(state),
            Self::Struct(fields) => fields.hash(state),
            Self::Map(entries) => entries.hash(state),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

impl From<i64> for Value {
    fn from(whole: i64) -> Self {
        Self::Int(whole.into())
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_sorts_first_and_floats_are_told_apart_by_their_bits() {
        assert!(Value::Null < Value::Bool(false));
        assert_ne!(Value::Float(0.0), Value::Float(-0.0));
        assert_eq!(Value::Float(f64::NAN), Value::Float(f64::NAN));
        assert!(Value::from("b") > Value::from("abc"));
    }
}
