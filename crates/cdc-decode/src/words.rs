//! Text by words: eight characters at a time, the first in the lowest byte.

/// The words of a window of text.
pub(crate) const WORDS: usize = 3;
/// The bytes of a window.
pub(crate) const WINDOW: usize = WORDS * 8;

/// Ten to the power of the index.
pub(crate) const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// Eight zeros as text.
pub(crate) const ZEROS: u64 = 0x3030_3030_3030_3030;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// A window as words.
#[inline(always)]
pub(crate) fn words(window: &[u8; WINDOW]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, chunk) in words.iter_mut().zip(window.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

/// Marks of the bytes above 9. A carry out of the first such byte may disturb the marks of those behind it.
#[inline(always)]
pub(crate) fn above_nine(values: u64) -> u64 {
    (values.wrapping_add(0x7676_7676_7676_7676) | values) & HIGH
}

/// How many of eight characters are digits up to the first that is none.
#[inline(always)]
pub(crate) fn digit_count(word: u64) -> usize {
    (above_nine(word ^ ZEROS).trailing_zeros() / 8) as usize
}

/// How many of eight characters are digits up to the first that is none, and their value.
#[inline(always)]
pub(crate) fn eight_digits(word: u64) -> (usize, u64) {
    let count = digit_count(word);
    // The digits moved to the end, zeros in front; with none of them nothing is left.
    let values = (word ^ ZEROS).checked_shl(64 - 8 * u32::try_from(count).unwrap_or(0)).unwrap_or(0);
    (count, value_of(values))
}

/// The number that eight digits make, each a byte of its value.
#[inline(always)]
pub(crate) fn value_of(values: u64) -> u64 {
    let pairs = pairs(values);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

/// Of eight digits, each a byte of its value: in each byte ten times its own and once the next; every other one is of use.
#[inline(always)]
pub(crate) fn pairs(values: u64) -> u64 {
    values.wrapping_mul(10).wrapping_add(values >> 8)
}

/// How many bytes from the start are neither quote, backslash nor control character.
#[inline]
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    for chunk in bytes.as_chunks::<8>().0 {
        let found = special(u64::from_le_bytes(*chunk));
        if found != 0 {
            return length + (found.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length + bytes[length..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}

/// How many of 16 bytes from the first are neither quote, backslash nor control character.
#[inline(always)]
pub(crate) fn plain_in(chunk: &[u8; 16]) -> usize {
    let both = u128::from_le_bytes(*chunk);
    let [first, second] = [special(both as u64), special((both >> 64) as u64)];
    // A text ends in either half as often as not.
    std::hint::select_unpredictable(first != 0, first.trailing_zeros() / 8, 8 + second.trailing_zeros() / 8) as usize
}

/// Whether two texts are equal; short ones, as names are, without a call.
#[inline(always)]
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        0..4 => one == other,
        4..8 => ends::<4>(one) == ends(other),
        8..16 => ends::<8>(one) == ends(other),
        16..=32 => ends::<16>(one) == ends(other),
        _ => one == other,
    }
}

/// The first and the last characters of a text, which overlap in a short one.
#[inline(always)]
fn ends<const LENGTH: usize>(text: &[u8]) -> (Option<&[u8; LENGTH]>, Option<&[u8; LENGTH]>) {
    (text.first_chunk(), text.last_chunk())
}

/// Marks in eight bytes, lowest first; the first mark is at a quote, backslash or control character, and none is before it.
/// Only marks above it may be echoes of a borrow.
#[inline(always)]
pub(crate) fn special(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let slash = word ^ (ONES * 0x5c);
    let found = (quote.wrapping_sub(ONES) & !quote) | (slash.wrapping_sub(ONES) & !slash) | (word.wrapping_sub(ONES * 0x20) & !word);
    found & HIGH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_texts_are_the_same_and_others_are_not(text in prop::collection::vec(any::<u8>(), 0..50), at in any::<prop::sample::Index>()) {
            prop_assert!(same(&text, &text.clone()));
            if !text.is_empty() {
                let mut other = text.clone();
                other[at.index(text.len())] ^= 1;
                prop_assert!(!same(&text, &other));
                prop_assert!(!same(&text, &text[1..]));
            }
        }

        #[test]
        fn digits_are_counted_and_valued(text in "[0-9]{0,8}[^0-9]{8}") {
            let word = u64::from_le_bytes(*text.as_bytes().first_chunk().unwrap());
            let digits: String = text.chars().take_while(char::is_ascii_digit).take(8).collect();
            prop_assert_eq!(eight_digits(word), (digits.len(), digits.parse().unwrap_or(0)));
        }

        #[test]
        fn the_fast_scan_finds_the_first_special_byte(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), Just(31), Just(32), Just(128)], 0..40)) {
            let slow = bytes.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
            prop_assert_eq!(plain_length(&bytes), slow);
            if let Some(chunk) = bytes.first_chunk() {
                prop_assert_eq!(plain_in(chunk), slow.min(16));
            }
        }
    }
}
