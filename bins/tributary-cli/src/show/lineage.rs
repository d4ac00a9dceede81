//! `tributary show lineage [TABLE]`: what the last run that committed to a table wrote of where its rows come from.

use tributary::Lake;
use tributary::sql::{Error, TextError};

use crate::failure::Failure;
use crate::sql::literal;

/// Refuses a table that is not in the lake and that no run has written, with the nearest one.
pub async fn ensure_known(lake: &Lake, catalogue: &str, table: &str) -> Result<(), Failure> {
    let suggestion = match tributary::sql::query(lake, &format!("SELECT 1 FROM {}", super::quoted(table))).await {
        Ok(_) => return Ok(()),
        Err(Error::Text(TextError::NoTable { suggestion, .. })) => suggestion,
        Err(error) => return Err(error.into()),
    };
    let was_written = match tributary::sql::query(lake, &query(catalogue, Some(table))).await {
        Ok(rows) => rows.limit(0, Some(1)).map_err(Error::run)?.count().await.map_err(Error::run)? > 0,
        // no run has kept any lineage yet
        Err(_) => false,
    };
    match was_written {
        true => Ok(()),
        false => Err(Error::Text(TextError::NoTable { table: table.to_owned(), suggestion, span: None }).into()),
    }
}

/// The pipeline that a row is of, whoever ran it.
const PIPELINE: &str = "l.entity_metadata.dlt_pipeline_info.dlt_pipeline_id";

/// A row a table and what it reads; with a table a row a column and a column that it comes from.
pub fn query(catalogue: &str, table: Option<&str>) -> String {
    match table {
        None => format!(
            "SELECT l.target_table_full_name AS target, coalesce(l.source_table_full_name, l.source_path) AS source, \
             l.source_type, l.target_type, {PIPELINE} AS pipeline, l.event_time \
             FROM system.access.table_lineage AS l JOIN (SELECT target_table_full_name AS target, max(event_time) AS latest \
             FROM system.access.table_lineage GROUP BY target_table_full_name) AS last \
             ON l.target_table_full_name = last.target AND l.event_time = last.latest \
             WHERE l.target_table_catalog = {} ORDER BY target, source",
            literal(catalogue)
        ),
        Some(table) => format!(
            "SELECT l.target_column_name AS `column`, coalesce(l.source_table_full_name, l.source_path) AS source, \
             l.source_column_name AS source_column, {PIPELINE} AS pipeline, l.event_time \
             FROM system.access.column_lineage AS l JOIN (SELECT max(event_time) AS latest FROM system.access.column_lineage \
             WHERE lower(target_table_full_name) = lower({name})) AS last ON l.event_time = last.latest \
             WHERE lower(l.target_table_full_name) = lower({name}) ORDER BY `column`, source, source_column",
            name = literal(&full_name(catalogue, table))
        ),
    }
}

/// The three names of a table, as the system table has them.
fn full_name(catalogue: &str, table: &str) -> String {
    match table.parse::<tributary::TableName>() {
        Ok(table) => format!("{catalogue}.{table}"),
        Err(_) => table.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_two_parts_is_completed_and_one_of_three_stays() {
        assert_eq!(full_name("main", "silver.orders"), "main.silver.orders");
        assert_eq!(full_name("main", "prod.silver.orders"), "prod.silver.orders");
        assert!(query("main", Some("silver.o'rders")).contains("'main.silver.o''rders'"));
    }
}
