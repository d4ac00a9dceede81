//! Table features: which we know, which a table needs, and how a protocol grows.
//!
//! Reading needs every reader feature; writing needs every feature. Some features are listed by a protocol without being used
//! (column mapping with mode `none`, identity columns without one): those hinder nobody until they are used.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::action::{Metadata, Protocol};
use crate::create::{CHANGE_FEED_ON, COMMIT_TIMESTAMPS_ON};

const APPEND_ONLY: &str = "appendOnly";
const INVARIANTS: &str = "invariants";
const CHECK_CONSTRAINTS: &str = "checkConstraints";
const CHANGE_DATA_FEED: &str = "changeDataFeed";
const GENERATED_COLUMNS: &str = "generatedColumns";
const COLUMN_MAPPING: &str = "columnMapping";
const IDENTITY_COLUMNS: &str = "identityColumns";
pub(crate) const DELETION_VECTORS: &str = "deletionVectors";
/// The table property that lets writers mark rows as deleted instead of rewriting files (`true`), or forbids it (`false`).
pub const DELETION_VECTORS_ON: &str = "delta.enableDeletionVectors";
const TIMESTAMP_NTZ: &str = "timestampNtz";
const DOMAIN_METADATA: &str = "domainMetadata";
const CLUSTERING: &str = "clustering";
const IN_COMMIT_TIMESTAMP: &str = "inCommitTimestamp";
const ALLOW_COLUMN_DEFAULTS: &str = "allowColumnDefaults";

/// Features that a reader must understand too, of those we know.
const READER_FEATURES: [&str; 5] = [COLUMN_MAPPING, DELETION_VECTORS, TIMESTAMP_NTZ, "v2Checkpoint", "vacuumProtocolCheck"];

/// Features that we honour when we write.
const WRITER_FEATURES: [&str; 16] = [
    APPEND_ONLY,
    INVARIANTS,
    CHECK_CONSTRAINTS,
    CHANGE_DATA_FEED,
    GENERATED_COLUMNS,
    COLUMN_MAPPING,
    IDENTITY_COLUMNS,
    DELETION_VECTORS,
    TIMESTAMP_NTZ,
    DOMAIN_METADATA,
    CLUSTERING,
    IN_COMMIT_TIMESTAMP,
    ALLOW_COLUMN_DEFAULTS,
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "checkpointProtection",
];

/// What a legacy writer version implies, by the version that brought it.
const LEGACY: [(i32, &str); 7] = [
    (2, APPEND_ONLY),
    (2, INVARIANTS),
    (3, CHECK_CONSTRAINTS),
    (4, CHANGE_DATA_FEED),
    (4, GENERATED_COLUMNS),
    (5, COLUMN_MAPPING),
    (6, IDENTITY_COLUMNS),
];

/// The first thing that keeps us from reading the table, by name.
pub(crate) fn unreadable(protocol: &Protocol, metadata: &Metadata) -> Option<String> {
    unreadable_protocol(protocol).or_else(|| mapped(metadata))
}

/// The same where the metadata is not known.
pub(crate) fn unreadable_protocol(protocol: &Protocol) -> Option<String> {
    if protocol.min_reader_version > 3 {
        return Some(format!("reader version {}", protocol.min_reader_version));
    }
    let unknown = protocol.reader_features.iter().flatten().find(|feature| !READER_FEATURES.contains(&feature.as_str()));
    unknown.map(|feature| format!("the table feature `{feature}`"))
}

/// The first thing that keeps us from writing to the table, by name.
pub(crate) fn unwritable(protocol: &Protocol, metadata: &Metadata) -> Option<String> {
    if protocol.min_writer_version > 7 {
        return Some(format!("writer version {}", protocol.min_writer_version));
    }
    let unknown = protocol.writer_features.iter().flatten().find(|feature| !WRITER_FEATURES.contains(&feature.as_str()));
    if let Some(feature) = unknown {
        return Some(format!("the table feature `{feature}`"));
    }
    let fields = serde_json::from_str::<Value>(&metadata.schema_string).unwrap_or_default();
    let identity = fields["fields"].as_array().into_iter().flatten().find(|field| field["metadata"].get("delta.identity.start").is_some());
    if let Some(field) = identity {
        return Some(format!("identity columns (column `{}`)", field["name"].as_str().unwrap_or_default()));
    }
    None
}

fn mapped(metadata: &Metadata) -> Option<String> {
    let mode = metadata.configuration.get("delta.columnMapping.mode")?;
    (mode != "none").then(|| format!("column mapping by {mode}"))
}

/// Every feature a writer must honour, legacy versions spelled out.
pub(crate) fn features(protocol: &Protocol) -> BTreeSet<String> {
    let mut features: BTreeSet<String> =
        protocol.writer_features.iter().flatten().chain(protocol.reader_features.iter().flatten()).cloned().collect();
    if protocol.min_writer_version < 7 {
        features
            .extend(LEGACY.iter().filter(|(version, _)| *version <= protocol.min_writer_version).map(|(_, feature)| (*feature).to_owned()));
    }
    features
}

/// The features that a schema, the properties and clustering ask for.
pub(crate) fn needed(metadata: &Metadata, clustered: bool) -> BTreeSet<String> {
    let schema = serde_json::from_str::<Value>(&metadata.schema_string).unwrap_or_default();
    let property = |name: &str| metadata.configuration.get(name).is_some_and(|value| value == "true");
    let column_has = |key: &str| schema["fields"].as_array().into_iter().flatten().any(|field| field["metadata"].get(key).is_some());
    let asked = [
        (CHANGE_DATA_FEED, property(CHANGE_FEED_ON)),
        (IN_COMMIT_TIMESTAMP, property(COMMIT_TIMESTAMPS_ON)),
        (APPEND_ONLY, property("delta.appendOnly")),
        (DELETION_VECTORS, property(DELETION_VECTORS_ON)),
        (CHECK_CONSTRAINTS, metadata.configuration.keys().any(|key| key.starts_with(CONSTRAINT))),
        (INVARIANTS, refuses_null(&schema) || column_has("delta.invariants")),
        (GENERATED_COLUMNS, column_has("delta.generationExpression")),
        (ALLOW_COLUMN_DEFAULTS, column_has("CURRENT_DEFAULT")),
        (TIMESTAMP_NTZ, mentions(&schema, "timestamp_ntz")),
        (DOMAIN_METADATA, clustered),
        (CLUSTERING, clustered),
    ];
    asked.into_iter().filter(|(_, asked)| *asked).map(|(feature, _)| feature.to_owned()).collect()
}

/// The feature that a metadata domain asks for.
pub(crate) fn needed_by_domains() -> BTreeSet<String> {
    BTreeSet::from([DOMAIN_METADATA.to_owned()])
}

/// Properties that hold a CHECK constraint begin so.
pub(crate) const CONSTRAINT: &str = "delta.constraints.";

fn refuses_null(node: &Value) -> bool {
    match node {
        Value::Object(object) => object.get("nullable") == Some(&Value::Bool(false)) || object.values().any(refuses_null),
        Value::Array(items) => items.iter().any(refuses_null),
        _ => false,
    }
}

/// Whether the type is anywhere in the schema; names and comments are no types.
fn mentions(node: &Value, data_type: &str) -> bool {
    match node {
        Value::Object(object) => ["type", "elementType", "keyType", "valueType", "fields"]
            .iter()
            .filter_map(|key| object.get(*key))
            .any(|inner| mentions(inner, data_type)),
        Value::Array(items) => items.iter().any(|item| mentions(item, data_type)),
        Value::String(text) => text == data_type,
        _ => false,
    }
}

/// The protocol of a table with these features. Without a feature that concerns readers, readers of version 1 may read it.
pub(crate) fn with_features(features: &BTreeSet<String>) -> Protocol {
    let readers: Vec<String> = features.iter().filter(|feature| READER_FEATURES.contains(&feature.as_str())).cloned().collect();
    Protocol {
        min_reader_version: if readers.is_empty() { 1 } else { 3 },
        min_writer_version: 7,
        reader_features: (!readers.is_empty()).then_some(readers),
        writer_features: Some(features.iter().cloned().collect()),
    }
}

/// The protocol that has these features too; none when it has them already. Nothing is ever taken away.
pub(crate) fn grown(protocol: &Protocol, needed: &BTreeSet<String>) -> Option<Protocol> {
    let has = features(protocol);
    if needed.is_subset(&has) {
        return None;
    }
    let mut grown = with_features(&has.union(needed).cloned().collect());
    grown.min_reader_version = grown.min_reader_version.max(protocol.min_reader_version);
    if grown.min_reader_version == 3 {
        grown.reader_features.get_or_insert_default();
    } else {
        // Reader version 2 knows column mapping without a list.
        grown.reader_features = None;
    }
    Some(grown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Format;
    use std::collections::BTreeMap;

    fn metadata(schema: &str, configuration: &[(&str, &str)]) -> Metadata {
        Metadata {
            id: "id".to_owned(),
            name: None,
            description: None,
            format: Format { provider: "parquet".to_owned(), options: BTreeMap::new() },
            schema_string: schema.to_owned(),
            partition_columns: Vec::new(),
            configuration: configuration.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            created_time: None,
        }
    }

    fn legacy(reader: i32, writer: i32) -> Protocol {
        Protocol { min_reader_version: reader, min_writer_version: writer, reader_features: None, writer_features: None }
    }

    fn set(features: &[&str]) -> BTreeSet<String> {
        features.iter().map(|feature| (*feature).to_owned()).collect()
    }

    const PLAIN: &str =
        r#"{"type":"struct","fields":[{"name":"timestamp_ntz","type":"long","nullable":true,"metadata":{"comment":"timestamp_ntz"}}]}"#;
    const NESTED: &str = r#"{"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"t","type":"timestamp_ntz","nullable":false,"metadata":{}}]},"containsNull":true},"nullable":true,"metadata":{"CURRENT_DEFAULT":"NULL"}}]}"#;

    #[test]
    fn a_feature_is_needed_where_its_type_is_used_at_any_depth() {
        assert_eq!(needed(&metadata(PLAIN, &[]), false), set(&[]));
        assert_eq!(needed(&metadata(NESTED, &[]), false), set(&[ALLOW_COLUMN_DEFAULTS, INVARIANTS, TIMESTAMP_NTZ]));
        assert_eq!(
            needed(&metadata(PLAIN, &[("delta.constraints.c", "a > 0")]), true),
            set(&[CHECK_CONSTRAINTS, CLUSTERING, DOMAIN_METADATA])
        );
    }

    #[test]
    fn a_legacy_protocol_grows_by_spelling_out_what_it_implied() {
        let grown = grown(&legacy(1, 2), &set(&[TIMESTAMP_NTZ])).unwrap();
        assert_eq!((grown.min_reader_version, grown.min_writer_version), (3, 7));
        assert_eq!(grown.reader_features.unwrap(), [TIMESTAMP_NTZ]);
        assert_eq!(grown.writer_features.unwrap(), [APPEND_ONLY, INVARIANTS, TIMESTAMP_NTZ]);
    }

    #[test]
    fn a_protocol_that_has_the_features_does_not_grow() {
        assert_eq!(grown(&legacy(1, 4), &set(&[CHANGE_DATA_FEED])), None);
    }

    #[test]
    fn readers_of_version_one_may_read_what_concerns_writers_only() {
        let protocol = with_features(&set(&[CHANGE_DATA_FEED, CLUSTERING, DOMAIN_METADATA]));
        assert_eq!((protocol.min_reader_version, protocol.reader_features), (1, None));
    }

    #[test]
    fn what_is_not_known_is_named() {
        let mut protocol = with_features(&set(&["changeDataFeed", "quantumRows"]));
        assert_eq!(unreadable(&protocol, &metadata(PLAIN, &[])), None);
        assert_eq!(unwritable(&protocol, &metadata(PLAIN, &[])).unwrap(), "the table feature `quantumRows`");
        protocol.reader_features = Some(vec!["quantumRows".to_owned()]);
        assert_eq!(unreadable(&protocol, &metadata(PLAIN, &[])).unwrap(), "the table feature `quantumRows`");
        assert_eq!(unreadable(&legacy(4, 7), &metadata(PLAIN, &[])).unwrap(), "reader version 4");
        assert_eq!(unreadable(&legacy(2, 5), &metadata(PLAIN, &[("delta.columnMapping.mode", "name")])).unwrap(), "column mapping by name");
        assert_eq!(unreadable(&legacy(2, 5), &metadata(PLAIN, &[("delta.columnMapping.mode", "none")])), None);
    }

    #[test]
    fn an_identity_column_is_refused_by_name() {
        let schema = r#"{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{"delta.identity.start":1,"delta.identity.step":1}}]}"#;
        assert_eq!(unwritable(&legacy(1, 6), &metadata(schema, &[])).unwrap(), "identity columns (column `id`)");
        assert_eq!(unwritable(&legacy(1, 6), &metadata(PLAIN, &[])), None);
    }
}
