//! `tributary maintain` and `tributary-maintain`.

use std::io::Write as _;

use clap::ArgMatches;
use tributary::arrow::array::RecordBatch;
use tributary::maintenance::{Amount, Event, Options, Report, Status, TableReport, Task};
use tributary_config::{Loaded, Output, Settings};

use crate::failure::{Error, Failure, Outcome};
use crate::output::{batch, text, whole};
use crate::{files, opened, output, start, typed};

/// Does a task to the tables that are named, or to all.
pub fn maintain(verb: &str, loaded: &Loaded, matches: &ArgMatches) -> Outcome {
    let settings = &loaded.settings;
    let lake = opened::existing_lake(settings)?;
    let named: Vec<String> = matches.get_many::<String>("tables").into_iter().flatten().cloned().collect();
    let tables = typed::tables(&named, settings.catalogue.as_str())?;
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    let (task, options) = (task(verb, matches), options(settings, matches));
    let as_text = settings.output == Output::Table;
    let tell = |event: Event<'_>| {
        if as_text && let Some(line) = line(event) {
            // Who no longer reads has seen enough; the work goes on.
            let _ = writeln!(std::io::stdout().lock(), "{line}");
        }
    };
    let report = start::block_on(async { Ok(lake.maintain(&tables, &task, &options, &tell).await?) })?;
    let exit_code = report.exit_code().code();
    if let Some(file) = &settings.report {
        let written = files::write(file, &document(&report, exit_code));
        written.map_err(|source| Error::Io { action: format!("writing the report {}", file.display()), source })?;
    }
    match settings.output {
        Output::Table => start::print(&format!("{}\n", summary(&report)))?,
        Output::Json => start::print(&document(&report, exit_code))?,
        Output::Csv => output::rows(Output::Csv, &rows(&report)?)?,
    };
    for table in &report.tables {
        if let Some(error) = &table.error {
            eprint!("{}", failure(error).text());
        }
    }
    Ok(exit_code)
}

fn task(verb: &str, matches: &ArgMatches) -> Task {
    match verb {
        "optimize" => Task::Optimize,
        "cluster" => Task::Cluster,
        "zorder" => Task::ZOrder(matches.get_many::<String>("by").into_iter().flatten().cloned().collect()),
        "reorg" => Task::Reorg,
        "checkpoint" => Task::Checkpoint,
        _ => Task::Auto,
    }
}

fn options(settings: &Settings, matches: &ArgMatches) -> Options {
    Options {
        group_bytes: settings.max_group_bytes.bytes(),
        cube_bytes: settings.max_sort_bytes.bytes(),
        vector_share: f64::from(settings.purge_percent.get()) / 100.0,
        time_limit: settings.time_limit,
        yield_to: settings.yield_to,
        dry_run: matches.get_flag("dry_run"),
    }
}

fn failure(error: &tributary::maintenance::Error) -> Failure {
    use tributary::{ExitCode, Fault as _};
    Failure {
        exit_code: ExitCode::of(error.class()),
        code: error.code().to_string(),
        message: tributary::chain(error),
        next: error.next_command(),
    }
}

/// What a person reads of an event; nothing of a table that nothing is done to.
fn line(event: Event<'_>) -> Option<String> {
    match event {
        Event::Planned(table) => Some(format!("{}: {}: {} expected", table.table, table.reason, change(table.before, table.predicted))),
        Event::Ended(table) => match table.status {
            Status::NothingToDo => None,
            Status::Planned => Some(format!("{}: {}: {} expected", table.table, table.reason, change(table.before, table.predicted))),
            Status::Done => Some(format!("{}: {}{}", table.table, change(table.before, table.after), extra(table))),
            Status::Left => Some(format!(
                "{}: {}{}; left: {}",
                table.table,
                change(table.before, table.after),
                extra(table),
                table.left.as_deref().unwrap_or_default()
            )),
            Status::Skipped => Some(format!("{}: skipped: {}", table.table, table.left.as_deref().unwrap_or_default())),
            Status::Failed => Some(format!("{}: failed", table.table)),
        },
    }
}

fn extra(table: &TableReport) -> String {
    let commits = (table.commits > 0).then(|| format!("{} commits", table.commits));
    let lost = (table.lost_races > 0).then(|| format!("{} lost races", table.lost_races));
    let checkpoint = table.checkpoint.then(|| "a checkpoint".to_owned());
    let said: Vec<String> = commits.into_iter().chain(lost).chain(checkpoint).collect();
    if said.is_empty() { String::new() } else { format!(", in {}", said.join(", ")) }
}

fn change(before: Amount, after: Amount) -> String {
    format!("{} → {}", amount(before), amount(after))
}

fn amount(amount: Amount) -> String {
    let files = if amount.files == 1 { "file" } else { "files" };
    format!("{} {files}, {}", amount.files, bytes(amount.bytes))
}

fn bytes(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, each)| bytes >= *each) {
        Some((unit, each)) => format!("{:.1} {unit}", bytes as f64 / each as f64),
        None => format!("{bytes} bytes"),
    }
}

fn summary(report: &Report) -> String {
    if report.nothing_to_do() {
        return "nothing to do".to_owned();
    }
    let sum = |of: fn(&TableReport) -> Amount| {
        report.tables.iter().map(of).fold(Amount::default(), |mut sum, amount| {
            sum += amount;
            sum
        })
    };
    let is_dry = report.tables.iter().any(|table| table.status == Status::Planned);
    let after = if is_dry { sum(|table| table.predicted) } else { sum(|table| table.after) };
    let expected = if is_dry { " expected; nothing was written" } else { "" };
    format!("{} tables: {}{expected}", report.tables.len(), change(sum(|table| table.before), after))
}

fn document(report: &Report, exit_code: u8) -> String {
    let mut document = serde_json::to_value(report).unwrap_or_default();
    document["exit_code"] = exit_code.into();
    document["nothing_to_do"] = report.nothing_to_do().into();
    format!("{document:#}\n")
}

fn rows(report: &Report) -> Result<RecordBatch, Failure> {
    let texts = |of: fn(&TableReport) -> Option<String>| text(report.tables.iter().map(of));
    let numbers = |of: fn(&TableReport) -> u64| whole(report.tables.iter().map(|table| Some(of(table))));
    let status = |table: &TableReport| serde_json::to_value(table.status).ok()?.as_str().map(str::to_owned);
    batch(vec![
        ("table", texts(|table| Some(table.table.to_string()))),
        ("status", texts(status)),
        ("reason", texts(|table| Some(table.reason.clone()).filter(|reason| !reason.is_empty()))),
        ("files_before", numbers(|table| table.before.files)),
        ("bytes_before", numbers(|table| table.before.bytes)),
        ("files_predicted", numbers(|table| table.predicted.files)),
        ("bytes_predicted", numbers(|table| table.predicted.bytes)),
        ("files_after", numbers(|table| table.after.files)),
        ("bytes_after", numbers(|table| table.after.bytes)),
        ("commits", numbers(|table| table.commits)),
        ("lost_races", numbers(|table| table.lost_races)),
        ("left", texts(|table| table.left.clone())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_said_in_their_units() {
        assert_eq!(amount(Amount { files: 1, bytes: 900 }), "1 file, 900 bytes");
        assert_eq!(amount(Amount { files: 12, bytes: 3 << 19 }), "12 files, 1.5 MiB");
        assert_eq!(summary(&Report::default()), "nothing to do");
    }
}
