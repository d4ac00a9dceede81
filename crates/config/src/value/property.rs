//! `name=value` pairs handed on to a client library.

use std::collections::BTreeMap;
use std::fmt;

use super::{Field, Kind, NotOfKind, Raw};

/// Properties of a client, each given as `name=value`. Values are never shown: some are secrets, and only the client knows which.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// The values by name.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Field for Properties {
    const KIND: Kind = Kind::List(&Kind::Property);

    fn read(raw: Option<&Raw>) -> Result<Self, NotOfKind> {
        let parts = match raw {
            None => Vec::new(),
            Some(Raw::One(text)) => cut(text),
            Some(Raw::Many(parts)) => parts.clone(),
        };
        let pair = |part: &String| match part.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
            _ => Err(NotOfKind),
        };
        parts.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    fn show(&self) -> Option<String> {
        (!self.0.is_empty())
            .then(|| format!("[{}]", self.0.keys().map(|name| super::quoted(&format!("{name}=***"))).collect::<Vec<_>>().join(", ")))
    }
}

/// Pairs of one text are separated by commas; a part without `=` belongs to the value before it.
fn cut(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(',') {
        match parts.last_mut() {
            Some(last) if !part.contains('=') => {
                last.push(',');
                last.push_str(part);
            }
            _ if part.trim().is_empty() => {}
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, NotOfKind> {
        Properties::read(Some(&Raw::One(text.into()))).map(|properties| properties.0.into_iter().collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn pairs_are_cut_at_commas_and_values_may_hold_commas_and_equals_signs() {
        assert_eq!(read("sasl.username=me, sasl.password=a=b,c"), Ok(vec![pair("sasl.password", "a=b,c"), pair("sasl.username", "me")]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("sasl.username"), Err(NotOfKind));
        assert_eq!(read("=x"), Err(NotOfKind));
    }

    #[test]
    fn a_value_is_never_shown() {
        let properties = Properties::read(Some(&Raw::Many(vec!["sasl.password=hunter2".into()]))).unwrap();
        assert!(!format!("{properties:?}{:?}", properties.show()).contains("hunter2"));
    }
}
