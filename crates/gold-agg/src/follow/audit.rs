//! Some groups of a view computed again from all rows of its inputs, at the versions that it records, and compared.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures::StreamExt;
use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use tributary_lake::arrow::compute::{cast, concat_batches};
use tributary_lake::arrow::datatypes::{DataType, Float64Type};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::row::{RowConverter, SortField};
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::datafusion::logical_expr::{LogicalPlan, Projection};
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::{KeyProbe, KeySearch, Keys, ReadOptions};

use super::naming::{NAMING_MAX, naming_columns};
use super::replace::difference;
use super::rows::column;
use super::run::{Followed, Follower, Naming, as_view};
use super::shape::{Moved, Places};
use super::{Stop, normal};
use crate::query::{Joins, plan_rows};

/// Numbers that were added in another order agree so far.
const ROUNDING: f64 = 1e-9;

/// What an audit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// The columns that name the groups.
    pub named_by: Vec<String>,
    /// Groups that were compared.
    pub groups: u64,
    /// Rows that they have in the view.
    pub rows: u64,
    /// Rows that the view has and should not, or has not and should.
    pub differing: u64,
}

impl Follower<'_> {
    /// Compares so many groups, chosen by `seed`, with the query over the inputs that are given.
    ///
    /// # Errors
    /// [`Stop::Full`] when nothing names groups of the view.
    pub async fn audit(&self, groups: usize, seed: u64) -> Result<Audit, Stop> {
        let rows = plan_rows(self.lake, self.spec, Some(self.view), self.inputs, self.options, Joins::Hash).await?;
        let (state, query) = rows.frame.into_parts();
        let query = normal::normal(&state, query)?;
        let all: Places = (0..self.inputs.len()).collect();
        let moved = || Moved { inputs: self.inputs, moved: &all, not_null: &[] };
        let mut places = naming_columns(&query, &moved()).map_err(Stop::Full)?;
        places.truncate(NAMING_MAX);
        let names: Vec<String> = places.iter().map(|place| query.schema().field(*place).name().clone()).collect();

        let named = places.iter().map(|place| column(query.schema(), *place)).collect();
        let of_query = LogicalPlan::Projection(Projection::try_new(named, Arc::new(query.clone()))?);
        let of_query = DataFrame::new(state.clone(), of_query).execute_stream().await?;
        let types: Vec<DataType> = places.iter().map(|place| query.schema().field(*place).data_type().clone()).collect();
        let mut sample = Sample::new(&types, groups, seed)?;
        sample.take_in(of_query).await?;
        sample.take_in(self.view.read(ReadOptions { columns: Some(names.clone()), filter: None }).await?).await?;
        let groups = sample.kept.len() as u64;
        let naming = Naming { keys: Keys::new(names.clone(), sample.columns()?)?, places };

        let of_inputs = BTreeMap::new();
        let changes = self.changes(&state, moved(), &of_inputs);
        let new = self.new_rows(&changes, &query, &naming, &mut Followed::default()).await?;
        let search = KeySearch::new(self.view, self.view.files().await?);
        let probe: Arc<dyn KeyProbe> = Arc::new(naming.keys.clone());
        let old = self.found(&search, &probe).await?.rows;
        let differing = match new.first() {
            Some(first) => differing(&old, &as_view(&old, &concat_batches(&first.schema(), &new)?)?)?,
            None => old.num_rows() as u64,
        };
        Ok(Audit { named_by: names, groups, rows: old.num_rows() as u64, differing })
    }
}

/// How many rows of both have no equal one in the other, rounding left aside.
fn differing(old: &RecordBatch, new: &RecordBatch) -> Result<u64, ArrowError> {
    let columns: Vec<String> = new.schema().fields().iter().map(|field| field.name().clone()).collect();
    let exact =
        new.schema().fields().iter().filter(|field| !field.data_type().is_floating()).map(|field| field.name().clone()).collect::<Vec<_>>();
    let found = difference(old, new, &columns, &exact)?;
    let mut differing = (found.inserted.len() + found.deleted.len()) as u64;
    for (before, after) in &found.updated {
        let mut close = true;
        for name in columns.iter().filter(|name| !exact.contains(name)) {
            let at = |rows: &RecordBatch, row: u32| -> Result<Option<f64>, ArrowError> {
                let column = cast(rows.column(rows.schema().index_of(name)?).slice(row as usize, 1).as_ref(), &DataType::Float64)?;
                Ok(column.is_valid(0).then(|| column.as_primitive::<Float64Type>().value(0)))
            };
            close &= agree(at(old, *before)?, at(new, *after)?);
        }
        differing += u64::from(!close);
    }
    Ok(differing)
}

fn agree(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let size = one.abs().max(other.abs()).max(1.0);
            (one.is_nan() && other.is_nan()) || one.total_cmp(&other).is_eq() || (one - other).abs() <= ROUNDING * size
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Some of all different keys, each as likely as any other.
struct Sample {
    converter: RowConverter,
    /// The least hashes so far, with their keys.
    kept: BTreeMap<u64, Box<[u8]>>,
    most: usize,
    seed: u64,
}

impl Sample {
    fn new(types: &[DataType], most: usize, seed: u64) -> Result<Self, ArrowError> {
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect())?;
        Ok(Self { converter, kept: BTreeMap::new(), most, seed })
    }

    async fn take_in(&mut self, mut rows: SendableRecordBatchStream) -> Result<(), Stop> {
        while let Some(batch) = rows.next().await.transpose()? {
            for row in &self.converter.convert_columns(batch.columns())? {
                let mut hasher = DefaultHasher::new();
                (self.seed, row.as_ref()).hash(&mut hasher);
                self.kept.entry(hasher.finish()).or_insert_with(|| Box::from(row.as_ref()));
                if self.kept.len() > self.most {
                    self.kept.pop_last();
                }
            }
        }
        Ok(())
    }

    fn columns(&self) -> Result<Vec<ArrayRef>, ArrowError> {
        let parser = self.converter.parser();
        self.converter.convert_rows(self.kept.values().map(|row| parser.parse(row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_but_for_rounding() {
        assert!(agree(Some(0.1 + 0.2), Some(0.3)) && agree(None, None) && agree(Some(f64::NAN), Some(f64::NAN)));
        assert!(!agree(Some(0.3), Some(0.301)) && !agree(None, Some(0.0)) && !agree(Some(f64::NAN), Some(1.0)));
    }
}
