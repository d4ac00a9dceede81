//! `tributary explain TABLE`.

use std::fmt::Write;

use clap::ArgMatches;
use tributary::arrow::array::RecordBatch;
use tributary::{Audit, Explained, InputCost, RefreshMode};
use tributary_config::{Loaded, Output};

use crate::bundle::{self, Given, Opened};
use crate::failure::{Failure, Outcome};
use crate::output::{batch, text, whole};
use crate::{opened, output, start};

/// Prints how a view would be refreshed; with `--audit` what some of its groups came to.
pub fn explain(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let table = matches.get_one::<String>("table").cloned().unwrap_or_default();
    let Opened { settings, pipeline, .. } = bundle::open(loaded, given)?;
    let lake = opened::existing_lake_or_empty(&settings)?;
    if let Some(groups) = matches.get_one::<usize>("audit") {
        let audit = start::block_on(async { Ok(lake.audit(&pipeline, &table, *groups).await?) })?;
        return start::print(&audited(&table, audit.as_ref()));
    }
    let Some(explained) = start::block_on(async { Ok(lake.explain(&pipeline, &table).await?) })? else {
        return start::print(&format!("{table}: a table that it reads is not there yet\n"));
    };
    match settings.output {
        Output::Table => start::print(&said(&table, &explained)),
        other => output::rows(other, &rows(&table, &explained)?),
    }
}

fn audited(table: &str, audit: Option<&Audit>) -> String {
    match audit {
        None => format!("{table}: it was not made yet, or from another definition\n"),
        Some(Audit { named_by, groups, rows, .. }) => {
            format!("{table}: {groups} groups by {} computed again, {rows} rows, no difference\n", named_by.join(", "))
        }
    }
}

/// For people.
fn said(table: &str, explained: &Explained) -> String {
    let mut said = format!("{table}: {}, {}\n", explained.mode.word(), explained.reason);
    // Writing to a text does not fail.
    if let Some(reason) = &explained.in_full_for {
        let _ = writeln!(said, "  in full, for {reason}");
    }
    if let Some(means) = &explained.means {
        let _ =
            writeln!(said, "  {} by {means}", if explained.mode == RefreshMode::Incremental { "brought up to date" } else { "follows" });
    }
    for InputCost { table, version_from, version_to, changes_bytes, changes_rows, rows, bytes } in &explained.inputs {
        let from = version_from.map_or_else(|| "nothing".to_owned(), |version| format!("version {version}"));
        let _ = writeln!(
            said,
            "  {table}: from {from} to version {version_to}; changes of about {changes_rows} rows, {changes_bytes} bytes, of {rows} rows, {bytes} bytes"
        );
    }
    said
}

/// A row an input.
fn rows(table: &str, explained: &Explained) -> Result<RecordBatch, Failure> {
    let inputs = &explained.inputs;
    let same = |value: Option<String>| text(inputs.iter().map(move |_| value.clone()));
    let number = |value: &dyn Fn(&InputCost) -> Option<u64>| whole(inputs.iter().map(value));
    batch(vec![
        ("table", same(Some(table.to_owned()))),
        ("mode", same(Some(explained.mode.word().to_owned()))),
        ("reason", same(Some(explained.reason.clone()))),
        ("in_full_for", same(explained.in_full_for.clone())),
        ("means", same(explained.means.clone())),
        ("input", text(inputs.iter().map(|input| Some(input.table.to_string())))),
        ("version_from", number(&|input| input.version_from.and_then(|version| u64::try_from(version).ok()))),
        ("version_to", number(&|input| Some(input.version_to))),
        ("changes_rows", number(&|input| Some(input.changes_rows))),
        ("changes_bytes", number(&|input| Some(input.changes_bytes))),
        ("rows", number(&|input| Some(input.rows))),
        ("bytes", number(&|input| Some(input.bytes))),
    ])
}
