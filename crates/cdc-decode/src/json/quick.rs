//! Ways of reading what a connector writes nearly always: text without blanks, short numbers, strings without escapes, keys in the
//! order expected. Each takes what it is for, if it comes at once, and else nothing; the caller then reads by the grammar.

use crate::json::Cursor;
use crate::json::text::short_escape;
use crate::words::{TENS, WINDOW, digit_count, eight_digits, special, words};

impl<'a> Cursor<'a> {
    /// Takes a whole number of at most 18 digits that a member or element ends behind. `None` = something else, nothing taken.
    #[inline(always)]
    pub(crate) fn small_integer(&mut self) -> Option<i64> {
        let negative = self.bytes.get(self.at) == Some(&b'-');
        let start = self.at + usize::from(negative);
        let window: &[u8; WINDOW] = self.bytes.get(start..)?.first_chunk()?;
        let [first, second, third] = words(window);
        let (mut count, mut magnitude) = eight_digits(first);
        let mut behind = first >> (8 * count.min(7));
        if count == 8 {
            let (more, value) = eight_digits(second);
            magnitude = magnitude * TENS[more] + value;
            behind = second >> (8 * more.min(7));
            count += more;
            if more == 8 {
                let (more, value) = eight_digits(third);
                if more > 2 {
                    return None;
                }
                magnitude = magnitude * TENS[more] + value;
                behind = third >> (8 * more);
                count += more;
            }
        }
        let leading_zero = first as u8 == b'0' && count != 1;
        if count == 0 || leading_zero || !matches!(behind as u8, b',' | b'}' | b']') {
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
            let Some(chunk) = self.bytes.get(end..).and_then(<[u8]>::first_chunk::<8>) else { return false };
            let word = u64::from_le_bytes(*chunk);
            let found = special(word);
            // Whole chunks are copied, what is too much is cut off again.
            out.extend_from_slice(chunk);
            if found == 0 {
                end += 8;
                continue;
            }
            let bit = found.trailing_zeros() & !7;
            let length = (bit / 8) as usize;
            out.truncate(out.len() - 8 + length);
            end += length;
            match (word >> bit) as u8 {
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

    /// Takes digits of a number of at most 16 and what is expected behind them, up to eight bytes.
    #[inline(always)]
    pub(crate) fn digits_before(&mut self, behind: &[u8]) -> Option<u64> {
        let window: &[u8; WINDOW] = self.bytes.get(self.at..)?.first_chunk()?;
        let [first, second, _] = words(window);
        let (mut count, mut value) = eight_digits(first);
        if count == 8 {
            let (more, low) = eight_digits(second);
            value = value * TENS[more] + low;
            count += more;
        }
        if !matches!(count, 1..16) || !self.bytes.get(self.at + count..)?.starts_with(behind) {
            return None;
        }
        self.at += count + behind.len();
        Some(value)
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

    /// Takes what is expected, if it comes; for texts of no fixed length that are mostly longer than a word.
    #[inline(always)]
    pub(crate) fn literal_run(&mut self, text: &[u8]) -> bool {
        const BLOCK: usize = 16;
        let Some(here) = self.bytes.get(self.at..self.at + text.len()) else { return false };
        let same = match (here.last_chunk::<BLOCK>(), text.last_chunk::<BLOCK>()) {
            (Some(last), Some(expected)) => {
                let blocks = here.as_chunks::<BLOCK>().0.iter().zip(text.as_chunks::<BLOCK>().0);
                blocks.fold(last == expected, |same, (block, expected)| same & (block == expected))
            }
            _ => here == text,
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
