//! SQL texts of people, over the tables of a lake.
//!
//! The text is Databricks SQL in Spark's meaning, as `tributary_spark_sql` reads it: the same in `sql`, in views, selects, rules and
//! conditions. What is read of which table, `open.rs` opens; `VERSION AS OF`, `TIMESTAMP AS OF` and `table_changes(…)` are executed
//! here alone. The catalogue `system` is there too.

mod changes;
mod ddl;
mod error;
mod open;

pub use ddl::{create_table, definition};
pub use error::Error;
use tributary_lake::datafusion::prelude::DataFrame;
pub use tributary_spark_sql::Error as TextError;
use tributary_spark_sql::Text;

use crate::Lake;

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
    let text = Text::parse(text)?;
    let tables = open::open(lake, text.uses()).await?;
    let context = lake.inner().session();
    tributary_spark_sql::prepare(&context);
    let mut state = context.state();
    state.execution_props_mut().query_execution_start_time = Some(lake.inner().clock().now());
    let plan = text.plan(&context, &state, &tables, &[]).await?;
    Ok(DataFrame::new(state, plan))
}
