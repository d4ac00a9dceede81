//! A first look at a text, before it is read: how much there is of it, and where its raw strings are.

use std::borrow::Cow;
use std::ops::Range;

use tributary_lake::datafusion::sql::sqlparser::tokenizer::{Location, Span};
use tributary_sql_dialect::{closing_quote, comment_end};

use crate::Error;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Letters, digits and what stands between them in numbers.
    Word,
    /// A string, or a name in quotes.
    Quoted,
    /// `r'…'`, in which a backslash is a backslash.
    Raw,
    Comment,
    Blank,
    /// A bracket, a comma, a semicolon.
    Mark,
    /// Signs of operators.
    Signs,
}

impl Part {
    /// Words and signs that it is at least.
    fn weight(self, bytes: usize) -> usize {
        // the longest operator has four signs
        if self == Self::Signs { bytes.div_ceil(4) } else { 1 }
    }
}

/// The parts of a text, one after the other; what is left open goes to its end.
fn parts(text: &str) -> impl Iterator<Item = (Part, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = *bytes.get(at)?;
        let start = at;
        let part = match first {
            b'-' if bytes[at..].starts_with(b"--") => {
                at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count();
                Part::Comment
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                at += comment_end(&text[at..]).unwrap_or(text.len() - at);
                Part::Comment
            }
            b'\'' | b'"' | b'`' => {
                at = after_quote(text, at, first, first != b'`');
                Part::Quoted
            }
            b'r' | b'R' if matches!(bytes.get(at + 1), Some(b'\'' | b'"')) => {
                at = after_quote(text, at + 1, bytes[at + 1], false);
                Part::Raw
            }
            byte if is_of_word(byte) => {
                at += bytes[at..].iter().take_while(|byte| is_of_word(**byte)).count();
                Part::Word
            }
            byte if byte.is_ascii_whitespace() => {
                // the end of a line may be two signs
                at += if bytes[at..].starts_with(b"\r\n") { 2 } else { 1 };
                Part::Blank
            }
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b';' => {
                at += 1;
                Part::Mark
            }
            _ => {
                let goes_on = |byte: &&u8| !is_of_word(**byte) && !byte.is_ascii_whitespace() && !b"()[]{},;'\"`-/".contains(byte);
                at += 1 + bytes[at + 1..].iter().take_while(goes_on).count();
                Part::Signs
            }
        };
        Some((part, start..at))
    })
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}

/// Behind what begins with a quote.
fn after_quote(text: &str, start: usize, quote: u8, escapes: bool) -> usize {
    let body = start + 1;
    closing_quote(&text[body..], char::from(quote), escapes).map_or(text.len(), |end| body + end + 1)
}

/// Refuses a text that is sure to have more words and signs than `most`, before memory is taken for them.
///
/// # Errors
/// [`Error::Refused`] with the place where that is sure.
pub(crate) fn check(text: &str, most: usize) -> Result<(), Error> {
    if text.len() <= most {
        return Ok(());
    }
    // `1e-5` is one word
    let sure = most.saturating_mul(2);
    let mut weight = 0;
    for (part, range) in parts(text) {
        weight += part.weight(range.len());
        if weight > sure {
            return Err(too_many(most, place(text, range.start)));
        }
    }
    Ok(())
}

/// What is said of a text of too many words.
pub(crate) fn too_many(most: usize, place: Span) -> Error {
    Error::refused(format!("a text of more than {most} words and signs"), place)
}

fn place(text: &str, at: usize) -> Span {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let place = Location { line: line as u64, column: before[line_start..].chars().count() as u64 + 1 };
    Span::new(place, place)
}

/// A sign in place of the backslashes of raw strings, and the text with it: to the tokenizer a backslash before a quote is one sign with
/// it. None where there are no such strings.
pub(crate) fn masked(text: &str) -> Option<(String, char)> {
    let may_be = ["r'", "R'", "r\"", "R\""].iter().any(|start| text.contains(start));
    if !may_be || !text.contains('\\') {
        return None;
    }
    let sign = ('\u{f0000}'..='\u{f00ff}').find(|sign| !text.contains(*sign))?;
    let mut told = String::with_capacity(text.len());
    for (part, range) in parts(text) {
        let here = text.get(range).unwrap_or_default();
        let here = if part == Part::Raw { Cow::Owned(here.replace('\\', sign.encode_utf8(&mut [0; 4]))) } else { Cow::Borrowed(here) };
        told.push_str(&here);
    }
    (told.chars().count() == text.chars().count()).then_some((told, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_they_are_to_the_tokenizer() {
        use Part::{Blank, Comment, Mark, Quoted, Raw, Signs, Word};
        for (text, told) in [
            ("select 1.5e3", vec![Word, Blank, Word]),
            (r"'it\'s' 'it''s'", vec![Quoted, Blank, Quoted]),
            (r"r'\' R'a''b'", vec![Raw, Blank, Raw]),
            (r"bar'x'", vec![Word, Quoted]),
            ("a--b\n/*c/*d*/e*/f", vec![Word, Comment, Blank, Comment, Word]),
            ("f(a,`b``c`)", vec![Word, Mark, Word, Mark, Quoted, Mark]),
            ("a<=>b-1/2", vec![Word, Signs, Word, Signs, Word, Signs, Word]),
            ("'open", vec![Quoted]),
            ("é", vec![Signs]),
        ] {
            let found: Vec<(Part, Range<usize>)> = parts(text).collect();
            assert_eq!(found.iter().map(|(part, _)| *part).collect::<Vec<_>>(), told, "{text}");
            assert_eq!(found.last().map(|(_, range)| range.end), Some(text.len()), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_has_fewer_words_than_are_counted(text in "[a-c0-9 .,()'\"`rR\\\\\n<=>+*/;:-]{0,40}") {
            let tokens = crate::parse::words(&text, usize::MAX);
            let weight: usize = parts(&text).map(|(part, range)| part.weight(range.len())).sum();
            if let Ok(tokens) = tokens {
                proptest::prop_assert!(weight <= 2 * tokens.len() + 1, "{} for {}: {:?}", weight, tokens.len(), text);
            }
        }
    }
}
