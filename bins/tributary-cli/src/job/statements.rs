//! Statements of a file, executed one after the other.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use tributary::arrow::util::display::array_value_to_string;
use tributary::datafusion::prelude::DataFrame;
use tributary::sql::{Answer, Session, SessionOptions, steps};
use tributary::{ExitCode, Lake};

use crate::failure::{Error, Failure};
use crate::progress;

/// What the statements of a text came to.
#[derive(Debug, Default)]
pub struct Executed {
    /// The first row of the last statement that has rows, by column.
    pub first_row: BTreeMap<String, String>,
    /// What definitions among them say and a run does not do, a line each.
    pub not_done: Vec<String>,
}

/// Executes every statement of a text.
pub async fn run(lake: &Lake, name: &str, text: &str, options: SessionOptions) -> Result<Executed, Failure> {
    let mut session = Session::new(lake, options);
    let mut executed = Executed::default();
    for step in steps(name, text)? {
        match session.execute(step).await? {
            Answer::Rows(frame) => executed.first_row = first_row(*frame).await?,
            Answer::Ran(report) if report.exit_code() != ExitCode::Done => return Err(super::live::failure_of(&report)),
            Answer::Ran(report) => executed.not_done.extend(progress::not_done(&report)),
            Answer::Done(_) => {}
        }
    }
    Ok(executed)
}

/// Runs a query to its end and keeps its first row.
async fn first_row(frame: DataFrame) -> Result<BTreeMap<String, String>, Failure> {
    let failed = |error| Failure::from(tributary::sql::Error::run(error));
    let mut rows = frame.execute_stream().await.map_err(failed)?;
    let mut first = None;
    while let Some(batch) = rows.try_next().await.map_err(failed)? {
        if first.is_some() || batch.num_rows() == 0 {
            continue;
        }
        let schema = batch.schema();
        let mut cells = BTreeMap::new();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            cells.insert(field.name().clone(), array_value_to_string(column, 0).map_err(Error::Rows)?);
        }
        first = Some(cells);
    }
    Ok(first.unwrap_or_default())
}
