//! One process batch after batch: what it knows it does not read again, and what others do in between it sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::object_store::{ObjectStore, path::Path};
use tributary_specs::{Deletes, MergePolicy, SilverSpec};
use tributary_testkit::{Controls, FaultyStore, Frame};

use crate::races::compact;
use crate::world::{World, block_on, feed_replays_to_the_table, sorted, source, spec};

fn dataset() -> SilverSpec {
    let deletes = Deletes { apply_as_delete_when: Some("v = '-'".to_owned()), ..Deletes::default() };
    SilverSpec { sequence_by: vec!["at".to_owned()], deletes, ..spec("going", &["id"], MergePolicy::ScdType1) }
}

/// Rows of keys, and a delete of a key that nobody knows, so that there is something to remember, too.
fn batch(keys: std::ops::Range<i64>, at: i64) -> Frame {
    let rows: String = keys.map(|id| format!("\n {id} | v{at} | {at}")).collect();
    Frame::parse(&format!("id: long | v: string | at: long{rows}\n {} | - | {at}", 900 + at))
}

const BATCHES: [(i64, i64); 6] = [(0, 50), (100, 150), (200, 250), (110, 113), (120, 123), (130, 133)];

fn batch_number(number: usize) -> Frame {
    batch(BATCHES[number].0..BATCHES[number].1, number as i64 + 1)
}

async fn there(store: &FaultyStore) -> Result<BTreeSet<Path>> {
    Ok(store.inner().list(None).map_ok(|meta| meta.location).try_collect().await?)
}

/// What of the objects that were there is read by `world` while it takes in a batch that somebody else has appended.
async fn reads_of_known(store: &FaultyStore, world: &World, number: usize) -> Result<Vec<Path>> {
    let known = there(store).await?;
    World::on(store.inner(), Controls::none()).append(&source("going"), &batch_number(number)).await?;
    let before = store.calls().len();
    world.run(&dataset()).await?;
    let reads = store.calls().split_off(before).into_iter().filter(|call| !call.verb.mutates() && known.contains(&call.path));
    Ok(reads.map(|call| call.path).collect())
}

/// The newest two of the commit files there, of each table: the last one that was opened, and the one that was made of it.
async fn last_commits(store: &FaultyStore) -> Result<BTreeSet<Path>> {
    let mut of_tables: BTreeMap<Option<String>, Vec<Path>> = BTreeMap::new();
    for path in there(store).await?.into_iter().filter(|path| path.as_ref().ends_with(".json")) {
        let table = path.as_ref().rsplit_once('/').map(|(folder, _)| folder.to_owned());
        of_tables.entry(table).or_default().push(path);
    }
    Ok(of_tables.into_values().flat_map(|commits| commits.into_iter().rev().take(2)).collect())
}

#[test]
fn a_later_batch_reads_new_log_entries_and_the_files_it_changes() {
    block_on(async {
        let store = FaultyStore::new(Arc::new(InMemory::new()));
        let world = World::on(Arc::new(store.clone()), Controls::none());
        for number in 0..4 {
            reads_of_known(&store, &world, number).await?;
        }
        ensure!(world.lake.kept_bytes() > 0);
        let last = last_commits(&store).await?;
        let reads = reads_of_known(&store, &world, 4).await?;
        let of_table = |folder: &str| -> Vec<&Path> { reads.iter().filter(|path| path.as_ref().contains(folder)).collect() };
        // The keys and the rows of the one file that has them: neither its footer nor its deletion vector.
        let data = of_table("silver/going/part-");
        ensure!(data.iter().collect::<BTreeSet<_>>().len() == 1 && data.len() <= 2, "{data:?}");
        // What the batch before wrote has not been looked into yet.
        ensure!(of_table("_state/going/__scope").len() <= 1, "{reads:?}");
        ensure!(of_table(".bin").is_empty() && of_table("checkpoint").is_empty(), "{reads:?}");
        let log: BTreeSet<Path> = reads.iter().filter(|path| path.as_ref().contains("_delta_log")).cloned().collect();
        ensure!(log.is_subset(&last), "nothing older is read of a log: {log:?}");
        // A process that knows nothing reads more.
        let fresh = World::on(Arc::new(store.clone()), Controls::none());
        let reads_of_fresh = reads_of_known(&store, &fresh, 5).await?;
        ensure!(reads_of_fresh.len() > reads.len() + 5, "{} and {}", reads_of_fresh.len(), reads.len());
        feed_replays_to_the_table(&world, &dataset().table).await
    })
    .unwrap();
}

#[test]
fn what_another_writer_does_between_two_batches_is_seen() {
    block_on(async {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let (world, alone) = (World::on(Arc::clone(&store), Controls::none()), World::new());
        for number in 0..BATCHES.len() {
            for world in [&world, &alone] {
                world.append(&source("going"), &batch_number(number)).await?;
                world.run(&dataset()).await?;
            }
            if number > 2 {
                compact(Arc::clone(&store), &dataset().table).await?;
                ensure!(world.table(&dataset().table).await?.files().await?.len() == 1, "the compaction is not seen");
            }
        }
        ensure!(sorted(&world.all(&dataset().table).await?) == sorted(&alone.all(&dataset().table).await?));
        feed_replays_to_the_table(&world, &dataset().table).await
    })
    .unwrap();
}
