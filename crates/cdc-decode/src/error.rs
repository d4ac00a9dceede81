//! Why a feed cannot be decoded at all. What is wrong with one record is a [`crate::Reject`] instead.

use tributary_fault::{Fault, FaultClass, FaultCode};

/// Why a decoder cannot be made or must stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The feed's declaration cannot be used: a type and an encoding that do not go together, a column name of ours,
    /// a property with an unknown value. Change the feed.
    #[error("feed {feed}: column {column}: {problem}")]
    Declaration {
        /// The feed.
        feed: String,
        /// The column or property.
        column: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The messages carry no schema and the declaration does not say how a value is written (unit of a time, bytes or
    /// digits of a decimal, form of binary text). Declare the column's `encoding`.
    #[error(
        "feed {feed}: column {column}: {found} cannot be read as {data_type} without a declared encoding; declare one of {choices} ({place})"
    )]
    EncodingUndeclared {
        /// The feed.
        feed: String,
        /// The column.
        column: String,
        /// The JSON kind that was found.
        found: &'static str,
        /// The declared type.
        data_type: String,
        /// Encodings that fit.
        choices: &'static str,
        /// File and line, or topic, partition and offset.
        place: String,
    },
    /// The schema policy is `freeze` and a message has a column the table does not have, or a value that needs another
    /// type. Declare the column, or choose another policy.
    #[error("feed {feed}: column {column}: {problem}, and the schema policy is freeze ({place})")]
    Frozen {
        /// The feed.
        feed: String,
        /// The column.
        column: String,
        /// What was found.
        problem: String,
        /// File and line, or topic, partition and offset.
        place: String,
    },
    /// A source position is smaller than one seen before although the change is later: the source was restored, reset
    /// or replaced. Set the feed property `tributary.cdc.positionsBackwards` to `newEpoch` (later changes win, whatever
    /// their position), or to `accept` (positions decide), or read the source anew into another table.
    #[error("feed {feed}: source positions run backwards from {from} to {to} although the change is later ({place})")]
    PositionsBackwards {
        /// The feed.
        feed: String,
        /// The greatest position before.
        from: String,
        /// The position found.
        to: String,
        /// File and line, or topic, partition and offset.
        place: String,
    },
    /// The header line of a CSV file cannot be used: a name is repeated or empty. Name the columns apart.
    #[error("feed {feed}: csv header: {problem}")]
    CsvHeader {
        /// The feed.
        feed: String,
        /// What is wrong.
        problem: String,
    },
    /// A registered schema is no Avro record that a table can be made of: it is broken, contains itself, has a union of
    /// several types, or builds on one that was not given. Its records go to quarantine as `unsupported_schema`.
    #[error("feed {feed}: schema {id} cannot be used: {problem}")]
    Schema {
        /// The feed.
        feed: String,
        /// The schema's number in the registry.
        id: u32,
        /// What is wrong.
        problem: String,
    },
    /// The batch built does not fit its own schema. This is a bug of ours.
    #[error("feed {feed}: the batch does not fit its schema: {problem}")]
    Inconsistent {
        /// The feed.
        feed: String,
        /// What Arrow said.
        problem: String,
    },
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Declaration { .. }
            | Self::EncodingUndeclared { .. }
            | Self::Frozen { .. }
            | Self::PositionsBackwards { .. }
            | Self::CsvHeader { .. } => FaultClass::BadInput,
            Self::Schema { .. } => FaultClass::BadData,
            Self::Inconsistent { .. } => FaultClass::Bug,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Declaration { .. } => "CD0001",
            Self::EncodingUndeclared { .. } => "CD0002",
            Self::Frozen { .. } => "CD0003",
            Self::PositionsBackwards { .. } => "CD0004",
            Self::CsvHeader { .. } => "CD0005",
            Self::Inconsistent { .. } => "CD0006",
            Self::Schema { .. } => "CD0007",
        })
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Inconsistent { .. } => None,
            _ => Some(format!("tributary help {}", self.code())),
        }
    }
}
