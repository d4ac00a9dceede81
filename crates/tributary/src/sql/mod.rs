//! SQL texts of people, over the tables of a lake.
//!
//! The text is Databricks SQL. DataFusion executes it, but DataFusion reads that dialect with other meanings: it parses
//! `VERSION AS OF` and ignores it, folds or does not fold names, sorts nulls the other way, divides whole numbers to whole
//! numbers. So a text goes through four steps, and what none of them knows is refused by name instead of answered wrongly:
//!
//! ```text
//! text ──▶ parse ──▶ one query (or EXPLAIN of one)
//!            ▼
//!          uses.rs     which tables, at which version, or which changes
//!            ▼
//!          open.rs     those versions, those change feeds          (the only step that reads)
//!            ▼
//!          rewrite     names found without regard to case and spelled as they are; every clause, operator and
//!                      function either known to mean the same here, or given our meaning, or refused
//!            ▼
//!          meaning.rs  what only types can tell: comparisons and casts that mean something else here
//!            ▼
//!          DataFusion
//! ```
//!
//! - `catalogue.schema.table`, `schema.table`, or `table` where only one schema has it; the catalogue `system` is there too.
//! - `FROM t VERSION AS OF n`, `FROM t TIMESTAMP AS OF '…'` (UTC).
//! - `FROM table_changes('schema.table', from[, to])`, versions or instants, both included.
//! - 64-bit whole numbers wrap on overflow, where the platform would stop.

mod changes;
mod ddl;
mod error;
mod expression;
mod functions;
mod meaning;
mod open;
mod parse;
mod quotient;
mod rewrite;
mod rounding;
mod scope;
#[cfg(test)]
mod tests;
mod types;
mod uses;

pub use ddl::{create_table, definition};
pub use error::Error;
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::datafusion::sql::parser::Statement;

use crate::Lake;

/// Plans one query (or `EXPLAIN` of one) over the tables of a lake. Nothing but the logs of those tables has been read when
/// it returns; collecting or streaming the frame runs it, within the lake's memory limit.
///
/// # Errors
/// [`Error::Syntax`] with line and column, [`Error::Refused`] for what this release does not execute as the dialect means it,
/// [`Error::NoTable`] and [`Error::NoColumn`] with the nearest name.
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
    let mut statement = parse::statement(text)?;
    let uses = uses::collect(&statement)?;
    let tables = open::open(lake, uses).await?;
    rewrite::statement(&mut statement, &tables)?;
    let context = tables.session(lake);
    let state = context.state();
    let plan = state.statement_to_plan(Statement::Statement(Box::new(statement))).await.map_err(Error::plan)?;
    meaning::check(&plan)?;
    Ok(DataFrame::new(state, plan))
}
