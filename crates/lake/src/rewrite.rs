//! Wider columns: every file of a table is written anew, in one commit that changes the schema and no row.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use tributary_specs::Column;

use crate::{Commit, CommitOutcome, Operation, Progress, Reads, Result, Table, WriterOptions};

/// What a table becomes when all of it is written anew.
#[derive(Debug, Clone, Default)]
pub struct Rewrite {
    /// All columns afterwards: those it has, in their order, some of a wider type; then new nullable ones.
    pub columns: Vec<Column>,
    /// As [`WriterOptions::key_columns`].
    pub key_columns: Vec<String>,
    /// As [`Commit::properties`].
    pub properties: BTreeMap<String, String>,
    /// As [`Commit::progress`].
    pub progress: Vec<Progress>,
}

impl Table {
    /// Writes every live row anew, file by file, and commits at once: rows marked as deleted are gone with their files, the change feed
    /// shows nothing. The cost is the whole table, read and written once; memory is that of a writer.
    ///
    /// # Errors
    /// [`crate::Error::Constraint`] when a value does not fit its new type; store errors.
    pub async fn rewrite(&self, to: Rewrite) -> Result<CommitOutcome> {
        let Rewrite { columns, key_columns, properties, progress } = to;
        let options = WriterOptions { columns: Some(columns.clone()), key_columns, ..WriterOptions::default() };
        let mut writer = self.writer(options)?;
        let removes = self.files().await?;
        for file in &removes {
            let mut rows = self.read_file(file, None).await?;
            while let Some(batch) = rows.try_next().await? {
                writer.write(&batch).await?;
            }
        }
        let adds = writer.finish().await?;
        let (operation, reads, schema) = (Operation::Optimize, Reads::WholeTable, Some(columns));
        self.commit(Commit { operation, adds, removes, schema, reads, properties, progress, ..Commit::default() }).await
    }
}
