//! `tributary show history TABLE`.

use tributary::Lake;
use tributary::arrow::array::RecordBatch;

use crate::failure::Failure;
use crate::output::{batch, instant, text, whole};

/// The commits of a table, newest first.
pub async fn rows(lake: &Lake, table: &str, limit: u64) -> Result<RecordBatch, Failure> {
    let table = lake.table(table).await?;
    let history = table.history(Some(usize::try_from(limit).unwrap_or(usize::MAX))).await?;
    let json = |pairs: String| Some(pairs).filter(|pairs| pairs != "{}");
    batch(vec![
        ("version", whole(history.iter().map(|commit| Some(commit.version)))),
        ("timestamp", instant(history.iter().map(|commit| Some(commit.timestamp)))),
        ("operation", text(history.iter().map(|commit| commit.operation.clone()))),
        ("files_added", whole(history.iter().map(|commit| Some(commit.files_added)))),
        ("files_removed", whole(history.iter().map(|commit| Some(commit.files_removed)))),
        ("metrics", text(history.iter().map(|commit| json(serde_json::json!(commit.metrics).to_string())))),
        ("positions", text(history.iter().map(|commit| json(serde_json::json!(commit.progress).to_string())))),
        ("engine", text(history.iter().map(|commit| commit.engine.clone()))),
    ])
}
