//! Lines: a record ends at a line feed, wherever it stands.

use super::piece::{CutFault, Piece};

/// Cuts content into lines. Blank lines are no records. The last line needs no line end.
#[derive(Debug)]
pub(crate) struct LineCutter {
    longest: usize,
    line: i64,
    start: u64,
    held: Vec<u8>,
    overflowing: bool,
}

impl LineCutter {
    /// `longest` bounds one record in bytes; `start` is where the content begins (after a byte order mark).
    pub(crate) fn new(longest: usize, start: u64) -> Self {
        Self { longest, line: 1, start, held: Vec::new(), overflowing: false }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Piece>) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            self.hold(&bytes[..at], out);
            self.emit(out);
            self.start += 1;
            self.line += 1;
            bytes = &bytes[at + 1..];
        }
        self.hold(bytes, out);
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<Piece>) {
        self.emit(out);
    }

    fn hold(&mut self, mut bytes: &[u8], out: &mut Vec<Piece>) {
        while self.held.len() + bytes.len() > self.longest {
            let (now, later) = bytes.split_at(self.longest - self.held.len());
            self.held.extend_from_slice(now);
            self.overflowing = true;
            self.cut(out);
            bytes = later;
        }
        self.held.extend_from_slice(bytes);
    }

    /// Ends the record, and the overflow with it.
    fn emit(&mut self, out: &mut Vec<Piece>) {
        self.cut(out);
        self.overflowing = false;
    }

    fn cut(&mut self, out: &mut Vec<Piece>) {
        let mut bytes = std::mem::take(&mut self.held);
        let begin = self.start;
        self.start += bytes.len() as u64;
        if bytes.last() == Some(&b'\r') && !self.overflowing {
            bytes.pop();
        }
        if bytes.iter().all(u8::is_ascii_whitespace) && !self.overflowing || bytes.is_empty() {
            return;
        }
        let end = begin + bytes.len() as u64;
        out.push(Piece { line: self.line, start: begin, end, bytes, fault: self.overflowing.then_some(CutFault::TooLong) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(content: &[u8], longest: usize, step: usize) -> Vec<Piece> {
        let mut cutter = LineCutter::new(longest, 0);
        let mut out = Vec::new();
        content.chunks(step).for_each(|chunk| cutter.push(chunk, &mut out));
        cutter.finish(&mut out);
        out
    }

    #[test]
    fn lines_are_the_same_however_the_content_arrives() {
        let content = b"{\"a\":1}\r\n\n  \n{\"b\":2}\nlast";
        let whole = cut(content, 100, 100);
        let texts: Vec<_> = whole.iter().map(|piece| (piece.line, piece.start, piece.end, piece.bytes.as_slice())).collect();
        assert_eq!(texts, [(1, 0, 7, b"{\"a\":1}".as_slice()), (4, 13, 20, b"{\"b\":2}"), (5, 21, 25, b"last")]);
        for step in 1..content.len() {
            assert_eq!(cut(content, 100, step), whole, "step {step}");
        }
    }

    #[test]
    fn a_line_longer_than_a_record_may_be_keeps_all_its_bytes_in_pieces() {
        for step in 1..12 {
            let pieces = cut(b"abcdefgh\nok\n", 3, step);
            let long: Vec<u8> = pieces.iter().filter(|piece| piece.fault.is_some()).flat_map(|piece| piece.bytes.clone()).collect();
            assert_eq!(long, b"abcdefgh");
            assert!(pieces.iter().all(|piece| piece.bytes.len() <= 3));
            assert_eq!(pieces.last().map(|piece| (piece.line, piece.fault, piece.bytes.as_slice())), Some((2, None, b"ok".as_slice())));
        }
    }
}
