//! Rows marked as deleted by our own commits: deletion vectors as the protocol has them, read back by us and by the Delta library.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, Int64Array, StringArray};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use serde_json::Value;
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::{
    Commit, CommitOutcome, Conflict, DELETION_VECTORS_ON, DataFile, Error, KeyRange, KeyRanges, NewFile, Operation, Progress, ReadOptions,
    Reads, RowMarks, Table,
};
use tributary_specs::{Column, DataType, TableName, TableSpec};
use tributary_testkit::{Controls, FaultyStore, KillPoints, Rule, ScriptedFault, crash_at};

use crate::shop::{Shop, append, batch, collect, committed, rows, sorted_lines, written};
use crate::toy::{lake_over, lake_with_ids};

fn marked_spec(name: &str) -> TableSpec {
    TableSpec {
        row_changes: true,
        properties: BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "true".to_owned())]),
        ..TableSpec::new(TableName::new("silver", name), vec![Column::new("id", DataType::Long), Column::new("note", DataType::String)])
    }
}

fn ids(ids: impl IntoIterator<Item = i64>) -> arrow::array::RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let notes: StringArray = ids.iter().map(|id| Some(format!("note {id}"))).collect();
    batch(vec![("id", Arc::new(Int64Array::from(ids)) as ArrayRef), ("note", Arc::new(notes))])
}

async fn one_file(shop: &Shop, rows: i64) -> Result<Table> {
    let table = shop.lake.create(&marked_spec("marked")).await?;
    append(&table, &[ids(0..rows)]).await
}

fn marks(file: &DataFile, rows: &[u64]) -> RowMarks {
    RowMarks { file: file.clone(), rows: rows.to_vec() }
}

fn merge(marks: Vec<RowMarks>, adds: Vec<NewFile>) -> Commit {
    Commit { operation: Operation::Merge, marks, adds, reads: Reads::Files, ..Commit::default() }
}

async fn live_ids(table: &Table) -> Result<Vec<i64>> {
    let read = table.read(ReadOptions { columns: Some(vec!["id".to_owned()]), filter: None }).await?;
    let rows = collect(read).await?;
    let mut ids = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(rows.column(0)).values().to_vec();
    ids.sort_unstable();
    Ok(ids)
}

async fn foreign_ids(shop: &Shop, table: &Table) -> Result<Vec<String>> {
    Ok(sorted_lines(&shop.foreign_sql(table, "SELECT id FROM t").await?))
}

fn as_texts(ids: &[i64]) -> Vec<String> {
    let mut texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    texts.sort_unstable();
    texts
}

#[tokio::test(flavor = "multi_thread")]
async fn marked_rows_stay_away_from_every_reader_over_several_generations() -> Result<()> {
    let shop = Shop::open();
    let mut table = one_file(&shop, 5000).await?;
    assert!(table.marks_rows());
    let mut live: Vec<i64> = (0..5000).collect();
    // A few rows stand in the log, many in a file; the last generation is a file again.
    let generations: [Vec<u64>; 3] = [vec![0, 7], (10..2000).step_by(3).collect(), vec![4999]];
    let mut kinds = Vec::new();
    for rows_now in &generations {
        let file = table.files().await?.remove(0);
        table = committed(&table, merge(vec![marks(&file, rows_now)], Vec::new())).await?;
        live.retain(|id| !rows_now.contains(&(*id as u64)));
        let file = table.files().await?.remove(0);
        assert_eq!((file.stats.rows, file.live_rows()), (Some(5000), Some(live.len() as u64)));
        kinds.push(file.deletion_vector.as_ref().map(|vector| vector.storage_type.clone()).unwrap_or_default());
        assert_eq!(live_ids(&table).await?, live);
        assert_eq!(foreign_ids(&shop, &table).await?, as_texts(&live));
        assert_eq!(collect(table.read_file(&file, None).await?).await?.num_rows(), live.len());
    }
    assert_eq!(kinds, ["i", "u", "u"]);
    let actions = shop.actions(&table, table.version(), "add").await?;
    let stats: Value = serde_json::from_str(actions[0]["stats"].as_str().unwrap())?;
    assert_eq!((stats["tightBounds"].clone(), stats["numRecords"].clone()), (Value::Bool(false), 5000.into()));
    let removed = &shop.actions(&table, table.version(), "remove").await?[0];
    assert_eq!(removed["path"], actions[0]["path"]);
    assert_eq!(removed["deletionVector"]["cardinality"], 2 + 664, "the vector before, so that readers know which add goes");
    assert_eq!(actions[0]["deletionVector"]["cardinality"], 5000 - live.len());
    // Without change-feed files the feed is the difference of the vectors.
    let changes = collect(table.changes(2, table.version()).await?).await?;
    assert_eq!(changes.num_rows(), 5000 - live.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_one_commit_share_a_file_and_survive_a_checkpoint() -> Result<()> {
    let shop = Shop::open();
    let mut table = shop.lake.create(&marked_spec("shared")).await?;
    for file in 0..3 {
        table = append(&table, &[ids(file * 1000..file * 1000 + 1000)]).await?;
    }
    let gone: Vec<u64> = (0..1000).step_by(7).collect();
    let of_all = table.files().await?.iter().map(|file| marks(file, &gone)).collect();
    table = committed(&table, merge(of_all, Vec::new())).await?;
    let vectors: Vec<_> = table.files().await?.into_iter().filter_map(|file| file.deletion_vector).collect();
    assert_eq!(vectors.len(), 3);
    assert!(vectors.iter().all(|vector| vector.storage_type == "u" && vector.path_or_inline_dv == vectors[0].path_or_inline_dv));
    let listed = shop.store.list_with_delimiter(Some(&"lake/main/silver/shared".into())).await?;
    let bins = listed.objects.iter().filter(|object| object.location.as_ref().ends_with(".bin")).count();
    assert_eq!(bins, 1);
    let live: Vec<i64> = (0..3000).filter(|id| !gone.contains(&((id % 1000) as u64))).collect();
    for _ in 0..11 {
        table = append(&table, &[ids([9999])]).await?;
    }
    let expected: Vec<i64> = live.into_iter().chain([9999; 11]).collect();
    let reopened = shop.lake.table(table.name()).await?.unwrap();
    assert_eq!(live_ids(&reopened).await?, expected);
    assert_eq!(foreign_ids(&shop, &reopened).await?, as_texts(&expected));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_which_no_row_is_left_is_removed() -> Result<()> {
    let shop = Shop::open();
    let table = one_file(&shop, 10).await?;
    let file = table.files().await?.remove(0);
    let table = committed(&table, merge(vec![marks(&file, &[1, 2, 3])], Vec::new())).await?;
    let file = table.files().await?.remove(0);
    let new = written(&table, &[ids([77])]).await?;
    let table = committed(&table, merge(vec![marks(&file, &[0, 4, 5, 6, 7, 8, 9])], new)).await?;
    assert_eq!(live_ids(&table).await?, [77]);
    assert_eq!(table.files().await?.len(), 1);
    let removed = shop.actions(&table, table.version(), "remove").await?;
    assert_eq!(removed[0]["deletionVector"]["cardinality"], 3);
    assert_eq!(foreign_ids(&shop, &table).await?, ["77"]);
    let told = sorted_lines(&[collect(table.changes(3, 3).await?).await?.project(&[0, 2])?]);
    assert_eq!(told.len(), 8, "seven rows went and one came: {told:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_that_contradict_the_snapshot_are_a_bug_and_change_nothing() -> Result<()> {
    let shop = Shop::open();
    let table = one_file(&shop, 10).await?;
    let file = table.files().await?.remove(0);
    let table = committed(&table, merge(vec![marks(&file, &[1, 2])], Vec::new())).await?;
    let now = table.files().await?.remove(0);
    let mut uncounted = now.clone();
    uncounted.stats.rows = None;
    let cases = [
        (vec![marks(&file, &[5])], "another deletion vector"),
        (vec![marks(&now, &[2])], "marked already"),
        (vec![marks(&now, &[10])], "behind its last one"),
        (vec![marks(&now, &[4, 3])], "not ascending"),
        (vec![marks(&now, &[])], "that are none"),
        (vec![marks(&now, &[3]), marks(&now, &[4])], "twice"),
        (vec![marks(&uncounted, &[3])], "nobody counted"),
    ];
    for (marks, reason) in cases {
        let error = table.commit(merge(marks, Vec::new())).await.unwrap_err();
        assert!(matches!(&error, Error::Malformed { .. }) && error.to_string().contains(reason), "{error}");
    }
    let blind = Commit { marks: vec![marks(&now, &[3])], ..Commit::default() };
    assert!(matches!(table.commit(blind).await, Err(Error::Malformed { .. })));
    assert_eq!(table.refresh().await?.version(), table.version());

    let forbidden =
        TableSpec { properties: BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "false".to_owned())]), ..marked_spec("forbidden") };
    let table = shop.lake.create(&forbidden).await?;
    assert!(!table.marks_rows() && !table.features().contains(&"deletionVectors".to_owned()));
    let table = append(&table, &[ids(0..3)]).await?;
    let file = table.files().await?.remove(0);
    assert!(matches!(table.commit(merge(vec![marks(&file, &[1])], Vec::new())).await, Err(Error::Malformed { .. })));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_touch_one_file_the_second_plans_again_and_rows_elsewhere_do_not_matter() -> Result<()> {
    let keys = |low: i64, high: i64| {
        let range = KeyRange { bounds: Some((ScalarValue::Int64(Some(low)), ScalarValue::Int64(Some(high)))), nulls: false };
        Reads::Keys(KeyRanges(BTreeMap::from([("id".to_owned(), range)])))
    };
    let by_keys = |marks: Vec<RowMarks>, low, high| Commit { reads: keys(low, high), ..merge(marks, Vec::new()) };
    let shop = Shop::open();
    let table = shop.lake.create(&marked_spec("raced")).await?;
    let table = append(&table, &[ids(0..100)]).await?;
    let stale = append(&table, &[ids(100..200)]).await?;
    let files = stale.files().await?;
    let (low, high) = match files[0].stats.columns["id"].min {
        Some(ScalarValue::Int64(Some(0))) => (&files[0], &files[1]),
        _ => (&files[1], &files[0]),
    };
    let outcome = stale.commit(by_keys(vec![marks(low, &[3])], 3, 3)).await?;
    assert!(matches!(outcome, CommitOutcome::Committed { .. }));
    // The same file with another row, and its removal: both lose.
    let outcome = stale.commit(by_keys(vec![marks(low, &[4])], 4, 4)).await?;
    assert!(matches!(outcome, CommitOutcome::Conflicted(Conflict::FileChanged { .. })), "{outcome:?}");
    let removal = Commit { operation: Operation::Merge, removes: vec![low.clone()], reads: Reads::Files, ..Commit::default() };
    assert!(matches!(stale.commit(removal).await?, CommitOutcome::Conflicted(Conflict::FileChanged { .. })));
    // Another file: nobody is in the way. Who found a row in the re-vectored file and left it as it is has lost what it rests on.
    assert!(matches!(stale.commit(by_keys(vec![marks(high, &[4])], 104, 104)).await?, CommitOutcome::Committed { .. }));
    let adds = written(&stale, &[ids([300])]).await?;
    let outcome = stale.commit(Commit { reads: keys(3, 300), adds, rests_on: vec![low.clone()], ..Commit::default() }).await?;
    assert!(matches!(outcome, CommitOutcome::Conflicted(Conflict::RowsRemoved { .. })), "{outcome:?}");
    // A blind append goes on top, and a compaction that lost its input does not.
    assert!(matches!(
        stale.commit(Commit { adds: written(&stale, &[ids([500])]).await?, ..Commit::default() }).await?,
        CommitOutcome::Committed { .. }
    ));
    let adds = written(&stale, &[ids(0..100)]).await?;
    let compaction = Commit { operation: Operation::Optimize, adds, removes: vec![low.clone()], reads: Reads::Files, ..Commit::default() };
    assert!(matches!(stale.commit(compaction).await?, CommitOutcome::Conflicted(Conflict::FileChanged { .. })));
    let fresh = stale.refresh().await?;
    let mut expected: Vec<i64> = (0..200).filter(|id| ![3, 104].contains(id)).collect();
    expected.push(500);
    assert_eq!(live_ids(&fresh).await?, expected);
    Ok(())
}

/// A lake of a release without deletion vectors.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_the_feature_gets_it_by_one_commit_and_one_whose_property_forbids_it_does_not() -> Result<()> {
    let shop = Shop::open();
    let old = TableSpec { properties: BTreeMap::new(), ..marked_spec("old") };
    let table = append(&shop.lake.create(&old).await?, &[ids(0..10)]).await?;
    assert!(!table.marks_rows());
    let version = table.version();
    let table = shop.lake.create(&marked_spec("old")).await?;
    assert_eq!(table.version(), version + 1);
    assert!(table.marks_rows());
    let protocol = &shop.actions(&table, version + 1, "protocol").await?[0];
    assert_eq!((protocol["minReaderVersion"].clone(), protocol["minWriterVersion"].clone()), (3.into(), 7.into()));
    assert_eq!(protocol["readerFeatures"], serde_json::json!(["deletionVectors"]));
    assert!(protocol["writerFeatures"].as_array().unwrap().contains(&"deletionVectors".into()));
    assert_eq!(shop.lake.create(&marked_spec("old")).await?.version(), version + 1, "once");
    let file = table.files().await?.remove(0);
    let table = committed(&table, merge(vec![marks(&file, &[0])], Vec::new())).await?;
    assert_eq!(live_ids(&table).await?, (1..10).collect::<Vec<_>>());
    assert_eq!(foreign_ids(&shop, &table).await?, as_texts(&(1..10).collect::<Vec<_>>()));

    let refused =
        TableSpec { properties: BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "false".to_owned())]), ..marked_spec("refused") };
    shop.lake.create(&refused).await?;
    let table = shop.lake.create(&marked_spec("refused")).await?;
    assert_eq!((table.version(), table.marks_rows()), (0, false), "what the table says holds");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_of_another_writer_and_exact_numbers_of_its_statistics_outlive_the_marks() -> Result<()> {
    let shop = Shop::open();
    let table = one_file(&shop, 3).await?;
    let mut add = shop.actions(&table, 1, "add").await?.remove(0);
    let stats = r#"{"numRecords":3,"minValues":{"id":0},"maxValues":{"id":2},"nullCount":{"id":0},"exact":1234567890123456789.10}"#;
    add["stats"] = stats.into();
    add["tags"] = serde_json::json!({ "INSERTION_TIME": "1", "none": null });
    let lines = format!(
        "{}\n{}\n",
        serde_json::json!({ "commitInfo": { "inCommitTimestamp": 1_900_000_000_000_i64, "timestamp": 1, "operation": "x" } }),
        serde_json::json!({ "add": add })
    );
    shop.put(&table, "_delta_log/00000000000000000002.json", lines.into_bytes()).await?;
    let table = table.refresh().await?;
    let file = table.files().await?.remove(0);
    let table = committed(&table, merge(vec![marks(&file, &[1])], Vec::new())).await?;
    let again = shop.actions(&table, 3, "add").await?.remove(0);
    assert_eq!(again["tags"], serde_json::json!({ "INSERTION_TIME": "1", "none": null }));
    assert!(again["stats"].as_str().unwrap().contains("1234567890123456789.10"));
    assert!(again["stats"].as_str().unwrap().contains(r#""tightBounds":false"#));
    assert_eq!(again["modificationTime"], add["modificationTime"]);
    Ok(())
}

const APP: &str = "tributary:source:bronze.numbers";

/// Four rounds: each marks a share of the rows of the first file and adds a row, its position in the commit.
async fn rounds(store: Arc<dyn ObjectStore>, seed: u64) -> Result<()> {
    let lake = lake_with_ids(store, seed);
    let mut table = lake.create(&marked_spec("rounds")).await?;
    loop {
        let position = table.progress(APP).await?;
        let round = position.unwrap_or(0);
        if round == 5 {
            return Ok(());
        }
        let progress = vec![Progress { app_id: APP.to_owned(), expected: position, version: round + 1 }];
        let commit = if round == 0 {
            Commit { adds: written(&table, &[ids(0..400)]).await?, progress, ..Commit::default() }
        } else {
            let file = table.files().await?.into_iter().find(|file| file.stats.rows == Some(400)).unwrap();
            let gone: Vec<u64> = (0..400).filter(|row| row % 8 == round as u64).collect();
            Commit { progress, ..merge(vec![marks(&file, &gone)], written(&table, &[ids([1000 + round])]).await?) }
        };
        match table.commit(commit).await? {
            CommitOutcome::Committed { .. } | CommitOutcome::Fenced { .. } => table = table.refresh().await?,
            CommitOutcome::Conflicted(conflict) => anyhow::bail!("{conflict}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_of_marks_killed_at_any_mutating_call_leaves_each_row_marked_once() {
    static SEED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let next = || SEED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let report = crash_at(
        KillPoints::All,
        KillPoints::All,
        async || Arc::new(InMemory::new()) as Arc<dyn ObjectStore>,
        async |store| rounds(store, next()).await,
        async |store| {
            let table =
                lake_over(store, Controls::none()).table(&marked_spec("rounds").name).await.map_err(|why| why.to_string())?.unwrap();
            live_ids(&table).await.map_err(|why| why.to_string())
        },
    )
    .await;
    assert!(report.holds(), "{}", report.differences.join("\n"));
    println!("lake marks: {report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_marks_whose_answer_is_lost_is_found_and_not_made_again() -> Result<()> {
    let faulty = FaultyStore::new(Arc::new(InMemory::new()));
    let lake = lake_over(Arc::new(faulty.clone()), Controls::none());
    let table = append(&lake.create(&marked_spec("lost")).await?, &[ids(0..1000)]).await?;
    let file = table.files().await?.remove(0);
    faulty.fail(Rule::delta_commit(), 1, ScriptedFault::AnswerLost);
    let outcome = table.commit(merge(vec![marks(&file, &(0..1000).step_by(2).collect::<Vec<_>>())], Vec::new())).await?;
    assert_eq!(outcome, CommitOutcome::Committed { version: 2 });
    assert_eq!(live_ids(&table.refresh().await?).await?.len(), 500);
    assert_eq!(rows(&table.refresh().await?).await?.num_rows(), 500);
    Ok(())
}
