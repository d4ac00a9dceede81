//! How far a table has come in the time of the databases its rows come from.
//!
//! A bronze table has come as far as its newest `_event_time`. A table that is made from others has come as far as those
//! were at the versions it has consumed, which its positions name; the farthest it could be is where they are now. The
//! difference is how far it is behind. What bronze itself has not read yet nobody here can know.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tributary::arrow::array::{Array, AsArray};
use tributary::arrow::datatypes::TimestampMicrosecondType;
use tributary::datafusion::common::ScalarValue;
use tributary::{Lake, Table, TableName};

use crate::failure::Failure;

/// When an event happened at its source.
const EVENT_TIME: &str = "_event_time";

/// Where a table is and where it could be, in source time; none where nothing above it carries event times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceTime {
    pub reached: Option<DateTime<Utc>>,
    pub reachable: Option<DateTime<Utc>>,
}

impl SourceTime {
    /// Whole seconds between the two.
    pub fn behind_seconds(&self) -> Option<u64> {
        let behind = self.reachable? - self.reached?;
        u64::try_from(behind.num_seconds()).ok().or(Some(0))
    }
}

/// Which version of a source counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Consumed,
    Latest,
}

/// Tells the source times of a lake's tables; each version of a bronze table is looked at once.
pub struct SourceTimes<'a> {
    lake: &'a Lake,
    newest: HashMap<(TableName, u64), Option<DateTime<Utc>>>,
}

impl<'a> SourceTimes<'a> {
    pub fn new(lake: &'a Lake) -> Self {
        Self { lake, newest: HashMap::new() }
    }

    /// Of a table's snapshot.
    pub async fn of(&mut self, table: &Table) -> Result<SourceTime, Failure> {
        Ok(SourceTime {
            reached: self.time_of(table.clone(), At::Consumed).await?,
            reachable: self.time_of(table.clone(), At::Latest).await?,
        })
    }

    fn time_of<'s>(&'s mut self, table: Table, at: At) -> BoxFuture<'s, Result<Option<DateTime<Utc>>, Failure>> {
        Box::pin(async move {
            if table.schema().column_with_name(EVENT_TIME).is_some() {
                return self.newest_event(&table).await;
            }
            let mut newest = None;
            for (name, version) in table.consumed().await? {
                let source = match self.lake.table(&name.to_string()).await {
                    Ok(source) => source,
                    // a source that is gone says nothing
                    Err(tributary::Error::NoTable { .. }) => continue,
                    Err(error) => return Err(error.into()),
                };
                let source = if at == At::Consumed && version != source.version() { source.at_version(version).await? } else { source };
                newest = newest.max(self.time_of(source, at).await?);
            }
            Ok(newest)
        })
    }

    async fn newest_event(&mut self, table: &Table) -> Result<Option<DateTime<Utc>>, Failure> {
        let inner = table.clone().into_inner();
        let version = (inner.name().clone(), inner.version());
        if let Some(known) = self.newest.get(&version) {
            return Ok(*known);
        }
        let files = inner.files().await?;
        let greatest: Option<Vec<i64>> = files.iter().map(|file| micros(file.stats.columns.get(EVENT_TIME)?.max.as_ref()?)).collect();
        let newest = match greatest {
            Some(micros) => micros.into_iter().max().and_then(DateTime::from_timestamp_micros),
            // statistics end before the column in wide tables
            None => self.newest_by_query(&version.0, version.1).await?,
        };
        self.newest.insert(version, newest);
        Ok(newest)
    }

    async fn newest_by_query(&self, table: &TableName, version: u64) -> Result<Option<DateTime<Utc>>, Failure> {
        let quoted = |part: &str| format!("`{}`", part.replace('`', "``"));
        let name = format!("{}.{}", quoted(&table.schema), quoted(&table.name));
        let query = format!("SELECT max({EVENT_TIME}) AS newest FROM {name} VERSION AS OF {version}");
        let rows = tributary::sql::query(self.lake, &query).await?.collect().await.map_err(tributary::sql::Error::run)?;
        let newest = rows.iter().find_map(|batch| {
            let column = batch.column(0).as_primitive_opt::<TimestampMicrosecondType>()?;
            (!column.is_empty() && column.is_valid(0)).then(|| column.value(0))
        });
        Ok(newest.and_then(DateTime::from_timestamp_micros))
    }
}

fn micros(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampMicrosecond(micros, _) => *micros,
        ScalarValue::TimestampMillisecond(millis, _) => millis.and_then(|millis| millis.checked_mul(1000)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_is_never_negative_and_unknown_without_event_times() {
        let at = |seconds: i64| DateTime::from_timestamp(seconds, 0);
        assert_eq!(SourceTime { reached: at(10), reachable: at(75) }.behind_seconds(), Some(65));
        assert_eq!(SourceTime { reached: at(10), reachable: at(5) }.behind_seconds(), Some(0));
        assert_eq!(SourceTime::default().behind_seconds(), None);
    }
}
