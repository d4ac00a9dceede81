//! Tables as they are made, found, upgraded and read back.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use arrow::array::{RecordBatch, StringArray, TimestampMicrosecondArray};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::{Value, json};
use tributary_lake::datafusion::prelude::{col, lit};
use tributary_lake::{
    Commit, CommitOutcome, DELETION_VECTORS_ON, Error, Lake, LakeOptions, Operation, Progress, ReadOptions, Reads, Stores, Table,
};
use tributary_specs::{Check, Column, DataType, TableName, TableSpec};
use tributary_testkit::{Controls, FaultyStore, Rule, ScriptedFault};

use crate::toy::{APP, append_until, expected, file_of, lake_over, lake_with_ids, numbers, numbers_in, open, spec};

fn log_path(name: &str) -> Path {
    Path::from(format!("lake/main/bronze/numbers/_delta_log/{name}"))
}

async fn put_commit(store: &dyn ObjectStore, version: u64, actions: &[Value]) -> Result<()> {
    let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
    store.put(&log_path(&format!("{version:020}.json")), lines.join("\n").into()).await?;
    Ok(())
}

/// Version 0 of a table of somebody else.
fn foreign(protocol: Value, fields: Value, configuration: Value) -> [Value; 2] {
    let schema = json!({ "type": "struct", "fields": fields }).to_string();
    [
        json!({ "protocol": protocol }),
        json!({ "metaData": { "id": "f", "format": { "provider": "parquet", "options": {} }, "schemaString": schema, "partitionColumns": [], "configuration": configuration } }),
    ]
}

fn long(name: &str) -> Value {
    json!({ "name": name, "type": "long", "nullable": true, "metadata": {} })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_what_its_declaration_says() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    let mut total = Column::new("total", DataType::Decimal { precision: 12, scale: 2 });
    (total.default, total.comment) = (Some("0.00".to_owned()), Some("in euro".to_owned()));
    let spec = TableSpec {
        cluster_by: vec!["id".to_owned()],
        checks: vec![Check { name: "positive".to_owned(), expression: "total >= 0".to_owned() }],
        comment: Some("orders as they stand".to_owned()),
        properties: BTreeMap::from([
            ("delta.logRetentionDuration".to_owned(), "interval 60 days".to_owned()),
            ("pipelines.x".to_owned(), "y".to_owned()),
        ]),
        row_changes: true,
        ..TableSpec::new(
            TableName::new("silver", "orders"),
            vec![
                Column::new("id", DataType::Long).not_null(),
                total,
                Column::new("at", DataType::TimestampNtz),
                Column::new("who", DataType::Struct(vec![Column::new("given", DataType::String)])),
            ],
        )
    };
    let table = lake.create(&spec).await?;
    assert_eq!(
        (table.version(), table.columns(), table.checks(), table.cluster_columns()),
        (0, &spec.columns[..], &spec.checks[..], &spec.cluster_by[..])
    );
    assert_eq!(table.comment(), Some("orders as they stand"));
    assert_eq!(table.properties()["delta.logRetentionDuration"], "interval 60 days");
    assert_eq!(
        table.features(),
        [
            "allowColumnDefaults",
            "changeDataFeed",
            "checkConstraints",
            "clustering",
            "domainMetadata",
            "inCommitTimestamp",
            "invariants",
            "timestampNtz"
        ]
    );
    assert_eq!(lake.difference(&spec).await?, []);
    assert_eq!(lake.create(&spec).await?.version(), 0, "made once");
    assert_eq!(lake.tables().await?, std::slice::from_ref(&spec.name));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_difference_is_listed_and_only_some_are_refused() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    assert_eq!(lake.difference(&spec()).await?[0].to_string(), "table: declared bronze.numbers, found absent");
    lake.create(&spec()).await?;
    let mut more = spec();
    more.columns.push(Column::new("note", DataType::String));
    more.comment = Some("numbers".to_owned());
    let listed: Vec<String> = lake.difference(&more).await?.iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["column `note`: declared string, found absent", "comment: declared numbers, found absent"]);
    assert_eq!(lake.create(&more).await?.columns().len(), 2, "columns come with a commit");

    let mut other = spec();
    other.columns[0] = Column::new("n", DataType::String);
    other.partition_by = vec!["batch".to_owned()];
    let error = lake.create(&other).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "table `bronze.numbers` exists but differs: column `n`: declared string, found long; partition columns: declared batch, found absent"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn names_with_blanks_and_other_signs_are_places_too() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let local = Lake::open(Stores::local(folder.path().join("ware house"))?, LakeOptions::default())?;
    let memory = lake_over(Arc::new(InMemory::new()), Controls::none());
    for lake in [local, memory] {
        for name in ["per day", "a`b", "ünï", "100%"] {
            let spec = TableSpec { name: TableName::new("gold", name), ..spec() };
            let table = lake.create(&spec).await?;
            let adds = file_of(&table, &[1], 0).await?;
            assert_eq!(table.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 1 });
            assert_eq!(numbers_in(&lake.table(&spec.name).await?.unwrap()).await?, [1], "{name}");
        }
        let mut names: Vec<String> = lake.tables().await?.into_iter().map(|name| name.name).collect();
        names.sort();
        assert_eq!(names, ["100%", "a`b", "per day", "ünï"]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lake_on_local_files_is_there_for_the_next_process() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for _ in 0..2 {
        let lake = Lake::open(Stores::local(folder.path())?, LakeOptions::default())?;
        append_until(&lake, 12).await?;
        assert_eq!(numbers_in(&open(&lake).await?).await?, expected(12));
        assert!(lake.tables().await?.contains(&spec().name));
    }
    assert!(folder.path().join("main/bronze/numbers/_delta_log/_last_checkpoint").exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_lakes_in_one_process_share_nothing() -> Result<()> {
    let one = Lake::open(Stores::memory(), LakeOptions::default())?;
    let other = Lake::open(Stores::memory(), LakeOptions::default())?;
    append_until(&one, 2).await?;
    append_until(&other, 3).await?;
    assert_eq!(numbers_in(&open(&one).await?).await?, expected(2));
    assert_eq!(numbers_in(&open(&other).await?).await?, expected(3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_table_needs_and_we_do_not_know_is_named_before_anything_is_read() -> Result<()> {
    let writer_only = json!({ "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["quantumRows"] });
    let both =
        json!({ "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["quantumRows"], "writerFeatures": ["quantumRows"] });
    let newer = json!({ "minReaderVersion": 4, "minWriterVersion": 8 });
    let legacy = json!({ "minReaderVersion": 2, "minWriterVersion": 6 });
    let mapped = json!({ "delta.columnMapping.mode": "name" });
    let identity = json!([{ "name": "n", "type": "long", "nullable": false, "metadata": { "delta.identity.start": 1, "delta.identity.step": 1 } }, long("batch")]);
    let cases = [
        (foreign(writer_only, json!([long("n"), long("batch")]), json!({})), true, "the table feature `quantumRows`"),
        (foreign(both, json!([long("n"), long("batch")]), json!({})), false, "the table feature `quantumRows`"),
        (foreign(newer, json!([long("n"), long("batch")]), json!({})), false, "reader version 4"),
        (foreign(legacy.clone(), json!([long("n"), long("batch")]), mapped), false, "column mapping by name"),
        (foreign(legacy, identity, json!({})), true, "identity columns (column `n`)"),
    ];
    for (actions, readable, named) in cases {
        let store = Arc::new(InMemory::new());
        put_commit(store.as_ref(), 0, &actions).await?;
        let lake = lake_over(store, Controls::none());
        let opened = lake.table(&spec().name).await;
        match (&opened, readable) {
            (Ok(Some(_)), true) => {}
            (Err(error @ Error::Unsupported { .. }), false) => assert!(error.to_string().contains(named), "{error}"),
            _ => panic!("{named}: {opened:?}"),
        }
        let error = lake.create(&spec()).await.unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains(named), "{error}");
    }
    Ok(())
}

/// A zone-less time on a table made without that feature: the feature comes with the column.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_type_brings_its_feature_along() -> Result<()> {
    let store = Arc::new(InMemory::new());
    let fields = json!([{ "name": "day", "type": "date", "nullable": true, "metadata": {} }, { "name": "ts", "type": "timestamp", "nullable": true, "metadata": {} }]);
    put_commit(store.as_ref(), 0, &foreign(json!({ "minReaderVersion": 1, "minWriterVersion": 2 }), fields, json!({}))).await?;
    let table = open(&lake_over(Arc::clone(&store) as _, Controls::none())).await?;
    assert_eq!(table.features(), ["appendOnly", "invariants"]);
    let wall = RecordBatch::try_from_iter_with_nullable([(
        "wall",
        Arc::new(TimestampMicrosecondArray::from(vec![1_769_940_000_000_000])) as _,
        true,
    )])?;
    let mut writer = table.writer(tributary_lake::WriterOptions::default())?;
    assert!(writer.write(&wall).await.is_err(), "no column of the table");
    let mut columns = table.columns().to_vec();
    columns.push(Column::new("wall", DataType::TimestampNtz));
    assert_eq!(table.commit(Commit { schema: Some(columns), ..Commit::default() }).await?, CommitOutcome::Committed { version: 1 });
    let table = table.refresh().await?;
    assert_eq!(table.features(), ["appendOnly", "invariants", "timestampNtz"]);
    let mut writer = table.writer(tributary_lake::WriterOptions::default())?;
    writer.write(&wall).await?;
    let adds = writer.finish().await?;
    assert_eq!(table.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 2 });
    let log = store.get(&log_path("00000000000000000001.json")).await?.bytes().await?;
    let protocol = std::str::from_utf8(&log)?.lines().find(|line| line.contains("\"protocol\"")).unwrap();
    let expected = json!({ "protocol": { "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timestampNtz"], "writerFeatures": ["appendOnly", "invariants", "timestampNtz"] } });
    assert_eq!(serde_json::from_str::<Value>(protocol)?, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_an_older_release_is_brought_up_to_date_in_one_commit() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let old = foreign(
        json!({ "minReaderVersion": 1, "minWriterVersion": 2 }),
        json!([long("n"), long("batch")]),
        json!({ "tributary.format": "0" }),
    );
    put_commit(&store, 0, &old).await?;
    // Another writer comes in between: the upgrade names its own version, so it starts over.
    let inner = store.inner();
    store.before(Rule::delta_commit(), 1, move |_| async move {
        let rival = open(&lake_over(inner, Controls::none())).await.unwrap();
        let adds = file_of(&rival, &[1], 0).await.unwrap();
        assert_eq!(rival.commit(Commit { adds, ..Commit::default() }).await.unwrap(), CommitOutcome::Committed { version: 1 });
    });
    let lake = lake_over(Arc::new(store.clone()), Controls::none());
    let table = lake.create(&spec()).await?;
    assert_eq!(
        (table.version(), table.features()),
        (2, ["appendOnly", "changeDataFeed", "inCommitTimestamp", "invariants"].map(str::to_owned).to_vec())
    );
    assert_eq!(table.properties()["delta.inCommitTimestampEnablementVersion"], "2");
    let enabled = table.history(Some(1)).await?[0].timestamp.timestamp_millis().to_string();
    assert_eq!(table.properties()["delta.inCommitTimestampEnablementTimestamp"], enabled);
    assert_eq!(lake.create(&spec()).await?.version(), 2, "once");
    let adds = file_of(&table, &[2], 0).await?;
    assert_eq!(table.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 3 });
    assert_eq!(numbers_in(&table.refresh().await?).await?, [1, 2]);

    // A table of somebody else stays as it is.
    let store = Arc::new(InMemory::new());
    put_commit(
        store.as_ref(),
        0,
        &foreign(json!({ "minReaderVersion": 1, "minWriterVersion": 2 }), json!([long("n"), long("batch")]), json!({})),
    )
    .await?;
    assert_eq!(lake_over(store, Controls::none()).create(&spec()).await?.version(), 0);
    Ok(())
}

/// The change feed and deletion vectors as the table has them.
fn turned_on(table: &Table) -> (bool, bool) {
    (table.has_change_feed(), table.marks_rows())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_obeys_what_a_table_says_of_itself_and_only_a_word_of_a_person_changes_it() -> Result<()> {
    let declared = |properties: &[(&str, &str)]| TableSpec {
        row_changes: true,
        properties: properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..spec()
    };
    let (feed, vectors) = ("delta.enableChangeDataFeed", DELETION_VECTORS_ON);
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    let (without, with) = (declared(&[(feed, "false"), (vectors, "false")]), declared(&[(vectors, "true")]));
    let table = lake.create(&without).await?;
    assert_eq!((turned_on(&table), table.said_otherwise(&without)), ((false, false), vec![]));
    assert_eq!(table.features(), ["inCommitTimestamp"]);
    // The declaration no longer forbids them.
    let table = lake.bring_up_to_date(table, &with).await?;
    assert_eq!((table.version(), turned_on(&table)), (0, (false, false)));
    let said: Vec<String> = table.said_otherwise(&with).iter().map(ToString::to_string).collect();
    let expected = [
        "property `delta.enableChangeDataFeed`: declared true, found false",
        "property `delta.enableDeletionVectors`: declared true, found false",
    ];
    assert_eq!(said, expected);
    let mut listed: Vec<String> = lake.difference(&with).await?.iter().map(ToString::to_string).collect();
    listed.sort_unstable();
    assert_eq!(listed, expected, "each once");
    let table = lake.bring_to_declaration(table, &with).await?;
    assert_eq!((table.version(), turned_on(&table)), (1, (true, true)));
    assert!(table.said_otherwise(&with).is_empty() && lake.difference(&with).await?.is_empty());
    assert_eq!(lake.bring_to_declaration(table.clone(), &with).await?.version(), 1, "once");
    let table = lake.bring_to_declaration(table, &without).await?;
    assert_eq!((table.version(), turned_on(&table)), (2, (false, false)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_alone_holds_the_whole_table() -> Result<()> {
    let store = Arc::new(InMemory::new());
    let lake = lake_over(Arc::clone(&store) as _, Controls::none());
    let mut clustered = spec();
    clustered.cluster_by = vec!["n".to_owned()];
    lake.create(&clustered).await?;
    append_until(&lake, 9).await?;
    let table = open(&lake).await?;
    let ledger = Commit { domains: BTreeMap::from([("tributary.ledger".to_owned(), Some("files".to_owned()))]), ..Commit::default() };
    assert_eq!(table.commit(ledger).await?, CommitOutcome::Committed { version: 10 });
    assert!(store.head(&log_path("00000000000000000010.checkpoint.parquet")).await.is_ok());
    for version in 0..=10 {
        store.delete(&log_path(&format!("{version:020}.json"))).await?;
    }
    let table = open(&lake_over(Arc::clone(&store) as _, Controls::none())).await?;
    assert_eq!((table.version(), table.progress(APP).await?), (10, Some(9)));
    assert_eq!((table.domain("tributary.ledger").await?, table.cluster_columns()), (Some("files".to_owned()), &["n".to_owned()][..]));
    assert_eq!(table.features(), ["changeDataFeed", "clustering", "domainMetadata", "inCommitTimestamp"]);
    assert_eq!(numbers_in(&table).await?, expected(9));
    assert_eq!(table.files().await?.len(), 9);
    assert_eq!(table.progress_with_prefix("tributary:kafka:").await?, BTreeMap::from([(APP.to_owned(), 9)]));
    // And it goes on from there; what is gone is named.
    append_until(&lake_over(Arc::clone(&store) as _, Controls::none()), 11).await?;
    let table = open(&lake_over(store, Controls::none())).await?;
    assert_eq!(numbers_in(&table).await?, expected(11));
    let error = table.at_version(3).await.unwrap_err();
    assert_eq!(error.to_string(), "table `bronze.numbers` has no version 3 (it has 10 to 12)");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_failed_is_no_error_and_is_made_after_a_restart() -> Result<()> {
    for fault in [ScriptedFault::NotDone, ScriptedFault::Denied] {
        let store = FaultyStore::new(Arc::new(InMemory::new()));
        for nth in 1..=3 {
            store.fail(Rule::mutating().on("checkpoint"), nth, fault);
        }
        append_until(&lake_over(Arc::new(store.clone()), Controls::none()), 10).await?;
        assert!(store.inner().head(&log_path("_last_checkpoint")).await.is_err());
        append_until(&lake_over(store.inner(), Controls::none()), 11).await?;
        let hint: Value = serde_json::from_slice(&store.inner().get(&log_path("_last_checkpoint")).await?.bytes().await?)?;
        assert_eq!(hint["version"], 11);
        assert!(store.inner().head(&log_path("00000000000000000011.checkpoint.parquet")).await.is_ok());
        assert_eq!(numbers_in(&open(&lake_over(store.inner(), Controls::none())).await?).await?, expected(11));
    }
    Ok(())
}

/// The versions of which a checkpoint is there.
async fn checkpoints(store: &InMemory, latest: u64) -> Vec<u64> {
    let mut there = Vec::new();
    for version in 0..=latest {
        if store.head(&log_path(&format!("{version:020}.checkpoint.parquet"))).await.is_ok() {
            there.push(version);
        }
    }
    there
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_says_its_interval_gets_its_checkpoints_by_it() -> Result<()> {
    // what another engine wrote there and is no number leaves ours
    for (said, expected) in [("3", vec![3, 6, 9, 12]), ("1", (1..=13).collect()), ("12", vec![12]), ("25", vec![]), ("often", vec![10])] {
        let store = Arc::new(InMemory::new());
        let lake = lake_over(Arc::clone(&store) as _, Controls::none());
        lake.create(&TableSpec { properties: BTreeMap::from([("note".to_owned(), "theirs".to_owned())]), ..spec() }).await?;
        let first = store.get(&log_path(&format!("{:020}.json", 0))).await?.bytes().await?;
        let theirs = String::from_utf8(first.to_vec())?.replace(r#""note":"theirs""#, &format!(r#""delta.checkpointInterval":"{said}""#));
        store.put(&log_path(&format!("{:020}.json", 0)), theirs.into()).await?;
        append_until(&lake_over(Arc::clone(&store) as _, Controls::none()), 13).await?;
        assert_eq!(checkpoints(&store, 13).await, expected, "every {said} commits");
        assert_eq!(numbers_in(&open(&lake_over(store, Controls::none())).await?).await?, self::expected(13));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_alone_are_a_commit() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    append_until(&lake, 2).await?;
    let set = async |pairs: &[(&str, &str)]| {
        let properties = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        open(&lake).await.unwrap().commit(Commit { operation: Operation::Alter, properties, ..Commit::default() }).await
    };
    assert_eq!(set(&[("delta.checkpointInterval", "5"), ("team", "shop")]).await?, CommitOutcome::Committed { version: 3 });
    let table = open(&lake).await?;
    assert_eq!((table.properties()["team"].as_str(), table.properties()["delta.checkpointInterval"].as_str()), ("shop", "5"));
    assert_eq!(numbers_in(&table).await?, expected(2));
    let said = table.history(Some(1)).await?.remove(0);
    assert_eq!(said.operation.as_deref(), Some("SET TBLPROPERTIES"));
    // a feature that they ask for comes along
    assert!(!table.features().contains(&"appendOnly".to_owned()));
    assert_eq!(set(&[("delta.appendOnly", "true")]).await?, CommitOutcome::Committed { version: 4 });
    assert!(open(&lake).await?.features().contains(&"appendOnly".to_owned()));
    // what is there already is nothing to commit, and what a declaration may not say, a commit may not
    let cases = [
        (("team", "shop"), "it does nothing"),
        (("delta.checkpointInterval", "0"), "is `0`, and is a whole number of commits from 1"),
        (("delta.setTransactionRetentionDuration", "interval 1 day"), "would make the table forget the positions"),
        (("delta.enableRowTracking", "true"), "is not honoured"),
        (("delta.enableInCommitTimestamps", "false"), "every table of ours has it on"),
    ];
    for (pair, message) in cases {
        let error = set(&[pair]).await.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(open(&lake).await?.version(), 4);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_with_a_checkpoint_fetches_each_log_object_once() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    append_until(&lake_over(store.inner(), Controls::none()), 12).await?;
    let before = store.counts().reads;
    let table = open(&lake_over(Arc::new(store.clone()), Controls::none())).await?;
    assert_eq!(table.progress(APP).await?, Some(12));
    let opening = store.counts().reads - before;
    // `_last_checkpoint`, one listing, the checkpoint, two commits.
    assert!(opening <= 6, "{opening} requests: {:?}", store.calls());
    numbers_in(&table).await?;
    let before = store.counts().reads;
    table.files().await?;
    assert_eq!(store.counts().reads, before, "the log is in memory");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_costs_the_same_requests_however_long_the_log_is() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let lake = lake_over(Arc::new(store.clone()), Controls::none());
    let mut costs = Vec::new();
    for end in [25, 205] {
        append_until(&lake, end).await?;
        let before = store.counts();
        append_until(&lake, end + 1).await?;
        let after = store.counts();
        costs.push((after.mutating - before.mutating, after.reads - before.reads));
    }
    // A file and a commit; the log is looked at when the table is opened, and once more after the commit.
    assert_eq!(costs[0], costs[1]);
    assert!(costs[0].0 == 2 && costs[0].1 <= 8, "{costs:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn appended_rows_come_commit_by_commit() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    append_until(&lake, 6).await?;
    let table = open(&lake).await?;
    let read = async |from: Option<u64>, to: u64| -> Result<Vec<i64>> {
        let batch = crate::shop::collect(table.appended(from, to).await?).await?;
        Ok(arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(batch.column(0)).values().to_vec())
    };
    assert_eq!(read(None, 6).await?, expected(6));
    assert_eq!(read(Some(2), 4).await?, expected(4)[4..]);
    assert_eq!(read(Some(6), 6).await?, Vec::<i64>::new());
    assert!(matches!(table.appended(Some(6), 9).await.map(drop), Err(Error::NoVersion { version: 7, .. })));

    // Rows that only moved are no new rows, and a removal is named.
    let moved = Commit {
        operation: Operation::Optimize,
        adds: file_of(&table, &expected(6), 0).await?,
        removes: table.files().await?,
        reads: Reads::Files,
        ..Commit::default()
    };
    assert_eq!(table.commit(moved).await?, CommitOutcome::Committed { version: 7 });
    let table = table.refresh().await?;
    let none = crate::shop::collect(table.appended(Some(6), 7).await?).await?;
    assert_eq!(none.num_rows(), 0);
    let emptied = Commit { operation: Operation::Overwrite, removes: table.files().await?, reads: Reads::WholeTable, ..Commit::default() };
    assert_eq!(table.commit(emptied).await?, CommitOutcome::Committed { version: 8 });
    let table = table.refresh().await?;
    assert!(matches!(table.appended(Some(6), 8).await.map(drop), Err(Error::NotAppendOnly { version: 8, .. })));
    assert!(matches!(table.appended(Some(6), 7).await.map(drop), Ok(())));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_file_come_in_its_order_with_columns_that_came_later() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    let table = lake.create(&spec()).await?;
    let adds = file_of(&table, &[3, 1, 2], 7).await?;
    let mut columns = table.columns().to_vec();
    columns.push(Column::new("note", DataType::String));
    assert_eq!(table.commit(Commit { adds, schema: Some(columns), ..Commit::default() }).await?, CommitOutcome::Committed { version: 1 });
    let table = table.refresh().await?;
    let file = table.files().await?.remove(0);
    assert_eq!((file.live_rows(), file.stats.columns["n"].null_count), (Some(3), Some(0)));
    let rows = crate::shop::collect(table.read_file(&file, None).await?).await?;
    assert_eq!(rows.schema(), table.schema());
    let nulls = Arc::new(StringArray::from(vec![None::<&str>; 3])) as arrow::array::ArrayRef;
    assert_eq!((rows.column(0), rows.column(2)), (numbers(&[3, 1, 2], 7).column(0), &nulls));
    let some = crate::shop::collect(table.read_file(&file, Some(&["batch".to_owned()])).await?).await?;
    assert_eq!(some.num_columns(), 1);
    assert!(matches!(table.read_file(&file, Some(&["missing".to_owned()])).await.map(drop), Err(Error::Batch { .. })));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_reads_the_rows_it_names_and_a_session_queries_them() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    append_until(&lake, 6).await?;
    let table = open(&lake).await?;
    let options = ReadOptions { columns: Some(vec!["batch".to_owned(), "n".to_owned()]), filter: Some(col("n").gt_eq(lit(40_i64))) };
    let rows = crate::shop::collect(table.read(options).await?).await?;
    assert_eq!(crate::shop::sorted_lines(&[rows]), ["4|40", "4|41", "5|50", "5|51"]);
    let session = lake.session();
    session.register_table("numbers", table.provider().await?)?;
    let batches = session.sql("select count(*) as rows, sum(n) as total from numbers where batch > 3").await?.collect().await?;
    assert_eq!(crate::shop::sorted_lines(&batches), ["4|182"]);
    Ok(())
}

/// A scan of no column is answered from the log's row counts; the library's node for it swallowed the limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_also_where_no_column_is_read() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    append_until(&lake, 1).await?;
    let session = lake.session();
    session.register_table("numbers", open(&lake).await?.provider().await?)?;
    for (query, rows) in [
        ("select 1 from numbers", 2),
        ("select 1 from numbers limit 1", 1),
        ("select 1 from numbers limit 5 offset 1", 1),
        ("select a.x from (select 1 as x from numbers limit 1) a, (select 2 as y from numbers) b", 2),
    ] {
        let batches = session.sql(query).await?.collect().await?;
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows, "{query}");
    }
    let batches =
        session.sql("select (select 1 from numbers limit 1) as one, (select count(*) from numbers) as all").await?.collect().await?;
    assert_eq!(crate::shop::sorted_lines(&batches), ["1|2"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn history_tells_who_did_what_and_the_positions_that_rode_along() -> Result<()> {
    let lake = lake_with_ids(Arc::new(InMemory::new()), 1);
    append_until(&lake, 3).await?;
    let table = open(&lake).await?;
    let history = table.history(None).await?;
    let told: Vec<_> = history
        .iter()
        .map(|entry| (entry.version, entry.operation.as_deref(), entry.progress.get(APP).copied(), entry.files_added))
        .collect();
    assert_eq!(
        told,
        [
            (3, Some("WRITE"), Some(3), 1),
            (2, Some("WRITE"), Some(2), 1),
            (1, Some("WRITE"), Some(1), 1),
            (0, Some("CREATE TABLE"), None, 0)
        ]
    );
    assert_eq!(table.history(Some(2)).await?, history[..2]);
    assert!(history.iter().all(|entry| entry.engine.as_deref().is_some_and(|engine| engine.starts_with("tributary/"))));
    let again = lake_with_ids(Arc::new(InMemory::new()), 1);
    append_until(&again, 3).await?;
    assert_eq!(open(&again).await?.history(None).await?, history, "the same ids and clock give the same log");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_version_is_as_it_was() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    append_until(&lake, 15).await?;
    let table = open(&lake).await?;
    for version in [0, 3, 10, 14] {
        let then = table.at_version(version).await?;
        assert_eq!(numbers_in(&then).await?, expected(version as i64));
        assert_eq!(then.progress(APP).await?.unwrap_or(0), version as i64);
    }
    assert!(matches!(table.at_version(99).await, Err(Error::NoVersion { version: 99, earliest: 0, latest: 15, .. })));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_statistics_are_never_skipped() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    let table = lake.create(&spec()).await?;
    for (rows, stats) in
        [([1, 2], "{}"), ([3, 4], r#"{"numRecords":2}"#), ([5, 6], r#"{"numRecords":2,"minValues":{"n":5},"nullCount":{"batch":0}}"#)]
    {
        let mut adds = file_of(&table, &rows, 0).await?;
        adds[0].stats = stats.to_owned();
        let CommitOutcome::Committed { .. } = table.commit(Commit { adds, ..Commit::default() }).await? else { panic!() };
    }
    let table = table.refresh().await?;
    for n in 1..=6_i64 {
        let options = ReadOptions { columns: None, filter: Some(col("n").eq(lit(n))) };
        assert_eq!(crate::shop::collect(table.read(options).await?).await?.num_rows(), 1, "n = {n}");
    }
    let options = ReadOptions { columns: None, filter: Some(col("n").is_not_null()) };
    assert_eq!(crate::shop::collect(table.read(options).await?).await?.num_rows(), 6);
    Ok(())
}

/// DELETE WHERE tag = 'a' as a rewrite: the row whose tag is null stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_rewrite_keeps_the_rows_for_which_a_predicate_is_null() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    let spec =
        TableSpec { row_changes: true, ..TableSpec::new(TableName::new("silver", "tags"), vec![Column::new("tag", DataType::String)]) };
    let table = lake.create(&spec).await?;
    let rows = |tags: Vec<Option<&str>>| RecordBatch::try_from_iter_with_nullable([("tag", Arc::new(StringArray::from(tags)) as _, true)]);
    let table = crate::shop::append(&table, &[rows(vec![Some("a"), None, Some("b")])?]).await?;
    let filter = col("tag").eq(lit("a")).is_not_true();
    let kept = crate::shop::collect(table.read(ReadOptions { columns: None, filter: Some(filter) }).await?).await?;
    let adds = crate::shop::written(&table, &[kept]).await?;
    let commit = Commit { operation: Operation::Merge, adds, removes: table.files().await?, reads: Reads::WholeTable, ..Commit::default() };
    let table = crate::shop::committed(&table, commit).await?;
    assert_eq!(crate::shop::sorted_lines(&[crate::shop::rows(&table).await?]), ["", "b"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_contradicts_itself_is_a_bug_and_changes_nothing() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    append_until(&lake, 2).await?;
    let table = open(&lake).await?;
    let files = table.files().await?;
    let adds = file_of(&table, &[1], 0).await?;
    let position = |app: &str| Progress { app_id: app.to_owned(), expected: None, version: 1 };
    let malformed = [
        Commit { adds: [adds.clone(), adds.clone()].concat(), ..Commit::default() },
        Commit { removes: files.clone(), ..Commit::default() },
        Commit { removes: [files.clone(), files.clone()].concat(), reads: Reads::WholeTable, ..Commit::default() },
        Commit { operation: Operation::Optimize, adds, removes: files, reads: Reads::Files, ..Commit::default() },
        Commit { progress: vec![position("a"), position("a")], ..Commit::default() },
        Commit { domains: BTreeMap::from([("delta.clustering".to_owned(), None)]), ..Commit::default() },
    ];
    for commit in malformed {
        assert!(matches!(table.commit(commit.clone()).await, Err(Error::Malformed { .. })), "{commit:?}");
    }
    assert_eq!(table.refresh().await?.version(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_the_callers_is_used_for_everything() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let root = url::Url::from_directory_path(folder.path().canonicalize()?).unwrap();
    let store = FaultyStore::new(Arc::new(LocalFileSystem::new()));
    let lake = Lake::open(Stores::wrap(Arc::new(store.clone()), root), LakeOptions::default())?;
    append_until(&lake, 1).await?;
    let table = open(&lake).await?;
    let data_files = |store: &FaultyStore| store.calls().iter().filter(|call| call.path.as_ref().ends_with(".zstd.parquet")).count();
    let before = data_files(&store);
    assert_eq!(numbers_in(&table).await?, expected(1));
    assert!(data_files(&store) > before, "queries read through the wrapped store too");
    Ok(())
}
