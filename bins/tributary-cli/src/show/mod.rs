//! `tributary show`.

mod history;
mod lineage;
mod tables;

use clap::ArgMatches;
use tributary_config::{Loaded, Output};

use crate::failure::Outcome;
use crate::{opened, output, sql, start, typed};

/// One of its commands.
pub fn show(what: &str, loaded: &Loaded, matches: &ArgMatches) -> Outcome {
    let lake = opened::existing_lake(&loaded.settings)?;
    let output = loaded.settings.output;
    let limit = matches.try_get_one::<u64>("limit").ok().flatten().copied().unwrap_or(20);
    let table = || matches.get_one::<String>("table").cloned().unwrap_or_default();
    match what {
        "tables" => output::rows(output, &start::block_on(tables::rows(&lake))?),
        "history" => {
            let table = typed::table(&table(), loaded.settings.catalogue.as_str())?;
            output::rows(output, &start::block_on(history::rows(&lake, &table, limit))?)
        }
        "sample" => start::block_on(sql::query(&lake, &sample(&table(), matches, limit), output)),
        "lineage" => {
            let table = matches.get_one::<String>("table").map(String::as_str);
            if let Some(table) = table {
                start::block_on(lineage::ensure_known(&lake, loaded.settings.catalogue.as_str(), table))?;
            }
            kept(&lake, &lineage::query(loaded.settings.catalogue.as_str(), table), "target", output)
        }
        _ => kept(&lake, &runs(limit, output), "run_id", output),
    }
}

/// Rows of what runs have kept; none, under the name of the first column, where no run has kept anything yet.
fn kept(lake: &tributary::Lake, query: &str, first: &str, output: Output) -> Outcome {
    match start::block_on(async { Ok(tributary::sql::query(lake, query).await) })? {
        // the table is made by the first run that has something to say
        Err(tributary::sql::Error::Text(tributary::sql::TextError::NoTable { .. })) => {
            output::rows(output, &output::batch(vec![(first, output::text::<String>([]))])?)
        }
        Err(error) => Err(error.into()),
        Ok(_) => start::block_on(sql::query(lake, query, output)),
    }
}

fn sample(table: &str, matches: &ArgMatches, limit: u64) -> String {
    let version = matches.get_one::<u64>("version").map(|version| format!(" VERSION AS OF {version}"));
    let instant = matches.get_one::<String>("timestamp").map(|at| format!(" TIMESTAMP AS OF {}", sql::literal(at)));
    format!("SELECT * FROM {}{} LIMIT {limit}", quoted(table), version.or(instant).unwrap_or_default())
}

/// A dotted name as a person types it, each part back-quoted.
fn quoted(table: &str) -> String {
    let parts = if table.contains('`') { vec![table.to_owned()] } else { table.split('.').map(|part| format!("`{part}`")).collect() };
    parts.join(".")
}

/// Past runs, newest first: for people what tells most, for programs everything that is kept.
fn runs(limit: u64, output: Output) -> String {
    let columns = match output {
        Output::Table => {
            "started_at, `table`, status, mode, reason, rows_in, rows_inserted, rows_updated, rows_deleted, rows_quarantined, \
             rows_ignored, version_from, version_to, millis, error_code, error"
        }
        Output::Json | Output::Csv => "*",
    };
    format!("SELECT {columns} FROM system.tributary.runs ORDER BY started_at DESC, `table` LIMIT {limit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_part_by_part() {
        assert_eq!(quoted("silver.order items"), "`silver`.`order items`");
        assert_eq!(quoted("silver.`a.b`"), "silver.`a.b`");
    }
}
