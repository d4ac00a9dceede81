//! Which rows a deletion vector marks as deleted.

use delta_kernel::actions::deletion_vector::{DeletionVectorDescriptor, DeletionVectorStorageType};
use roaring::RoaringTreemap;

use crate::log::{Log, kernel_error};
use crate::{DeletionVector, Result};

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
    let descriptor = DeletionVectorDescriptor::try_new(storage, path_or_inline_dv, offset, size_in_bytes, cardinality).map_err(failed)?;
    let (engine, url) = (log.delta.engine(None), log.url.clone());
    let read = tokio::task::spawn_blocking(move || descriptor.read(engine.storage_handler(), &url)).await;
    let deleted = read.map_err(|error| log.unreadable(error.to_string()))?.map_err(failed)?;
    if deleted.len() != rows {
        return Err(log.unreadable(format!("a deletion vector marks {} rows, the log says {rows}", deleted.len())));
    }
    if is_in_file {
        log.kept.keep_vector(&vector.path_or_inline_dv, vector.offset, &deleted);
    }
    Ok(deleted)
}
