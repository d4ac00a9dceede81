//! Silver tables against the databases, column by column; differences must be the predicted ones.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use tributary::Lake;
use tributary::arrow::array::RecordBatch;
use tributary::arrow::compute::{filter_record_batch, is_null};
use tributary_cli::demo::{Cell, compare};

use super::{Outcome, Sides};
use crate::run::Compared;
use crate::source;

/// Differences of one column that must be there, because of what the connectors do.
pub struct Prediction {
    /// The source table.
    pub table: &'static str,
    /// The column; `(row)` for whole rows.
    pub column: &'static str,
    /// What the connectors do.
    pub why: &'static str,
    /// Whether this difference is the predicted one.
    pub explains: Box<dyn Fn(&Cell) -> bool + Send + Sync>,
}

impl std::fmt::Debug for Prediction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}: {}", self.table, self.column, self.why)
    }
}

/// Differences of one column that are shown.
const SHOWN: usize = 3;

pub(super) async fn check(lake: &Lake, sides: &Sides<'_>, outcome: &mut Outcome) -> Result<()> {
    for compared in sides.tables {
        let line = of_table(lake, sides, outcome, compared).await.with_context(|| format!("comparing {}", compared.silver))?;
        if compared.promised { outcome.lines.push(line) } else { outcome.details.push(line) }
    }
    Ok(())
}

async fn of_table(lake: &Lake, sides: &Sides<'_>, outcome: &mut Outcome, compared: &Compared) -> Result<String> {
    let Compared { silver, table, database, .. } = compared;
    let expected = source::read(database, table)?;
    let batches: Vec<RecordBatch> = lake.table(silver).await?.scan().await?.try_collect().await?;
    let live = batches.iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut left = compare(database.server, &expected, &live, &BTreeMap::new());
    for prediction in sides.predictions.iter().filter(|prediction| prediction.table == *table) {
        let cells = left.differences.remove(prediction.column).unwrap_or_default();
        let (explained, other): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(|cell| (prediction.explains)(cell));
        if explained.is_empty() {
            outcome.fail(format!("{silver} {}: nothing differs, though it is said that {}", prediction.column, prediction.why));
        } else {
            outcome.details.push(format!(
                "{silver} {}: {} values differ as predicted: {}",
                prediction.column,
                explained.len(),
                prediction.why
            ));
        }
        if !other.is_empty() {
            left.differences.insert(prediction.column.to_owned(), other);
        }
    }
    for (column, cells) in &left.differences {
        for cell in cells.iter().take(SHOWN) {
            let side = |value: &Option<String>| value.as_deref().map_or_else(|| "null".to_owned(), short);
            outcome.details.push(format!("{silver} [{}] {column}: source {}, lake {}", cell.key, side(&cell.source), side(&cell.lake)));
        }
        if cells.len() > SHOWN {
            outcome.details.push(format!("{silver} {column}: and {} more", cells.len() - SHOWN));
        }
    }
    outcome.holds &= left.equal();
    let excluded: usize = if sides.predictions.is_empty() {
        0
    } else {
        let columns: std::collections::BTreeSet<&str> =
            sides.predictions.iter().filter(|prediction| prediction.table == *table).map(|prediction| prediction.column).collect();
        columns.len()
    };
    let verdict = match (left.equal(), excluded) {
        (false, _) => "DIFFERS from source",
        (true, 0) => "equals source",
        (true, _) => "equals source but for what was predicted",
    };
    Ok(format!("{silver}  {} rows, {} columns, {excluded} excluded  {verdict}", left.rows, left.columns))
}

/// The rows of a history that are current; all rows of any other table.
fn open(batch: &RecordBatch) -> Result<RecordBatch> {
    match batch.column_by_name("__END_AT") {
        None => Ok(batch.clone()),
        Some(end) => Ok(filter_record_batch(batch, &is_null(end)?)?),
    }
}

fn short(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST { format!("{text:?}") } else { format!("{:?}…", text.chars().take(LONGEST).collect::<String>()) }
}
