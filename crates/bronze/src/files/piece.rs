//! What a cutter yields.

/// One record's bytes, or what stands where a record should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Line the record begins on, counted from 1.
    pub line: i64,
    /// Where it begins in the content.
    pub start: u64,
    /// Where it ends in the content, its line end left out.
    pub end: u64,
    pub bytes: Vec<u8>,
    pub fault: Option<CutFault>,
}

/// Why bytes could not be cut into a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutFault {
    /// Longer than one record may be; its bytes come in several pieces.
    TooLong,
    /// A quoted field is not closed before the file ends.
    UnclosedQuote,
}

impl CutFault {
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::TooLong => "record_too_long",
            Self::UnclosedQuote => "csv_unclosed_quote",
        }
    }

    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::TooLong => "the record is longer than one record may be",
            Self::UnclosedQuote => "a quoted field is not closed before the file ends",
        }
    }
}
