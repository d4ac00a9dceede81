//! Texts that commits of rows leave in their table: which definition made them, above all. A text rides in the commit itself, in a
//! metadata domain, and only where the table does not have it yet.

use std::collections::BTreeMap;

use tributary_specs::TableName;

use crate::{Commit, Operation, Table};

/// What is left in which table.
#[derive(Debug)]
pub(crate) struct Imprint {
    pub domain: String,
    pub texts: BTreeMap<TableName, String>,
}

impl Imprint {
    /// Whether the table has another text than its next commit of rows would leave, or none.
    pub fn is_new_to(&self, table: &Table) -> bool {
        self.texts.get(table.name()).is_some_and(|text| table.state().domains.get(&self.domain) != Some(text))
    }

    /// The commit with the text of its table, where it changes rows or positions and the table has another text or none.
    pub fn on(&self, table: &Table, mut commit: Commit) -> Commit {
        let moves = match commit.operation {
            Operation::Write | Operation::Merge | Operation::Update | Operation::Delete | Operation::Overwrite => {
                !commit.adds.is_empty() || !commit.progress.is_empty()
            }
            Operation::Optimize
            | Operation::Restore
            | Operation::Alter
            | Operation::VacuumStart
            | Operation::VacuumEnd
            | Operation::Fsck => false,
        };
        if let Some(text) = self.texts.get(table.name()).filter(|_| moves && self.is_new_to(table)) {
            commit.domains.insert(self.domain.clone(), Some(text.clone()));
        }
        commit
    }
}
