//! Masks and row filters that statements recorded on tables which a run writes. Nothing enforces them, so a person must have accepted that.

use std::collections::BTreeSet;

use tributary_specs::TableName;

use crate::{Error, Lake, Pipeline, RunOptions, sql};

/// What is recorded on any of these tables: the table and the clause in words, sorted.
pub(crate) async fn recorded(lake: &Lake, tables: &BTreeSet<TableName>) -> Result<Vec<(TableName, String)>, Error> {
    let catalogue = &lake.inner().options().catalogue;
    let mut found = Vec::new();
    for mask in sql::recorded_masks(lake.inner()).await? {
        if !mask.catalogue.eq_ignore_ascii_case(catalogue) {
            continue;
        }
        let of_it = tables.iter().filter(|table| table.same_without_case(&mask.table));
        found.extend(of_it.map(|table| (table.clone(), mask.in_words())));
    }
    found.sort();
    Ok(found)
}

/// The pipeline with what is recorded on the tables that are written, for its reports.
///
/// # Errors
/// [`Error::Unprotected`] where there is any and the options do not accept it.
pub(crate) async fn accepted(
    lake: &Lake,
    pipeline: Pipeline,
    tables: &BTreeSet<TableName>,
    options: &RunOptions,
) -> Result<Pipeline, Error> {
    let clauses: Vec<String> = recorded(lake, tables).await?.into_iter().map(|(_, clause)| clause).collect();
    match clauses.is_empty() || options.accept_unprotected {
        true => Ok(pipeline.with_unprotected(clauses)),
        false => Err(Error::Unprotected { clauses }),
    }
}
