//! In the end every table holds what the changes and the appends come to, and its change feed comes to the table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::{ReadOptions, Table};
use tributary_testkit::oracle::Row;
use tributary_testkit::{Frame, Value, replay};

use super::appender::Appended;
use super::changes::Change;
use super::tables::{BRONZE, Kind, SILVER, appended, columns, expected, lake, table};

/// What was found, over all tables.
#[derive(Debug, Default)]
pub struct Found {
    /// Rows that should be there.
    pub rows: usize,
    /// Rows that should be there and are not.
    pub lost: usize,
    /// Rows that are there once too often, or should not be there.
    pub doubled: usize,
    /// Change feeds that do not come to their table, and why.
    pub feeds: Vec<String>,
    /// A line a table.
    pub lines: Vec<String>,
}

/// Compares all tables.
pub async fn check(warehouse: &Path, delivered: &[Change], appended_rows: &Appended) -> Result<Found> {
    let lake = lake(warehouse)?;
    let mut found = Found::default();
    let open = async |name: &str| table(&lake, name).await?.with_context(|| format!("{name} is not there"));
    let bronze = open(BRONZE).await?;
    let in_bronze = rows(&bronze, columns(Kind::Events)).await?;
    found.compare(&bronze, &in_bronze, expected(Kind::Events, delivered));
    found.replay(&bronze).await?;
    for silver in SILVER {
        let table = open(silver.name).await?;
        let mut rows_expected = expected(silver.kind, delivered);
        let certain = appended_rows.certain.get(silver.name).into_iter().flatten();
        rows_expected.extend(certain.map(|key| appended(silver.kind, *key)));
        let there = rows(&table, columns(silver.kind)).await?;
        let keys: BTreeSet<&Value> = there.iter().map(|row| &row[0]).collect();
        for commit in appended_rows.unknown.get(silver.name).into_iter().flatten() {
            // one row of it tells that all are there
            if commit.iter().any(|key| keys.contains(&Value::from(*key))) {
                rows_expected.extend(commit.iter().map(|key| appended(silver.kind, *key)));
            }
        }
        found.compare(&table, &there, rows_expected);
        if !silver.foreign {
            found.replay(&table).await?;
        }
    }
    Ok(found)
}

impl Found {
    fn compare(&mut self, table: &Table, there: &[Row], expected: Vec<Row>) {
        let mut balance: BTreeMap<&Row, i64> = BTreeMap::new();
        expected.iter().for_each(|row| *balance.entry(row).or_default() += 1);
        there.iter().for_each(|row| *balance.entry(row).or_default() -= 1);
        let lost: i64 = balance.values().filter(|more| **more > 0).sum();
        let doubled: i64 = -balance.values().filter(|more| **more < 0).sum::<i64>();
        self.rows += expected.len();
        self.lost += usize::try_from(lost).unwrap_or_default();
        self.doubled += usize::try_from(doubled).unwrap_or_default();
        self.lines.push(format!(
            "{} at version {}: lost {lost}, doubled {doubled} of {} rows",
            table.name(),
            table.version(),
            expected.len()
        ));
        let examples = balance.iter().filter(|(_, more)| **more != 0).take(3);
        self.lines.extend(examples.map(|(row, more)| format!("  {} of {row:?}", if *more > 0 { "missing" } else { "too many" })));
    }

    async fn replay(&mut self, table: &Table) -> Result<()> {
        let changes: Vec<RecordBatch> = table.changes(0, table.version()).await?.try_collect().await?;
        let replayed = replay(&Frame::new(table.change_schema(), &changes), table.schema().fields().len());
        let mut there = all(table, ReadOptions::default()).await?;
        there.sort();
        let why = match replayed {
            Ok(rows) if rows == there => return Ok(()),
            Ok(rows) => format!("it comes to {} rows, the table has {}", rows.len(), there.len()),
            Err(why) => why,
        };
        self.feeds.push(format!("the change feed of {}: {why}", table.name()));
        Ok(())
    }
}

async fn rows(table: &Table, names: &[&str]) -> Result<Vec<Row>> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    all(table, ReadOptions { columns: Some(names), ..ReadOptions::default() }).await
}

async fn all(table: &Table, options: ReadOptions) -> Result<Vec<Row>> {
    let stream = table.read(options).await?;
    let schema = stream.schema();
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    Ok(Frame::new(schema, &batches).rows())
}
