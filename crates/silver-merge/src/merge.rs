//! One attempt at a keyed table: slices of keys are read, planned and written; one commit at the end takes them all.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, UInt32Array};
use tributary_lake::arrow::compute::take;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{Commit, Found, KeyProbe, KeyRanges, KeySearch, KeySet, Operation, Reads, Table};

use crate::batch::Batch;
use crate::controls;
use crate::error::{Error, Result};
use crate::events::{Events, Kind};
use crate::intake::{Findings, Intake, check_lengths, merge, ties};
use crate::keys::{Key, KeyCodec, Slices, Wanted};
use crate::met::{Meeting, Met};
use crate::plan::{Counts, Inputs, MergePlan, plan_merge};
use crate::report::Tally;
use crate::retaining::Retaining;
use crate::run::{Attempt, Ended};
use crate::search::Probe;
use crate::state::{Maker, Retained, State, StateChanges, Written, join};
use crate::writes::Writes;

/// Plans and commits; see [`crate::run::run`].
pub(crate) async fn merge_keyed(attempt: &Attempt<'_>, intake: &Intake<'_>, state: &State) -> Result<Ended> {
    let codec = Arc::new(KeyCodec::new(&intake.target.shape).map_err(|error| Error::kernel(&attempt.spec.table, error))?);
    let wide = state.of_all(intake.target).await?;
    let mut tied = ties(intake.target, &codec, &wide.events).map_err(|error| Error::kernel(&attempt.spec.table, error))?;
    let (mut batch, mut findings) = Batch::read(attempt.lake, intake, &codec, attempt.options.memory_limit).await?;
    if findings.rows == 0 && !attempt.replaces {
        return attempt.no_rows(intake.target).await;
    }
    let at_least = slices_of_all(attempt, batch.has_globals()).await?;
    loop {
        let slices = Arc::new(batch.deal(at_least, tied).await?);
        match merge_slices(attempt, intake, &codec, &slices, state, &wide, &mut batch, &mut findings).await? {
            Sliced::Ended(ended) => return Ok(ended),
            Sliced::Tie(keys) => tied = keys,
        }
    }
}

/// How the slices ended.
enum Sliced {
    Ended(Ended),
    /// These keys must be in one slice: to be begun again.
    Tie(Vec<(Key, Key)>),
}

#[expect(clippy::too_many_arguments, reason = "one caller, next to it")]
async fn merge_slices(
    attempt: &Attempt<'_>,
    intake: &Intake<'_>,
    codec: &Arc<KeyCodec>,
    slices: &Arc<Slices>,
    state: &State,
    wide: &Retained,
    batch: &mut Batch<'_>,
    findings: &mut Findings,
) -> Result<Sliced> {
    let table = attempt.open_or_create(intake.target).await?;
    let files = match attempt.replaces {
        true => Vec::new(),
        false => table.files().await.map_err(|source| Error::lake("list the files of", table.name(), source))?,
    };
    let search = KeySearch::new(&table, files);
    let feeds_inserts = !controls::inserts_left_out_of_change_feed(attempt.lake.options());
    let made_of = intake.judge.before_images.as_ref().map(|images| images.made_of(&intake.target.shape));
    let writes = Writes::new(&search, intake.target, &codec.names, made_of.clone(), slices.count == 1, feeds_inserts)?;
    let retaining = Retaining::new(attempt.lake, &intake.target.shape, attempt.options.memory_limit);
    let sums = Sums::default();
    let mut merge = Merge { attempt, intake, codec, slices, state, wide, table: &table, search: &search, made_of, writes, retaining, sums };
    for at in 0..slices.count {
        let (events, preimages) = batch.slice(at).await?;
        merge.sums.preimages += preimages;
        if let Some(keys) = merge.slice(at, events).await? {
            return Ok(Sliced::Tie(keys));
        }
    }
    if let Some(lost) = attempt.set_aside(intake, findings).await? {
        return Ok(Sliced::Ended(Ended::Lost(lost)));
    }
    merge.commit(std::mem::take(findings)).await.map(Sliced::Ended)
}

/// What a byte of a file may come to in memory.
const BYTES_READ_MAX: u64 = 8;

/// How many slices the whole table needs, where events concern every key of it.
async fn slices_of_all(attempt: &Attempt<'_>, has_globals: bool) -> Result<usize> {
    let Some(table) = attempt.existing.as_ref().filter(|_| has_globals) else { return Ok(1) };
    let files = table.files().await.map_err(|source| Error::lake("list the files of", table.name(), source))?;
    let bytes = files.iter().map(|file| file.size).sum::<u64>().saturating_mul(BYTES_READ_MAX);
    // A third of the memory for what is read; the rest for what it becomes.
    let slices = bytes.div_ceil((attempt.options.memory_limit / 3).max(1) as u64);
    Ok(usize::try_from(slices).unwrap_or(usize::MAX).max(1))
}

struct Merge<'a> {
    attempt: &'a Attempt<'a>,
    intake: &'a Intake<'a>,
    codec: &'a Arc<KeyCodec>,
    slices: &'a Arc<Slices>,
    state: &'a State,
    /// Links, and truncates and cuts of every key.
    wide: &'a Retained,
    table: &'a Table,
    search: &'a KeySearch,
    /// What new rows are made of, where before-images can stand for old ones.
    made_of: Option<String>,
    writes: Writes<'a>,
    retaining: Retaining<'a>,
    sums: Sums,
}

/// A plan, and what it was made on.
struct PlannedSlice {
    plan: MergePlan,
    found: Found,
    retained: Retained,
    wanted: Arc<Wanted>,
}

/// What the slices came to together.
#[derive(Default)]
struct Sums {
    counts: Counts,
    /// Rows of the state that go.
    state_removed: BTreeMap<usize, Vec<u64>>,
    ranges: KeyRanges,
    whole_table: bool,
    /// Files of the table in which rows of the keys were found.
    met: BTreeSet<usize>,
    unknown: BTreeMap<String, u64>,
    /// Preimages of updates left out, which say nothing beside the postimage.
    preimages: u64,
}

impl Merge<'_> {
    /// Plans and writes a slice; or gives keys that must be in one slice for it to be planned.
    async fn slice(&mut self, at: usize, mut events: Events) -> Result<Option<Vec<(Key, Key)>>> {
        if self.attempt.options.cancel.is_cancelled() {
            return Err(Error::Cancelled { table: self.attempt.spec.table.clone() });
        }
        if events.len() == 0 {
            return Ok(None);
        }
        let mut planned = self.planned(at, &events, 0).await?;
        if !planned.plan.to_read_again.is_empty() {
            let keys = planned.plan.to_read_again.iter().cloned().collect();
            let (again, keys) = self.intake.read_again(self.codec, keys).await?;
            if keys.iter().any(|key| self.slices.of(key) != at) {
                return Ok(Some(keys.into_iter().map(|key| (key.clone(), key)).collect()));
            }
            let count = again.len();
            events = Events::concat(&self.intake.target.shape, vec![events, again]).map_err(|error| self.kernel(error))?;
            planned = self.planned(at, &events, count).await?;
        }
        drop(events);
        self.writes.apply(&planned.plan, &planned.found).await?;
        self.sums.met.extend(planned.found.places.iter().map(|(file, _)| *file));
        self.sums.add(&planned.plan, &planned.retained, &planned.wanted);
        let table = &self.attempt.spec.table;
        self.retaining.add(planned.plan.state_added).await.map_err(|error| Error::spilled(table, error))?;
        Ok(None)
    }

    fn kernel(&self, error: ArrowError) -> Error {
        Error::kernel(&self.attempt.spec.table, error)
    }

    /// Reads what the events meet, and plans. The last `again` of them were read again.
    async fn planned(&mut self, at: usize, events: &Events, again: usize) -> Result<PlannedSlice> {
        let target = self.intake.target;
        let wanted = Arc::new(self.wanted(at, events, again)?);
        let wide = self.wide_of(at, &wanted)?;
        let probe: Arc<dyn KeyProbe> = Arc::new(self.probe(&wanted));
        let retained = self.state.of_keys(target, &probe).await?;
        let retained = join(target, vec![retained, wide]).map_err(|error| self.kernel(error))?;
        let feed = self.writes.has_feed();
        let checks = !controls::before_images_unchecked(self.attempt.lake.options());
        let made_of = self.made_of.as_deref();
        let meeting = Meeting { search: self.search, target, codec: self.codec, probe: &probe, feed, made_of, checks };
        let met = meeting.rows(events, &retained.events).await;
        let Met { found, visible, removed, differing } = met.map_err(|source| Error::lake("read rows of", self.table.name(), source))?;
        check_lengths(self.attempt.spec, [&visible, &retained.events, events])?;
        let inputs = Inputs {
            shape: &target.shape,
            visible: &visible,
            removed: removed.as_ref(),
            differing: &differing,
            state: &retained.events,
            incoming: events,
            again,
            first_slice: at == 0,
            delete_memory: !controls::delete_memory_off(self.attempt.lake.options()),
        };
        let plan = plan_merge(&inputs).map_err(|error| self.kernel(error))?;
        Ok(PlannedSlice { plan, found, retained, wanted })
    }

    fn probe(&self, wanted: &Arc<Wanted>) -> Probe {
        Probe { codec: Arc::clone(self.codec), wanted: Arc::clone(wanted), slices: Arc::clone(self.slices) }
    }

    /// The keys of the events, and those that key changes tie to them; all of the slice where every key is concerned.
    fn wanted(&self, at: usize, events: &Events, again: usize) -> Result<Wanted> {
        if events.kinds[..events.len() - again].iter().any(|kind| kind.is_global()) {
            return Ok(Wanted::Slice(at));
        }
        let target = self.intake.target;
        let kernel = |error| self.kernel(error);
        let events = without_globals(events).map_err(kernel)?;
        let columns = self.codec.columns_of(&target.shape, &events.rows);
        let mut pairs = ties(target, self.codec, &events).map_err(kernel)?;
        pairs.extend(ties(target, self.codec, &self.wide.events).map_err(kernel)?);
        let mut parts = vec![columns];
        if !pairs.is_empty() {
            let encoded = self.codec.encode(&parts[0]).map_err(kernel)?;
            let mut keys: HashSet<Key> = (0..events.len()).map(|row| Key::from(encoded.row(row).as_ref())).collect();
            if reach(&mut keys, &pairs) {
                parts.extend(self.tied_columns(&events, &keys).map_err(kernel)?);
            }
        }
        let keys = KeySet::new(self.codec.names.clone(), &self.codec.types, &parts);
        keys.map(|keys| Wanted::Keys(Box::new(keys))).map_err(|source| Error::lake("look for keys of", self.table.name(), source))
    }

    /// The key columns of both sides of the key changes whose keys are wanted.
    fn tied_columns(&self, events: &Events, keys: &HashSet<Key>) -> Result<Vec<Vec<ArrayRef>>, ArrowError> {
        let mut sides = Vec::new();
        for events in [events, &self.wide.events] {
            let own = self.codec.columns_of(&self.intake.target.shape, &events.rows);
            for columns in std::iter::once(own).chain(events.other_key_columns()) {
                let encoded = self.codec.encode(&columns)?;
                let at: UInt32Array = (0..events.len() as u32)
                    .filter(|row| events.has_other_key(*row as usize) && keys.contains(encoded.row(*row as usize).as_ref()))
                    .collect();
                sides.push(columns.iter().map(|column| take(column, &at, None)).collect::<Result<_, _>>()?);
            }
        }
        Ok(sides)
    }

    /// The links of wanted keys, and what concerns every key.
    fn wide_of(&self, at: usize, wanted: &Arc<Wanted>) -> Result<Retained> {
        let kernel = |error| Error::kernel(&self.attempt.spec.table, error);
        let events = &self.wide.events;
        let columns = self.codec.columns_of(&self.intake.target.shape, &events.rows);
        let wanted: HashSet<u32> = self.probe(wanted).rows(&columns).map_err(kernel)?.into_iter().collect();
        let concerns = |row: &u32| match events.kinds[*row as usize] {
            Kind::Link => at == 0 && wanted.contains(row),
            _ => true,
        };
        let rows: UInt32Array = (0..events.len() as u32).filter(concerns).collect();
        let places = rows.values().iter().map(|row| self.wide.places[*row as usize]).collect();
        Ok(Retained { events: events.take(&rows).map_err(kernel)?, places })
    }

    async fn commit(self, mut findings: Findings) -> Result<Ended> {
        let Self { attempt, intake, slices, state, table, search, writes, retaining, sums, .. } = self;
        if sums.preimages > 0 {
            *findings.ignored.entry("preimage".to_owned()).or_default() += sums.preimages;
        }
        let changed = writes.changed;
        let rests_on = sums.met.iter().filter(|file| !writes.changes_file(**file)).map(|file| search.files()[*file].clone()).collect();
        let files = writes.finish().await?;
        let maker = Maker { flow: attempt.place.label(), version: attempt.reach.to };
        let mut progress = attempt.source_progress(intake.source);
        let added = retaining.finish().await.map_err(|error| Error::spilled(&attempt.spec.table, error))?;
        let changes = StateChanges { removed: sums.state_removed, added };
        match state.write(attempt.lake, intake.target, changes, &maker).await? {
            Written::Planned(names_it) => progress.extend(names_it),
            Written::Lost(outcome) => return Ok(Ended::Lost(outcome)),
        }
        let bytes = files.bytes();
        let commit = Commit {
            operation: Operation::Merge,
            adds: files.adds,
            removes: files.removes,
            marks: files.marks,
            rests_on,
            changes: files.changes,
            progress,
            schema: intake.target.grows.then(|| intake.target.columns.clone()),
            reads: if sums.whole_table { Reads::WholeTable } else { Reads::Keys(sums.ranges) },
            metrics: BTreeMap::from([
                ("numTargetRowsInserted".to_owned(), changed.inserted.to_string()),
                ("numTargetRowsUpdated".to_owned(), changed.updated.to_string()),
                ("numTargetRowsDeleted".to_owned(), changed.deleted.to_string()),
                ("numSourceRows".to_owned(), findings.rows.to_string()),
            ]),
            ..Commit::default()
        };
        let unknown =
            if intake.spec.ignore_null_updates == tributary_specs::IgnoreNullUpdates::Off { sums.unknown } else { BTreeMap::new() };
        attempt
            .commit(
                table,
                intake,
                commit,
                Tally { findings, counts: sums.counts, changed, bytes, unknown, slices: slices.count, mode: "merge" },
            )
            .await
    }
}

impl Sums {
    fn add(&mut self, plan: &MergePlan, retained: &Retained, wanted: &Wanted) {
        let Counts { applied, duplicates, superseded, late_earlier, ties } = plan.counts;
        self.counts.applied += applied;
        self.counts.duplicates += duplicates;
        self.counts.superseded += superseded;
        self.counts.late_earlier += late_earlier;
        self.counts.ties += ties;
        for row in &plan.state_removed {
            let (file, at) = retained.places[*row as usize];
            self.state_removed.entry(file).or_default().push(at);
        }
        merge(&mut self.unknown, &plan.rows.unknown.iter().cloned().collect());
        match wanted {
            Wanted::Slice(_) => self.whole_table = true,
            Wanted::Keys(keys) => self.ranges.widen(keys.ranges()),
        }
    }
}

/// The events that concern a key.
fn without_globals(events: &Events) -> Result<Cow<'_, Events>, ArrowError> {
    if !events.kinds.iter().any(|kind| kind.is_global()) {
        return Ok(Cow::Borrowed(events));
    }
    let of_keys: UInt32Array = (0..events.len() as u32).filter(|row| !events.kinds[*row as usize].is_global()).collect();
    events.take(&of_keys).map(Cow::Owned)
}

/// Adds the keys that can be reached over pairs; whether there are any pairs among them.
fn reach(keys: &mut HashSet<Key>, pairs: &[(Key, Key)]) -> bool {
    let mut beside: HashMap<&Key, Vec<&Key>> = HashMap::new();
    for (one, other) in pairs {
        beside.entry(one).or_default().push(other);
        beside.entry(other).or_default().push(one);
    }
    let mut open: Vec<Key> = keys.iter().filter(|key| beside.contains_key(key)).cloned().collect();
    let any = !open.is_empty();
    while let Some(key) = open.pop() {
        for other in beside.get(&key).into_iter().flatten() {
            if keys.insert((*other).clone()) {
                open.push((*other).clone());
            }
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_reached_over_chains_of_key_changes_in_both_directions() {
        let key = |text: &str| Key::from(text.as_bytes());
        let pairs = [(key("a"), key("b")), (key("c"), key("b")), (key("x"), key("y"))];
        let mut keys = HashSet::from([key("a")]);
        assert!(reach(&mut keys, &pairs));
        assert_eq!(keys, HashSet::from([key("a"), key("b"), key("c")]));
        assert!(!reach(&mut HashSet::from([key("z")]), &pairs));
    }
}
