//! Instants and versions.
//!
//! A commit's time is its in-commit timestamp where the table has them, else the time of its log file made monotonic: a file
//! that is not later than the one before it counts as a millisecond later. The version at an instant is the last one made then
//! or earlier; before the first commit there is none, after the last one it is the last.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;

use crate::action::Action;
use crate::{Error, Result, Table, history};

/// The commits whose files are there, oldest first, without a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Timeline {
    /// Version and time of its file, monotonic.
    commits: Vec<(u64, DateTime<Utc>)>,
    /// Versions from here on carry their own time.
    in_commit_from: Option<u64>,
}

impl Timeline {
    fn new(mut files: Vec<(u64, DateTime<Utc>)>, in_commit_from: Option<u64>) -> Self {
        files.sort_unstable();
        let mut commits: Vec<(u64, DateTime<Utc>)> = Vec::with_capacity(files.len());
        for (version, modified) in files {
            let time = match commits.last() {
                Some((before, _)) if before + 1 != version => {
                    // Older ones cannot be read up to here any more.
                    commits.clear();
                    modified
                }
                Some((_, before)) => modified.max(*before + TimeDelta::milliseconds(1)),
                None => modified,
            };
            commits.push((version, time));
        }
        Self { commits, in_commit_from }
    }
}

impl Table {
    /// The snapshot of the last version made at `instant` or earlier; the last one when `instant` lies after it.
    ///
    /// # Errors
    /// [`Error::NoInstant`] when it lies before the first commit that can be read.
    pub async fn at_timestamp(&self, instant: DateTime<Utc>) -> Result<Self> {
        let timeline = self.timeline(None).await?;
        match self.last_at(&timeline, instant).await? {
            Some(index) => self.at_version(timeline.commits[index].0).await,
            None => {
                let earliest = match timeline.commits.first() {
                    Some(_) => self.time_of(&timeline, 0).await?,
                    None => instant,
                };
                let text = |instant: DateTime<Utc>| instant.to_rfc3339_opts(SecondsFormat::AutoSi, true);
                Err(Error::NoInstant { table: self.name().clone(), instant: text(instant), earliest: text(earliest) })
            }
        }
    }

    /// The last version of this snapshot's made at `instant` or earlier; none before the first commit that can be read.
    ///
    /// # Errors
    /// Store errors.
    pub async fn version_at(&self, instant: DateTime<Utc>) -> Result<Option<u64>> {
        let timeline = self.timeline(Some(self.version())).await?;
        Ok(self.last_at(&timeline, instant).await?.map(|index| timeline.commits[index].0))
    }

    /// First and last version made in `[from, to]`, of this snapshot's.
    pub(crate) async fn versions_between(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Option<(u64, u64)>> {
        let timeline = self.timeline(Some(self.version())).await?;
        let Some(last) = self.last_at(&timeline, to).await? else { return Ok(None) };
        let before = self.last_at(&timeline, from - TimeDelta::microseconds(1)).await?;
        let first = before.map_or(0, |index| index + 1);
        Ok((first <= last).then(|| (timeline.commits[first].0, timeline.commits[last].0)))
    }

    /// That a commit cannot be read, and which can.
    pub(crate) async fn no_commit(&self, version: u64) -> Error {
        match self.log().versions().await {
            Ok(versions) => {
                let earliest = versions.earliest_commit.unwrap_or(versions.latest);
                Error::NoVersion { table: self.name().clone(), version, earliest, latest: self.version() }
            }
            Err(error) => error,
        }
    }

    /// The actions of one commit.
    ///
    /// # Errors
    /// [`Error::NoVersion`] when its file is gone, [`Error::Log`] when it cannot be read.
    pub(crate) async fn commit_actions(&self, version: u64) -> Result<Vec<Action>> {
        match self.log().actions(version).await? {
            Some(actions) => Ok(actions),
            None => Err(self.no_commit(version).await),
        }
    }

    /// When a commit was made: what it says itself, else the time of its file.
    pub(crate) async fn commit_time(&self, version: u64, actions: &[Action]) -> Result<DateTime<Utc>> {
        match said(actions) {
            Some(time) => Ok(time),
            None => self.log().modified(version).await,
        }
    }

    async fn timeline(&self, until: Option<u64>) -> Result<Timeline> {
        let failed = |source| Error::store(format!("listing the log of table {}", self.name()), source);
        let files: Vec<_> = self.log().store.list(Some(&self.log().root.clone().join("_delta_log"))).try_collect().await.map_err(failed)?;
        let commits = files.iter().filter_map(|file| Some((commit_version(&file.location)?, file.last_modified.trunc_subsecs(3))));
        let commits = commits.filter(|(version, _)| until.is_none_or(|until| *version <= until)).collect();
        Ok(Timeline::new(commits, in_commit_from(self.properties())))
    }

    /// When the commit at `index` was made.
    async fn time_of(&self, timeline: &Timeline, index: usize) -> Result<DateTime<Utc>> {
        let (version, file_time) = timeline.commits[index];
        if timeline.in_commit_from.is_none_or(|from| version < from) {
            return Ok(file_time);
        }
        Ok(said(&self.commit_actions(version).await?).unwrap_or(file_time))
    }

    /// The last commit made at `instant` or earlier, by its place in the timeline: times grow with versions, so halving finds it.
    async fn last_at(&self, timeline: &Timeline, instant: DateTime<Utc>) -> Result<Option<usize>> {
        let (mut low, mut high) = (0, timeline.commits.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.time_of(timeline, middle).await? <= instant {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.checked_sub(1))
    }
}

/// The time a commit says of itself.
fn said(actions: &[Action]) -> Option<DateTime<Utc>> {
    history::in_commit_timestamp(actions).and_then(DateTime::from_timestamp_millis)
}

/// The version of a commit file's name, none for other files of the log.
fn commit_version(place: &Path) -> Option<u64> {
    let digits = place.filename()?.strip_suffix(".json")?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

/// The version from which commits carry their own time.
fn in_commit_from(properties: &BTreeMap<String, String>) -> Option<u64> {
    let enabled = properties.get("delta.enableInCommitTimestamps").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    enabled.then(|| properties.get("delta.inCommitTimestampEnablementVersion").and_then(|version| version.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(millis).unwrap()
    }

    #[test]
    fn file_times_are_made_monotonic() {
        let timeline = Timeline::new(vec![(2, at(50)), (0, at(100)), (1, at(100)), (3, at(200))], None);
        assert_eq!(timeline.commits, [(0, at(100)), (1, at(101)), (2, at(102)), (3, at(200))]);
    }

    #[test]
    fn what_lies_before_a_gap_cannot_be_read() {
        let timeline = Timeline::new(vec![(0, at(1)), (4, at(2)), (5, at(3))], None);
        assert_eq!(timeline.commits, [(4, at(2)), (5, at(3))]);
    }

    #[test]
    fn only_commit_files_are_versions() {
        let version = |name: &str| commit_version(&Path::from(format!("t/_delta_log/{name}")));
        assert_eq!(version("00000000000000000007.json"), Some(7));
        assert_eq!(version("00000000000000000007.checkpoint.parquet"), None);
        assert_eq!(version("_last_checkpoint"), None);
        assert_eq!(version("00000000000000000007.00000000000000000009.compacted.json"), None);
    }
}
