//! `system.access.table_lineage` and `system.access.column_lineage`, in the platform's shapes: a row a source and target of each
//! dataset that a run committed to.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tributary_lake::Lake;
use tributary_specs::{Column, DataType, Layer, TableName, TableSpec};

use super::{By, Lineage, LineageSource};
use crate::Error;
use crate::system::{self, Row};

/// One dataset's commits of a run.
pub(super) struct Committed {
    pub table: TableName,
    pub layer: Layer,
    pub lineage: Lineage,
}

/// Appends the rows of the datasets that a run committed to. `layers` tells what the tables of the pipeline are.
pub(super) async fn append(
    lake: &Lake,
    pipeline: &str,
    by: &By,
    layers: &BTreeMap<TableName, Layer>,
    committed: &[Committed],
) -> Result<(), Error> {
    let mut tables: Vec<Row> = Vec::new();
    let mut columns: Vec<Row> = Vec::new();
    let at = lake.clock().now();
    let entity = entity(pipeline, by);
    for Committed { table, layer, lineage } in committed {
        let event_id = lake.new_id().to_string();
        let target = in_lake(lake, table, Some(*layer));
        let row = |source: Option<&LineageSource>| {
            let mut row = entity.clone();
            row.extend(system::row(json!({
                "event_time": at.timestamp_micros(),
                "event_date": at.date_naive().to_string(),
                "record_id": lake.new_id().to_string(),
                "event_id": event_id,
                "direct_access": true,
            })));
            row.extend(source.into_iter().flat_map(|source| side("source", place(lake, source, layers))));
            row.extend(side("target", target.clone()));
            row
        };
        match lineage.sources.is_empty() {
            true => tables.push(row(None)),
            false => tables.extend(lineage.sources.iter().map(|source| row(Some(source)))),
        }
        for (column, from) in lineage.columns.iter().flat_map(|column| column.from.iter().map(move |from| (column, from))) {
            let mut row = row(Some(&from.source));
            row.extend(system::row(json!({ "source_column_name": from.column, "target_column_name": column.column })));
            columns.push(row);
        }
    }
    let system = system::catalogue(lake)?;
    let [of_tables, of_columns] = specs();
    system::append_rows(&system, &of_tables, &tables).await?;
    system::append_rows(&system, &of_columns, &columns).await
}

/// Who writes: the job whose task runs the pipeline, else the pipeline. Other kinds of entities write nothing here.
fn entity(pipeline: &str, by: &By) -> Row {
    let of_pipeline = json!({ "dlt_pipeline_id": pipeline, "dlt_update_id": by.run_id });
    match &by.within {
        None => system::row(json!({
            "entity_type": "PIPELINE",
            "entity_id": pipeline,
            "entity_run_id": by.run_id,
            "entity_metadata": { "dlt_pipeline_info": of_pipeline },
        })),
        Some(job) => system::row(json!({
            "entity_type": "JOB",
            "entity_id": job.job_id,
            "entity_run_id": job.job_run_id,
            "entity_metadata": {
                "job_info": { "job_id": job.job_id, "job_run_id": job.job_run_id },
                "dlt_pipeline_info": of_pipeline,
            },
        })),
    }
}

/// One side of a row: full name, catalogue, schema, name, path, type.
type Place = [Option<String>; 6];

/// What the columns of a side are called behind its name.
const PARTS: [&str; 6] = ["table_full_name", "table_catalog", "table_schema", "table_name", "path", "type"];

fn side(side: &str, place: Place) -> impl Iterator<Item = (String, Value)> {
    PARTS.into_iter().zip(place).map(move |(part, value)| (format!("{side}_{part}"), value.into()))
}

fn place(lake: &Lake, source: &LineageSource, layers: &BTreeMap<TableName, Layer>) -> Place {
    match source {
        LineageSource::Table(table) => in_lake(lake, table, layers.get(&table.folded()).copied()),
        LineageSource::Path(path) => [None, None, None, None, Some(path.clone()), Some("PATH".to_owned())],
    }
}

/// A table, by what it is on the platform: one kept current by its changes, a view kept, or any other.
fn in_lake(lake: &Lake, table: &TableName, layer: Option<Layer>) -> Place {
    let catalogue = &lake.options().catalogue;
    let kind = match layer {
        Some(Layer::Bronze | Layer::Silver) => "STREAMING_TABLE",
        Some(Layer::Gold) => "MATERIALIZED_VIEW",
        None => "TABLE",
    };
    [
        Some(format!("{catalogue}.{table}")),
        Some(catalogue.clone()),
        Some(table.schema.clone()),
        Some(table.name.clone()),
        lake.url(table).ok().map(|url| url.to_string()),
        Some(kind.to_owned()),
    ]
}

fn entity_metadata() -> DataType {
    let text = |name: &str| Column::new(name, DataType::String);
    let part = |name: &str, fields: [&str; 2]| Column::new(name, DataType::Struct(fields.map(text).to_vec()));
    DataType::Struct(vec![
        part("job_info", ["job_id", "job_run_id"]),
        text("dashboard_id"),
        text("legacy_dashboard_id"),
        text("notebook_id"),
        text("sql_query_id"),
        part("dlt_pipeline_info", ["dlt_pipeline_id", "dlt_update_id"]),
    ])
}

/// Both tables as they are made.
pub(crate) fn specs() -> [TableSpec; 2] {
    [table_spec("table_lineage", false), table_spec("column_lineage", true)]
}

/// The columns of either table; those of columns only with `of_columns`.
fn table_spec(name: &str, of_columns: bool) -> TableSpec {
    let text = |name: &str| Column::new(name, DataType::String);
    let side = |side: &str| PARTS.map(|part| text(&format!("{side}_{part}")));
    let mut columns = ["account_id", "metastore_id", "workspace_id", "entity_type", "entity_id", "entity_run_id"].map(text).to_vec();
    columns.extend(side("source"));
    columns.extend(side("target"));
    if of_columns {
        columns.extend(["source_column_name", "target_column_name"].map(text));
    }
    columns.push(text("created_by"));
    columns.extend([Column::new("event_time", DataType::Timestamp), Column::new("event_date", DataType::Date)]);
    columns.extend(["record_id", "event_id", "statement_id"].map(text));
    columns.extend([Column::new("entity_metadata", entity_metadata()), Column::new("direct_access", DataType::Boolean)]);
    let mut spec = TableSpec::new(TableName::new("access", name), columns);
    spec.partition_by = vec!["event_date".to_owned()];
    let what = if of_columns { "source and target column" } else { "source and target table or path" };
    spec.comment = Some(format!("One row for each {what} of a dataset that a run committed to"));
    spec
}
