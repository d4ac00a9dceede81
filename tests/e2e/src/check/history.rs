//! The history of a customer neither overlaps nor has more than one open row.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use tributary::Lake;
use tributary::arrow::array::{Array as _, AsArray as _};
use tributary::arrow::datatypes::Int64Type;

use super::{Outcome, Sides};

pub(super) async fn check(lake: &Lake, sides: &Sides<'_>, outcome: &mut Outcome) -> Result<()> {
    if !sides.tables.iter().any(|table| table.silver == "silver.customers") {
        return Ok(());
    }
    let query = "select id, cast(__START_AT as string), cast(__END_AT as string) from silver.customers";
    let mut histories: BTreeMap<i64, Vec<(String, Option<String>)>> = BTreeMap::new();
    for batch in tributary::sql::query(lake, query).await?.collect().await? {
        let ids = batch.column(0).as_primitive_opt::<Int64Type>().context("ids are longs")?;
        let starts = batch.column(1).as_string_opt::<i32>().context("starts are text")?;
        let ends = batch.column(2).as_string_opt::<i32>().context("ends are text")?;
        for row in 0..batch.num_rows() {
            let end = ends.is_valid(row).then(|| ends.value(row).to_owned());
            histories.entry(ids.value(row)).or_default().push((starts.value(row).to_owned(), end));
        }
    }
    let versions: usize = histories.values().map(Vec::len).sum();
    outcome.details.push(format!("silver.customers: {versions} periods of {} customers", histories.len()));
    for (id, mut history) in histories {
        history.sort();
        let overlaps = history.windows(2).any(|pair| match &pair[0].1 {
            None => true,
            Some(end) => *end > pair[1].0,
        });
        let inverted = history.iter().any(|(start, end)| end.as_ref().is_some_and(|end| end < start));
        if overlaps || inverted {
            outcome.fail(format!("silver.customers [id={id}]: periods overlap: {history:?}"));
        }
    }
    Ok(())
}
