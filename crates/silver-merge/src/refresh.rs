//! A full refresh: when a table may be built anew, and the commit by which it is. Pure.
//!
//! - The table stays the kind of table that it is: readers of its changes rely on that.
//! - One commit takes all rows that were there away and brings all that there are now; it sets every other flow back to its start.

use tributary_lake::{Commit, DataFile, Operation, Progress, Reads, Table};
use tributary_specs::{MergePolicy, SilverSpec};

use crate::error::{Error, Result};
use crate::source::has_row_changes;
use crate::target::Target;

/// Refuses a table of rows that change where rows are only added, and the other way round.
///
/// # Errors
/// [`Error::Remade`].
pub(crate) fn ensure_same_kind(spec: &SilverSpec, table: &Table) -> Result<()> {
    let (was_keyed, keyed) = (has_row_changes(table), spec.policy != MergePolicy::Append);
    if was_keyed == keyed {
        return Ok(());
    }
    let word = |keyed| if keyed { "rows that change" } else { "rows that are only added" }.to_owned();
    Err(Error::Remade { table: spec.table.clone(), found: word(was_keyed), declared: word(keyed) })
}

/// `commit` as the one that makes its rows the only ones, in place of the live `files`.
pub(crate) fn replacing(spec: &SilverSpec, target: &Target, files: Vec<DataFile>, set_back: Vec<Progress>, commit: Commit) -> Commit {
    let said = target.table_spec(spec).properties.into_iter().filter(|(name, _)| name.starts_with("tributary."));
    Commit {
        operation: Operation::Overwrite,
        removes: files,
        marks: Vec::new(),
        rests_on: Vec::new(),
        changes: Vec::new(),
        schema: target.grows.then(|| target.columns.clone()),
        properties: said.collect(),
        progress: commit.progress.into_iter().chain(set_back).collect(),
        reads: Reads::WholeTable,
        replaces: true,
        ..commit
    }
}
