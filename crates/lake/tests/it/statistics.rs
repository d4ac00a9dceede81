//! Statistics never make a reader skip a row it was asked for.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use datafusion::prelude::{col, lit};
use tributary_lake::{ReadOptions, Table};
use tributary_specs::{Column, DataType};

use crate::shop::{Shop, append, batch, collect, rows, sorted_lines};

async fn ids(shop: &Shop, table: &Table, predicate: &str) -> Result<Vec<String>> {
    Ok(sorted_lines(&shop.foreign_sql(table, &format!("SELECT id FROM t WHERE {predicate}")).await?))
}

/// STATS-01
#[tokio::test(flavor = "multi_thread")]
async fn microseconds_at_the_edge_of_a_file_are_found_before_and_after_a_checkpoint() -> Result<()> {
    let shop = Shop::open();
    let columns = vec![Column::new("ts", DataType::Timestamp), Column::new("id", DataType::Long)];
    let table = shop.table("edge", columns, &[]).await?;
    let times = TimestampMicrosecondArray::from(vec![1_770_336_000_000_613, 1_770_330_600_000_000]).with_timezone("UTC");
    let table = append(&table, &[batch(vec![("ts", Arc::new(times)), ("id", Arc::new(Int64Array::from(vec![1, 2])))])]).await?;

    let stats: serde_json::Value = serde_json::from_str(shop.actions(&table, table.version(), "add").await?[0]["stats"].as_str().unwrap())?;
    assert_eq!(stats["maxValues"]["ts"], "2026-02-06T00:00:00.001Z", "rounded up, never down");

    for checkpointed in [false, true] {
        if checkpointed {
            deltalake::checkpoints::create_checkpoint(&shop.foreign(&table).await?, None).await?;
        }
        assert_eq!(ids(&shop, &table, "ts <= '2026-02-06T00:00:00Z'").await?, ["2"]);
        assert_eq!(ids(&shop, &table, "ts > '2026-02-06T00:00:00.0005Z'").await?, ["1"]);
        assert_eq!(ids(&shop, &table, "ts = '2026-02-06T00:00:00.000613Z'").await?, ["1"]);
        let latest = shop.foreign_sql(&table, "SELECT cast(max(ts) as bigint) FROM t").await?;
        assert_eq!(sorted_lines(&latest), ["1770336000000613"], "the rounded bound is never an answer");
    }
    Ok(())
}

/// STATS-03, MERGE-15
#[tokio::test(flavor = "multi_thread")]
async fn a_decimal_that_fills_its_precision_reads_back_and_its_statistics_have_its_scale() -> Result<()> {
    let shop = Shop::open();
    let decimal = |precision, scale| DataType::Decimal { precision, scale };
    let table = shop.table("full", vec![Column::new("v", decimal(1, 0)), Column::new("w", decimal(38, 6))], &[]).await?;
    let greatest = 10_i128.pow(38) - 1;
    let given = batch(vec![
        ("v", Arc::new(Decimal128Array::from(vec![1, 9]).with_precision_and_scale(1, 0)?) as ArrayRef),
        ("w", Arc::new(Decimal128Array::from(vec![greatest, -greatest]).with_precision_and_scale(38, 6)?)),
    ]);
    let table = append(&table, std::slice::from_ref(&given)).await?;
    assert_eq!(rows(&table).await?.columns(), given.columns());
    let stats = shop.actions(&table, table.version(), "add").await?[0]["stats"].as_str().unwrap().to_owned();
    assert!(stats.contains(r#""minValues":{"v":1,"w":-99999999999999999999999999999999.999999}"#), "{stats}");
    let foreign =
        shop.foreign_sql(&table, "SELECT v FROM t WHERE w = CAST('99999999999999999999999999999999.999999' AS DECIMAL(38, 6))").await?;
    assert_eq!(sorted_lines(&foreign), ["1"]);
    let files = table.files().await?;
    assert_eq!(files[0].stats.columns["w"].max, Some(datafusion::common::ScalarValue::Decimal128(Some(greatest), 38, 6)));
    Ok(())
}

/// STATS-05
#[tokio::test(flavor = "multi_thread")]
async fn a_text_too_long_for_statistics_hides_no_row() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("long", vec![Column::new("id", DataType::String), Column::new("body", DataType::String)], &[]).await?;
    let long = "z".repeat(4000);
    let text = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
    let table = append(&table, &[batch(vec![("id", text(vec!["k1", "k2"])), ("body", text(vec!["short", &long]))])]).await?;
    for (predicate, count) in [("id = 'k1'", 1), ("body IS NOT NULL", 2), ("body = 'short'", 1), ("body > 'zzz'", 1), ("body IS NULL", 0)] {
        assert_eq!(ids(&shop, &table, predicate).await?.len(), count, "{predicate}");
    }
    assert_eq!(ids(&shop, &table, &format!("body = '{long}'")).await?, ["k2"]);
    let own =
        collect(table.read(ReadOptions { columns: Some(vec!["id".to_owned()]), filter: Some(col("body").eq(lit(long))) }).await?).await?;
    assert_eq!(sorted_lines(&[own]), ["k2"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_beyond_the_first_columns_have_statistics_too() -> Result<()> {
    let shop = Shop::open();
    let mut columns: Vec<Column> = (0..40).map(|index| Column::new(format!("c{index}"), DataType::Long)).collect();
    columns.push(Column::new("key", DataType::Long));
    let table = shop.table("wide", columns, &[]).await?;
    let mut writer = table.writer(tributary_lake::WriterOptions { key_columns: vec!["key".to_owned()], ..Default::default() })?;
    writer.write(&batch(vec![("key", Arc::new(Int64Array::from(vec![5, 3])))])).await?;
    let stats: serde_json::Value = serde_json::from_str(&writer.finish().await?[0].stats)?;
    assert_eq!(
        (&stats["minValues"]["key"], &stats["nullCount"]["c31"], &stats["nullCount"]["c32"]),
        (&3.into(), &2.into(), &serde_json::Value::Null)
    );
    Ok(())
}

/// Parquet's own bounds pass over NaN: a reader that skips row groups by them would lose the row.
#[tokio::test(flavor = "multi_thread")]
async fn a_nan_is_found_by_a_filter_that_is_true_for_it() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("nan", vec![Column::new("id", DataType::Long), Column::new("x", DataType::Double)], &[]).await?;
    let numbers = Float64Array::from(vec![Some(f64::NAN), Some(-1.0), None]);
    let table =
        append(&table, &[batch(vec![("id", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef), ("x", Arc::new(numbers))])]).await?;
    assert_eq!(ids(&shop, &table, "x > 0").await?, ["1"]);
    let own = collect(table.read(ReadOptions { columns: Some(vec!["id".to_owned()]), filter: Some(col("x").gt(lit(0.0))) }).await?).await?;
    assert_eq!(sorted_lines(&[own]), ["1"]);
    Ok(())
}
