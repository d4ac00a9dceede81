//! Which rows a deletion vector marks as deleted.

use std::sync::Arc;

use bytes::Bytes;
use delta_kernel::actions::deletion_vector::{DeletionVectorDescriptor, DeletionVectorStorageType};
use delta_kernel::{DeltaResult, FileMeta, FileSlice, StorageHandler};
use object_store::path::Path;
use roaring::RoaringTreemap;
use url::Url;

use crate::log::{Log, kernel_error};
use crate::{DeletionVector, Error, Result};

/// Positions in the file, from zero.
///
/// # Errors
/// [`crate::Error::Log`] when the vector is none, or marks another number of rows than the log says; store errors.
pub(crate) async fn rows(log: &Log, vector: &DeletionVector) -> Result<RoaringTreemap> {
    let is_in_file = vector.storage_type != "i";
    if is_in_file && let Some(kept) = log.kept.vector(&vector.path_or_inline_dv, vector.offset) {
        return Ok(kept.as_ref().clone());
    }
    let DeletionVector { storage_type, path_or_inline_dv, offset, size_in_bytes, rows } = vector.clone();
    let failed = |error| kernel_error(&log.table, error);
    let storage: DeletionVectorStorageType = storage_type.parse().map_err(failed)?;
    let cardinality = i64::try_from(rows).unwrap_or(i64::MAX);
    let described = |offset| {
        let path = path_or_inline_dv.clone();
        DeletionVectorDescriptor::try_new(storage, path, offset, size_in_bytes, cardinality).map_err(failed)
    };
    let descriptor = described(offset)?;
    let deleted = match descriptor.absolute_path(&log.url).map_err(failed)? {
        None => descriptor.read(Arc::new(Alone(Bytes::new())), &log.url),
        Some(file) if is_here(log, &file) => {
            let alone = alone(log, &file, offset, size_in_bytes).await?;
            described(Some(1))?.read(Arc::new(Alone(alone)), &log.url)
        }
        Some(_) => {
            let (engine, url) = (log.delta.engine(None), log.url.clone());
            let read = tokio::task::spawn_blocking(move || descriptor.read(engine.storage_handler(), &url)).await;
            read.map_err(|error| log.unreadable(error.to_string()))?
        }
    };
    let deleted = deleted.map_err(failed)?;
    if deleted.len() != rows {
        return Err(log.unreadable(format!("a deletion vector marks {} rows, the log says {rows}", deleted.len())));
    }
    if is_in_file {
        log.kept.keep_vector(&vector.path_or_inline_dv, vector.offset, &deleted);
    }
    Ok(deleted)
}

fn is_here(log: &Log, file: &Url) -> bool {
    file.scheme() == log.url.scheme() && file.authority() == log.url.authority()
}

/// The file a vector is in, without the others in it, of which there is one for each file that a commit marked rows of.
///
/// ```text
/// version (1 byte) │ others │ size (4) │ vector (size) │ checksum (4) │ others
/// ```
async fn alone(log: &Log, file: &Url, offset: Option<i32>, size: i32) -> Result<Bytes> {
    let unfit = || log.unreadable(format!("deletion vector in {file}: offset {offset:?} and size {size} name no part of a file"));
    let place = Path::from_url_path(file.path()).map_err(|error| log.unreadable(format!("deletion vector in {file}: {error}")))?;
    let start = u64::try_from(offset.unwrap_or(1)).map_err(|_| unfit())?;
    let end = start + 8 + u64::try_from(size).map_err(|_| unfit())?;
    let parts = log.store.get_ranges(&place, &[0..1, start..end]).await;
    let parts = parts.map_err(|error| Error::store(format!("reading a deletion vector of table {}", log.table), error))?;
    Ok(parts.concat().into())
}

/// The bytes of one file, for whoever asks.
struct Alone(Bytes);

impl StorageHandler for Alone {
    fn read_files(&self, files: Vec<FileSlice>) -> DeltaResult<Box<dyn Iterator<Item = DeltaResult<Bytes>>>> {
        let bytes = self.0.clone();
        Ok(Box::new(files.into_iter().map(move |_| Ok(bytes.clone()))))
    }

    fn list_from(&self, _: &Url) -> DeltaResult<Box<dyn Iterator<Item = DeltaResult<FileMeta>>>> {
        Err(delta_kernel::Error::unsupported("listing one file"))
    }

    fn copy_atomic(&self, _: &Url, _: &Url) -> DeltaResult<()> {
        Err(delta_kernel::Error::unsupported("copying what is only read"))
    }

    fn put(&self, _: &Url, _: Bytes, _: bool) -> DeltaResult<()> {
        Err(delta_kernel::Error::unsupported("writing what is only read"))
    }

    fn head(&self, _: &Url) -> DeltaResult<FileMeta> {
        Err(delta_kernel::Error::unsupported("looking up one file"))
    }

    fn delete(&self, _: &Url) -> DeltaResult<()> {
        Err(delta_kernel::Error::unsupported("removing what is only read"))
    }
}
