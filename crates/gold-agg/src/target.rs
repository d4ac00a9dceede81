//! The table of a view.

use tributary_lake::{DELETION_VECTORS_ON, Lake, Table, TableLayout};
use tributary_specs::{Column, GoldSpec, TableSpec, check_declared};

use crate::{Error, Result, plan};

/// The table a refresh writes to.
pub(crate) struct Target {
    pub table: Table,
    /// All its columns after the commit.
    pub columns: Vec<Column>,
    /// Whether the commit adds any, or has others.
    pub changes_columns: bool,
    /// How it lies from the commit on, where that is otherwise than before.
    pub lies: Option<TableLayout>,
}

/// The property by which maintenance Z-orders a table.
const ZORDER_COLUMNS: &str = "pipelines.autoOptimize.zOrderCols";

/// Holds the columns of the result to the declaration.
pub(crate) fn check_columns(spec: &GoldSpec, result: &[Column]) -> Result<()> {
    let yielded = |declared: &&Column| !plan::is_filled_in(declared) || result.iter().any(|column| column.name == declared.name);
    let declared: Vec<Column> = spec.schema.iter().filter(yielded).cloned().collect();
    match check_declared(&declared, result) {
        differences if differences.is_empty() => Ok(()),
        differences => Err(Error::DeclaredSchema { table: spec.table.clone(), differences }),
    }
}

/// The table there, or a new one without rows.
///
/// `follows`: rows of it will be replaced one by one; `anew`: its columns become those of the result, and it lies as it is declared.
pub(crate) async fn prepare(
    lake: &Lake,
    spec: &GoldSpec,
    there: Option<Table>,
    result: &[Column],
    follows: bool,
    anew: bool,
) -> Result<Target> {
    let wanted = plan::declared_columns(&spec.schema, result);
    let table = match there {
        Some(table) => table,
        None => create(lake, spec, wanted.clone(), follows).await?,
    };
    if anew {
        let changes_columns = table.columns() != wanted;
        let declared = TableLayout { partition_by: spec.partition_by.clone(), cluster_by: spec.cluster_by.clone() };
        let lies = table.lies_otherwise(declared);
        return Ok(Target { table, columns: wanted, changes_columns, lies });
    }
    let columns = plan::merge_columns(table.columns(), &wanted)
        .map_err(|problems| Error::TableColumns { table: spec.table.clone(), reason: problems.join("; ") })?;
    let changes_columns = columns.len() > table.columns().len();
    Ok(Target { table, columns, changes_columns, lies: None })
}

/// What is created. Rows of a view that follows its inputs are marked as they go, unless the declaration forbids it.
pub(crate) fn table_spec(spec: &GoldSpec, columns: Vec<Column>, follows: bool) -> TableSpec {
    let mut properties = spec.properties.clone();
    if !spec.zorder_by.is_empty() {
        // So maintenance knows, which sees tables and not their declarations.
        properties.entry(ZORDER_COLUMNS.to_owned()).or_insert_with(|| spec.zorder_by.join(", "));
    }
    if follows {
        properties.entry(DELETION_VECTORS_ON.to_owned()).or_insert_with(|| "true".to_owned());
    }
    TableSpec {
        partition_by: spec.partition_by.clone(),
        cluster_by: spec.cluster_by.clone(),
        comment: spec.comment.clone(),
        properties,
        row_changes: follows,
        ..TableSpec::new(spec.table.clone(), columns)
    }
}

async fn create(lake: &Lake, spec: &GoldSpec, columns: Vec<Column>, follows: bool) -> Result<Table> {
    lake.create(&table_spec(spec, columns, follows)).await.map_err(Error::lake("creating", &spec.table))
}
