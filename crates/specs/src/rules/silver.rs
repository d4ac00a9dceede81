//! Rules of one silver dataset.

use super::columns::{self, Known, Layout, Reserved};
use super::{Findings, condition, flows, gold, property, sequence};
use crate::dataset::{ColumnSelection, Deletes, IgnoreNullUpdates, MergePolicy, NullKeys, SilverSpec};
use crate::error::Error;
use crate::flow::StreamRead;
use crate::pipeline::Pipeline;
use crate::problem::Path;
use crate::streamed::LateRows;

/// Columns of a history table that its declared schema names.
const HISTORY: [&str; 2] = ["__START_AT", "__END_AT"];

pub(super) fn check(findings: &mut Findings, path: &Path, spec: &SilverSpec, pipeline: &Pipeline) {
    if spec.sources.is_empty() {
        findings.add(path.field("sources"), Error::Empty { what: "the list of sources" });
    }
    if let Some(select) = &spec.select {
        findings.refuse_empty(&path.field("select"), select, "the select");
    }
    check_schema(findings, path, spec);
    check_keys(findings, path, spec);
    check_policy(findings, path, spec);
    check_deletes(findings, &path.field("deletes"), &spec.deletes, &spec.policy);
    check_selections(findings, path, spec);
    sequence::check(findings, path, spec, pipeline);
    condition::check(findings, path, spec);
    flows::check(findings, path, spec, pipeline);
    gold::check_expectations(findings, path, &spec.expectations);
    flows::check_set(findings, path, &spec.set_expectations, &spec.expectations, &known(spec));
    let checks = spec.checks.iter().map(|check| (check.name.as_str(), check.expression.as_str()));
    gold::check_named(findings, &path.field("checks"), checks, "constraint");
    property::check(findings, path, &spec.properties, spec.policy != MergePolicy::Append);
    check_watermark(findings, path, spec);
}

/// Late rows are told of one flow whose rows are appended, version by version.
fn check_watermark(findings: &mut Findings, path: &Path, spec: &SilverSpec) {
    let Some(watermark) = &spec.watermark else {
        if spec.late != LateRows::default() {
            findings.add(path.field("late"), Error::WatermarkRefused { reason: "without one no row is late" });
        }
        return;
    };
    let path = path.field("watermark");
    findings.refuse_empty(&path.field("column"), &watermark.column, "the column of a watermark");
    let reason = match spec {
        SilverSpec { policy, .. } if *policy != MergePolicy::Append => "changes are applied by their sequence, however late they come",
        SilverSpec { once: true, .. } => "a flow that runs once reads its source as it is",
        SilverSpec { flows, .. } if !flows.is_empty() => "the table has several flows",
        SilverSpec { stream: StreamRead::ChangeFeed | StreamRead::Changes { .. }, .. } => "a change feed tells of rows that come again",
        _ => return,
    };
    findings.add(path, Error::WatermarkRefused { reason });
}

/// The columns of the result, where they are declared.
fn known(spec: &SilverSpec) -> Known<'_> {
    Known::declared("the declared schema", &spec.schema)
}

fn check_schema(findings: &mut Findings, path: &Path, spec: &SilverSpec) {
    let except: &[&str] = if matches!(spec.policy, MergePolicy::ScdType2 { .. }) { &HISTORY } else { &[] };
    let reserved = Reserved { except, ..Reserved::default() };
    columns::check_declared(findings, &path.field("schema"), &spec.schema, reserved);
    let layout = Layout {
        partition_by: &spec.partition_by,
        cluster_by: &spec.cluster_by,
        zorder_by: &[],
        known: known(spec).and(except),
        declared: &spec.schema,
    };
    layout.check(findings, path);
}

fn check_keys(findings: &mut Findings, path: &Path, spec: &SilverSpec) {
    columns::check_list(findings, &path.field("keys"), &spec.keys, &known(spec));
    if spec.keys.is_empty() && spec.policy != MergePolicy::Append {
        findings.add(path.field("keys"), Error::KeysMissing { policy: spec.policy.word() });
    }
    if spec.policy == MergePolicy::Append && spec.null_keys == NullKeys::NullSafe {
        no_effect(findings, path.field("null_keys"), "null_keys", &spec.policy, "rows are not matched by key");
    }
}

fn check_policy(findings: &mut Findings, path: &Path, spec: &SilverSpec) {
    let at = path.field("policy").field(spec.policy.word());
    match &spec.policy {
        MergePolicy::ScdType2 { track_history } => {
            check_selection(findings, &at.field("track_history"), track_history, &known(spec));
        }
        MergePolicy::MonotonicAdvance { columns } => {
            let at = at.field("columns");
            columns::check_list(findings, &at, columns, &known(spec));
            if columns.is_empty() {
                findings.add(at.clone(), Error::Empty { what: "the list of columns that must advance" });
            }
            for (index, column) in columns.iter().enumerate().filter(|(_, column)| is_key(spec, column)) {
                let reason = "it is a key column, which is the same in every event of a row";
                findings.add(at.index(index), Error::LayoutColumn { layout: "monotonic_advance", column: column.clone(), reason });
            }
        }
        MergePolicy::Append | MergePolicy::InsertOnly { .. } | MergePolicy::LastWriterWins | MergePolicy::ScdType1 => {}
    }
}

fn check_deletes(findings: &mut Findings, path: &Path, deletes: &Deletes, policy: &MergePolicy) {
    let conditions = [
        ("apply_as_delete_when", deletes.apply_as_delete_when.as_ref()),
        ("apply_as_truncate_when", deletes.apply_as_truncate_when.as_ref()),
        ("soft_delete_column", deletes.soft_delete_column.as_ref()),
    ];
    for (name, text) in conditions.into_iter().filter_map(|(name, text)| text.map(|text| (name, text))) {
        findings.refuse_empty(&path.field(name), text, name);
    }
    if deletes.apply_as_truncate_when.is_some() {
        let at = path.field("apply_as_truncate_when");
        match policy {
            MergePolicy::ScdType1 => {}
            MergePolicy::ScdType2 { .. } => findings.add(at, Error::TruncateRequiresScd1),
            _ => no_effect(findings, at, "apply_as_truncate_when", policy, "it applies no truncates"),
        }
    }
    if let Some(column) = &deletes.soft_delete_column {
        let at = path.field("soft_delete_column");
        if *policy != MergePolicy::ScdType1 {
            no_effect(findings, at.clone(), "soft_delete_column", policy, "it belongs to scd_type1");
        }
        columns::check_name(findings, &at, column, Reserved::default());
    }
}

fn check_selections(findings: &mut Findings, path: &Path, spec: &SilverSpec) {
    let at = path.field("columns");
    check_selection(findings, &at, &spec.columns, &Known::default());
    for key in &spec.keys {
        let left_out = match &spec.columns {
            ColumnSelection::All => false,
            ColumnSelection::Only(columns) => !contains(columns, key),
            ColumnSelection::Except(columns) => contains(columns, key),
        };
        if left_out && spec.policy != MergePolicy::Append {
            let reason = "it is a key column and stays in the table";
            findings.add(at.clone(), Error::LayoutColumn { layout: "columns", column: key.clone(), reason });
        }
    }
    let at = path.field("ignore_null_updates");
    let updates = !matches!(spec.policy, MergePolicy::Append | MergePolicy::InsertOnly { .. });
    if !updates && spec.ignore_null_updates != IgnoreNullUpdates::Off {
        no_effect(findings, at.clone(), "ignore_null_updates", &spec.policy, "it updates no rows");
    }
    if let IgnoreNullUpdates::Columns(columns) = &spec.ignore_null_updates {
        columns::check_list(findings, &at.field("columns"), columns, &known(spec));
        if columns.is_empty() {
            findings.add(at.field("columns"), Error::Empty { what: "the list of columns" });
        }
    }
}

fn check_selection(findings: &mut Findings, path: &Path, selection: &ColumnSelection, known: &Known<'_>) {
    let (field, columns) = match selection {
        ColumnSelection::All => return,
        ColumnSelection::Only(columns) => ("only", columns),
        ColumnSelection::Except(columns) => ("except", columns),
    };
    columns::check_list(findings, &path.field(field), columns, known);
    if columns.is_empty() {
        findings.add(path.field(field), Error::Empty { what: "the list of columns" });
    }
}

pub(super) fn is_key(spec: &SilverSpec, column: &str) -> bool {
    contains(&spec.keys, column)
}

fn contains(columns: &[String], column: &str) -> bool {
    columns.iter().any(|name| name.eq_ignore_ascii_case(column))
}

pub(super) fn no_effect(findings: &mut Findings, path: Path, option: &'static str, policy: &MergePolicy, why: &'static str) {
    findings.add(path, Error::OptionWithoutEffect { option, with: format!("the policy {}", policy.word()), why });
}
