//! Spark's own AUTO CDC beside silver: the same random histories, in the same batches, under the same clauses.
//!
//! Spark reads the very data files of bronze, a pipeline run a batch, into tables in memory (`auto_cdc/RowTables.java`): it brings no
//! table of its own that AUTO CDC takes. Histories have no ties, which Spark leaves undefined; they have late events, repeats, deletes,
//! moved keys and nulls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::json;
use tributary_silver_merge::Options;
use tributary_specs::{Column, ColumnSelection, DataType, MergePolicy, SilverSpec, TableName};
use tributary_testkit::strategy::{Change, ChangeKind, ColumnKind, DeliveryPlan, History, SourceColumnSpec, SourceTable, source_history};
use tributary_testkit::{Frame, Value, example};

use crate::compare::Comparison;
use crate::engine::{Read, outcome, run};
use crate::world::{World, declared};

/// The word for it on the command line.
pub const NAME: &str = "auto_cdc";

/// How many histories there are unless said; their seeds count from 0.
pub const HISTORIES: u64 = 3;

/// A history has at least so many changes and keys.
const CHANGES_MIN: usize = 400;
const KEYS_MIN: usize = 150;

/// The clauses of one flow.
struct Clauses {
    name: &'static str,
    /// Whether deletes are told from upserts.
    deletes: bool,
    sequence_by: &'static [&'static str],
    columns: ColumnSelection,
    policy: MergePolicy,
}

fn clauses() -> Vec<Clauses> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let (all, only, except) =
        (ColumnSelection::All, |of: &[&str]| ColumnSelection::Only(names(of)), |of: &[&str]| ColumnSelection::Except(names(of)));
    let tracking = |track_history| MergePolicy::ScdType2 { track_history };
    let (position, clock): (&[&str], &[&str]) = (&["position"], &["updated_at", "position"]);
    let flow = |name, deletes, sequence_by, columns, policy| Clauses { name, deletes, sequence_by, columns, policy };
    vec![
        flow("current", true, position, all.clone(), MergePolicy::ScdType1),
        flow("current_columns", true, clock, only(&["region", "id", "name", "credit"]), MergePolicy::ScdType1),
        flow("current_upserts", false, position, except(&["op"]), MergePolicy::ScdType1),
        flow("history", true, position, all.clone(), tracking(all.clone())),
        flow("history_except", true, clock, except(&["op", "position", "updated_at"]), tracking(all.clone())),
        flow("history_columns", true, position, only(&["region", "id", "vip"]), tracking(all.clone())),
        flow("history_tracked", true, position, except(&["op"]), tracking(only(&["name", "vip"]))),
        flow("history_tracked_except", true, clock, all, tracking(except(&["op", "position", "updated_at", "credit"]))),
    ]
}

/// Clauses that Spark 4.3 does not know; a release that does is noticed.
const UNKNOWN: [(&str, &str); 2] =
    [("IGNORE NULL UPDATES", "IGNORE NULL UPDATES"), ("APPLY AS TRUNCATE WHEN", "APPLY AS TRUNCATE WHEN op = 'truncate'")];

/// What Spark is told.
#[derive(Debug, Serialize)]
struct Plan {
    histories: Vec<Source>,
    flows: Vec<Flow>,
    /// Clauses and a statement with each.
    unknown: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
struct Source {
    name: String,
    /// Columns as SQL.
    columns: String,
    /// The files of each batch.
    batches: Vec<Vec<PathBuf>>,
}

#[derive(Debug, Serialize)]
struct Flow {
    name: String,
    sql: String,
    columns: Vec<String>,
}

/// Compares all histories under all clauses; says at last how many there were.
pub async fn compare(world: &World, scratch: &Path, histories: u64, control: bool, comparison: &mut Comparison) -> Result<String> {
    let mut plan = Plan { histories: Vec::new(), flows: Vec::new(), unknown: BTreeMap::new() };
    let mut ours = Vec::new();
    let (mut events, mut batches) = (0, 0);
    for seed in 0..histories {
        let (history, delivery) = delivered(seed)?;
        let name = format!("events_{seed}");
        let cut = delivery.batches(&history.partitions());
        events += cut.iter().map(Vec::len).sum::<usize>();
        batches += cut.len();
        let specs = clauses().into_iter().map(|clauses| Ok((silver(&clauses, &name)?, clauses))).collect::<Result<Vec<_>>>()?;
        plan.histories.push(bronze(world, &name, &history, &cut, &specs).await?);
        for (spec, clauses) in specs {
            // what each keeps for itself beside the rows begins with two underscores, and so do the bounds of a version
            let shown = |name: &String| !name.starts_with("__") || ["__START_AT", "__END_AT"].contains(&name.as_str());
            let table = world.table(&spec.table).await?;
            let columns: Vec<String> = table.columns().iter().map(|column| column.name.clone()).filter(shown).collect();
            let lines = world.rows_of(&spec.table, &columns).await?;
            let (target, what) = (spec.table.name.clone(), format!("history {seed}, {}", clauses.name.replace('_', " ")));
            plan.flows.push(Flow { name: target.clone(), sql: statement(&clauses, &target, &name), columns });
            ours.push((target, what, lines));
        }
    }
    let first = &clauses()[0];
    for (clause, text) in UNKNOWN {
        plan.unknown.insert(clause, statement(first, "unknown", "events_0").replace(" SEQUENCE BY", &format!(" {text} SEQUENCE BY")));
    }
    if control {
        ours.iter_mut().find_map(|(_, _, rows)| rows.last_mut()).into_iter().for_each(|row| row.push('!'));
    }
    let folder = scratch.join(NAME);
    std::fs::create_dir(&folder)?;
    let file = folder.join("plan.json");
    std::fs::write(&file, serde_json::to_string(&plan)?)?;
    run(NAME, "auto_cdc.py", &[&file, &folder])?;
    let failed = comparison.failed;
    let mut rows = 0;
    for (target, what, lines) in &ours {
        let theirs = outcome(&folder, target, "rows")?;
        comparison.of(what, NAME, lines, Some(&theirs));
        rows += lines.len();
    }
    for (clause, _) in UNKNOWN {
        match outcome(&folder, clause, "rows")? {
            Read::Refused(reason) if reason.contains("PARSE_SYNTAX_ERROR") => {
                comparison.says(&format!("{clause}: {NAME} of spark 4.3 does not know it"))
            }
            other => comparison.fail(&format!("{clause}: {NAME} knows it, so compare it: {other:?}")),
        }
    }
    let verdict = if comparison.failed == failed { "agree" } else { "differ" };
    Ok(format!("auto_cdc: histories {histories}, events {events}, runs {batches}, clauses {}, rows {rows} {verdict}", clauses().len()))
}

/// A history of some hundred keys without ties, and its batches: any order, some events twice.
fn delivered(seed: u64) -> Result<(History, DeliveryPlan)> {
    let column = |name: &str, data_type| SourceColumnSpec::new(Column::new(name, data_type), ColumnKind::Plain);
    let mut table = SourceTable { keys: 250, truncates: false, rereads: false, clock_steps_back: true, ..SourceTable::customers() };
    table.columns.push(column("credit", DataType::Decimal { precision: 12, scale: 2 }));
    table.columns.push(column("since", DataType::Date));
    let histories = source_history(table, 1500);
    let large = |history: &History| history.changes.len() >= CHANGES_MIN && keys(history) >= KEYS_MIN;
    let history = (0..100).map(|more| example(&histories, seed * 100 + more)).find(large).context("no history is large enough")?;
    let numbers = proptest::collection::vec(any::<u8>(), 97..211);
    let plans = (numbers, proptest::collection::vec(120..=255u8, 2..5), 3..9u8).prop_map(|(places, cuts, twice)| DeliveryPlan::Shuffled {
        places,
        cuts,
        twice,
    });
    Ok((history, example(&plans, seed)))
}

fn keys(history: &History) -> usize {
    history.changes.iter().map(|change| &change.key).collect::<std::collections::BTreeSet<_>>().len()
}

/// The columns of the events: those of the source, what happened and in which order.
fn event_columns(history: &History) -> Vec<Column> {
    let business = history.table.columns.iter().map(|spec| Column::new(&spec.column.name, spec.column.data_type.clone()));
    business.chain(["op", "position"].map(|name| Column::new(name, DataType::String))).collect()
}

fn event(history: &History, change: &Change) -> Vec<Value> {
    let row = change.after.as_ref().or(change.before.as_ref());
    let value = |name: &String| row.and_then(|row| row.get(name)).cloned().unwrap_or_default();
    let op = if change.kind == ChangeKind::Delete { "delete" } else { "upsert" };
    history.table.column_names().iter().map(value).chain([op.into(), Value::Text(change.position.clone())]).collect()
}

/// Brings each batch into bronze and each silver table up to date after it.
async fn bronze(world: &World, name: &str, history: &History, cut: &[Vec<usize>], specs: &[(SilverSpec, Clauses)]) -> Result<Source> {
    let columns = event_columns(history);
    let sql = columns.iter().map(|column| format!("`{}` {}", column.name, column.data_type)).collect::<Vec<_>>().join(", ");
    let spec = declared(name, columns.clone());
    let mut known: Vec<PathBuf> = Vec::new();
    let mut batches = Vec::new();
    for batch in cut {
        let rows: Vec<_> = batch.iter().map(|at| event(history, &history.changes[*at])).collect();
        world.append_rows(&spec, &Frame::of(&columns, &rows).into_batch()).await?;
        let files = world.table(&spec.name).await?.files().await?;
        let files: Vec<PathBuf> =
            files.iter().map(|file| world.path(&spec.name).join(&file.path)).filter(|file| !known.contains(file)).collect();
        ensure!(!files.is_empty(), "a batch of {name} has no file");
        known.extend(files.iter().cloned());
        batches.push(files);
        for (silver, _) in specs {
            tributary_silver_merge::run(&world.lake, silver, &Options::default())
                .await
                .with_context(|| format!("silver of {}", silver.table))?;
        }
    }
    Ok(Source { name: name.to_owned(), columns: sql, batches })
}

fn silver(clauses: &Clauses, source: &str) -> Result<SilverSpec> {
    let delete = clauses.deletes.then_some("op = 'delete'");
    Ok(serde_json::from_value(json!({
        "table": TableName::new("auto_cdc", format!("{source}_{}", clauses.name)),
        "sources": [TableName::new("bronze", source)],
        "keys": ["region", "id"],
        "sequence_by": clauses.sequence_by,
        "policy": clauses.policy,
        "deletes": { "apply_as_delete_when": delete },
        "columns": clauses.columns,
        "null_keys": "refuse",
    }))?)
}

/// The same as Spark's SQL.
fn statement(clauses: &Clauses, target: &str, source: &str) -> String {
    let list = |columns: &ColumnSelection, clause: &str| match columns {
        ColumnSelection::All => String::new(),
        ColumnSelection::Only(names) => format!(" {clause} ({})", names.join(", ")),
        ColumnSelection::Except(names) => format!(" {clause} * EXCEPT ({})", names.join(", ")),
    };
    let delete = if clauses.deletes { " APPLY AS DELETE WHEN op = 'delete'" } else { "" };
    let sequence = match clauses.sequence_by {
        [one] => (*one).to_owned(),
        several => format!("STRUCT({})", several.join(", ")),
    };
    let (scd_type, tracked) = match &clauses.policy {
        MergePolicy::ScdType2 { track_history } => (2, list(track_history, "TRACK HISTORY ON")),
        _ => (1, String::new()),
    };
    format!(
        "CREATE STREAMING TABLE {target};\nCREATE FLOW {target}_flow AS AUTO CDC INTO {target} FROM STREAM {source} KEYS (region, id){delete} \
         SEQUENCE BY {sequence}{} STORED AS SCD TYPE {scd_type}{tracked};\n",
        list(&clauses.columns, "COLUMNS"),
    )
}
