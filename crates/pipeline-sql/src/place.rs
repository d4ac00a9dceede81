//! From bytes of a text to lines and columns.

use tributary_specs::Place;

/// Bytes between two places whose characters have been counted.
const STRIDE: usize = 1024;

/// The lines of a file, and how many characters come before every so many bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    file: String,
    text: String,
    starts: Vec<usize>,
    counted: Vec<usize>,
}

impl Lines {
    pub(crate) fn new(file: &str, text: &str) -> Self {
        let starts = std::iter::once(0).chain(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1));
        let mut counted = vec![0];
        for stride in text.as_bytes().chunks(STRIDE) {
            let before = counted.last().copied().unwrap_or_default();
            counted.push(before + characters(stride));
        }
        Self { file: file.to_owned(), text: text.to_owned(), starts: starts.collect(), counted }
    }

    /// Line and column of a byte, both counted from 1, columns in characters.
    pub(crate) fn place(&self, at: usize) -> Place {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        Place { file: self.file.clone(), line, column: self.before(at) - self.before(start) + 1 }
    }

    /// The byte at a line and a column.
    pub(crate) fn byte(&self, line: usize, column: usize) -> usize {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let rest = &self.text[start..];
        start + rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at)
    }

    /// The text from a byte on.
    pub(crate) fn text_from(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }

    fn before(&self, at: usize) -> usize {
        let stride = at / STRIDE;
        let rest = self.text.as_bytes().get(stride * STRIDE..at).unwrap_or_default();
        self.counted.get(stride).copied().unwrap_or_default() + characters(rest)
    }
}

/// Characters of UTF-8 that begin in these bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_newlines() {
        let lines = Lines::new("a.sql", "é\tx\r\n  y\n");
        let of = |at| (lines.place(at).line, lines.place(at).column);
        assert_eq!([of(0), of(2), of(3), of(8)], [(1, 1), (1, 2), (1, 3), (2, 3)]);
        assert_eq!(of(1000), (3, 1));
    }

    #[test]
    fn a_long_line_of_any_letters_is_counted() {
        let text = "ö".repeat(5000);
        let lines = Lines::new("a.sql", &text);
        assert_eq!(lines.place(2 * 4321).column, 4322);
    }
}
