//! Reads, finds, computes and writes; the commit is the caller's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tributary_lake::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use tributary_lake::arrow::compute::{cast, concat_batches, take_record_batch};
use tributary_lake::arrow::datatypes::{DataType, Field, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::{Filter, LogicalPlan};
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::{ChangeFile, Found, KeyProbe, KeySearch, Keys, Lake, Table, TakenOut, Taker, WriterOptions};
use tributary_specs::GoldSpec;

use super::bounded::{self, Spans};
use super::changed::Changes;
use super::means::{Means, changed_groups, deltas};
use super::naming::most_telling;
use super::replace::{Difference, difference};
use super::rows::{Changed, column, count};
use super::shape::{Moved, Places, Reason};
use super::signed::Signed;
use super::{Stop, feed, named, normal, not_null, too_much};
use crate::plan::{self, InputState};
use crate::query::{Input, Joins, Rows, own_names, plan_rows};
use crate::reached::Held;
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

/// Rows of the view that may differ, as they are and as they are to be.
pub(super) struct Replaced {
    /// Columns that tell which new row is in whose place; none where there is one row.
    pub names: Vec<String>,
    pub old: Found,
    pub new: Vec<RecordBatch>,
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
    /// How it was told what differs.
    pub means: String,
    /// Groups that signed deltas brought up to date, and groups that were computed again beside them.
    pub deltas: Option<(u64, u64)>,
    /// Rows of change feeds read, by place among the inputs.
    pub changes_read: BTreeMap<usize, u64>,
    /// What else was read of the inputs.
    pub scanned: Scanned,
    /// How far the event times of its streams reach, where rows of it wait for their watermark.
    pub held: Held,
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
        let (means, not_null) = means(&query, self.inputs, &moved, self.states).await?;
        let means = means.map_err(Stop::Full)?;

        let mut followed = Followed { held: rows.held, ..Followed::default() };
        let mut of_inputs = BTreeMap::new();
        let (named, mut repeats) = (named::columns(&query), None);
        for at in &moved {
            let state = &self.states[*at];
            let behind = state.made_from().ok_or_else(|| Stop::Full(format!("`{}` is a new input", state.table)))?;
            let feed = feed::read(&self.inputs[*at], behind, named.as_ref(), self.bytes_max()).await?;
            repeats = repeats.or(feed.repeats);
            followed.changes_read.insert(*at, feed.read);
            of_inputs.insert(*at, feed.rows);
        }
        let means = match repeats {
            Some(why) => Means { signed: Err(why), ..means },
            None => means,
        };
        let changes = self.changes(&state, Moved { inputs: self.inputs, moved: &moved, not_null: &not_null }, &of_inputs);
        let search = KeySearch::new(self.view, self.view.files().await?);
        if let Some(replaced) = self.replaced(&changes, &query, means, &search, &mut followed).await? {
            self.write(&search, replaced, &mut followed).await?;
        }
        followed.scanned = changes.scanned.into_inner().unwrap_or_else(PoisonError::into_inner);
        followed.scanned.take_in_lookups(self.inputs);
        Ok(followed)
    }

    /// The rows that may differ, as they are and as they are to be, told by the first means that tells them.
    async fn replaced(
        &self,
        changes: &Changes<'_>,
        query: &LogicalPlan,
        means: Means,
        search: &KeySearch,
        followed: &mut Followed,
    ) -> Result<Option<Replaced>, Stop> {
        let Means { signed, naming } = means;
        // a group whose row a rule left out has rows all the same
        let heeding_rules = |mut signed: Signed| {
            signed.totals.all_groups &= self.spec.expectations.is_empty();
            signed
        };
        let why = match signed.map(heeding_rules) {
            Ok(signed) => match self.by_deltas(changes, query, &signed, search, followed).await {
                Err(Stop::Full(why)) => why,
                replaced => {
                    followed.means = deltas(&signed);
                    return replaced;
                }
            },
            Err(why) => why,
        };
        let candidates = naming.map_err(Stop::Full)?;
        (followed.rows_in, followed.rows_out, followed.tally, followed.deltas) = (0, 0, Tally::default(), None);
        followed.means = changed_groups(&why);
        let Some((naming, spans)) = self.naming_values(changes, query, &candidates).await? else { return Ok(None) };
        let wanted = match bounded::condition(query.schema(), &spans) {
            Some(within) => LogicalPlan::Filter(Filter::try_new(within, Arc::new(bounded::bounded(query.clone(), &spans)?))?),
            None => query.clone(),
        };
        let new = self.new_rows(changes, &wanted, &naming, followed).await?;
        let probe: Arc<dyn KeyProbe> = Arc::new(naming.keys.clone());
        let spans: Vec<_> = spans.into_iter().map(|(place, span)| (query.schema().field(place).name().clone(), span)).collect();
        let old = bounded::found_within(self.found(search, &probe).await?, &spans)?;
        Ok(Some(Replaced { names: naming.keys.set().names().to_vec(), old, new }))
    }

    pub(super) fn changes<'b>(&'b self, state: &'b SessionState, moved: Moved<'b>, of_inputs: &'b BTreeMap<usize, Changed>) -> Changes<'b> {
        Changes { state, moved, of_inputs, bytes_max: self.bytes_max(), lake: self.lake, scanned: Mutex::default() }
    }

    fn bytes_max(&self) -> usize {
        self.lake.options().memory_limit / MEMORY_PART
    }

    /// The values of naming columns that rows of the view which may differ have, and between which times these rows lie; none when none
    /// may.
    async fn naming_values(
        &self,
        changes: &Changes<'_>,
        query: &LogicalPlan,
        candidates: &[usize],
    ) -> Result<Option<(Naming, Spans)>, Stop> {
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
        let mut spans = Spans::new();
        for (place, values) in candidates.iter().zip(all.values()) {
            spans.extend(bounded::span_of(values)?.map(|span| (*place, span)));
        }
        Ok(Some((Naming { keys, places: chosen.iter().map(|at| candidates[*at]).collect() }, spans)))
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
        self.kept_rows(changes, held, followed).await
    }

    /// The rows of a plan of the query that the rules keep.
    pub(super) async fn kept_rows(
        &self,
        changes: &Changes<'_>,
        plan: LogicalPlan,
        followed: &mut Followed,
    ) -> Result<Vec<RecordBatch>, Stop> {
        let frame = rules::ask(self.spec, DataFrame::new(changes.state.clone(), plan), &own_names(self.options))?;
        let batches = changes.collect_frame(frame).await?;
        followed.rows_in += count(&batches) as u64;
        let mut kept = Vec::new();
        for batch in batches {
            kept.push(match self.spec.expectations.is_empty() {
                true => batch,
                false => rules::sift(&self.spec.expectations, rules::key_columns(self.spec), &batch, &mut followed.tally)?.kept,
            });
        }
        followed.rows_out += count(&kept) as u64;
        Ok(kept)
    }

    /// Puts new rows in the place of old ones.
    async fn write(&self, search: &KeySearch, replaced: Replaced, followed: &mut Followed) -> Result<(), Stop> {
        let Replaced { names, old, new } = replaced;
        let new = match new.first() {
            Some(first) => as_view(&old.rows, &concat_batches(&first.schema(), &new)?)?,
            None => RecordBatch::new_empty(old.rows.schema()),
        };
        let columns: Vec<String> = new.schema().fields().iter().map(|field| field.name().clone()).collect();
        let difference = difference(&old.rows, &new, &columns, &names)?;
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
        let taker = Taker { search, over: self.view, vectors: true, options: &options };
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
        columns.push(as_type(column, &wanted)?);
        fields.push(Field::new(field.name(), wanted, true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// A column in a type.
pub(super) fn as_type(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == wanted { Ok(ArrayRef::clone(column)) } else { cast(column, wanted) }
}

/// The means there are for a query over inputs that moved, and what had to be known of nulls in the inputs to tell them.
async fn means(
    query: &LogicalPlan,
    inputs: &[Input],
    moved: &Places,
    states: &[InputState],
) -> Result<(Result<Means, Reason>, Vec<BTreeSet<String>>), Stop> {
    let means = Means::of(query, &Moved { inputs, moved, not_null: &[] });
    if !means.as_ref().is_ok_and(Means::is_open) {
        return Ok((means, Vec::new()));
    }
    let not_null = not_null::not_null(inputs, states).await?;
    let means = Means::of(query, &Moved { inputs, moved, not_null: &not_null });
    Ok((means, not_null))
}

/// How a view would follow when these inputs move, or why it would not, as far as its query and declaration tell, and where it is in
/// its inputs.
pub(crate) async fn means_of(
    spec: &GoldSpec,
    rows: &Rows,
    inputs: &[Input],
    moved: &Places,
    states: &[InputState],
) -> Result<Result<String, String>, Error> {
    if let Some(reason) = plan::never_follows(spec, rows.asks_for_time) {
        return Ok(Err(reason.to_owned()));
    }
    let (state, query) = rows.frame.clone().into_parts();
    let query = match normal::normal(&state, query) {
        Ok(query) => query,
        Err(error) => return Stop::from(error).reason(&spec.table).map(Err),
    };
    match means(&query, inputs, moved, states).await {
        Ok((means, _)) => Ok(means.map(|means| means.told())),
        Err(stop) => stop.reason(&spec.table).map(Err),
    }
}
