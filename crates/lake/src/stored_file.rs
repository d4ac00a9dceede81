//! A Parquet file in an object store, as its reader asks for it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::TryFutureExt;
use futures::future::{BoxFuture, FutureExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::kept::Kept;

/// Bytes fetched from the end of a file at first: most footers fit, so that one request opens a file.
const FOOTER_BYTES: u64 = 64 << 10;

/// A file of known or unknown size.
#[derive(Debug)]
pub(crate) struct StoredFile {
    pub store: Arc<dyn ObjectStore>,
    pub place: Path,
    pub size: Option<u64>,
    /// Where single ranges are kept: outside of footers, Bloom filters alone are asked for one by one.
    pub kept: Option<Arc<Kept>>,
    /// Bytes that were fetched.
    pub read: Arc<AtomicU64>,
}

impl StoredFile {
    async fn range(&self, range: Range<u64>) -> object_store::Result<Bytes> {
        if let Some(known) = self.kept.as_ref().and_then(|kept| kept.range(&self.place, &range)) {
            return Ok(known);
        }
        let bytes = self.store.get_range(&self.place, range.clone()).await?;
        self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if let Some(kept) = &self.kept {
            kept.keep_range(&self.place, &range, &bytes);
        }
        Ok(bytes)
    }
}

impl AsyncFileReader for StoredFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        self.range(range).map_err(ParquetError::from).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        self.read.fetch_add(ranges.iter().map(|range| range.end - range.start).sum(), Ordering::Relaxed);
        async move { self.store.get_ranges(&self.place, &ranges).await }.map_err(ParquetError::from).boxed()
    }

    fn get_metadata<'a>(&'a mut self, options: Option<&'a ArrowReaderOptions>) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        async move {
            let size = match self.size {
                Some(size) => size,
                None => self.store.head(&self.place).await?.size,
            };
            let mut reader = ParquetMetaDataReader::new().with_prefetch_hint(usize::try_from(FOOTER_BYTES.min(size)).ok());
            if let Some(options) = options {
                reader = reader
                    .with_metadata_options(Some(options.metadata_options().clone()))
                    .with_column_index_policy(options.column_index_policy())
                    .with_offset_index_policy(options.offset_index_policy());
            }
            let (store, place, read) = (Arc::clone(&self.store), self.place.clone(), Arc::clone(&self.read));
            let mut unkept = Self { store, place, size: Some(size), kept: None, read };
            Ok(Arc::new(reader.load_and_finish(&mut unkept, size).await?))
        }
        .boxed()
    }
}
