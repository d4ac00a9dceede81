//! Masks and row filters that statements recorded on tables which a run writes, or reads. Nothing enforces them, so a person must have
//! accepted that: what is made of a table holds what its masks would hide.

use std::collections::BTreeSet;

use tributary_specs::TableName;

use crate::{Error, Lake, Pipeline, RunOptions, sql};

/// What is recorded on any table that these datasets write or read: the dataset and the clause in words, sorted.
pub(crate) async fn recorded(lake: &Lake, pipeline: &Pipeline, chosen: &BTreeSet<TableName>) -> Result<Vec<(TableName, String)>, Error> {
    let catalogue = &lake.inner().options().catalogue;
    let mut found = Vec::new();
    for mask in sql::recorded_masks(lake.inner()).await? {
        if !mask.catalogue.eq_ignore_ascii_case(catalogue) {
            continue;
        }
        let is_it = |table: &TableName| table.same_without_case(&mask.table);
        // of a table that the run writes it is told once, whoever reads it
        if let Some(table) = chosen.iter().find(|table| is_it(table)) {
            found.push((table.clone(), mask.in_words()));
            continue;
        }
        for dataset in pipeline.spec().datasets().into_iter().filter(|dataset| chosen.contains(&dataset.table)) {
            if pipeline.sources_of(dataset.layer, dataset.index).into_iter().any(is_it) {
                let clause = format!("{}, which `{}` reads", mask.in_words(), dataset.table);
                found.push((dataset.table, clause));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The pipeline with what is recorded on the tables that are written and read, for its reports.
///
/// # Errors
/// [`Error::Unprotected`] where there is any and the options do not accept it.
pub(crate) async fn accepted(
    lake: &Lake,
    pipeline: Pipeline,
    chosen: &BTreeSet<TableName>,
    options: &RunOptions,
) -> Result<Pipeline, Error> {
    let clauses: Vec<String> = recorded(lake, &pipeline, chosen).await?.into_iter().map(|(_, clause)| clause).collect();
    match clauses.is_empty() || options.accept_unprotected {
        true => Ok(pipeline.with_unprotected(clauses)),
        false => Err(Error::Unprotected { clauses }),
    }
}
