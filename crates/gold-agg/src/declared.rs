//! The table of a view before its first refresh.

use tributary_lake::Lake;
use tributary_specs::{GoldSpec, Refresh, TableSpec};

use crate::follow::means_of;
use crate::query::{Input, Joins, Rows, own_names, plan_rows};
use crate::{Error, Options, Result, plan, rules, target};

/// What `setup` creates for a view; none where a table it reads is not there, or has no rows yet and not every column that the
/// query names, so that only the first run can tell.
///
/// # Errors
/// When the query or an expectation cannot be planned over its inputs, or yields something else than the spec declares.
pub async fn table_spec(lake: &Lake, spec: &GoldSpec, options: &Options) -> Result<Option<TableSpec>> {
    let mut inputs = Vec::new();
    for source in &spec.sources {
        match lake.table(source).await.map_err(Error::lake("opening", source))? {
            Some(table) => inputs.push(Input::open(table).await?),
            None => return Ok(None),
        }
    }
    let is_new = inputs.iter().any(|input| input.table.version() == 0);
    let rows = match plan_rows(lake, spec, None, &inputs, options, Joins::Hash).await {
        Err(error) if is_new && error.is_of_unknown_column() => return Ok(None),
        rows => rows?,
    };
    rules::ask(spec, rows.frame.clone(), &own_names(options))?;
    target::check_columns(spec, &rows.columns)?;
    let follows = is_new_and_follows(lake, spec, &rows, &inputs).await?;
    Ok(Some(target::table_spec(spec, plan::declared_columns(&spec.schema, &rows.columns), follows)))
}

/// A table that is there stays as it was made.
async fn is_new_and_follows(lake: &Lake, spec: &GoldSpec, rows: &Rows, inputs: &[Input]) -> Result<bool> {
    if spec.refresh == Refresh::Full || lake.table(&spec.table).await.map_err(Error::lake("opening", &spec.table))?.is_some() {
        return Ok(false);
    }
    Ok(means_of(spec, rows, inputs, &(0..inputs.len()).collect(), &[]).await?.is_ok())
}
