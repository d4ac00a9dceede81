//! Deletion vectors of silver's tables: written where the table has them, in lakes of older releases too, and files rewritten where not.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::object_store::{ObjectStore, ObjectStoreExt};
use tributary_lake::{DELETION_VECTORS_ON, Table};
use tributary_specs::{MergePolicy, SilverSpec, TableName};
use tributary_testkit::{Controls, Frame};

use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, replayed, sorted, source, spec, vectors};

/// Events of keys, by a sequence: an insert or update unless the value is `-`, which is a delete.
fn events(keys: impl IntoIterator<Item = i64>, value: &str, at: i64) -> Frame {
    let rows: String = keys.into_iter().map(|id| format!("\n {id} | {value} | {at}")).collect();
    Frame::parse(&format!("id: long | v: string | at: long{rows}"))
}

fn dataset(policy: MergePolicy) -> SilverSpec {
    let deletes = tributary_specs::Deletes { apply_as_delete_when: Some("v = '-'".to_owned()), ..Default::default() };
    SilverSpec { sequence_by: vec!["at".to_owned()], deletes, ..spec("marked", &["id"], policy) }
}

async fn run(world: &World, dataset: &SilverSpec, events: Frame) -> Result<Table> {
    world.append(&source("marked"), &events).await?;
    world.run(dataset).await?;
    feed_replays_to_the_table(world, &dataset.table).await?;
    world.table(&dataset.table).await
}

/// Rows marked as deleted and rows in all, a pair a file.
async fn marked(table: &Table) -> Result<Vec<(u64, u64)>> {
    let files = table.files().await?;
    let of =
        |file: &tributary_lake::DataFile| (file.deletion_vector.as_ref().map_or(0, |vector| vector.rows), file.stats.rows.unwrap_or(0));
    let mut marked: Vec<(u64, u64)> = files.iter().map(of).collect();
    marked.sort_unstable();
    Ok(marked)
}

#[test]
fn rows_that_go_are_marked_until_more_than_half_of_their_file_is_gone() {
    block_on(async {
        let (world, dataset) = (World::new(), dataset(MergePolicy::ScdType1));
        let table = run(&world, &dataset, events(0..100, "a", 1)).await?;
        ensure!(table.marks_rows() && marked(&table).await? == [(0, 100)]);
        let table = run(&world, &dataset, events(10..30, "b", 2)).await?;
        ensure!(marked(&table).await? == [(0, 20), (20, 100)], "{:?}", marked(&table).await?);
        let table = run(&world, &dataset, events((30..40).chain(10..15), "c", 3)).await?;
        ensure!(marked(&table).await? == [(0, 15), (5, 20), (30, 100)], "{:?}", marked(&table).await?);
        let table = run(&world, &dataset, events(40..70, "d", 4)).await?;
        ensure!(marked(&table).await? == [(0, 15), (0, 30), (0, 40), (5, 20)], "40 of 100 rows are left: {:?}", marked(&table).await?);
        let table = run(&world, &dataset, events(40..70, "-", 5)).await?;
        ensure!(marked(&table).await? == [(0, 15), (0, 40), (5, 20)], "a file of which nothing is left: {:?}", marked(&table).await?);
        ensure!(world.count(&dataset.table).await? == Some(70));
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_declaration_that_forbids_vectors_rewrites_files() {
    block_on(async {
        for policy in [MergePolicy::ScdType1, SCD2] {
            let (world, dataset) = (World::new(), SilverSpec { properties: vectors(false), ..dataset(policy) });
            run(&world, &dataset, events(0..50, "a", 1)).await?;
            let table = run(&world, &dataset, events((10..13).chain(70..72), "-", 2)).await?;
            ensure!(!table.marks_rows() && !table.features().contains(&"deletionVectors".to_owned()));
            let state = world.table(&TableName::new("_state", "marked")).await?;
            ensure!(!state.marks_rows() && !state.features().contains(&"deletionVectors".to_owned()));
            ensure!(marked(&table).await?.iter().all(|(gone, _)| *gone == 0));
        }
        Ok(())
    })
    .unwrap();
}

/// What is declared counts also where the table itself would allow it.
#[test]
fn a_declaration_that_comes_to_forbid_vectors_is_obeyed() {
    block_on(async {
        let world = World::new();
        run(&world, &dataset(MergePolicy::ScdType1), events(0..50, "a", 1)).await?;
        let table = run(&world, &dataset(MergePolicy::ScdType1), events(0..5, "b", 2)).await?;
        ensure!(marked(&table).await? == [(0, 5), (5, 50)]);
        let forbidding = SilverSpec { properties: vectors(false), ..dataset(MergePolicy::ScdType1) };
        let table = run(&world, &forbidding, events(10..13, "c", 3)).await?;
        ensure!(marked(&table).await? == [(0, 3), (0, 5), (0, 42)], "{:?}", marked(&table).await?);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_declaration_that_no_longer_forbids_vectors_leaves_the_table_without_and_says_so() {
    block_on(async {
        let (world, without) = (World::new(), SilverSpec { properties: vectors(false), ..dataset(MergePolicy::ScdType1) });
        run(&world, &without, events(0..50, "a", 1)).await?;
        let with = dataset(MergePolicy::ScdType1);
        world.append(&source("marked"), &events(0..5, "b", 2)).await?;
        let report = world.run(&with).await?;
        let said = "the table is obeyed, not the declaration: property `delta.enableDeletionVectors`: declared true, found false; \
                    setup changes the table";
        ensure!(report.notes == [said], "{:?}", report.notes);
        let table = world.table(&with.table).await?;
        ensure!(!table.marks_rows() && marked(&table).await? == [(0, 5), (0, 45)], "{:?}", marked(&table).await?);
        let declared = tributary_silver_merge::table_spec(&world.lake, &with, &Default::default()).await?;
        world.lake.bring_to_declaration(table, &declared.expect("the source has rows")).await?;
        world.append(&source("marked"), &events(5..8, "c", 3)).await?;
        let report = world.run(&with).await?;
        ensure!(report.notes.is_empty(), "{:?}", report.notes);
        let table = world.table(&with.table).await?;
        ensure!(table.marks_rows() && marked(&table).await? == [(0, 3), (0, 5), (3, 45)], "{:?}", marked(&table).await?);
        feed_replays_to_the_table(&world, &with.table).await
    })
    .unwrap();
}

#[test]
fn a_table_that_was_told_to_have_no_change_feed_has_none_until_setup() {
    block_on(async {
        let (world, with) = (World::new(), dataset(MergePolicy::ScdType1));
        let feed = ("delta.enableChangeDataFeed".to_owned(), "false".to_owned());
        let without = SilverSpec { properties: [feed].into(), ..dataset(MergePolicy::ScdType1) };
        for (dataset, at, has_feed) in [(&without, 1, false), (&without, 2, false), (&with, 3, false)] {
            world.append(&source("marked"), &events(0..20, &at.to_string(), at)).await?;
            let report = world.run(dataset).await?;
            let table = world.table(&with.table).await?;
            ensure!(table.has_change_feed() == has_feed && report.notes.len() == usize::from(at == 3), "{at}: {:?}", report.notes);
        }
        let table = world.table(&with.table).await?;
        ensure!(table.changes(1, 1).await.is_err());
        let declared = tributary_silver_merge::table_spec(&world.lake, &with, &Default::default()).await?;
        let turned_on = world.lake.bring_to_declaration(table, &declared.expect("the source has rows")).await?.version();
        world.append(&source("marked"), &events(0..20, "4", 4)).await?;
        world.run(&with).await?;
        let table = world.table(&with.table).await?;
        let changes: Vec<tributary_lake::arrow::array::RecordBatch> =
            table.changes(turned_on + 1, table.version()).await?.try_collect().await?;
        ensure!(changes.iter().map(|batch| batch.num_rows()).sum::<usize>() == 40);
        Ok(())
    })
    .unwrap();
}

/// Rewrites the first commits of tables as another release, or another writer, would have made them.
async fn edit_first_commits(
    store: &Arc<dyn ObjectStore>,
    tables: &[&str],
    edit: impl Fn(&mut serde_json::Map<String, serde_json::Value>),
) -> Result<()> {
    for table in tables {
        let first = format!("lake/main/{table}/_delta_log/00000000000000000000.json").into();
        let text = String::from_utf8(store.get(&first).await?.bytes().await?.to_vec())?;
        let mut lines = String::new();
        for line in text.lines() {
            let mut line: serde_json::Value = serde_json::from_str(line)?;
            if let Some(configuration) = line.pointer_mut("/metaData/configuration").and_then(serde_json::Value::as_object_mut) {
                edit(configuration);
            }
            lines.push_str(&format!("{line}\n"));
        }
        store.put(&first, lines.into()).await?;
    }
    Ok(())
}

/// A lake of two batches as a release before deletion vectors made it.
async fn old_lake(policy: &MergePolicy) -> Result<Arc<dyn ObjectStore>> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let world = World::on(Arc::clone(&store), Controls::none());
    let old = SilverSpec { properties: vectors(false), ..dataset(policy.clone()) };
    run(&world, &old, events(0..60, "a", 1)).await?;
    run(&world, &old, events((0..10).chain(100..110), "-", 2)).await?;
    edit_first_commits(&store, &["silver/marked", "_state/marked"], |configuration| {
        configuration.remove(DELETION_VECTORS_ON);
    })
    .await?;
    Ok(store)
}

#[test]
fn a_lake_of_an_older_release_is_upgraded_by_one_commit_a_table_and_goes_on() {
    block_on(async {
        for policy in [MergePolicy::ScdType1, SCD2] {
            let store = old_lake(&policy).await?;
            let (world, dataset) = (World::on(Arc::clone(&store), Controls::none()), dataset(policy.clone()));
            let before = world.table(&dataset.table).await?;
            let state_before = world.table(&TableName::new("_state", "marked")).await?;
            ensure!(!before.marks_rows() && !state_before.marks_rows());
            // A run that finds nothing changes nothing.
            world.run(&dataset).await?;
            ensure!(world.version(&dataset.table).await? == before.version());
            let table = run(&world, &dataset, events((20..25).chain(100..103), "b", 3)).await?;
            ensure!(table.marks_rows() && table.features().contains(&"deletionVectors".to_owned()), "{:?}", table.features());
            ensure!(table.version() == before.version() + 2, "one commit of metadata and protocol, one of rows");
            let upgrade = &table.history(Some(2)).await?[1];
            ensure!((upgrade.files_added, upgrade.files_removed, upgrade.operation.as_deref()) == (0, 0, Some("SET TBLPROPERTIES")));
            ensure!(marked(&table).await?.iter().any(|(gone, _)| *gone > 0));
            // Deletes of unknown keys are remembered.
            run(&world, &dataset, events(200..203, "-", 3)).await?;
            let state = world.table(&TableName::new("_state", "marked")).await?;
            ensure!(state.marks_rows());
            let table = run(&world, &dataset, events((0..3).chain(26..29), "c", 4)).await?;
            ensure!(table.version() == before.version() + 4, "upgraded once");
            // What a lake made today comes to.
            let today = World::new();
            for (keys, value, at) in [(0..60, "a", 1), (0..10, "-", 2)] {
                let keys: Vec<i64> = if at == 2 { keys.chain(100..110).collect() } else { keys.collect() };
                run(&today, &dataset, events(keys, value, at)).await?;
            }
            run(&today, &dataset, events((20..25).chain(100..103), "b", 3)).await?;
            run(&today, &dataset, events(200..203, "-", 3)).await?;
            run(&today, &dataset, events((0..3).chain(26..29), "c", 4)).await?;
            ensure!(sorted(&world.all(&dataset.table).await?) == sorted(&today.all(&dataset.table).await?));
            ensure!(replayed(&world, &dataset.table).await?.len() == world.count(&dataset.table).await?.unwrap_or(0));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_table_without_a_change_feed_is_merged_into_without_one() {
    block_on(async {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let dataset = dataset(MergePolicy::ScdType1);
        let world = World::on(Arc::clone(&store), Controls::none());
        run(&world, &dataset, events(0..20, "a", 1)).await?;
        // Somebody else's table: it is not brought up to date.
        edit_first_commits(&store, &["silver/marked"], |configuration| {
            configuration.remove("tributary.format");
            configuration.insert("delta.enableChangeDataFeed".to_owned(), "false".into());
        })
        .await?;
        let world = World::on(Arc::clone(&store), Controls::none());
        world.append(&source("marked"), &events((3..6).chain(50..52), "b", 2)).await?;
        world.run(&dataset).await?;
        let table = world.table(&dataset.table).await?;
        ensure!(marked(&table).await? == [(0, 5), (3, 20)], "{:?}", marked(&table).await?);
        ensure!(world.count(&dataset.table).await? == Some(22));
        let change_files: Vec<_> = store.list(Some(&"lake/main/silver/marked/_change_data".into())).try_collect().await?;
        ensure!(change_files.is_empty(), "{change_files:?}");
        Ok(())
    })
    .unwrap();
}
