//! Lineage as OpenLineage events: a START and a COMPLETE or FAIL for each dataset that a run brings up to date, under the run that they
//! are parts of.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tributary_lake::{Lake, Table};
use tributary_specs::{Column, DataType, DatasetRef, DatasetReport, Layer, TableName};

use super::watch::Tables;
use super::{Lineage, LineageSource, Manner, places};
use crate::definition::hexadecimal;
use crate::{Pipeline, WithinJob};

/// Who says so: `producer` of every event, `_producer` of every facet.
///
/// ```
/// assert!(tributary::OPENLINEAGE_PRODUCER.starts_with("https://"));
/// ```
pub const OPENLINEAGE_PRODUCER: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/v", env!("CARGO_PKG_VERSION"));

const EVENT: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";

/// Takes OpenLineage events. Called from several tasks and must not block; what goes wrong there is its own business, a run goes on.
///
/// ```
/// #[derive(Debug)]
/// struct Print;
///
/// impl tributary::LineageSink for Print {
///     fn event(&self, event: &serde_json::Value) {
///         println!("{event}");
///     }
/// }
/// ```
pub trait LineageSink: fmt::Debug + Send + Sync {
    /// One event, as the specification has it.
    fn event(&self, event: &Value);
}

/// Where events go and under which namespace the jobs are known.
///
/// ```no_run
/// # fn f(sink: std::sync::Arc<dyn tributary::LineageSink>) {
/// let options = tributary::RunOptions {
///     openlineage: Some(tributary::OpenLineage { sink, namespace: "shop".to_owned() }),
///     ..Default::default()
/// };
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OpenLineage {
    /// Takes the events.
    pub sink: Arc<dyn LineageSink>,
    /// Namespace of the jobs.
    pub namespace: String,
}

/// A dataset at work.
pub(super) struct Job<'a> {
    pub lake: &'a Lake,
    pub pipeline: &'a Pipeline,
    pub dataset: &'a DatasetRef,
    pub run_id: &'a str,
    /// The run of the pipeline.
    pub parent_id: &'a str,
    /// The task whose work that is.
    pub within: Option<&'a WithinJob>,
    pub continuous: bool,
}

/// What is told of it.
pub(super) enum Event<'a> {
    Start,
    Complete { report: &'a DatasetReport, tables: Option<&'a Tables> },
    Fail { report: &'a DatasetReport },
}

impl OpenLineage {
    pub(super) fn tell(&self, job: &Job<'_>, event: &Event<'_>, at: DateTime<Utc>) {
        self.sink.event(&self.event(job, event, at));
    }

    fn event(&self, job: &Job<'_>, event: &Event<'_>, at: DateTime<Utc>) -> Value {
        let kind = match event {
            Event::Start => "START",
            Event::Complete { .. } => "COMPLETE",
            Event::Fail { .. } => "FAIL",
        };
        let tables = if let Event::Complete { tables, .. } = event { *tables } else { None };
        json!({
            "eventType": kind,
            "eventTime": at.to_rfc3339_opts(SecondsFormat::Millis, true),
            "producer": OPENLINEAGE_PRODUCER,
            "schemaURL": EVENT,
            "run": { "runId": job.run_id, "facets": self.run_facets(job, event) },
            "job": { "namespace": self.namespace, "name": name_of(job), "facets": job_facets(job) },
            "inputs": inputs(job, event, tables),
            "outputs": [output(job, event, tables)],
        })
    }

    fn run_facets(&self, job: &Job<'_>, event: &Event<'_>) -> Value {
        let mut facets = Map::new();
        let mut parent = json!({
            "run": { "runId": job.parent_id },
            "job": { "namespace": self.namespace, "name": job.pipeline.spec().name },
        });
        if let Some(task) = job.within {
            parent["root"] = json!({
                "run": { "runId": uuid_of(&task.job_run_id) },
                "job": { "namespace": self.namespace, "name": task.job_name },
            });
            let of_task =
                json!({ "jobId": task.job_id, "jobRunId": task.job_run_id, "task": task.task_key, "taskRunId": task.task_run_id });
            let schema = format!("{OPENLINEAGE_PRODUCER}#task");
            let own = json!({ "_producer": OPENLINEAGE_PRODUCER, "_schemaURL": schema, "task": of_task });
            facets.insert("tributary_task".to_owned(), own);
        }
        facets.insert("parent".to_owned(), facet("1-1-0/ParentRunFacet", parent));
        let engine =
            json!({ "name": "tributary", "version": env!("CARGO_PKG_VERSION"), "openlineageAdapterVersion": env!("CARGO_PKG_VERSION") });
        facets.insert("processing_engine".to_owned(), facet("1-1-1/ProcessingEngineRunFacet", engine));
        if let Event::Fail { report } = event {
            let message = report.error.as_ref().map_or_else(|| report.reason.clone(), |error| format!("{}: {}", error.code, error.message));
            let error = json!({ "message": message, "programmingLanguage": "Rust" });
            facets.insert("errorMessage".to_owned(), facet("1-0-1/ErrorMessageRunFacet", error));
        }
        Value::Object(facets)
    }
}

/// The number of a job's run in the form that ids of runs have, always the same one.
fn uuid_of(run_id: &str) -> String {
    let text = hexadecimal(&Sha256::digest(run_id)[..16]);
    // version 8: made of what the maker likes
    format!("{}-{}-8{}-8{}-{}", &text[..8], &text[8..12], &text[13..16], &text[17..20], &text[20..])
}

/// `pipeline.schema.table`.
fn name_of(job: &Job<'_>) -> String {
    format!("{}.{}", job.pipeline.spec().name, job.dataset.table)
}

fn job_facets(job: &Job<'_>) -> Value {
    let mut facets = Map::new();
    let processing = if job.continuous { "STREAMING" } else { "BATCH" };
    let kind = json!({ "processingType": processing, "integration": "TRIBUTARY", "jobType": "DATASET" });
    facets.insert("jobType".to_owned(), facet("2-0-3/JobTypeJobFacet", kind));
    let (spec, index) = (job.pipeline.spec(), job.dataset.index);
    let query = match job.dataset.layer {
        _ if job.pipeline.build_of(&job.dataset.table).is_some() => None,
        Layer::Bronze => None,
        Layer::Silver => spec.silver[index].select.as_deref(),
        Layer::Gold => Some(spec.gold[index].query.as_str()),
    };
    if let Some(query) = query {
        facets.insert("sql".to_owned(), facet("1-1-0/SQLJobFacet", json!({ "query": query, "dialect": "databricks" })));
    }
    Value::Object(facets)
}

fn inputs(job: &Job<'_>, event: &Event<'_>, tables: Option<&Tables>) -> Vec<Value> {
    let declared = || match job.dataset.layer {
        Layer::Bronze => places(&job.pipeline.spec().feeds[job.dataset.index]).into_iter().map(LineageSource::Path).collect(),
        Layer::Silver | Layer::Gold => {
            job.pipeline.sources_of(job.dataset.layer, job.dataset.index).into_iter().cloned().map(LineageSource::Table).collect::<Vec<_>>()
        }
    };
    let sources = tables.map_or_else(declared, |tables| tables.lineage.sources.clone());
    let of = |source: &LineageSource| {
        let mut input = identity(job.lake, source);
        let mut facets = Map::new();
        if let LineageSource::Table(name) = source {
            facets.insert("symlinks".to_owned(), symlinks(job.lake, name));
            if let Some(table) = tables.and_then(|tables| tables.sources.get(name)) {
                facets.insert("schema".to_owned(), schema(table));
            }
            if let Event::Complete { report, .. } = event
                && let Some(version) = report.positions.get(&name.to_string())
            {
                facets.insert("version".to_owned(), version_facet(&version.to_string()));
            }
        }
        input.insert("facets".to_owned(), Value::Object(facets));
        Value::Object(input)
    };
    sources.iter().map(of).collect()
}

fn output(job: &Job<'_>, event: &Event<'_>, tables: Option<&Tables>) -> Value {
    let name = &job.dataset.table;
    let mut output = identity(job.lake, &LineageSource::Table(name.clone()));
    let mut facets = Map::from_iter([("symlinks".to_owned(), symlinks(job.lake, name))]);
    if let Some(tables) = tables {
        if let Some(target) = &tables.target {
            facets.insert("schema".to_owned(), schema(target));
        }
        facets.insert("columnLineage".to_owned(), column_lineage(job.lake, &tables.lineage));
    }
    if let Event::Complete { report, .. } = event {
        if let Some(version) = report.version_to {
            facets.insert("version".to_owned(), version_facet(&version.to_string()));
        }
        let statistics = json!({ "rowCount": report.rows_out, "size": report.bytes_written });
        let statistics = facet("1-0-2/OutputStatisticsOutputDatasetFacet", statistics);
        output.insert("outputFacets".to_owned(), json!({ "outputStatistics": statistics }));
    }
    output.insert("facets".to_owned(), Value::Object(facets));
    Value::Object(output)
}

/// A facet with who says so and what its shape is.
fn facet(shape: &str, mut content: Value) -> Value {
    content["_producer"] = OPENLINEAGE_PRODUCER.into();
    let name = shape.rsplit('/').next().unwrap_or(shape);
    content["_schemaURL"] = format!("https://openlineage.io/spec/facets/{shape}.json#/$defs/{name}").into();
    content
}

fn version_facet(version: &str) -> Value {
    facet("1-0-1/DatasetVersionDatasetFacet", json!({ "datasetVersion": version }))
}

/// A dataset by where it is, as the specification names those of stores and topics.
fn identity(lake: &Lake, source: &LineageSource) -> Map<String, Value> {
    let (namespace, name) = match source {
        LineageSource::Table(table) => match lake.url(table) {
            Ok(url) => by_place(&url),
            Err(_) => ("tributary".to_owned(), table.to_string()),
        },
        LineageSource::Path(path) => match path.split_once("://") {
            Some(("kafka", topic)) => match topic.rsplit_once('/') {
                Some((brokers, topic)) => (format!("kafka://{brokers}"), topic.to_owned()),
                None => ("kafka://".to_owned(), topic.to_owned()),
            },
            Some(("source", name)) => ("source://".to_owned(), name.to_owned()),
            Some((scheme, name)) => match url::Url::parse(path) {
                Ok(url) => by_place(&url),
                Err(_) => (format!("{scheme}://"), name.to_owned()),
            },
            None => ("file".to_owned(), path.clone()),
        },
    };
    Map::from_iter([("namespace".to_owned(), namespace.into()), ("name".to_owned(), name.into())])
}

fn by_place(url: &url::Url) -> (String, String) {
    let path = url.path().trim_end_matches('/');
    if url.scheme() == "file" {
        return ("file".to_owned(), path.to_owned());
    }
    // the container of a storage account stands where others have a user
    let container = Some(url.username()).filter(|name| !name.is_empty()).map(|name| format!("{name}@")).unwrap_or_default();
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    (format!("{}://{container}{host}", url.scheme()), path.trim_start_matches('/').to_owned())
}

/// The name that catalogues have for a table.
fn symlinks(lake: &Lake, table: &TableName) -> Value {
    let name = format!("{}.{table}", lake.options().catalogue);
    let identifiers = json!([{ "namespace": lake.stores().root().as_str(), "name": name, "type": "TABLE" }]);
    facet("1-0-1/SymlinksDatasetFacet", json!({ "identifiers": identifiers }))
}

fn schema(table: &Table) -> Value {
    facet("1-1-1/SchemaDatasetFacet", json!({ "fields": fields(table.columns()) }))
}

fn fields(columns: &[Column]) -> Vec<Value> {
    let field = |column: &Column| {
        let mut field = Map::new();
        field.insert("name".to_owned(), column.name.clone().into());
        let word = if let DataType::Struct(_) = column.data_type { "struct".to_owned() } else { column.data_type.to_string() };
        field.insert("type".to_owned(), word.into());
        if let Some(comment) = &column.comment {
            field.insert("description".to_owned(), comment.clone().into());
        }
        if let DataType::Struct(inner) = &column.data_type {
            field.insert("fields".to_owned(), fields(inner).into());
        }
        Value::Object(field)
    };
    columns.iter().map(field).collect()
}

fn column_lineage(lake: &Lake, lineage: &Lineage) -> Value {
    let mut columns = Map::new();
    for column in &lineage.columns {
        let inputs = column.from.iter().map(|from| {
            let mut input = identity(lake, &from.source);
            input.insert("field".to_owned(), from.column.clone().into());
            let subtype = match from.manner {
                Manner::Identity => "IDENTITY",
                Manner::Transformation => "TRANSFORMATION",
                Manner::Aggregation => "AGGREGATION",
            };
            let how = json!([{ "type": "DIRECT", "subtype": subtype, "description": "", "masking": false }]);
            input.insert("transformations".to_owned(), how);
            Value::Object(input)
        });
        columns.insert(column.column.clone(), json!({ "inputFields": inputs.collect::<Vec<_>>() }));
    }
    facet("1-2-0/ColumnLineageDatasetFacet", json!({ "fields": columns }))
}
