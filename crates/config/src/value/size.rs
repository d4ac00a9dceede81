//! Amounts of bytes: `512MiB`, `1GiB`, `2GB`, `1073741824`.

use super::{Kind, NotOfKind, Parse, quoted};

const UNITS: [(&str, u64); 9] = [
    ("tib", 1 << 40),
    ("gib", 1 << 30),
    ("mib", 1 << 20),
    ("kib", 1 << 10),
    ("tb", 1_000_000_000_000),
    ("gb", 1_000_000_000),
    ("mb", 1_000_000),
    ("kb", 1_000),
    ("b", 1),
];

/// An amount of bytes a process can work with, at least [`ByteSize::LEAST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl ByteSize {
    /// 32 MiB: below it not even one file can be read.
    pub const LEAST: Self = Self(32 << 20);

    /// The amount.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Parse for ByteSize {
    const KIND: Kind = Kind::Size;

    fn parse(text: &str) -> Result<Self, NotOfKind> {
        let text = text.trim().to_lowercase();
        let (digits, each) = match UNITS.iter().find_map(|(unit, each)| text.strip_suffix(unit).map(|digits| (digits.trim_end(), *each))) {
            Some(pair) => pair,
            None => (text.as_str(), 1),
        };
        let count: u64 = digits.parse().map_err(|_| NotOfKind)?;
        count.checked_mul(each).map(Self).filter(|size| *size >= Self::LEAST).ok_or(NotOfKind)
    }

    fn show(&self) -> String {
        let names = ["TiB", "GiB", "MiB", "KiB"];
        match UNITS.iter().zip(names).find(|((_, each), _)| self.0.is_multiple_of(*each)) {
            Some(((_, each), name)) => quoted(&format!("{}{name}", self.0 / each)),
            None => self.0.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_decimal_units_differ() {
        for (text, bytes) in
            [("1GiB", 1 << 30), ("1gb", 1_000_000_000), ("512 MiB", 512 << 20), ("1073741824", 1 << 30), ("33554432b", 1 << 25)]
        {
            assert_eq!(ByteSize::parse(text), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn ambiguous_and_tiny_sizes_are_refused() {
        for text in ["1G", "1", "", "GiB", "1.5GiB", "-1GiB", "99999999999GiB"] {
            assert_eq!(ByteSize::parse(text), Err(NotOfKind), "{text}");
        }
    }

    #[test]
    fn the_shown_form_reads_back() {
        for bytes in [1 << 25, 1 << 30, (1 << 30) + 1, 1_000_000_000] {
            let shown = ByteSize(bytes).show();
            assert_eq!(ByteSize::parse(shown.trim_matches('"')), Ok(ByteSize(bytes)));
        }
    }
}
