//! Exact numbers.

use std::fmt::Write;

/// An exact number, `unscaled × 10^-scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    /// The digits as a whole number.
    pub unscaled: i128,
    /// How many of them stand after the point; negative = zeros before it.
    pub scale: i32,
}

/// The largest magnitude of 38 digits, plus one.
const LIMIT: u128 = 10u128.pow(38);

impl Decimal {
    /// Reads digits with an optional sign, point and exponent. `None` = not such a text, or more than 38 digits.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let (digits, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&text[..at], std::str::from_utf8(&text[at + 1..]).ok()?.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let mut magnitude: u128 = 0;
        let mut scale: i32 = 0;
        let (mut any, mut point) = (false, false);
        for (at, byte) in digits.iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    // Below the limit a tenth of it has room for one more digit.
                    if magnitude < LIMIT / 10 {
                        magnitude = magnitude * 10 + u128::from(byte - b'0');
                        scale = scale.checked_add(i32::from(point))?;
                    } else if !point || digits[at..].iter().any(|digit| *digit != b'0') {
                        return None;
                    }
                }
                b'.' if !point => point = true,
                _ => return None,
            }
        }
        if !any {
            return None;
        }
        let unscaled = i128::try_from(magnitude).ok()?;
        Some(Self { unscaled: if negative { -unscaled } else { unscaled }, scale: scale.checked_sub(exponent)? })
    }

    /// Reads a big-endian two's-complement integer. `None` = more than 38 digits.
    pub(crate) fn from_big_endian(bytes: &[u8], scale: i32) -> Option<Self> {
        let fill: u8 = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
        let mut wide = [fill; 16];
        let kept = bytes.len().min(16);
        let (extra, last) = bytes.split_at(bytes.len() - kept);
        wide[16 - kept..].copy_from_slice(last);
        if extra.iter().any(|byte| *byte != fill) || (!extra.is_empty() && (wide[0] ^ fill) & 0x80 != 0) {
            return None;
        }
        let unscaled = i128::from_be_bytes(wide);
        (unscaled.unsigned_abs() < LIMIT).then_some(Self { unscaled, scale })
    }

    /// The same number with another scale; `None` = digits would be lost or there would be more than 38.
    pub(crate) fn rescale(self, scale: i32) -> Option<i128> {
        let by = scale.checked_sub(self.scale)?;
        if self.unscaled == 0 || by == 0 {
            return Some(self.unscaled);
        }
        if by > 0 {
            let unscaled = self.unscaled.checked_mul(10i128.checked_pow(by.unsigned_abs())?)?;
            return (unscaled.unsigned_abs() < LIMIT).then_some(unscaled);
        }
        let divisor = 10i128.checked_pow(by.unsigned_abs())?;
        (self.unscaled % divisor == 0).then(|| self.unscaled / divisor)
    }

    /// The number with this precision and scale; `None` = it does not fit exactly.
    pub(crate) fn fit(self, precision: u8, scale: u8) -> Option<i128> {
        let unscaled = self.rescale(i32::from(scale))?;
        (unscaled.unsigned_abs() < 10u128.pow(u32::from(precision.min(38)))).then_some(unscaled)
    }

    /// The whole number it is, if it is one.
    pub(crate) fn whole(self) -> Option<i64> {
        self.rescale(0).and_then(|unscaled| i64::try_from(unscaled).ok())
    }

    /// Digits before and after the point that it needs.
    pub(crate) fn digits(self) -> (u8, u8) {
        let mut reduced = self;
        while reduced.scale > 0 && reduced.unscaled % 10 == 0 {
            reduced.unscaled /= 10;
            reduced.scale -= 1;
        }
        let all = i32::try_from(reduced.unscaled.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1)).unwrap_or(39);
        let before = (all - reduced.scale).clamp(0, 127);
        let after = reduced.scale.clamp(0, 127);
        (u8::try_from(before).unwrap_or(127), u8::try_from(after).unwrap_or(127))
    }

    /// Plain digits, without exponent.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        write_digits(self.unscaled < 0, digits.format(self.unscaled.unsigned_abs()), self.scale, out);
    }
}

/// The most digits written before the point or after it; PostgreSQL's numeric has 131,072 and 16,383.
const WRITTEN_MAX: usize = 200_000;

fn write_digits(negative: bool, digits: &str, scale: i32, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    let digits = digits.as_bytes();
    let width = usize::try_from(scale.unsigned_abs()).unwrap_or(WRITTEN_MAX).min(WRITTEN_MAX);
    if scale <= 0 {
        out.extend_from_slice(digits);
        if digits != b"0" {
            out.resize(out.len() + width, b'0');
        }
    } else if digits.len() > width {
        let (whole, fraction) = digits.split_at(digits.len() - width);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + width - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

/// The most bytes of an unscaled integer that is turned into text: PostgreSQL's largest numeric has about 61,000.
const WIDE_MAX: usize = 65_536;

/// Plain digits of a big-endian two's-complement integer of any width; `None` beyond 64 KiB.
pub(crate) fn write_big_endian(bytes: &[u8], scale: i32, out: &mut Vec<u8>) -> Option<()> {
    if let Some(decimal) = Decimal::from_big_endian(bytes, scale) {
        decimal.write(out);
        return Some(());
    }
    if bytes.len() > WIDE_MAX {
        return None;
    }
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut limbs: Vec<u32> = magnitude_limbs(bytes, negative);
    let mut groups: Vec<u32> = Vec::new();
    while limbs.last().is_some() {
        let mut remainder: u64 = 0;
        for limb in limbs.iter_mut().rev() {
            let value = (remainder << 32) | u64::from(*limb);
            *limb = u32::try_from(value / 1_000_000_000).unwrap_or(u32::MAX);
            remainder = value % 1_000_000_000;
        }
        groups.push(u32::try_from(remainder).unwrap_or(0));
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
    }
    let mut digits = String::with_capacity(groups.len() * 9);
    for (at, group) in groups.iter().rev().enumerate() {
        // Writing into a string cannot fail.
        let _ = if at == 0 { write!(digits, "{group}") } else { write!(digits, "{group:09}") };
    }
    write_digits(negative, if digits.is_empty() { "0" } else { &digits }, scale, out);
    Some(())
}

/// The magnitude as 32-bit limbs, lowest first, without leading zeros.
fn magnitude_limbs(bytes: &[u8], negative: bool) -> Vec<u32> {
    let mut limbs: Vec<u32> = bytes
        .rchunks(4)
        .map(|chunk| chunk.iter().fold(if negative { u32::MAX } else { 0 }, |limb, byte| (limb << 8) | u32::from(*byte)))
        .collect();
    if negative {
        let mut carry = true;
        for limb in &mut limbs {
            let (value, overflow) = (!*limb).overflowing_add(u32::from(carry));
            *limb = value;
            carry = overflow;
        }
        if carry {
            limbs.push(1);
        }
    }
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
    limbs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(decimal: Decimal) -> String {
        let mut out = Vec::new();
        decimal.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn digits_are_read_exactly_with_sign_point_and_exponent() {
        for (read, written) in [
            ("0", "0"),
            ("-0.00", "0.00"),
            ("1.50", "1.50"),
            ("-12345678901234567.8901", "-12345678901234567.8901"),
            ("1e3", "1000"),
            ("1.5E-3", "0.0015"),
            ("+7", "7"),
            ("100", "100"),
            ("00012", "12"),
            ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
            ("0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001"),
        ] {
            assert_eq!(text(Decimal::parse(read.as_bytes()).unwrap()), written, "{read}");
        }
        for bad in ["", "-", ".", "1.2.3", "abc", "1e", "0x1", "1_0", "NaN", "999999999999999999999999999999999999999", "1e99999999999"] {
            assert_eq!(Decimal::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn big_endian_bytes_are_extended_by_their_sign() {
        for (bytes, scale, written) in [
            (&[0x9c][..], 2, "-1.00"),
            (&[0xff], 2, "-0.01"),
            (&[0x31, 0x9c], 2, "127.00"),
            (&[0x32, 0x00], 2, "128.00"),
            (&[0xed, 0x29, 0x79], 2, "-12345.67"),
            (&[0], 2, "0.00"),
            (&[], 0, "0"),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe], 0, "-2"),
            (&[0x02, 0x54, 0x0b, 0xe3, 0xff], 2, "99999999.99"),
        ] {
            assert_eq!(text(Decimal::from_big_endian(bytes, scale).unwrap()), written);
        }
    }

    #[test]
    fn a_number_of_any_width_becomes_text() {
        let mut out = Vec::new();
        let mut bytes = vec![1];
        bytes.extend([0; 20]);
        write_big_endian(&bytes, 0, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "1461501637330902918203684832716283019655932542976");
        let mut out = Vec::new();
        let mut bytes = vec![0xff];
        bytes.extend([0; 20]);
        write_big_endian(&bytes, 3, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "-1461501637330902918203684832716283019655932542.976");
        let mut out = Vec::new();
        let mut bytes = vec![0x80];
        bytes.extend([0; 19]);
        write_big_endian(&bytes, 0, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "-730750818665451459101842416358141509827966271488");
        assert_eq!(write_big_endian(&vec![1; WIDE_MAX + 1], 0, &mut Vec::new()), None);
    }

    proptest! {
        #[test]
        fn text_and_bytes_agree(unscaled in -(10i128.pow(38) - 1)..10i128.pow(38), scale in 0i32..38) {
            let decimal = Decimal::from_big_endian(&unscaled.to_be_bytes(), scale).unwrap();
            let read = Decimal::parse(text(decimal).as_bytes()).unwrap();
            prop_assert_eq!(read.rescale(scale), Some(unscaled));
        }

        #[test]
        fn a_fit_keeps_the_value_or_says_no(unscaled in any::<i64>(), scale in 0i32..20, precision in 1u8..=38, to in 0u8..=38) {
            let decimal = Decimal { unscaled: i128::from(unscaled), scale };
            if let Some(fit) = decimal.fit(precision, to.min(precision)) {
                let back = Decimal { unscaled: fit, scale: i32::from(to.min(precision)) };
                prop_assert_eq!(back.rescale(scale), Some(i128::from(unscaled)));
            }
        }
    }
}
