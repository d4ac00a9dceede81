//! Commits and checkpoints that nobody looks at any more are deleted from a table's log.
//!
//! Everything before the *cut* goes. The cut is a version with a whole checkpoint, at or before every version that is still needed:
//! within the retention (`delta.logRetentionDuration`), by the slowest reader, by a write that may be under way (its commit is put on top
//! of the version it was planned on: were the files behind that one gone, it would land where nobody looks).
//!
//! What must stay true:
//! - The checkpoint of the cut and everything after it is not touched, so the latest version opens whatever was deleted.
//! - What goes goes oldest first, so a kill leaves a log that begins later, without a gap behind its beginning.
//! - The checkpoint of the cut has been read before anything goes.
//! - The hint never names a checkpoint that is about to go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use tributary_lake::{Lake, LogKind, LogObject, Table};
use tributary_specs::TableName;

use crate::readers::{Reader, Readers, slowest_of};
use crate::report::Amount;
use crate::retention::Retention;
use crate::vacuum::LONGEST_WRITE_DEFAULT;
use crate::{Error, Result, Status, controls, interval};

/// The retention of a log whose table does not say its own.
pub const LOG_RETENTION_DEFAULT: Duration = Duration::from_secs(30 * 86_400);

const RETENTION: Retention = Retention { property: "delta.logRetentionDuration", default: LOG_RETENTION_DEFAULT, verb: "clean-log" };
/// Commits before this version may go only together with all others before it.
const PROTECTION_PROPERTY: &str = "delta.requireCheckpointProtectionBeforeVersion";
const HINT: &str = "_delta_log/_last_checkpoint";

/// What is deleted, and what is kept at any rate.
#[derive(Debug, Clone)]
pub struct CleanLogOptions {
    /// Versions so recent can be opened afterwards; none = as the table says (`delta.logRetentionDuration`), else thirty days.
    pub retain: Option<Duration>,
    /// The retention may be shorter than the table's own: earlier versions cannot be read any more.
    pub accept_unsafe_retention: bool,
    /// Commits so recent are kept: a write may have been planned on them.
    pub longest_write: Duration,
    /// Readers that are no tables of the lake, beside those that the table's properties declare.
    pub outside: Vec<Reader>,
    /// Names of readers that are not waited for; they will have to begin anew.
    pub ignore_readers: Vec<String>,
    /// Say what would be deleted and delete nothing.
    pub dry_run: bool,
}

impl Default for CleanLogOptions {
    fn default() -> Self {
        Self {
            retain: None,
            accept_unsafe_retention: false,
            longest_write: LONGEST_WRITE_DEFAULT,
            outside: Vec::new(),
            ignore_readers: Vec::new(),
            dry_run: false,
        }
    }
}

/// What became of a log.
#[derive(Debug, Serialize)]
pub struct CleanLogReport {
    /// The table.
    pub table: TableName,
    /// How it ended: done, planned (a dry run) or nothing to do.
    pub status: Status,
    /// The earliest version that can be opened afterwards, where something goes.
    pub cut: Option<u64>,
    /// Why the cut is not later.
    pub reason: String,
    /// What was deleted, or would be.
    pub deleted: Amount,
    /// Objects of the log before.
    pub before: Amount,
    /// The slowest reader and the version it needs, where it keeps the cut from being later.
    pub held_by: Option<(String, u64)>,
}

/// Deletes what nobody needs of a table's log.
///
/// # Errors
/// [`Error::UnsafeRetention`] for a retention below the table's own that was not accepted; [`Error::Reader`]; [`Error::Lake`].
pub async fn clean_log(lake: &Lake, readers: &Readers, name: &TableName, options: &CleanLogOptions) -> Result<CleanLogReport> {
    let table = crate::open(lake, name).await?;
    table.ensure_writable().map_err(Error::lake("opening", name))?;
    let retention = RETENTION.agreed(&table, options.retain, options.accept_unsafe_retention)?;
    let readers = readers.waited_for(&table, &options.outside, &options.ignore_readers)?;
    let failed = || Error::lake("reading the log of", name);
    let objects = table.log_objects().await.map_err(failed())?;
    let bound = bound(&table, &readers, retention, options.longest_write).await?;
    let protected = table.properties().get(PROTECTION_PROPERTY).and_then(|version| version.parse().ok()).unwrap_or(0);
    let cut = cut(&objects, bound.version, protected);
    let mut going = cut.map(|cut| going(&objects, cut)).unwrap_or_default();
    if let Some(cut) = cut {
        going.extend(stray_sidecars(&table, &objects, cut, options.longest_write).await?);
    }
    let is_idle = going.is_empty();
    let report = CleanLogReport {
        table: name.clone(),
        status: if is_idle {
            Status::NothingToDo
        } else if options.dry_run {
            Status::Planned
        } else {
            Status::Done
        },
        cut: cut.filter(|_| !is_idle),
        reason: bound.reason,
        deleted: Amount::of(going.iter().map(|object| object.object.size)),
        before: Amount::of(objects.iter().map(|object| object.object.size)),
        held_by: bound.held_by,
    };
    if !is_idle && !options.dry_run {
        delete(&table, &going, cut.unwrap_or(0)).await.map_err(Error::lake("cleaning the log of", name))?;
    }
    Ok(report)
}

/// The earliest version that somebody needs, and who.
struct Bound {
    version: u64,
    reason: String,
    held_by: Option<(String, u64)>,
}

async fn bound(table: &Table, readers: &[Reader], retention: Duration, longest_write: Duration) -> Result<Bound> {
    let now = table.lake().clock().now();
    let at = async |duration: Duration| -> Result<u64> {
        let version = table.version_at(interval::before(now, duration.as_secs())).await;
        Ok(version.map_err(Error::lake("reading the log of", table.name()))?.unwrap_or(0))
    };
    let forgets = controls::forgets_a_reader(table.lake().options());
    let slowest = if forgets { None } else { slowest_of(table, readers).await? };
    let retained = at(retention).await?;
    let writing = at(longest_write).await?;
    let version = retained.min(writing).min(slowest.as_ref().map_or(u64::MAX, |(version, _)| *version));
    let held_by = slowest.filter(|(needed, _)| *needed < retained.min(writing)).map(|(needed, reader)| (reader, needed));
    let reason = match &held_by {
        Some((reader, needed)) => format!("{reader} has reached version {needed}"),
        None if writing < retained => format!("a write may be under way that was planned on version {writing}"),
        None => format!("version {retained} is within the retention"),
    };
    Ok(Bound { version, reason, held_by })
}

/// The latest version with a whole checkpoint that is not after `bound`; none where a protected version would be cut through.
fn cut(objects: &[LogObject], bound: u64, protected: u64) -> Option<u64> {
    let cut = whole_checkpoints(objects).into_iter().filter(|version| *version <= bound).max()?;
    (cut >= protected).then_some(cut)
}

/// Versions of which every part of a checkpoint is there.
fn whole_checkpoints(objects: &[LogObject]) -> BTreeSet<u64> {
    let mut parts: BTreeMap<(u64, u32), u32> = BTreeMap::new();
    for object in objects {
        if let (LogKind::Checkpoint { parts: of }, Some(version)) = (object.kind, object.version) {
            *parts.entry((version, of)).or_default() += 1;
        }
    }
    parts.into_iter().filter(|((_, of), found)| found >= of).map(|((version, _), _)| version).collect()
}

/// Everything of versions before the cut, oldest first; of one version what is derived goes before the commit.
fn going(objects: &[LogObject], cut: u64) -> Vec<LogObject> {
    let rank = |object: &LogObject| match object.kind {
        LogKind::Compacted { .. } => Some(0),
        LogKind::Checksum => Some(1),
        LogKind::Checkpoint { .. } => Some(2),
        LogKind::Commit => Some(3),
        LogKind::Sidecar | LogKind::Hint | LogKind::Other => None,
    };
    let is_before = |object: &&LogObject| rank(object).is_some() && object.version.is_some_and(|version| version < cut);
    let mut going: Vec<LogObject> = objects.iter().filter(is_before).cloned().collect();
    going.sort_by(|one, other| (one.version, rank(one), &one.object.path).cmp(&(other.version, rank(other), &other.object.path)));
    going
}

/// Sidecars that no checkpoint from the cut on is made of, old enough that no checkpoint is being made of them.
async fn stray_sidecars(table: &Table, objects: &[LogObject], cut: u64, longest_write: Duration) -> Result<Vec<LogObject>> {
    let old = interval::before(table.lake().clock().now(), longest_write.as_secs());
    let is_old = |object: &&LogObject| object.kind == LogKind::Sidecar && object.object.modified <= old;
    let mut stray: Vec<LogObject> = objects.iter().filter(is_old).cloned().collect();
    if stray.is_empty() {
        return Ok(stray);
    }
    let stays =
        |object: &&LogObject| matches!(object.kind, LogKind::Checkpoint { .. }) && object.version.is_some_and(|version| version >= cut);
    let mut used = BTreeSet::new();
    for checkpoint in objects.iter().filter(stays) {
        used.extend(table.sidecars_of(checkpoint).await.map_err(Error::lake("reading the log of", table.name()))?);
    }
    stray.retain(|object| !used.contains(&object.object.path));
    Ok(stray)
}

async fn delete(table: &Table, going: &[LogObject], cut: u64) -> tributary_lake::Result<()> {
    table.ensure_checkpoint(cut).await?;
    // A hint that names what goes would lead readers to nothing; without one they look for themselves.
    if table.hinted_checkpoint().await?.is_some_and(|version| version < cut) {
        table.delete_objects_in_order(&[HINT.to_owned()]).await?;
    }
    let paths: Vec<String> = going.iter().map(|object| object.object.path.clone()).collect();
    table.delete_objects_in_order(&paths).await
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use tributary_lake::StoredObject;

    use super::*;

    fn object(version: u64, kind: LogKind, name: &str) -> LogObject {
        let object = StoredObject { path: format!("_delta_log/{version:020}.{name}"), size: 1, modified: DateTime::UNIX_EPOCH };
        LogObject { object, kind, version: Some(version) }
    }

    fn commit(version: u64) -> LogObject {
        object(version, LogKind::Commit, "json")
    }

    fn part(version: u64, part: u32, parts: u32) -> LogObject {
        object(version, LogKind::Checkpoint { parts }, &format!("checkpoint.{part}.{parts}.parquet"))
    }

    #[test]
    fn the_cut_has_a_whole_checkpoint_and_comes_before_what_is_needed() {
        let log = [commit(0), part(3, 1, 1), part(6, 1, 2), part(6, 2, 2), part(9, 1, 2), commit(9)];
        assert_eq!(cut(&log, 9, 0), Some(6), "half of the checkpoint of 9 is not there");
        assert_eq!(cut(&log, 6, 0), Some(6));
        assert_eq!(cut(&log, 5, 0), Some(3));
        assert_eq!(cut(&log, 2, 0), None);
        assert_eq!(cut(&log, 5, 4), None, "versions before 4 go together or not at all");
        assert_eq!(cut(&log, 6, 4), Some(6));
    }

    #[test]
    fn what_goes_goes_oldest_first_and_a_commit_last_of_its_version() {
        let log = [commit(2), commit(0), commit(1), part(1, 1, 1), object(1, LogKind::Checksum, "crc"), commit(3), part(2, 1, 1)];
        let paths: Vec<String> =
            going(&log, 2).into_iter().map(|mut object| object.object.path.split_off("_delta_log/".len() + 19)).collect();
        assert_eq!(paths, ["0.json", "1.crc", "1.checkpoint.1.1.parquet", "1.json"]);
    }
}
