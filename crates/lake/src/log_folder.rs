//! The objects of a table's log, told apart by their names.
//!
//! | name | what |
//! |---|---|
//! | `<20 digits>.json` | a commit |
//! | `<20 digits>.crc` | its checksum |
//! | `<20 digits>.checkpoint.parquet` | a whole checkpoint |
//! | `<20 digits>.checkpoint.<part>.<parts>.parquet` | a part of one |
//! | `<20 digits>.checkpoint.<uuid>.json`, `.parquet` | one of the second kind, whose files may be in sidecars |
//! | `<20 digits>.<20 digits>.compacted.json` | commits as one |
//! | `_sidecars/…` | files of checkpoints of the second kind |
//! | `_last_checkpoint` | a hint |

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray};
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use parquet::arrow::ProjectionMask;
use parquet::arrow::async_reader::ParquetRecordBatchStreamBuilder;
use serde_json::Value;

use crate::folder::{StoredObject, objects};
use crate::snapshot::Snapshot;
use crate::stored_file::StoredFile;
use crate::{Error, Result, Table};

const LOG: &str = "_delta_log";

/// What an object of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// A commit file.
    Commit,
    /// What a commit file should come to.
    Checksum,
    /// A checkpoint, or one of so many parts of one.
    Checkpoint {
        /// How many parts there are in all.
        parts: u32,
    },
    /// Commits from its version to this one.
    Compacted {
        /// The last of them.
        to: u64,
    },
    /// A part of a checkpoint of the second kind.
    Sidecar,
    /// Where readers begin to look.
    Hint,
    /// Something else.
    Other,
}

/// An object of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogObject {
    /// Path relative to the table's root, size and time.
    pub object: StoredObject,
    /// What it is, by its name.
    pub kind: LogKind,
    /// The version it is of, or begins with.
    pub version: Option<u64>,
}

impl LogObject {
    fn of(object: StoredObject) -> Self {
        let name = object.path.strip_prefix(LOG).unwrap_or(&object.path).trim_start_matches('/');
        let (kind, version) = kind(name);
        Self { object, kind, version }
    }
}

/// What a name in the log's folder is of.
fn kind(name: &str) -> (LogKind, Option<u64>) {
    if name == "_last_checkpoint" {
        return (LogKind::Hint, None);
    }
    if name.starts_with("_sidecars/") && name.ends_with(".parquet") {
        return (LogKind::Sidecar, None);
    }
    let digits = |text: &str| (text.len() == 20).then(|| text.parse::<u64>().ok()).flatten();
    let parts: Vec<&str> = name.split('.').collect();
    let Some(version) = parts.first().and_then(|first| digits(first)) else { return (LogKind::Other, None) };
    let count = |text: &str| text.parse::<u32>().ok().filter(|count| *count > 0);
    let kind = match parts[1..] {
        ["json"] => LogKind::Commit,
        ["crc"] => LogKind::Checksum,
        ["checkpoint", "parquet"] | ["checkpoint", _, "parquet" | "json"] => LogKind::Checkpoint { parts: 1 },
        ["checkpoint", part, parts, "parquet"] if count(part).is_some() && count(parts).is_some() => {
            LogKind::Checkpoint { parts: count(parts).unwrap_or(1) }
        }
        [to, "compacted", "json"] if digits(to).is_some() => LogKind::Compacted { to: digits(to).unwrap_or_default() },
        _ => return (LogKind::Other, None),
    };
    (kind, Some(version))
}

impl Table {
    /// Every object of the table's log.
    ///
    /// # Errors
    /// Store errors.
    pub async fn log_objects(&self) -> Result<Vec<LogObject>> {
        let folder = self.log().root.clone().join(LOG);
        objects(self.log(), &folder).map_ok(LogObject::of).try_collect().await
    }

    /// Relative paths of the sidecars that a checkpoint is made of beside its own file.
    ///
    /// # Errors
    /// [`Error::Log`] for a checkpoint that cannot be read; store errors.
    pub async fn sidecars_of(&self, checkpoint: &LogObject) -> Result<Vec<String>> {
        let path = &checkpoint.object.path;
        let names = if path.ends_with(".json") { self.sidecars_in_json(path).await? } else { self.sidecars_in_parquet(checkpoint).await? };
        // A sidecar is called by its name alone, or by an absolute path.
        Ok(names.iter().filter_map(|name| Some(format!("{LOG}/_sidecars/{}", name.rsplit('/').next()?))).collect())
    }

    async fn sidecars_in_json(&self, path: &str) -> Result<BTreeSet<String>> {
        let failed = |error| Error::store(format!("reading {path} of table {}", self.name()), error);
        let bytes = self.log().store.get(&self.log_place(path)).await.map_err(failed)?.bytes().await.map_err(failed)?;
        let mut names = BTreeSet::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line: Value = serde_json::from_slice(line).map_err(|error| self.log().unreadable(format!("{path}: {error}")))?;
            names.extend(line["sidecar"]["path"].as_str().map(str::to_owned));
        }
        Ok(names)
    }

    async fn sidecars_in_parquet(&self, checkpoint: &LogObject) -> Result<BTreeSet<String>> {
        let path = &checkpoint.object.path;
        let failed = |error: parquet::errors::ParquetError| self.log().unreadable(format!("{path}: {error}"));
        let (store, size) = (self.log().store.clone(), Some(checkpoint.object.size));
        let file = StoredFile { store, place: self.log_place(path), size, kept: None, read: Default::default() };
        let builder = ParquetRecordBatchStreamBuilder::new(file).await.map_err(failed)?;
        let Ok(sidecar) = builder.schema().index_of("sidecar") else { return Ok(BTreeSet::new()) };
        let mask = ProjectionMask::roots(builder.parquet_schema(), [sidecar]);
        let mut batches = builder.with_projection(mask).build().map_err(failed)?;
        let mut names = BTreeSet::new();
        while let Some(batch) = batches.try_next().await.map_err(failed)? {
            let column = batch.column(0).as_struct_opt().and_then(|sidecars| sidecars.column_by_name("path").cloned());
            let Some(paths) = column.and_then(|paths| arrow::compute::cast(&paths, &arrow::datatypes::DataType::Utf8).ok()) else {
                return Err(self.log().unreadable(format!("{path}: a sidecar has no path")));
            };
            let paths = paths.as_string::<i32>();
            names.extend((0..paths.len()).filter(|row| paths.is_valid(*row)).map(|row| paths.value(row).to_owned()));
        }
        Ok(names)
    }

    /// The version that the hint names, or none where there is no hint that can be read.
    ///
    /// # Errors
    /// Store errors.
    pub async fn hinted_checkpoint(&self) -> Result<Option<u64>> {
        let path = format!("{LOG}/_last_checkpoint");
        let failed = |error| Error::store(format!("reading {path} of table {}", self.name()), error);
        let bytes = match self.log().store.get(&self.log_place(&path)).await {
            Ok(found) => found.bytes().await.map_err(failed)?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        Ok(serde_json::from_slice::<Value>(&bytes).ok().and_then(|hint| hint["version"].as_u64()))
    }

    /// The first version whose commit file is there, and all after it; none when there is none.
    ///
    /// # Errors
    /// Store errors.
    pub async fn earliest_commit(&self) -> Result<Option<u64>> {
        Ok(self.log().versions().await?.earliest_commit)
    }

    /// Opens a version anew, and reads its files, from a checkpoint of this very version.
    ///
    /// # Errors
    /// [`Error::Log`] where there is no checkpoint of it that can be read; store errors.
    pub async fn ensure_checkpoint(&self, version: u64) -> Result<()> {
        let unreadable = || self.log().unreadable(format!("version {version} has no checkpoint that can be read"));
        let opened = self.log().open(Some(version)).await?.ok_or_else(unreadable)?;
        let snapshot = Snapshot::new(self.name(), opened)?;
        if snapshot.state.checkpoint_version() != Some(version) {
            return Err(unreadable());
        }
        snapshot.files(self.log()).await.map(drop)
    }

    fn log_place(&self, path: &str) -> Path {
        path.split('/').fold(self.log().root.clone(), |place, part| place.join(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_the_log_is_known_by_its_name() {
        let version = "00000000000000000012";
        for (name, expected) in [
            (format!("{version}.json"), (LogKind::Commit, Some(12))),
            (format!("{version}.crc"), (LogKind::Checksum, Some(12))),
            (format!("{version}.checkpoint.parquet"), (LogKind::Checkpoint { parts: 1 }, Some(12))),
            (format!("{version}.checkpoint.0000000001.0000000003.parquet"), (LogKind::Checkpoint { parts: 3 }, Some(12))),
            (format!("{version}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"), (LogKind::Checkpoint { parts: 1 }, Some(12))),
            (format!("{version}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"), (LogKind::Checkpoint { parts: 1 }, Some(12))),
            (format!("{version}.00000000000000000014.compacted.json"), (LogKind::Compacted { to: 14 }, Some(12))),
            ("_sidecars/a.parquet".to_owned(), (LogKind::Sidecar, None)),
            ("_last_checkpoint".to_owned(), (LogKind::Hint, None)),
            (format!("{version}.json.tmp"), (LogKind::Other, None)),
            (format!(".{version}.json.crc"), (LogKind::Other, None)),
            ("12.json".to_owned(), (LogKind::Other, None)),
            ("_staged_commits/00000000000000000012.a.json".to_owned(), (LogKind::Other, None)),
        ] {
            assert_eq!(kind(&name), expected, "{name}");
        }
    }
}
