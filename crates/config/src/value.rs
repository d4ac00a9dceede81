//! The types a setting can have: how each reads its text and how it is shown.

mod choice;
mod duration;
mod location;
mod name;
mod offsets;
mod property;
mod size;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};

pub use choice::{Layer, LogFormat, OnGap, Output};
pub use location::Location;
pub use name::Name;
pub use offsets::Offsets;
pub use property::Properties;
pub use size::ByteSize;

/// What a setting's text must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A name of a schema, catalogue or volume.
    Name,
    /// A file of this machine.
    Path,
    /// A folder of this machine or a URL.
    Location,
    /// A whole number between the two, both included.
    Count {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// An amount of bytes.
    Size,
    /// A length of time.
    Duration,
    /// An address and a port to listen on.
    Listen,
    /// An instant.
    Instant,
    /// A name and a value with `=` between.
    Property,
    /// An offset of a partition of a topic.
    Offset,
    /// On or off.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any number of one kind.
    List(&'static Kind),
}

impl Kind {
    /// Whether the empty text is a value of it.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Name)
    }

    /// What is expected, for errors and the reference page.
    pub fn expected(self) -> String {
        match self {
            Self::Text => "a text".into(),
            Self::Name => "a name without `/`, `\\`, `.` or blanks".into(),
            Self::Path => "a path".into(),
            Self::Location => "a path or a URL".into(),
            Self::Count { min, max: u64::MAX } => format!("a whole number of at least {min}"),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Size => "a size of at least 32MiB such as 512MiB, 1GiB or 2GB; a bare number is bytes".into(),
            Self::Duration => "a time such as 15 (seconds), 500ms, 15s, \"15 seconds\" or \"1 minute 30 seconds\"".into(),
            Self::Listen => "an address and a port such as 127.0.0.1:9464 or [::]:9464".into(),
            Self::Instant => "an instant such as 2024-05-01T12:00:00Z, or a day such as 2024-05-01 (its start in UTC)".into(),
            Self::Property => "a name, `=` and a value".into(),
            Self::Offset => "topic:partition=offset such as shop.orders:0=1200, a partition once".into(),
            Self::Switch => "true or false".into(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::List(of) => format!("a list, each {}", of.expected()),
        }
    }
}

/// The text of a setting as its source gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raw {
    /// One text; a list reads it as parts separated by commas.
    One(String),
    /// Parts that were given apart: a repeated flag, an array.
    Many(Vec<String>),
}

/// A text is not what the setting takes; [`Kind::expected`] says what is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOfKind;

/// A type that is written as one text.
pub trait Parse: Sized {
    /// What its text must look like.
    const KIND: Kind;
    /// Reads the text; blanks around it are ignored except in free text.
    fn parse(text: &str) -> Result<Self, NotOfKind>;
    /// The value as `tributary.toml` would have it.
    fn show(&self) -> String;
}

/// A type of a field of `Settings`: one value, an optional one, or a list.
pub trait Field: Sized {
    /// What its text must look like.
    const KIND: Kind;
    /// Reads what was given; `None` when nobody gave it and there is no default.
    fn read(raw: Option<&Raw>) -> Result<Self, NotOfKind>;
    /// The value as `tributary.toml` would have it; `None` when it is not set.
    fn show(&self) -> Option<String>;
}

impl<T: Parse> Field for T {
    const KIND: Kind = T::KIND;

    fn read(raw: Option<&Raw>) -> Result<Self, NotOfKind> {
        match raw {
            Some(Raw::One(text)) => T::parse(text),
            Some(Raw::Many(_)) | None => Err(NotOfKind),
        }
    }

    fn show(&self) -> Option<String> {
        Some(Parse::show(self))
    }
}

impl<T: Parse> Field for Option<T> {
    const KIND: Kind = T::KIND;

    fn read(raw: Option<&Raw>) -> Result<Self, NotOfKind> {
        match raw {
            None => Ok(None),
            Some(Raw::One(text)) if text.is_empty() && T::KIND.is_text() => Ok(None),
            Some(Raw::One(text)) => T::parse(text).map(Some),
            Some(Raw::Many(_)) => Err(NotOfKind),
        }
    }

    fn show(&self) -> Option<String> {
        self.as_ref().map(Parse::show)
    }
}

impl<T: Parse> Field for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn read(raw: Option<&Raw>) -> Result<Self, NotOfKind> {
        match raw {
            None => Ok(Self::new()),
            Some(Raw::One(text)) if text.trim().is_empty() => Ok(Self::new()),
            Some(Raw::One(text)) => text.split(',').map(|part| T::parse(part.trim())).collect(),
            Some(Raw::Many(parts)) => parts.iter().map(|part| T::parse(part)).collect(),
        }
    }

    fn show(&self) -> Option<String> {
        (!self.is_empty()).then(|| format!("[{}]", self.iter().map(Parse::show).collect::<Vec<_>>().join(", ")))
    }
}

/// A text as TOML writes it.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Parse for String {
    const KIND: Kind = Kind::Text;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Parse for PathBuf {
    const KIND: Kind = Kind::Path;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        if text.trim().is_empty() { Err(NotOfKind) } else { Ok(Self::from(text)) }
    }

    fn show(&self) -> String {
        quoted(&self.to_string_lossy())
    }
}

impl Parse for bool {
    const KIND: Kind = Kind::Switch;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(NotOfKind),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! whole_number {
    ($($type:ty: $min:expr, $max:expr;)*) => {$(
        impl Parse for $type {
            const KIND: Kind = Kind::Count { min: $min, max: $max as u64 };

            fn parse(text: &str) -> Result<Self, NotOfKind> {
                let digits: String = text.trim().chars().filter(|c| *c != '_').collect();
                if digits.starts_with(['+', '-']) { return Err(NotOfKind); }
                digits.parse().map_err(|_| NotOfKind)
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

whole_number! {
    u8: 0, u8::MAX;
    u64: 0, u64::MAX;
    NonZeroU32: 1, u32::MAX;
    NonZeroU64: 1, u64::MAX;
}

impl Parse for Duration {
    const KIND: Kind = Kind::Duration;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        duration::parse(text).ok_or(NotOfKind)
    }

    fn show(&self) -> String {
        quoted(&duration::show(*self))
    }
}

impl Parse for SocketAddr {
    const KIND: Kind = Kind::Listen;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        text.trim().parse().map_err(|_| NotOfKind)
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Parse for DateTime<Utc> {
    const KIND: Kind = Kind::Instant;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        let text = text.trim();
        if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            return day.and_hms_opt(0, 0, 0).map(|start| start.and_utc()).ok_or(NotOfKind);
        }
        DateTime::parse_from_rfc3339(text).map(|instant| instant.to_utc()).map_err(|_| NotOfKind)
    }

    fn show(&self) -> String {
        quoted(&self.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Raw {
        Raw::One(text.into())
    }

    #[test]
    fn an_empty_text_takes_an_optional_name_away() {
        assert_eq!(Option::<Name>::read(Some(&one(""))), Ok(None));
        assert_eq!(Name::read(Some(&one(""))), Err(NotOfKind));
    }

    #[test]
    fn a_list_in_one_text_is_cut_at_commas_and_one_in_parts_is_not() {
        assert_eq!(Vec::<String>::read(Some(&one("a, b,c"))), Ok(vec!["a".into(), "b".into(), "c".into()]));
        assert_eq!(Vec::<String>::read(Some(&Raw::Many(vec!["a,b".into()]))), Ok(vec!["a,b".into()]));
        assert_eq!(Vec::<String>::read(None), Ok(vec![]));
    }

    #[test]
    fn switches_read_the_usual_words() {
        for (text, value) in [("true", true), ("FALSE", false), ("0", false), ("on", true), (" no ", false)] {
            assert_eq!(bool::parse(text), Ok(value), "{text}");
        }
        assert_eq!(bool::parse("maybe"), Err(NotOfKind));
    }

    #[test]
    fn whole_numbers_keep_their_range() {
        assert_eq!(u8::parse("99"), Ok(99));
        assert_eq!(u8::parse("256"), Err(NotOfKind));
        assert_eq!(NonZeroU64::parse("0"), Err(NotOfKind));
        assert_eq!(u64::parse("1_000"), Ok(1000));
        assert_eq!(u64::parse("-1"), Err(NotOfKind));
        assert_eq!(u64::parse("1.5"), Err(NotOfKind));
    }

    #[test]
    fn an_address_to_listen_on_has_a_port() {
        assert_eq!(SocketAddr::parse(" 127.0.0.1:9464 ").map(|at| Parse::show(&at)), Ok("\"127.0.0.1:9464\"".into()));
        assert!(SocketAddr::parse("[::]:9464").is_ok());
        for wrong in ["127.0.0.1", "9464", "localhost:9464", ""] {
            assert_eq!(SocketAddr::parse(wrong), Err(NotOfKind), "{wrong}");
        }
    }

    #[test]
    fn an_instant_may_be_a_day() {
        assert_eq!(DateTime::<Utc>::parse("2024-05-01").map(|at| Parse::show(&at)), Ok("\"2024-05-01T00:00:00Z\"".into()));
        assert_eq!(DateTime::<Utc>::parse("2024-05-01T12:00:00+02:00").map(|at| Parse::show(&at)), Ok("\"2024-05-01T10:00:00Z\"".into()));
        assert_eq!(DateTime::<Utc>::parse("yesterday"), Err(NotOfKind));
    }
}
