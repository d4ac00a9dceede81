//! Reads, finds, computes and writes; the commit is the caller's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tributary_lake::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use tributary_lake::arrow::compute::{cast, concat_batches, take_record_batch};
use tributary_lake::arrow::datatypes::{Field, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::{Filter, LogicalPlan};
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::{ChangeFile, Found, KeyProbe, KeySearch, Keys, Lake, Table, TakenOut, Taker, WriterOptions};
use tributary_specs::GoldSpec;

use super::changed::Changes;
use super::naming::{most_telling, naming_columns};
use super::replace::{Difference, difference};
use super::rows::{column, count};
use super::shape::{Moved, Places};
use super::{Stop, feed, normal, too_much};
use crate::plan::{self, InputState};
use crate::query::{Input, Joins, Rows, own_names, plan_rows};
use crate::rules::{self, Tally};
use crate::scanned::Scanned;
use crate::{Error, Options, target};

/// The part of the lake's memory that rows of one step may take.
const MEMORY_PART: usize = 8;

/// Files of the view that are looked into before memory is counted.
const FILES_AT_ONCE: usize = 8;

/// A view on its way after its inputs.
pub(crate) struct Follower<'a> {
    pub lake: &'a Lake,
    pub spec: &'a GoldSpec,
    pub options: &'a Options,
    /// The view as it is.
    pub view: &'a Table,
    pub inputs: &'a [Input],
    /// Where the view is in its inputs, in their order.
    pub states: &'a [InputState],
}

/// Columns that name rows, with the values that may differ.
pub(super) struct Naming {
    pub keys: Keys,
    /// The columns' places in the query.
    pub places: Vec<usize>,
}

/// What a commit is made of.
#[derive(Default)]
pub(crate) struct Followed {
    pub files: TakenOut,
    pub changes: Vec<ChangeFile>,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    /// Rows that the query made, and of those the ones that the rules kept.
    pub rows_in: u64,
    pub rows_out: u64,
    pub tally: Tally,
    /// Rows of change feeds read, by place among the inputs.
    pub changes_read: BTreeMap<usize, u64>,
    /// What else was read of the inputs.
    pub scanned: Scanned,
}

impl Follower<'_> {
    /// Brings the view's rows up to date, in files that no commit names yet.
    ///
    /// # Errors
    /// [`Stop`].
    pub async fn follow(&self) -> Result<Followed, Stop> {
        let rows = plan_rows(self.lake, self.spec, Some(self.view), self.inputs, self.options, Joins::Hash).await?;
        target::check_columns(self.spec, &rows.columns)?;
        let reason = plan::never_follows(self.spec, rows.asks_for_time)
            .or_else(|| plan::columns_do_not_follow(self.view.columns(), &self.spec.schema, &rows.columns));
        if let Some(reason) = reason {
            return Err(Stop::Full(reason.to_owned()));
        }
        let moved: Places = (0..self.states.len()).filter(|at| self.states[*at].rows_changed).collect();
        let (state, query) = rows.frame.into_parts();
        let query = normal::normal(&state, query)?;
        let of_moved = || Moved { inputs: self.inputs, moved: &moved };
        let candidates = naming_columns(&query, &of_moved()).map_err(Stop::Full)?;

        let mut followed = Followed::default();
        let mut of_inputs = BTreeMap::new();
        for at in &moved {
            let state = &self.states[*at];
            let behind = state.made_from().ok_or_else(|| Stop::Full(format!("`{}` is a new input", state.table)))?;
            let feed = feed::read(&self.inputs[*at], behind, self.bytes_max()).await?;
            followed.changes_read.insert(*at, feed.read);
            of_inputs.insert(*at, feed.rows);
        }
        let changes = self.changes(&state, of_moved(), &of_inputs);
        if let Some(naming) = self.naming_values(&changes, &query, &candidates).await? {
            let new = self.new_rows(&changes, &query, &naming, &mut followed).await?;
            self.write(&naming.keys, new, &mut followed).await?;
        }
        followed.scanned = changes.scanned.into_inner().unwrap_or_else(PoisonError::into_inner);
        followed.scanned.take_in_lookups(self.inputs);
        Ok(followed)
    }

    pub(super) fn changes<'b>(
        &'b self,
        state: &'b SessionState,
        moved: Moved<'b>,
        of_inputs: &'b BTreeMap<usize, Vec<RecordBatch>>,
    ) -> Changes<'b> {
        Changes { state, moved, of_inputs, bytes_max: self.bytes_max(), lake: self.lake, scanned: Mutex::default() }
    }

    fn bytes_max(&self) -> usize {
        self.lake.options().memory_limit / MEMORY_PART
    }

    /// The values of naming columns that rows of the view which may differ have; none when none may.
    async fn naming_values(&self, changes: &Changes<'_>, query: &LogicalPlan, candidates: &[usize]) -> Result<Option<Naming>, Stop> {
        let Some(changed) = changes.of(query).await? else { return Ok(None) };
        let schema = query.schema();
        let pairs: Vec<_> = candidates.iter().map(|place| (column(schema, *place), schema.field(*place).name().clone())).collect();
        let all = changes.keys(&changed, &pairs).await?;
        if all.set().is_empty() {
            return Ok(None);
        }
        let chosen = most_telling(all.values())?;
        let names: Vec<String> = chosen.iter().map(|at| pairs[*at].1.clone()).collect();
        let keys = Keys::new(names, chosen.iter().map(|at| ArrayRef::clone(&all.values()[*at])).collect())?;
        Ok(Some(Naming { keys, places: chosen.iter().map(|at| candidates[*at]).collect() }))
    }

    /// The rows of the query with these values that the rules keep.
    pub(super) async fn new_rows(
        &self,
        changes: &Changes<'_>,
        query: &LogicalPlan,
        naming: &Naming,
        followed: &mut Followed,
    ) -> Result<Vec<RecordBatch>, Stop> {
        let expressions: Vec<_> = naming.places.iter().map(|place| column(query.schema(), *place)).collect();
        let held = LogicalPlan::Filter(Filter::try_new(naming.keys.condition(&expressions)?, Arc::new(query.clone()))?);
        let frame = rules::ask(self.spec, DataFrame::new(changes.state.clone(), held), &own_names(self.options))?;
        let batches = changes.collect_frame(frame).await?;
        followed.rows_in = count(&batches) as u64;
        let mut kept = Vec::new();
        for batch in batches {
            kept.push(match self.spec.expectations.is_empty() {
                true => batch,
                false => rules::sift(&self.spec.expectations, rules::key_columns(self.spec), &batch, &mut followed.tally)?.kept,
            });
        }
        followed.rows_out = count(&kept) as u64;
        Ok(kept)
    }

    /// Puts new rows in the place of old ones.
    async fn write(&self, keys: &Keys, new: Vec<RecordBatch>, followed: &mut Followed) -> Result<(), Stop> {
        let search = KeySearch::new(self.view, self.view.files().await?);
        let probe: Arc<dyn KeyProbe> = Arc::new(keys.clone());
        let old = self.found(&search, &probe).await?;
        let new = match new.first() {
            Some(first) => as_view(&old.rows, &concat_batches(&first.schema(), &new)?)?,
            None => RecordBatch::new_empty(old.rows.schema()),
        };
        let columns: Vec<String> = new.schema().fields().iter().map(|field| field.name().clone()).collect();
        let difference = difference(&old.rows, &new, &columns, keys.set().names())?;
        followed.updated = difference.updated.len() as u64;
        followed.inserted = difference.inserted.len() as u64;
        followed.deleted = difference.deleted.len() as u64;
        if difference.is_empty() {
            return Ok(());
        }
        let options = WriterOptions::default();
        let come: Vec<u32> = difference.come().collect();
        if !come.is_empty() {
            let mut writer = self.view.writer(options.clone())?;
            writer.write(&take_record_batch(&new, &UInt32Array::from(come))?).await?;
            followed.files.adds = writer.finish().await?;
        }
        let taker = Taker { search: &search, over: self.view, vectors: true, options: &options };
        let mut gone: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for row in difference.gone() {
            let (file, place) = old.places[row as usize];
            gone.entry(file).or_default().push(place);
        }
        for (file, gone) in gone {
            taker.take(file, gone, &mut followed.files).await?;
        }
        if followed.updated + followed.deleted > 0 && self.view.has_change_feed() {
            followed.changes = self.change_feed(&difference, &old.rows, &new).await?;
        }
        Ok(())
    }

    /// The rows of the view with the keys, some files at a time.
    pub(super) async fn found(&self, search: &KeySearch, probe: &Arc<dyn KeyProbe>) -> Result<Found, Stop> {
        let (mut places, mut rows, mut bytes) = (Vec::new(), Vec::new(), 0);
        let numbers: Vec<usize> = (0..search.files().len()).collect();
        for files in numbers.chunks(FILES_AT_ONCE) {
            let found = search.find(files.iter().copied(), probe).await?;
            bytes += found.rows.get_array_memory_size();
            if bytes > self.bytes_max() {
                return Err(too_much());
            }
            places.extend(found.places);
            rows.push(found.rows);
        }
        Ok(Found { rows: concat_batches(&self.view.schema(), &rows)?, places })
    }

    async fn change_feed(&self, difference: &Difference, old: &RecordBatch, new: &RecordBatch) -> Result<Vec<ChangeFile>, Stop> {
        let mut writer = self.view.change_writer();
        let (before, after): (Vec<u32>, Vec<u32>) = difference.updated.iter().copied().unzip();
        let changes = [
            (old, &before, "update_preimage"),
            (new, &after, "update_postimage"),
            (old, &difference.deleted, "delete"),
            (new, &difference.inserted, "insert"),
        ];
        for (rows, at, change) in changes {
            if !at.is_empty() {
                writer.write_rows(rows, at, change).await?;
            }
        }
        Ok(writer.finish().await?)
    }
}

/// Rows with the types that the columns of the view have.
pub(super) fn as_view(view: &RecordBatch, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in rows.schema().fields().iter().zip(rows.columns()) {
        let wanted = view.schema().field_with_name(field.name())?.data_type().clone();
        columns.push(if *field.data_type() == wanted { ArrayRef::clone(column) } else { cast(column, &wanted)? });
        fields.push(Field::new(field.name(), wanted, true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Why a view would not follow whichever of its inputs moves; none where it would, as far as its query and declaration tell.
pub(crate) fn why_not(spec: &GoldSpec, rows: &Rows, inputs: &[Input]) -> Result<Option<String>, Error> {
    if let Some(reason) = plan::never_follows(spec, rows.asks_for_time) {
        return Ok(Some(reason.to_owned()));
    }
    let (state, query) = rows.frame.clone().into_parts();
    let query = match normal::normal(&state, query) {
        Ok(query) => query,
        Err(error) => return Stop::from(error).reason(&spec.table).map(Some),
    };
    let moved: Places = (0..inputs.len()).collect();
    Ok(naming_columns(&query, &Moved { inputs, moved: &moved }).err())
}
