//! Rows of the files of a bin: as they come, or sorted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tributary_lake::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use tributary_lake::arrow::compute::{concat, take};
use tributary_lake::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tributary_lake::datafusion::catalog::streaming::StreamingTable;
use tributary_lake::datafusion::error::{DataFusionError, Result as EngineResult};
use tributary_lake::datafusion::execution::{SendableRecordBatchStream, TaskContext};
use tributary_lake::datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tributary_lake::datafusion::physical_plan::streaming::PartitionStream;
use tributary_lake::datafusion::prelude::ident;
use tributary_lake::{Curve, DataFile, FileForm, Table};

use crate::curve::{Ranks, SAMPLE_ROWS};
use crate::{Error, Result};

/// Footers that are fetched side by side.
const FOOTERS_AT_ONCE: usize = 16;

/// The part of the lake's memory that each sort keeps free to merge what it has spilled, and as much at most.
const RESERVED_PART: usize = 8;
const RESERVED_MAX: usize = 10 << 20;

/// Memory of the lake for each thing that is done side by side with others.
const MEMORY_EACH: usize = 128 << 20;

/// How much is done side by side: as the processors and the memory allow.
pub(crate) fn side_by_side(table: &Table) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (table.lake().options().memory_limit / MEMORY_EACH).clamp(1, processors)
}

/// Files so small are fetched ahead, so many of them.
const AHEAD_BYTES: u64 = 1 << 20;
const AHEAD_FILES: usize = 8;

/// The form of files that take the place of these: what all of them say, and the keys of the largest, which stands for the others.
pub(crate) async fn form(table: &Table, files: &[DataFile]) -> Result<FileForm> {
    let failed = || Error::lake("reading footers of", table.name());
    let Some(largest) = files.iter().max_by_key(|file| file.size) else { return Ok(FileForm::default()) };
    let mut form = table.form(largest).await.map_err(failed())?;
    let others: Vec<BoxFuture<'_, _>> = files.iter().map(|file| table.form(file).boxed()).collect();
    let mut others = stream::iter(others).buffered(FOOTERS_AT_ONCE);
    while !form.says.is_empty()
        && let Some(other) = others.try_next().await.map_err(failed())?
    {
        form.says.retain(|name, text| other.says.get(name) == Some(text));
    }
    Ok(form)
}

/// The rows of one file after the other.
pub(crate) fn as_they_come(table: &Table, files: Vec<DataFile>) -> SendableRecordBatchStream {
    let schema = table.schema();
    let table = table.clone();
    let opened = stream::iter(files).map(move |file| open(table.clone(), file)).buffered(AHEAD_FILES).try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema, opened))
}

/// A small file is read as a whole, ahead of its turn.
async fn open(table: Table, file: DataFile) -> EngineResult<SendableRecordBatchStream> {
    let external = |error: tributary_lake::Error| DataFusionError::External(Box::new(error));
    let rows = table.read_file(&file, None).await.map_err(external)?;
    if file.size > AHEAD_BYTES {
        return Ok(rows);
    }
    let schema = rows.schema();
    let batches: Vec<RecordBatch> = rows.try_collect().await?;
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches.into_iter().map(Ok)))))
}

/// The rows sorted by some columns, nulls first.
pub(crate) async fn by_columns(table: &Table, files: Vec<DataFile>, columns: &[String]) -> Result<SendableRecordBatchStream> {
    sorted(table, Files { table: table.clone(), files, along: None }, columns).await
}

/// The rows sorted along a curve through the space of some columns, and by these columns where it is in one place.
pub(crate) async fn along(table: &Table, files: Vec<DataFile>, columns: &[String], curve: Curve) -> Result<SendableRecordBatchStream> {
    let sample = sample(table, &files, columns).await?;
    let ranks = Ranks::of(&sample, curve).map_err(|error| Error::lake("sorting rows of", table.name())(error.into()))?;
    let along = Along { ranks: Arc::new(ranks), columns: columns.to_vec(), name: unused_name(&table.schema()) };
    let order: Vec<String> = std::iter::once(along.name.clone()).chain(columns.iter().cloned()).collect();
    sorted(table, Files { table: table.clone(), files, along: Some(along) }, &order).await
}

/// Values of the columns, of rows that stand evenly in the files.
async fn sample(table: &Table, files: &[DataFile], columns: &[String]) -> Result<Vec<ArrayRef>> {
    let failed = || Error::lake("reading", table.name());
    let rows: u64 = files.iter().filter_map(DataFile::live_rows).sum();
    let step = (rows / SAMPLE_ROWS).max(1);
    let (mut at, mut parts) = (0, Vec::new());
    for file in files {
        let mut batches = table.read_file(file, Some(columns)).await.map_err(failed())?;
        while let Some(batch) = batches.try_next().await.map_err(|error| failed()(error.into()))? {
            let end = at + batch.num_rows() as u64;
            let chosen = (at.next_multiple_of(step)..end).step_by(usize::try_from(step).unwrap_or(usize::MAX));
            let chosen: UInt32Array = chosen.map(|row| u32::try_from(row - at).unwrap_or_default()).collect::<Vec<_>>().into();
            let taken = batch.columns().iter().map(|column| take(column, &chosen, None)).collect::<Result<Vec<_>, _>>();
            parts.push(taken.map_err(|error| failed()(error.into()))?);
            at = end;
        }
    }
    let schema = table.schema();
    let whole = |index: usize, name: &String| {
        let arrays: Vec<&dyn tributary_lake::arrow::array::Array> = parts.iter().map(|part| part[index].as_ref()).collect();
        let data_type = schema.field_with_name(name).map(|field| field.data_type().clone()).unwrap_or(DataType::Null);
        if arrays.is_empty() { Ok(tributary_lake::arrow::array::new_empty_array(&data_type)) } else { concat(&arrays) }
    };
    columns.iter().enumerate().map(|(index, name)| whole(index, name).map_err(|error| failed()(error.into()))).collect()
}

/// Sorts in as many parts as there are processors; what does not fit into memory spills.
async fn sorted(table: &Table, files: Files, order: &[String]) -> Result<SendableRecordBatchStream> {
    let failed = || Error::sorting(table.name());
    let schema = files.schema();
    let parts =
        files.parts().into_iter().map(|part| Arc::new(Part { schema: Arc::clone(&schema), files: part }) as Arc<dyn PartitionStream>);
    let source = StreamingTable::try_new(Arc::clone(&schema), parts.collect()).map_err(failed())?;
    let session = table.lake().session();
    let reserved = (table.lake().options().memory_limit / RESERVED_PART).min(RESERVED_MAX);
    session.state_ref().write().config_mut().options_mut().execution.sort_spill_reservation_bytes = reserved;
    let rows = session.read_table(Arc::new(source)).map_err(failed())?;
    let rows = rows.sort(order.iter().map(|column| ident(column).sort(true, true)).collect()).map_err(failed())?;
    let columns = table.schema().fields().iter().map(|field| ident(field.name())).collect::<Vec<_>>();
    rows.select(columns).map_err(failed())?.execute_stream().await.map_err(failed())
}

/// A name that no column of the table has.
fn unused_name(schema: &Schema) -> String {
    let mut name = "__place".to_owned();
    while schema.fields().iter().any(|field| field.name().eq_ignore_ascii_case(&name)) {
        name.insert(0, '_');
    }
    name
}

/// Files and the column that is added to their rows.
#[derive(Clone)]
struct Files {
    table: Table,
    files: Vec<DataFile>,
    along: Option<Along>,
}

#[derive(Clone)]
struct Along {
    ranks: Arc<Ranks>,
    columns: Vec<String>,
    /// Of the column that holds a row's place.
    name: String,
}

impl Files {
    fn schema(&self) -> SchemaRef {
        let schema = self.table.schema();
        let place = self.along.iter().map(|along| Arc::new(Field::new(&along.name, DataType::UInt64, false)));
        Arc::new(Schema::new(schema.fields().iter().cloned().chain(place).collect::<Vec<_>>()))
    }

    fn parts(self) -> Vec<Self> {
        let parts = side_by_side(&self.table).clamp(1, self.files.len().max(1));
        let mut by_part: BTreeMap<usize, Vec<DataFile>> = BTreeMap::new();
        for (at, file) in self.files.iter().enumerate() {
            by_part.entry(at % parts).or_default().push(file.clone());
        }
        by_part.into_values().map(|files| Self { files, ..self.clone() }).collect()
    }
}

/// Files as a part of a table of the query engine.
struct Part {
    schema: SchemaRef,
    files: Files,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("files", &self.files.files.len()).finish_non_exhaustive()
    }
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let Files { table, files, along } = self.files.clone();
        let schema = Arc::clone(&self.schema);
        let rows = as_they_come(&table, files).map(move |batch| with_place(&batch?, along.as_ref(), &schema));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

fn with_place(batch: &RecordBatch, along: Option<&Along>, schema: &SchemaRef) -> EngineResult<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    if let Some(along) = along {
        let of = |name: &String| batch.column_by_name(name).cloned();
        let by: Vec<ArrayRef> = along.columns.iter().filter_map(of).collect();
        columns.push(Arc::new(along.ranks.places(&by)?));
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
