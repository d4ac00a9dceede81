//! Somebody else who appends rows to silver's tables, of keys that no change has: through our `lake`, and, to the table that it
//! made itself, through delta-rs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use deltalake::kernel::{DataType as DeltaType, StructField};
use deltalake::protocol::SaveMode;
use deltalake::{DeltaTable, DeltaTableBuilder};
use serde::{Deserialize, Serialize};
use tributary_lake::arrow::datatypes::{DataType, Field, Schema};
use tributary_lake::{Commit, CommitOutcome, WriterOptions};
use tributary_testkit::Frame;
use url::Url;

use super::journal::Journal;
use super::tables::{SILVER, Silver, appended, columns, lake, table};
use crate::random::Random;

/// An entry of the appender's journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// Rows of these keys will be committed at once.
    Will {
        /// The table.
        table: String,
        /// Different in every entry.
        keys: Vec<i64>,
    },
    /// The rows of the entry before are there.
    Done,
}

/// What the entries come to: by table, keys committed for certain, and those of commits nobody knows of.
#[derive(Debug, Default)]
pub struct Appended {
    /// Each is there once.
    pub certain: BTreeMap<String, Vec<i64>>,
    /// Those of one commit are there once or not at all.
    pub unknown: BTreeMap<String, Vec<Vec<i64>>>,
}

impl Appended {
    /// Of journals.
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut all = Self::default();
        let mut open: Option<(String, Vec<i64>)> = None;
        for entry in entries {
            match (entry, open.take()) {
                (Entry::Will { table, keys }, before) => {
                    all.extend(before);
                    open = Some((table, keys));
                }
                (Entry::Done, Some((table, keys))) => all.certain.entry(table).or_default().extend(keys),
                (Entry::Done, None) => {}
            }
        }
        all.extend(open);
        all
    }

    fn extend(&mut self, unknown: Option<(String, Vec<i64>)>) {
        if let Some((table, keys)) = unknown {
            self.unknown.entry(table).or_default().push(keys);
        }
    }
}

/// Keys are beyond those of all changes, on both sides of them, so that statistics of a file with both exclude nothing.
const BEYOND: i64 = 1_000_000_000;

/// Appends until it is killed.
pub async fn run(warehouse: &Path, journal: &Journal, foreign: bool) -> Result<()> {
    let entries: Vec<Entry> = journal.entries();
    let mut commits = entries.iter().filter(|entry| matches!(entry, Entry::Will { .. })).count() as i64;
    let mut random = Random::new(commits as u64 ^ u64::from(foreign));
    let tables: Vec<&Silver> = SILVER.iter().filter(|silver| silver.foreign == foreign).collect();
    loop {
        let silver = tables[random.index(tables.len())];
        commits += 1;
        // a file of one side is no concern of who changes rows; one of both sides may hold their keys
        let sides = if random.chance(30) { [-1, 1].as_slice() } else { &[1] };
        let keys: Vec<i64> = sides.iter().flat_map(|side| (0..5).map(move |row| side * (BEYOND + 5 * commits + row))).collect();
        let rows: Vec<_> = keys.iter().map(|key| appended(silver.kind, *key)).collect();
        let intention = Entry::Will { table: silver.name.to_owned(), keys };
        if foreign {
            let table = open_foreign(warehouse, silver.name).await?;
            let rows = Frame::from_rows(foreign_schema(), &rows).into_batch();
            journal.add(&intention)?;
            // delta-rs refuses an append next to a commit that removes rows, and may be wrong about what became of it: nobody knows
            if table.write([rows]).with_save_mode(SaveMode::Append).await.is_ok() {
                journal.add(&Entry::Done)?;
            }
        } else if let Some(table) = table(&lake(warehouse)?, silver.name).await? {
            let schema = table.schema();
            let fields: Vec<Field> = columns(silver.kind)
                .iter()
                .map(|name| schema.field_with_name(name).cloned().with_context(|| format!("{} has no {name}", silver.name)))
                .collect::<Result<_>>()?;
            let rows = Frame::from_rows(Arc::new(Schema::new(fields)), &rows).into_batch();
            let mut writer = table.writer(WriterOptions::default())?;
            writer.write(&rows).await?;
            let commit = Commit { adds: writer.finish().await?, ..Commit::default() };
            journal.add(&intention)?;
            let outcome = table.commit(commit).await?;
            ensure!(matches!(outcome, CommitOutcome::Committed { .. }), "an append to {} ended with {outcome:?}", silver.name);
            journal.add(&Entry::Done)?;
        }
        tokio::time::sleep(Duration::from_millis(100 + random.below(400))).await;
    }
}

fn foreign_schema() -> Arc<Schema> {
    let of = |name: &str, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        of("id", DataType::Int64),
        of("name", DataType::Utf8),
        of("amount", DataType::Decimal128(12, 2)),
        of("seq", DataType::Int64),
    ]))
}

fn foreign(warehouse: &Path, name: &str) -> Result<DeltaTableBuilder> {
    let folder = warehouse.join("main").join(name.replace('.', "/"));
    std::fs::create_dir_all(&folder).context("the table's folder")?;
    let url = Url::from_directory_path(&folder).ok().context("an absolute folder")?;
    Ok(DeltaTableBuilder::from_url(url)?)
}

async fn open_foreign(warehouse: &Path, name: &str) -> Result<DeltaTable> {
    foreign(warehouse, name)?.load().await.with_context(|| format!("delta-rs opens {name}"))
}

/// Has delta-rs make the tables that are its own.
pub async fn create_foreign(warehouse: &Path) -> Result<()> {
    for silver in SILVER.iter().filter(|silver| silver.foreign) {
        let of = |name: &str, data_type: DeltaType| StructField::new(name, data_type, true);
        let columns = [
            of("id", DeltaType::LONG),
            of("name", DeltaType::STRING),
            of("amount", DeltaType::decimal(12, 2)?),
            of("seq", DeltaType::LONG),
        ];
        let table = foreign(warehouse, silver.name)?.build()?;
        table.create().with_columns(columns).await.with_context(|| format!("delta-rs makes {}", silver.name))?;
    }
    Ok(())
}
