//! Columns without a null, as the statistics of an input's files tell where its schema allows them.

use std::collections::BTreeSet;

use tributary_lake::{DataFile, Error, Table};

use crate::plan::InputState;
use crate::query::Input;

/// By place among the inputs: the columns that hold no null in any file, neither at the version that the view records nor now.
/// None of an input of which either is not known.
///
/// # Errors
/// The lake's.
pub(crate) async fn not_null(inputs: &[Input], states: &[InputState]) -> Result<Vec<BTreeSet<String>>, Error> {
    let mut of_inputs = Vec::with_capacity(inputs.len());
    for (input, state) in inputs.iter().zip(states) {
        of_inputs.push(match state.made_from() {
            Some(behind) => of_input(&input.table, behind, state.rows_changed).await?,
            None => BTreeSet::new(),
        });
    }
    Ok(of_inputs)
}

async fn of_input(table: &Table, behind: u64, rows_changed: bool) -> Result<BTreeSet<String>, Error> {
    let now = of_version(table).await?;
    if now.is_empty() || !rows_changed {
        return Ok(now);
    }
    match table.at_version(behind).await {
        Ok(then) => Ok(&now & &of_version(&then).await?),
        Err(Error::NoVersion { .. }) => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

async fn of_version(table: &Table) -> Result<BTreeSet<String>, Error> {
    let files = table.files().await?;
    let names = table.columns().iter().map(|column| &column.name);
    Ok(names.filter(|name| files.iter().all(|file| has_no_null(file, name))).cloned().collect())
}

/// Nulls are counted over all rows of a file, those marked as deleted too: none stays none, however many are marked.
fn has_no_null(file: &DataFile, column: &str) -> bool {
    file.stats.rows.is_some() && file.stats.columns.get(column).and_then(|stats| stats.null_count) == Some(0)
}
