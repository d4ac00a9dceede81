//! The change feed read by version range, against the Delta library's own reading of it.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use chrono::{DateTime, TimeDelta, Utc};
use datafusion::prelude::SessionContext;
use deltalake::delta_datafusion::DeltaCdfTableProvider;
use tributary_lake::{ChangeFile, Commit, Error, Operation, Reads, Table};
use tributary_specs::{Column, DataType};

use crate::shop::{Shop, append, batch, collect, committed, sorted_lines, ten_o_clock, written};

fn columns() -> Vec<Column> {
    vec![Column::new("id", DataType::Long), Column::new("name", DataType::String), Column::new("part", DataType::String)]
}

fn people(rows: &[(i64, &str, &str)]) -> RecordBatch {
    batch(vec![
        ("id", Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>()) as ArrayRef),
        ("name", Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>())),
        ("part", Arc::new(rows.iter().map(|row| Some(row.2)).collect::<StringArray>())),
    ])
}

async fn changes(table: &Table, rows: &[(i64, &str, &str, &str)]) -> Result<Vec<ChangeFile>> {
    let plain: Vec<_> = rows.iter().map(|row| (row.0, row.1, row.2)).collect();
    let plain = people(&plain);
    let types: StringArray = rows.iter().map(|row| Some(row.3)).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![("_change_type", Arc::new(types))];
    let schema = plain.schema();
    columns.extend(schema.fields().iter().zip(plain.columns()).map(|(field, column)| (field.name().as_str(), Arc::clone(column))));
    let mut writer = table.change_writer();
    writer.write(&batch(columns)).await?;
    Ok(writer.finish().await?)
}

/// id, name, part, change, version.
async fn feed(table: &Table, from: u64, to: u64) -> Result<Vec<String>> {
    let all = collect(table.changes(from, to).await?).await?;
    Ok(sorted_lines(&[all.project(&[0, 1, 2, 3, 4])?]))
}

async fn foreign_feed(shop: &Shop, table: &Table, from: u64, to: u64) -> Result<Vec<String>> {
    let scan = shop.foreign(table).await?.scan_cdf().with_starting_version(from).with_ending_version(to);
    let context = SessionContext::new();
    context.register_table("feed", Arc::new(DeltaCdfTableProvider::try_new(scan)?))?;
    Ok(sorted_lines(&context.sql("SELECT id, name, part, _change_type, _commit_version FROM feed").await?.collect().await?))
}

/// Versions 1: inserts; 2: an update and an insert; 3: everything in part `b` goes; 4: rows only rearranged.
async fn history(shop: &Shop) -> Result<Table> {
    let table = shop.table("people", columns(), &["part"]).await?;
    shop.minute_passes();
    let table = append(&table, &[people(&[(1, "Ada", "a"), (2, "Ben", "a"), (3, "Cy", "b")])]).await?;
    shop.minute_passes();
    let removes = table.files().await?.into_iter().filter(|file| file.partition_values["part"].as_deref() == Some("a")).collect();
    let adds = written(&table, &[people(&[(1, "Ada L", "a"), (2, "Ben", "a"), (4, "Di", "a")])]).await?;
    let told = [(1, "Ada", "a", "update_preimage"), (1, "Ada L", "a", "update_postimage"), (4, "Di", "a", "insert")];
    let changes = changes(&table, &told).await?;
    let merge = Commit { operation: Operation::Merge, adds, removes, changes, reads: Reads::WholeTable, ..Commit::default() };
    let table = committed(&table, merge).await?;
    shop.minute_passes();
    let removes = table.files().await?.into_iter().filter(|file| file.partition_values["part"].as_deref() == Some("b")).collect();
    let table = committed(&table, Commit { operation: Operation::Merge, removes, reads: Reads::WholeTable, ..Commit::default() }).await?;
    shop.minute_passes();
    let removes = table.files().await?;
    let adds = written(&table, &[people(&[(4, "Di", "a"), (2, "Ben", "a"), (1, "Ada L", "a")])]).await?;
    committed(&table, Commit { operation: Operation::Optimize, adds, removes, reads: Reads::Files, ..Commit::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_tells_every_change_once_and_the_delta_library_agrees() -> Result<()> {
    let shop = Shop::open();
    let table = history(&shop).await?;
    assert_eq!(
        feed(&table, 0, 4).await?,
        [
            "1|Ada L|a|update_postimage|2",
            "1|Ada|a|insert|1",
            "1|Ada|a|update_preimage|2",
            "2|Ben|a|insert|1",
            "3|Cy|b|delete|3",
            "3|Cy|b|insert|1",
            "4|Di|a|insert|2",
        ]
    );
    for (from, to) in [(0, 4), (1, 1), (2, 2), (3, 3), (2, 4), (4, 4)] {
        assert_eq!(feed(&table, from, to).await?, foreign_feed(&shop, &table, from, to).await?, "{from} to {to}");
    }
    Ok(())
}

/// As many rows, also of no column.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_of_some_columns_is_the_feed_without_the_others() -> Result<()> {
    let shop = Shop::open();
    let table = history(&shop).await?;
    let all = collect(table.changes(1, 4).await?).await?;
    for (names, places) in [(vec!["part", "id"], vec![0, 2]), (vec!["part"], vec![2]), (vec!["name"], vec![1]), (vec![], vec![])] {
        let some = table.changes_of(&names.iter().map(|name| (*name).to_owned()).collect(), 1, 4).await?;
        let with_the_change = [places, vec![3, 4, 5]].concat();
        assert_eq!(sorted_lines(&[collect(some).await?]), sorted_lines(&[all.project(&with_the_change)?]), "{names:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_come_in_order_and_carry_their_commits_time() -> Result<()> {
    let shop = Shop::open();
    let table = history(&shop).await?;
    let all = collect(table.changes(1, 4).await?).await?;
    let told: Vec<String> = (0..all.num_rows())
        .map(|row| [4, 5].map(|column| arrow::util::display::array_value_to_string(all.column(column), row).unwrap()).join(" "))
        .collect();
    let mut runs = told.clone();
    runs.dedup();
    assert_eq!(runs, ["1 2026-02-01T10:01:00Z", "2 2026-02-01T10:02:00Z", "3 2026-02-01T10:03:00Z"]);
    Ok(())
}

/// CDF-01
#[tokio::test(flavor = "multi_thread")]
async fn a_range_of_instants_takes_the_commits_within_it_and_no_other() -> Result<()> {
    let shop = Shop::open();
    let table = history(&shop).await?;
    let at = |minutes: i64| -> DateTime<Utc> { ten_o_clock() + TimeDelta::minutes(minutes) };
    let seconds = TimeDelta::seconds(1);
    let versions = |from, to| {
        let table = table.clone();
        async move {
            let all = collect(table.changes_between(from, to).await?).await?;
            let mut versions = sorted_lines(&[all.project(&[4])?]);
            versions.dedup();
            anyhow::Ok(versions)
        }
    };
    assert_eq!(versions(at(-1), at(1) + seconds).await?, ["1"]);
    assert_eq!(versions(at(1), at(2)).await?, ["1", "2"], "both ends count");
    assert_eq!(versions(at(1) + seconds, at(2) - seconds).await?, Vec::<String>::new());
    assert_eq!(versions(at(2) + seconds, at(90)).await?, ["3"], "the end may lie after the last commit");
    assert_eq!(versions(at(60), at(90)).await?, Vec::<String>::new(), "a range after the last commit has no changes");
    assert_eq!(versions(at(-9), at(-8)).await?, Vec::<String>::new());
    let backwards = table.changes_between(at(2), at(1)).await.err().unwrap();
    assert!(matches!(backwards, Error::Range { .. }), "{backwards}");
    Ok(())
}

/// CDF-01
#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_is_backwards_or_beyond_the_table_is_an_error() -> Result<()> {
    let shop = Shop::open();
    let table = history(&shop).await?;
    let backwards = table.changes(3, 2).await.err().unwrap().to_string();
    assert!(backwards.contains("silver.people") && backwards.contains('3') && backwards.contains('2'), "{backwards}");
    let beyond = table.changes(5, 9).await.err().unwrap();
    assert!(matches!(beyond, Error::NoVersion { version: 9, latest: 4, .. }), "{beyond}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_whose_log_is_gone_is_named_and_never_skipped() -> Result<()> {
    use tributary_fault::Fault;
    let shop = Shop::open();
    let table = history(&shop).await?;
    deltalake::checkpoints::create_checkpoint(&shop.foreign(&table).await?, None).await?;
    for version in 0..=2 {
        shop.delete(&table, &format!("_delta_log/{version:020}.json")).await?;
    }
    // A lake opened afresh remembers nothing of the files.
    let lake = tributary_lake::Lake::open(shop.lake.stores().clone(), tributary_lake::LakeOptions::default())?;
    let table = lake.table(table.name()).await?.unwrap();
    let error = match table.changes(2, 4).await {
        Err(error) => error.to_string(),
        Ok(stream) => collect(stream).await.unwrap_err().root_cause().to_string(),
    };
    assert!(error.contains("silver.people") && error.contains("version 2") && error.contains('3'), "{error}");
    let missing = Error::NoVersion { table: table.name().clone(), version: 2, earliest: 3, latest: 4 };
    assert_eq!(missing.next_command().as_deref(), Some("tributary show history silver.people"));
    assert_eq!(feed(&table, 3, 4).await?, ["3|Cy|b|delete|3"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn older_versions_read_in_the_columns_of_the_latest() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("grows", vec![Column::new("id", DataType::Long)], &[]).await?;
    let table = append(&table, &[batch(vec![("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef)])]).await?;
    let wider = vec![Column::new("id", DataType::Long), Column::new("note", DataType::String)];
    let table = committed(&table, Commit { operation: Operation::Alter, schema: Some(wider), ..Commit::default() }).await?;
    let noted = batch(vec![("note", Arc::new(StringArray::from(vec!["n"])) as ArrayRef), ("id", Arc::new(Int64Array::from(vec![2])))]);
    let table = append(&table, &[noted]).await?;
    let all = collect(table.changes(0, table.version()).await?).await?;
    assert_eq!(sorted_lines(&[all.project(&[0, 1, 2, 3])?]), ["1||insert|1", "2|n|insert|3"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_file_takes_only_the_four_words_and_the_tables_columns() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("people", columns(), &["part"]).await?;
    let wrong = changes(&table, &[(1, "Ada", "a", "insert"), (2, "Ben", "a", "upsert")]).await.unwrap_err().to_string();
    assert!(wrong.contains("_change_type") && wrong.contains("row 1") && !wrong.contains("upsert"), "{wrong}");
    let mut writer = table.change_writer();
    let stray = writer.write(&batch(vec![("stray", Arc::new(Int64Array::from(vec![1])) as ArrayRef)])).await.unwrap_err().to_string();
    assert!(stray.contains("`stray`"), "{stray}");
    let files =
        changes(&table, &[(1, "a", "a b", "update_preimage"), (1, "b", "a b", "update_postimage"), (2, "c", "c", "delete")]).await?;
    assert_eq!(files.len(), 2);
    let counted = files
        .iter()
        .map(|file| (file.rows.update_preimage, file.rows.update_postimage, file.rows.delete, file.rows.insert))
        .collect::<Vec<_>>();
    assert!(counted.contains(&(1, 1, 0, 0)) && counted.contains(&(0, 0, 1, 0)), "{counted:?}");
    assert!(files.iter().all(|file| file.path.starts_with("_change_data/")));
    Ok(())
}
