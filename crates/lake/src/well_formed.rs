//! Whether the plan of a commit contradicts itself or the snapshot it was made on. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::create::{self, CHANGE_FEED_ON, COMMIT_TIMESTAMPS_ON};
use crate::state::State;
use crate::{ChangeRows, Commit, DataFile, Operation, Reads};

/// The first contradiction.
pub(crate) fn check(commit: &Commit, state: &State, live: Option<&[DataFile]>, changes_hold_inserts: bool) -> Result<(), String> {
    check_emptiness(commit, state)?;
    check_properties(commit, state)?;
    check_positions(commit, state)?;
    check_files(commit, state, live)?;
    check_domains(commit)?;
    if changes_hold_inserts {
        check_changes(commit, state)?;
    }
    Ok(())
}

fn check_emptiness(commit: &Commit, state: &State) -> Result<(), String> {
    let Commit { adds, removes, again, marks, changes, progress, schema, domains, .. } = commit;
    if matches!(commit.operation, Operation::VacuumStart | Operation::VacuumEnd) {
        return Ok(());
    }
    let empty = adds.is_empty()
        && again.is_empty()
        && removes.is_empty()
        && marks.is_empty()
        && changes.is_empty()
        && progress.is_empty()
        && schema.is_none()
        && domains.is_empty()
        && new_properties(commit, state).next().is_none();
    if empty { Err("it does nothing".to_owned()) } else { Ok(()) }
}

/// The properties that the table does not have so already.
fn new_properties<'a>(commit: &'a Commit, state: &'a State) -> impl Iterator<Item = (&'a String, &'a String)> {
    commit.properties.iter().filter(|(name, value)| state.metadata.configuration.get(*name) != Some(value))
}

fn check_properties(commit: &Commit, state: &State) -> Result<(), String> {
    for (name, value) in new_properties(commit, state) {
        create::check_property(name, value)?;
        if name == COMMIT_TIMESTAMPS_ON && !state.is_on(name) {
            return Err(format!("property `{name}` is turned on, which only bringing the table up to date does"));
        }
    }
    Ok(())
}

fn check_positions(commit: &Commit, state: &State) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for progress in &commit.progress {
        if !seen.insert(&progress.app_id) {
            return Err(format!("the position `{}` is given twice", progress.app_id));
        }
        if commit.operation != Operation::Restore
            && !commit.rewinds
            && progress.expected.is_some_and(|expected| progress.version < expected)
        {
            return Err(format!("the position `{}` goes backwards", progress.app_id));
        }
    }
    if !commit.progress.is_empty() && state.metadata.configuration.contains_key(crate::state::RETENTION_OF_POSITIONS) {
        return Err(format!("the table has `{}`, so it would forget the positions", crate::state::RETENTION_OF_POSITIONS));
    }
    Ok(())
}

fn check_files(commit: &Commit, state: &State, live: Option<&[DataFile]>) -> Result<(), String> {
    let touches = !commit.removes.is_empty() || !commit.marks.is_empty();
    if commit.reads == Reads::BlindAppend && touches {
        return Err("a blind append removes files or rows".to_owned());
    }
    if !commit.again.is_empty() && commit.operation != Operation::Restore {
        return Err("files become live again, and it is no restore".to_owned());
    }
    if commit.layout.is_some() && !commit.replaces {
        return Err("the table is to lie otherwise, and its rows stay".to_owned());
    }
    if commit.operation == Operation::Optimize {
        let removed: Option<u64> = commit.removes.iter().map(DataFile::live_rows).sum();
        let added: u64 = commit.adds.iter().map(|file| file.rows).sum();
        let reads_files = matches!(commit.reads, Reads::Files | Reads::WholeTable);
        if !commit.changes.is_empty() || !commit.marks.is_empty() || !reads_files || removed.is_some_and(|removed| removed != added) {
            return Err("an optimize changes rows".to_owned());
        }
    }
    if commit.operation != Operation::Optimize && touches && state.is_on("delta.appendOnly") {
        return Err("the table is append-only, and files or rows are removed".to_owned());
    }
    if !commit.marks.is_empty() && !state.marks_rows() {
        return Err("rows are marked as deleted, and the table has no deletion vectors".to_owned());
    }
    let partition_by = commit.layout.as_ref().map_or(&state.metadata.partition_columns, |lies| &lies.partition_by);
    let columns: BTreeSet<&String> = partition_by.iter().collect();
    let mut paths = BTreeSet::new();
    let partitions = commit
        .adds
        .iter()
        .map(|file| (&file.path, &file.partition_values))
        .chain(commit.changes.iter().map(|file| (&file.path, &file.partition_values)));
    for (path, values) in partitions {
        if values.keys().collect::<BTreeSet<_>>() != columns {
            return Err(format!("file {path} has values of other columns than the table's partition columns"));
        }
        if !paths.insert(path) {
            return Err(format!("file {path} is given twice"));
        }
    }
    check_touched(commit, live)
}

/// A touched file that is not live would be removed by nobody, and its rows would be there twice.
pub(crate) fn check_touched(commit: &Commit, live: Option<&[DataFile]>) -> Result<(), String> {
    let Some(live) = live else { return Ok(()) };
    let live: BTreeMap<&str, &DataFile> = live.iter().map(|file| (file.log_path.as_str(), file)).collect();
    let mut seen = BTreeSet::new();
    for file in commit.removes.iter().chain(commit.marks.iter().map(|marks| &marks.file)) {
        match live.get(file.log_path.as_str()) {
            None => return Err(format!("file {} is removed or marked, but is not in the snapshot", file.path)),
            Some(current) if current.deletion_vector != file.deletion_vector => {
                return Err(format!("file {} has another deletion vector than the snapshot's", file.path));
            }
            Some(_) if !seen.insert(&file.log_path) => return Err(format!("file {} is removed or marked twice", file.path)),
            Some(_) => {}
        }
    }
    Ok(())
}

fn check_domains(commit: &Commit) -> Result<(), String> {
    if commit.operation == Operation::Restore {
        return Ok(());
    }
    match commit.domains.keys().find(|domain| domain.starts_with("delta.")) {
        Some(domain) => Err(format!("the domain `{domain}` is not ours to write")),
        None => Ok(()),
    }
}

/// Readers look at nothing but the change-feed files of a commit that has one: their rows must account for every row that
/// came and went.
fn check_changes(commit: &Commit, state: &State) -> Result<(), String> {
    if commit.changes.is_empty() {
        return Ok(());
    }
    if !state.is_on(CHANGE_FEED_ON) {
        return Err("it has change-feed files, and the table has no change feed".to_owned());
    }
    let removed: Option<u64> = commit.removes.iter().map(DataFile::live_rows).sum();
    let Some(removed) = removed else { return Ok(()) };
    let removed = removed + commit.marks.iter().map(|marks| marks.rows.len() as u64).sum::<u64>();
    let added: u64 = commit.adds.iter().map(|file| file.rows).sum();
    let mut total = ChangeRows::default();
    for file in &commit.changes {
        total.insert += file.rows.insert;
        total.update_preimage += file.rows.update_preimage;
        total.update_postimage += file.rows.update_postimage;
        total.delete += file.rows.delete;
    }
    if total.update_preimage != total.update_postimage {
        return Err(format!(
            "the change feed has {} rows before and {} rows after an update",
            total.update_preimage, total.update_postimage
        ));
    }
    // Rows carried over unchanged are in both files: added = carried + inserted + updated, removed = carried + deleted + updated.
    if i128::from(added) - i128::from(total.insert) != i128::from(removed) - i128::from(total.delete) {
        return Err(format!(
            "the change feed does not account for every row: {added} added and {removed} removed, {} inserted and {} deleted in the feed",
            total.insert, total.delete
        ));
    }
    Ok(())
}
