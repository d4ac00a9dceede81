//! Does: lists a group's files, reads what is due once, and commits it feed by feed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tributary_cdc_decode::Header;
use tributary_lake::Lake;
use tributary_specs::{Decode, SourceFeed};

use crate::batch::{LaneBatch, Origin};
use crate::files::{Broken, Content, CutRules, FileRecord, Identified, Identity, Listed, Listing, Slice, Slices, identify, list};
use crate::lane::Lane;
use crate::ledger::{ContentId, Entry, Ledger};
use crate::options::{Extent, Options};
use crate::plan::{self, Decision, FileGroup, Fill, Topics};
use crate::quarantine::{self, Spot};
use crate::run::{AfterRace, Committed, Slot, cancelled, tell};
use crate::{Error, Result, events};

/// Content up to this size is kept from identifying a file to decoding it, so that it is read once.
const KEEP_BYTES: usize = 8 << 20;

/// Brings the tables of a group up to date with the files that are there now.
pub(crate) async fn run(lake: &Lake, group: &FileGroup, feeds: &[SourceFeed], slots: &mut [Slot], options: &Options) {
    if slots.iter().all(|slot| slot.running().is_none()) {
        return;
    }
    let lead = group.members.first().map_or("", |index| feeds[*index].name.as_str());
    let prepared = match group.cut_rules(lead, options) {
        Ok(rules) => due(lake, group, lead, slots, options).await.map(|files| (rules, files)),
        Err(error) => Err(error),
    };
    let (rules, files) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return stop_all(slots, error),
    };
    let routes = Routes::new(group, feeds, slots);
    let bytes = files.iter().map(|file| file.size).sum();
    let mut run = Run { lake, options, rules, routes, files, whole: bytes, left: bytes };
    while (!run.files.is_empty() || anew(slots)) && slots.iter().any(|slot| slot.running().is_some()) {
        let batch = match cancelled(options) {
            Ok(()) => run.batch(slots).await,
            Err(error) => Err(error),
        };
        if let Err(error) = batch {
            return stop_all(slots, error);
        }
    }
}

/// Whether a table of the group is to be built anew: then one batch holds all files.
fn anew(slots: &[Slot]) -> bool {
    slots.iter().filter_map(Slot::running).any(|lane| lane.anew.is_some())
}

/// Every feed of the group stops for the same reason.
fn stop_all(slots: &mut [Slot], error: Error) {
    let error = Arc::new(error);
    slots.iter_mut().for_each(|slot| slot.stop(Arc::clone(&error)));
}

/// The files of which some table has not seen what is there.
async fn due(lake: &Lake, group: &FileGroup, lead: &str, slots: &mut [Slot], options: &Options) -> Result<VecDeque<Listed>> {
    let place = options.data.place(&group.path)?;
    let Listing { files: listed, faults } = list(&options.data, &place, lead, &group.path, &group.pattern(lead)?).await?;
    let now_us = lake.clock().now().timestamp_micros();
    mirror(slots, &listed, faults.is_empty() && !listed.iter().any(|file| group.settling(file, now_us)));
    for error in faults.into_iter().map(Arc::new) {
        events::file_left(&place.shown, &error.to_string());
        slots.iter_mut().filter_map(Slot::lane).for_each(|lane| lane.tally.file_faults.push(Arc::clone(&error)));
    }
    let (count, mut settling, mut files) = (listed.len(), 0_u64, VecDeque::new());
    for file in listed {
        let wanted = slots.iter().filter_map(Slot::running).any(|lane| lane.wants(&file));
        if file.size == 0 || !wanted {
            continue;
        }
        if group.settling(&file, now_us) {
            settling += 1;
        } else {
            files.push_back(file);
        }
    }
    events::listed(&place.shown, count, files.len());
    if settling > 0 {
        let seconds = group.settle_seconds();
        remark_all(slots, &format!("{settling} files changed less than {seconds} seconds ago were left for the next run"));
    }
    Ok(files)
}

/// Has tables that mirror the folder built anew, where its files say so; while these do not hold still, such a table takes nothing.
fn mirror(slots: &mut [Slot], listed: &[Listed], still: bool) {
    for slot in slots {
        let differs = |lane: &&mut Lane| lane.feed.mirrors() && lane.anew.is_none() && plan::differs(&lane.taken, listed);
        let Some(lane) = slot.lane().filter(differs) else { continue };
        if !still {
            lane.wait();
        } else if let Err(error) = lane.begin_anew("files of its folder have changed or gone") {
            slot.stop(error);
        }
    }
}

fn remark_all(slots: &mut [Slot], remark: &str) {
    slots.iter_mut().filter_map(Slot::lane).for_each(|lane| {
        lane.tally.remarks.insert(remark.to_owned());
    });
}

/// Who gets a record.
struct Routes {
    /// Topics of every feed of the group, whether it is run or not.
    all: Vec<Topics>,
    /// The slot of the group's first feed, when it is run: bytes of no feed are its.
    lead: Option<usize>,
    known: HashMap<Option<Arc<str>>, Arc<Route>>,
}

struct Route {
    /// Slots that take the topic.
    slots: Vec<usize>,
    /// Whether any feed of the group takes it.
    wanted: bool,
}

impl Routes {
    fn new(group: &FileGroup, feeds: &[SourceFeed], slots: &[Slot]) -> Self {
        let lead = slots.iter().position(|slot| Some(&slot.index) == group.members.first());
        Self { all: group.members.iter().map(|index| Topics::of(&feeds[*index])).collect(), lead, known: HashMap::new() }
    }

    fn of(&mut self, topic: &Option<Arc<str>>, slots: &[Slot]) -> Arc<Route> {
        if let Some(route) = self.known.get(topic) {
            return Arc::clone(route);
        }
        let text = topic.as_deref();
        let takes = |slot: &Slot| slot.running().is_some_and(|lane| lane.topics.take(text));
        let route = Arc::new(Route {
            slots: slots.iter().enumerate().filter(|(_, slot)| takes(slot)).map(|(index, _)| index).collect(),
            wanted: self.all.iter().any(|topics| topics.take(text)),
        });
        self.known.insert(topic.clone(), Arc::clone(&route));
        route
    }
}

/// What a feed takes of the file being read.
#[derive(Debug, Clone, Copy)]
struct Want {
    slot: usize,
    from: u64,
    grown_from: Option<ContentId>,
}

struct Run<'a> {
    lake: &'a Lake,
    options: &'a Options,
    rules: CutRules,
    routes: Routes,
    files: VecDeque<Listed>,
    /// Bytes of the files that were due when the run began.
    whole: u64,
    /// Bytes of `files`.
    left: u64,
}

/// Why a file's records are not in the batch.
enum Left {
    /// The file alone: nothing of it was written.
    File(Error),
    /// Some of its records were written before it failed or changed: the batch is given up.
    Batch(Option<Error>),
    /// The whole run.
    Run(Error),
}

impl Run<'_> {
    /// Reads one batch of files and commits it to each feed's table.
    async fn batch(&mut self, slots: &mut [Slot]) -> Result<()> {
        let now_us = self.lake.clock().now().timestamp_micros();
        let mut batches: Vec<LaneBatch> = slots.iter().map(|_| LaneBatch::new(now_us)).collect();
        let mut taken: Vec<Listed> = Vec::new();
        let mut fill = Fill::default();
        let whole = anew(slots);
        while let Some(file) = self.files.front() {
            let asked_to_end = fill.files > 0 && self.options.cancel.is_cancelled();
            if asked_to_end && whole {
                abandon(batches).await;
                return Err(Error::Cancelled);
            }
            if asked_to_end || !whole && !fill.has_room(file.size, self.options) {
                break;
            }
            let Some(file) = self.files.pop_front() else { break };
            self.left = self.left.saturating_sub(file.size);
            match self.file(&file, slots, &mut batches).await {
                Ok(()) => {
                    fill.files += 1;
                    fill.bytes = fill.bytes.saturating_add(file.size);
                    fill.records = batches.iter().map(|batch| batch.counts.rows_in).sum();
                    taken.push(file);
                }
                Err(Left::File(error)) => fault(slots, &file, error),
                Err(Left::Batch(error)) => {
                    match error {
                        Some(error) => fault(slots, &file, error),
                        None => moving(slots, &file),
                    }
                    self.again(taken);
                    abandon(batches).await;
                    for slot in slots.iter_mut() {
                        slot.rewind(self.lake).await;
                    }
                    return Ok(());
                }
                Err(Left::Run(error)) => return Err(error),
            }
        }
        let mut again = false;
        for (slot, batch) in slots.iter_mut().zip(batches) {
            again |= slot.commit(self.lake, batch, AfterRace::ReadAgain, self.options).await == Committed::ReadAgain;
        }
        if again {
            self.again(taken);
        }
        Ok(())
    }

    /// Puts files back in front, in their order.
    fn again(&mut self, taken: Vec<Listed>) {
        self.left += taken.iter().map(|file| file.size).sum::<u64>();
        taken.into_iter().rev().for_each(|file| self.files.push_front(file));
    }

    async fn file(&mut self, file: &Listed, slots: &mut [Slot], batches: &mut [LaneBatch]) -> Result<(), Left> {
        let ledgers = slots.iter().filter_map(Slot::running).filter(|lane| lane.wants(file)).map(Lane::made_of);
        let sizes: BTreeSet<u64> = ledgers.filter(|ledger| ledger.knows_path(file.path_mark())).flat_map(Ledger::sizes).collect();
        let identity = match identify(&self.options.data, file, &sizes, KEEP_BYTES).await.map_err(alone)? {
            Identified::Whole(identity) => identity,
            Identified::Moving => {
                moving(slots, file);
                return Ok(());
            }
        };
        if identity.bytes == 0 {
            return Ok(());
        }
        let wants = decide(slots, batches, file, &identity);
        if !wants.is_empty() {
            self.read(file, identity.clone(), &wants, slots, batches).await?;
        }
        let entry = Entry { id: identity.id, bytes: identity.bytes, path_mark: file.path_mark(), quick: file.quick() };
        for want in wants {
            batches[want.slot].take(entry, identity.prefixes.iter().map(|(_, id)| *id));
        }
        Ok(())
    }

    /// Reads a file's records into the batches of those that want them.
    async fn read(
        &mut self,
        file: &Listed,
        identity: Identity,
        wants: &[Want],
        slots: &mut [Slot],
        batches: &mut [LaneBatch],
    ) -> Result<(), Left> {
        let content_text = identity.id.to_string();
        let content = match identity.kept {
            Some(kept) => Content::kept(file, kept),
            None => Content::open(&self.options.data, file).await.map_err(alone)?,
        };
        let origin = Origin { file: &file.name, content: &content_text, size: file.size, modified_us: file.modified_us, header: &[] };
        let mut slices = Slices::new(&file.name, content, self.rules.clone());
        let mut first = true;
        loop {
            let slice = match slices.next().await {
                Ok(Some(slice)) => slice,
                Ok(None) => break,
                Err(error) if first => return Err(alone(error)),
                Err(error) => return Err(given_up(error)),
            };
            if first {
                if let Some(header) = &slice.header {
                    let mut lanes = wants.iter().filter_map(|want| slots[want.slot].running());
                    lanes.try_for_each(|lane| plan::check_header(&lane.feed, &file.name, header)).map_err(alone)?;
                }
                make_ready(self.lake, wants, slots).await;
                look_into_quarantine(identity.id, &content_text, wants, slots, batches).await;
                name_columns(&slice, wants, slots, batches);
                first = false;
            }
            let behind = slice.records.last().map_or(0, |record| file.size.saturating_sub(record.end));
            self.slice(&slice, origin, wants, behind, slots, batches).await;
        }
        if slices.content_id() == identity.id { Ok(()) } else { Err(Left::Batch(None)) }
    }

    /// `behind` are the bytes of the file after the slice.
    async fn slice(
        &mut self,
        slice: &Slice,
        origin: Origin<'_>,
        wants: &[Want],
        behind: u64,
        slots: &mut [Slot],
        batches: &mut [LaneBatch],
    ) {
        let extent = Extent { done: self.whole.saturating_sub(self.left + behind), whole: self.whole };
        let mut routed: Vec<Vec<&FileRecord>> = slots.iter().map(|_| Vec::new()).collect();
        let mut unrouted: Vec<&FileRecord> = Vec::new();
        for record in &slice.records {
            let route = self.routes.of(&record.topic, slots);
            route.slots.iter().for_each(|slot| routed[*slot].push(record));
            if !route.wanted {
                unrouted.push(record);
            }
        }
        let header: Vec<Header<'_>> = slice.header.iter().flat_map(|names| names.iter()).map(|key| Header { key, value: None }).collect();
        let origin = Origin { header: &header, ..origin };
        let lead = self.routes.lead;
        for want in wants {
            let Some(lane) = slots[want.slot].lane() else { continue };
            let batch = &mut batches[want.slot];
            lane.tally.extent = Some(extent);
            routed[want.slot].retain(|record| record.end > want.from);
            let leads = lead == Some(want.slot);
            let broken: Vec<&Broken> = slice.broken.iter().filter(|broken| leads && broken.end > want.from).collect();
            if leads {
                ignore_unrouted(batch, unrouted.iter().filter(|record| record.end > want.from));
            }
            complete(batch, want, routed[want.slot].iter().map(|record| (record.start, record.line)));
            complete(batch, want, broken.iter().map(|broken| (broken.start, broken.line)));
            if let Err(error) = absorb(self.lake, lane, batch, origin, &routed[want.slot], &broken).await {
                slots[want.slot].stop(error);
                continue;
            }
            tell(self.options, lane, batch);
        }
    }
}

async fn abandon(batches: Vec<LaneBatch>) {
    for batch in batches {
        batch.abandon().await;
    }
}

async fn make_ready(lake: &Lake, wants: &[Want], slots: &mut [Slot]) {
    for want in wants {
        let Some(lane) = slots[want.slot].lane() else { continue };
        if let Err(error) = lane.make_ready(lake).await {
            slots[want.slot].stop(error);
        }
    }
}

/// Where the quarantine was committed with this content and bronze was not, finds which of its records are there already.
async fn look_into_quarantine(id: ContentId, content: &str, wants: &[Want], slots: &mut [Slot], batches: &mut [LaneBatch]) {
    for want in wants {
        let Some(lane) = slots[want.slot].running() else { continue };
        let Some(table) = lane.quarantine.clone().filter(|_| lane.parked.holds(&id)) else { continue };
        match quarantine::open_of_content(&table, content).await {
            Ok(open) => batches[want.slot].parked.add(open),
            Err(error) => slots[want.slot].stop(error),
        }
    }
}

async fn absorb(
    lake: &Lake,
    lane: &mut Lane,
    batch: &mut LaneBatch,
    origin: Origin<'_>,
    records: &[&FileRecord],
    broken: &[&Broken],
) -> Result<()> {
    if !records.is_empty() {
        batch.absorb_of_file(lane, lake, origin, records).await?;
    }
    if !broken.is_empty() {
        batch.absorb_broken(lane, lake, origin, broken).await?;
    }
    Ok(())
}

/// What each feed takes of a file. A content that is known already is noted under its name.
fn decide(slots: &[Slot], batches: &mut [LaneBatch], file: &Listed, identity: &Identity) -> Vec<Want> {
    let mut wants = Vec::new();
    for (slot, (lane, batch)) in slots.iter().zip(batches).enumerate() {
        let Some(lane) = lane.running().filter(|lane| !lane.waits) else { continue };
        let entry = Entry { id: identity.id, bytes: identity.bytes, path_mark: file.path_mark(), quick: file.quick() };
        let twin = batch.holds(&identity.id) && batch.entries.iter().any(|taken| taken.id == identity.id);
        match plan::decide(&lane.taken, file, identity) {
            Decision::Seen => {}
            Decision::Take { from, grown_from } if !twin => wants.push(Want { slot, from, grown_from }),
            Decision::Take { .. } | Decision::Known => {
                if !lane.taken.knows_path(file.path_mark()) {
                    batch.remarks.insert(format!("file {} holds what another file held; it was not taken again", file.name));
                }
                batch.take(entry, std::iter::empty());
            }
        }
    }
    wants
}

/// Tells the decoders of CSV feeds the columns of the file that follows, and notes those that are declared and not there.
fn name_columns(slice: &Slice, wants: &[Want], slots: &mut [Slot], batches: &mut [LaneBatch]) {
    let Some(header) = &slice.header else { return };
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    for want in wants {
        let Some(lane) = slots[want.slot].lane().filter(|lane| lane.feed.decode == Decode::Csv) else { continue };
        let absent = lane.feed.columns.iter().filter(|column| !names.iter().any(|name| name.eq_ignore_ascii_case(&column.name)));
        absent.for_each(|column| batches[want.slot].counts.note(format!("a file has no declared column {}", column.name), 1));
        if let Err(source) = lane.decoder.csv_header(&names) {
            let table = lane.feed.table.clone();
            slots[want.slot].stop(Error::Decode { table, source: Box::new(source) });
        }
    }
}

/// A record that begins before the end of what was taken was half a record then.
fn complete(batch: &mut LaneBatch, want: &Want, places: impl Iterator<Item = (u64, i64)>) {
    if let Some(content) = want.grown_from {
        let half = places.filter(|(start, _)| *start < want.from);
        batch.completed.extend(half.map(|(_, line)| Spot::Content(content.to_string(), line)));
    }
}

fn ignore_unrouted<'a>(batch: &mut LaneBatch, records: impl Iterator<Item = &'a &'a FileRecord>) {
    let mut topics: BTreeMap<String, u64> = BTreeMap::new();
    for record in records {
        *topics.entry(record.topic.as_deref().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let records = topics.values().sum();
    batch.counts.rows_in += records;
    batch.counts.ignore("no_feed", records);
    topics.into_iter().for_each(|(topic, records)| *batch.unrouted.entry(topic).or_default() += records);
}

fn fault(slots: &mut [Slot], file: &Listed, error: Error) {
    events::file_left(&file.name, &error.to_string());
    let error = Arc::new(error);
    for lane in slots.iter_mut().filter_map(Slot::lane).filter(|lane| lane.wants(file)) {
        lane.left_files = true;
        lane.tally.file_faults.push(Arc::clone(&error));
    }
}

fn moving(slots: &mut [Slot], file: &Listed) {
    let why = format!("file {} changed while it was read and was left whole for the next run", file.name);
    events::file_left(&file.name, "it changed while it was read");
    slots.iter_mut().filter_map(Slot::lane).for_each(|lane| lane.left_files = true);
    remark_all(slots, &why);
}

fn alone(error: Error) -> Left {
    if error.about_one_file() { Left::File(error) } else { Left::Run(error) }
}

fn given_up(error: Error) -> Left {
    if error.about_one_file() { Left::Batch(Some(error)) } else { Left::Run(error) }
}
