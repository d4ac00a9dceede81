//! Does: looks into the logs of tables, which of them have moved and how far they have come.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use tributary_lake::arrow::array::AsArray;
use tributary_lake::arrow::compute::max;
use tributary_lake::arrow::datatypes::TimestampMicrosecondType;
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::{DataFile, Lake, Result, Table};
use tributary_specs::TableName;

use super::work::Moved;

/// Commits gone back over to find the last that added files.
const LOOK_BACK: u64 = 20;
/// Tables looked at side by side.
const AT_ONCE: usize = 16;
/// When an event happened at its source.
const EVENT_TIME: &str = "_event_time";

/// How far a table has come at a version, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reached {
    pub table: String,
    pub version: u64,
    pub time_ms: i64,
}

/// The tables that have a newer version than the one known. A store that does not answer is the business of whoever reads it.
pub(super) async fn moved_tables(lake: &Lake, watched: BTreeMap<TableName, Option<u64>>) -> Vec<Moved> {
    let looks = watched.into_iter().map(|(table, known)| async move {
        match lake.latest_version(&table, known).await {
            Ok(Some(version)) if known.is_none_or(|known| known < version) => Some((table, version)),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%table, error = &error as &dyn std::error::Error, "whether it has moved could not be told");
                None
            }
        }
    });
    futures::stream::iter(looks).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

/// How far a table has come and, for one that is made from others, how far those had at the versions it has consumed. Of a table
/// whose events up to `known` were seen only what came after is looked at. What cannot be told is left out.
pub(super) async fn reached(lake: &Lake, table: TableName, known: Option<u64>) -> Vec<Reached> {
    let mut found = Vec::new();
    if let Err(error) = look_back(lake, &table, None, known, &mut found).await {
        tracing::debug!(%table, error = &error as &dyn std::error::Error, "how far it has come could not be told");
    }
    found
}

fn look_back<'a>(
    lake: &'a Lake,
    name: &'a TableName,
    version: Option<u64>,
    known: Option<u64>,
    found: &'a mut Vec<Reached>,
) -> BoxFuture<'a, Result<Option<i64>>> {
    Box::pin(async move {
        let Some(mut table) = lake.table(name).await? else { return Ok(None) };
        if let Some(version) = version {
            table = table.at_version(version).await?;
        }
        let newest = if table.schema().column_with_name(EVENT_TIME).is_some() {
            newest_event(&table, known).await?
        } else {
            let mut newest = None;
            for (source, version) in tributary_silver_merge::consumed(&table).await? {
                newest = newest.max(look_back(lake, &source, Some(version), None, found).await?);
            }
            newest
        };
        if let Some(time_ms) = newest {
            found.push(Reached { table: name.to_string(), version: table.version(), time_ms });
        }
        Ok(newest)
    })
}

/// The newest event of the commits after `known`, or of the last commit that has any.
async fn newest_event(table: &Table, known: Option<u64>) -> Result<Option<i64>> {
    let files = match known {
        Some(known) => table.added(Some(known), table.version()).await?,
        None => last_added(table).await?,
    };
    let mut newest = None;
    for file in &files {
        newest = newest.max(match newest_by_statistics(file) {
            // statistics end before the column in wide tables
            None => newest_in(table, file).await?,
            known => known,
        });
    }
    Ok(newest)
}

/// The files of the last commit that added any, within a few.
async fn last_added(table: &Table) -> Result<Vec<DataFile>> {
    for back in 1..=LOOK_BACK {
        let files = table.added(table.version().checked_sub(back), table.version()).await?;
        if !files.is_empty() || back > table.version() {
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

async fn newest_in(table: &Table, file: &DataFile) -> Result<Option<i64>> {
    let mut rows = table.read_file(file, Some(&[EVENT_TIME.to_owned()])).await?;
    let mut newest = None;
    while let Some(batch) = rows.try_next().await? {
        newest = newest.max(batch.column(0).as_primitive_opt::<TimestampMicrosecondType>().and_then(max));
    }
    Ok(newest.map(|micros| micros / 1000))
}

fn newest_by_statistics(file: &DataFile) -> Option<i64> {
    match file.stats.columns.get(EVENT_TIME)?.max.as_ref()? {
        ScalarValue::TimestampMicrosecond(micros, _) => micros.map(|micros| micros / 1000),
        ScalarValue::TimestampMillisecond(millis, _) => *millis,
        _ => None,
    }
}
