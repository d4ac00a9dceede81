//! Opens a table as a text reads it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tributary_lake::datafusion::catalog::TableProvider;
use tributary_lake::{Result, Table};

use crate::tables::Source;
use crate::uses::{Point, Read};

/// What of `table`, in its latest version, a text reads.
///
/// # Errors
/// That a version is not there, or its changes are not known; store errors.
pub async fn open(table: Table, read: &Read) -> Result<Source> {
    let (catalogue, name) = (table.lake().options().catalogue.clone(), table.name().clone());
    let provider: Arc<dyn TableProvider> = match read {
        Read::Latest => table.provider().await?,
        Read::At(Point::Version(version)) => table.at_version(*version).await?.provider().await?,
        Read::At(Point::Instant(instant)) => table.at_timestamp(*instant).await?.provider().await?,
        Read::Changes(from, to) => {
            let from = match from {
                Point::Version(version) => *version,
                Point::Instant(instant) => first_at_or_after(&table, *instant).await?,
            };
            let to = match to {
                Some(Point::Version(version)) => *version,
                Some(Point::Instant(instant)) => table.at_timestamp(*instant).await?.version(),
                None => table.version(),
            };
            table.changes_provider(from, to).await?
        }
    };
    Ok(Source::new(&catalogue, &name, read, provider))
}

/// The first version committed at the instant or later; the one after the latest when there is none.
async fn first_at_or_after(table: &Table, instant: DateTime<Utc>) -> Result<u64> {
    let history = table.history(None).await?;
    let first = history.iter().filter(|entry| entry.timestamp >= instant).map(|entry| entry.version).min();
    Ok(first.unwrap_or_else(|| table.version() + 1))
}
