//! Bytes and exact numbers that are written as base64 or in another form of text.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::number::Decimal;
use crate::placeholder::unhex;
use crate::scalar::Scalar;
use crate::wire::Form;

const PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent).with_decode_allow_trailing_bits(true);
const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, PADDING);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, PADDING);

/// Bytes of a text in one of the forms.
pub(crate) fn decode(form: Form, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    match form {
        Form::Base64 => BASE64.decode_vec(text, out).ok()?,
        Form::Base64Url => BASE64_URL.decode_vec(text, out).ok()?,
        Form::Hex => *out = unhex(text)?,
        Form::Bits => {
            BASE64.decode_vec(text, out).ok()?;
            out.reverse();
        }
    }
    Some(())
}

/// A number from base64 of its unscaled integer.
pub(crate) fn unscaled<'s>(text: &[u8], scale: i32, out: &'s mut Vec<u8>) -> Option<Scalar<'s>> {
    if let Some(unscaled) = short_base64(text) {
        return Some(Scalar::Decimal(Decimal { unscaled: i128::from(unscaled), scale }));
    }
    out.clear();
    BASE64.decode_vec(text, out).ok()?;
    Some(match Decimal::from_big_endian(out, scale) {
        Some(decimal) => Scalar::Decimal(decimal),
        None => Scalar::Wide { unscaled: out, scale },
    })
}

/// The value of each letter of base64's standard alphabet, 64 for padding, 255 for what is none.
const BASE64_VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    let mut at = 0;
    while at < letters.len() {
        values[letters[at] as usize] = at as u8;
        at += 1;
    }
    values
};

/// An integer of at most 48 bits from padded base64 of its big-endian bytes; `None` = longer, or of another form.
#[inline(always)]
pub(crate) fn short_base64(text: &[u8]) -> Option<i64> {
    match text.len() {
        4 => padded_base64(text.first_chunk::<4>()?),
        8 => padded_base64(text.first_chunk::<8>()?),
        _ => None,
    }
}

#[inline(always)]
fn padded_base64<const LETTERS: usize>(text: &[u8; LETTERS]) -> Option<i64> {
    let (mut bits, mut marks, mut padding) = (0, 0, 0);
    for (at, letter) in text.iter().enumerate() {
        let value = BASE64_VALUES[usize::from(*letter)];
        bits = bits << 6 | u64::from(value & 63);
        let is_padding = u32::from(value >> 6 & 1);
        // Padding stands at the last two places or the last one.
        marks |= value & 0x80 | u8::from(is_padding == 1 && at + 2 < LETTERS) | u8::from(is_padding < padding);
        padding += is_padding;
    }
    if marks != 0 {
        return None;
    }
    // What the last letter carries beyond a byte is shifted out, too.
    Some((bits << (64 - 6 * LETTERS)).cast_signed() >> (64 - 6 * LETTERS as u32 + 8 * padding))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_short_number_in_base64_is_what_a_long_one_would_be(text in "[A-Za-z0-9+/]{0,8}={0,3}[A-Z]?", bytes in prop::collection::vec(any::<u8>(), 1..8)) {
            for text in [text, BASE64.encode(bytes)] {
                let mut decoded = Vec::new();
                let padded = text.len() % 4 == 0;
                let expected = BASE64.decode_vec(&text, &mut decoded).ok().filter(|()| padded && matches!(text.len(), 4 | 8));
                let expected = expected.and_then(|()| Decimal::from_big_endian(&decoded, 0)).map(|decimal| decimal.unscaled);
                prop_assert_eq!(short_base64(text.as_bytes()).map(i128::from), expected, "{}", text);
            }
        }
    }
}
