//! What can go wrong when a lake is opened, a pipeline is made or a table is read.

use tributary_fault::{Fault, FaultClass, FaultCode};

/// An error of the facade. A failing dataset is not one: it is in the [`crate::RunReport`].
///
/// ```
/// use tributary::Fault;
/// let error = tributary::Lake::open("nowhere://lake", Default::default()).unwrap_err();
/// assert_eq!(error.code().to_string(), "TR0001");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL of a lake names a store this build cannot reach.
    #[error("`{url}` names no store this build knows: use a folder, `file://` or `memory://`")]
    Url {
        /// As given.
        url: String,
    },
    /// The pipeline is not valid; every problem found is in the text.
    #[error(transparent)]
    Spec(#[from] tributary_specs::Errors),
    /// A feed's table could not be told from its declaration.
    #[error(transparent)]
    Bronze(#[from] tributary_bronze::Error),
    /// A silver dataset's table could not be planned.
    #[error(transparent)]
    Silver(#[from] tributary_silver_merge::Error),
    /// A gold query could not be read.
    #[error(transparent)]
    Gold(#[from] tributary_gold_agg::Error),
    /// The lake refused or failed.
    #[error(transparent)]
    Lake(#[from] tributary_lake::Error),
    /// `only` names a dataset the pipeline does not have.
    #[error("the pipeline has no dataset `{table}`{}", hint(.nearest))]
    NoDataset {
        /// As given.
        table: String,
        /// The nearest name it has.
        nearest: Option<String>,
    },
    /// A table was asked for that is not in the lake.
    #[error("table `{table}` does not exist")]
    NoTable {
        /// As given.
        table: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Url { .. } | Self::Spec(_) | Self::NoDataset { .. } | Self::NoTable { .. } => FaultClass::BadInput,
            Self::Bronze(source) => source.class(),
            Self::Silver(source) => source.class(),
            Self::Gold(source) => source.class(),
            Self::Lake(source) => source.class(),
        }
    }

    fn code(&self) -> FaultCode {
        match self {
            Self::Url { .. } => FaultCode("TR0001"),
            Self::Spec(source) => source.code(),
            Self::Bronze(source) => source.code(),
            Self::Silver(source) => source.code(),
            Self::Gold(source) => source.code(),
            Self::Lake(source) => source.code(),
            Self::NoDataset { .. } => FaultCode("TR0002"),
            Self::NoTable { .. } => FaultCode("TR0003"),
        }
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Url { .. } => Some("tributary run --warehouse data/lake".to_owned()),
            Self::Spec(_) | Self::NoDataset { .. } => Some("tributary validate".to_owned()),
            Self::NoTable { .. } => Some("tributary show tables".to_owned()),
            Self::Bronze(source) => source.next_command(),
            Self::Silver(source) => source.next_command(),
            Self::Gold(source) => source.next_command(),
            Self::Lake(source) => source.next_command(),
        }
    }
}
