//! What can be wrong with pipeline SQL. Each variant's first paragraph is what happened, the second what to do.

use tributary_fault::{Fault, FaultClass, FaultCode};

/// One kind of mistake in pipeline SQL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not text: it is not UTF-8, or has a control character that no text has.
    ///
    /// Give SQL files only; save the file as UTF-8.
    #[error("the file is not text: {found}")]
    NotText {
        /// What stands there.
        found: String,
    },
    /// A file, a statement or an expression is larger or nests deeper than anybody writes.
    ///
    /// Cut it into several datasets or views.
    #[error("{what} has more than {most} {of}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// The limit.
        most: usize,
        /// Of what.
        of: &'static str,
    },
}

impl Error {
    /// What to type instead, where that can be said.
    pub(crate) fn instead(&self) -> Option<String> {
        None
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::NotText { .. } => "PS0001",
            Self::TooLarge { .. } => "PS0002",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(format!("tributary help {}", self.code()))
    }
}
