//! Gold tables against their queries, run over silver as it is.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use tributary::Lake;
use tributary::arrow::array::RecordBatch;
use tributary::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{Outcome, Sides};

pub(super) async fn check(lake: &Lake, sides: &Sides<'_>, outcome: &mut Outcome) -> Result<()> {
    let mut equal = true;
    for view in &sides.pipeline.spec().gold {
        let wanted = rows(lake, &view.query).await.with_context(|| format!("running the query of {}", view.table))?;
        let columns: Vec<&str> = wanted.0.iter().map(String::as_str).collect();
        let found = rows(lake, &format!("select {} from {}", columns.join(", "), view.table)).await?;
        let total: i64 = wanted.1.values().sum();
        outcome.details.push(format!("{}: {total} rows", view.table));
        for (row, count) in &wanted.1 {
            let there = found.1.get(row).copied().unwrap_or(0);
            if there != *count {
                equal = false;
                outcome.details.push(format!("{}: the query has {row} {count} times, the table {there} times", view.table));
            }
        }
        for (row, there) in found.1.iter().filter(|(row, _)| !wanted.1.contains_key(*row)) {
            equal = false;
            outcome.details.push(format!("{}: the table has {row} {there} times, the query has no such row", view.table));
        }
    }
    outcome.holds &= equal;
    if sides.pipeline.spec().gold.is_empty() {
        return Ok(());
    }
    outcome.lines.push(if equal { "gold equals query".to_owned() } else { "gold DIFFERS from query".to_owned() });
    Ok(())
}

/// A bag of rows as text, and the columns' names.
async fn rows(lake: &Lake, query: &str) -> Result<(Vec<String>, BTreeMap<String, i64>)> {
    let frame = tributary::sql::query(lake, query).await?;
    let names = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut bag = BTreeMap::new();
    for batch in frame.collect().await? {
        for text in texts(&batch)? {
            *bag.entry(text).or_insert(0) += 1;
        }
    }
    Ok((names, bag))
}

fn texts(batch: &RecordBatch) -> Result<Vec<String>> {
    let options = FormatOptions::default().with_null("∅");
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect::<Result<Vec<_>, _>>()?;
    Ok((0..batch.num_rows())
        .map(|row| columns.iter().map(|column| format!("{:?}", column.value(row).to_string())).collect::<Vec<_>>().join(" "))
        .collect())
}
