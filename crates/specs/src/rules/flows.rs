//! Rules of several flows into one table, and of what must hold of a table as a whole.

use std::collections::HashMap;

use super::columns::{self, Known};
use super::silver::no_effect;
use super::{Findings, sequence};
use crate::dataset::{Expectation, ExpectationAction, MergePolicy, SilverSpec};
use crate::error::Error;
use crate::flow::{Flow, SetExpectation, SetRule, StreamRead};
use crate::pipeline::Pipeline;
use crate::problem::Path;

pub(super) fn check(findings: &mut Findings, path: &Path, spec: &SilverSpec, pipeline: &Pipeline) {
    if let Some(name) = &spec.flow {
        findings.refuse_empty(&path.field("flow"), name, "the name of a flow");
    }
    check_once(findings, path, spec.once, spec.stream);
    let mut seen = HashMap::from([(spec.flow_name().to_lowercase(), spec.flow_name())]);
    for (index, flow) in spec.flows.iter().enumerate() {
        let at = path.field("flows").index(index);
        findings.refuse_empty(&at.field("name"), &flow.name, "the name of a flow");
        if let Some(first) = seen.insert(flow.name.to_lowercase(), &flow.name) {
            findings.add(at.field("name"), Error::NameTwice { name: flow.name.clone(), first: first.to_owned(), what: "flow" });
        }
        check_flow(findings, &at, flow, spec);
    }
    for (at, stream) in std::iter::once((path.clone(), spec.sources.first()))
        .chain(spec.flows.iter().enumerate().map(|(index, flow)| (path.field("flows").index(index), flow.sources.first())))
    {
        sequence::check_stream(findings, &at, spec, stream, pipeline);
    }
}

fn check_flow(findings: &mut Findings, path: &Path, flow: &Flow, spec: &SilverSpec) {
    if flow.sources.is_empty() {
        findings.add(path.field("sources"), Error::Empty { what: "the list of sources" });
    }
    if let Some(select) = &flow.select {
        findings.refuse_empty(&path.field("select"), select, "the select");
    }
    check_once(findings, path, flow.once, flow.stream);
    for (name, text) in [("apply_as_delete_when", &flow.apply_as_delete_when), ("apply_as_truncate_when", &flow.apply_as_truncate_when)] {
        let Some(text) = text else { continue };
        findings.refuse_empty(&path.field(name), text, name);
        if !spec.policy.applies_deletes() {
            no_effect(findings, path.field(name), name, &spec.policy, "it applies no deletes");
        }
    }
    if flow.apply_as_truncate_when.is_some() && matches!(spec.policy, MergePolicy::ScdType2 { .. }) {
        findings.add(path.field("apply_as_truncate_when"), Error::TruncateRequiresScd1);
    }
    let ordered = matches!(spec.policy, MergePolicy::ScdType1 | MergePolicy::ScdType2 { .. } | MergePolicy::LastWriterWins);
    if ordered && spec.sequence_by.is_empty() {
        findings.add(path.clone(), Error::SequenceOfFlows);
    }
}

/// What is read once is read as it is, whatever its commits did; a range of versions holds at least one.
fn check_once(findings: &mut Findings, path: &Path, once: bool, stream: StreamRead) {
    if let StreamRead::Changes { from, to: Some(to) } = stream
        && to < from
    {
        findings.add(path.field("stream"), Error::Empty { what: "the range of versions" });
    }
    if once && !stream.is_auto() {
        let (with, why) = ("once".to_owned(), "what is read once is read as it is, whatever its commits did");
        findings.add(path.field("stream"), Error::OptionWithoutEffect { option: "stream", with, why });
    }
}

pub(super) fn check_set(findings: &mut Findings, path: &Path, rules: &[SetExpectation], of_rows: &[Expectation], known: &Known<'_>) {
    let mut seen: HashMap<String, &str> = of_rows.iter().map(|rule| (rule.name.to_lowercase(), rule.name.as_str())).collect();
    for (index, rule) in rules.iter().enumerate() {
        let at = path.field("set_expectations").index(index);
        findings.refuse_empty(&at.field("name"), &rule.name, "the name of a rule");
        if let Some(first) = seen.insert(rule.name.to_lowercase(), &rule.name) {
            findings.add(at.field("name"), Error::NameTwice { name: rule.name.clone(), first: first.to_owned(), what: "expectation" });
        }
        if matches!(rule.action, ExpectationAction::Drop | ExpectationAction::Quarantine) {
            let (with, why) = ("a rule of the whole table".to_owned(), "it has no row to leave out; warn or fail");
            findings.add(at.field("action"), Error::OptionWithoutEffect { option: "action", with, why });
        }
        let at = at.field("rule");
        match &rule.rule {
            SetRule::Unique(names) => {
                columns::check_list(findings, &at.field("unique"), names, known);
                if names.is_empty() {
                    findings.add(at.field("unique"), Error::Empty { what: "the list of columns" });
                }
            }
            SetRule::RowCount { min, max } => {
                let empty = match (min, max) {
                    (None, None) => true,
                    (Some(min), Some(max)) => min > max,
                    _ => false,
                };
                if empty {
                    findings.add(at.field("row_count"), Error::Empty { what: "the range of row counts" });
                }
            }
            SetRule::Freshness { column, .. } => {
                columns::check_list(findings, &at.field("freshness").field("column"), std::slice::from_ref(column), known);
            }
        }
    }
}
