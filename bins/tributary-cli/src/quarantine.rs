//! `tributary quarantine`: what could not become rows, why, and what of it can by now.

use std::sync::Arc;

use clap::ArgMatches;
use futures::stream;
use tributary::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use tributary::arrow::datatypes::{DataType, Int64Type};
use tributary::{Lake, Pipeline, TableName};
use tributary_config::{Loaded, Output};

use crate::bundle::{Given, Opened};
use crate::failure::{Error, Failure, Outcome};
use crate::output::{batch, text, whole};
use crate::{bundle, opened, output, run, sql, start, typed};

/// The schema of every quarantine table.
const SCHEMA: &str = "quarantine";
/// When a record became a row after all; quarantine tables of rows that failed a rule have no such column.
const SUPERSEDED: &str = "superseded_at";

/// One of its commands.
pub fn quarantine(what: &str, loaded: &Loaded, matches: &ArgMatches) -> Outcome {
    let lake = opened::existing_lake(&loaded.settings)?;
    let output = loaded.settings.output;
    match what {
        "list" => output::rows(output, &start::block_on(list(&lake))?),
        _ => start::block_on(async {
            let query = records(&lake, matches).await?;
            let frame = tributary::sql::query(&lake, &query).await?;
            let schema = Arc::new(frame.schema().as_arrow().clone());
            let readable = |rows: &RecordBatch| match output {
                Output::Table => for_people(&readable(rows)?),
                Output::Json | Output::Csv => readable(rows),
            };
            let mut found = vec![readable(&RecordBatch::new_empty(schema))?];
            for batch in frame.collect().await.map_err(tributary::sql::Error::run)? {
                found.push(readable(&batch)?);
            }
            output::stream(output, found[0].schema(), stream::iter(found.into_iter().map(Ok::<_, Failure>))).await
        }),
    }
}

/// Makes rows of the records that decode by now: a row what became of how many.
pub fn requeue(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let Opened { settings, pipeline, .. } = bundle::open(loaded, given)?;
    let settings = &settings;
    let mut options = run::options(loaded.program, settings, &pipeline)?;
    options.accept_unprotected = given.accepts_unprotected();
    let lake = opened::existing_lake(settings)?;
    let feed = matches.get_one::<String>("feed").map(String::as_str).unwrap_or_default();
    let feed = typed::table(feed, settings.catalogue.as_str())?;
    let feed = feed.as_str();
    if let Some(silver) = set_aside_by(&pipeline, feed) {
        return Err(Error::RowsOfRules { table: silver.to_string() }.into());
    }
    let reason = matches.get_one::<String>("reason").map(String::as_str);
    let dry_run = matches.get_flag("dry_run");
    let done = start::block_on(async { Ok(lake.requeue(&pipeline, feed, reason, dry_run, &options).await?) })?;
    done.notes.iter().for_each(|note| eprintln!("{note}"));
    let word = if dry_run { "would become rows" } else { "became rows" };
    let mut rows: Vec<(&str, Option<&str>, u64)> = vec![(word, None, done.rows)];
    if done.ignored > 0 {
        rows.push(("ignored", None, done.ignored));
    }
    rows.extend(done.left.iter().map(|(reason, records)| ("stays", Some(reason.as_str()), *records)));
    let found = batch(vec![
        ("outcome", text(rows.iter().map(|row| Some(row.0.to_owned())))),
        ("reason", text(rows.iter().map(|row| row.1.map(str::to_owned)))),
        ("records", whole(rows.iter().map(|row| Some(row.2)))),
    ])?;
    output::rows(settings.output, &found)
}

/// The silver table that a name stands for, unless it is a feed's too.
fn set_aside_by<'a>(pipeline: &'a Pipeline, name: &str) -> Option<&'a TableName> {
    let is_called = |known: &str| known.eq_ignore_ascii_case(name);
    let spec = pipeline.spec();
    if spec.feeds.iter().any(|feed| is_called(&feed.name) || is_called(&feed.table.to_string())) {
        return None;
    }
    let plain = name.strip_prefix("quarantine.").unwrap_or(name);
    let tables = spec.silver.iter().map(|silver| &silver.table);
    tables.into_iter().find(|table| is_called(&table.to_string()) || table.name.eq_ignore_ascii_case(plain))
}

/// A row a table and reason.
async fn list(lake: &Lake) -> Result<RecordBatch, Failure> {
    let mut rows: Vec<(String, Option<String>, u64, u64)> = Vec::new();
    for name in lake.tables().await? {
        if name.schema != SCHEMA {
            continue;
        }
        let columns = Columns::of(lake, &name.name).await?;
        let open = if columns.superseded { format!("count_if({SUPERSEDED} IS NULL)") } else { "count(*)".to_owned() };
        let query = format!(
            "SELECT {reason} AS reason, {open} AS open, count(*) AS total FROM {table} GROUP BY {reason} ORDER BY total DESC, reason",
            reason = columns.reason,
            table = table(&name.name)
        );
        let frame = tributary::sql::query(lake, &query).await?;
        for found in frame.collect().await.map_err(tributary::sql::Error::run)? {
            let (reasons, open, total) = (found.column(0).as_string::<i32>(), found.column(1), found.column(2));
            for row in 0..found.num_rows() {
                let count = |column: &dyn Array| u64::try_from(column.as_primitive::<Int64Type>().value(row)).unwrap_or(0);
                let reason = reasons.is_valid(row).then(|| reasons.value(row).to_owned());
                rows.push((name.name.clone(), reason, count(open.as_ref()), count(total.as_ref())));
            }
        }
    }
    batch(vec![
        ("name", text(rows.iter().map(|row| Some(row.0.clone())))),
        ("reason", text(rows.iter().map(|row| row.1.clone()))),
        ("open", whole(rows.iter().map(|row| Some(row.2)))),
        ("total", whole(rows.iter().map(|row| Some(row.3)))),
    ])
}

/// What differs between quarantine of records and of rows.
struct Columns {
    reason: &'static str,
    first_seen: bool,
    superseded: bool,
}

impl Columns {
    async fn of(lake: &Lake, name: &str) -> Result<Self, Failure> {
        let schema = lake.table(&TableName::new(SCHEMA, name).to_string()).await?.schema();
        let has = |column: &str| schema.column_with_name(column).is_some();
        Ok(Self { reason: if has("reason") { "reason" } else { "rule" }, first_seen: has("first_seen"), superseded: has(SUPERSEDED) })
    }
}

/// The query for the records of one table.
async fn records(lake: &Lake, matches: &ArgMatches) -> Result<String, Failure> {
    let name = matches.get_one::<String>("name").map(|name| name.trim_start_matches("quarantine.")).unwrap_or_default();
    let columns = Columns::of(lake, name).await?;
    let mut conditions = Vec::new();
    if let Some(reason) = matches.get_one::<String>("reason") {
        conditions.push(format!("{} = {}", columns.reason, sql::literal(reason)));
    }
    if columns.superseded && !matches.get_flag("all") {
        conditions.push(format!("{SUPERSEDED} IS NULL"));
    }
    let mut query = format!("SELECT * FROM {}", table(name));
    if !conditions.is_empty() {
        query.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    if columns.first_seen {
        query.push_str(" ORDER BY first_seen DESC");
    }
    let limit = matches.get_one::<u64>("limit").copied().unwrap_or(20);
    Ok(format!("{query} LIMIT {limit}"))
}

/// Keys and values as a person reads them: bytes that are text as that text, others in hexadecimal after `0x`.
fn readable(rows: &RecordBatch) -> Result<RecordBatch, Failure> {
    let schema = rows.schema();
    let columns = schema.fields().iter().zip(rows.columns()).map(|(field, column)| {
        let column = match column.as_binary_opt::<i32>() {
            Some(bytes) => text(bytes.iter().map(|value| value.map(shown))),
            None => Arc::clone(column),
        };
        (field.name().as_str(), column)
    });
    batch(columns.collect())
}

/// Columns that say where a record or row is from: a person looks for them first.
const POSITION: [&str; 7] = ["topic", "partition", "offset", "source", "position", "file", "line"];
/// Letters of a value that are shown in a drawn table.
const LETTERS_MAX: usize = 64;

/// The position first, long values cut.
fn for_people(rows: &RecordBatch) -> Result<RecordBatch, Failure> {
    let schema = rows.schema();
    let named: Vec<(&str, ArrayRef)> =
        schema.fields().iter().map(|field| field.name().as_str()).zip(rows.columns().iter().map(Arc::clone)).collect();
    let (position, rest): (Vec<_>, Vec<_>) = named.into_iter().partition(|(name, _)| POSITION.contains(name));
    let cut = |column: ArrayRef| -> Result<ArrayRef, Failure> {
        Ok(match column.data_type() {
            DataType::Utf8 => text(column.as_string::<i32>().iter().map(|value| value.map(short))),
            nested if nested.is_nested() => text(output::texts(&column)?.iter().map(|value| value.map(short))),
            _ => column,
        })
    };
    batch(position.into_iter().chain(rest).map(|(name, column)| Ok((name, cut(column)?))).collect::<Result<_, Failure>>()?)
}

fn short(value: &str) -> String {
    match value.char_indices().nth(LETTERS_MAX) {
        Some((at, _)) => format!("{}… ({} letters)", &value[..at], value.chars().count()),
        None => value.to_owned(),
    }
}

fn shown(bytes: &[u8]) -> String {
    let hexadecimal = || bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"));
    std::str::from_utf8(bytes).map_or_else(|_| hexadecimal(), str::to_owned)
}

fn table(name: &str) -> String {
    format!("{SCHEMA}.`{}`", name.replace('`', "``"))
}
