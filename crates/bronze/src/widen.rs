//! A wider column: every file of the table is rewritten, in one commit that changes the schema and no row.

use futures::TryStreamExt;
use tributary_lake::{Commit, CommitOutcome, Operation, Reads, Table, WriterOptions};
use tributary_specs::Column;

use crate::{Error, Result};

/// Brings a table to these columns, of which some are wider than before. The cost is the whole table, read and written once.
pub(crate) async fn widen(table: &Table, columns: Vec<Column>) -> Result<CommitOutcome> {
    let failed = |source| Error::lake(table.name(), "widening", source);
    let options = WriterOptions { columns: Some(columns.clone()), ..WriterOptions::default() };
    let mut writer = table.writer(options).map_err(failed)?;
    let removes = table.files().await.map_err(failed)?;
    for file in &removes {
        let mut rows = table.read_file(file, None).await.map_err(failed)?;
        while let Some(batch) = rows.try_next().await.map_err(|source| failed(source.into()))? {
            writer.write(&batch).await.map_err(failed)?;
        }
    }
    let adds = writer.finish().await.map_err(failed)?;
    let commit =
        Commit { operation: Operation::Optimize, adds, removes, schema: Some(columns), reads: Reads::WholeTable, ..Commit::default() };
    table.commit(commit).await.map_err(failed)
}
