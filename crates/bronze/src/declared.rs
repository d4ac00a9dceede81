//! The table of a feed before its first record.

use tributary_specs::{SourceFeed, TableSpec};

use crate::Result;
use crate::file_columns;
use crate::lane::{bronze_spec, decoder};

/// What `setup` creates for a feed; none where only its messages can tell the business columns.
///
/// # Errors
/// [`crate::Error::Decode`] when the feed's declaration cannot be decoded by.
pub fn table_spec(feed: &SourceFeed) -> Result<Option<TableSpec>> {
    let columns = file_columns::all(feed, &decoder(feed)?);
    let known = columns.iter().any(|column| !column.name.starts_with('_'));
    Ok(known.then(|| bronze_spec(feed, columns)))
}
