//! Folders of this machine and URLs.

use std::fmt;

use super::{Kind, NotOfKind, Parse, quoted};

/// A folder of this machine or a URL. Its `Display` hides what a URL may carry in secret; [`Location::as_str`] does not.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location(String);

impl Location {
    /// The text as it was written, to open it with.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it begins with a scheme such as `s3://`.
    pub fn is_url(&self) -> bool {
        self.scheme_end().is_some()
    }

    /// Whether it means the same whatever the working folder is.
    pub fn is_absolute(&self) -> bool {
        self.is_url() || std::path::Path::new(&self.0).is_absolute()
    }

    /// A place below this one.
    #[must_use]
    pub fn join(&self, parts: &[&str]) -> Self {
        let mut text = self.0.trim_end_matches('/').to_owned();
        for part in parts {
            text.push('/');
            text.push_str(part.trim_matches('/'));
        }
        Self(text)
    }

    fn scheme_end(&self) -> Option<usize> {
        let end = self.0.find("://")?;
        let scheme = &self.0[..end];
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        (scheme.len() > 1 && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(plain)).then_some(end + 3)
    }

    /// User name and password before `@`, and everything after `?`, give way to `***`.
    fn redacted(&self) -> String {
        let Some(start) = self.scheme_end() else { return self.0.clone() };
        let (scheme, rest) = self.0.split_at(start);
        let (rest, query) = match rest.split_once('?') {
            Some((rest, _)) => (rest, "?***"),
            None => (rest, ""),
        };
        let authority = rest.find('/').unwrap_or(rest.len());
        let rest = match rest[..authority].rsplit_once('@') {
            // `abfss://container@account…` names a container, not a user
            Some((user, host)) if user.contains(':') => format!("***@{host}{}", &rest[authority..]),
            _ => rest.to_owned(),
        };
        format!("{scheme}{rest}{query}")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({:?})", self.redacted())
    }
}

impl Parse for Location {
    const KIND: Kind = Kind::Location;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        let text = text.trim();
        if text.is_empty() { Err(NotOfKind) } else { Ok(Self(text.to_owned())) }
    }

    fn show(&self) -> String {
        quoted(&self.redacted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_inside_a_url_are_not_shown() {
        for (text, shown) in [
            ("s3://key:secret@bucket/lake", "s3://***@bucket/lake"),
            ("https://a.example/lake?sig=abc&se=1", "https://a.example/lake?***"),
            ("abfss://box@account.example/lake", "abfss://box@account.example/lake"),
            ("s3://bucket/a@b:c", "s3://bucket/a@b:c"),
            ("data/lake", "data/lake"),
            ("data/a?b@c", "data/a?b@c"),
        ] {
            let location = Location(text.into());
            assert_eq!(location.to_string(), shown);
            assert!(!format!("{location:?}").contains("secret"));
            assert_eq!(location.as_str(), text);
        }
    }

    #[test]
    fn a_drive_letter_is_no_scheme() {
        assert!(!Location("C://x".into()).is_url());
        assert!(Location("s3://bucket".into()).is_url());
    }

    #[test]
    fn joining_keeps_one_slash_between_parts() {
        assert_eq!(Location("data/lake/".into()).join(&["Volumes", "main/", "raw"]).as_str(), "data/lake/Volumes/main/raw");
    }
}
