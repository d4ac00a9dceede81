//! How far a table has come in the time of the databases its rows come from.
//!
//! A bronze table has come as far as its newest `_event_time`. A table that is made from others has come as far as those
//! were at the versions it has consumed, which its positions name; the farthest it could be is where they are now. The
//! difference is how far it is behind. What bronze itself has not read yet nobody here can know.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tributary::datafusion::common::ScalarValue;
use tributary::{Lake, Table};

use crate::failure::Failure;

/// Application ids of positions in source tables, before the table's name.
const SOURCE: &str = "tributary:source:";
/// When an event happened at its source.
const EVENT_TIME: &str = "_event_time";

/// Where a table is and where it could be, in source time; none where nothing above it carries event times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceTime {
    pub reached: Option<DateTime<Utc>>,
    pub reachable: Option<DateTime<Utc>>,
}

impl SourceTime {
    /// Of a table's snapshot.
    pub async fn of(lake: &Lake, table: &Table) -> Result<Self, Failure> {
        Ok(Self { reached: time_of(lake, table, At::Consumed).await?, reachable: time_of(lake, table, At::Latest).await? })
    }

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

fn time_of<'a>(lake: &'a Lake, table: &'a Table, at: At) -> BoxFuture<'a, Result<Option<DateTime<Utc>>, Failure>> {
    Box::pin(async move {
        if table.schema().column_with_name(EVENT_TIME).is_some() {
            return newest_event(table).await;
        }
        let mut newest = None;
        for (app_id, version) in table.clone().into_inner().progress_with_prefix(SOURCE).await? {
            let (Some(name), Ok(version)) = (app_id.strip_prefix(SOURCE), u64::try_from(version)) else { continue };
            // a source that is gone says nothing
            let Ok(source) = lake.table(name).await else { continue };
            let source = match at {
                At::Latest => source,
                At::Consumed if version == source.version() => source,
                At::Consumed => source.at_version(version).await?,
            };
            newest = newest.max(time_of(lake, &source, at).await?);
        }
        Ok(newest)
    })
}

/// The greatest event time that the files' statistics know.
async fn newest_event(table: &Table) -> Result<Option<DateTime<Utc>>, Failure> {
    let files = table.clone().into_inner().files().await?;
    let greatest = files.iter().filter_map(|file| file.stats.columns.get(EVENT_TIME)?.max.as_ref()).filter_map(micros).max();
    Ok(greatest.and_then(DateTime::from_timestamp_micros))
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
