//! The commits of a table, as its log tells them.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde_json::Value;

use crate::action::{Action, CommitInfo};
use crate::log::Log;
use crate::{CommitEntry, Result};

/// Commits from `version` back, newest first, as far as the log goes.
pub(crate) async fn read(log: &Log, version: u64, limit: Option<usize>) -> Result<Vec<CommitEntry>> {
    let mut entries = Vec::new();
    for version in (0..=version).rev().take(limit.unwrap_or(usize::MAX)) {
        let Some(actions) = log.actions(version).await? else { break };
        let mut entry = entry(version, &actions);
        if let Some(millis) = in_commit_timestamp(&actions) {
            entry.timestamp = DateTime::from_timestamp_millis(millis).unwrap_or_default();
        } else {
            entry.timestamp = log.modified(version).await?;
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn info(actions: &[Action]) -> Option<&CommitInfo> {
    actions.iter().find_map(|action| if let Action::CommitInfo(info) = action { Some(info.as_ref()) } else { None })
}

/// When a commit was made, by its own word; none when it does not say.
pub(crate) fn in_commit_timestamp(actions: &[Action]) -> Option<i64> {
    info(actions).and_then(|info| info.in_commit_timestamp)
}

/// What its writer calls a commit.
pub(crate) fn operation(actions: &[Action]) -> Option<String> {
    info(actions).and_then(|info| info.operation.clone())
}

fn entry(version: u64, actions: &[Action]) -> CommitEntry {
    let info = info(actions).cloned().unwrap_or_default();
    let count = |matches: fn(&Action) -> bool| actions.iter().filter(|action| matches(action)).count() as u64;
    CommitEntry {
        version,
        timestamp: DateTime::default(),
        operation: info.operation,
        parameters: texts(info.operation_parameters),
        metrics: texts(info.operation_metrics),
        engine: info.engine_info,
        txn_id: info.txn_id,
        user_metadata: info.user_metadata,
        progress: actions
            .iter()
            .filter_map(|action| if let Action::Txn(txn) = action { Some((txn.app_id.clone(), txn.version)) } else { None })
            .collect(),
        files_added: count(|action| matches!(action, Action::Add(_))),
        files_removed: count(|action| matches!(action, Action::Remove(_))),
    }
}

fn texts(values: Option<BTreeMap<String, Value>>) -> BTreeMap<String, String> {
    let text = |value: Value| if let Value::String(text) = value { text } else { value.to_string() };
    values.into_iter().flatten().map(|(name, value)| (name, text(value))).collect()
}
