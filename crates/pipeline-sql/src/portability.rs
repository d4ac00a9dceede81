//! What of a pipeline means something else on another platform, or does not exist there.
//!
//! Whoever reads or lowers a construct notes it where it stands; what shows only over all files is noted at the end. What a construct
//! means elsewhere is said once, in [`rules`].

pub(crate) mod rules;

use std::collections::HashSet;
use std::fmt;

use tributary_specs::Place;

use crate::call::{Argument, Call, Value};
use crate::lower::is_obeyed;
use crate::parsed::{DatasetName, Definition, FlowAction, Kind};
use crate::query::Query;
use crate::read::Defined;
use crate::report::Report;

/// Where else a pipeline may be meant to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Platform {
    /// Databricks' declarative pipelines.
    Databricks,
    /// The open declarative pipelines of Spark 4.3.
    Spark,
}

impl Platform {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Databricks, Self::Spark];

    /// A word for tools: `databricks`, `spark`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Databricks => "databricks",
            Self::Spark => "spark",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Databricks => "Databricks",
            Self::Spark => "Spark 4.3",
        })
    }
}

/// What a construct is on a platform, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere {
    /// It means the same.
    Same,
    /// It does not exist: the pipeline is refused.
    Missing(&'static str),
    /// It is accepted and means something else.
    Differs(&'static str),
}

impl Elsewhere {
    /// A word for tools: `same`, `missing`, `differs`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Missing(_) => "missing",
            Self::Differs(_) => "differs",
        }
    }

    /// What to know or to write instead.
    pub fn text(self) -> Option<&'static str> {
        match self {
            Self::Same => None,
            Self::Missing(text) | Self::Differs(text) => Some(text),
        }
    }
}

/// What one kind of construct is on each platform.
#[derive(Debug, PartialEq, Eq)]
pub struct PortabilityRule {
    /// For tools, as `or_refresh`.
    pub name: &'static str,
    /// The construct, as `CREATE OR REFRESH`.
    pub construct: &'static str,
    /// On Databricks.
    pub databricks: Elsewhere,
    /// On Spark.
    pub spark: Elsewhere,
}

impl PortabilityRule {
    /// What it is on a platform.
    pub fn on(&self, platform: Platform) -> Elsewhere {
        match platform {
            Platform::Databricks => self.databricks,
            Platform::Spark => self.spark,
        }
    }
}

/// A construct of the files that is not the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Construct {
    /// What it is, and what it is elsewhere.
    pub rule: &'static PortabilityRule,
    /// The dataset it belongs to, where it belongs to one.
    pub dataset: Option<String>,
    /// Which one, where the rule is of several: the name of an option or property.
    pub which: Option<String>,
    /// Where it stands.
    pub place: Place,
}

/// Notes what shows only when all files have been read.
pub(crate) fn note(defined: &Defined, report: &mut Report) {
    for definition in &defined.datasets {
        let of = definition.name.to_string();
        if definition.kind == Kind::View && definition.name.schema.is_some() {
            report.uses(definition.place.clone(), &rules::VIEW, Some(&of));
        }
        properties(definition, &of, report);
        if let Some(query) = &definition.query {
            reads(query, &of, report);
        }
    }
    for flow in &defined.flows {
        let of = flow.target.to_string();
        reads(flow.action.query(), &of, report);
        if let FlowAction::AutoCdc(changes) = &flow.action {
            report.uses(flow.place.clone(), &rules::EQUAL_SEQUENCES, Some(&of));
            if changes.scd_type == 1 {
                report.uses(flow.place.clone(), &rules::ROW_COLUMNS, Some(&of));
            }
        }
    }
    let of_changes = defined.flows.iter().filter(|flow| matches!(flow.action, FlowAction::AutoCdc(_)));
    let targets: HashSet<&DatasetName> = of_changes.map(|flow| &flow.target).collect();
    for table in defined.datasets.iter().filter(|table| !table.columns.is_empty() && targets.contains(&table.name)) {
        report.uses(table.place.clone(), &rules::DECLARED_COLUMNS, Some(&table.name.to_string()));
    }
}

fn properties(definition: &Definition, of: &str, report: &mut Report) {
    for (name, value) in &definition.properties {
        let lower = name.to_lowercase();
        let rule = match () {
            () if lower.starts_with("tributary.") => &rules::OUR_PROPERTY,
            () if is_obeyed(name) => &rules::PLATFORM_PROPERTY,
            () if lower.starts_with("pipelines.") => &rules::PROPERTY_AS_TEXT,
            () => continue,
        };
        report.uses_one(value.place.clone().unwrap_or_else(|| definition.place.clone()), rule, Some(of), name);
    }
}

fn reads(query: &Query, of: &str, report: &mut Report) {
    for read in &query.reads {
        if read.written.live {
            report.uses(read.place.clone(), &rules::LIVE_NAME, Some(of));
        }
        if read.changes.is_some() {
            report.uses(read.place.clone(), &rules::TABLE_CHANGES, Some(of));
        }
        if let Some(call) = &read.call {
            let rule = match call.function.as_str() {
                "read_files" => &rules::READ_FILES,
                "read_kafka" => &rules::READ_KAFKA,
                "cloud_files" => &rules::CLOUD_FILES,
                _ => continue,
            };
            report.uses(read.place.clone(), rule, Some(of));
            report.uses(read.place.clone(), &rules::FEED_COLUMNS, Some(of));
            options(call, of, report);
        }
    }
}

/// Options of `read_files` and `read_kafka` that are ours.
const OUR_OPTIONS: &[&str] =
    &["topics", "decode", "feed", "keys", "encodings", "replicaIdentity", "settleSeconds", "group", "schemaRegistry"];

fn options(call: &Call, of: &str, report: &mut Report) {
    let is_ours = |option: &Argument| OUR_OPTIONS.iter().any(|ours| option.name.eq_ignore_ascii_case(ours));
    let our_format = |option: &Argument| {
        let kafka = |text: &str| matches!(text.to_lowercase().as_str(), "kafka_jsonl" | "kafka-jsonl");
        option.name.eq_ignore_ascii_case("format") && matches!(&option.value, Value::Text(text) if kafka(text))
    };
    for option in call.options.iter().filter(|option| is_ours(option) || our_format(option)) {
        report.uses_one(option.place.clone(), &rules::OUR_OPTION, Some(of), &option.name);
    }
}
