//! Under which names a table keeps the positions of sources that are not files.

use std::collections::BTreeMap;

use tributary_lake::Table;

use crate::{Error, Result};

/// The position of a partition or file that is to be read as a new one, after a full refresh that did not bring it.
pub(crate) const NOTHING: i64 = -1;

/// A recorded position; none also where it was set back.
pub(crate) fn known(recorded: Option<i64>) -> Option<i64> {
    recorded.filter(|position| *position > NOTHING)
}

/// Of a partition of a record source.
pub(crate) fn of_source(feed: &str, partition: i32) -> String {
    format!("{}{partition}", of_sources(feed))
}

/// How those of a feed's record source begin.
fn of_sources(feed: &str) -> String {
    format!("tributary:custom:{feed}:")
}

/// Of a partition of a topic.
pub(crate) fn of_topic(feed: &str, topic: &str, partition: i32) -> String {
    format!("{}{topic}:{partition}", of_topics(feed))
}

/// How those of a feed's topics begin.
pub(crate) fn of_topics(feed: &str) -> String {
    format!("tributary:kafka:{feed}:")
}

/// The partition, with its topic where it has one, that a name of a feed's positions is of.
pub(crate) fn place<'a>(app_id: &'a str, feed: &str) -> &'a str {
    let prefixes = [of_topics(feed), of_sources(feed)];
    prefixes.iter().find_map(|prefix| app_id.strip_prefix(prefix.as_str())).unwrap_or(app_id)
}

/// The positions that a table has of partitions of a feed, those set back too.
pub(crate) async fn of_feed(table: &Table, feed: &str) -> Result<BTreeMap<String, i64>> {
    let mut found = BTreeMap::new();
    for prefix in [of_topics(feed), of_sources(feed)] {
        let positions = table.progress_with_prefix(&prefix).await;
        found.extend(positions.map_err(|source| Error::lake(table.name(), "reading positions", source))?);
    }
    Ok(found)
}

/// The position that a table has under a name; none where there is no table yet.
pub(crate) async fn read(table: Option<&Table>, app_id: &str) -> Result<Option<i64>> {
    match table {
        Some(table) => table.progress(app_id).await.map_err(|source| Error::lake(table.name(), "reading positions", source)),
        None => Ok(None),
    }
}
