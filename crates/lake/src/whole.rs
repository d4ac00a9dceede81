//! What holds of a table as a whole once a commit is in it: looked at before the commit.
//!
//! Row counts come from the log. For the other rules the columns they name are read, of every file that the commit leaves and of those
//! it adds; rows are told apart by a hash of 128 bits, a part of them at a time where there are many, so that memory is bounded.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::row::{RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use roaring::RoaringTreemap;
use tributary_specs::{Column, SetExpectation, SetRule};

use crate::file_scan::{FileScan, Rows};
use crate::{Commit, Error, Result, Table, deletion_vector};

/// Keys shown at most.
const KEYS_SHOWN: usize = 10;
/// Bytes that a row's hash takes while it is remembered.
const BYTES_A_ROW: u64 = 48;
const MICROS: i64 = 1_000_000;
const DAY_MICROS: i64 = 86_400 * MICROS;

/// A rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFinding {
    /// The rule's name.
    pub rule: String,
    /// Why not, in counts; no values of rows.
    pub reason: String,
    /// Up to ten of the keys that break it.
    pub keys: Vec<String>,
}

impl Table {
    /// The rules that would not hold after `commit`, which was planned on this snapshot.
    ///
    /// # Errors
    /// [`Error::SchemaChange`] when a rule names a column that the table does not have then, or one of no time; store errors.
    pub async fn set_findings(&self, commit: &Commit, rules: &[SetExpectation], memory_limit: usize) -> Result<Vec<SetFinding>> {
        let after = After::new(self, commit).await?;
        let mut findings = Vec::new();
        for rule in rules {
            let found = match &rule.rule {
                SetRule::RowCount { min, max } => row_count(after.rows, *min, *max).map(|reason| (reason, Vec::new())),
                SetRule::Unique(columns) => after.repeated(columns, memory_limit).await?,
                SetRule::Freshness { column, max_age_seconds } => after.stale(column, *max_age_seconds).await?.map(|why| (why, Vec::new())),
            };
            findings.extend(found.map(|(reason, keys)| SetFinding { rule: rule.name.clone(), reason, keys }));
        }
        Ok(findings)
    }
}

fn row_count(rows: u64, min: Option<u64>, max: Option<u64>) -> Option<String> {
    if min.is_some_and(|min| rows < min) {
        return Some(format!("it would have {rows} rows, at least {} are expected", min.unwrap_or_default()));
    }
    max.filter(|max| rows > *max).map(|max| format!("it would have {rows} rows, at most {max} are expected"))
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
        let log = table.log();
        let schema: SchemaRef = Arc::new(Schema::empty());
        let (mut files, mut rows) = (Vec::new(), 0);
        for file in table.live_files().await? {
            if commit.removes.iter().any(|removed| removed.log_path == file.log_path) {
                continue;
            }
            let mut gone = match &file.deletion_vector {
                Some(vector) => deletion_vector::rows(log, vector).await?,
                None => RoaringTreemap::new(),
            };
            let marks = commit.marks.iter().find(|marks| marks.file.log_path == file.log_path);
            gone.extend(marks.iter().flat_map(|marks| marks.rows.iter().copied()));
            rows += file.stats.rows.unwrap_or_default().saturating_sub(gone.len());
            files.push(FileScan {
                log: log.clone(),
                path: file.path.clone(),
                size: Some(file.size),
                rows: Rows::Except(gone),
                schema: Arc::clone(&schema),
                partition_values: file.partition_values.clone(),
            });
        }
        for file in &commit.adds {
            rows += file.rows;
            files.push(FileScan {
                log: log.clone(),
                path: file.path.clone(),
                size: Some(file.size),
                rows: Rows::All,
                schema: Arc::clone(&schema),
                partition_values: file.partition_values.clone(),
            });
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
    async fn repeated(&self, names: &[String], memory_limit: usize) -> Result<Option<(String, Vec<String>)>> {
        let schema = self.schema(names)?;
        let memory = (memory_limit as u64 / 4).max(1 << 20);
        let parts = (self.rows * BYTES_A_ROW).div_ceil(memory).max(1);
        let converter = RowConverter::new(schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect())?;
        let (low, high) = (BuildHasherDefault::<DefaultHasher>::default(), BuildHasherDefault::<DefaultHasher>::default());
        let (mut repeated, mut shown): (u64, Vec<String>) = (0, Vec::new());
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
                    let key = if shown.len() < KEYS_SHOWN { Some(key_text(&batch, at)?) } else { None };
                    shown.extend(key.filter(|key| !shown.contains(key)));
                }
            }
        }
        Ok((repeated > 0).then(|| (format!("{repeated} rows would repeat {}", names.join(", ")), shown)))
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

/// The values of a row as `column=value`, in the order of the columns.
///
/// # Errors
/// When a value cannot be shown.
pub fn key_text(keys: &RecordBatch, row: usize) -> std::result::Result<String, arrow::error::ArrowError> {
    let options = FormatOptions::default().with_null("NULL");
    let schema = keys.schema();
    let value = |(field, column): (&Arc<arrow::datatypes::Field>, &ArrayRef)| {
        Ok(format!("{}={}", field.name(), ArrayFormatter::try_new(column.as_ref(), &options)?.value(row)))
    };
    let texts = schema.fields().iter().zip(keys.columns()).map(value);
    Ok(texts.collect::<std::result::Result<Vec<_>, arrow::error::ArrowError>>()?.join(", "))
}
