//! What can be wrong with a spec. Each variant's first paragraph is what happened, the second what to do.

use tributary_fault::{Fault, FaultClass, FaultCode};

/// One kind of mistake in a spec, a name or a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A table name is not of the form `schema.table`.
    ///
    /// Write both parts with one dot between them; put a part that holds a dot or a blank in back-quotes.
    #[error("{text:?} is not a table name of the form schema.table: {reason}")]
    TableNameUnreadable {
        /// The name as given.
        text: String,
        /// What stands in the way.
        reason: String,
    },
    /// A column type is not one of the types a Delta table has.
    ///
    /// Use boolean, byte, short, integer, long, float, double, decimal(p,s), string, binary, date, timestamp,
    /// timestamp_ntz, `array<…>`, `map<…,…>` or `struct<name:type,…>`.
    #[error("{text:?} is not a column type: {reason}")]
    TypeUnreadable {
        /// The type as given.
        text: String,
        /// What stands in the way.
        reason: String,
    },
    /// A column has an Arrow type that no Delta type can hold without changing values.
    ///
    /// Cast the column in the query, for example an unsigned integer to `BIGINT` or a nanosecond time to microseconds.
    #[error("column {column:?} has type {arrow}, which no Delta table can hold: {hint}")]
    TypeNotDelta {
        /// The column, with dots for nested fields.
        column: String,
        /// The Arrow type.
        arrow: String,
        /// What to cast it to.
        hint: &'static str,
    },
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::TableNameUnreadable { .. } => "SP0001",
            Self::TypeUnreadable { .. } => "SP0002",
            Self::TypeNotDelta { .. } => "SP0003",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(format!("tributary help {}", self.code()))
    }
}
