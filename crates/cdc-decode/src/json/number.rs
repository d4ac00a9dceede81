//! JSON numbers: as they are written, and their value where it is a whole number.

use crate::json::{Broken, Cursor};
use crate::words::{TENS, eight_digits};

/// A JSON number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number<'a> {
    /// As it was written.
    pub raw: &'a [u8],
    /// Its value where it is a whole number without exponent in the range of `i64`.
    pub integer: Option<i64>,
}

impl<'a> Cursor<'a> {
    /// Takes a number.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<Number<'a>, Broken> {
        self.peek()?;
        let start = self.at;
        let negative = self.bytes.get(self.at) == Some(&b'-');
        self.at += usize::from(negative);
        let digits = self.at;
        let magnitude = self.magnitude();
        let count = self.at - digits;
        if count == 0 || (count > 1 && self.bytes.get(digits) == Some(&b'0')) {
            return Err(self.short_or_unexpected());
        }
        if let Some(b'.' | b'e' | b'E') = self.bytes.get(self.at) {
            self.fraction()?;
            return Ok(Number { raw: self.since(start), integer: None });
        }
        let raw = self.since(start);
        let integer = if count <= 18 {
            let magnitude = magnitude.cast_signed();
            Some(if negative { -magnitude } else { magnitude })
        } else {
            std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok())
        };
        Ok(Number { raw, integer })
    }

    /// Takes digits, eight at a time, and gives their value, which is right for up to 19 of them.
    #[inline(always)]
    fn magnitude(&mut self) -> u64 {
        let mut magnitude: u64 = 0;
        while let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let (count, value) = eight_digits(u64::from_le_bytes(*chunk));
            magnitude = magnitude.wrapping_mul(TENS[count]).wrapping_add(value);
            self.at += count;
            if count < 8 {
                return magnitude;
            }
        }
        while let Some(byte @ b'0'..=b'9') = self.bytes.get(self.at) {
            magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        magnitude
    }

    /// Takes what may follow a number's whole part.
    fn fraction(&mut self) -> Result<(), Broken> {
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    #[cold]
    fn short_or_unexpected(&self) -> Broken {
        if self.at == self.bytes.len() { Broken::Short } else { Broken::Unexpected(self.at) }
    }

    /// Takes a number that nothing needs and checks its form.
    pub(super) fn skip_number(&mut self) -> Result<(), Broken> {
        self.at += usize::from(self.bytes.get(self.at) == Some(&b'-'));
        let first = self.bytes.get(self.at).copied();
        let start = self.at;
        self.skip_digits()?;
        if first == Some(b'0') && self.at > start + 1 {
            return Err(Broken::Unexpected(self.at));
        }
        self.fraction()
    }

    fn skip_digits(&mut self) -> Result<(), Broken> {
        let start = self.at;
        let _ = self.magnitude();
        if self.at > start { Ok(()) } else { Err(self.short_or_unexpected()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_has_its_value(number in any::<i64>(), tail in "[,}\\] ]{0,9}") {
            let text = format!("{number}{tail}");
            prop_assert_eq!(Cursor::new(text.as_bytes()).number().unwrap().integer, Some(number));
        }
    }

    fn skipped(text: &str) -> bool {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.skip().and_then(|()| cursor.end()).is_ok()
    }

    #[test]
    fn numbers_are_read_as_the_grammar_says() {
        for good in ["0", "-0", "10", "1.5", "-1.5e+10", "1E5", "123456789012345678901234567890", "0.0001e-400"] {
            assert!(skipped(good), "{good}");
        }
        for bad in ["01", "-", "+1", ".5", "1.", "1e", "1e+", "--1", "0x1", "1 2", "NaN", "Infinity"] {
            assert!(!skipped(bad), "{bad}");
        }
        let integer = |text: &str| Cursor::new(text.as_bytes()).number().unwrap().integer;
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer("9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer("9223372036854775808"), None);
        assert_eq!(integer("1.0"), None);
    }
}
