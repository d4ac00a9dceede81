//! Rows that failed a rule: table `quarantine.<table>`.
//!
//! It commits before the target, with the same position. A run that finds the quarantine ahead of the target does not set the
//! same rows aside again.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_lake::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, StructArray, TimestampMicrosecondArray, new_null_array,
};
use tributary_lake::arrow::datatypes::{Field, Fields, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{Commit, CommitOutcome, Lake, Operation, Progress, Reads, Rewrite, Table, WriterOptions};
use tributary_specs::{Column, DataType, GrowthPolicy, SilverSpec, TableName, TableSpec};

use crate::conform::conform;
use crate::error::{Error, Result};
use crate::flow::Whereabouts;
use crate::growth::{self, any_retyped};
use crate::identity::Identity;
use crate::intake::Intake;
use crate::judge::Rejected;
use crate::source::Source;
use crate::target::Target;

/// The column that holds the row.
const ROW: &str = "row";

/// The quarantine of a dataset.
#[derive(Debug)]
pub(crate) struct Quarantine {
    name: TableName,
    of: TableName,
    table: Option<Table>,
    /// The version of the source whose rejected rows are all here.
    position: Option<i64>,
    source_identity: Identity,
}

impl Quarantine {
    /// Opens it, if it is there.
    ///
    /// # Errors
    /// Store errors.
    pub async fn open(lake: &Lake, spec: &SilverSpec, place: &Whereabouts) -> Result<Self> {
        let name = spec.quarantine_table();
        let table = lake.table(&name).await.map_err(|source| Error::lake("open", &name, source))?;
        let position = match &table {
            Some(table) => table.progress(&place.app_id).await.map_err(|source| Error::lake("read positions of", &name, source))?,
            None => None,
        };
        let recorded = Identity::recorded(table.as_ref(), place.id_app_id.clone()).await;
        let source_identity = recorded.map_err(|source| Error::lake("read positions of", &name, source))?;
        Ok(Self { name, of: spec.table.clone(), table, position, source_identity })
    }

    /// The version of the source whose rejected rows are all here; rows of another source of its name do not count.
    pub fn seen(&self, source: &Source) -> Option<u64> {
        self.position.filter(|_| !self.source_identity.is_not(&source.table)).and_then(|version| u64::try_from(version).ok())
    }

    /// Commits rows with the position they are of; gives the outcome when it was lost.
    ///
    /// # Errors
    /// Store errors.
    pub async fn commit(
        &self,
        lake: &Lake,
        intake: &Intake<'_>,
        rejected: &[Rejected],
        reached: Progress,
        run_id: &str,
    ) -> Result<Option<CommitOutcome>> {
        let fail = |source| Error::lake("commit to", &self.name, source);
        let columns = columns(intake.target);
        let mut table = match &self.table {
            Some(table) => table.clone(),
            None => crate::target::create(lake, &self.table_spec(columns.clone())).await?,
        };
        let mut grown = grown(&table, &columns);
        if let Some(columns) = grown.take_if(|columns| any_retyped(table.columns(), columns)) {
            match table.rewrite(Rewrite { columns, ..Rewrite::default() }).await.map_err(fail)? {
                CommitOutcome::Committed { .. } => table = table.refresh().await.map_err(fail)?,
                lost => return Ok(Some(lost)),
            }
        }
        let options = WriterOptions { columns: grown.clone(), ..WriterOptions::default() };
        let mut writer = table.writer(options).map_err(fail)?;
        let now = lake.clock().now().timestamp_micros();
        for rejected in rejected {
            let origin = Origin { source: intake.source.name(), version: reached.version, run_id, now };
            let rows = rows(&columns, rejected, &origin).map_err(|error| Error::kernel(&self.name, error))?;
            writer.write(&rows).await.map_err(fail)?;
        }
        let adds = writer.finish().await.map_err(fail)?;
        let reached = Progress { expected: self.position, ..reached };
        let commit = Commit {
            operation: Operation::Write,
            adds,
            progress: std::iter::once(reached).chain(self.source_identity.take_on(&intake.source.table)).collect(),
            rewinds: self.source_identity.is_not(&intake.source.table),
            schema: grown,
            reads: Reads::BlindAppend,
            ..Commit::default()
        };
        Ok(match table.commit(commit).await.map_err(fail)? {
            CommitOutcome::Committed { .. } => None,
            lost => Some(lost),
        })
    }

    fn table_spec(&self, columns: Vec<Column>) -> TableSpec {
        TableSpec {
            comment: Some(format!("rows on their way into {} that failed a rule", self.of)),
            ..TableSpec::new(self.name.clone(), columns)
        }
    }
}

/// What all rows of a commit have in common.
struct Origin<'a> {
    source: &'a TableName,
    version: i64,
    run_id: &'a str,
    now: i64,
}

fn columns(target: &Target) -> Vec<Column> {
    let commented =
        |name: &str, data_type: DataType, comment: &str| Column { comment: Some(comment.to_owned()), ..Column::new(name, data_type) };
    let row = target.columns.iter().filter(|column| target.shape.schema.column_with_name(&column.name).is_some());
    let row = row.map(|column| Column::new(&column.name, column.data_type.clone())).collect();
    vec![
        commented("rule", DataType::String, "the expectation that failed, NULL_KEY, NULL_SEQUENCE or NO_PARTITION"),
        commented(ROW, DataType::Struct(row), "the row as it would have been applied"),
        commented("source", DataType::String, "the table it came from"),
        commented("source_version", DataType::Long, "the version of that table by which it came"),
        commented("position", DataType::String, "its place in the source"),
        commented("file", DataType::String, "the file it was read from"),
        commented("line", DataType::Long, "the line it begins on"),
        commented("run", DataType::String, "the run that set it aside"),
        commented("quarantined_at", DataType::Timestamp, "when it was set aside"),
    ]
}

/// The columns after a commit of rows that have more, or wider, columns than those set aside before; none when they have not.
fn grown(table: &Table, wanted: &[Column]) -> Option<Vec<Column>> {
    let mut columns = table.columns().to_vec();
    let row = wanted.iter().find(|column| column.name == ROW)?;
    let found = columns.iter_mut().find(|column| column.name == ROW)?;
    found.data_type = growth::grown(GrowthPolicy::Widen, &found.data_type, &row.data_type)?;
    (columns != table.columns()).then_some(columns)
}

fn rows(columns: &[Column], rejected: &Rejected, origin: &Origin<'_>) -> Result<RecordBatch, ArrowError> {
    let count = rejected.rows.num_rows();
    let text = |text: &str| Arc::new(StringArray::from(vec![text; count])) as ArrayRef;
    let row = StructArray::from(rejected.rows.clone());
    let given: BTreeMap<&str, ArrayRef> = BTreeMap::from([
        ("rule", Arc::new(rejected.rules.clone()) as ArrayRef),
        (ROW, Arc::new(row) as ArrayRef),
        ("source", text(&origin.source.to_string())),
        ("source_version", Arc::new(Int64Array::from(vec![origin.version; count]))),
        ("position", Arc::clone(&rejected.positions)),
        ("file", Arc::clone(&rejected.files)),
        ("line", Arc::clone(&rejected.lines)),
        ("run", text(origin.run_id)),
        ("quarantined_at", Arc::new(TimestampMicrosecondArray::from(vec![origin.now; count]).with_timezone("UTC"))),
    ]);
    let array = |column: &Column| {
        let arrow = column.data_type.to_arrow();
        given.get(column.name.as_str()).map_or_else(|| Ok(new_null_array(&arrow, count)), |array| conform(array, &arrow))
    };
    let arrays = columns.iter().map(array).collect::<Result<Vec<_>, _>>()?;
    let fields: Fields = columns.iter().map(|column| Field::new(&column.name, column.data_type.to_arrow(), true)).collect();
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &RecordBatchOptions::new().with_row_count(Some(count)))
}
