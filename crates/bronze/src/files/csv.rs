//! CSV, RFC 4180: records end at a line feed outside quotes; an empty field and an empty quoted field differ.

use std::borrow::Cow;

use tributary_specs::CsvOptions;

use super::piece::{CutFault, Piece};

/// The dialect as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub delimiter: u8,
    pub quote: u8,
}

impl Dialect {
    /// The dialect of the options, or what is wrong with them.
    pub(crate) fn new(options: &CsvOptions) -> Result<Self, String> {
        let ascii = |name: &str, value: char| match u8::try_from(value) {
            Ok(byte) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(byte),
            _ => Err(format!("csv {name} must be one ASCII character that is no line end")),
        };
        let dialect = Self { delimiter: ascii("delimiter", options.delimiter)?, quote: ascii("quote", options.quote)? };
        if dialect.delimiter == dialect.quote { Err("csv delimiter and quote are the same character".to_owned()) } else { Ok(dialect) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote inside a quoted field: it was the end, or half of a doubled one.
    QuoteSeen,
}

impl Place {
    /// The place after one more byte, which is no line end.
    fn after(self, byte: u8, dialect: Dialect) -> Self {
        match self {
            Self::FieldStart if byte == dialect.quote => Self::Quoted,
            Self::FieldStart | Self::Plain if byte == dialect.delimiter => Self::FieldStart,
            Self::FieldStart | Self::Plain => Self::Plain,
            Self::Quoted if byte == dialect.quote => Self::QuoteSeen,
            Self::Quoted => Self::Quoted,
            Self::QuoteSeen if byte == dialect.quote => Self::Quoted,
            Self::QuoteSeen if byte == dialect.delimiter => Self::FieldStart,
            Self::QuoteSeen => Self::Plain,
        }
    }

    /// The place after text without a line feed or a quote. A carriage return may be half of a line end, so it moves nothing.
    fn after_text(self, text: &[u8], dialect: Dialect) -> Self {
        match text.iter().rfind(|byte| **byte != b'\r') {
            Some(last) if self != Self::Quoted => {
                if *last == dialect.delimiter {
                    Self::FieldStart
                } else {
                    Self::Plain
                }
            }
            _ => self,
        }
    }
}

/// Cuts content into CSV records. Blank lines are no records. The last record needs no line end.
#[derive(Debug)]
pub(crate) struct CsvCutter {
    dialect: Dialect,
    longest: usize,
    /// Line the record begins on, and the line being read.
    record_line: i64,
    line: i64,
    start: u64,
    held: Vec<u8>,
    place: Place,
    overflowing: bool,
}

impl CsvCutter {
    /// As [`super::lines::LineCutter::new`].
    pub(crate) fn new(dialect: Dialect, longest: usize, start: u64) -> Self {
        Self { dialect, longest, record_line: 1, line: 1, start, held: Vec::new(), place: Place::FieldStart, overflowing: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Piece>) {
        let (mut begin, mut at) = (0, 0);
        while let Some(length) = memchr::memchr2(b'\n', self.dialect.quote, &bytes[at..]) {
            let next = at + length;
            self.place = self.place.after_text(&bytes[at..next], self.dialect);
            if bytes[next] != b'\n' {
                self.place = self.place.after(bytes[next], self.dialect);
            } else {
                self.line += 1;
                if self.place != Place::Quoted {
                    self.hold(&bytes[begin..next], out);
                    self.emit(None, out);
                    self.start += 1;
                    self.record_line = self.line;
                    begin = next + 1;
                }
            }
            at = next + 1;
        }
        self.place = self.place.after_text(&bytes[at..], self.dialect);
        self.hold(&bytes[begin..], out);
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<Piece>) {
        let fault = (self.place == Place::Quoted).then_some(CutFault::UnclosedQuote);
        self.emit(fault, out);
    }

    fn hold(&mut self, mut bytes: &[u8], out: &mut Vec<Piece>) {
        while self.held.len() + bytes.len() > self.longest {
            let (now, later) = bytes.split_at(self.longest - self.held.len());
            self.held.extend_from_slice(now);
            self.overflowing = true;
            self.cut(Some(CutFault::TooLong), out);
            bytes = later;
        }
        self.held.extend_from_slice(bytes);
    }

    fn emit(&mut self, fault: Option<CutFault>, out: &mut Vec<Piece>) {
        let fault = if self.overflowing { Some(CutFault::TooLong) } else { fault };
        self.cut(fault, out);
        self.overflowing = false;
        self.place = Place::FieldStart;
    }

    fn cut(&mut self, fault: Option<CutFault>, out: &mut Vec<Piece>) {
        let mut bytes = std::mem::take(&mut self.held);
        let begin = self.start;
        self.start += bytes.len() as u64;
        if bytes.last() == Some(&b'\r') && fault.is_none() {
            bytes.pop();
        }
        if !bytes.is_empty() {
            let end = begin + bytes.len() as u64;
            out.push(Piece { line: self.record_line, start: begin, end, bytes, fault });
        }
    }
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub text: Cow<'a, str>,
    /// It stood in quotes: then an empty text is an empty text, and the null text is text.
    pub quoted: bool,
}

/// The fields of one record.
///
/// # Errors
/// Text after a closing quote: the number of the field, counted from 1.
pub(crate) fn split(record: &str, dialect: Dialect) -> Result<Vec<Field<'_>>, usize> {
    let (delimiter, quote) = (char::from(dialect.delimiter), char::from(dialect.quote));
    let mut fields = Vec::new();
    let mut rest = record;
    loop {
        let (field, after) = match rest.strip_prefix(quote) {
            Some(inside) => quoted(inside, quote).ok_or(fields.len() + 1)?,
            None => {
                let end = rest.find(delimiter).unwrap_or(rest.len());
                (Field { text: Cow::Borrowed(&rest[..end]), quoted: false }, &rest[end..])
            }
        };
        fields.push(field);
        match after.strip_prefix(delimiter) {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err(fields.len()),
        }
    }
}

/// The field whose opening quote has been read, and what follows its closing quote.
fn quoted(inside: &str, quote: char) -> Option<(Field<'_>, &str)> {
    let mut from = 0;
    let mut doubled = false;
    loop {
        let at = from + inside[from..].find(quote)?;
        let after = &inside[at + quote.len_utf8()..];
        if after.starts_with(quote) {
            doubled = true;
            from = at + 2 * quote.len_utf8();
            continue;
        }
        let text = &inside[..at];
        let text = if doubled { Cow::Owned(text.replace(&format!("{quote}{quote}"), &quote.to_string())) } else { Cow::Borrowed(text) };
        return Some((Field { text, quoted: true }, after));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Dialect = Dialect { delimiter: b',', quote: b'"' };

    fn cut(content: &str, longest: usize, step: usize) -> Vec<Piece> {
        let mut cutter = CsvCutter::new(COMMA, longest, 0);
        let mut out = Vec::new();
        content.as_bytes().chunks(step).for_each(|chunk| cutter.push(chunk, &mut out));
        cutter.finish(&mut out);
        out
    }

    fn texts(content: &str) -> Vec<(i64, String, Option<CutFault>)> {
        let whole = cut(content, 1000, content.len().max(1));
        for step in 1..content.len() {
            assert_eq!(cut(content, 1000, step), whole, "step {step}");
        }
        whole.into_iter().map(|piece| (piece.line, String::from_utf8(piece.bytes).unwrap(), piece.fault)).collect()
    }

    fn fields(record: &str) -> Vec<(String, bool)> {
        split(record, COMMA).unwrap().into_iter().map(|field| (field.text.into_owned(), field.quoted)).collect()
    }

    #[test]
    fn a_line_break_inside_quotes_does_not_end_the_record() {
        let found = texts("id,note\n1,\"first\nsecond\"\r\n2,\"say \"\"hi\"\"\"\n3,\"a,b\"");
        let lines: Vec<_> = found.iter().map(|(line, text, fault)| (*line, text.as_str(), *fault)).collect();
        assert_eq!(
            lines,
            [(1, "id,note", None), (2, "1,\"first\nsecond\"", None), (4, "2,\"say \"\"hi\"\"\"", None), (5, "3,\"a,b\"", None)]
        );
    }

    #[test]
    fn an_unclosed_quote_takes_the_rest_of_the_file_and_says_so() {
        let found = texts("id,note\n1,ok\n2,\"open\n3,z\n");
        assert_eq!(found[1], (2, "1,ok".into(), None));
        assert_eq!(found[2], (3, "2,\"open\n3,z\n".into(), Some(CutFault::UnclosedQuote)));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_quoted_field_longer_than_a_record_may_be_keeps_all_its_bytes_in_pieces() {
        let pieces = cut("1,\"abcdefghijkl\"\n2,b\n", 8, 5);
        let long: Vec<u8> = pieces.iter().filter(|piece| piece.fault.is_some()).flat_map(|piece| piece.bytes.clone()).collect();
        assert_eq!(String::from_utf8(long).unwrap(), "1,\"abcdefghijkl\"");
        assert_eq!(pieces.last().map(|piece| (piece.line, piece.fault, piece.bytes.as_slice())), Some((2, None, b"2,b".as_slice())));
    }

    /// The records byte by byte: line, text and whether a quote is left open.
    fn byte_by_byte(content: &str) -> Vec<(i64, String, bool)> {
        let (mut place, mut record_line, mut line, mut record, mut all) = (Place::FieldStart, 1, 1, String::new(), Vec::new());
        for letter in content.chars() {
            if letter == '\n' {
                line += 1;
                if place != Place::Quoted {
                    let text = record.strip_suffix('\r').unwrap_or(&record).to_owned();
                    all.push((record_line, text, false));
                    record.clear();
                    (place, record_line) = (Place::FieldStart, line);
                    continue;
                }
            } else if letter != '\r' || place == Place::Quoted {
                place = place.after(u8::try_from(letter).unwrap(), COMMA);
            }
            record.push(letter);
        }
        let open = place == Place::Quoted;
        let text = if open { record.as_str() } else { record.strip_suffix('\r').unwrap_or(&record) };
        all.push((record_line, text.to_owned(), open));
        all.retain(|(_, text, _)| !text.is_empty());
        all
    }

    proptest::proptest! {
        #[test]
        fn records_end_where_a_walk_byte_by_byte_ends_them(content in "[a,\"\r\n]{0,24}", step in 1_usize..8) {
            let found = cut(&content, 1000, step).into_iter();
            let found: Vec<_> = found.map(|piece| (piece.line, String::from_utf8(piece.bytes).unwrap(), piece.fault.is_some())).collect();
            proptest::prop_assert_eq!(found, byte_by_byte(&content));
        }
    }

    #[test]
    fn an_empty_field_and_an_empty_quoted_field_differ() {
        assert_eq!(fields("1,\"\","), [("1".into(), false), (String::new(), true), (String::new(), false)]);
        assert_eq!(fields("3,x,\" y \""), [("3".into(), false), ("x".into(), false), (" y ".into(), true)]);
        assert_eq!(fields("\"say \"\"hi\"\"\""), [("say \"hi\"".into(), true)]);
    }

    #[test]
    fn a_quote_inside_an_unquoted_field_is_text() {
        assert_eq!(fields("5\",6"), [("5\"".into(), false), ("6".into(), false)]);
    }

    #[test]
    fn text_after_a_closing_quote_names_the_field() {
        assert_eq!(split("1,\"a\"b,2", COMMA), Err(2));
    }
}
