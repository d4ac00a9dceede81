//! What one version of a table is, apart from its files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use delta_kernel::SnapshotRef;
use serde_json::Value;
use tributary_specs::{Check, Column, TableName};

use crate::action::{Metadata, Protocol};
use crate::log::Opened;
use crate::{Error, Result, delta_schema, protocol};

/// The domain that holds clustering columns.
pub(crate) const CLUSTERING_DOMAIN: &str = "delta.clustering";

/// With this property positions would be forgotten, and what they stand for read twice.
pub(crate) const RETENTION_OF_POSITIONS: &str = "delta.setTransactionRetentionDuration";

/// What one version of a table is, apart from its files.
#[derive(Debug)]
pub(crate) struct State {
    pub version: u64,
    /// None of a draft, whose log was not read.
    pub kernel: Option<SnapshotRef>,
    pub protocol: Protocol,
    pub metadata: Metadata,
    pub progress: BTreeMap<String, i64>,
    pub domains: BTreeMap<String, String>,
    pub columns: Vec<Column>,
    pub schema: SchemaRef,
    pub checks: Vec<Check>,
    pub properties: BTreeMap<String, String>,
    pub cluster_columns: Vec<String>,
}

impl State {
    /// # Errors
    /// [`Error::Unsupported`] when the table needs something we do not know, by name.
    pub(crate) fn new(table: &TableName, opened: Opened) -> Result<Self> {
        let Opened { version, kernel, protocol, metadata, progress, domains } = opened;
        let unsupported = |what| Error::Unsupported { table: table.clone(), what };
        if let Some(what) = protocol::unreadable(&protocol, &metadata) {
            return Err(unsupported(what));
        }
        let (columns, schema) = delta_schema::parse(&metadata.schema_string).map_err(unsupported)?;
        let (constraints, properties): (Vec<_>, Vec<_>) =
            metadata.configuration.clone().into_iter().partition(|(name, _)| name.starts_with(protocol::CONSTRAINT));
        let checks =
            constraints.into_iter().map(|(name, expression)| Check { name: name[protocol::CONSTRAINT.len()..].to_owned(), expression });
        Ok(Self {
            version,
            checks: checks.collect(),
            properties: properties.into_iter().collect(),
            cluster_columns: domains.get(CLUSTERING_DOMAIN).map(|text| cluster_columns(text)).unwrap_or_default(),
            schema: Arc::new(schema),
            kernel,
            protocol,
            metadata,
            progress,
            domains,
            columns,
        })
    }

    /// # Errors
    /// [`Error::Unsupported`] when writing needs something we do not know, by name.
    pub(crate) fn ensure_writable(&self, table: &TableName) -> Result<()> {
        match protocol::unwritable(&self.protocol, &self.metadata) {
            Some(what) => Err(Error::Unsupported { table: table.clone(), what }),
            None => Ok(()),
        }
    }

    pub(crate) fn features(&self) -> BTreeSet<String> {
        protocol::features(&self.protocol)
    }

    pub(crate) fn is_on(&self, property: &str) -> bool {
        self.metadata.configuration.get(property).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether rows may be marked as deleted instead of being left out of a new file.
    pub(crate) fn marks_rows(&self) -> bool {
        self.is_on(protocol::DELETION_VECTORS_ON) && self.features().contains(protocol::DELETION_VECTORS)
    }

    /// The version of the newest checkpoint this snapshot was read from.
    pub(crate) fn checkpoint_version(&self) -> Option<u64> {
        self.kernel.as_ref()?.log_segment().checkpoint_version
    }
}

/// `{"clusteringColumns":[["a"],["b","c"]]}` as `a`, `b.c`.
fn cluster_columns(configuration: &str) -> Vec<String> {
    let configuration: Value = serde_json::from_str(configuration).unwrap_or_default();
    let paths = configuration["clusteringColumns"].as_array().into_iter().flatten();
    paths.map(|path| path.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(".")).collect()
}

/// The configuration of the clustering domain.
pub(crate) fn clustering_configuration(columns: &[String]) -> String {
    let paths: Vec<_> = columns.iter().map(|column| [column]).collect();
    serde_json::json!({ "clusteringColumns": paths, "domainName": CLUSTERING_DOMAIN }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clustering_columns_survive_their_domain() {
        let columns = vec!["day".to_owned(), "customer".to_owned()];
        assert_eq!(cluster_columns(&clustering_configuration(&columns)), columns);
        assert_eq!(cluster_columns(r#"{"clusteringColumns":[["a","b"]]}"#), ["a.b"]);
        assert_eq!(cluster_columns("no json"), Vec::<String>::new());
    }
}
