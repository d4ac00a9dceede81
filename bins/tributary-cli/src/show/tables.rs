//! `tributary show tables`.

use tributary::Lake;
use tributary::arrow::array::RecordBatch;

use crate::failure::Failure;
use crate::output::{batch, instant, text, whole};
use crate::source_time::{SourceTime, SourceTimes};

/// A row a table: what it holds, and how far its content is behind the source in the source's own time.
pub async fn rows(lake: &Lake) -> Result<RecordBatch, Failure> {
    let mut times = SourceTimes::new(lake);
    let mut tables = Vec::new();
    for name in lake.tables().await? {
        tables.push(Row::of(lake, &name, &mut times).await?);
    }
    batch(vec![
        ("table", text(tables.iter().map(|row| Some(row.table.clone())))),
        ("rows", whole(tables.iter().map(|row| row.rows))),
        ("files", whole(tables.iter().map(|row| Some(row.files)))),
        ("bytes", whole(tables.iter().map(|row| Some(row.bytes)))),
        ("version", whole(tables.iter().map(|row| Some(row.version)))),
        ("source_time", instant(tables.iter().map(|row| row.source_time.reached))),
        ("behind_seconds", whole(tables.iter().map(|row| row.source_time.behind_seconds()))),
    ])
}

struct Row {
    table: String,
    /// Unknown where a file's statistics do not say.
    rows: Option<u64>,
    files: u64,
    bytes: u64,
    version: u64,
    source_time: SourceTime,
}

impl Row {
    async fn of(lake: &Lake, name: &tributary::TableName, times: &mut SourceTimes<'_>) -> Result<Self, Failure> {
        let table = lake.table(&name.to_string()).await?;
        let files = table.clone().into_inner().files().await?;
        Ok(Self {
            table: name.to_string(),
            rows: files.iter().map(|file| file.live_rows()).sum(),
            files: files.len() as u64,
            bytes: files.iter().map(|file| file.size).sum(),
            version: table.version(),
            source_time: times.of(&table).await?,
        })
    }
}
