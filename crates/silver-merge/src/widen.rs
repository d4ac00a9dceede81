//! Wider columns: the table and what it remembers are written anew, before anything of the source is read.

use tributary_lake::{CommitOutcome, Rewrite, Table};

use crate::error::{Error, Result};
use crate::run::{Attempt, Ended};
use crate::state::{State, Written};
use crate::target::Target;

/// Rewrites the table in the wider types, each table in one commit that changes no row. State goes first, as always, and the table's
/// commit names its version.
pub(crate) async fn widen(attempt: &Attempt<'_>, table: &Table, target: &Target, state: Option<&State>) -> Result<Ended> {
    if attempt.options.cancel.is_cancelled() {
        return Err(Error::Cancelled { table: attempt.spec.table.clone() });
    }
    let progress = match state {
        None => Vec::new(),
        Some(state) => match state.rewrite(attempt.lake, target).await? {
            Written::Planned(progress) => progress,
            Written::Lost(outcome) => return Ok(Ended::Lost(outcome)),
        },
    };
    let columns = target.columns[..table.columns().len()].to_vec();
    let key_columns = target.shape.key_names().cloned().collect();
    let rewrite = Rewrite { columns, key_columns, properties: target.widened_properties(table), progress };
    match table.rewrite(rewrite).await.map_err(|source| Error::lake("widen", table.name(), source))? {
        CommitOutcome::Committed { version } => {
            let widened: Vec<String> = target.widened.iter().map(|column| format!("{} to {}", column.name, column.data_type)).collect();
            Ok(Ended::Widened(format!("widened {}, which rewrote the table (version {version})", widened.join(", "))))
        }
        lost => Ok(Ended::Lost(lost)),
    }
}
