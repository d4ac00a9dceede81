//! SQL texts of people, over the tables of a lake.
//!
//! The text is Databricks SQL in Spark's meaning, as `tributary_spark_sql` reads it: the same in `sql`, in views, selects, rules and
//! conditions. What is read of which table, `open.rs` opens; `VERSION AS OF`, `TIMESTAMP AS OF` and `table_changes(…)` are executed
//! here alone. The catalogue `system` is there too.
//!
//! ```text
//! text ─▶ steps ─▶ Session::execute ─┬─ a query, SHOW, DESCRIBE ─▶ rows
//!                                    ├─ CREATE, ALTER, DROP, GRANT, REVOKE ─▶ marks of catalogues and schemas, tables, rows of system
//!                                    ├─ INSERT, UPDATE, DELETE, MERGE ─▶ one commit each
//!                                    └─ definitions of a pipeline ─▶ a run
//! ```

mod alter;
mod create;
mod ddl;
mod describe;
mod drop;
mod error;
mod functions;
mod grants;
mod information;
mod insert;
mod kept;
mod keys;
mod listing;
mod maintain;
mod masks;
mod open;
mod privileges;
mod prune;
mod reads;
mod rows;
mod session;
mod spaces;
mod vacuum;

pub use ddl::{create_table, definition};
pub use error::Error;
pub use functions::functions;
pub(crate) use functions::{beside as functions_beside, declaration};
pub use grants::{EVERYBODY, Granted, Securable, effective, grants, may};
pub(crate) use masks::load as recorded_masks;
pub use session::{Answer, Ends, Session, SessionOptions, Step, ends, steps};
use tributary_fault::nearest;
use tributary_lake::CommitOutcome;
use tributary_lake::datafusion::prelude::DataFrame;
pub use tributary_spark_sql::{Error as TextError, instant};
use tributary_spark_sql::{Name, Text};
use tributary_specs::TableSpec;

use self::open::Catalogues;
use crate::{Lake, system};

/// Plans one query (or `EXPLAIN` of one) over the tables of a lake. Nothing but the logs of those tables has been read when
/// it returns; collecting or streaming the frame runs it, within the lake's memory limit.
///
/// # Errors
/// [`Error::Text`]: a text that cannot be read, with line and column; what this release does not execute as the dialect means it;
/// tables and columns that are not there, with the nearest name. [`Error::Lake`] where a table cannot be opened.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lake = tributary::Lake::open("memory://", Default::default())?;
/// let rows = tributary::sql::query(&lake, "select 5 / 2 as Half").await?.collect().await?;
/// assert_eq!(rows[0].schema().field(0).name(), "Half");
/// assert!(tributary::sql::query(&lake, "select * from silver.orders").await.is_err());
/// # Ok(()) }
/// ```
pub async fn query(lake: &Lake, text: &str) -> Result<DataFrame, Error> {
    Session::new(lake, SessionOptions::default()).plan(Text::parse(text)?).await
}

/// Tables of `system` that statements write.
pub(crate) fn system_tables() -> Vec<TableSpec> {
    [grants::TABLE, functions::TABLE, masks::TABLE].iter().map(kept::KeptTable::spec).collect()
}

/// What keeps the rows of a table, where statements may not change them. A table that programs push rows into is nobody's own.
async fn keeper(table: &tributary_lake::Table) -> Result<Option<&'static str>, Error> {
    if table.lake().options().catalogue == system::NAME {
        return Ok(Some("the program"));
    }
    if table.name().schema.starts_with('_') {
        return Ok(Some("the table it belongs to"));
    }
    let positions = table.progress_with_prefix("tributary:").await?;
    let pipeline = positions.keys().any(|app_id| !app_id.starts_with("tributary:push:"));
    Ok(pipeline.then_some("a pipeline"))
}

/// A function that people made, by its full name, or by its last parts where only one is called so.
async fn function_named(catalogues: &mut Catalogues, name: &Name) -> Result<functions::Kept, Error> {
    let all = functions::load(catalogues.lake()).await?;
    let (catalogue, schema) = (catalogues.catalogue.clone(), catalogues.schema.clone());
    let wanted: Vec<&str> = match (name.parts.as_slice(), &schema) {
        ([function], Some(schema)) => vec![&catalogue, schema, function],
        ([schema, function], _) => vec![&catalogue, schema, function],
        (parts, _) => parts.iter().map(String::as_str).collect(),
    };
    let is_called = |made: &&functions::Kept| {
        let names = made.function.names.iter().rev().zip(wanted.iter().rev());
        names.into_iter().all(|(name, wanted)| name.eq_ignore_ascii_case(wanted))
    };
    match all.iter().filter(is_called).collect::<Vec<_>>().as_slice() {
        [found] => Ok((*found).clone()),
        [] => {
            let names: Vec<String> = all.iter().map(|made| made.function.full_name()).collect();
            let nearest = nearest(&wanted.join("."), names.iter().map(String::as_str)).map(str::to_owned);
            Err(Error::Missing { kind: "function", name: name.to_string(), nearest })
        }
        several => {
            let candidates = several.iter().map(|made| made.function.full_name()).collect::<Vec<_>>().join(", ");
            Err(TextError::Ambiguous { name: name.to_string(), candidates, span: name.span }.into())
        }
    }
}

/// Why a commit is to be planned again; none where it is done.
fn lost(outcome: &CommitOutcome) -> Option<String> {
    match outcome {
        CommitOutcome::Committed { .. } => None,
        CommitOutcome::Conflicted(conflict) => Some(conflict.to_string()),
        CommitOutcome::Fenced { app_id, .. } => Some(format!("another run moved the position {app_id}")),
    }
}
