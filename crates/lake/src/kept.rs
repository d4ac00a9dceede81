//! What a lake keeps of its tables from one batch to the next, so that a run that goes on reads what is new, and nothing twice.
//!
//! | kept | known by | why it stays true |
//! |---|---|---|
//! | the latest snapshot of a table | its name | it is asked for what came since, and for its last commit file being the one it was made of |
//! | footers of data files, with page indexes | the file | data files never change |
//! | Bloom filters | the file and the place in it | the same |
//! | deletion vectors in files | the file and the place in it | the same |
//!
//! All of it together obeys one limit and is counted in the lake's memory. The least recently used goes first; where others want the
//! memory, all of it goes: nothing is lost but the time to read it again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use object_store::path::Path;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use roaring::RoaringTreemap;
use tributary_specs::TableName;

use crate::snapshot::Snapshot;

/// See the module.
#[derive(Debug)]
pub(crate) struct Kept {
    things: Mutex<Things>,
}

#[derive(Debug)]
struct Things {
    capacity: usize,
    /// Counts uses.
    clock: u64,
    /// By last use.
    order: BTreeMap<u64, Key>,
    by_key: HashMap<Key, Entry>,
    memory: MemoryReservation,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Snapshot(TableName),
    Footer(Path),
    Range(Path, u64, u64),
    Vector(String, Option<i32>),
}

#[derive(Debug, Clone)]
enum Thing {
    Snapshot(Arc<Snapshot>),
    Footer(ArrowReaderMetadata),
    Range(Bytes),
    Vector(Arc<RoaringTreemap>),
}

#[derive(Debug)]
struct Entry {
    thing: Thing,
    bytes: usize,
    used: u64,
}

impl Kept {
    /// Keeps up to `capacity` bytes, of the memory of `pool`.
    pub(crate) fn new(capacity: usize, pool: &Arc<dyn MemoryPool>) -> Self {
        let memory = MemoryConsumer::new("what a lake keeps between batches").register(pool);
        let things = Things { capacity, clock: 0, order: BTreeMap::new(), by_key: HashMap::new(), memory };
        Self { things: Mutex::new(things) }
    }

    fn things(&self) -> MutexGuard<'_, Things> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn snapshot(&self, table: &TableName) -> Option<Arc<Snapshot>> {
        match self.things().get(&Key::Snapshot(table.clone()))? {
            Thing::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        }
    }

    /// Keeps a snapshot unless a later one of the table is kept, or one of which the files are known.
    pub(crate) fn keep_snapshot(&self, table: &TableName, snapshot: &Arc<Snapshot>) {
        let mut things = self.things();
        let key = Key::Snapshot(table.clone());
        let worth = |snapshot: &Snapshot| (snapshot.state.version, snapshot.knows_files());
        let is_better = |entry: &Entry| matches!(&entry.thing, Thing::Snapshot(kept) if worth(kept) > worth(snapshot));
        if !things.by_key.get(&key).is_some_and(is_better) {
            things.keep(key, Thing::Snapshot(Arc::clone(snapshot)), snapshot.bytes());
        }
    }

    pub(crate) fn forget_snapshot(&self, table: &TableName) {
        self.things().remove(&Key::Snapshot(table.clone()));
    }

    pub(crate) fn footer(&self, file: &Path) -> Option<ArrowReaderMetadata> {
        match self.things().get(&Key::Footer(file.clone()))? {
            Thing::Footer(footer) => Some(footer),
            _ => None,
        }
    }

    pub(crate) fn keep_footer(&self, file: &Path, footer: &ArrowReaderMetadata) {
        let bytes = footer.metadata().memory_size();
        self.things().keep(Key::Footer(file.clone()), Thing::Footer(footer.clone()), bytes);
    }

    pub(crate) fn range(&self, file: &Path, range: &std::ops::Range<u64>) -> Option<Bytes> {
        match self.things().get(&Key::Range(file.clone(), range.start, range.end))? {
            Thing::Range(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn keep_range(&self, file: &Path, range: &std::ops::Range<u64>, bytes: &Bytes) {
        self.things().keep(Key::Range(file.clone(), range.start, range.end), Thing::Range(bytes.clone()), bytes.len());
    }

    pub(crate) fn vector(&self, file: &str, offset: Option<i32>) -> Option<Arc<RoaringTreemap>> {
        match self.things().get(&Key::Vector(file.to_owned(), offset))? {
            Thing::Vector(rows) => Some(rows),
            _ => None,
        }
    }

    pub(crate) fn keep_vector(&self, file: &str, offset: Option<i32>, rows: &RoaringTreemap) {
        let bytes = rows.serialized_size();
        self.things().keep(Key::Vector(file.to_owned(), offset), Thing::Vector(Arc::new(rows.clone())), bytes);
    }

    /// Bytes kept.
    pub(crate) fn bytes(&self) -> usize {
        self.things().memory.size()
    }
}

impl Things {
    fn get(&mut self, key: &Key) -> Option<Thing> {
        self.clock += 1;
        let entry = self.by_key.get_mut(key)?;
        self.order.remove(&entry.used);
        entry.used = self.clock;
        self.order.insert(self.clock, key.clone());
        Some(entry.thing.clone())
    }

    fn keep(&mut self, key: Key, thing: Thing, bytes: usize) {
        /// Of the entry itself.
        const ENTRY: usize = 256;
        let bytes = bytes + ENTRY;
        self.remove(&key);
        if bytes > self.capacity / 4 {
            return;
        }
        while self.memory.size() + bytes > self.capacity
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
        if self.memory.try_grow(bytes).is_err() {
            self.by_key.clear();
            self.order.clear();
            self.memory.free();
            return;
        }
        self.clock += 1;
        self.order.insert(self.clock, key.clone());
        self.by_key.insert(key, Entry { thing, bytes, used: self.clock });
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.by_key.remove(key) {
            self.order.remove(&entry.used);
            self.memory.shrink(entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    fn kept(capacity: usize, pool: usize) -> (Kept, Arc<dyn MemoryPool>) {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(pool));
        (Kept::new(capacity, &pool), pool)
    }

    fn keep(kept: &Kept, at: u64) {
        kept.keep_range(&Path::from("f"), &(at..at + 1), &Bytes::from(vec![0; 744]));
    }

    fn has(kept: &Kept) -> Vec<u64> {
        let things = kept.things();
        let mut at: Vec<u64> =
            things.by_key.keys().filter_map(|key| if let Key::Range(_, at, _) = key { Some(*at) } else { None }).collect();
        at.sort_unstable();
        at
    }

    #[test]
    fn the_least_recently_used_goes_first_and_all_of_it_is_counted() {
        let (kept, pool) = kept(5_000, 100_000);
        (0..5).for_each(|at| keep(&kept, at));
        assert!(kept.range(&Path::from("f"), &(0..1)).is_some());
        keep(&kept, 5);
        assert_eq!((has(&kept), kept.bytes(), pool.reserved()), (vec![0, 2, 3, 4, 5], 5_000, 5_000));
        kept.keep_range(&Path::from("big"), &(0..1), &Bytes::from(vec![0; 1_300]));
        assert_eq!(has(&kept).len(), 5, "what would take the place of too much else is not kept");
        drop(kept);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn everything_goes_where_others_want_the_memory() {
        let (kept, pool) = kept(10_000, 6_000);
        (0..3).for_each(|at| keep(&kept, at));
        let other = MemoryConsumer::new("a query").register(&pool);
        other.try_grow(2_500).unwrap();
        keep(&kept, 3);
        assert_eq!((has(&kept), pool.reserved()), (vec![], 2_500));
        other.free();
        keep(&kept, 4);
        assert_eq!(has(&kept), [4]);
    }
}
