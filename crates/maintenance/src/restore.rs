//! An earlier version of a table comes back: rows, schema, properties and positions, in one commit.
//!
//! A target keeps in its commits what it has consumed. Were its rows brought back without that, the next run would not read again what
//! is no longer there. So the positions go back with the rows, as far as what they stand for can still be read; else nothing is done, and
//! the choices are named.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tributary_lake::{Commit, CommitOutcome, DataFile, Lake, Operation, Progress, Reads, Table};
use tributary_specs::TableName;

use crate::readers::sources_of;
use crate::report::Amount;
use crate::vacuum::LONGEST_WRITE_DEFAULT;
use crate::{Error, Result, Status};

/// How often a restore that lost a race is planned again.
const TRIES: usize = 10;
/// Objects that are asked for side by side.
const AT_ONCE: usize = 16;
/// Missing files that a message names.
const NAMED_MAX: usize = 10;
/// Commits that are looked through for a vacuum that has not ended.
const HISTORY_MAX: usize = 1_000;
/// The position of what is to begin anew.
const NOTHING: i64 = -1;

/// To where a table goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreTo {
    /// A version.
    Version(u64),
    /// The version that was the latest then.
    Timestamp(DateTime<Utc>),
}

/// What becomes of the positions that the table's commits hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Positions {
    /// As they were: the next run takes up again what came since.
    #[default]
    Back,
    /// As they are: what came since is not taken up again.
    Keep,
}

/// How a table is restored.
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// What becomes of positions.
    pub positions: Positions,
    /// A vacuum that began so long ago and has not ended is taken for dead.
    pub longest_write: Duration,
    /// Say what would be done and do nothing.
    pub dry_run: bool,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self { positions: Positions::default(), longest_write: LONGEST_WRITE_DEFAULT, dry_run: false }
    }
}

/// A position that goes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PositionMove {
    /// Whose.
    pub app_id: String,
    /// Before.
    pub from: i64,
    /// Afterwards; below zero: what it stands for is to be read from its beginning.
    pub to: i64,
}

/// What a restore did.
#[derive(Debug, Serialize)]
pub struct RestoreReport {
    /// The table.
    pub table: TableName,
    /// How it ended: done, planned (a dry run) or nothing to do.
    pub status: Status,
    /// The version it was at.
    pub from: u64,
    /// The version whose content it has now.
    pub to: u64,
    /// The version that was made.
    pub version: Option<u64>,
    /// Files that became live again.
    pub restored: Amount,
    /// Files that stopped being live.
    pub removed: Amount,
    /// Positions that went back.
    pub positions: Vec<PositionMove>,
}

/// Brings a table back to an earlier version.
///
/// # Errors
/// [`Error::FilesGone`] when files of that version are gone, [`Error::PositionGone`] when what came since cannot be read again,
/// [`Error::VacuumUnderWay`], [`Error::Contended`]; [`Error::Lake`], for a version that is not available too.
pub async fn restore(lake: &Lake, name: &TableName, to: RestoreTo, options: &RestoreOptions) -> Result<RestoreReport> {
    for _ in 0..TRIES {
        let table = crate::open(lake, name).await?;
        table.ensure_writable().map_err(Error::lake("opening", name))?;
        let then = match to {
            RestoreTo::Version(version) => table.at_version(version).await,
            RestoreTo::Timestamp(instant) => table.at_timestamp(instant).await,
        };
        let then = then.map_err(Error::lake("going back in", name))?;
        let attempt = Attempt { table: &table, then: &then, options };
        let Some(commit) = attempt.plan().await? else { return Ok(attempt.report(Status::NothingToDo, None, &Commit::default())) };
        if options.dry_run {
            return Ok(attempt.report(Status::Planned, None, &commit));
        }
        match table.restore(&then, commit.clone()).await.map_err(Error::lake("restoring", name))? {
            CommitOutcome::Committed { version } => return Ok(attempt.report(Status::Done, Some(version), &commit)),
            CommitOutcome::Conflicted(conflict) => tracing::info!(table = %name, %conflict, "lost a race, planning again"),
            CommitOutcome::Fenced { app_id, .. } => tracing::info!(table = %name, app_id, "a position moved, planning again"),
        }
    }
    Err(Error::Contended { table: name.clone(), attempts: TRIES })
}

struct Attempt<'a> {
    table: &'a Table,
    then: &'a Table,
    options: &'a RestoreOptions,
}

impl Attempt<'_> {
    /// What is to be committed; none where the table is as it was.
    async fn plan(&self) -> Result<Option<Commit>> {
        let name = self.table.name();
        self.ensure_no_vacuum().await?;
        let planned = self.table.plan_restore(self.then).await.map_err(Error::lake("restoring", name))?;
        let mut progress = self.progress();
        let unanswered = self.table.restored_by_others().await.map_err(Error::lake("reading the log of", name))?.is_some();
        if unanswered && progress.is_empty() {
            progress.extend(self.table.position_again());
        }
        let answer = || unanswered.then(|| Commit { operation: Operation::Restore, reads: Reads::WholeTable, ..Commit::default() });
        let Some(mut commit) = planned.or_else(answer) else { return Ok(None) };
        self.ensure_files(&commit.again).await?;
        if self.options.positions == Positions::Back {
            self.ensure_sources(&progress).await?;
        }
        commit.parameters = BTreeMap::from([("version".to_owned(), self.then.version().to_string())]);
        commit.metrics = BTreeMap::from([
            ("numRestoredFiles".to_owned(), commit.again.len().to_string()),
            ("numRemovedFiles".to_owned(), commit.removes.len().to_string()),
        ]);
        commit.progress = progress;
        Ok(Some(commit))
    }

    /// The positions of ours as they are to be; what is kept is said again.
    fn progress(&self) -> Vec<Progress> {
        let differing =
            self.table.positions_that_differ(self.then).into_iter().filter(|(progress, _)| progress.app_id.starts_with("tributary:"));
        let back = |(progress, then): (Progress, Option<i64>)| match then {
            _ if self.options.positions == Positions::Keep => Some(progress),
            Some(version) => Some(Progress { version, ..progress }),
            None if tells_which(&progress.app_id) || progress.version <= NOTHING => None,
            None => Some(Progress { version: NOTHING, ..progress }),
        };
        differing.filter_map(back).collect()
    }

    /// A vacuum deletes what the log said was removed, and a restore makes such files live again.
    async fn ensure_no_vacuum(&self) -> Result<()> {
        let history = self.table.history(Some(HISTORY_MAX)).await.map_err(Error::lake("reading the log of", self.table.name()))?;
        let now = self.table.lake().clock().now();
        let is_recent =
            |timestamp: DateTime<Utc>| (now - timestamp).to_std().is_ok_and(|age| age < self.options.longest_write) || timestamp > now;
        let last = history
            .iter()
            .take_while(|commit| is_recent(commit.timestamp))
            .find(|commit| commit.operation.as_deref().is_some_and(|operation| operation.starts_with("VACUUM")));
        match last.filter(|commit| commit.operation.as_deref() == Some("VACUUM START")) {
            Some(start) => Err(Error::VacuumUnderWay { table: self.table.name().clone(), version: start.version }),
            None => Ok(()),
        }
    }

    /// That every file which becomes live again is there, with its deletion vector.
    async fn ensure_files(&self, again: &[DataFile]) -> Result<()> {
        let (name, failed) = (self.table.name(), || Error::lake("looking for files of", self.table.name()));
        let mut paths = Vec::new();
        for file in again {
            paths.extend(self.table.path_of(file));
            if let Some(vector) = &file.deletion_vector {
                paths.extend(self.table.path_of_vector(vector).map_err(failed())?);
            }
        }
        let gone = stream::iter(paths)
            .map(|path| async move { self.table.object_size(&path).await.map(|size| (path, size)) })
            .buffered(AT_ONCE)
            .try_filter_map(|(path, size)| std::future::ready(Ok(size.is_none().then_some(path))));
        let gone: Vec<String> = gone.try_collect().await.map_err(failed())?;
        if gone.is_empty() {
            return Ok(());
        }
        let count = gone.len();
        Err(Error::FilesGone {
            table: name.clone(),
            version: self.then.version(),
            count,
            files: gone.into_iter().take(NAMED_MAX).collect(),
        })
    }

    /// That what positions go back behind can be read again.
    async fn ensure_sources(&self, progress: &[Progress]) -> Result<()> {
        let name = self.table.name();
        let positions: BTreeMap<String, i64> = progress.iter().map(|progress| (progress.app_id.clone(), progress.version)).collect();
        for (source, version) in sources_of(name, &positions) {
            let failed = || Error::lake("looking for the log of", &source);
            let gone = |earliest| Error::PositionGone { table: name.clone(), source_table: source.clone(), version, earliest };
            let Some(table) = self.table.lake().table(&source).await.map_err(failed())? else { return Err(gone(None)) };
            let earliest = table.earliest_commit().await.map_err(failed())?;
            if earliest.is_none_or(|earliest| earliest > version + 1) {
                return Err(gone(earliest));
            }
        }
        Ok(())
    }

    fn report(&self, status: Status, version: Option<u64>, commit: &Commit) -> RestoreReport {
        let moves = commit.progress.iter().filter(|progress| progress.expected != Some(progress.version));
        RestoreReport {
            table: self.table.name().clone(),
            status,
            from: self.table.version(),
            to: self.then.version(),
            version,
            restored: Amount::of(commit.again.iter().map(|file| file.size)),
            removed: Amount::of(commit.removes.iter().map(|file| file.size)),
            positions: moves
                .map(|progress| PositionMove {
                    app_id: progress.app_id.clone(),
                    from: progress.expected.unwrap_or(NOTHING),
                    to: progress.version,
                })
                .collect(),
        }
    }
}

/// Whether it tells which table a source is, or whose a position is, and is no position itself.
fn tells_which(app_id: &str) -> bool {
    ["tributary:source-id:", "tributary:flow-id:", "tributary:once-id:", "tributary:state-id:", "tributary:taken:", "tributary:made"]
        .iter()
        .any(|prefix| app_id.starts_with(prefix))
}
