//! What stands in the files of a pipeline: datasets, flows, and what is not executed.

use std::collections::BTreeMap;
use std::fmt;

use tributary_specs::{ColumnSelection, Expectation, IgnoreNullUpdates, Place};

use crate::error::Error;
use crate::fault::Fault;
use crate::lower::Lowered;
use crate::place::Lines;
use crate::portability::Construct;
use crate::query::Query;

/// One SQL file of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlFile {
    /// The name that stands in messages, for example its path in the bundle.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl SqlFile {
    /// A file as it lies on disk.
    ///
    /// # Errors
    /// Where it is not UTF-8, at the first byte that is none.
    pub fn from_bytes(path: impl Into<String>, bytes: &[u8]) -> Result<Self, Fault> {
        let path = path.into();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { path, text: text.to_owned() }),
            Err(error) => {
                let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let place = Lines::new(&path, &before).place(before.len());
                Err(Fault::new(&place, &Error::NotText { found: "it is not UTF-8 from here on".to_owned() }))
            }
        }
    }
}

/// What names without catalogue or schema mean, as the pipeline's settings have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The catalogue of names of one or two parts; none = the catalogue of the run.
    pub catalog: Option<String>,
    /// The schema of names of one part; none = such names are an error, but for views and private datasets.
    pub schema: Option<String>,
}

/// What stands in the files of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parsed {
    /// Tables and views, in the order of files and lines.
    pub datasets: Vec<Definition>,
    /// What writes streaming tables, besides the query of a definition.
    pub flows: Vec<Flow>,
    /// What is read but not executed.
    pub not_applied: Vec<NotApplied>,
    /// What a person should know: old spellings, meanings that differ from the platform's.
    pub notices: Vec<Notice>,
    /// What is not the same on every platform, in the order of files and lines.
    pub constructs: Vec<Construct>,
    /// Every mistake, in the order of files and lines.
    pub faults: Vec<Fault>,
    pub(crate) lowered: Lowered,
}

impl Parsed {
    /// Clauses that hide data from people and are not executed. A run needs a person's word that this is meant.
    pub fn unprotected(&self) -> impl Iterator<Item = &NotApplied> {
        self.not_applied.iter().filter(|clause| clause.protects)
    }
}

/// The full name of a dataset or table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatasetName {
    /// The catalogue; none = the catalogue of the run.
    pub catalog: Option<String>,
    /// The schema; none for temporary views, which belong to the pipeline alone.
    pub schema: Option<String>,
    /// The last part.
    pub name: String,
}

impl fmt::Display for DatasetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.catalog.as_deref(), self.schema.as_deref(), Some(self.name.as_str())];
        let parts: Vec<String> = parts.into_iter().flatten().map(quoted).collect();
        f.write_str(&parts.join("."))
    }
}

/// A part of a name, in back-quotes where it needs them.
pub(crate) fn quoted(part: &str) -> String {
    let bare = part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && part.starts_with(|c: char| !c.is_ascii_digit());
    if bare { part.to_owned() } else { format!("`{}`", part.replace('`', "``")) }
}

/// What a dataset is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rows are added by flows.
    StreamingTable,
    /// A table kept equal to its query.
    MaterializedView,
    /// A query with a name.
    View,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamingTable => "streaming table",
            Self::MaterializedView => "materialized view",
            Self::View => "view",
        })
    }
}

/// One `CREATE … TABLE | VIEW`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its full name.
    pub name: DatasetName,
    /// What it is.
    pub kind: Kind,
    /// Whether it belongs to the pipeline alone (`PRIVATE`, `TEMPORARY`).
    pub private: bool,
    /// Where its name stands.
    pub place: Place,
    /// Declared columns.
    pub columns: Vec<DeclaredColumn>,
    /// Rules a row must meet.
    pub expectations: Vec<Placed<Expectation>>,
    /// Columns of a declared primary key; for people and catalogues, nothing enforces it.
    pub primary_key: Vec<String>,
    /// Partition columns.
    pub partition_by: Placed<Vec<String>>,
    /// Clustering columns.
    pub cluster_by: Placed<Vec<String>>,
    /// Shown by catalogues.
    pub comment: Option<String>,
    /// Table properties.
    pub properties: BTreeMap<String, Placed<String>>,
    /// The clauses that stand in it, as `CLUSTER BY`.
    pub clauses: Vec<String>,
    /// The query, where it has one.
    pub query: Option<Query>,
}

/// Something and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<T> {
    /// The thing.
    pub value: T,
    /// Where it stands; none where nothing is written.
    pub place: Option<Place>,
}

impl<T: Default> Default for Placed<T> {
    fn default() -> Self {
        Self { value: T::default(), place: None }
    }
}

/// A column of a definition. Columns of views and materialized views may have a name only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredColumn {
    /// The name as it is written.
    pub name: String,
    /// The type, where one is written.
    pub data_type: Option<tributary_specs::DataType>,
    /// Whether null is a value.
    pub nullable: bool,
    /// Shown by catalogues.
    pub comment: Option<String>,
    /// SQL expression taken when a row does not give the column.
    pub default: Option<String>,
    /// SQL expression over other columns.
    pub generated: Option<String>,
    /// Where its name stands.
    pub place: Place,
}

/// What writes a streaming table, besides the query of its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Its name; none = the target's.
    pub name: Option<String>,
    /// The streaming table it writes.
    pub target: DatasetName,
    /// Where the target's name stands.
    pub place: Place,
    /// Whether it runs once only, over its source as it is then.
    pub once: bool,
    /// For people.
    pub comment: Option<String>,
    /// What it does.
    pub action: FlowAction,
}

/// What a flow does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowAction {
    /// Adds the query's rows.
    Append(Query),
    /// Applies the source's rows as changes.
    AutoCdc(Box<AutoCdc>),
}

impl FlowAction {
    /// The query that it takes rows or changes from.
    pub fn query(&self) -> &Query {
        match self {
            Self::Append(query) => query,
            Self::AutoCdc(body) => &body.source,
        }
    }
}

/// The body of `AUTO CDC` and `APPLY CHANGES`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoCdc {
    /// The stream of changes.
    pub source: Query,
    /// Whether the source is a query of its own and not one table.
    pub subquery: bool,
    /// Key columns.
    pub keys: Placed<Vec<String>>,
    /// Which null values mean "not written by this event".
    pub ignore_null_updates: IgnoreNullUpdates,
    /// SQL over the source row; true = delete.
    pub apply_as_delete_when: Option<Placed<String>>,
    /// SQL over the source row; true = truncate.
    pub apply_as_truncate_when: Option<Placed<String>>,
    /// SQL expressions over the source row, most significant first.
    pub sequence_by: Placed<Vec<String>>,
    /// Columns of the target.
    pub columns: Placed<ColumnSelection>,
    /// 1 or 2.
    pub scd_type: u8,
    /// Which columns open a new version.
    pub track_history: Placed<ColumnSelection>,
}

/// A clause that is read but not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotApplied {
    /// The clause, as `SCHEDULE`.
    pub clause: String,
    /// The dataset it belongs to, where it belongs to one.
    pub dataset: Option<String>,
    /// Why nothing is done.
    pub reason: String,
    /// Whether it hides data from people (`MASK`, `ROW FILTER`).
    pub protects: bool,
    /// Where it stands.
    pub place: Place,
}

impl fmt::Display for NotApplied {
    /// The clause and what it belongs to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clause)?;
        self.dataset.iter().try_for_each(|dataset| write!(f, " of {dataset}"))
    }
}

/// Something a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The kind, for tools: `deprecated`, `clause_order`, `implicit_deletes`, `external_table`.
    pub kind: &'static str,
    /// In words.
    pub message: String,
    /// Where it stands.
    pub place: Place,
}
