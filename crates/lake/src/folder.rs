//! The objects below a table's root, and what the log calls them.
//!
//! A path of the log is relative to the root or absolute, with a scheme or without, and percent-encoded once; some writers leave the
//! encoding out. Whoever asks what the log needs takes every reading of a path for needed.

use chrono::{DateTime, Utc};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;

use crate::action::decode_path;
use crate::log::{Log, kernel_error};
use crate::{DataFile, DeletionVector, Error, Result, Table};

/// Objects that are asked for or deleted side by side.
const AT_ONCE: usize = 16;

/// An object below a table's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// Relative to the table's root, as the object store names it.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// By the store's clock.
    pub modified: DateTime<Utc>,
}

impl Table {
    /// Every object below the table's root, those of its log too.
    pub fn objects(&self) -> BoxStream<'static, Result<StoredObject>> {
        objects(self.log(), &self.log().root)
    }

    /// Bytes of an object by its relative path; none where there is no such object.
    ///
    /// # Errors
    /// Store errors.
    pub async fn object_size(&self, path: &str) -> Result<Option<u64>> {
        match self.log().store.head(&self.object_place(path)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(Error::store(format!("looking at {path} of table {}", self.name()), error)),
        }
    }

    /// Deletes objects by their relative paths, side by side, in any order; those that are gone are gone.
    ///
    /// # Errors
    /// Store errors; some of the objects may be deleted then.
    pub async fn delete_objects(&self, paths: &[String]) -> Result<()> {
        let places: Vec<Path> = paths.iter().map(|path| self.object_place(path)).collect::<Result<_>>()?;
        stream::iter(places.into_iter().map(Ok)).try_for_each_concurrent(AT_ONCE, |place| self.delete_object(place)).await
    }

    /// Deletes objects one after the other, in this order.
    ///
    /// # Errors
    /// As [`Self::delete_objects`]; what stands after the failure is not deleted.
    pub async fn delete_objects_in_order(&self, paths: &[String]) -> Result<()> {
        for path in paths {
            self.delete_object(self.object_place(path)?).await?;
        }
        Ok(())
    }

    async fn delete_object(&self, place: Path) -> Result<()> {
        match self.log().store.delete(&place).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Error::store(format!("deleting {place} of table {}", self.name()), error)),
        }
    }

    fn object_place(&self, path: &str) -> Result<Path> {
        let refused = |error: object_store::path::Error| self.log().unreadable(format!("file {path}: {error}"));
        Path::parse(format!("{}/{path}", self.log().root)).map_err(refused)
    }

    /// Every relative path that a live file's data and deletion vector may have below the table's root; none where it lies elsewhere.
    ///
    /// # Errors
    /// [`Error::Log`] for a deletion vector whose path is none.
    pub fn paths_of(&self, file: &DataFile) -> Result<Vec<String>> {
        let mut paths = relative(self.log(), &file.log_path);
        if let Some(vector) = &file.deletion_vector {
            paths.extend(vector_paths(self.log(), vector)?);
        }
        Ok(paths)
    }

    /// The relative path of the file that a deletion vector is in; none where it stands in the log, or lies elsewhere.
    ///
    /// # Errors
    /// [`Error::Log`] when its path is none.
    pub fn path_of_vector(&self, vector: &DeletionVector) -> Result<Option<String>> {
        Ok(vector_paths(self.log(), vector)?.into_iter().next())
    }

    /// The relative path of a live file; none where it lies elsewhere.
    pub fn path_of(&self, file: &DataFile) -> Option<String> {
        relative(self.log(), &file.log_path).into_iter().next()
    }
}

/// Every object below a folder of the table, its path relative to the table's root.
pub(crate) fn objects(log: &Log, below: &Path) -> BoxStream<'static, Result<StoredObject>> {
    let (table, root) = (log.table.clone(), log.root.clone());
    let failed = move |error| Error::store(format!("listing the files of table {table}"), error);
    let named = move |meta: object_store::ObjectMeta| {
        let path = meta.location.prefix_match(&root)?.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
        Some(StoredObject { path, size: meta.size, modified: meta.last_modified })
    };
    log.store.list(Some(below)).map_err(failed).try_filter_map(move |meta| std::future::ready(Ok(named(meta)))).boxed()
}

/// Every reading of a path of the log as one relative to the table's root, the most likely first; none where it lies elsewhere.
pub(crate) fn relative(log: &Log, spelled: &str) -> Vec<String> {
    let root = format!("{}/", log.root);
    let absolute = match Url::parse(spelled) {
        Ok(url) if url.scheme() == log.url.scheme() && url.authority() == log.url.authority() => Some(url.path().to_owned()),
        Ok(url) if url.has_host() || url.path().starts_with('/') => return Vec::new(),
        _ => spelled.starts_with('/').then(|| spelled.to_owned()),
    };
    let readings = match &absolute {
        None => [decode_path(spelled), spelled.to_owned()],
        Some(path) => [decode_path(path), path.clone()],
    };
    let below = |path: &String| match absolute {
        None => Some(path.trim_start_matches("./").to_owned()),
        Some(_) => path.trim_start_matches('/').strip_prefix(&root).map(str::to_owned),
    };
    let mut paths: Vec<String> = readings.iter().filter_map(below).collect();
    paths.dedup();
    paths
}

/// The same of the file that a deletion vector is in.
pub(crate) fn vector_paths(log: &Log, vector: &DeletionVector) -> Result<Vec<String>> {
    use delta_kernel::actions::deletion_vector::DeletionVectorDescriptor;
    let failed = |error| kernel_error(&log.table, error);
    let storage = vector.storage_type.parse().map_err(failed)?;
    let path = vector.path_or_inline_dv.clone();
    let descriptor = DeletionVectorDescriptor::try_new(storage, path, vector.offset, vector.size_in_bytes, 0).map_err(failed)?;
    let place = descriptor.absolute_path(&log.url).map_err(failed)?;
    Ok(place.map(|url| relative(log, url.as_str())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tributary_specs::TableName;

    fn log() -> Log {
        let lake = crate::Lake::open(crate::Stores::memory(), crate::LakeOptions::default()).unwrap();
        let log = lake.log(&TableName::new("s", "t")).unwrap();
        Log { store: Arc::clone(&log.store), ..log }
    }

    #[test]
    fn a_path_of_the_log_is_found_below_the_root_however_it_is_spelled() {
        let log = log();
        assert_eq!(log.root.as_ref(), "lake/main/s/t");
        for (spelled, expected) in [
            ("a.parquet", vec!["a.parquet"]),
            ("./a.parquet", vec!["a.parquet"]),
            ("day=1%202/a.parquet", vec!["day=1 2/a.parquet", "day=1%202/a.parquet"]),
            ("day=1%252/a.parquet", vec!["day=1%2/a.parquet", "day=1%252/a.parquet"]),
            ("memory:///lake/main/s/t/x%20y.parquet", vec!["x y.parquet", "x%20y.parquet"]),
            ("/lake/main/s/t/a.parquet", vec!["a.parquet"]),
            ("memory:///lake/main/s/tt/a.parquet", vec![]),
            ("s3://bucket/lake/main/s/t/a.parquet", vec![]),
            ("file:///lake/main/s/t/a.parquet", vec![]),
            ("at=10:30/a.parquet", vec!["at=10:30/a.parquet"]),
        ] {
            assert_eq!(relative(&log, spelled), expected, "{spelled}");
        }
    }
}
