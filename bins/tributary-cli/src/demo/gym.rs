//! The demo of the gym pipeline: sample files become tables, and every table is compared with what the records make of it.

use std::path::Path;

use tributary::{ExitCode, Lake, OpenOptions, Pipeline, RunOptions, SqlOptions};

use super::{drop_file, fresh_folder, picture, text};
use crate::gym::{Gym, GymOptions, compare};
use crate::init;

/// Where templates have the pipeline's SQL.
const FOLDER: &str = "dlt_pipelines/gym/";

/// The SQL files of the pipeline, and their texts.
pub fn statements() -> Vec<(String, String)> {
    let files = init::of_template("gym").into_iter();
    files
        .filter_map(|(path, text)| Some((path.strip_prefix(FOLDER)?.to_owned(), text)))
        .filter(|(name, _)| name.ends_with(".sql"))
        .collect()
}

/// Writes the files, runs the pipeline as of the day after the last one, and says of each table whether it equals what the records tell.
///
/// # Errors
/// What keeps it from running, in words.
pub async fn demo(options: GymOptions, folder: Option<&Path>, out: &mut dyn std::io::Write) -> Result<ExitCode, String> {
    let folder = fresh_folder(folder.unwrap_or(Path::new("data")))?;
    let (gym, as_of) = (Gym::of(options), options.first_day + chrono::Days::new(u64::from(options.days)));
    gym.write(&folder.join("raw")).map_err(text)?;
    let statements = statements();
    for (name, statement) in &statements {
        drop_file(&folder, &format!("gym/{name}"), statement.as_bytes())?;
    }
    let files: Vec<(&str, &str)> = statements.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let pipeline = Pipeline::from_sql(&files, &SqlOptions { name: "gym".to_owned(), ..SqlOptions::default() }).map_err(text)?;
    let lake = Lake::open(&folder.join("lake").to_string_lossy(), OpenOptions::default()).map_err(text)?;
    let day = as_of.and_time(chrono::NaiveTime::MIN).and_utc();
    let run = RunOptions { base_data_path: folder.join("raw"), as_of: Some(day), ..RunOptions::default() };
    let report = lake.run(&pipeline, run).await.map_err(text)?;
    let mut say = |line: String| writeln!(out, "{line}").map_err(text);
    say(picture(&pipeline, &report))?;
    for (dataset, error) in report.datasets.iter().filter_map(|dataset| Some((dataset, dataset.error.as_ref()?))) {
        say(format!("error: {} {}: {}", dataset.table, error.code, error.message))?;
    }
    let place = folder.display();
    say(format!("again: tributary run --pipeline {place}/gym --base-data-path {place}/raw --warehouse {place}/lake --as-of {as_of}\n"))?;
    if report.exit_code() != ExitCode::Done {
        return Ok(report.exit_code());
    }
    let mut equal = true;
    for compared in compare(&lake, &gym.expected(as_of)).await? {
        let verdict = if compared.differences.is_empty() { "equals what the records tell" } else { "DIFFERS from what the records tell" };
        say(format!("{}  {} rows  {verdict}", compared.table, compared.rows))?;
        compared.differences.iter().try_for_each(|line| say(format!("  {line}")))?;
        equal &= compared.differences.is_empty();
    }
    Ok(if equal { ExitCode::Done } else { ExitCode::Failed })
}
