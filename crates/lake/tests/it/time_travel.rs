//! Instants become versions.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, Int64Array};
use chrono::{DateTime, TimeDelta, Utc};
use tributary_lake::{Clock as _, Error, SystemClock, Table};
use tributary_specs::{Column, DataType};

use crate::shop::{Shop, append, batch, ten_o_clock};

/// Versions 0, 1, 2 at 10:00, 10:10 and 10:20.
async fn three_versions(shop: &Shop) -> Result<Table> {
    let mut table = shop.table("times", vec![Column::new("id", DataType::Long)], &[]).await?;
    for id in 1..=2 {
        shop.clock.advance(TimeDelta::minutes(10));
        table = append(&table, &[batch(vec![("id", Arc::new(Int64Array::from(vec![id])) as ArrayRef)])]).await?;
    }
    Ok(table)
}

fn at(minutes: i64, millis: i64) -> DateTime<Utc> {
    ten_o_clock() + TimeDelta::minutes(minutes) + TimeDelta::milliseconds(millis)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instant_finds_the_last_version_made_then_or_earlier() -> Result<()> {
    let shop = Shop::open();
    let table = three_versions(&shop).await?;
    for (instant, version) in [(at(0, 0), 0), (at(10, -1), 0), (at(10, 0), 1), (at(19, 0), 1), (at(20, 0), 2), (at(600, 0), 2)] {
        assert_eq!(table.at_timestamp(instant).await?.version(), version, "{instant}");
    }
    let earlier = table.at_version(0).await?;
    assert_eq!(earlier.at_timestamp(at(15, 0)).await?.version(), 1, "an older snapshot looks at the same log");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instant_before_the_first_commit_is_an_error_that_says_when_that_was() -> Result<()> {
    let shop = Shop::open();
    let table = three_versions(&shop).await?;
    let error = table.at_timestamp(at(-1, 0)).await.unwrap_err();
    assert!(
        matches!(&error, Error::NoInstant { instant, earliest, .. } if instant == "2026-02-01T09:59:00Z" && earliest == "2026-02-01T10:00:00Z"),
        "{error}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_timestamps_of_its_own_goes_by_its_log_files() -> Result<()> {
    let shop = Shop::open();
    let model = three_versions(&shop).await?;
    let foreign = shop.table("foreign", vec![Column::new("id", DataType::Long)], &[]).await?;
    // The same table as an old writer would have left it: no in-commit timestamps, no features.
    let metadata = &shop.actions(&model, 0, "metaData").await?[0];
    let mut metadata = metadata.clone();
    metadata["configuration"] = serde_json::json!({});
    let protocol = serde_json::json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } });
    let first = format!("{protocol}\n{}\n", serde_json::json!({ "metaData": metadata }));
    shop.put(&foreign, "_delta_log/00000000000000000000.json", first.into_bytes()).await?;
    let before = SystemClock.now();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    shop.put(&foreign, "_delta_log/00000000000000000001.json", b"{\"commitInfo\":{\"timestamp\":1}}\n".to_vec()).await?;
    let lake = tributary_lake::Lake::open(shop.lake.stores().clone(), tributary_lake::LakeOptions::default())?;
    let foreign = lake.table(foreign.name()).await?.unwrap();
    assert_eq!(foreign.at_timestamp(before).await?.version(), 0);
    assert_eq!(foreign.at_timestamp(SystemClock.now()).await?.version(), 1);
    assert!(matches!(foreign.at_timestamp(before - TimeDelta::hours(1)).await, Err(Error::NoInstant { .. })));
    Ok(())
}
