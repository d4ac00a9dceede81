//! `tributary maintain vacuum | clean-log | restore | fsck | readers`.

mod command;
mod tell;

use std::time::Duration;

use clap::ArgMatches;
use serde::Serialize;
use tributary::maintenance::{
    CleanLogOptions, Error, FsckOptions, LONGEST_WRITE_DEFAULT, Positions, Reader, RestoreOptions, RestoreTo, Status, VacuumMode,
    VacuumOptions,
};
use tributary::{ExitCode, Fault as _, Lake, TableName};
use tributary_config::{Loaded, Output};

pub use command::verbs;

use self::tell::Told;
use crate::failure::{Failure, Outcome};
use crate::{opened, output, start, typed};

/// Whether a verb is one of these.
pub fn is_verb(verb: &str) -> bool {
    verbs("").iter().any(|command| command.get_name() == verb)
}

/// Executes one of them.
pub fn upkeep(verb: &str, loaded: &Loaded, matches: &ArgMatches) -> Outcome {
    let lake = opened::existing_lake(&loaded.settings)?;
    let catalogue = loaded.settings.catalogue.as_str();
    let output = loaded.settings.output;
    match verb {
        "vacuum" => {
            let options = vacuum_options(matches)?;
            let reports =
                start::block_on(async { lake.vacuum(&tables(&lake, matches, catalogue).await?, &options).await.map_err(failure) })?;
            tell_all(output, &reports, |_| ExitCode::Done)
        }
        "clean-log" => {
            let options = clean_log_options(matches)?;
            let reports =
                start::block_on(async { lake.clean_log(&tables(&lake, matches, catalogue).await?, &options).await.map_err(failure) })?;
            tell_all(output, &reports, |_| ExitCode::Done)
        }
        "restore" => {
            let (to, options) = restore_options(matches)?;
            let report = start::block_on(async {
                let table = one_table(&lake, matches, catalogue).await?;
                Ok(lake.restore(&table, to, &options).await)
            })?;
            tell_all(output, &[report], |_| ExitCode::Done)
        }
        "fsck" => {
            let options =
                FsckOptions { repair: matches.get_flag("repair"), accept_lost_files: matches.get_one::<u64>("accept_lost_files").copied() };
            let reports = start::block_on(async { Ok(lake.fsck(&tables(&lake, matches, catalogue).await?, options).await) })?;
            tell_all(output, &reports, |report| if report.status == Status::Left { ExitCode::BadInput } else { ExitCode::Done })
        }
        _ => {
            let readers = start::block_on(async {
                let table = one_table(&lake, matches, catalogue).await?;
                lake.readers(&lake.table(&table.to_string()).await?).await.map_err(failure)
            })?;
            output::rows(output, &tell::readers(&readers)?)
        }
    }
}

async fn tables(lake: &Lake, matches: &ArgMatches, catalogue: &str) -> Result<Vec<TableName>, Failure> {
    let named: Vec<String> = matches.get_many::<String>("tables").into_iter().flatten().cloned().collect();
    let named = typed::tables(&named, catalogue)?;
    Ok(lake.tables_named(&named.iter().map(String::as_str).collect::<Vec<_>>()).await?)
}

async fn one_table(lake: &Lake, matches: &ArgMatches, catalogue: &str) -> Result<TableName, Failure> {
    let named = typed::table(&matches.get_one::<String>("table").cloned().unwrap_or_default(), catalogue)?;
    let mut found = lake.tables_named(&[&named]).await?;
    found.pop().ok_or_else(|| tributary::Error::NoTable { table: named }.into())
}

fn vacuum_options(matches: &ArgMatches) -> Result<VacuumOptions, Failure> {
    Ok(VacuumOptions {
        mode: if matches.get_flag("lite") { VacuumMode::Lite } else { VacuumMode::Full },
        retain: hours(matches, "retain-hours"),
        accept_unsafe_retention: matches.get_flag("accept-unsafe-retention"),
        longest_write: hours(matches, "longest-write-hours").unwrap_or(LONGEST_WRITE_DEFAULT),
        outside: outside(matches)?,
        ignore_readers: texts(matches, "ignore-reader"),
        dry_run: matches.get_flag("dry-run"),
    })
}

fn clean_log_options(matches: &ArgMatches) -> Result<CleanLogOptions, Failure> {
    Ok(CleanLogOptions {
        retain: hours(matches, "retain-hours"),
        accept_unsafe_retention: matches.get_flag("accept-unsafe-retention"),
        longest_write: hours(matches, "longest-write-hours").unwrap_or(LONGEST_WRITE_DEFAULT),
        outside: outside(matches)?,
        ignore_readers: texts(matches, "ignore-reader"),
        dry_run: matches.get_flag("dry-run"),
    })
}

fn restore_options(matches: &ArgMatches) -> Result<(RestoreTo, RestoreOptions), Failure> {
    let to = match (matches.get_one::<u64>("version"), matches.get_one::<String>("timestamp")) {
        (Some(version), _) => RestoreTo::Version(*version),
        (None, text) => {
            let text = text.map(String::as_str).unwrap_or_default();
            let instant = tributary::sql::instant(text).ok_or_else(|| {
                refused(text, "an instant, such as '2024-05-01', '2024-05-01 12:00:00' (UTC) or '2024-05-01T12:00:00+02:00'")
            })?;
            RestoreTo::Timestamp(instant)
        }
    };
    let keeps = matches.get_one::<String>("positions").is_some_and(|positions| positions == "keep");
    let positions = if keeps { Positions::Keep } else { Positions::Back };
    Ok((to, RestoreOptions { positions, dry_run: matches.get_flag("dry-run"), ..RestoreOptions::default() }))
}

fn hours(matches: &ArgMatches, name: &str) -> Option<Duration> {
    matches.get_one::<u64>(name).map(|hours| Duration::from_secs(hours.saturating_mul(3600)))
}

fn texts(matches: &ArgMatches, name: &str) -> Vec<String> {
    matches.get_many::<String>(name).into_iter().flatten().cloned().collect()
}

fn outside(matches: &ArgMatches) -> Result<Vec<Reader>, Failure> {
    let reader = |text: String| {
        let (name, needs) = text.split_once('=').ok_or_else(|| refused(&text, "NAME=NEEDS"))?;
        let needs = needs
            .parse()
            .map_err(|_: String| refused(&text, "NAME=NEEDS, where NEEDS is a version, such as 12, or a time, such as 7 days"))?;
        Ok(Reader { name: name.to_owned(), needs, declared: true })
    };
    texts(matches, "reader").into_iter().map(reader).collect()
}

fn refused(value: &str, expected: impl Into<String>) -> Failure {
    crate::failure::Error::Argument { value: value.to_owned(), expected: expected.into(), command: "tributary maintain" }.into()
}

fn failure(error: Error) -> Failure {
    told(&error)
}

fn told(error: &Error) -> Failure {
    Failure {
        exit_code: ExitCode::of(error.class()),
        code: error.code().to_string(),
        message: tributary::chain(error),
        next: error.next_command(),
    }
}

/// Prints what was done to each table, and what failed.
fn tell_all<R: Told + Serialize>(output: Output, reports: &[Result<R, Error>], exit: impl Fn(&R) -> ExitCode) -> Outcome {
    let done: Vec<&R> = reports.iter().filter_map(|report| report.as_ref().ok()).collect();
    let failed: Vec<Failure> = reports.iter().filter_map(|report| report.as_ref().err()).map(told).collect();
    let codes = done.iter().map(|report| exit(report)).chain(failed.iter().map(|failure| failure.exit_code));
    let exit_code = ExitCode::worst(codes).code();
    match output {
        Output::Table => start::print(&done.iter().map(|report| report.text()).collect::<String>())?,
        Output::Json => {
            let errors: Vec<String> = failed.iter().map(|failure| format!("{}: {}", failure.code, failure.message)).collect();
            let document = serde_json::json!({ "tables": done, "errors": errors, "exit_code": exit_code });
            start::print(&format!("{document:#}\n"))?
        }
        Output::Csv => output::rows(Output::Csv, &tell::rows(&done)?)?,
    };
    failed.iter().for_each(|failure| eprint!("{}", failure.text()));
    Ok(exit_code)
}
