//! `UPDATE`, `DELETE` and `MERGE`: rows of a table changed in one commit.
//!
//! ```text
//! snapshot ─▶ a query over its rows with their places ─▶ rows that go, rows that are new ─▶ marks or rewritten files, change feed ─▶ commit
//! ```
//!
//! What must stay true:
//! - A row of the table is taken once. Where several rows of a source match one, the statement stops before its commit.
//! - With an update or a delete the change feed's files hold every change of the commit, inserts included.
//! - What the statement read is what the commit is planned on: who adds or removes rows meanwhile makes it plan again, where they may be
//!   rows that it looks for.
//! - A statement that changes nothing commits nothing.
//! - A generated column that a clause gives no value is computed of the row as the clause leaves it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use tributary_lake::arrow::compute::filter_record_batch;
use tributary_lake::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use tributary_lake::datafusion::catalog::{Session as QuerySession, TableProvider};
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};
use tributary_lake::datafusion::execution::{SendableRecordBatchStream, TaskContext};
use tributary_lake::datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use tributary_lake::datafusion::physical_plan::ExecutionPlan;
use tributary_lake::datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tributary_lake::datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use tributary_lake::datafusion::prelude::{DataFrame, ident};
use tributary_lake::{
    ChangeWriter, Commit, CommitOutcome, DataFile, DataWriter, Generated, KeySearch, Operation, Reads, RowMarks, Table, WriterOptions,
};
use tributary_spark_sql::{CLAUSE, FILE, PlannedChange, ROW, RowAction, RowChange, Tables, Target, after, before};

use super::session::Planner;
use super::{Error, prune, reads};

/// Rows by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

/// One attempt: plans and executes the change on a snapshot; the outcome of its commit, none where there was nothing to do.
pub(crate) async fn attempt(
    table: &Table,
    change: RowChange,
    mut tables: Tables,
    planner: &Planner,
) -> Result<(Counts, Option<CommitOutcome>), Error> {
    table.ensure_writable()?;
    let files = Arc::new(table.files().await?);
    let catalogue = table.lake().options().catalogue.clone();
    let names = [catalogue.as_str(), &table.name().schema, &table.name().name];
    tables.put_target(names, Arc::new(Placed::new(table, &files)));
    let (actions, often) = (change.actions(), change.may_take_one_row_often());
    let (is_merge, reads_itself) = (change.is_merge(), names_itself(&change, table));
    let operation = match (change.is_merge(), actions.first()) {
        (false, Some(RowAction::Delete)) => Operation::Delete,
        (false, _) => Operation::Update,
        (true, _) => Operation::Merge,
    };
    let tells = table.has_change_feed() && actions.iter().any(|action| *action != RowAction::Insert);
    let target = Target { names, columns: table.columns(), before: tells };
    let PlannedChange { plan, computed } = change.plan(&planner.context, &planner.state, tables, &target, &planner.own).await?;
    let (plan, reads) = match (reads_itself, is_merge) {
        (true, _) => (plan, Reads::WholeTable),
        (false, true) => reads::of_keys(plan, &planner.state).await.map_err(Error::run)?,
        (false, false) => {
            let reads = reads::of_condition(&plan).map_err(Error::run)?;
            (plan, reads)
        }
    };
    // a row that a merge finds and leaves keeps it from adding one
    let rests = matches!(reads, Reads::Keys(_)) && actions.contains(&RowAction::Insert);
    let wanted = ident(CLAUSE).is_not_null();
    let wanted = if rests { wanted.or(ident(FILE).is_not_null()) } else { wanted };
    let rows = DataFrame::new(planner.state.clone(), plan).filter(wanted).map_err(Error::run)?;
    let mut rows = rows.execute_stream().await.map_err(Error::run)?;
    let mut written = Written {
        table,
        operation,
        actions,
        computed: computed.iter().map(|places| generated(table, places)).collect::<Result<_, _>>()?,
        often,
        writer: table.writer(WriterOptions::default())?,
        feed: tells.then(|| table.change_writer()),
        taken: BTreeMap::new(),
        found: BTreeSet::new(),
        reads,
        counts: Counts::default(),
    };
    while let Some(batch) = rows.try_next().await.map_err(Error::run)? {
        let batch = written.set_aside(batch)?;
        written.take(&batch).await?;
    }
    written.commit(files.to_vec()).await
}

/// What a statement has written so far, in no commit yet.
struct Written<'t> {
    table: &'t Table,
    operation: Operation,
    actions: Vec<RowAction>,
    /// For each clause what it leaves to be computed.
    computed: Vec<Generated>,
    often: bool,
    writer: DataWriter,
    feed: Option<ChangeWriter>,
    /// Places of rows that go, by the number of their file.
    taken: BTreeMap<usize, BTreeSet<u64>>,
    /// Numbers of files in which rows were found that stay as they are, and keep the statement from adding some.
    found: BTreeSet<usize>,
    reads: Reads,
    counts: Counts,
}

impl Written<'_> {
    /// The rows that some clause takes; of the others it is remembered where they are.
    fn set_aside(&mut self, batch: RecordBatch) -> Result<RecordBatch, Error> {
        let clauses = whole(&batch, CLAUSE)?;
        if clauses.null_count() == 0 {
            return Ok(batch);
        }
        let files = whole(&batch, FILE)?;
        let resting = (0..batch.num_rows()).filter(|row| clauses.is_null(*row) && files.is_valid(*row));
        self.found.extend(resting.filter_map(|row| usize::try_from(files.value(row)).ok()));
        let taken = (0..batch.num_rows()).map(|row| clauses.is_valid(row)).collect::<BooleanArray>();
        filter_record_batch(&batch, &taken).map_err(failed)
    }

    async fn take(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let clauses = whole(batch, CLAUSE)?;
        let clause = |row: usize| usize::try_from(clauses.value(row)).ok();
        let actions: Vec<Option<RowAction>> =
            (0..batch.num_rows()).map(|row| clause(row).and_then(|clause| self.actions.get(clause).copied())).collect();
        let again = self.mark(batch, &actions)?;
        for of in 0..self.actions.len() {
            let chosen = (0..batch.num_rows()).map(|row| clause(row) == Some(of) && !again.contains(&row));
            let rows = filter_record_batch(batch, &chosen.collect::<BooleanArray>()).map_err(failed)?;
            let count = rows.num_rows() as u64;
            if count == 0 {
                continue;
            }
            match self.actions[of] {
                RowAction::Delete => {
                    self.counts.deleted += count;
                    self.tell_of_old(&rows, "delete").await?;
                }
                RowAction::Update => {
                    self.counts.updated += count;
                    self.tell_of_old(&rows, "update_preimage").await?;
                    let new = self.computed[of].fill(self.columns(&rows, after)?)?;
                    self.tell(&new, "update_postimage").await?;
                    self.writer.write(&new).await?;
                }
                RowAction::Insert => {
                    self.counts.inserted += count;
                    let new = self.computed[of].fill(self.columns(&rows, after)?)?;
                    self.tell(&new, "insert").await?;
                    self.writer.write(&new).await?;
                }
            }
        }
        Ok(())
    }

    /// Remembers the rows of the table that go; tells those that go already.
    fn mark(&mut self, batch: &RecordBatch, actions: &[Option<RowAction>]) -> Result<HashSet<usize>, Error> {
        let (files, places) = (whole(batch, FILE)?, whole(batch, ROW)?);
        let mut again = HashSet::new();
        for (row, action) in actions.iter().enumerate() {
            if !matches!(action, Some(RowAction::Delete | RowAction::Update)) {
                continue;
            }
            let (Ok(file), Ok(place)) = (usize::try_from(files.value(row)), u64::try_from(places.value(row))) else { continue };
            if !self.taken.entry(file).or_default().insert(place) {
                if !self.often {
                    return Err(Error::Several { table: self.table.name().to_string() });
                }
                again.insert(row);
            }
        }
        Ok(again)
    }

    async fn tell_of_old(&mut self, rows: &RecordBatch, change: &str) -> Result<(), Error> {
        match &self.feed {
            Some(_) => {
                let old = self.columns(rows, before)?;
                self.tell(&old, change).await
            }
            None => Ok(()),
        }
    }

    /// Writes rows of the table's columns into the change feed, where there is one.
    async fn tell(&mut self, rows: &RecordBatch, change: &str) -> Result<(), Error> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        let mut fields: Vec<Arc<Field>> = rows.schema_ref().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new("_change_type", DataType::Utf8, false)));
        let mut arrays = rows.columns().to_vec();
        arrays.push(Arc::new(StringArray::from(vec![change; rows.num_rows()])));
        feed.write(&RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(failed)?).await?;
        Ok(())
    }

    /// The table's columns, as they were or as they shall be.
    fn columns(&self, rows: &RecordBatch, name: fn(usize) -> String) -> Result<RecordBatch, Error> {
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (at, column) in self.table.columns().iter().enumerate() {
            let array = rows.column_by_name(&name(at)).cloned().ok_or_else(|| missing(&name(at)))?;
            fields.push(Field::new(&column.name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(failed)
    }

    async fn commit(mut self, files: Vec<DataFile>) -> Result<(Counts, Option<CommitOutcome>), Error> {
        let Counts { inserted, updated, deleted } = self.counts;
        if self.counts == Counts::default() {
            self.writer.abandon().await?;
            return Ok((self.counts, None));
        }
        let rests_on = self.found.iter().filter_map(|number| files.get(*number).cloned()).collect();
        let (mut marks, mut removes) = (Vec::new(), Vec::new());
        let search = KeySearch::new(self.table, files);
        for (number, rows) in self.taken {
            let Some(file) = search.files().get(number).cloned() else { continue };
            let rows: Vec<u64> = rows.into_iter().collect();
            if self.table.marks_rows() && file.stats.rows.is_some() {
                marks.push(RowMarks { file, rows });
                continue;
            }
            let mut others = search.rows_but(number, &rows).await?;
            while let Some(batch) = others.try_next().await.map_err(tributary_lake::Error::from)? {
                self.writer.write(&batch).await?;
            }
            removes.push(file);
        }
        let adds = self.writer.finish().await?;
        let changes = match (self.feed, updated + deleted) {
            (Some(feed), 1..) => feed.finish().await?,
            (Some(feed), 0) => {
                feed.abandon().await?;
                Vec::new()
            }
            (None, _) => Vec::new(),
        };
        let metrics = [("numTargetRowsInserted", inserted), ("numTargetRowsUpdated", updated), ("numTargetRowsDeleted", deleted)];
        let commit = Commit {
            operation: self.operation,
            adds,
            removes,
            marks,
            changes,
            rests_on,
            reads: self.reads,
            metrics: metrics.into_iter().map(|(name, rows)| (name.to_owned(), rows.to_string())).collect(),
            ..Commit::default()
        };
        let outcome = self.table.commit(commit).await?;
        Ok((self.counts, Some(outcome)))
    }
}

/// Whether a statement reads the table that it changes besides, by whatever name.
fn names_itself(change: &RowChange, table: &Table) -> bool {
    change.uses().iter().any(|used| used.parts.last().is_some_and(|name| name.eq_ignore_ascii_case(&table.name().name)))
}

/// Those of the table's columns at these places, to be computed.
fn generated(table: &Table, places: &[usize]) -> Result<Generated, Error> {
    let is_given = |name: &str| !places.iter().any(|at| table.columns().get(*at).is_some_and(|column| column.name == name));
    Ok(Generated::new(table.name(), table.columns(), is_given)?)
}

fn whole<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b Int64Array, Error> {
    let column = batch.column_by_name(name).ok_or_else(|| missing(name))?;
    column.as_primitive_opt::<Int64Type>().ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::run(DataFusionError::Internal(format!("the plan of a change has no column `{name}`")))
}

fn failed(error: tributary_lake::arrow::error::ArrowError) -> Error {
    tributary_lake::Error::from(DataFusionError::from(error)).into()
}

/// The rows of a snapshot, each with its file's number and its place in the file.
#[derive(Debug)]
struct Placed {
    table: Table,
    files: Arc<Vec<DataFile>>,
    schema: SchemaRef,
}

impl Placed {
    fn new(table: &Table, files: &Arc<Vec<DataFile>>) -> Self {
        let mut fields: Vec<Arc<Field>> = table.schema().fields().iter().cloned().collect();
        fields.extend([FILE, ROW].map(|name| Arc::new(Field::new(name, DataType::Int64, false))));
        Self { table: table.clone(), files: Arc::clone(files), schema: Arc::new(Schema::new(fields)) }
    }
}

#[async_trait]
impl TableProvider for Placed {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn QuerySession,
        projection: Option<&Vec<usize>>,
        conditions: &[Expr],
        _: Option<usize>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(places) => Arc::new(self.schema.project(places)?),
            None => Arc::clone(&self.schema),
        };
        let wanted = prune::may_hold(session, conditions, &self.schema, &self.files);
        let parts = session.config().target_partitions().clamp(1, wanted.len().max(1));
        let part = |part: usize| -> Arc<dyn PartitionStream> {
            let files = wanted.iter().skip(part).step_by(parts).copied().collect();
            Arc::new(Part { table: self.table.clone(), all: Arc::clone(&self.files), files, schema: Arc::clone(&schema) })
        };
        let streams = (0..parts).map(part).collect();
        Ok(Arc::new(StreamingTableExec::try_new(schema, streams, None, Vec::new(), false, None)?))
    }

    /// Conditions choose files; rows are chosen above.
    fn supports_filters_pushdown(&self, conditions: &[&Expr]) -> QueryResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; conditions.len()])
    }
}

/// Some files of them.
#[derive(Debug)]
struct Part {
    table: Table,
    all: Arc<Vec<DataFile>>,
    files: Vec<usize>,
    schema: SchemaRef,
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (table, all, schema) = (self.table.clone(), Arc::clone(&self.all), Arc::clone(&self.schema));
        let batches = futures::stream::iter(self.files.clone())
            .then(move |at| {
                let (table, file, schema) = (table.clone(), all[at].clone(), Arc::clone(&schema));
                async move { of_file(&table, &file, at, &schema).await }
            })
            .try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

/// The rows of one file in the columns asked for.
async fn of_file(table: &Table, file: &DataFile, at: usize, schema: &SchemaRef) -> QueryResult<SendableRecordBatchStream> {
    let external = |error: tributary_lake::Error| DataFusionError::External(Box::new(error));
    let names = schema.fields().iter().map(|field| field.name().clone());
    let columns: Vec<String> = names.filter(|name| name != FILE && name != ROW).collect();
    let rows = table.read_file_placed(file, Some(&columns), ROW).await.map_err(external)?;
    let number = i64::try_from(at).unwrap_or(i64::MAX);
    let wanted = Arc::clone(schema);
    let batches = rows.map(move |batch| {
        let batch = batch?;
        let of = |field: &Arc<Field>| -> QueryResult<ArrayRef> {
            match field.name().as_str() {
                FILE => Ok(Arc::new(Int64Array::from(vec![number; batch.num_rows()]))),
                name => {
                    let column = batch.column_by_name(name).cloned();
                    column.ok_or_else(|| DataFusionError::Internal(format!("a file gives no column `{name}`")))
                }
            }
        };
        let columns = wanted.fields().iter().map(of).collect::<QueryResult<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&wanted), columns, &options)?)
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), batches)))
}
