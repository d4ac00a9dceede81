//! Tables as a long life of the dataset would have left them, made once and kept; each run gets a copy of its own by hard links.
//!
//! ```text
//! <CARGO_TARGET_DIR>/bench-data/silver-<rows>-<order>-<policy>-<seed>-<shape>/
//!     feed/       a lake: bronze.orders, still empty, and silver.orders at its version
//!     plain/      the same without a change feed
//!     peer-feed/  the files of silver.orders as a table that delta-rs writes to
//!     peer-plain/ the same without a change feed
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures::stream::{self, StreamExt, TryStreamExt};
use parquet::file::metadata::ParquetMetaDataReader;
use serde_json::{Value, json};
use tributary_lake::arrow::array::{ArrayRef, RecordBatch, StringArray};
use tributary_lake::arrow::datatypes::{DataType, Field, Schema};
use tributary_lake::{Commit, CommitOutcome, Lake, NewFile, Operation, Progress, Reads, Table, WriterOptions};
use tributary_silver_merge::Options;
use tributary_specs::TableSpec;

use super::data::{self, Batch, Random, SEED, Spread};
use super::lake::{self as ours, Policy};
use crate::files::{link_all, remove};

/// In which order the rows of a table lie in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Random,
    Key,
}

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub rows: u64,
    pub files: u64,
    pub order: Order,
    pub policy: Policy,
}

impl Shape {
    /// As it is printed.
    pub fn words(&self) -> String {
        let order = match self.order {
            Order::Random => "random order",
            Order::Key => "key order",
        };
        format!("{} rows in {order}", self.rows)
    }
}

/// One of the folders of a prepared table.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    Lake { feed: bool },
    Peer { feed: bool },
}

impl Part {
    fn folder(self) -> &'static str {
        match self {
            Self::Lake { feed: true } => "feed",
            Self::Lake { feed: false } => "plain",
            Self::Peer { feed: true } => "peer-feed",
            Self::Peer { feed: false } => "peer-plain",
        }
    }
}

/// Where silver's table is in a lake, and bronze's.
pub const SILVER: &str = "main/silver/orders";

/// Counted up when files are written otherwise, so that tables are made anew.
const LAYOUT: u32 = 3;

/// A table that is there.
#[derive(Debug)]
pub struct Prepared {
    folder: PathBuf,
}

impl Prepared {
    /// Makes the table, or finds it made.
    pub async fn of(data: &Path, shape: Shape) -> Result<Self> {
        let scratch = data.join("making");
        remove(&scratch)?;
        let lake = ours::open(&scratch.join("feed"), usize::MAX)?;
        let spec = ours::declared(&lake, shape.policy).await?;
        let mut hasher = DefaultHasher::new();
        (LAYOUT, format!("{spec:?}")).hash(&mut hasher);
        let Shape { rows, files, order, policy } = shape;
        let folder = data.join(format!("silver-{rows}-{files}-{order:?}-{policy:?}-{SEED}-{:016x}", hasher.finish()).to_lowercase());
        if !folder.is_dir() {
            eprintln!("making a table of {}", shape.words());
            fill(&lake, &scratch.join("feed"), &spec, shape).await?;
            without_feed(&scratch)?;
            for feed in [true, false].into_iter().filter(|_| policy != Policy::Stamped) {
                peer(&scratch, feed)?;
            }
            fs::rename(&scratch, &folder)?;
        }
        Ok(Self { folder })
    }

    /// A copy of a part of it, by hard links: nothing ever writes to a file that is there.
    pub fn copy(&self, part: Part, to: &Path) -> Result<()> {
        remove(to)?;
        link_all(&self.folder.join(part.folder()), to)
    }

    /// Gives up the table: it is made again when it is needed again.
    pub fn remove(self) -> Result<()> {
        remove(&self.folder)
    }
}

/// Writes the rows, file by file, in one commit at the source's first version.
async fn fill(lake: &Lake, folder: &Path, spec: &TableSpec, shape: Shape) -> Result<()> {
    let mut table = lake.create(spec).await?;
    let mut says = BTreeMap::new();
    let mut progress = vec![Progress { app_id: format!("tributary:source:{}", ours::BRONZE), expected: None, version: 0 }];
    if shape.policy == Policy::Stamped {
        says = first_row(lake, folder, &table, shape).await?;
        table = table.refresh().await?;
        progress.clear(); // silver's own is there
    }
    let mut indexes: Vec<u32> = (0..u32::try_from(shape.rows)?).collect();
    if shape.order == Order::Random {
        Random::new(shape.rows).shuffle(&mut indexes);
    }
    let per_file = shape.rows.div_ceil(shape.files) as usize;
    let parts: Vec<Vec<u32>> = indexes.chunks(per_file).map(<[u32]>::to_vec).collect();
    drop(indexes);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let files = stream::iter(parts).map(|part| tokio::spawn(file(table.clone(), says.clone(), part))).buffered(cores);
    let files: Vec<_> = files.map(|file| file?).try_collect().await?;
    let (adds, removes) = (files.concat(), table.files().await?);
    let reads = if removes.is_empty() { Reads::default() } else { Reads::WholeTable };
    match table.commit(Commit { operation: Operation::Merge, adds, removes, progress, reads, ..Commit::default() }).await? {
        CommitOutcome::Committed { .. } => Ok(()),
        other => bail!("the table was not filled: {other:?}"),
    }
}

/// Takes one order in by silver itself; returns what its file says in its footer.
async fn first_row(lake: &Lake, folder: &Path, table: &Table, shape: Shape) -> Result<BTreeMap<String, String>> {
    let batch = Batch { spread: Spread::Recent, changes: 1, rows: shape.rows, number: 0, before_images: true };
    ours::append(lake, &batch).await?;
    ours::merge(lake, shape.policy, &Options::default()).await?;
    let files = table.refresh().await?.files().await?;
    let [file] = files.as_slice() else { bail!("one order is in {} files", files.len()) };
    let footer = ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(folder.join(SILVER).join(&file.path))?)?;
    let said = footer.file_metadata().key_value_metadata().into_iter().flatten();
    Ok(said.filter(|said| said.key.starts_with("tributary.")).filter_map(|said| Some((said.key.clone(), said.value.clone()?))).collect())
}

/// Writes rows into one file.
async fn file(table: Table, says: BTreeMap<String, String>, indexes: Vec<u32>) -> Result<Vec<NewFile>> {
    let key_columns = vec!["order_id".to_owned()];
    let options = WriterOptions { file_bytes_target: Some(u64::MAX), key_columns, says, ..WriterOptions::default() };
    let mut writer = table.writer(options)?;
    for rows in indexes.chunks(65_536) {
        writer.write(&first_rows(&table, rows)?).await?;
    }
    Ok(writer.finish().await?)
}

/// Rows as a snapshot of the source left them.
fn first_rows(table: &Table, indexes: &[u32]) -> Result<RecordBatch> {
    let keys: Vec<i64> = indexes.iter().map(|index| data::key(u64::from(*index))).collect();
    let orders = data::orders(&keys, 0)?;
    let mut fields: Vec<Field> = orders.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns = orders.columns().to_vec();
    for name in ["__position", "__START_AT"] {
        if table.schema().column_with_name(name).is_some() {
            fields.push(Field::new(name, DataType::Utf8, true));
            columns.push(Arc::new(StringArray::from(vec![data::SNAPSHOT_POSITION; keys.len()])) as ArrayRef);
        }
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// The lake once more, its table as one that others made without a change feed.
fn without_feed(made: &Path) -> Result<()> {
    let plain = made.join("plain");
    link_all(&made.join("feed"), &plain)?;
    let first = log_file(&plain.join(SILVER), 0);
    let mut lines = Vec::new();
    for line in fs::read_to_string(&first)?.lines() {
        let mut action: Value = serde_json::from_str(line)?;
        if let Some(configuration) = action.pointer_mut("/metaData/configuration").and_then(Value::as_object_mut) {
            configuration.insert("delta.enableChangeDataFeed".to_owned(), "false".into());
            // or it would be brought up to date, as a table of ours
            configuration.remove("tributary.format");
        }
        lines.push(action.to_string());
    }
    fs::remove_file(&first)?; // or the other lake's would change with it
    Ok(fs::write(first, lines.join("\n") + "\n")?)
}

/// The same files as a table without the features that delta-rs refuses.
fn peer(made: &Path, feed: bool) -> Result<()> {
    let (from, to) = (made.join("feed").join(SILVER), made.join(Part::Peer { feed }.folder()));
    link_all(&from, &to)?;
    let log = to.join("_delta_log");
    let mut actions = BTreeMap::<&str, Vec<Value>>::new();
    for version in 0..2 {
        for line in fs::read_to_string(log_file(&to, version))?.lines() {
            let action: Value = serde_json::from_str(line)?;
            for kind in ["metaData", "add"] {
                if let Some(found) = action.get(kind) {
                    actions.entry(kind).or_default().push(found.clone());
                }
            }
        }
    }
    fs::remove_dir_all(&log)?;
    fs::create_dir(&log)?;
    let mut metadata = actions.get("metaData").and_then(|found| found.first()).context("the table has no metadata")?.clone();
    metadata["configuration"] = if feed { json!({ "delta.enableChangeDataFeed": "true" }) } else { json!({}) };
    let mut lines = vec![
        json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": if feed { 4 } else { 2 } } }).to_string(),
        json!({ "metaData": metadata }).to_string(),
    ];
    lines.extend(actions.remove("add").unwrap_or_default().into_iter().map(|add| json!({ "add": add }).to_string()));
    Ok(fs::write(log_file(&to, 0), lines.join("\n") + "\n")?)
}

/// Lets a peer's table have deletion vectors, as Spark writes them where they are declared.
pub fn allow_vectors(table: &Path) -> Result<()> {
    let first = log_file(table, 0);
    let mut lines = Vec::new();
    for line in fs::read_to_string(&first)?.lines() {
        let mut action: Value = serde_json::from_str(line)?;
        if let Some(protocol) = action.get_mut("protocol") {
            let writer = json!(["deletionVectors", "changeDataFeed", "appendOnly", "invariants"]);
            *protocol =
                json!({ "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": writer });
        }
        if let Some(configuration) = action.pointer_mut("/metaData/configuration").and_then(Value::as_object_mut) {
            configuration.insert("delta.enableDeletionVectors".to_owned(), "true".into());
        }
        lines.push(action.to_string());
    }
    fs::remove_file(&first)?; // or the prepared table's would change with it
    Ok(fs::write(first, lines.join("\n") + "\n")?)
}

fn log_file(table: &Path, version: u64) -> PathBuf {
    table.join("_delta_log").join(format!("{version:020}.json"))
}
