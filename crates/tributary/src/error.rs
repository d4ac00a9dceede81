//! What can go wrong when a lake is opened, a pipeline is made or a table is read.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_specs::TableName;

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
    /// SQL files of a pipeline have mistakes; every one is in the text.
    #[error(transparent)]
    Sql(#[from] tributary_pipeline_sql::Faults),
    /// SQL files of a pipeline hide columns or rows from people (`MASK`, `SET MASK`, `ROW FILTER`), or masks and row filters are
    /// recorded on tables that a run writes, which this release does not enforce: whoever reads the tables would see what they hide.
    /// Take the clauses out, drop what is recorded (`system.tributary.masks` lists it), or accept that they do nothing.
    #[error("not enforced here, and people would see what it hides: {}", .clauses.join(", "))]
    Unprotected {
        /// Each clause with its dataset and place.
        clauses: Vec<String>,
    },
    /// A plan no longer says what a run would do: the lake has moved on, its files have, or the pipeline was changed.
    #[error("the plan no longer holds: {}", .moved.join("; "))]
    PlanMoved {
        /// Everything that is otherwise, a line each.
        moved: Vec<String>,
    },
    /// A plan was written by a release with another form of plans.
    #[error("the plan has form {found}, and this release knows form {known}")]
    PlanFormat {
        /// As it says.
        found: u32,
        /// What can be read.
        known: u32,
    },
    /// Rows that are given for a table, or expected of it, are not rows that it can have.
    #[error("rows of `{table}`: {reason}")]
    GivenRows {
        /// The table.
        table: String,
        /// What is wrong, with the row counted from 1.
        reason: String,
    },
    /// A full refresh was asked for of a dataset that `pipelines.reset.allowed` = `false` protects. Nothing was touched.
    #[error("`{table}` is not refreshed in full: its property pipelines.reset.allowed is false")]
    ResetNotAllowed {
        /// The dataset.
        table: String,
    },
    /// A dataset was named in another catalogue than the lake's.
    #[error("`{table}` is of the catalogue `{other}`, and this lake's catalogue is `{catalogue}`")]
    OtherCatalogue {
        /// As given.
        table: String,
        /// The catalogue before it.
        other: String,
        /// The lake's.
        catalogue: String,
    },
    /// A dataset names a column for how its rows lie, or in a rule of the whole table, that it does not have.
    #[error("{clause} of `{table}` names `{column}`, which the table does not have{}", hint(.nearest))]
    NoColumn {
        /// The dataset.
        table: String,
        /// `partition_by`, `cluster_by`, `set_expectations[0]`, ….
        clause: String,
        /// As it is written.
        column: String,
        /// The nearest name it has.
        nearest: Option<String>,
    },
    /// A column of a dataset cannot be what is declared of it: its default does not fit it, or it is no time though its rows are to be
    /// fresh by it.
    #[error("{clause} of `{table}`: column `{column}` {reason}")]
    ColumnMisfit {
        /// The dataset.
        table: String,
        /// `schema`, `set_expectations[0]`, ….
        clause: String,
        /// The column.
        column: String,
        /// What is wrong, as `is a string, and freshness asks for a date or a timestamp`.
        reason: String,
    },
    /// Somebody else brought an earlier version of the table back: rows went back, and what the table says it has consumed did not. The run
    /// would not take up again what came since. Choose: bring it back once more with its positions, or keep the positions.
    #[error("version {version} of `{table}` is a restore by somebody else, which left the table's positions as they were")]
    RestoredByOthers {
        /// The dataset.
        table: String,
        /// The restoring commit.
        version: u64,
    },
    /// A table was asked for that is not in the lake.
    #[error("table `{table}` does not exist")]
    NoTable {
        /// As given.
        table: String,
    },
}

impl Error {
    /// That a pipeline has no dataset of a name; `known` = those it has.
    pub(crate) fn no_dataset<'a>(wanted: &str, known: impl Iterator<Item = &'a TableName>) -> Self {
        let names: Vec<String> = known.map(ToString::to_string).collect();
        let nearest = tributary_fault::nearest(wanted, names.iter().map(String::as_str)).map(str::to_owned);
        Self::NoDataset { table: wanted.to_owned(), nearest }
    }
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Url { .. }
            | Self::Spec(_)
            | Self::Sql(_)
            | Self::Unprotected { .. }
            | Self::NoDataset { .. }
            | Self::OtherCatalogue { .. }
            | Self::NoTable { .. }
            | Self::NoColumn { .. }
            | Self::ColumnMisfit { .. }
            | Self::PlanMoved { .. }
            | Self::PlanFormat { .. }
            | Self::GivenRows { .. }
            | Self::RestoredByOthers { .. }
            | Self::ResetNotAllowed { .. } => FaultClass::BadInput,
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
            Self::NoDataset { .. } | Self::OtherCatalogue { .. } => FaultCode("TR0002"),
            Self::NoTable { .. } => FaultCode("TR0003"),
            Self::NoColumn { .. } => FaultCode("TR0008"),
            Self::ColumnMisfit { .. } => FaultCode("TR0009"),
            Self::ResetNotAllowed { .. } => FaultCode("TR0006"),
            Self::RestoredByOthers { .. } => FaultCode("TR0011"),
            Self::PlanMoved { .. } => FaultCode("TR0020"),
            Self::PlanFormat { .. } => FaultCode("TR0021"),
            Self::Sql(source) => source.code(),
            Self::GivenRows { .. } => FaultCode("TR0030"),
            Self::Unprotected { .. } => FaultCode("TR0010"),
        }
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Url { .. } => Some("tributary run --warehouse data/lake".to_owned()),
            Self::OtherCatalogue { other, .. } => Some(format!("tributary show tables --catalogue {other}")),
            Self::Spec(_) | Self::NoDataset { .. } | Self::NoColumn { .. } | Self::ColumnMisfit { .. } => {
                Some("tributary validate".to_owned())
            }
            Self::GivenRows { .. } => Some("tributary help TR0030".to_owned()),
            Self::NoTable { .. } => Some("tributary show tables".to_owned()),
            Self::RestoredByOthers { table, .. } => Some(format!("tributary show history {table}")),
            Self::ResetNotAllowed { table } => Some(format!("tributary run --only {table}")),
            Self::PlanMoved { .. } | Self::PlanFormat { .. } => Some("tributary plan --out plan.json".to_owned()),
            Self::Sql(source) => source.next_command(),
            Self::Unprotected { .. } => Some("tributary run --accept-unprotected".to_owned()),
            Self::Bronze(source) => source.next_command(),
            Self::Silver(source) => source.next_command(),
            Self::Gold(source) => source.next_command(),
            Self::Lake(source) => source.next_command(),
        }
    }
}
