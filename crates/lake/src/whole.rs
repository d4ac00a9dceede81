//! What holds of a table as a whole once a commit is in it: looked at before the commit.
//!
//! Row counts come from the log. For the other rules the columns they name are read, of every file that the commit leaves and of those
//! it adds; rows are told apart by a hash of 128 bits, a part of them at a time where there are many, so that memory is bounded.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Field, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use roaring::RoaringTreemap;
use tributary_specs::{Column, ExpectationAction, RuleCount, SetExpectation, SetRule};

use crate::file_scan::{FileScan, Rows};
use crate::partition::PartitionValues;
use crate::{Commit, Error, Result, Table, deletion_vector};

/// Keys that a message about rows names at most.
pub const KEYS_SHOWN: usize = 10;
/// Bytes that a row's hash takes while it is remembered.
const BYTES_A_ROW: u64 = 48;
const MICROS: i64 = 1_000_000;
const DAY_MICROS: i64 = 86_400 * MICROS;

/// What a rule of a whole table comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFinding {
    /// The rule's name.
    pub rule: String,
    /// Its action.
    pub action: ExpectationAction,
    /// Why it does not hold; none where it does.
    pub broken: Option<BrokenSet>,
}

/// Why a rule of a whole table does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenSet {
    /// In counts; no values of rows.
    pub reason: String,
    /// Up to [`KEYS_SHOWN`] of the keys that break it.
    pub keys: Vec<String>,
}

impl SetFinding {
    /// What forbids the commit, if anything.
    pub fn stop(&self) -> Option<&BrokenSet> {
        self.broken.as_ref().filter(|_| self.action == ExpectationAction::Fail)
    }

    /// As the report of a flow has it.
    pub fn count(&self, flow: &str) -> RuleCount {
        let failed = u64::from(self.broken.is_some());
        let (flow, action) = (flow.to_owned(), self.action.word().to_owned());
        RuleCount { flow, rule: self.rule.clone(), action, passed: 1 - failed, failed, dropped: 0 }
    }
}

impl Table {
    /// What rules come to after `commit`, which was planned on this snapshot; one finding a rule, in their order.
    ///
    /// # Errors
    /// [`Error::SchemaChange`] when a rule names a column that the table does not have then, or one of no time; store errors.
    pub async fn set_findings(&self, commit: &Commit, rules: &[SetExpectation], memory_limit: usize) -> Result<Vec<SetFinding>> {
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let after = After::new(self, commit).await?;
        let mut findings = Vec::with_capacity(rules.len());
        for SetExpectation { name, rule, action } in rules {
            let by_reason = |reason| BrokenSet { reason, keys: Vec::new() };
            let broken = match rule {
                SetRule::RowCount { min, max } => row_count(after.rows, *min, *max).map(by_reason),
                SetRule::Unique(columns) => after.repeated(columns, memory_limit).await?,
                SetRule::Freshness { column, max_age_seconds } => after.stale(column, *max_age_seconds).await?.map(by_reason),
            };
            findings.push(SetFinding { rule: name.clone(), action: *action, broken });
        }
        Ok(findings)
    }
}

fn row_count(rows: u64, min: Option<u64>, max: Option<u64>) -> Option<String> {
    let few = min.filter(|min| rows < *min).map(|min| format!("it would have {rows} rows, at least {min} are expected"));
    few.or_else(|| max.filter(|max| rows > *max).map(|max| format!("it would have {rows} rows, at most {max} are expected")))
}

/// A table as a commit leaves it.
struct After<'a> {
    table: &'a Table,
    columns: &'a [Column],
    /// Files to read; schemas are filled in.
    files: Vec<FileScan>,
    rows: u64,
}

impl<'a> After<'a> {
    async fn new(table: &'a Table, commit: &'a Commit) -> Result<Self> {
        let columns = commit.schema.as_deref().unwrap_or(table.columns());
        let schema: SchemaRef = Arc::new(Schema::empty());
        let scan = |path: &str, size, rows, partition_values: &PartitionValues| FileScan {
            log: table.log().clone(),
            path: path.to_owned(),
            size: Some(size),
            rows,
            schema: Arc::clone(&schema),
            partition_values: partition_values.clone(),
            read: Arc::default(),
        };
        let removed: HashSet<&str> = commit.removes.iter().map(|file| file.log_path.as_str()).collect();
        let marked: HashMap<&str, &[u64]> =
            commit.marks.iter().map(|marks| (marks.file.log_path.as_str(), marks.rows.as_slice())).collect();
        let (mut files, mut rows) = (Vec::new(), 0);
        for file in table.live_files().await?.iter().filter(|file| !removed.contains(file.log_path.as_str())) {
            let mut gone = match &file.deletion_vector {
                Some(vector) => deletion_vector::rows(table.log(), vector).await?,
                None => RoaringTreemap::new(),
            };
            gone.extend(marked.get(file.log_path.as_str()).copied().unwrap_or_default());
            rows += file.stats.rows.unwrap_or_default().saturating_sub(gone.len());
            files.push(scan(&file.path, file.size, Rows::Except(gone), &file.partition_values));
        }
        for file in &commit.adds {
            rows += file.rows;
            files.push(scan(&file.path, file.size, Rows::All, &file.partition_values));
        }
        Ok(Self { table, columns, files, rows })
    }

    fn schema(&self, names: &[String]) -> Result<SchemaRef> {
        let field = |name: &String| {
            let found = self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
            let reason = || format!("a rule of the whole table names column `{name}`, which it does not have");
            Ok(found.ok_or_else(|| self.refused(reason()))?.to_arrow().with_nullable(true))
        };
        Ok(Arc::new(Schema::new(names.iter().map(field).collect::<Result<Vec<_>>>()?)))
    }

    fn refused(&self, reason: String) -> Error {
        Error::SchemaChange { table: self.table.name().clone(), reason }
    }

    /// Every row, in these columns.
    fn read<'s>(&'s self, schema: &'s SchemaRef) -> BoxStream<'s, Result<RecordBatch>> {
        let scans = self.files.iter().map(|file| FileScan { schema: Arc::clone(schema), ..file.clone() });
        Box::pin(futures::stream::iter(scans.map(Ok)).and_then(FileScan::open).try_flatten())
    }

    /// How many rows have the values of another one, and some of these values.
    async fn repeated(&self, names: &[String], memory_limit: usize) -> Result<Option<BrokenSet>> {
        let schema = self.schema(names)?;
        let memory = (memory_limit as u64 / 4).max(1 << 20);
        let parts = (self.rows * BYTES_A_ROW).div_ceil(memory).max(1);
        let converter = RowConverter::new(schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect())?;
        let (low, high) = (BuildHasherDefault::<DefaultHasher>::default(), BuildHasherDefault::<DefaultHasher>::default());
        let (mut repeated, mut keys): (u64, Vec<String>) = (0, Vec::new());
        for part in 0..parts {
            let mut seen: HashSet<u128> = HashSet::new();
            let mut batches = self.read(&schema);
            while let Some(batch) = batches.try_next().await? {
                let rows = converter.convert_columns(batch.columns())?;
                for (at, row) in rows.iter().enumerate() {
                    let lower = low.hash_one(row.as_ref());
                    if lower % parts != part {
                        continue;
                    }
                    let hash = u128::from(lower) << 64 | u128::from(high.hash_one((1_u8, row.as_ref())));
                    if seen.insert(hash) {
                        continue;
                    }
                    repeated += 1;
                    if keys.len() < KEYS_SHOWN {
                        let key = row_text(&batch, at)?;
                        keys.extend((!keys.contains(&key)).then_some(key));
                    }
                }
            }
        }
        Ok((repeated > 0).then(|| BrokenSet { reason: format!("{repeated} rows would repeat {}", names.join(", ")), keys }))
    }

    /// Why the latest time is not late enough.
    async fn stale(&self, column: &str, max_age_seconds: u64) -> Result<Option<String>> {
        let schema = self.schema(&[column.to_owned()])?;
        let mut latest: Option<i64> = None;
        let mut batches = self.read(&schema);
        while let Some(batch) = batches.try_next().await? {
            let of_batch = match schema.field(0).data_type() {
                DataType::Timestamp(TimeUnit::Microsecond, _) => {
                    arrow::compute::max(batch.column(0).as_primitive::<TimestampMicrosecondType>())
                }
                DataType::Date32 => {
                    arrow::compute::max(batch.column(0).as_primitive::<Date32Type>()).map(|day| i64::from(day) * DAY_MICROS)
                }
                other => return Err(self.refused(format!("column `{column}` is {other}, and freshness asks for a time"))),
            };
            latest = latest.max(of_batch);
        }
        let Some(latest) = latest else { return Ok(Some(format!("no row has a time in {column}"))) };
        let age = (self.table.lake().clock().now().timestamp_micros() - latest) / MICROS;
        let most = i64::try_from(max_age_seconds).unwrap_or(i64::MAX);
        Ok((age > most).then(|| format!("the latest {column} is {age} seconds old, at most {most} are expected")))
    }
}

/// The key of a row as `column=value`, in the order of the key columns; none where none of them is there.
///
/// # Errors
/// When a value cannot be shown.
pub fn key_text(rows: &RecordBatch, key_columns: &[String], row: usize) -> std::result::Result<Option<String>, ArrowError> {
    let schema = rows.schema();
    let named = |key: &String| schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(key));
    let places: Vec<usize> = key_columns.iter().filter_map(named).collect();
    if places.is_empty() {
        return Ok(None);
    }
    row_text(&rows.project(&places)?, row).map(Some)
}

fn row_text(rows: &RecordBatch, row: usize) -> std::result::Result<String, ArrowError> {
    let options = FormatOptions::default().with_null("NULL");
    let schema = rows.schema();
    let value = |(field, column): (&Arc<Field>, &ArrayRef)| {
        Ok(format!("{}={}", field.name(), ArrayFormatter::try_new(column.as_ref(), &options)?.value(row)))
    };
    let texts = schema.fields().iter().zip(rows.columns()).map(value);
    Ok(texts.collect::<std::result::Result<Vec<_>, ArrowError>>()?.join(", "))
}

/// What a message says of keys behind everything else; nothing where there are none.
pub fn keys_named(keys: &[String]) -> String {
    if keys.is_empty() { String::new() } else { format!("; keys: {}", keys.join("; ")) }
}
