//! What the first commit of a table says, and how a table differs from its declaration. Pure.

use std::collections::BTreeMap;

use arrow::datatypes::Schema;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tributary_specs::{Check, Column, DataType, TableName, TableSpec};
use uuid::Uuid;

use crate::action::{Action, CommitInfo, DomainMetadata, Format, Metadata, Protocol};
use crate::protocol::DELETION_VECTORS_ON;
use crate::state::{CLUSTERING_DOMAIN, RETENTION_OF_POSITIONS, State, clustering_configuration};
use crate::{Difference, TableLayout, checkpoint, delta_schema, protocol};

/// Says which of our conventions a table was made by; an older number is brought up to date when the table is opened to be written.
pub(crate) const FORMAT: (&str, &str) = ("tributary.format", "1");

/// Whether commits tell what they did to rows; on in every table of ours that neither its declaration nor the table itself forbids.
pub(crate) const CHANGE_FEED_ON: &str = "delta.enableChangeDataFeed";

/// On in every table of ours.
pub(crate) const COMMIT_TIMESTAMPS_ON: &str = "delta.enableInCommitTimestamps";

/// Columns that a change feed adds.
const CHANGE_FEED_COLUMNS: [&str; 3] = ["_change_type", "_commit_version", "_commit_timestamp"];

/// Delta's properties that we honour, or that concern only what others do to the table.
const HONOURED: [&str; 18] = [
    "delta.appendOnly",
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
    "delta.checkpoint.writeStatsAsJson",
    "delta.checkpoint.writeStatsAsStruct",
    checkpoint::INTERVAL,
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    CHANGE_FEED_ON,
    DELETION_VECTORS_ON,
    "delta.enableExpiredLogCleanup",
    COMMIT_TIMESTAMPS_ON,
    "delta.isolationLevel",
    "delta.logRetentionDuration",
    "delta.parquet.compression.codec",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
];

/// The actions of version 0.
///
/// # Errors
/// Why the declaration cannot be honoured, naming the column or property.
pub(crate) fn first_commit(spec: &TableSpec, id: Uuid, txn_id: Uuid, now: DateTime<Utc>) -> Result<Vec<Action>, String> {
    check_columns(&spec.columns)?;
    check_partitions(spec)?;
    check_clustering(spec)?;
    check_constraints(&spec.checks)?;
    let metadata = Metadata {
        id: id.to_string(),
        name: Some(spec.name.name.clone()),
        description: spec.comment.clone(),
        format: Format { provider: "parquet".to_owned(), options: BTreeMap::new() },
        schema_string: delta_schema::schema_string(&spec.columns),
        partition_columns: spec.partition_by.clone(),
        configuration: configuration(spec)?,
        created_time: Some(now.timestamp_millis()),
    };
    let protocol = protocol::with_features(&protocol::needed(&metadata, !spec.cluster_by.is_empty()));
    let mut actions =
        vec![Action::CommitInfo(Box::new(created(spec, txn_id, now))), Action::Protocol(protocol), Action::Metadata(Box::new(metadata))];
    if !spec.cluster_by.is_empty() {
        let configuration = clustering_configuration(&spec.cluster_by);
        actions.push(Action::DomainMetadata(DomainMetadata { domain: CLUSTERING_DOMAIN.to_owned(), configuration, removed: false }));
    }
    Ok(actions)
}

fn created(spec: &TableSpec, txn_id: Uuid, now: DateTime<Utc>) -> CommitInfo {
    let list = |names: &[String]| Value::String(Value::from(names.to_vec()).to_string());
    let parameters = [
        ("partitionBy", list(&spec.partition_by)),
        ("clusterBy", list(&spec.cluster_by)),
        ("description", Value::String(spec.comment.clone().unwrap_or_default())),
    ];
    CommitInfo {
        in_commit_timestamp: Some(now.timestamp_millis()),
        timestamp: Some(now.timestamp_millis()),
        operation: Some("CREATE TABLE".to_owned()),
        operation_parameters: Some(parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        is_blind_append: Some(true),
        engine_info: Some(crate::transact::ENGINE.to_owned()),
        txn_id: Some(txn_id.to_string()),
        ..CommitInfo::default()
    }
}

fn check_columns(columns: &[Column]) -> Result<(), String> {
    if columns.is_empty() {
        return Err("it has no columns".to_owned());
    }
    check_names(columns, "")?;
    for column in columns {
        if CHANGE_FEED_COLUMNS.iter().any(|name| name.eq_ignore_ascii_case(&column.name)) {
            return Err(format!("column `{}` is called like a column of the change feed", column.name));
        }
        if column.default.is_some() && column.generated.is_some() {
            return Err(format!("column `{}` has a default and is generated", column.name));
        }
    }
    Ok(())
}

fn check_names(columns: &[Column], parent: &str) -> Result<(), String> {
    for (index, column) in columns.iter().enumerate() {
        let name = format!("{parent}{}", column.name);
        if column.name.is_empty() {
            return Err(format!("column {} of `{parent}` has no name", index + 1));
        }
        if let Some(other) = columns[..index].iter().find(|other| other.name.eq_ignore_ascii_case(&column.name)) {
            return Err(format!("columns `{parent}{}` and `{name}` differ at most by case", other.name));
        }
        if !parent.is_empty() && (column.default.is_some() || column.generated.is_some()) {
            return Err(format!("field `{name}` has a default or is generated, which only columns may"));
        }
        check_type(&column.data_type, &name)?;
    }
    Ok(())
}

fn check_type(data_type: &DataType, name: &str) -> Result<(), String> {
    match data_type {
        DataType::Struct(fields) if fields.is_empty() => Err(format!("struct `{name}` has no fields")),
        DataType::Struct(fields) => check_names(fields, &format!("{name}.")),
        DataType::Array(element) => check_type(element, name),
        DataType::Map(key, value) => check_type(key, name).and_then(|()| check_type(value, name)),
        DataType::Decimal { precision, scale } if *precision == 0 || *precision > 38 || scale > precision => {
            Err(format!("column `{name}` has type {data_type}, which has no such digits"))
        }
        _ => Ok(()),
    }
}

fn is_nested(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(_) | DataType::Array(_) | DataType::Map(..))
}

fn column<'a>(spec: &'a TableSpec, name: &str, role: &str) -> Result<&'a Column, String> {
    spec.columns.iter().find(|column| column.name == name).ok_or_else(|| format!("{role} column `{name}` is not a column of the table"))
}

/// Whether a table of these columns can lie so.
///
/// # Errors
/// Why not, naming the column.
pub(crate) fn check_layout(name: &TableName, columns: &[Column], lies: &TableLayout) -> Result<(), String> {
    let TableLayout { partition_by, cluster_by } = lies.clone();
    let spec = TableSpec { partition_by, cluster_by, ..TableSpec::new(name.clone(), columns.to_vec()) };
    check_partitions(&spec).and_then(|()| check_clustering(&spec))
}

fn check_partitions(spec: &TableSpec) -> Result<(), String> {
    for (index, name) in spec.partition_by.iter().enumerate() {
        if spec.partition_by[..index].contains(name) {
            return Err(format!("partition column `{name}` is named twice"));
        }
        let data_type = &column(spec, name, "partition")?.data_type;
        if is_nested(data_type) || *data_type == DataType::Binary {
            return Err(format!("partition column `{name}` is {data_type}"));
        }
    }
    if spec.partition_by.len() == spec.columns.len() {
        return Err("every column is a partition column".to_owned());
    }
    Ok(())
}

fn check_clustering(spec: &TableSpec) -> Result<(), String> {
    if spec.cluster_by.is_empty() {
        return Ok(());
    }
    if !spec.partition_by.is_empty() {
        return Err(format!(
            "it has partition columns ({}) and clustering columns ({})",
            spec.partition_by.join(", "),
            spec.cluster_by.join(", ")
        ));
    }
    if spec.cluster_by.len() > 4 {
        return Err("it has more than four clustering columns".to_owned());
    }
    for (index, name) in spec.cluster_by.iter().enumerate() {
        if spec.cluster_by[..index].contains(name) {
            return Err(format!("clustering column `{name}` is named twice"));
        }
        let data_type = &column(spec, name, "clustering")?.data_type;
        if is_nested(data_type) || matches!(data_type, DataType::Binary | DataType::Boolean) {
            return Err(format!("clustering column `{name}` is {data_type}, which has no statistics"));
        }
    }
    Ok(())
}

fn check_constraints(checks: &[Check]) -> Result<(), String> {
    for (index, check) in checks.iter().enumerate() {
        if check.name.is_empty() {
            return Err("a constraint has no name".to_owned());
        }
        if checks[..index].iter().any(|other| other.name.eq_ignore_ascii_case(&check.name)) {
            return Err(format!("constraint `{}` is named twice", check.name));
        }
    }
    Ok(())
}

/// Why a property cannot be as `value` says on any table of ours.
pub(crate) fn check_property(name: &str, value: &str) -> Result<(), String> {
    let on = value == "true";
    match name {
        RETENTION_OF_POSITIONS => Err(format!("property `{name}` would make the table forget the positions it has consumed")),
        "delta.columnMapping.mode" if value == "none" => Ok(()),
        "delta.checkpointPolicy" if value == "classic" => Ok(()),
        checkpoint::INTERVAL if checkpoint::interval(value).is_none() => {
            Err(format!("property `{name}` is `{value}`, and is a whole number of commits from 1"))
        }
        COMMIT_TIMESTAMPS_ON if !on => Err(format!("property `{name}` is `{value}`, and every table of ours has it on")),
        CHANGE_FEED_ON | DELETION_VECTORS_ON if !on && value != "false" => {
            Err(format!("property `{name}` is `{value}`, and can be `true` or `false`"))
        }
        name if name.starts_with("delta.") && !HONOURED.contains(&name) => {
            Err(format!("property `{name}` = `{value}` is not honoured by this program"))
        }
        _ => Ok(()),
    }
}

fn configuration(spec: &TableSpec) -> Result<BTreeMap<String, String>, String> {
    for (name, value) in &spec.properties {
        let on = value == "true";
        check_property(name, value)?;
        match name.as_str() {
            DELETION_VECTORS_ON if on && !spec.row_changes => {
                return Err(format!("property `{name}` is on, but rows of the table are only added"));
            }
            "delta.appendOnly" if on && spec.row_changes => {
                return Err(format!("property `{name}` is on, but rows of the table are changed"));
            }
            _ => {}
        }
    }
    let mut configuration = spec.properties.clone();
    for name in [CHANGE_FEED_ON, COMMIT_TIMESTAMPS_ON] {
        configuration.entry(name.to_owned()).or_insert_with(|| "true".to_owned());
    }
    configuration.insert(FORMAT.0.to_owned(), FORMAT.1.to_owned());
    configuration.extend(spec.checks.iter().map(|check| (format!("{}{}", protocol::CONSTRAINT, check.name), check.expression.clone())));
    Ok(configuration)
}

/// The Arrow schema of a declaration.
pub(crate) fn arrow_schema(columns: &[Column]) -> Result<Schema, String> {
    delta_schema::parse(&delta_schema::schema_string(columns)).map(|(_, schema)| schema)
}

/// How serious a difference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Rows written by the declaration would not fit, or would mean something else.
    Incompatible,
    /// Both go together.
    Compatible,
}

/// Every way in which a table differs from its declaration.
pub(crate) fn differences(spec: &TableSpec, state: &State) -> Vec<(Weight, Difference)> {
    let mut found = Vec::new();
    for declared in &spec.columns {
        match state.columns.iter().find(|column| column.name == declared.name) {
            None => {
                let weight = if declared.nullable && declared.generated.is_none() { Weight::Compatible } else { Weight::Incompatible };
                found.push((weight, difference(&column_label(declared), Some(described(declared)), None)));
            }
            Some(column) => compare_columns(declared, column, &mut found),
        }
    }
    for column in &state.columns {
        if !spec.columns.iter().any(|declared| declared.name == column.name) {
            found.push((Weight::Compatible, difference(&column_label(column), None, Some(described(column)))));
        }
    }
    let names = |names: &[String]| (!names.is_empty()).then(|| names.join(", "));
    if spec.partition_by != state.metadata.partition_columns {
        found.push((
            Weight::Incompatible,
            difference("partition columns", names(&spec.partition_by), names(&state.metadata.partition_columns)),
        ));
    }
    if spec.cluster_by != state.cluster_columns {
        found.push((Weight::Compatible, difference("clustering columns", names(&spec.cluster_by), names(&state.cluster_columns))));
    }
    compare_checks(&spec.checks, &state.checks, &mut found);
    if spec.comment.is_some() && spec.comment != state.metadata.description {
        found.push((Weight::Compatible, difference("comment", spec.comment.clone(), state.metadata.description.clone())));
    }
    for (name, value) in &spec.properties {
        let has = state.properties.get(name);
        if has != Some(value) {
            found.push((Weight::Compatible, property(name, value, has.map(String::as_str))));
        }
    }
    let implied = said_otherwise(spec, state).into_iter().filter(|(name, ..)| !spec.properties.contains_key(*name));
    found.extend(implied.map(|(name, declared, found)| (Weight::Compatible, property(name, declared, Some(found)))));
    found
}

pub(crate) fn property(name: &str, declared: &str, found: Option<&str>) -> Difference {
    difference(&format!("property `{name}`"), Some(declared.to_owned()), found.map(str::to_owned))
}

/// The properties of which a person may decide on a table of ours, as declared: the change feed, unless forbidden; deletion vectors,
/// where the declaration names them.
fn declared(spec: &TableSpec) -> Vec<(&'static str, &str)> {
    let said = |name: &'static str| spec.properties.get(name).map(String::as_str);
    let vectors = said(DELETION_VECTORS_ON).filter(|_| spec.row_changes);
    let feed = (CHANGE_FEED_ON, said(CHANGE_FEED_ON).unwrap_or("true"));
    std::iter::once(feed).chain(vectors.map(|value| (DELETION_VECTORS_ON, value))).collect()
}

/// Of those the ones of which a table of ours itself says otherwise: name, declared, found.
pub(crate) fn said_otherwise<'a>(spec: &'a TableSpec, state: &'a State) -> Vec<(&'static str, &'a str, &'a str)> {
    let configuration = &state.metadata.configuration;
    let ours = configuration.contains_key(FORMAT.0);
    let of = |(name, declared): (&'static str, &'a str)| Some((name, declared, configuration.get(name)?.as_str()));
    declared(spec).into_iter().filter(|_| ours).filter_map(of).filter(|(_, declared, found)| declared != found).collect()
}

fn difference(what: &str, declared: Option<String>, found: Option<String>) -> Difference {
    Difference { what: what.to_owned(), declared, found }
}

fn column_label(column: &Column) -> String {
    format!("column `{}`", column.name)
}

fn described(column: &Column) -> String {
    format!("{}{}", column.data_type, if column.nullable { "" } else { " not null" })
}

fn compare_columns(declared: &Column, column: &Column, found: &mut Vec<(Weight, Difference)>) {
    let label = column_label(column);
    if declared.nullable != column.nullable || !delta_schema::same_type(&declared.data_type, &column.data_type) {
        found.push((Weight::Incompatible, difference(&label, Some(described(declared)), Some(described(column)))));
    }
    let parts = [
        ("generated as", &declared.generated, &column.generated, Weight::Incompatible),
        ("default", &declared.default, &column.default, Weight::Compatible),
        ("comment", &declared.comment, &column.comment, Weight::Compatible),
    ];
    for (part, wanted, has, weight) in parts {
        let said = part != "comment" || wanted.is_some();
        if said && wanted != has {
            found.push((weight, difference(&format!("{label} {part}"), wanted.clone(), has.clone())));
        }
    }
}

fn compare_checks(declared: &[Check], checks: &[Check], found: &mut Vec<(Weight, Difference)>) {
    let of = |checks: &[Check], name: &str| {
        checks.iter().find(|check| check.name.eq_ignore_ascii_case(name)).map(|check| check.expression.clone())
    };
    for check in declared {
        let has = of(checks, &check.name);
        if has.as_ref() != Some(&check.expression) {
            found.push((Weight::Incompatible, difference(&format!("constraint `{}`", check.name), Some(check.expression.clone()), has)));
        }
    }
    for check in checks {
        if of(declared, &check.name).is_none() {
            found.push((Weight::Compatible, difference(&format!("constraint `{}`", check.name), None, Some(check.expression.clone()))));
        }
    }
}

/// How far a table of ours follows its declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follow {
    /// Where the table does not say: what an older release could not know of.
    Unsaid,
    /// Also where the table says otherwise.
    All,
}

/// What brings a table of ours up to date: metadata and protocol with what every table of ours has today, and the change feed and
/// deletion vectors as declared. None when there is nothing to do, or when the table is not ours.
pub(crate) fn upgrade(
    spec: &TableSpec,
    state: &State,
    follow: Follow,
    next_version: u64,
    now_ms: i64,
) -> Option<(Metadata, Option<Protocol>)> {
    let mut configuration = state.metadata.configuration.clone();
    let format = configuration.insert(FORMAT.0.to_owned(), FORMAT.1.to_owned())?;
    for (name, value) in declared(spec) {
        let unsaid = !configuration.contains_key(name);
        // A table that never had the property needs no word to be without.
        if (unsaid && value == "true") || (!unsaid && follow == Follow::All) {
            configuration.insert(name.to_owned(), value.to_owned());
        }
    }
    if !state.is_on(COMMIT_TIMESTAMPS_ON) {
        configuration.insert(COMMIT_TIMESTAMPS_ON.to_owned(), "true".to_owned());
        configuration.insert("delta.inCommitTimestampEnablementVersion".to_owned(), next_version.to_string());
        configuration.insert("delta.inCommitTimestampEnablementTimestamp".to_owned(), now_ms.to_string());
    }
    if format == FORMAT.1 && configuration == state.metadata.configuration {
        return None;
    }
    let metadata = Metadata { configuration, ..state.metadata.clone() };
    let protocol = protocol::grown(&state.protocol, &protocol::needed(&metadata, !state.cluster_columns.is_empty()));
    Some((metadata, protocol))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_specs::TableName;

    fn spec() -> TableSpec {
        TableSpec::new(
            TableName::new("silver", "orders"),
            vec![Column::new("id", DataType::Long).not_null(), Column::new("day", DataType::Date), Column::new("note", DataType::String)],
        )
    }

    fn made(spec: &TableSpec) -> Result<Vec<Action>, String> {
        first_commit(spec, Uuid::nil(), Uuid::nil(), DateTime::from_timestamp_millis(1_700_000_000_000).unwrap())
    }

    fn protocol(actions: &[Action]) -> &Protocol {
        actions.iter().find_map(|action| if let Action::Protocol(protocol) = action { Some(protocol) } else { None }).unwrap()
    }

    #[test]
    fn commit_information_comes_first_and_features_follow_from_the_declaration() {
        let mut spec = spec();
        spec.cluster_by = vec!["day".to_owned()];
        spec.checks = vec![Check { name: "positive".to_owned(), expression: "id > 0".to_owned() }];
        let actions = made(&spec).unwrap();
        assert!(matches!(&actions[0], Action::CommitInfo(info) if info.in_commit_timestamp == Some(1_700_000_000_000)));
        let features = protocol(&actions).writer_features.clone().unwrap();
        assert_eq!(features, ["changeDataFeed", "checkConstraints", "clustering", "domainMetadata", "inCommitTimestamp", "invariants"]);
        assert_eq!(protocol(&actions).min_reader_version, 1);
        assert!(matches!(actions.last().unwrap(), Action::DomainMetadata(domain) if domain.domain == "delta.clustering"));
    }

    #[test]
    fn deletion_vectors_are_a_feature_only_where_rows_change_and_it_is_asked_for() {
        let mut spec = spec();
        spec.properties.insert("delta.enableDeletionVectors".to_owned(), "true".to_owned());
        assert_eq!(made(&spec).unwrap_err(), "property `delta.enableDeletionVectors` is on, but rows of the table are only added");
        spec.row_changes = true;
        let actions = made(&spec).unwrap();
        assert_eq!(protocol(&actions).reader_features.clone().unwrap(), ["deletionVectors"]);
    }

    #[test]
    fn a_declaration_that_cannot_be_honoured_says_why() {
        let property = |name: &str, value: &str| TableSpec { properties: BTreeMap::from([(name.to_owned(), value.to_owned())]), ..spec() };
        let columns = |columns: Vec<Column>| TableSpec { columns, ..spec() };
        let mut generated = Column::new("g", DataType::Long);
        (generated.default, generated.generated) = (Some("1".to_owned()), Some("id".to_owned()));
        let cases = [
            (property("delta.setTransactionRetentionDuration", "interval 1 day"), "would make the table forget the positions"),
            (property("delta.enableInCommitTimestamps", "false"), "every table of ours has it on"),
            (property("delta.enableChangeDataFeed", "no"), "can be `true` or `false`"),
            (property("delta.columnMapping.mode", "name"), "`delta.columnMapping.mode` = `name` is not honoured"),
            (property("delta.enableRowTracking", "true"), "is not honoured"),
            (property("delta.checkpointInterval", "0"), "is `0`, and is a whole number of commits from 1"),
            (property("delta.checkpointInterval", "often"), "is `often`, and is a whole number of commits from 1"),
            (property("delta.feature.variantType", "supported"), "is not honoured"),
            (columns(vec![]), "it has no columns"),
            (
                columns(vec![Column::new("a", DataType::Long), Column::new("A", DataType::Long)]),
                "columns `a` and `A` differ at most by case",
            ),
            (columns(vec![Column::new("_change_type", DataType::String)]), "called like a column of the change feed"),
            (columns(vec![generated]), "has a default and is generated"),
            (TableSpec { partition_by: vec!["missing".to_owned()], ..spec() }, "partition column `missing` is not a column"),
            (
                TableSpec { partition_by: vec!["id".to_owned(), "day".to_owned(), "note".to_owned()], ..spec() },
                "every column is a partition column",
            ),
            (
                TableSpec { partition_by: vec!["day".to_owned()], cluster_by: vec!["id".to_owned()], ..spec() },
                "partition columns (day) and clustering columns (id)",
            ),
        ];
        for (spec, message) in cases {
            let error = made(&spec).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
