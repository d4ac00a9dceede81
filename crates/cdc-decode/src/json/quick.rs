//! Ways of reading what a connector writes nearly always: text without blanks, short numbers, strings without escapes, keys in the
//! order expected. Each takes what it is for, if it comes at once, and else nothing; the caller then reads by the grammar.

use crate::json::Cursor;
use crate::json::text::short_escape;
use crate::words::{TENS, WINDOW, ZEROS, above_nine, digit_count, eight_digits, plain_in, same, special, value_of, words};

impl<'a> Cursor<'a> {
    /// Takes a whole number of at most 18 digits that a member or element ends behind. `None` = something else, nothing taken.
    #[inline(always)]
    pub(crate) fn small_integer(&mut self) -> Option<i64> {
        let negative = self.bytes.get(self.at) == Some(&b'-');
        let start = self.at + usize::from(negative);
        let rest = self.bytes.get(start..)?;
        let word = u64::from_le_bytes(*rest.first_chunk()?);
        let count = digit_count(word);
        let (count, magnitude) = match count {
            0 => return None,
            1..8 if ends(word >> (8 * count)) => (count, value_of((word ^ ZEROS) << (64 - 8 * count))),
            1..8 => return None,
            _ => longer_integer(rest)?,
        };
        if word as u8 == b'0' && count > 1 {
            return None;
        }
        self.at = start + count;
        let magnitude = magnitude.cast_signed();
        Some(if negative { -magnitude } else { magnitude })
    }

    /// Takes a string without escapes. `None` = something else, nothing taken.
    #[inline(always)]
    pub(crate) fn plain_text(&mut self) -> Option<&'a [u8]> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        let start = self.at + 1;
        let mut end = start;
        loop {
            let word = u64::from_le_bytes(*self.bytes.get(end..)?.first_chunk()?);
            let found = special(word);
            if found == 0 {
                end += 8;
                continue;
            }
            let bit = found.trailing_zeros() & !7;
            if (word >> bit) as u8 != b'"' {
                return None;
            }
            end += (bit / 8) as usize;
            break;
        }
        self.at = end + 1;
        self.bytes.get(start..end)
    }

    /// Takes a string of exactly so many characters, whatever they are. `None` = it is not so long, nothing taken.
    #[inline(always)]
    pub(crate) fn text_of_length<const LENGTH: usize>(&mut self) -> Option<&'a [u8; LENGTH]> {
        let rest = self.bytes.get(self.at..)?;
        if rest.first() != Some(&b'"') || rest.get(LENGTH + 1) != Some(&b'"') {
            return None;
        }
        let text = rest.get(1..)?.first_chunk::<LENGTH>()?;
        self.at += LENGTH + 2;
        Some(text)
    }

    /// Takes a string with none but the short escapes and appends it. `false` = something else, nothing taken, but `out` may
    /// have grown.
    #[inline(always)]
    pub(crate) fn copy_text(&mut self, out: &mut Vec<u8>) -> bool {
        if self.bytes.get(self.at) != Some(&b'"') {
            return false;
        }
        let mut end = self.at + 1;
        loop {
            // Whole chunks are copied, what is too much is cut off again.
            let Some(chunk) = self.bytes.get(end..).and_then(<[u8]>::first_chunk::<16>) else { return false };
            let plain = plain_in(chunk);
            out.extend_from_slice(chunk);
            end += plain;
            let Some(found) = chunk.get(plain) else { continue };
            out.truncate(out.len() - chunk.len() + plain);
            match found {
                b'"' => break,
                b'\\' => {
                    let Some(meant) = self.bytes.get(end + 1).and_then(|letter| short_escape(*letter)) else { return false };
                    out.push(meant);
                    end += 2;
                }
                _ => return false,
            }
        }
        self.at = end + 1;
        true
    }

    /// Takes a whole number of exactly so many digits, at most [`DIGITS_MAX`], no sign; what stands behind it is not looked at.
    /// `None` = something else, nothing taken.
    #[inline(always)]
    pub(crate) fn digits(&mut self, count: usize) -> Option<Digits<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let text = rest.get(..count)?;
        let values = |eight: &[u8; 8]| u64::from_le_bytes(*eight) ^ ZEROS;
        let first = values(rest.first_chunk()?);
        let groups = match count {
            1..=8 => [0, 0, first << (64 - 8 * count)],
            9..=16 => [0, first << (128 - 8 * count), values(text.last_chunk()?)],
            17..=DIGITS_MAX => [first << (192 - 8 * count), values(text.get(count - 16..)?.first_chunk()?), values(text.last_chunk()?)],
            _ => return None,
        };
        let [top, high, low] = groups;
        let leading_zero = text.first() == Some(&b'0') && count > 1;
        if above_nine(top) | above_nine(high) | above_nine(low) != 0 || leading_zero {
            return None;
        }
        self.at += count;
        Some(Digits { text, groups })
    }

    /// Takes a string of one letter, if it comes.
    #[inline(always)]
    pub(crate) fn letter(&mut self) -> Option<&'a [u8]> {
        let [b'"', letter, b'"', ..] = self.bytes.get(self.at..)? else { return None };
        if !letter.is_ascii_alphabetic() {
            return None;
        }
        self.at += 3;
        Some(std::slice::from_ref(letter))
    }

    /// Takes what is expected, if it comes.
    #[inline(always)]
    pub(crate) fn literal(&mut self, text: &[u8]) -> bool {
        let here = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(text));
        if here {
            self.at += text.len();
        }
        here
    }

    /// Takes what is expected up to its last byte, a brace that an object begins with, if it comes.
    #[inline(always)]
    pub(crate) fn literal_object(&mut self, text: &[u8]) -> bool {
        let here = self.literal(text);
        self.at -= usize::from(here);
        here
    }

    /// Takes what is expected, if it comes; for texts of no fixed length that are mostly longer than a word.
    #[inline(always)]
    pub(crate) fn literal_run(&mut self, text: &[u8]) -> bool {
        const BLOCK: usize = 16;
        let Some(here) = self.bytes.get(self.at..self.at + text.len()) else { return false };
        let same = match (here.last_chunk::<BLOCK>(), text.last_chunk::<BLOCK>()) {
            (Some(last), Some(expected)) => {
                let differing = |one: &[u8; BLOCK], other: &[u8; BLOCK]| u128::from_le_bytes(*one) ^ u128::from_le_bytes(*other);
                let blocks = here.as_chunks::<BLOCK>().0.iter().zip(text.as_chunks::<BLOCK>().0);
                blocks.fold(differing(last, expected), |all, (block, expected)| all | differing(block, expected)) == 0
            }
            _ => same(here, text),
        };
        self.at += if same { text.len() } else { 0 };
        same
    }

    /// Takes a short number, a string without escapes or `null`. `false` = something else, nothing taken.
    #[inline(always)]
    pub(crate) fn skip_plain(&mut self) -> bool {
        match self.bytes.get(self.at) {
            Some(b'"') => self.plain_text().is_some(),
            Some(b'1'..=b'9') => {
                let mut end = self.at;
                while let Some(chunk) = self.bytes.get(end..).and_then(<[u8]>::first_chunk) {
                    let count = digit_count(u64::from_le_bytes(*chunk));
                    end += count;
                    if count < 8 {
                        break;
                    }
                }
                while let Some(b'0'..=b'9') = self.bytes.get(end) {
                    end += 1;
                }
                let ends = matches!(self.bytes.get(end), Some(b',' | b'}' | b']'));
                if ends {
                    self.at = end;
                }
                ends
            }
            Some(b'n') => self.word(b"null").is_ok(),
            _ => false,
        }
    }

    /// Takes what is expected, byte by byte, if it comes.
    #[inline(always)]
    pub(crate) fn expect(&mut self, token: &Token) -> bool {
        let here = token.is_at(self.bytes, self.at);
        if here {
            self.at += token.bytes.len();
        }
        here
    }

    /// Whether a byte comes at once.
    #[inline(always)]
    pub(crate) fn is_at(&self, byte: u8) -> bool {
        self.bytes.get(self.at) == Some(&byte)
    }

    /// Takes one byte, if it comes at once.
    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) -> bool {
        let here = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(here);
        here
    }

    /// How many bytes from here on are those of another text from `from` on.
    #[inline]
    pub(crate) fn common(&self, other: &[u8], from: usize) -> usize {
        const BLOCK: usize = 16;
        let (mine, theirs) = (self.bytes.get(self.at..).unwrap_or_default(), other.get(from..).unwrap_or_default());
        let blocks = mine.as_chunks::<BLOCK>().0.iter().zip(theirs.as_chunks::<BLOCK>().0);
        let same = BLOCK * blocks.take_while(|(mine, theirs)| mine == theirs).count();
        let (mine, theirs) = (mine.get(same..).unwrap_or_default(), theirs.get(same..).unwrap_or_default());
        match (mine.first_chunk::<BLOCK>(), theirs.first_chunk::<BLOCK>()) {
            (Some(mine), Some(theirs)) => {
                let differing = u128::from_le_bytes(*mine) ^ u128::from_le_bytes(*theirs);
                same + (differing.trailing_zeros() / 8) as usize
            }
            _ => same + mine.iter().zip(theirs).take_while(|(mine, theirs)| mine == theirs).count(),
        }
    }

    /// The same text, so many bytes ahead.
    #[inline(always)]
    pub(crate) fn ahead(&self, bytes: usize) -> Self {
        Self { bytes: self.bytes, at: self.at + bytes }
    }

    /// Goes on by so many bytes that have been looked at.
    #[inline(always)]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }
}

/// Whether a member or element ends at the first of these characters.
#[inline(always)]
fn ends(word: u64) -> bool {
    matches!(word as u8, b',' | b'}' | b']')
}

/// A whole number of 8 to 18 digits at the start of a text, if a member or element ends behind it: how many, and its value.
#[inline]
fn longer_integer(text: &[u8]) -> Option<(usize, u64)> {
    let window: &[u8; WINDOW] = text.first_chunk()?;
    let [first, second, third] = words(window);
    let (more, low) = eight_digits(second);
    let magnitude = eight_digits(first).1 * TENS[more] + low;
    if more < 8 {
        return ends(second >> (8 * more)).then_some((8 + more, magnitude));
    }
    let (more, low) = eight_digits(third);
    (more <= 2 && ends(third >> (8 * more))).then(|| (16 + more, magnitude * TENS[more] + low))
}

/// The most digits of [`Digits`].
pub(crate) const DIGITS_MAX: usize = 19;

/// A whole number without sign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digits<'a> {
    text: &'a [u8],
    /// Its digits by their values, eight at a time, zeros in front.
    groups: [u64; 3],
}

impl<'a> Digits<'a> {
    /// As it was written.
    #[inline(always)]
    pub(crate) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The number.
    #[inline(always)]
    pub(crate) fn value(&self) -> u64 {
        let [top, high, low] = self.groups;
        if self.text.len() <= 16 {
            return value_of(high) * TENS[8] + value_of(low);
        }
        // At most 19 digits: less than 2^64.
        (value_of(top) * TENS[8] + value_of(high)) * TENS[8] + value_of(low)
    }

    /// The number, if it is an `i64`.
    #[inline(always)]
    pub(crate) fn signed(&self) -> Option<i64> {
        i64::try_from(self.value()).ok()
    }
}

/// How many digits a text is that is a whole number without sign, of as many as [`Digits`] can have; 0 = it is something else.
pub(crate) fn digits_in(text: &[u8]) -> usize {
    let is_number = text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0'));
    if is_number && text.len() <= DIGITS_MAX { text.len() } else { 0 }
}

/// A key in JSON text without blanks, with its quotes, its colon and what stands before it, made for being compared quickly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    bytes: Vec<u8>,
    /// Its first 16 bytes, zeros behind it.
    words: [u64; 2],
    /// The bits of `words` that count.
    masks: [u64; 2],
}

/// The bytes of a token that two words hold.
const HEAD: usize = 16;

impl Token {
    /// The token of a key whose inside, escapes included, is this: quotes and colon added, and in front what comes before it,
    /// an opening brace or a comma.
    pub(crate) fn of_key(first: bool, raw: &[u8]) -> Self {
        Self::new([if first { b"{\"" } else { b",\"" }, raw, b"\":"].concat())
    }

    fn new(bytes: Vec<u8>) -> Self {
        let mut window = [0; WINDOW];
        let mut mask = [0; WINDOW];
        for (at, byte) in bytes.iter().enumerate().take(HEAD) {
            window[at] = *byte;
            mask[at] = 0xff;
        }
        let ([first, second, _], [first_mask, second_mask, _]) = (words(&window), words(&mask));
        Self { words: [first, second], masks: [first_mask, second_mask], bytes }
    }

    #[inline(always)]
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let Some(window) = text.get(at..).and_then(<[u8]>::first_chunk::<WINDOW>) else { return self.is_at_end(text, at) };
        let here = words(window);
        let mut differing = 0;
        for ((here, mask), word) in here.iter().zip(&self.masks).zip(&self.words) {
            differing |= (here & mask) ^ word;
        }
        differing == 0 && (self.bytes.len() <= HEAD || self.is_at_end(text, at))
    }

    fn is_at_end(&self, text: &[u8], at: usize) -> bool {
        text.get(at..).is_some_and(|rest| rest.starts_with(&self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_taken_as_the_grammar_takes_a_number(text in "-?[0-9]{0,20}[,}\\]]", shorter in 0usize..2) {
            let padded = format!("{text}{}", " ".repeat(WINDOW));
            let count = text.len() - 1;
            let mut cursor = Cursor::new(padded.as_bytes());
            let mut general = Cursor::new(padded.as_bytes());
            let expected = general.number().ok().filter(|_| !text.starts_with('-') && count <= DIGITS_MAX);
            prop_assert_eq!(digits_in(&text.as_bytes()[..count]), if expected.is_some() { count } else { 0 });
            match (cursor.digits(count), expected) {
                (Some(digits), Some(number)) => {
                    prop_assert_eq!((digits.text(), digits.signed(), cursor.at()), (number.raw, number.integer, count));
                    if let Some(fewer) = count.checked_sub(shorter).filter(|fewer| *fewer > 0) {
                        prop_assert_eq!(Cursor::new(padded.as_bytes()).digits(fewer).map(|digits| digits.text()), number.raw.get(..fewer));
                    }
                }
                (None, None) => prop_assert_eq!(cursor.at(), 0),
                (taken, expected) => prop_assert!(false, "{:?} {:?}", taken, expected),
            }
        }

        #[test]
        fn a_token_is_found_where_its_every_byte_stands(key in "[a-c]{0,30}", at in any::<prop::sample::Index>(), behind in "[ -~]{0,40}") {
            let token = Token::of_key(false, key.as_bytes());
            let text = format!(",\"{key}\":{behind}");
            prop_assert!(Cursor::new(text.as_bytes()).expect(&token));
            let mut other = text.into_bytes();
            other[at.index(token.bytes.len())] ^= 1;
            prop_assert!(!Cursor::new(&other).expect(&token));
        }
    }
}
