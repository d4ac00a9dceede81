//! `system.access.table_lineage` and `system.access.column_lineage`, in the platform's shapes: a row a source and target of each
//! dataset that a run committed to.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tributary_lake::Lake;
use tributary_lake::arrow::array::{ArrayRef, BooleanArray, Date32Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray};
use tributary_lake::arrow::datatypes::Fields;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::DataFusionError;
use tributary_specs::{Column, DataType, Layer, TableName, TableSpec};

use super::{Lineage, LineageSource};
use crate::{Error, system};

/// Seconds of a day.
const DAY: i64 = 86_400;

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
    run_id: &str,
    layers: &BTreeMap<TableName, Layer>,
    committed: &[Committed],
) -> Result<(), Error> {
    let system = system::catalogue(lake)?;
    let at = lake.clock().now();
    let (mut tables, mut columns) = (Vec::new(), Vec::new());
    for Committed { table, layer, lineage } in committed {
        let event_id = lake.new_id().to_string();
        let row = |source: Option<&LineageSource>, source_column: Option<&str>, target_column: Option<&str>| Row {
            source: source.map(|source| place(lake, source, layers)),
            target: in_lake(lake, table, Some(*layer)),
            source_column: source_column.map(str::to_owned),
            target_column: target_column.map(str::to_owned),
            event_id: event_id.clone(),
            record_id: lake.new_id().to_string(),
        };
        match lineage.sources.is_empty() {
            true => tables.push(row(None, None, None)),
            false => tables.extend(lineage.sources.iter().map(|source| row(Some(source), None, None))),
        }
        for column in &lineage.columns {
            columns.extend(column.from.iter().map(|from| row(Some(&from.source), Some(&from.column), Some(&column.column))));
        }
    }
    let run = Run { pipeline, id: run_id, at };
    if !tables.is_empty() {
        system::append(&system, &table_spec("table_lineage", false), batch(&run, &tables, false)?).await?;
    }
    if !columns.is_empty() {
        system::append(&system, &table_spec("column_lineage", true), batch(&run, &columns, true)?).await?;
    }
    Ok(())
}

struct Run<'a> {
    pipeline: &'a str,
    id: &'a str,
    at: DateTime<Utc>,
}

struct Row {
    source: Option<Place>,
    target: Place,
    source_column: Option<String>,
    target_column: Option<String>,
    event_id: String,
    record_id: String,
}

/// One side of a row: full name, catalogue, schema, name, path, type.
type Place = [Option<String>; 6];

/// What the columns of a side are called behind its name.
const PARTS: [&str; 6] = ["table_full_name", "table_catalog", "table_schema", "table_name", "path", "type"];

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

fn batch(run: &Run<'_>, rows: &[Row], of_columns: bool) -> Result<RecordBatch, Error> {
    let failed = |error: ArrowError| Error::Lake(tributary_lake::Error::from(DataFusionError::from(error)));
    let count = rows.len();
    let text = |value: &dyn Fn(&Row) -> Option<String>| -> ArrayRef { Arc::new(rows.iter().map(value).collect::<StringArray>()) };
    let same = |value: Option<&str>| -> ArrayRef { Arc::new(StringArray::from(vec![value; count])) };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("account_id".to_owned(), same(None)),
        ("metastore_id".to_owned(), same(None)),
        ("workspace_id".to_owned(), same(None)),
        ("entity_type".to_owned(), same(Some("PIPELINE"))),
        ("entity_id".to_owned(), same(Some(run.pipeline))),
        ("entity_run_id".to_owned(), same(Some(run.id))),
    ];
    for (at, part) in PARTS.iter().enumerate() {
        columns.push((format!("source_{part}"), text(&|row| row.source.as_ref().and_then(|place| place[at].clone()))));
    }
    for (at, part) in PARTS.iter().enumerate() {
        columns.push((format!("target_{part}"), text(&|row| row.target[at].clone())));
    }
    if of_columns {
        columns.push(("source_column_name".to_owned(), text(&|row| row.source_column.clone())));
        columns.push(("target_column_name".to_owned(), text(&|row| row.target_column.clone())));
    }
    let micros = TimestampMicrosecondArray::from(vec![run.at.timestamp_micros(); count]).with_timezone("UTC");
    let days = i32::try_from(run.at.timestamp().div_euclid(DAY)).unwrap_or_default();
    columns.extend([
        ("created_by".to_owned(), same(None)),
        ("event_time".to_owned(), Arc::new(micros) as ArrayRef),
        ("event_date".to_owned(), Arc::new(Date32Array::from(vec![days; count])) as ArrayRef),
        ("record_id".to_owned(), text(&|row| Some(row.record_id.clone()))),
        ("event_id".to_owned(), text(&|row| Some(row.event_id.clone()))),
        ("statement_id".to_owned(), same(None)),
        ("entity_metadata".to_owned(), metadata(run, count).map_err(failed)?),
        ("direct_access".to_owned(), Arc::new(BooleanArray::from(vec![true; count])) as ArrayRef),
    ]);
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).map_err(failed)
}

/// `entity_metadata`: which pipeline and which run of it; no other kind of entity writes here.
fn metadata(run: &Run<'_>, count: usize) -> Result<ArrayRef, ArrowError> {
    let same = |value: Option<&str>| -> ArrayRef { Arc::new(StringArray::from(vec![value; count])) };
    let tributary_lake::arrow::datatypes::DataType::Struct(fields) = entity_metadata().to_arrow() else {
        return Err(ArrowError::SchemaError("entity metadata is a struct".to_owned()));
    };
    let inner = |name: &str| match fields.find(name).map(|(_, field)| field.data_type()) {
        Some(tributary_lake::arrow::datatypes::DataType::Struct(fields)) => fields.clone(),
        _ => Fields::empty(),
    };
    let none = |fields: Fields| {
        let columns = fields.iter().map(|_| same(None)).collect();
        let nulls = tributary_lake::arrow::buffer::NullBuffer::new_null(count);
        StructArray::try_new(fields, columns, Some(nulls)).map(|array| Arc::new(array) as ArrayRef)
    };
    let pipeline = StructArray::try_new(inner("dlt_pipeline_info"), vec![same(Some(run.pipeline)), same(Some(run.id))], None)?;
    let columns = vec![none(inner("job_info"))?, same(None), same(None), same(None), same(None), Arc::new(pipeline) as ArrayRef];
    Ok(Arc::new(StructArray::try_new(fields, columns, None)?))
}
