//! A bounded cache of the log's immutable objects, beneath the Delta library.
//!
//! The library fetches one checkpoint in eleven ranges and every commit twice or thrice. Commits and checkpoints never change
//! once they are there, so they are fetched whole, once, and ranges are served from memory. Everything else (data files,
//! `_last_checkpoint`, listings, writes) goes through untouched. An object deleted or written through this store leaves the
//! cache at once. A table made again by another process at the same path is noticed by [`LogCache::is_still_there`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// A store whose commits and checkpoints are read once.
#[derive(Debug, Clone)]
pub(crate) struct LogCache {
    inner: Arc<dyn ObjectStore>,
    objects: Arc<Mutex<Objects>>,
}

/// What is kept, the least recently used first in `order`.
#[derive(Debug, Default)]
struct Objects {
    capacity: usize,
    held: usize,
    clock: u64,
    order: BTreeMap<u64, Path>,
    by_path: HashMap<Path, Object>,
}

#[derive(Debug, Clone)]
struct Object {
    bytes: Bytes,
    meta: ObjectMeta,
    used: u64,
}

impl LogCache {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, capacity: usize) -> Self {
        Self { inner, objects: Arc::new(Mutex::new(Objects { capacity, ..Objects::default() })) }
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the object that was fetched is still what the store has at its path; no when it was not fetched, or is no longer kept.
    pub(crate) async fn is_still_there(&self, path: &Path) -> bool {
        let known = self.objects().get(path).map(|object| object.meta);
        let Some(known) = known else { return false };
        let is_it = |found: &ObjectMeta| (found.size, &found.e_tag, found.last_modified) == (known.size, &known.e_tag, known.last_modified);
        self.inner.head(path).await.is_ok_and(|found| is_it(&found))
    }

    /// Forgets everything below a path.
    pub(crate) fn forget(&self, below: &Path) {
        let mut objects = self.objects();
        let of_path: Vec<Path> = objects.by_path.keys().filter(|path| path.prefix_matches(below)).cloned().collect();
        of_path.iter().for_each(|path| objects.remove(path));
    }

    /// The object from memory, or fetched whole and kept; none when it is not for the cache or too big for it.
    async fn whole(&self, path: &Path) -> Result<Option<Object>> {
        if !is_immutable(path) {
            return Ok(None);
        }
        if let Some(object) = self.objects().get(path) {
            return Ok(Some(object));
        }
        let result = self.inner.get_opts(path, GetOptions::default()).await?;
        let meta = result.meta.clone();
        if !self.objects().takes(meta.size) {
            return Ok(None);
        }
        let object = Object { bytes: result.bytes().await?, meta, used: 0 };
        self.objects().insert(path.clone(), object.clone());
        Ok(Some(object))
    }
}

impl Objects {
    fn takes(&self, size: u64) -> bool {
        usize::try_from(size).is_ok_and(|size| size <= self.capacity / 4)
    }

    fn get(&mut self, path: &Path) -> Option<Object> {
        self.clock += 1;
        let object = self.by_path.get_mut(path)?;
        self.order.remove(&object.used);
        object.used = self.clock;
        self.order.insert(self.clock, path.clone());
        Some(object.clone())
    }

    fn insert(&mut self, path: Path, mut object: Object) {
        self.remove(&path);
        self.clock += 1;
        object.used = self.clock;
        self.held += object.bytes.len();
        self.order.insert(self.clock, path.clone());
        self.by_path.insert(path, object);
        while self.held > self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.held -= self.by_path.remove(&oldest).map_or(0, |object| object.bytes.len());
        }
    }

    fn remove(&mut self, path: &Path) {
        if let Some(object) = self.by_path.remove(path) {
            self.held -= object.bytes.len();
            self.order.remove(&object.used);
        }
    }
}

/// A commit, a checkpoint or a part of one: `_delta_log/<20 digits>.…json|parquet` and `_delta_log/_sidecars/…`.
fn is_immutable(path: &Path) -> bool {
    let path = path.as_ref();
    let Some((_, name)) = path.rsplit_once("_delta_log/") else { return false };
    let versioned = name.len() > 20 && name.as_bytes()[..20].iter().all(u8::is_ascii_digit);
    (versioned || name.starts_with("_sidecars/")) && (name.ends_with(".json") || name.ends_with(".parquet"))
}

/// A part of the object as the request asks for it.
fn serve(object: &Object, path: &Path, options: &GetOptions) -> Result<GetResult> {
    let size = object.bytes.len() as u64;
    let range = match &options.range {
        None => 0..size,
        Some(range) => {
            range.as_range(size).map_err(|error| Error::Generic { store: "LogCache", source: format!("{path}: {error}").into() })?
        }
    };
    let bytes = match options.head {
        true => Bytes::new(),
        false => object.bytes.slice(range.start as usize..range.end as usize),
    };
    let payload = GetResultPayload::Stream(futures::stream::once(async { Ok(bytes) }).boxed());
    Ok(GetResult { payload, meta: object.meta.clone(), range, attributes: Attributes::default() })
}

/// Whether the request asks for the object as it is, under no condition.
fn is_unconditional(options: &GetOptions) -> bool {
    options.if_match.is_none()
        && options.if_none_match.is_none()
        && options.if_modified_since.is_none()
        && options.if_unmodified_since.is_none()
        && options.version.is_none()
}

impl fmt::Display for LogCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogCache({})", self.inner)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for LogCache {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.objects().remove(location);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.objects().remove(location);
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if is_unconditional(&options)
            && let Some(object) = self.whole(location).await?
        {
            return serve(&object, location, &options);
        }
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(object) = self.whole(location).await? else {
            return self.inner.get_ranges(location, ranges).await;
        };
        let size = object.bytes.len() as u64;
        let part = |range: &Range<u64>| {
            let start = range.start.min(size);
            object.bytes.slice(start as usize..range.end.clamp(start, size) as usize)
        };
        Ok(ranges.iter().map(part).collect())
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let forgotten = locations.inspect(move |location| {
            if let Ok(location) = location {
                this.objects().remove(location);
            }
        });
        self.inner.delete_stream(forgotten.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects().remove(to);
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.objects().remove(from);
        self.objects().remove(to);
        self.inner.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;
    use tributary_testkit::FaultyStore;

    fn commit(version: u64) -> Path {
        Path::from(format!("lake/main/s/t/_delta_log/{version:020}.json"))
    }

    #[test]
    fn only_commits_and_checkpoints_are_immutable() {
        for immutable in [
            "00000000000000000007.json",
            "00000000000000000007.checkpoint.parquet",
            "_sidecars/x.parquet",
            "00000000000000000007.checkpoint.0000000001.0000000002.parquet",
        ] {
            assert!(is_immutable(&Path::from(format!("a/_delta_log/{immutable}"))), "{immutable}");
        }
        for other in ["a/_delta_log/_last_checkpoint", "a/part-1.parquet", "a/_delta_log/00000000000000000007.crc", "a/_delta_log/x.json"] {
            assert!(!is_immutable(&Path::from(other)), "{other}");
        }
    }

    #[tokio::test]
    async fn an_object_is_fetched_once_and_its_ranges_come_from_memory() {
        let faulty = FaultyStore::new(Arc::new(InMemory::new()));
        let cache = LogCache::new(Arc::new(faulty.clone()), 1000);
        cache.put(&commit(1), "0123456789".into()).await.unwrap();
        let before = faulty.counts().reads;
        assert_eq!(cache.get_range(&commit(1), 2..5).await.unwrap(), "234");
        assert_eq!(cache.get_ranges(&commit(1), &[0..1, 9..12]).await.unwrap(), ["0", "9"]);
        assert_eq!(cache.head(&commit(1)).await.unwrap().size, 10);
        assert_eq!(cache.get(&commit(1)).await.unwrap().bytes().await.unwrap(), "0123456789");
        assert_eq!(faulty.counts().reads - before, 1);
    }

    #[tokio::test]
    async fn what_is_not_there_is_asked_for_again() {
        let cache = LogCache::new(Arc::new(InMemory::new()), 1000);
        assert!(matches!(cache.get(&commit(1)).await, Err(Error::NotFound { .. })));
        cache.put(&commit(1), "x".into()).await.unwrap();
        assert_eq!(cache.get(&commit(1)).await.unwrap().bytes().await.unwrap(), "x");
        cache.delete(&commit(1)).await.unwrap();
        assert!(matches!(cache.get(&commit(1)).await, Err(Error::NotFound { .. })));
    }

    #[tokio::test]
    async fn memory_stays_bounded_and_big_objects_pass_through() {
        let faulty = FaultyStore::new(Arc::new(InMemory::new()));
        let cache = LogCache::new(Arc::new(faulty.clone()), 100);
        for version in 0..20 {
            cache.put(&commit(version), vec![b'x'; 20].into()).await.unwrap();
            cache.get(&commit(version)).await.unwrap();
        }
        let (held, by_path, order) = {
            let objects = cache.objects();
            (objects.held, objects.by_path.len(), objects.order.len())
        };
        assert!(held <= 100 && by_path == order, "{held} bytes, {by_path} objects, {order} in order");
        let before = faulty.counts().reads;
        cache.get(&commit(19)).await.unwrap();
        assert_eq!(faulty.counts().reads, before);
        cache.put(&commit(99), vec![b'y'; 200].into()).await.unwrap();
        assert_eq!(cache.get_range(&commit(99), 0..3).await.unwrap(), "yyy");
        assert!(cache.objects().held <= 100);
    }
}
