//! A full refresh: the commit by which a table is built anew. Pure.
//!
//! - One commit takes all rows that were there away and brings all that there are now; it sets every other flow back to its start.
//! - The table lies from then on as it is declared, and is of the declared kind: of rows that change, or of rows that are only added.
//!   Who reads its appends stops at the commit; who reads its change feed reads on.

use tributary_lake::{Commit, DataFile, Operation, Progress, Reads, Table, TableLayout};
use tributary_specs::{MergePolicy, SilverSpec};

use crate::source::{ROW_CHANGES, has_row_changes};
use crate::target::Target;

/// How a table is to lie, where that is otherwise than it does.
pub(crate) fn layout(spec: &SilverSpec, table: &Table) -> Option<TableLayout> {
    table.lies_otherwise(TableLayout { partition_by: spec.partition_by.clone(), cluster_by: spec.cluster_by.clone() })
}

/// `commit` as the one that makes its rows the only ones, in place of the live `files`.
pub(crate) fn replacing(
    spec: &SilverSpec,
    target: &Target,
    table: &Table,
    files: Vec<DataFile>,
    set_back: Vec<Progress>,
    commit: Commit,
) -> Commit {
    let said = target.table_spec(spec).properties.into_iter().filter(|(name, _)| name.starts_with("tributary."));
    let only_adds = spec.policy == MergePolicy::Append && has_row_changes(table);
    let no_longer = only_adds.then(|| (ROW_CHANGES.to_owned(), "false".to_owned()));
    Commit {
        operation: Operation::Overwrite,
        removes: files,
        marks: Vec::new(),
        rests_on: Vec::new(),
        changes: Vec::new(),
        schema: target.grows.then(|| target.columns.clone()),
        properties: said.chain(no_longer).collect(),
        layout: target.lies.clone(),
        progress: commit.progress.into_iter().chain(set_back).collect(),
        reads: Reads::WholeTable,
        replaces: true,
        ..commit
    }
}
