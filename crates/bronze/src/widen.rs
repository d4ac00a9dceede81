//! A wider column: the table is rewritten, in one commit that changes the schema and no row.

use tributary_lake::{CommitOutcome, Rewrite, Table};
use tributary_specs::Column;

use crate::{Error, Result};

/// Brings a table to these columns, of which some are wider than before. The cost is the whole table, read and written once.
pub(crate) async fn widen(table: &Table, columns: Vec<Column>) -> Result<CommitOutcome> {
    table.rewrite(Rewrite { columns, ..Rewrite::default() }).await.map_err(|source| Error::lake(table.name(), "widening", source))
}
