//! What can be wrong with a SQL text over a lake.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_spark_sql::words_without_values;

/// A query of people fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not executed as it stands.
    #[error(transparent)]
    Text(#[from] tributary_spark_sql::Error),
    /// TR0108. The query was planned and then failed: a division by zero, a text that is no number, too little memory, a store
    /// that did not answer. Say `--memory-limit` where memory was short; a store may answer when asked again.
    #[error("the query failed: {reason}")]
    Run {
        /// The engine's words, values left out.
        reason: String,
        /// What may be done about it.
        class: FaultClass,
    },
    /// The lake refused or failed.
    #[error(transparent)]
    Lake(#[from] tributary_lake::Error),
}

impl Error {
    /// A failure of a query while it runs, as [`crate::sql::query`]'s frame gives it; values of rows are left out.
    ///
    /// ```
    /// use tributary::datafusion::error::DataFusionError;
    /// let error = tributary::sql::Error::run(DataFusionError::Execution("the divisor is zero".to_owned()));
    /// assert_eq!(error.to_string(), "the query failed: the divisor is zero");
    /// ```
    pub fn run(error: DataFusionError) -> Self {
        match of_lake(error) {
            Ok(error) => Self::Lake(error),
            Err(error) => Self::Run { reason: words_without_values(&error), class: class(&error) },
        }
    }
}

/// The lake's error inside, where there is one.
fn of_lake(error: DataFusionError) -> Result<tributary_lake::Error, DataFusionError> {
    match error {
        DataFusionError::External(inside) => match inside.downcast::<tributary_lake::Error>() {
            Ok(error) => Ok(*error),
            Err(inside) => Err(DataFusionError::External(inside)),
        },
        DataFusionError::Context(_, inside) | DataFusionError::Diagnostic(_, inside) => of_lake(*inside),
        other => Err(other),
    }
}

fn class(error: &DataFusionError) -> FaultClass {
    match error.find_root() {
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => FaultClass::Transient,
        DataFusionError::Internal(_) => FaultClass::Bug,
        _ => FaultClass::BadInput,
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Text(source) => source.class(),
            Self::Run { class, .. } => *class,
            Self::Lake(source) => source.class(),
        }
    }

    fn code(&self) -> FaultCode {
        match self {
            Self::Text(source) => source.code(),
            Self::Run { .. } => FaultCode("TR0108"),
            Self::Lake(source) => source.code(),
        }
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Text(source) => source.next_command(),
            Self::Run { .. } => Some(format!("tributary help {}", self.code())),
            Self::Lake(source) => source.next_command(),
        }
    }
}
