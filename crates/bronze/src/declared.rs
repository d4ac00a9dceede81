//! The table of a feed before its first record.

use tributary_cdc_decode::Decoder;
use tributary_specs::{SourceFeed, TableSpec};

use crate::lane::bronze_spec;
use crate::{Error, Result};

/// What `setup` creates for a feed; none where only its messages can tell the business columns.
///
/// # Errors
/// [`Error::Decode`] when the feed's declaration cannot be decoded by.
pub fn table_spec(feed: &SourceFeed) -> Result<Option<TableSpec>> {
    let decoder = Decoder::new(feed).map_err(|source| Error::Decode { table: feed.table.clone(), source: Box::new(source) })?;
    let columns = decoder.columns();
    let known = columns.iter().any(|column| !column.name.starts_with('_'));
    Ok(known.then(|| bronze_spec(feed, columns)))
}
