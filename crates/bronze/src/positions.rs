//! Under which names a table keeps the positions of sources that are not files.

use tributary_lake::Table;

use crate::{Error, Result};

/// Of a partition of a record source.
pub(crate) fn of_source(feed: &str, partition: i32) -> String {
    format!("tributary:custom:{feed}:{partition}")
}

/// Of a partition of a topic.
pub(crate) fn of_topic(feed: &str, topic: &str, partition: i32) -> String {
    format!("{}{topic}:{partition}", of_topics(feed))
}

/// How those of a feed's topics begin.
pub(crate) fn of_topics(feed: &str) -> String {
    format!("tributary:kafka:{feed}:")
}

/// The position that a table has under a name; none where there is no table yet.
pub(crate) async fn read(table: Option<&Table>, app_id: &str) -> Result<Option<i64>> {
    match table {
        Some(table) => table.progress(app_id).await.map_err(|source| Error::lake(table.name(), "reading positions", source)),
        None => Ok(None),
    }
}
