//! A statement as the parser is given it, and where each of its bytes came from.

use std::ops::Range;
use std::sync::Arc;

use tributary_specs::Place;

use crate::place::Lines;
use crate::woven::Trail;

/// Text of one statement: blanks are blanks, strings stand in single quotes as [`crate::literal::quoted`] writes them, parameters
/// are put in.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    pieces: Vec<Piece>,
    lines: Arc<Lines>,
}

/// Where the bytes of the text from `at` on came from.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: usize,
    original: usize,
    /// Whether the bytes are the file's own, one for one.
    verbatim: bool,
}

impl Prepared {
    pub(crate) fn new(lines: &Arc<Lines>) -> Self {
        Self { text: String::new(), pieces: Vec::new(), lines: Arc::clone(lines) }
    }

    /// Adds a piece of the file as it is.
    pub(crate) fn keep(&mut self, original: usize, text: &str) {
        let follows = self.pieces.last().is_some_and(|piece| piece.verbatim && piece.original + (self.text.len() - piece.at) == original);
        if !follows {
            self.pieces.push(Piece { at: self.text.len(), original, verbatim: true });
        }
        self.text.push_str(text);
    }

    /// Adds text in place of what stands in the file.
    pub(crate) fn put(&mut self, original: usize, text: &str) {
        self.pieces.push(Piece { at: self.text.len(), original, verbatim: false });
        self.text.push_str(text);
    }

    /// Where a byte of the text stands in the file.
    pub(crate) fn place(&self, at: usize) -> Place {
        self.lines.place(self.original(at))
    }

    /// Where the bytes of a part of the text stand.
    pub(crate) fn trail(&self, range: &Range<usize>) -> Trail {
        let mut trail = Trail::default();
        let first = self.pieces.partition_point(|piece| piece.at <= range.start).saturating_sub(1);
        for piece in self.pieces.iter().skip(first).take_while(|piece| piece.at < range.end) {
            let at = piece.at.max(range.start);
            let original = piece.original + if piece.verbatim { at - piece.at } else { 0 };
            trail.step(at - range.start, &self.lines, original, piece.verbatim);
        }
        trail
    }

    fn original(&self, at: usize) -> usize {
        let piece = self.pieces.partition_point(|piece| piece.at <= at).checked_sub(1).and_then(|before| self.pieces.get(before));
        match piece {
            Some(piece) if piece.verbatim => piece.original + (at - piece.at),
            Some(piece) => piece.original,
            None => 0,
        }
    }
}
