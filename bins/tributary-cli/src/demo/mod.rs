//! `tributary demo`: recorded changes of real databases become bronze, silver and gold; silver is compared with the
//! databases' true final state.

mod canonical;
mod capture;
mod compare;
mod expected;
mod gym;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use futures::TryStreamExt;
use tributary::arrow::array::RecordBatch;
use tributary::{DatasetReport, ExitCode, Lake, OpenOptions, Pipeline, RunOptions, RunReport, SqlOptions, Status, TableName};

pub use compare::{Cell, Comparison, compare};
pub use expected::{Expected, ExpectedTable, Server, SourceColumn, gunzip};
pub use gym::demo as demo_gym;

macro_rules! retail {
    ($file:literal) => {
        ($file, include_str!(concat!("../../../../dlt_pipelines/retail/", $file)))
    };
}
/// The files of the retail pipeline and their texts.
const RETAIL: &[(&str, &str)] = &[
    retail!("bronze_customers.sql"),
    retail!("bronze_inventory.sql"),
    retail!("bronze_orders.sql"),
    retail!("gold_customer_orders.sql"),
    retail!("gold_daily_revenue.sql"),
    retail!("gold_low_stock.sql"),
    retail!("silver_customers.sql"),
    retail!("silver_customers_current.sql"),
    retail!("silver_inventory.sql"),
    retail!("silver_orders.sql"),
];
const SHOP_EVENTS: &[u8] = include_bytes!("../../../../tests/fixtures/debezium/postgres-big-workload.jsonl.gz");
const SHOP_EXPECTED: &[u8] = include_bytes!("../../../../tests/fixtures/debezium/postgres-big-workload.expected.json.gz");
const DEPOT_EVENTS: &[u8] = include_bytes!("../../../../tests/fixtures/debezium/mysql-json-schema.jsonl");
const DEPOT_EXPECTED: &[u8] = include_bytes!("../../../../tests/fixtures/debezium/mysql-json-schema.expected.json");

/// Differences of one column that are printed.
const CELLS_SHOWN: usize = 3;

/// What a demo is given.
#[derive(Debug, Clone, Default)]
pub struct DemoArgs {
    /// A capture in the recorded form (JSON lines, gzipped or not) instead of the retail pipeline's.
    pub events: Option<PathBuf>,
    /// The final state that belongs to it.
    pub expected: Option<PathBuf>,
    /// Pipeline files that replace the one derived from the recorded types.
    pub feeds: Vec<PathBuf>,
    /// `table.column`, the table as the source or as silver calls it: differences in it are losses of the source's own settings,
    /// counted and not held against the lake. The column `(row)` stands for rows that only the lake has.
    pub known_losses: Vec<String>,
    /// Where the demo's folder is made; `data` by default.
    pub folder: Option<PathBuf>,
}

/// One recorded database: its final state, and the silver tables that must equal it.
pub struct Recording {
    expected: Expected,
    checks: Vec<Check>,
}

impl Recording {
    /// A line a silver table, with its differences below it, and whether there are none.
    pub async fn compare(&self, lake: &Lake) -> Result<Vec<(String, bool)>, String> {
        let mut lines = Vec::new();
        for check in &self.checks {
            lines.push(check_table(lake, &self.expected, check).await?);
        }
        Ok(lines)
    }
}

/// One silver table and the source table it must equal.
struct Check {
    silver: TableName,
    source: String,
    history: bool,
    /// Columns whose values are partly lost before they reach us, and how.
    known: BTreeMap<String, String>,
}

/// Runs the demo and says what happened on `out`. The exit code is 0 only when every table equals its source.
pub async fn demo(args: &DemoArgs, out: &mut dyn std::io::Write) -> Result<ExitCode, String> {
    let folder = fresh_folder(args.folder.as_deref().unwrap_or(Path::new("data")))?;
    let (pipeline, recordings) = match (&args.events, &args.expected) {
        (None, None) => retail(&folder)?,
        (Some(events), Some(expected)) => capture(&folder, events, expected, args)?,
        _ => return Err("a capture is two files: give both --events and --expected".to_owned()),
    };
    let warehouse = folder.join("lake");
    let lake = Lake::open(&warehouse.to_string_lossy(), OpenOptions::default()).map_err(text)?;
    let options = RunOptions { base_data_path: folder.join("raw"), ..RunOptions::default() };
    let report = lake.run(&pipeline, options).await.map_err(text)?;
    let mut say = |line: String| writeln!(out, "{line}").map_err(text);
    say(picture(&pipeline, &report))?;
    for dataset in &report.datasets {
        for note in &dataset.notes {
            say(format!("note: {}: {note}", dataset.table))?;
        }
        if let Some(error) = &dataset.error {
            say(format!("error: {} {}: {}", dataset.table, error.code, error.message))?;
        }
    }
    let own = if args.events.is_some() { "pipeline.yml" } else { "retail" };
    say(format!("again: tributary run --pipeline {0}/{own} --base-data-path {0}/raw --warehouse {0}/lake\n", folder.display()))?;
    if report.exit_code() != ExitCode::Done {
        return Ok(report.exit_code());
    }
    let mut equal = true;
    for recording in &recordings {
        for (lines, same) in recording.compare(&lake).await? {
            equal &= same;
            say(lines)?;
        }
    }
    if !equal && args.events.is_some() {
        say("\na column that the source's own settings lose is named by --known-loss TABLE.COLUMN, where only the source or only the lake has \
             rows by --known-loss 'TABLE.(row)'; types that the capture does not tell are declared by --feeds FILE"
            .to_owned())?;
    }
    Ok(if equal { ExitCode::Done } else { ExitCode::Failed })
}

/// `data/demo-1`, or the first number that is free: a demo never touches what is there.
fn fresh_folder(base: &Path) -> Result<PathBuf, String> {
    std::fs::create_dir_all(base).map_err(|error| format!("{} cannot be made: {error}", base.display()))?;
    for number in 1.. {
        let folder = base.join(format!("demo-{number}"));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{} cannot be made: {error}", folder.display())),
        }
    }
    Err(format!("no free name for a demo under {}", base.display()))
}

/// The retail pipeline, and its recorded events dropped under `<folder>/raw`.
pub fn retail(folder: &Path) -> Result<(Pipeline, Vec<Recording>), String> {
    drop_file(folder, "raw/shop/events.jsonl.gz", SHOP_EVENTS)?;
    drop_file(folder, "raw/depot/events.jsonl", DEPOT_EVENTS)?;
    for (name, statements) in RETAIL {
        drop_file(folder, &format!("retail/{name}"), statements.as_bytes())?;
    }
    let options = SqlOptions { name: "retail".to_owned(), ..SqlOptions::default() };
    let pipeline = Pipeline::from_sql(RETAIL, &options).map_err(text)?;
    let check = |silver: &str, source: &str, history, known: &[(&str, &str)]| Check {
        silver: TableName::new("silver", silver),
        source: source.to_owned(),
        history,
        known: known.iter().map(|(column, why)| ((*column).to_owned(), (*why).to_owned())).collect(),
    };
    let shop = Recording {
        expected: Expected::parse(SHOP_EXPECTED)?,
        checks: vec![
            check("customers_current", "customers", false, &[]),
            check("orders", "orders", false, &[]),
            check("customers", "customers", true, &[]),
        ],
    };
    let zero = "MariaDB's zero date reaches Debezium's consumers as null";
    let lost = [
        ("made_on", zero),
        ("checked_s", zero),
        ("loaded_at", zero),
        ("vintage", "the year 0000 reaches Debezium's consumers as 1900"),
        ("reserved", "added with a default, which sends no events for the rows there are"),
        ("raw_code", "renamed, which sends no events for the rows there are"),
    ];
    let depot = Recording { expected: Expected::parse(DEPOT_EXPECTED)?, checks: vec![check("inventory", "inventory", false, &lost)] };
    Ok((pipeline, vec![shop, depot]))
}

fn capture(folder: &Path, events: &Path, expected: &Path, args: &DemoArgs) -> Result<(Pipeline, Vec<Recording>), String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()));
    let raw = gunzip(&read(events)?).map_err(|error| format!("{}: {error}", events.display()))?;
    let expected_state = Expected::parse(&read(expected)?).map_err(|error| format!("{}: {error}", expected.display()))?;
    let lines = String::from_utf8(raw).map_err(|_| format!("{} is not UTF-8 text", events.display()))?;
    drop_file(folder, "raw/capture/events.jsonl", lines.as_bytes())?;
    let pipeline = if args.feeds.is_empty() {
        let sample = capture::Sample::of(&lines, &expected_state);
        capture::pipeline("capture", "capture", &expected_state, &sample).map_err(text)?
    } else {
        let texts: Vec<(String, String)> = args
            .feeds
            .iter()
            .map(|path| Ok((path.display().to_string(), String::from_utf8_lossy(&read(path)?).into_owned())))
            .collect::<Result<_, String>>()?;
        let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Pipeline::from_yaml(&files).map_err(text)?
    };
    drop_file(folder, "pipeline.yml", pipeline.spec().to_yaml().as_bytes())?;
    let mut checks = Vec::new();
    for source in expected_state.tables.keys() {
        for (name, history) in [(source.clone(), false), (format!("{source}_history"), true)] {
            let silver = TableName::new("silver", name);
            if pipeline.spec().silver.iter().any(|spec| spec.table == silver) {
                checks.push(Check { silver, source: source.clone(), history, known: BTreeMap::new() });
            } else if !history {
                return Err(format!("no dataset makes `{silver}` to compare with the source's table `{source}`"));
            }
        }
    }
    args.known_losses.iter().try_for_each(|loss| known_loss(loss, &expected_state, &mut checks))?;
    Ok((pipeline, vec![Recording { expected: expected_state, checks }]))
}

/// Adds a loss to the checks of the table that it names: the source's own name stands for every table made of it.
fn known_loss(loss: &str, expected: &Expected, checks: &mut [Check]) -> Result<(), String> {
    let columns = |check: &Check| {
        let columns =
            expected.tables.get(&check.source).into_iter().flat_map(|table| table.columns.iter().map(|column| column.name.clone()));
        columns.chain([compare::ROW.to_owned()]).collect::<Vec<_>>()
    };
    let names = |check: &Check| [check.source.clone(), check.silver.name.clone(), check.silver.to_string()];
    let mut known: Vec<String> = Vec::new();
    let mut found = false;
    for check in checks {
        let (names, columns) = (names(check), columns(check));
        for (name, column) in names.iter().flat_map(|name| columns.iter().map(move |column| (name, column))) {
            let full = format!("{name}.{column}");
            if full == loss {
                check.known.insert(column.clone(), "as was said on the command line".to_owned());
                found = true;
            }
            known.push(full);
        }
    }
    if found {
        return Ok(());
    }
    let nearest = tributary_config::nearest(loss, known.iter().map(String::as_str)).map(|name| format!(", nearest is `{name}`"));
    Err(format!("--known-loss {loss} names no column of a table that is compared{}", nearest.unwrap_or_default()))
}

fn drop_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    let path = folder.join(name);
    let failed = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(&path, bytes).map_err(failed)
}

/// The table's line, and below it each difference with key, column and both values.
async fn check_table(lake: &Lake, expected: &Expected, check: &Check) -> Result<(String, bool), String> {
    let source = expected.tables.get(&check.source).ok_or_else(|| format!("the recorded state has no table `{}`", check.source))?;
    let table = lake.table(&check.silver.to_string()).await.map_err(text)?;
    let batches: Vec<RecordBatch> = table.scan().await.map_err(text)?.try_collect().await.map_err(text)?;
    let (live, closed) = if check.history { open_rows(&batches)? } else { (batches, 0) };
    let comparison = compare(expected.server(), source, &live, &check.known);
    let periods = if check.history { format!("  ({closed} closed periods beside them)") } else { String::new() };
    let verdict = if comparison.equal() { "equals source" } else { "DIFFERS from source" };
    let mut lines = format!("{}  {} rows, {} columns  {verdict}{periods}", check.silver, comparison.rows, comparison.columns);
    for (column, cells) in &comparison.known {
        let why = check.known.get(column).map_or("", String::as_str);
        let _ = write!(lines, "\n  {column}: {} values lost at the source: {why}", cells.len());
    }
    for (column, cells) in &comparison.differences {
        for cell in cells.iter().take(CELLS_SHOWN) {
            let _ = write!(lines, "\n  {} {}", check.silver, cell.said(column));
        }
        if cells.len() > CELLS_SHOWN {
            let _ = write!(lines, "\n  {column}: and {} more", cells.len() - CELLS_SHOWN);
        }
    }
    Ok((lines, comparison.equal()))
}

/// Rows of a history that are current, and how many are not.
fn open_rows(batches: &[RecordBatch]) -> Result<(Vec<RecordBatch>, usize), String> {
    let mut live = Vec::new();
    let mut closed = 0;
    for batch in batches {
        let end = batch.column_by_name("__END_AT").ok_or("a history has no column `__END_AT`")?;
        let open = tributary::arrow::compute::is_null(end).map_err(text)?;
        closed += open.len() - open.true_count();
        live.push(tributary::arrow::compute::filter_record_batch(batch, &open).map_err(text)?);
    }
    Ok((live, closed))
}

/// What flowed where, a line a dataset, inputs before what reads them.
fn picture(pipeline: &Pipeline, report: &RunReport) -> String {
    let spec = pipeline.spec();
    let mut lines = String::from("what flowed where\n");
    for dataset in &report.datasets {
        let from = (spec.silver.iter().find(|silver| silver.table.to_string() == dataset.table).map(|silver| &silver.sources))
            .or_else(|| spec.gold.iter().find(|gold| gold.table.to_string() == dataset.table).map(|gold| &gold.sources));
        let from = from.map_or_else(
            || spec.feeds.iter().find(|feed| feed.table.to_string() == dataset.table).map_or_else(String::new, |feed| feed.name.clone()),
            |sources| sources.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + "),
        );
        let _ = writeln!(lines, "  {from} ─▶ {}  {}", dataset.table, flowed(dataset));
    }
    lines
}

fn flowed(dataset: &DatasetReport) -> String {
    let ignored: u64 = dataset.rows_ignored.values().sum();
    match dataset.status {
        Status::Committed if dataset.mode == "full" => format!("{} rows, version {}", dataset.rows_out, dataset.version_to.unwrap_or(0)),
        Status::Committed => format!(
            "{} in, {} taken, {} ignored, {} quarantined; +{} ~{} -{} rows, version {}",
            dataset.rows_in,
            dataset.rows_out,
            ignored,
            dataset.rows_quarantined,
            dataset.rows_inserted,
            dataset.rows_updated,
            dataset.rows_deleted,
            dataset.version_to.unwrap_or(0)
        ),
        Status::NothingNew => "nothing new".to_owned(),
        Status::Failed => "failed".to_owned(),
        Status::Skipped => dataset.reason.clone(),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
