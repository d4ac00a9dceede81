//! Strings as Spark writes them: both quotes, escapes by backslash, raw ones, quotes doubled; and comments, which may hold comments.

use std::borrow::Cow;

/// The byte of the quote that closes what begins before `body`; two quotes do not, nor does, where there are `escapes`, one behind a
/// backslash. Raw strings and names have none.
///
/// ```
/// use tributary_sql_dialect::closing_quote;
///
/// assert_eq!(closing_quote(r"it\'s' and 'more'", '\'', true), Some(5));
/// assert_eq!(closing_quote(r"C:\' and 'more'", '\'', false), Some(3));
/// assert_eq!(closing_quote("open", '\'', true), None);
/// ```
pub fn closing_quote(body: &str, quote: char, escapes: bool) -> Option<usize> {
    let bytes = body.as_bytes();
    let quote = u8::try_from(quote).ok()?;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' if escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// What follows a backslash in a string: its meaning, and how many of its bytes that takes.
pub fn escape(after: &str) -> (Cow<'_, str>, usize) {
    let digits = |from: usize, count: usize, radix: u32| {
        let text = after.get(from..from + count)?;
        let all = text.chars().all(|sign| sign.is_digit(radix));
        let number = all.then(|| u32::from_str_radix(text, radix).ok()).flatten()?;
        Some((Cow::Owned(char::from_u32(number)?.to_string()), from + count))
    };
    let plain = |text: &'static str, length: usize| (Cow::Borrowed(text), length);
    match after.chars().next() {
        None => plain("\\", 0),
        Some('n') => plain("\n", 1),
        Some('t') => plain("\t", 1),
        Some('r') => plain("\r", 1),
        Some('b') => plain("\u{8}", 1),
        Some('Z') => plain("\u{1a}", 1),
        // patterns of LIKE keep their backslash
        Some('%') => plain("\\%", 1),
        Some('_') => plain("\\_", 1),
        Some('u') => digits(1, 4, 16).unwrap_or_else(|| plain("u", 1)),
        Some('U') => digits(1, 8, 16).unwrap_or_else(|| plain("U", 1)),
        Some('0') => digits(0, 3, 8).unwrap_or_else(|| plain("\0", 1)),
        Some('1') => digits(0, 3, 8).unwrap_or_else(|| plain("1", 1)),
        Some(other) => (Cow::Borrowed(&after[..other.len_utf8()]), other.len_utf8()),
    }
}

/// The byte behind the comment that a text begins with; none where it is left open.
///
/// ```
/// use tributary_sql_dialect::comment_end;
///
/// assert_eq!(comment_end("/* a /* b */ c */ d"), Some(17));
/// assert_eq!(comment_end("/* a /* b */"), None);
/// ```
pub fn comment_end(text: &str) -> Option<usize> {
    let (mut at, mut open) = (0, 0_usize);
    loop {
        match text.as_bytes().get(at..at + 2)? {
            b"/*" => (at, open) = (at + 2, open + 1),
            b"*/" if open <= 1 => return Some(at + 2),
            b"*/" => (at, open) = (at + 2, open - 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_and_what_follows_it_are_one_sign() {
        for (after, meaning, length) in [
            ("nx", "\n", 1),
            ("'x", "'", 1),
            ("%", r"\%", 1),
            ("u00e9x", "é", 5),
            ("u+041", "u", 1),
            ("U0001F600x", "\u{1F600}", 9),
            ("101x", "A", 3),
            ("012", "\n", 3),
            ("0x", "\0", 1),
            ("19", "1", 1),
            ("éx", "é", 2),
            ("", "\\", 0),
        ] {
            assert_eq!(escape(after), (Cow::Borrowed(meaning), length), "{after}");
        }
    }
}
