//! The ledger of taken files: which contents a table holds, and under which names they were last seen.
//!
//! It lives in the table's own log and moves only in the commit that carries the rows:
//!
//! - up to [`crate::Options::files_as_positions_max`] files, two `txn` actions a file: `tributary:file:<feed>:<sha256 of the content>` with the content's
//!   bytes as version (the identity), and `tributary:path:<feed>:<hash of the path>` with the quick test of the file in its version
//!   (path, size, time, etag), so that a run with nothing new reads no file; a generation above it makes versions grow;
//! - beyond, ranges of [`RANGE_FILES`] files in metadata domains `tributary.files.<feed>.<n>`. A full range is sealed: it is never
//!   written again, so that a commit's size does not grow with the number of files taken. `tributary.files.<feed>` holds how many ranges there are.
//!
//! Two writers that take the same file fence each other by its `txn`; two that write the same range conflict by its domain.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use tributary_lake::{Progress, Table};

use crate::positions::NOTHING;
use crate::{Error, Result};

/// Files of a full range.
pub(crate) const RANGE_FILES: usize = 1_000;
/// Bits of a quick test; the bits above them in a `txn` version count how often it changed.
pub(crate) const QUICK_BITS: u32 = 43;
/// A line of a range: identity, bytes, path mark, quick test, each in hexadecimal.
const FIELDS: usize = 4;

/// The SHA-256 of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ContentId(pub [u8; 32]);

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl ContentId {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// One file as the ledger keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub id: ContentId,
    /// Bytes of the content.
    pub bytes: u64,
    /// Hash of the path, not negative.
    pub path_mark: i64,
    /// The quick test: [`QUICK_BITS`] bits.
    pub quick: i64,
}

/// What a commit writes into the ledger.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    pub progress: Vec<Progress>,
    pub domains: BTreeMap<String, Option<String>>,
}

/// The ledger of one feed in one table at one version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    feed: String,
    contents: HashMap<ContentId, u64>,
    quick: HashMap<i64, i64>,
    /// `txn` actions that are there: what a writer expects.
    separate: HashMap<String, i64>,
    separate_files: usize,
    separate_max: usize,
    /// Ranges there are; the last may be open.
    ranges: usize,
    open: Vec<Entry>,
}

impl Ledger {
    /// The ledger of `feed` in a snapshot; an empty one when there is no table yet.
    pub(crate) async fn load(feed: &str, table: Option<&Table>, separate_max: usize) -> Result<Self> {
        let mut ledger = Self { feed: feed.to_owned(), separate_max, ..Self::default() };
        let Some(table) = table else { return Ok(ledger) };
        let lake = |source| Error::lake(table.name(), "reading the file ledger", source);
        for prefix in [file_prefix(feed), path_prefix(feed)] {
            ledger.add_separate(table.progress_with_prefix(&prefix).await.map_err(lake)?);
        }
        let ranges = table.domain(&head_domain(feed)).await.map_err(lake)?.unwrap_or_else(|| "0".to_owned());
        ledger.ranges = ranges.parse().map_err(|_| malformed(table, &head_domain(feed)))?;
        for range in 0..ledger.ranges {
            let domain = range_domain(feed, range);
            let text = table.domain(&domain).await.map_err(lake)?.unwrap_or_default();
            ledger.add_range(&text).ok_or_else(|| malformed(table, &domain))?;
        }
        Ok(ledger)
    }

    fn add_separate(&mut self, progress: BTreeMap<String, i64>) {
        for (app_id, version) in progress {
            // Of what a full refresh has set back, all that is left is what a writer expects.
            let known = version > NOTHING;
            let id = app_id.strip_prefix(&file_prefix(&self.feed)).and_then(ContentId::parse);
            let mark = app_id.strip_prefix(&path_prefix(&self.feed)).and_then(|mark| i64::from_str_radix(mark, 16).ok());
            if let Some(id) = id.filter(|_| known) {
                self.contents.insert(id, version.cast_unsigned());
                self.separate_files += 1;
            } else if let Some(mark) = mark.filter(|_| known) {
                self.quick.insert(mark, quick_of(version));
            }
            self.separate.insert(app_id, version);
        }
    }

    fn add_range(&mut self, text: &str) -> Option<()> {
        let entries = text.lines().map(parse_line).collect::<Option<Vec<_>>>()?;
        for entry in &entries {
            self.contents.insert(entry.id, entry.bytes);
            self.quick.insert(entry.path_mark, entry.quick);
        }
        self.open = if entries.len() < RANGE_FILES { entries } else { Vec::new() };
        Some(())
    }

    /// Files it holds.
    pub(crate) fn files(&self) -> usize {
        self.contents.len()
    }

    /// Whether the quick test says this file was seen as it is.
    pub(crate) fn seen(&self, path_mark: i64, quick: i64) -> bool {
        self.quick.get(&path_mark) == Some(&quick)
    }

    /// Whether a file was ever taken under this path.
    pub(crate) fn knows_path(&self, path_mark: i64) -> bool {
        self.quick.contains_key(&path_mark)
    }

    /// The contents it holds.
    pub(crate) fn contents(&self) -> impl Iterator<Item = &ContentId> {
        self.contents.keys()
    }

    /// Paths under which files were taken, besides these.
    pub(crate) fn paths_besides(&self, there: &BTreeSet<i64>) -> u64 {
        self.quick.keys().filter(|mark| !there.contains(mark)).count() as u64
    }

    pub(crate) fn holds(&self, id: &ContentId) -> bool {
        self.contents.contains_key(id)
    }

    /// The lengths of the contents it holds.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = u64> {
        self.contents.values().copied()
    }

    /// What a commit that takes these files writes. `id` already held: only the file's name is noted.
    pub(crate) fn writes(&self, entries: &[Entry]) -> Writes {
        let mut writes = Writes::default();
        let mut separate_files = self.separate_files;
        let mut written = BTreeSet::new();
        let mut ranges: Vec<Vec<Entry>> = vec![self.open.clone()];
        for entry in entries {
            let (file, path) = (file_app(&self.feed, &entry.id), path_app(&self.feed, entry.path_mark));
            let known_here = self.separate.get(&file).is_some_and(|version| *version > NOTHING) || written.contains(&file);
            if !known_here && (separate_files >= self.separate_max || self.holds(&entry.id)) {
                if ranges.last().is_none_or(|last| last.len() == RANGE_FILES) {
                    ranges.push(Vec::new());
                }
                if let Some(last) = ranges.last_mut() {
                    last.push(*entry);
                }
                continue;
            }
            let named = self.separate.get(&path).copied();
            for (app_id, expected, version) in [
                (file.clone(), self.separate.get(&file).copied(), entry.bytes.cast_signed()),
                (path, named, next_generation(named, entry.quick)),
            ] {
                if written.insert(app_id.clone()) && expected != Some(version) {
                    writes.progress.push(Progress { app_id, expected, version });
                }
            }
            separate_files += usize::from(!known_here);
        }
        let first = if self.open.is_empty() { self.ranges } else { self.ranges - 1 };
        if ranges.len() > 1 || ranges[0].len() > self.open.len() {
            for (index, range) in ranges.iter().enumerate() {
                writes.domains.insert(range_domain(&self.feed, first + index), Some(range.iter().map(line).collect::<Vec<_>>().join("\n")));
            }
            writes.domains.insert(head_domain(&self.feed), Some((first + ranges.len()).to_string()));
        }
        writes
    }

    /// A ledger that holds nothing, of the same table: for a commit that replaces everything that was taken.
    pub(crate) fn begun_anew(&self) -> Self {
        let separate = self.separate.keys().map(|app_id| (app_id.clone(), NOTHING)).collect();
        Self { feed: self.feed.clone(), separate_max: self.separate_max, separate, ..Self::default() }
    }

    /// What a commit writes that replaces everything that was taken by these files: every other one is forgotten.
    pub(crate) fn replaced_by(&self, entries: &[Entry]) -> Writes {
        let mut writes = self.begun_anew().writes(entries);
        let mut unsaid: BTreeMap<&String, i64> = self.separate.iter().map(|(app_id, version)| (app_id, *version)).collect();
        for progress in &mut writes.progress {
            progress.expected = unsaid.remove(&progress.app_id);
            if progress.app_id.starts_with(&path_prefix(&self.feed)) {
                progress.version = next_generation(progress.expected, quick_of(progress.version));
            }
        }
        let unsaid = unsaid.into_iter().filter(|(_, version)| *version > NOTHING);
        let forgotten = unsaid.map(|(app_id, version)| Progress { app_id: app_id.clone(), expected: Some(version), version: NOTHING });
        writes.progress.extend(forgotten);
        let heads = (self.ranges > 0).then(|| head_domain(&self.feed));
        for domain in (0..self.ranges).map(|range| range_domain(&self.feed, range)).chain(heads) {
            writes.domains.entry(domain).or_insert(None);
        }
        writes
    }

    /// The ledger after a commit that took `entries` with `writes`.
    pub(crate) fn apply(&mut self, entries: &[Entry], writes: &Writes) {
        for entry in entries {
            self.contents.insert(entry.id, entry.bytes);
            self.quick.insert(entry.path_mark, entry.quick);
        }
        for progress in &writes.progress {
            let new = self.separate.insert(progress.app_id.clone(), progress.version).is_none_or(|before| before <= NOTHING);
            self.separate_files += usize::from(new && progress.app_id.starts_with(&file_prefix(&self.feed)));
        }
        if let Some(ranges) = writes.domains.get(&head_domain(&self.feed)).and_then(|text| text.as_ref()?.parse().ok()) {
            self.ranges = ranges;
            let last = ranges.checked_sub(1).and_then(|last| writes.domains.get(&range_domain(&self.feed, last)));
            let open = last.into_iter().flatten().flat_map(|text| text.lines().filter_map(parse_line)).collect::<Vec<_>>();
            self.open = if open.len() < RANGE_FILES { open } else { Vec::new() };
        }
    }
}

fn quick_of(version: i64) -> i64 {
    version & ((1 << QUICK_BITS) - 1)
}

/// The version that says `quick` after one that may have said something else.
fn next_generation(version: Option<i64>, quick: i64) -> i64 {
    match version.filter(|version| *version > NOTHING) {
        Some(version) if quick_of(version) == quick => version,
        Some(version) => (((version >> QUICK_BITS) + 1) << QUICK_BITS) | quick,
        None => quick,
    }
}

fn file_prefix(feed: &str) -> String {
    format!("tributary:file:{feed}:")
}

fn path_prefix(feed: &str) -> String {
    format!("tributary:path:{feed}:")
}

fn file_app(feed: &str, id: &ContentId) -> String {
    format!("{}{id}", file_prefix(feed))
}

fn path_app(feed: &str, mark: i64) -> String {
    format!("{}{mark:016x}", path_prefix(feed))
}

fn head_domain(feed: &str) -> String {
    format!("tributary.files.{feed}")
}

fn range_domain(feed: &str, range: usize) -> String {
    format!("tributary.files.{feed}.{range}")
}

fn malformed(table: &Table, domain: &str) -> Error {
    Error::Ledger { table: table.name().clone(), domain: domain.to_owned() }
}

fn line(entry: &Entry) -> String {
    format!("{} {:x} {:x} {:x}", entry.id, entry.bytes, entry.path_mark, entry.quick)
}

fn parse_line(line: &str) -> Option<Entry> {
    let parts: Vec<_> = line.split(' ').collect();
    let number = |text: &str| i64::from_str_radix(text, 16).ok();
    (parts.len() == FIELDS).then_some(())?;
    Some(Entry {
        id: ContentId::parse(parts[0])?,
        bytes: u64::from_str_radix(parts[1], 16).ok()?,
        path_mark: number(parts[2])?,
        quick: number(parts[3])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEPARATE_MAX: usize = 10_000;

    fn entry(number: u64) -> Entry {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let number = number.cast_signed();
        Entry { id: ContentId(id), bytes: 10 + number.cast_unsigned(), path_mark: 1000 + number, quick: 2000 + number }
    }

    /// The ledger a reader finds after the commit.
    fn after(ledger: &Ledger, writes: &Writes, domains: &mut BTreeMap<String, String>) -> Ledger {
        let mut next = Ledger { feed: ledger.feed.clone(), separate_max: SEPARATE_MAX, ..Ledger::default() };
        let mut separate: BTreeMap<String, i64> = ledger.separate.clone().into_iter().collect();
        for progress in &writes.progress {
            assert!(progress.expected.is_none_or(|expected| expected < progress.version), "versions grow");
            assert_eq!(progress.expected, separate.insert(progress.app_id.clone(), progress.version));
        }
        next.add_separate(separate);
        domains.extend(writes.domains.iter().map(|(domain, text)| (domain.clone(), text.clone().unwrap())));
        next.ranges = domains.get("tributary.files.f").map_or(0, |ranges| ranges.parse().unwrap());
        for range in 0..next.ranges {
            next.add_range(&domains[&format!("tributary.files.f.{range}")]).unwrap();
        }
        next
    }

    fn empty() -> Ledger {
        Ledger { feed: "f".into(), separate_max: SEPARATE_MAX, ..Ledger::default() }
    }

    #[test]
    fn a_file_taken_is_known_by_content_and_by_name() {
        let ledger = after(&empty(), &empty().writes(&[entry(1), entry(2)]), &mut BTreeMap::new());
        assert!(ledger.holds(&entry(1).id) && !ledger.holds(&entry(3).id));
        assert!(ledger.seen(1002, 2002) && !ledger.seen(1002, 2003) && ledger.knows_path(1002));
        assert_eq!(ledger.sizes().collect::<BTreeSet<_>>(), BTreeSet::from([11, 12]));
        assert_eq!(ledger.files(), 2);
    }

    #[test]
    fn the_same_content_under_two_names_is_one_file_with_two_names() {
        let twin = Entry { path_mark: 7, quick: 8, ..entry(1) };
        let ledger = after(&empty(), &empty().writes(&[entry(1), twin]), &mut BTreeMap::new());
        assert_eq!(ledger.files(), 1);
        assert!(ledger.seen(7, 8) && ledger.seen(1001, 2001));
        let later = Entry { path_mark: 9, quick: 9, ..entry(1) };
        let ledger = after(&ledger, &ledger.writes(&[later]), &mut BTreeMap::new());
        assert!(ledger.files() == 1 && ledger.seen(9, 9));
    }

    #[test]
    fn a_file_that_changes_back_and_forth_is_known_as_it_last_was() {
        let mut ledger = empty();
        for (content, quick) in [(1, 500), (2, 20), (1, 500), (3, 7), (3, 6)] {
            let entry = Entry { path_mark: 9, quick, ..entry(content) };
            ledger = after(&ledger, &ledger.writes(&[entry]), &mut BTreeMap::new());
            assert!(ledger.seen(9, quick) && ledger.holds(&entry.id));
        }
    }

    #[test]
    fn a_full_refresh_keeps_what_it_brings_and_forgets_the_rest() {
        for separate_max in [0, 1, 2, 3, SEPARATE_MAX] {
            let empty = || Ledger { separate_max, ..empty() };
            let read = |ledger: &Ledger, writes: &Writes, domains: &mut BTreeMap<String, String>| {
                let mut next = empty();
                let mut separate: BTreeMap<String, i64> = ledger.separate.clone().into_iter().collect();
                for progress in &writes.progress {
                    assert_eq!(progress.expected, separate.insert(progress.app_id.clone(), progress.version), "{progress:?}");
                }
                next.add_separate(separate);
                for (domain, text) in &writes.domains {
                    match text {
                        Some(text) => _ = domains.insert(domain.clone(), text.clone()),
                        None => _ = domains.remove(domain),
                    }
                }
                next.ranges = domains.get("tributary.files.f").map_or(0, |ranges| ranges.parse().unwrap());
                assert_eq!(domains.len(), next.ranges + usize::from(next.ranges > 0), "no range is left over: {domains:?}");
                (0..next.ranges).for_each(|range| next.add_range(&domains[&format!("tributary.files.f.{range}")]).unwrap());
                next
            };
            let mut domains = BTreeMap::new();
            let before = read(&empty(), &empty().writes(&[entry(1), entry(2), entry(3)]), &mut domains);
            let moved = Entry { quick: 7, ..entry(2) };
            let after = read(&before, &before.replaced_by(&[moved, entry(4)]), &mut domains);
            assert_eq!(after.files(), 2, "{separate_max}");
            assert!(after.holds(&entry(2).id) && after.seen(1002, 7) && after.holds(&entry(4).id), "{separate_max}");
            assert!(!after.holds(&entry(1).id) && !after.knows_path(1001) && !after.knows_path(1003), "{separate_max}");
            let again = read(&after, &after.writes(&[entry(1)]), &mut domains);
            assert!(
                again.files() == 3 && again.holds(&entry(1).id) && again.seen(1001, 2001),
                "a file that comes again is new: {separate_max}"
            );
            let mut applied = after.clone();
            applied.apply(&[entry(1)], &after.writes(&[entry(1)]));
            assert_eq!((applied.separate_files, applied.ranges, applied.open), (again.separate_files, again.ranges, again.open));
            let emptied = read(&before, &before.replaced_by(&[]), &mut BTreeMap::new());
            assert_eq!((emptied.files(), emptied.quick.len()), (0, 0));
        }
    }

    #[test]
    fn beyond_the_limit_files_go_to_ranges_and_full_ranges_are_never_written_again() {
        let mut domains = BTreeMap::new();
        let first: Vec<_> = (0..SEPARATE_MAX as u64 + 10).map(entry).collect();
        let mut ledger = after(&empty(), &empty().writes(&first), &mut domains);
        assert_eq!((ledger.separate_files, ledger.ranges, ledger.open.len()), (SEPARATE_MAX, 1, 10));
        let mut next = SEPARATE_MAX as u64 + 10;
        for step in [500, 489, 1, 1, 2_600] {
            let entries: Vec<_> = (next..next + step).map(entry).collect();
            next += step;
            let writes = ledger.writes(&entries);
            assert!(writes.progress.is_empty());
            let sealed: Vec<_> = (0..ledger.ranges).filter(|range| ledger.open.is_empty() || *range + 1 < ledger.ranges).collect();
            assert!(sealed.iter().all(|range| !writes.domains.contains_key(&format!("tributary.files.f.{range}"))), "{sealed:?}");
            let mut applied = ledger.clone();
            applied.apply(&entries, &writes);
            ledger = after(&ledger, &writes, &mut domains);
            assert_eq!(
                (applied.contents, applied.quick, applied.separate),
                (ledger.contents.clone(), ledger.quick.clone(), ledger.separate.clone())
            );
            assert_eq!((applied.separate_files, applied.ranges, applied.open), (ledger.separate_files, ledger.ranges, ledger.open.clone()));
        }
        assert_eq!(ledger.files() as u64, next);
        for number in 0..next {
            let entry = entry(number);
            assert!(ledger.holds(&entry.id) && ledger.seen(entry.path_mark, entry.quick), "file {number}");
        }
        assert!(domains.values().all(|text| text.lines().count() <= RANGE_FILES));
    }
}
