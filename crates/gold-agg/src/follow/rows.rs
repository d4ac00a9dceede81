//! Rows in memory: what changed, told once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::StreamExt;
use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use tributary_lake::arrow::compute::{cast, take_record_batch};
use tributary_lake::arrow::datatypes::{Field, Schema, SchemaRef};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::row::{RowConverter, SortField};
use tributary_lake::datafusion::common::{Column, DFSchema, ScalarValue};
use tributary_lake::datafusion::datasource::{MemTable, provider_as_source};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, lit};

/// What rows in memory are called in plans; no table of a person can be.
const IN_MEMORY: &str = "rows in memory";

/// Rows read until there are too many bytes of them.
pub(crate) enum Gathered {
    Rows(Vec<RecordBatch>),
    TooMany,
}

/// Reads a stream to its end.
pub(crate) async fn gather(mut stream: SendableRecordBatchStream, bytes_max: usize) -> Result<Gathered> {
    let (mut batches, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = stream.next().await.transpose()? {
        bytes += batch.get_array_memory_size();
        if bytes > bytes_max {
            return Ok(Gathered::TooMany);
        }
        if batch.num_rows() > 0 {
            batches.push(batch);
        }
    }
    Ok(Gathered::Rows(batches))
}

pub(crate) fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// An expression with the name and qualifier of a column.
pub(crate) fn named(expression: Expr, schema: &DFSchema, place: usize) -> Expr {
    let (qualifier, field) = schema.qualified_field(place);
    match expression {
        Expr::Column(column) if column.relation.as_ref() == qualifier && column.name == *field.name() => Expr::Column(column),
        other => other.unalias().alias_qualified(qualifier.cloned(), field.name()),
    }
}

/// A column as an expression.
pub(crate) fn column(schema: &DFSchema, place: usize) -> Expr {
    Expr::Column(Column::from(schema.qualified_field(place)))
}

/// Null in place of a column that is not told.
pub(crate) fn untold(schema: &DFSchema, place: usize) -> Result<Expr> {
    let null = ScalarValue::try_from(schema.field(place).data_type())?;
    Ok(named(lit(null), schema, place))
}

/// A plan over rows in memory, with the columns of `schema`, in their order.
pub(crate) fn plan_of(schema: &DFSchema, batches: &[RecordBatch]) -> Result<LogicalPlan> {
    let place = |at: usize| format!("c{at}");
    let fields: Vec<Field> =
        schema.fields().iter().enumerate().map(|(at, field)| Field::new(place(at), field.data_type().clone(), true)).collect();
    let in_memory: SchemaRef = Arc::new(Schema::new(fields));
    let rows = batches.iter().map(|batch| fitted(batch, &in_memory)).collect::<Result<Vec<_>, ArrowError>>()?;
    let table = MemTable::try_new(Arc::clone(&in_memory), vec![rows])?;
    let scan = LogicalPlanBuilder::scan(IN_MEMORY, provider_as_source(Arc::new(table)), None)?.build()?;
    let expressions: Vec<Expr> = (0..schema.fields().len())
        .map(|at| {
            let (qualifier, field) = schema.qualified_field(at);
            column(scan.schema(), at).alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    Ok(LogicalPlan::Projection(Projection::try_new(expressions, Arc::new(scan))?))
}

/// A batch with these columns by place.
fn fitted(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| as_type(column, field));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_, _>>()?, &options)
}

fn as_type(column: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    match column.data_type() == field.data_type() {
        true => Ok(ArrayRef::clone(column)),
        false => cast(column, field.data_type()),
    }
}

/// Encodes rows so that equal ones have equal bytes; none where a type has no such form.
pub(crate) fn converter(columns: &[ArrayRef]) -> Option<RowConverter> {
    let fields: Vec<SortField> = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    RowConverter::supports_fields(&fields).then(|| RowConverter::new(fields).ok()).flatten()
}

/// Rows of an input that differ between two versions, each as often as its count differs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changed {
    /// There are more of them than there were.
    pub came: Vec<RecordBatch>,
    /// There are fewer.
    pub gone: Vec<RecordBatch>,
}

impl Changed {
    /// Both, whichever way they differ.
    pub fn all(&self) -> impl Iterator<Item = &RecordBatch> {
        self.came.iter().chain(&self.gone)
    }
}

/// How often a row came more than it went, and where it is: number of the batch, row in it.
#[derive(Default)]
struct Net {
    times: i64,
    places: Vec<(usize, u32)>,
}

fn comes(word: &str) -> bool {
    matches!(word, "insert" | "update_postimage")
}

/// Changes of the feed (columns of the table, then the change's word) brought together: rows that went and came back are no change.
pub(crate) fn netted(batches: &[RecordBatch], width: usize) -> Result<Changed, ArrowError> {
    let Some(first) = batches.first() else { return Ok(Changed::default()) };
    let converter = converter(&first.columns()[..width]);
    // rows that have no such form are no change to each other: what came and went again is in both
    let mut sides = [vec![Vec::new(); batches.len()], vec![Vec::new(); batches.len()]];
    let mut net: HashMap<Box<[u8]>, Net> = HashMap::new();
    for (number, batch) in batches.iter().enumerate() {
        let words: &StringArray = batch.column(width).as_string();
        let Some(converter) = &converter else {
            (0..batch.num_rows()).for_each(|at| sides[usize::from(!comes(words.value(at)))][number].push(at as u32));
            continue;
        };
        let encoded = converter.convert_columns(&batch.columns()[..width])?;
        for (at, row) in encoded.iter().enumerate() {
            let net = net.entry(row.as_ref().into()).or_default();
            net.times += if comes(words.value(at)) { 1 } else { -1 };
            net.places.push((number, at as u32));
        }
    }
    for Net { times, places } in net.into_values() {
        let left = usize::try_from(times.unsigned_abs()).unwrap_or(usize::MAX);
        places.into_iter().take(left).for_each(|(number, at)| sides[usize::from(times < 0)][number].push(at));
    }
    let [came, gone] = sides.map(|side| taken(batches, width, side));
    Ok(Changed { came: came?, gone: gone? })
}

/// The rows at these places of each batch, in their order.
fn taken(batches: &[RecordBatch], width: usize, places: Vec<Vec<u32>>) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut taken = Vec::new();
    for (batch, mut at) in batches.iter().zip(places).filter(|(_, at)| !at.is_empty()) {
        at.sort_unstable();
        taken.push(take_record_batch(&batch.project(&(0..width).collect::<Vec<_>>())?, &UInt32Array::from(at))?);
    }
    Ok(taken)
}

/// How many different rows the columns at these places have.
pub(crate) fn distinct(batches: &[RecordBatch], places: &[usize]) -> Result<usize, ArrowError> {
    let Some(first) = batches.first() else { return Ok(0) };
    let columns = |batch: &RecordBatch| places.iter().map(|place| ArrayRef::clone(batch.column(*place))).collect::<Vec<_>>();
    let Some(converter) = converter(&columns(first)) else { return Ok(count(batches)) };
    let mut seen: HashSet<Box<[u8]>> = HashSet::new();
    for batch in batches {
        let encoded = converter.convert_columns(&columns(batch))?;
        seen.extend(encoded.iter().map(|row| Box::from(row.as_ref())));
    }
    Ok(seen.len())
}

#[cfg(test)]
mod tests {
    use tributary_lake::arrow::array::Int64Array;

    use super::*;

    fn changes(rows: &[(i64, &str)]) -> RecordBatch {
        let ids: ArrayRef = Arc::new(rows.iter().map(|(id, _)| Some(*id)).collect::<Int64Array>());
        let words: ArrayRef = Arc::new(rows.iter().map(|(_, word)| Some(*word)).collect::<StringArray>());
        RecordBatch::try_from_iter([("id", ids), ("_change_type", words)]).unwrap()
    }

    fn ids<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<i64> {
        let of = |batch: &RecordBatch| batch.column(0).as_primitive::<tributary_lake::arrow::datatypes::Int64Type>().values().to_vec();
        let mut ids: Vec<i64> = batches.into_iter().flat_map(of).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn what_went_and_came_back_is_no_change_and_the_rest_is_told_as_often_as_it_counts() {
        let first = changes(&[(1, "insert"), (2, "delete"), (3, "update_preimage"), (4, "update_postimage")]);
        let second = changes(&[(1, "delete"), (2, "insert"), (2, "insert"), (5, "delete"), (5, "delete")]);
        let changed = netted(&[first, second], 1).unwrap();
        assert_eq!((ids(&changed.came), ids(&changed.gone), ids(changed.all())), (vec![2, 4], vec![3, 5, 5], vec![2, 3, 4, 5, 5]));
        assert_eq!(netted(&[], 1).unwrap().all().count(), 0);
    }

    #[test]
    fn different_rows_are_counted_over_batches() {
        let batches = [changes(&[(1, "insert"), (1, "delete")]), changes(&[(1, "insert"), (2, "insert")])];
        assert_eq!((distinct(&batches, &[0]).unwrap(), distinct(&batches, &[0, 1]).unwrap()), (2, 3));
    }
}
