//! `tributary diff TABLE FROM TO`.

use clap::ArgMatches;
use tributary::{DiffOptions, ExitCode, Lake, Table, TableDiff};
use tributary_config::{Loaded, Output};

use crate::failure::{Error, Failure, Outcome};
use crate::{opened, output, start, typed};

/// Compares two versions of a table.
pub fn diff(loaded: &Loaded, matches: &ArgMatches) -> Outcome {
    let lake = opened::existing_lake(&loaded.settings)?;
    let given = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let name = typed::table(&given("table"), loaded.settings.catalogue.as_str())?;
    let keys: Vec<String> = matches.get_many::<String>("key").into_iter().flatten().cloned().collect();
    let limit = matches.get_one::<u64>("limit").copied().unwrap_or(10);
    let samples = usize::try_from(limit).unwrap_or(usize::MAX);
    let options = DiffOptions { keys: (!keys.is_empty()).then_some(keys), samples };
    let found = start::block_on(compared(&lake, &name, &given("from"), &given("to"), &options))?;
    match loaded.settings.output {
        Output::Table => {
            start::print(&format!("{}\n", summary(&name, &found)))?;
            match found.samples.num_rows() {
                0 => Ok(ExitCode::Done.code()),
                _ => output::rows(Output::Table, &found.samples),
            }
        }
        other => {
            // rows are for programs, words for people
            eprintln!("{}", summary(&name, &found));
            output::rows(other, &found.samples)
        }
    }
}

async fn compared(lake: &Lake, name: &str, from: &str, to: &str, options: &DiffOptions) -> Result<TableDiff, Failure> {
    let table = lake.table(name).await?;
    let (before, after) = (at(&table, from).await?, at(&table, to).await?);
    Ok(lake.diff(&before, &after, options).await?)
}

/// The table at a version, `v12` or `12`, or at an instant.
async fn at(table: &Table, point: &str) -> Result<Table, Failure> {
    let digits = point.strip_prefix(['v', 'V']).unwrap_or(point);
    if let Ok(version) = digits.parse() {
        return Ok(table.at_version(version).await?);
    }
    match tributary::sql::instant(point) {
        Some(instant) => Ok(table.at_instant(instant).await?),
        None => {
            let expected = "a version, such as 12, or an instant, such as '2024-05-01 12:00:00'".to_owned();
            Err(Error::Argument { value: point.to_owned(), expected, command: "tributary diff" }.into())
        }
    }
}

fn summary(name: &str, diff: &TableDiff) -> String {
    let TableDiff { before, after, added, removed, changed, bytes, .. } = diff;
    match diff.keys.as_slice() {
        [] => format!("{name} from version {before} to {after}: {added} rows added, {removed} removed; whole rows compared, {bytes} bytes"),
        keys => format!(
            "{name} from version {before} to {after}: {added} rows added, {removed} removed, {changed} changed by {}; {bytes} bytes compared",
            keys.join(", ")
        ),
    }
}
