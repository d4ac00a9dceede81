//! Rules of one gold dataset.

use std::collections::HashMap;

use super::columns::{self, Known, Layout, Reserved};
use super::{Findings, flows, property};
use crate::dataset::{Expectation, GoldSpec};
use crate::error::Error;
use crate::problem::Path;

pub(super) fn check(findings: &mut Findings, path: &Path, spec: &GoldSpec) {
    findings.refuse_empty(&path.field("query"), &spec.query, "the query");
    let reserved = Reserved { double_underscore: true, ..Reserved::default() };
    columns::check_declared(findings, &path.field("schema"), &spec.schema, reserved);
    let layout = Layout {
        partition_by: &spec.partition_by,
        cluster_by: &spec.cluster_by,
        zorder_by: &spec.zorder_by,
        known: Known::declared("the declared schema", &spec.schema),
        declared: &spec.schema,
    };
    layout.check(findings, path);
    check_expectations(findings, path, &spec.expectations);
    let known = Known::declared("the declared schema", &spec.schema);
    flows::check_set(findings, path, &spec.set_expectations, &spec.expectations, &known);
    property::check(findings, path, &spec.properties, true);
    check_streams(findings, path, spec);
}

/// Streams are sources, and their watermarks are over a column.
fn check_streams(findings: &mut Findings, path: &Path, spec: &GoldSpec) {
    for (index, stream) in spec.streams.iter().enumerate() {
        let path = path.field("streams").index(index);
        if !spec.sources.is_empty() && !spec.sources.iter().any(|source| source.same_without_case(&stream.table)) {
            findings.add(path.field("table"), Error::StreamUnread { table: stream.table.clone() });
        }
        if let Some(watermark) = &stream.watermark {
            findings.refuse_empty(&path.field("watermark").field("column"), &watermark.column, "the column of a watermark");
        }
    }
}

/// Names and expressions of rules.
pub(super) fn check_expectations(findings: &mut Findings, path: &Path, expectations: &[Expectation]) {
    let names = expectations.iter().map(|rule| (rule.name.as_str(), rule.expression.as_str()));
    check_named(findings, &path.field("expectations"), names, "expectation");
}

/// Things with a name and an expression: neither empty, no name twice.
pub(super) fn check_named<'a>(findings: &mut Findings, path: &Path, rules: impl Iterator<Item = (&'a str, &'a str)>, what: &'static str) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (index, (name, expression)) in rules.enumerate() {
        let path = path.index(index);
        findings.refuse_empty(&path.field("name"), name, "the name of a rule");
        findings.refuse_empty(&path.field("expression"), expression, "the expression of a rule");
        if let Some(first) = seen.insert(name.to_lowercase(), name) {
            findings.add(path.field("name"), Error::NameTwice { name: name.to_owned(), first: first.to_owned(), what });
        }
    }
}
