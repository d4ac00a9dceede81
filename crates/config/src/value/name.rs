//! Names of catalogues, schemas and volumes.

use std::fmt;

use super::{Kind, NotOfKind, Parse, quoted};

/// A name that can be a folder and a part of a dotted table name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// A name from elsewhere, such as a bundle; none where the text cannot be one.
    pub fn of(text: &str) -> Option<Self> {
        <Self as Parse>::parse(text).ok()
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Parse for Name {
    const KIND: Kind = Kind::Name;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        let refused = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '\\' | '.');
        if text.is_empty() || text.contains(refused) { Err(NotOfKind) } else { Ok(Self(text.to_owned())) }
    }

    fn show(&self) -> String {
        quoted(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder() {
        for text in ["..", "a/b", "a\\b", "a.b", " a", "a b", "a\n"] {
            assert_eq!(Name::parse(text), Err(NotOfKind), "{text:?}");
        }
        assert_eq!(Name::parse("dev-1_x").map(|name| name.to_string()), Ok("dev-1_x".into()));
    }
}
