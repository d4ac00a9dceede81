//! The lines of a commit file.
//!
//! Reading is strict: a line whose action we do not know might change what the table means, so it is an error that names it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file::DeletionVector;

/// One line of a commit file: an object with one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action {
    CommitInfo(Box<CommitInfo>),
    Protocol(Protocol),
    #[serde(rename = "metaData")]
    Metadata(Box<Metadata>),
    DomainMetadata(DomainMetadata),
    Txn(Txn),
    Remove(Box<Remove>),
    Add(Box<Add>),
    Cdc(Box<Cdc>),
}

/// Who wrote a commit and why. Fields of other writers that we do not use are passed over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommitInfo {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_commit_timestamp: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_parameters: Option<BTreeMap<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_metrics: Option<BTreeMap<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation_level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_blind_append: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_info: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txn_id: Option<String>,
}

/// What a reader and a writer must understand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Protocol {
    pub min_reader_version: i32,
    pub min_writer_version: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}

/// Schema, partitioning and properties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub format: Format,
    pub schema_string: String,
    pub partition_columns: Vec<String>,
    #[serde(default)]
    pub configuration: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
}

/// Of the data files; always Parquet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Format {
    pub provider: String,
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DomainMetadata {
    pub domain: String,
    pub configuration: String,
    pub removed: bool,
}

/// A position. Ours carry no `lastUpdated`, so they never expire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Txn {
    pub app_id: String,
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}

/// A data file becomes live, or is seen anew with other metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Add {
    pub path: String,
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
    pub size: u64,
    pub modification_time: i64,
    pub data_change: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, Option<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering_provider: Option<String>,
}

/// A data file stops being live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Remove {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<i64>,
    pub data_change: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<BTreeMap<String, Option<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
}

/// A change-feed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cdc {
    pub path: String,
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
    pub size: u64,
    pub data_change: bool,
}

/// The actions of a commit file.
///
/// # Errors
/// What is wrong with the first line that cannot be read: an action we do not know is named.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Action>, String> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace));
    lines.map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Result<Action, String> {
    serde_json::from_slice(line).map_err(|error| {
        let known = ["commitInfo", "protocol", "metaData", "domainMetadata", "txn", "remove", "add", "cdc"];
        let keys: Vec<String> =
            serde_json::from_slice::<BTreeMap<String, Value>>(line).map(|line| line.into_keys().collect()).unwrap_or_default();
        match keys.iter().find(|key| !known.contains(&key.as_str())) {
            Some(key) => format!("the action `{key}` is not known"),
            None => format!("a line is no action: {error}"),
        }
    })
}

/// A commit file of these actions.
pub(crate) fn to_lines(actions: &[Action]) -> Result<Vec<u8>, serde_json::Error> {
    let mut lines = Vec::new();
    for action in actions {
        serde_json::to_writer(&mut lines, action)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// A path as the log spells it: percent-encoded once.
pub(crate) fn encode_path(path: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/=-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// A path of the log as the object store names it. What is no percent code stays as it is.
pub(crate) fn decode_path(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| path.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok())).flatten();
        decoded.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_action_is_named() {
        let error = parse(b"{\"txn\":{\"appId\":\"a\",\"version\":1}}\n{\"teleport\":{\"x\":1}}\n").unwrap_err();
        assert_eq!(error, "the action `teleport` is not known");
    }

    #[test]
    fn a_known_action_with_a_field_missing_is_no_unknown_action() {
        let error = parse(b"{\"txn\":{\"appId\":\"a\"}}").unwrap_err();
        assert!(error.contains("version"), "{error}");
    }

    #[test]
    fn fields_of_other_writers_are_passed_over() {
        let actions = parse(b"{\"commitInfo\":{\"timestamp\":1,\"clusterId\":\"x\"}}\n\n{\"add\":{\"path\":\"p\",\"size\":1,\"modificationTime\":2,\"dataChange\":true,\"partitionValues\":{\"a\":null},\"novel\":1}}").unwrap();
        assert_eq!(actions.len(), 2);
    }

    #[test]
    fn a_path_is_encoded_once_and_comes_back() {
        for path in ["a b", "50%", "50%25", "é", "x:y", "q?", "r&d", "#1", "site=north%20hall/part-1.parquet", "+"] {
            let encoded = encode_path(path);
            assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/=-._~%".contains(&byte)), "{encoded}");
            assert_eq!(decode_path(&encoded), path);
        }
        assert_eq!(encode_path("a b/c=d"), "a%20b/c=d");
        assert_eq!(decode_path("100%/%zz"), "100%/%zz");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let actions = vec![
            Action::Txn(Txn { app_id: "a".to_owned(), version: 7, last_updated: None }),
            Action::DomainMetadata(DomainMetadata { domain: "d".to_owned(), configuration: "{}".to_owned(), removed: false }),
        ];
        let lines = to_lines(&actions).unwrap();
        assert_eq!(std::str::from_utf8(&lines).unwrap().lines().next().unwrap(), "{\"txn\":{\"appId\":\"a\",\"version\":7}}");
        assert_eq!(parse(&lines).unwrap(), actions);
    }
}
