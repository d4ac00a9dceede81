//! Tables whose files carry deletion vectors, as other engines write them.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, Int64Array};
use delta_kernel::actions::deletion_vector_writer::{KernelDeletionVector, StreamingDeletionVectorWriter};
use roaring::RoaringTreemap;
use serde_json::{Value, json};
use tributary_lake::{Clock, ReadOptions, Table};
use tributary_specs::{Column, DataType};
use uuid::Uuid;

use crate::shop::{Shop, append, batch, collect, rows, sorted_lines};

fn z85(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let mut text = String::new();
    for chunk in bytes.chunks(4) {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        text.extend([85_u32.pow(4), 85_u32.pow(3), 85_u32.pow(2), 85, 1].map(|place| char::from(DIGITS[(word / place % 85) as usize])));
    }
    text
}

fn inline(deleted: &[u64]) -> Result<Value> {
    let mut bytes = 1_681_511_377_u32.to_le_bytes().to_vec();
    deleted.iter().copied().collect::<RoaringTreemap>().serialize_into(&mut bytes)?;
    Ok(json!({ "storageType": "i", "pathOrInlineDv": z85(&bytes), "sizeInBytes": bytes.len(), "cardinality": deleted.len() }))
}

async fn in_a_file(shop: &Shop, table: &Table, deleted: &[u64]) -> Result<Value> {
    let mut vector = KernelDeletionVector::new();
    vector.add_deleted_row_indexes(deleted.iter().copied());
    let mut bytes = Vec::new();
    let mut writer = StreamingDeletionVectorWriter::new(&mut bytes);
    let written = writer.write_deletion_vector(vector)?;
    writer.finalize()?;
    let id = Uuid::from_u128(7);
    shop.put(table, &format!("deletion_vector_{id}.bin"), bytes).await?;
    Ok(json!({
        "storageType": "u",
        "pathOrInlineDv": z85(id.as_bytes()),
        "offset": written.offset,
        "sizeInBytes": written.size_in_bytes,
        "cardinality": written.cardinality,
    }))
}

/// Marks rows of the table's only file as another engine would: the file goes and comes back with the vector.
async fn mark(shop: &Shop, table: &Table, vector: Value) -> Result<Table> {
    shop.minute_passes();
    let live = {
        let mut live = Value::Null;
        for version in 0..=table.version() {
            if let Some(add) = shop.actions(table, version, "add").await?.pop() {
                live = add;
            }
        }
        live
    };
    let mut add = live.clone();
    add["deletionVector"] = vector;
    let mut stats: Value = serde_json::from_str(live["stats"].as_str().unwrap())?;
    stats["tightBounds"] = false.into();
    add["stats"] = stats.to_string().into();
    let mut remove = json!({ "path": live["path"], "dataChange": true, "deletionTimestamp": 1, "partitionValues": {}, "size": live["size"], "extendedFileMetadata": true });
    if live.get("deletionVector").is_some_and(|vector| !vector.is_null()) {
        remove["deletionVector"] = live["deletionVector"].clone();
    }
    let info = json!({ "inCommitTimestamp": shop.clock.now().timestamp_millis(), "timestamp": 1, "operation": "DELETE" });
    let lines = format!("{}\n{}\n{}\n", json!({ "commitInfo": info }), json!({ "remove": remove }), json!({ "add": add }));
    shop.put(table, &format!("_delta_log/{:020}.json", table.version() + 1), lines.into_bytes()).await?;
    Ok(table.refresh().await?)
}

async fn ten_rows(shop: &Shop) -> Result<Table> {
    let table = shop.table("marked", vec![Column::new("id", DataType::Long)], &[]).await?;
    append(&table, &[batch(vec![("id", Arc::new(Int64Array::from_iter_values(0..10)) as ArrayRef)])]).await
}

/// FEAT-01
#[tokio::test(flavor = "multi_thread")]
async fn rows_marked_as_deleted_stay_away_from_every_reader() -> Result<()> {
    for inline_vector in [true, false] {
        let shop = Shop::open();
        let table = ten_rows(&shop).await?;
        let vector = if inline_vector { inline(&[0, 3, 4, 9])? } else { in_a_file(&shop, &table, &[0, 3, 4, 9]).await? };
        let table = mark(&shop, &table, vector).await?;
        let live = ["1", "2", "5", "6", "7", "8"];
        assert_eq!(sorted_lines(&[rows(&table).await?]), live);
        assert_eq!(sorted_lines(&shop.foreign_sql(&table, "SELECT id FROM t").await?), live);
        let files = table.files().await?;
        assert_eq!((files.len(), files[0].live_rows(), files[0].stats.rows), (1, Some(6), Some(10)));
        assert_eq!(sorted_lines(&[collect(table.read_file(&files[0], None).await?).await?]), live);
        let filter = datafusion::prelude::col("id").lt(datafusion::prelude::lit(4_i64));
        assert_eq!(sorted_lines(&[collect(table.read(ReadOptions { columns: None, filter: Some(filter) }).await?).await?]), ["1", "2"]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_of_a_vector_is_the_difference_to_the_one_before() -> Result<()> {
    let shop = Shop::open();
    let table = ten_rows(&shop).await?;
    let first = in_a_file(&shop, &table, &[0, 3]).await?;
    let table = mark(&shop, &table, first).await?;
    let table = mark(&shop, &table, inline(&[0, 3, 7])?).await?;
    let table = mark(&shop, &table, inline(&[0, 7])?).await?;
    let told = |from, to| {
        let table = table.clone();
        async move { anyhow::Ok(sorted_lines(&[collect(table.changes(from, to).await?).await?.project(&[0, 1, 2])?])) }
    };
    assert_eq!(told(2, 2).await?, ["0|delete|2", "3|delete|2"]);
    assert_eq!(told(3, 3).await?, ["7|delete|3"]);
    assert_eq!(told(4, 4).await?, ["3|insert|4"]);
    assert_eq!(sorted_lines(&[rows(&table).await?]).len(), 8);
    Ok(())
}
