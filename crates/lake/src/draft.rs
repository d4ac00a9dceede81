//! Tables as they are after their first commit, without rows: what plans are made over before there is any table.
//!
//! A log is written and never read: what it says is known, because it was just made. Reading it costs a hundred times as much, and a
//! pipeline is planned over as many tables as it has datasets. An earlier version, or changes, are read from the log as of any table.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use tributary_specs::TableSpec;

use crate::action::{self, Action, CommitInfo, Txn};
use crate::constraints::Rules;
use crate::log::Opened;
use crate::snapshot::Snapshot;
use crate::{Error, Lake, Result, Table, create, transact};

/// Whose position a draft's second commit carries.
const APP: &str = "tributary:made";

impl Lake {
    /// Makes a table as declared, without rows, that counts as written to: its version is 1. For a lake in memory that nobody else
    /// writes to: [`Self::table`] finds the draft until something is committed to it.
    ///
    /// # Errors
    /// [`Error::Spec`] when the declaration cannot be honoured; store errors, also when a table is there.
    pub async fn draft(&self, spec: &TableSpec) -> Result<Table> {
        let refused = |reason| Error::Spec { table: spec.name.clone(), reason };
        let now = self.clock().now();
        let made = create::first_commit(spec, self.new_id(), self.new_id(), now).map_err(refused)?;
        let schema = Arc::new(create::arrow_schema(&spec.columns).map_err(refused)?);
        Rules::new(&spec.name, &schema, &spec.columns, &spec.checks, now)?;
        let time = now.timestamp_millis() + 1;
        let info = CommitInfo {
            in_commit_timestamp: Some(time),
            timestamp: Some(time),
            operation: Some("WRITE".to_owned()),
            engine_info: Some(transact::ENGINE.to_owned()),
            txn_id: Some(self.new_id().to_string()),
            ..CommitInfo::default()
        };
        let position = Txn { app_id: APP.to_owned(), version: 0, last_updated: Some(time) };
        let written = vec![Action::CommitInfo(Box::new(info)), Action::Txn(position)];
        let log = self.log(&spec.name)?;
        for (version, actions) in (0..).zip([&made, &written]) {
            let lines = action::to_lines(actions).map_err(|error| refused(error.to_string()))?;
            log.put(version, lines).await.map_err(|error| Error::store(format!("creating {}", spec.name), error))?;
        }
        let Some(opened) = said(made.iter().chain(&written)) else { return Err(refused("its log would say nothing".to_owned())) };
        let snapshot = Arc::new(Snapshot::of_no_files(&spec.name, opened)?);
        self.drafts().insert(spec.name.clone(), Arc::clone(&snapshot));
        Ok(Table::new(self.clone(), log, snapshot))
    }
}

/// What the two commits say together.
fn said<'a>(actions: impl Iterator<Item = &'a Action> + Clone) -> Option<Opened> {
    let protocol = actions.clone().find_map(|action| if let Action::Protocol(protocol) = action { Some(protocol.clone()) } else { None });
    let metadata =
        actions.clone().find_map(|action| if let Action::Metadata(metadata) = action { Some(metadata.as_ref().clone()) } else { None });
    let (progress, domains) = (BTreeMap::new(), BTreeMap::new());
    let mut opened = Opened { version: 1, kernel: None, protocol: protocol?, metadata: metadata?, progress, domains };
    actions.for_each(|action| opened.follow(action));
    Some(opened)
}

/// The rows of a draft: none.
pub(crate) fn no_rows(table: &Table) -> Result<Arc<dyn TableProvider>> {
    Ok(Arc::new(MemTable::try_new(table.schema(), vec![vec![]])?))
}
