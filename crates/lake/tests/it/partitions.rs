//! Partition values of every kind come back as they went in, in ours and in the Delta library's reading.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use object_store::ObjectStore;
use tributary_fault::{Fault, FaultClass};
use tributary_lake::{Commit, Lake, LakeOptions, Operation, Reads, Stores, Table};
use tributary_specs::{Column, DataType, TableName, TableSpec};

use crate::shop::{Shop, append, batch, collect, committed, rows, sorted_lines, written};

const SITES: [&str; 18] = [
    "a/b",
    "/lead",
    "trail/",
    "50%",
    "x:y",
    "q?",
    "r&d",
    "é",
    "a b",
    "#1",
    "2026-02-01 00:00:00",
    "north hall",
    "a\tb",
    "1+1",
    "50%25",
    "..",
    "日本",
    "a=b",
];

fn readings(sites: &[&str], values: &[i64]) -> RecordBatch {
    batch(vec![("site", Arc::new(StringArray::from(sites.to_vec())) as ArrayRef), ("v", Arc::new(Int64Array::from(values.to_vec())))])
}

async fn readings_table(shop: &Shop) -> Result<Table> {
    shop.table("readings", vec![Column::new("site", DataType::String), Column::new("v", DataType::Long)], &["site"]).await
}

/// Rewrites every file as a row-level change does: rows out, the same rows with `v + 1` in.
async fn rewrite(table: &Table) -> Result<Table> {
    let removes = table.files().await?;
    let mut adds = Vec::new();
    for file in &removes {
        let old = collect(table.read_file(file, None).await?).await?;
        let values: Int64Array = old.column_by_name("v").unwrap().as_primitive::<Int64Type>().unary(|value| value + 1);
        adds.extend(
            written(table, &[batch(vec![("site", Arc::clone(old.column_by_name("site").unwrap())), ("v", Arc::new(values))])]).await?,
        );
    }
    committed(table, Commit { operation: Operation::Merge, adds, removes, reads: Reads::WholeTable, ..Commit::default() }).await
}

/// PART-01, MERGE-01
#[tokio::test(flavor = "multi_thread")]
async fn every_character_in_a_partition_value_survives_append_rewrite_and_reading_by_others() -> Result<()> {
    let shop = Shop::open();
    let mut table = append(&readings_table(&shop).await?, &[readings(&SITES, &[0; SITES.len()])]).await?;
    for round in 0..3 {
        let expected: BTreeSet<String> = SITES.iter().map(|site| format!("{site}|{round}")).collect();
        assert_eq!(sorted_lines(&[rows(&table).await?]).into_iter().collect::<BTreeSet<_>>(), expected);
        assert_eq!(rows(&table).await?.num_rows(), SITES.len(), "no row twice");
        let foreign = shop.foreign_sql(&table, "SELECT site, v FROM t").await?;
        assert_eq!(sorted_lines(&foreign).into_iter().collect::<BTreeSet<_>>(), expected);
        for site in SITES {
            let found = shop.foreign_sql(&table, &format!("SELECT v FROM t WHERE site = '{site}'")).await?;
            assert_eq!(sorted_lines(&found), [round.to_string()], "{site}");
        }
        assert_eq!(table.files().await?.len(), SITES.len(), "each rewrite removes what it replaces");
        table = rewrite(&table).await?;
    }

    let on_disk: BTreeSet<String> = shop.store.list(None).map_ok(|file| file.location.to_string()).try_collect().await?;
    for version in 1..=table.version() {
        for add in shop.actions(&table, version, "add").await? {
            let value = add["partitionValues"]["site"].as_str().unwrap();
            assert!(SITES.contains(&value), "the log holds the raw value, not {value}");
            let decoded = object_store::path::Path::from_url_path(format!("lake/main/silver/readings/{}", add["path"].as_str().unwrap()))?;
            assert!(on_disk.contains(decoded.as_ref()), "{decoded} is named by the log and on disk");
        }
    }
    Ok(())
}

/// PART-01
#[tokio::test(flavor = "multi_thread")]
async fn every_character_survives_on_a_local_disk_too() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let lake = Lake::open(Stores::local(folder.path())?, LakeOptions::default())?;
    let mut spec =
        TableSpec::new(TableName::new("bronze", "readings"), vec![Column::new("site", DataType::String), Column::new("v", DataType::Long)]);
    spec.partition_by = vec!["site".to_owned()];
    let long = "x".repeat(5000);
    let sites: Vec<&str> = SITES.into_iter().chain([long.as_str()]).collect();
    let table = append(&lake.create(&spec).await?, &[readings(&sites, &vec![7; sites.len()])]).await?;
    let expected: BTreeSet<String> = sites.iter().map(|site| format!("{site}|7")).collect();
    assert_eq!(sorted_lines(&[rows(&table).await?]).into_iter().collect::<BTreeSet<_>>(), expected);
    for file in table.files().await? {
        assert!(folder.path().join("main/bronze/readings").join(&file.path).is_file(), "{}", file.path);
    }
    Ok(())
}

/// PART-03
#[tokio::test(flavor = "multi_thread")]
async fn null_is_null_in_the_log_and_an_empty_text_is_refused_by_name() -> Result<()> {
    let shop = Shop::open();
    let table = readings_table(&shop).await?;
    let sites = StringArray::from(vec![Some("abc"), None]);
    let table =
        append(&table, &[batch(vec![("site", Arc::new(sites) as ArrayRef), ("v", Arc::new(Int64Array::from(vec![1, 1])))])]).await?;
    let logged: Vec<_> =
        shop.actions(&table, table.version(), "add").await?.iter().map(|add| add["partitionValues"]["site"].clone()).collect();
    assert!(logged.contains(&serde_json::Value::Null) && logged.contains(&"abc".into()), "{logged:?}");
    let grouped = shop.foreign_sql(&table, "SELECT site, count(*) FROM t GROUP BY site").await?;
    assert_eq!(
        sorted_lines(&grouped),
        ["abc|1", "|1"].map(str::to_owned).into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    );

    let error = written(&table, &[readings(&["x", ""], &[1, 2])]).await.unwrap_err();
    let error = error.downcast_ref::<tributary_lake::Error>().unwrap();
    assert_eq!(error.class(), FaultClass::BadInput);
    assert!(error.to_string().contains("`site`") && error.to_string().contains("row 1"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_in_a_number_partition_reads_as_null() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("numbers", vec![Column::new("k", DataType::Integer), Column::new("v", DataType::Long)], &["k"]).await?;
    let keys = arrow::array::Int32Array::from(vec![Some(7), None]);
    let table = append(&table, &[batch(vec![("k", Arc::new(keys) as ArrayRef), ("v", Arc::new(Int64Array::from(vec![1, 2])))])]).await?;
    assert_eq!(sorted_lines(&[rows(&table).await?]), ["7|1", "|2"]);
    assert_eq!(sorted_lines(&shop.foreign_sql(&table, "SELECT v FROM t WHERE k IS NULL").await?), ["2"]);
    Ok(())
}

/// PART-05
#[tokio::test(flavor = "multi_thread")]
async fn a_time_partition_is_utc_and_says_so() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("by_time", vec![Column::new("ts", DataType::Timestamp), Column::new("id", DataType::Long)], &["ts"]).await?;
    let tokyo = TimestampMicrosecondArray::from(vec![1_769_871_600_000_000]).with_timezone("+09:00");
    let table = append(&table, &[batch(vec![("ts", Arc::new(tokyo) as ArrayRef), ("id", Arc::new(Int64Array::from(vec![1])))])]).await?;
    assert_eq!(shop.actions(&table, table.version(), "add").await?[0]["partitionValues"]["ts"], "2026-01-31T15:00:00.000000Z");
    assert_eq!(sorted_lines(&shop.foreign_sql(&table, "SELECT id FROM t WHERE ts = '2026-01-31T15:00:00Z'").await?), ["1"]);
    assert_eq!(sorted_lines(&[rows(&table).await?]), ["2026-01-31T15:00:00Z|1"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_too_long_for_a_folder_still_reads_back() -> Result<()> {
    let shop = Shop::open();
    let long = "x".repeat(5000);
    let table = append(&readings_table(&shop).await?, &[readings(&[&long], &[1])]).await?;
    assert_eq!(sorted_lines(&[rows(&table).await?]), [format!("{long}|1")]);
    assert_eq!(sorted_lines(&shop.foreign_sql(&table, "SELECT length(site) FROM t").await?), ["5000"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_keep_their_order_in_files_of_a_partition_and_memory_stays_bounded() -> Result<()> {
    let shop = Shop::open();
    let table = readings_table(&shop).await?;
    let options = tributary_lake::WriterOptions { memory_limit: 64 << 10, file_bytes_target: Some(32 << 10), ..Default::default() };
    let mut writer = table.writer(options)?;
    let sites: Vec<String> = (0..50_000).map(|row| format!("s{}", row % 3)).collect();
    let sites: Vec<&str> = sites.iter().map(String::as_str).collect();
    // Values that do not compress, in a known order.
    let values: Vec<i64> = (0..50_000_i64).map(|row| row.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed())).collect();
    for chunk in 0..10 {
        let range = chunk * 5000..(chunk + 1) * 5000;
        writer.write(&readings(&sites[range.clone()], &values[range])).await?;
    }
    let files = writer.finish().await?;
    assert!(files.len() > 6, "files roll: {}", files.len());
    let table = committed(&table, Commit { adds: files.clone(), ..Commit::default() }).await?;
    let live = table.files().await?;
    let mut seen = vec![Vec::new(); 3];
    for new in &files {
        let file = live.iter().find(|file| file.path == new.path).unwrap();
        let rows = collect(table.read_file(file, None).await?).await?;
        let site = new.partition_values["site"].as_deref().unwrap()[1..].parse::<usize>()?;
        seen[site].extend_from_slice(rows.column_by_name("v").unwrap().as_primitive::<Int64Type>().values());
    }
    for (site, seen) in seen.iter().enumerate() {
        let expected: Vec<i64> = values.iter().copied().skip(site).step_by(3).collect();
        assert_eq!(*seen, expected);
    }
    Ok(())
}
