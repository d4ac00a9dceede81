//! The name of a table.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// `schema.table` inside the lake's catalogue. Spelling is kept; comparison of names is exact here.
///
/// The text form puts a part in back-quotes where it holds a dot, a blank or a back-quote (doubled inside).
///
/// ```
/// use tributary_specs::TableName;
/// let orders: TableName = "silver.orders".parse()?;
/// assert_eq!(orders, TableName::new("silver", "orders"));
/// assert_eq!("silver.`per day`".parse::<TableName>()?.name, "per day");
/// # Ok::<(), tributary_specs::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// `bronze`, `silver`, `gold`, `quarantine`, `_state`, `system` or the schema every layer was put into.
    pub schema: String,
    /// The table's name in its schema.
    pub name: String,
}

impl TableName {
    /// Both parts as given; [`FromStr`] reads the dotted form.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }

    /// Whether both names are equal when case is left out of account.
    pub fn same_without_case(&self, other: &Self) -> bool {
        self.folded() == other.folded()
    }

    /// Both parts in lower case.
    pub fn folded(&self) -> Self {
        Self { schema: self.schema.to_lowercase(), name: self.name.to_lowercase() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_part(f, &self.schema)?;
        f.write_str(".")?;
        write_part(f, &self.name)
    }
}

fn write_part(f: &mut fmt::Formatter<'_>, part: &str) -> fmt::Result {
    if part.is_empty() || part.contains(|c: char| c == '.' || c == '`' || c.is_whitespace()) {
        write!(f, "`{}`", part.replace('`', "``"))
    } else {
        f.write_str(part)
    }
}

impl FromStr for TableName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unreadable = |reason: &str| Error::TableNameUnreadable { text: text.to_owned(), reason: reason.to_owned() };
        let parts = split_parts(text).map_err(unreadable)?;
        match <[String; 2]>::try_from(parts) {
            Ok([schema, name]) => Ok(Self { schema, name }),
            Err(parts) if parts.len() < 2 => Err(unreadable("the schema is missing")),
            Err(_) => Err(unreadable("it has more than two parts; the catalogue is a setting of the run")),
        }
    }
}

/// Cuts at dots outside back-quotes; quoted parts may hold anything, bare parts neither blanks nor back-quotes.
fn split_parts(text: &str) -> Result<Vec<String>, &'static str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = if let Some(quoted) = rest.strip_prefix('`') { quoted_part(quoted)? } else { bare_part(rest)? };
        parts.push(part);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(parts),
            None => return Err("text follows the closing back-quote"),
        }
    }
}

fn bare_part(text: &str) -> Result<(String, &str), &'static str> {
    let (part, after) = text.split_at(text.find('.').unwrap_or(text.len()));
    if part.is_empty() {
        Err("a part is empty")
    } else if part.contains(|c: char| c == '`' || c.is_whitespace()) {
        Err("a part with a blank or a back-quote stands in back-quotes")
    } else {
        Ok((part.to_owned(), after))
    }
}

fn quoted_part(text: &str) -> Result<(String, &str), &'static str> {
    let mut part = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        part.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('`') {
            Some(next) => {
                part.push('`');
                rest = next;
            }
            None if part.is_empty() => return Err("a part is empty"),
            None => return Ok((part, rest)),
        }
    }
    Err("a back-quote is not closed")
}

impl Serialize for TableName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TableName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_dots_blanks_and_back_quotes_survives_its_text_form() {
        for (schema, name) in [("silver", "orders"), ("a.b", "c d"), ("x`y", "``"), ("_state", "`"), ("größe", "名前")] {
            let table = TableName::new(schema, name);
            assert_eq!(table.to_string().parse::<TableName>(), Ok(table));
        }
    }

    #[test]
    fn a_name_without_two_parts_is_refused() {
        for text in ["", "orders", "main.silver.orders", "silver.", ".orders", "silver..x", "`a.b", "`a`b.c", "a b.c", "``.c", "a`b.c"] {
            assert!(text.parse::<TableName>().is_err(), "{text:?}");
        }
    }
}
