//! Files that no version needs are deleted.
//!
//! ```text
//! log ─▶ needed: live files, files of versions within the retention   ┐
//!        held: files that the slowest reader still needs               ├─▶ fate of each file (pure)
//! readers ─▶ slowest position                                          ┘
//! folder (full) or log (lite) ─▶ files ─▶ VACUUM START ─▶ look again ─▶ delete ─▶ VACUUM END
//! ```
//!
//! What must stay true:
//! - **M2** What a retained version, a registered reader or an unfinished writer needs stays: a file that no commit names is kept as long
//!   as the longest write may take, whatever the retention.
//! - A restore that comes in between sees the first commit and waits: what it makes live again is not deleted under it.
//! - A kill leaves files that the next run finds again, and nothing else; the table does not change.

mod fate;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tributary_lake::{Commit, CommitOutcome, Lake, Operation, Table};
use tributary_specs::TableName;

use self::fate::{Fate, Known, is_hidden, nested_roots};
use crate::readers::{Reader, Readers, slowest_of};
use crate::report::Amount;
use crate::retention::Retention;
use crate::{Error, Result, Status, controls, interval};

/// The retention of a table that does not say its own.
pub const RETENTION_DEFAULT: Duration = Duration::from_secs(7 * 86_400);

/// How long a write may take at most, where nobody says otherwise.
pub const LONGEST_WRITE_DEFAULT: Duration = Duration::from_secs(86_400);

const RETENTION: Retention = Retention { property: "delta.deletedFileRetentionDuration", default: RETENTION_DEFAULT, verb: "vacuum" };

/// Objects that are asked for side by side.
const AT_ONCE: usize = 16;

/// How often a commit without content is tried.
const TRIES: usize = 5;

/// Where files are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VacuumMode {
    /// In the table's folder: also files that no commit names.
    #[default]
    Full,
    /// In the log alone: files that its commits removed. Costs no listing.
    Lite,
}

impl VacuumMode {
    const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Lite => "lite",
        }
    }
}

/// What is deleted, and what is kept at any rate.
#[derive(Debug, Clone)]
pub struct VacuumOptions {
    /// Where files are looked for.
    pub mode: VacuumMode,
    /// Files of versions so recent are kept; none = as the table says (`delta.deletedFileRetentionDuration`), else seven days.
    pub retain: Option<Duration>,
    /// The retention may be shorter than the table's own: whoever reads or writes by an older version fails.
    pub accept_unsafe_retention: bool,
    /// A file in no commit is kept so long: its writer may be at work.
    pub longest_write: Duration,
    /// Readers that are no tables of the lake, beside those that the table's properties declare.
    pub outside: Vec<Reader>,
    /// Names of readers that are not waited for; they will have to begin anew.
    pub ignore_readers: Vec<String>,
    /// Say what would be deleted and delete nothing.
    pub dry_run: bool,
}

impl Default for VacuumOptions {
    fn default() -> Self {
        Self {
            mode: VacuumMode::default(),
            retain: None,
            accept_unsafe_retention: false,
            longest_write: LONGEST_WRITE_DEFAULT,
            outside: Vec::new(),
            ignore_readers: Vec::new(),
            dry_run: false,
        }
    }
}

/// A file below the table's root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OldFile {
    /// Relative to the table's root.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Files that only a reader needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldBy {
    /// The slowest reader.
    pub reader: String,
    /// The version it has reached.
    pub version: u64,
    /// What is kept for it and for nobody else.
    pub kept: Amount,
}

/// What a vacuum did.
#[derive(Debug, Serialize)]
pub struct VacuumReport {
    /// The table.
    pub table: TableName,
    /// `full` or `lite`.
    pub mode: &'static str,
    /// How it ended: done, planned (a dry run) or nothing to do.
    pub status: Status,
    /// Files of versions of so many seconds are kept.
    pub retention_seconds: u64,
    /// What was deleted, or would be.
    pub deleted: Amount,
    /// The same one by one, by their paths.
    pub files: Vec<OldFile>,
    /// What is kept because a write may be under way.
    pub young: Amount,
    /// The slowest reader, where files are kept for it alone.
    pub held_by: Option<HeldBy>,
}

/// Deletes the files of a table that nobody needs.
///
/// # Errors
/// [`Error::UnsafeRetention`] for a retention below the table's own that was not accepted; [`Error::Reader`]; [`Error::Lake`].
pub async fn vacuum(lake: &Lake, readers: &Readers, name: &TableName, options: &VacuumOptions) -> Result<VacuumReport> {
    let table = crate::open(lake, name).await?;
    table.ensure_writable().map_err(Error::lake("opening", name))?;
    let retention = RETENTION.agreed(&table, options.retain, options.accept_unsafe_retention)?;
    let readers = readers.waited_for(&table, &options.outside, &options.ignore_readers)?;
    let vacuum = Vacuum { options, retention, readers: &readers };
    let found = vacuum.look(&table).await?;
    if found.files.is_empty() || options.dry_run {
        let status = if found.files.is_empty() { Status::NothingToDo } else { Status::Planned };
        return Ok(vacuum.report(name, status, found));
    }
    commit(&table, vacuum.start(RETENTION.own(&table)?)).await?;
    let table = table.refresh().await.map_err(Error::lake("opening", name))?;
    let found = vacuum.look(&table).await?;
    let paths: Vec<String> = found.files.iter().map(|file| file.path.clone()).collect();
    table.delete_objects(&paths).await.map_err(Error::lake("deleting files of", name))?;
    let table = table.refresh().await.map_err(Error::lake("opening", name))?;
    commit(&table, ended(&found)).await?;
    Ok(vacuum.report(name, Status::Done, found))
}

struct Vacuum<'a> {
    options: &'a VacuumOptions,
    retention: Duration,
    readers: &'a [Reader],
}

/// What was found to delete, and what not.
#[derive(Debug, Default)]
struct Found {
    files: Vec<OldFile>,
    young: Amount,
    held: Amount,
    slowest: Option<(u64, String)>,
}

impl Vacuum<'_> {
    async fn look(&self, table: &Table) -> Result<Found> {
        let now = table.lake().clock().now();
        let horizon = interval::before(now, self.retention.as_secs());
        let unknown_until = horizon.min(interval::before(now, self.options.longest_write.as_secs()));
        let forgets = controls::forgets_a_reader(table.lake().options());
        let slowest = if forgets { None } else { slowest_of(table, self.readers).await? };
        let known = known(table, horizon, slowest.as_ref().map(|(version, _)| *version))
            .await
            .map_err(Error::lake("reading the log of", table.name()))?;
        let mut found = Found { slowest, ..Found::default() };
        match self.options.mode {
            VacuumMode::Full => in_folder(table, &known, unknown_until, &mut found).await,
            VacuumMode::Lite => in_log(table, &known, &mut found).await,
        }
        .map_err(Error::lake("listing the files of", table.name()))?;
        found.files.sort_unstable();
        Ok(found)
    }

    fn start(&self, safe: Duration) -> Commit {
        let millis = |duration: Duration| duration.as_millis().to_string();
        let parameters = [
            ("retentionCheckEnabled", (!self.options.accept_unsafe_retention).to_string()),
            ("specifiedRetentionMillis", millis(self.retention)),
            ("defaultRetentionMillis", millis(safe)),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value)).into();
        Commit { operation: Operation::VacuumStart, parameters, ..Commit::default() }
    }

    fn report(&self, table: &TableName, status: Status, found: Found) -> VacuumReport {
        let held = found.slowest.filter(|_| found.held.files > 0);
        VacuumReport {
            table: table.clone(),
            mode: self.options.mode.name(),
            status,
            retention_seconds: self.retention.as_secs(),
            deleted: Amount::of(found.files.iter().map(|file| file.bytes)),
            files: found.files,
            young: found.young,
            held_by: held.map(|(version, reader)| HeldBy { reader, version, kept: found.held }),
        }
    }
}

fn ended(found: &Found) -> Commit {
    let metrics = BTreeMap::from([("numDeletedFiles".to_owned(), found.files.len().to_string())]);
    let parameters = BTreeMap::from([("status".to_owned(), "COMPLETED".to_owned())]);
    Commit { operation: Operation::VacuumEnd, metrics, parameters, ..Commit::default() }
}

/// A commit that says something and changes nothing.
async fn commit(table: &Table, commit: Commit) -> Result<()> {
    let mut table = table.clone();
    for _ in 0..TRIES {
        if let CommitOutcome::Committed { .. } = table.commit(commit.clone()).await.map_err(Error::lake("committing to", table.name()))? {
            return Ok(());
        }
        table = table.refresh().await.map_err(Error::lake("opening", table.name()))?;
    }
    Err(Error::Contended { table: table.name().clone(), attempts: TRIES })
}

/// What the log says of files.
async fn known(table: &Table, horizon: DateTime<Utc>, slowest: Option<u64>) -> tributary_lake::Result<Known> {
    let mut known = Known::default();
    for file in table.files().await? {
        known.need(&table.paths_of(&file)?);
    }
    let mut earliest = table.version() + 1;
    let mut commits = table.commit_removals().await?;
    while let Some(commit) = commits.try_next().await? {
        earliest = earliest.min(commit.version);
        let is_held = slowest.is_some_and(|slowest| commit.version > slowest);
        for removed in &commit.removed {
            known.take(&removed.paths, removed.at.map_or(commit.timestamp, |at| at.max(commit.timestamp)) > horizon, is_held);
        }
        known.take(&commit.changes, commit.timestamp > horizon, is_held);
    }
    // Of commits whose files are gone the newest checkpoint remembers what was removed, not when by version.
    let is_held = slowest.is_some_and(|slowest| slowest + 1 < earliest);
    for removed in table.remembered_removals().await? {
        known.take(&removed.paths, removed.at.is_some_and(|at| at > horizon), is_held);
    }
    Ok(known)
}

async fn in_folder(table: &Table, known: &Known, unknown_until: DateTime<Utc>, found: &mut Found) -> tributary_lake::Result<()> {
    let mut objects = table.objects();
    let (mut nested, mut young) = (BTreeSet::new(), Vec::new());
    while let Some(object) = objects.try_next().await? {
        nested.extend(nested_roots(&object.path));
        if is_hidden(&object.path, table.partition_columns()) {
            continue;
        }
        match known.fate(&object.path) {
            Fate::Needed => {}
            Fate::Held => found.held += Amount::of([object.size].into_iter()),
            Fate::Unknown if object.modified > unknown_until => young.push(OldFile { path: object.path, bytes: object.size }),
            Fate::Unknown | Fate::Removed => found.files.push(OldFile { path: object.path, bytes: object.size }),
        }
    }
    // A table in a folder below this one has a log of its own.
    let is_ours = |file: &OldFile| !nested.iter().any(|root: &String| file.path.starts_with(root.as_str()));
    found.files.retain(is_ours);
    found.young = Amount::of(young.iter().filter(|file| is_ours(file)).map(|file| file.bytes));
    Ok(())
}

async fn in_log(table: &Table, known: &Known, found: &mut Found) -> tributary_lake::Result<()> {
    let sized = |path: String| async move { table.object_size(&path).await.map(|size| (path, size)) };
    let mut removed = stream::iter(known.removed()).map(sized).buffer_unordered(AT_ONCE);
    while let Some((path, size)) = removed.try_next().await? {
        match (known.fate(&path), size) {
            (Fate::Removed, Some(bytes)) => found.files.push(OldFile { path, bytes }),
            (Fate::Held, Some(bytes)) => found.held += Amount::of([bytes].into_iter()),
            _ => {}
        }
    }
    Ok(())
}
