//! The one path by which a table changes.
//!
//! ```text
//! well formed? ── fenced? ── put version n+1 if absent ──ok──▶ committed ── checkpoint when due
//!                                  ▲          │ taken, or no answer
//!                                  │          ▼
//!                          can go on top ◀─ read the commits after ours, oldest first ──▶ one is ours: committed
//!                                                     │ one breaks the plan
//!                                                     ▼
//!                                             fenced or conflicted
//! ```
//!
//! After any failed put the log is read before anything else, whatever the store said (exists, precondition failed, a rival
//! write in flight, nothing at all): the commit may be there though no answer came, and it is known by its own `txnId`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use crate::action::{self, Action, Add, Cdc, CommitInfo, DomainMetadata, Metadata, Protocol, Remove, Txn};
use crate::conflict::{Lost, Plan, Winner, fenced, may_hold};
use crate::create::{self, COMMIT_TIMESTAMPS_ON};
use crate::log::Log;
use crate::marks::{self, Marked};
use crate::state::{CLUSTERING_DOMAIN, State, clustering_configuration};
use crate::{
    Commit, CommitOutcome, Conflict, Curve, DataFile, DeletionVector, Error, LakeOptions, Operation, Reads, Result, Table, TableLayout,
    controls, deletion_vector, delta_schema, error, protocol, stats_read, well_formed,
};

/// Who we are in the history.
pub(crate) const ENGINE: &str = concat!("tributary/", env!("CARGO_PKG_VERSION"));

/// The parameter of a commit that takes all rows away that were there.
const FULL_REFRESH: &str = "tributary.fullRefresh";

/// What the history calls a commit before files are deleted.
pub(crate) const VACUUM_START: &str = "VACUUM START";

/// How often a put is sent that gets no answer while the log says it did not land, and how often the log is asked.
const TRIES_WITHOUT_ANSWER: u32 = 5;

/// Commits on top of `table`, or says why not.
pub(crate) async fn commit(table: &Table, commit: Commit) -> Result<CommitOutcome> {
    let (state, options) = (table.state(), table.lake().options());
    state.ensure_writable(table.name())?;
    let live = if commit.removes.is_empty() && commit.marks.is_empty() { None } else { Some(table.live_files().await?) };
    let complete_feed = !controls::inserts_left_out_of_change_feed(options);
    well_formed::check(&commit, state, live, complete_feed).map_err(|reason| Error::Malformed { table: table.name().clone(), reason })?;
    let rewrites_all = commit.reads == Reads::WholeTable && table.live_files().await?.len() == commit.removes.len();
    let metadata = changed_metadata(table, &commit, rewrites_all)?;
    if !controls::fencing_off(options)
        && let Some((app_id, expected, found)) = fenced(&commit, &state.progress)
    {
        return Ok(CommitOutcome::Fenced { app_id, expected, found });
    }
    if controls::positions_outside_commit(options) && !commit.progress.is_empty() {
        return rows_then_positions(table, commit, metadata).await;
    }
    attempt(table, &commit, metadata).await
}

/// Commits what brings an earlier version back, metadata and all.
pub(crate) async fn restore(table: &Table, commit: Commit, metadata: Option<(Metadata, Option<Protocol>)>) -> Result<CommitOutcome> {
    let state = table.state();
    state.ensure_writable(table.name())?;
    let malformed = |reason| Error::Malformed { table: table.name().clone(), reason };
    if metadata.is_none() {
        well_formed::check(&commit, state, Some(table.live_files().await?), true).map_err(malformed)?;
    } else {
        // Metadata alone is a change too.
        well_formed::check_touched(&commit, Some(table.live_files().await?)).map_err(malformed)?;
    }
    if let Some((app_id, expected, found)) = fenced(&commit, &state.progress) {
        return Ok(CommitOutcome::Fenced { app_id, expected, found });
    }
    attempt(table, &commit, metadata).await
}

/// The control: what a commit would be if positions were not part of it.
async fn rows_then_positions(table: &Table, mut commit: Commit, metadata: Option<(Metadata, Option<Protocol>)>) -> Result<CommitOutcome> {
    let progress = std::mem::take(&mut commit.progress);
    match attempt(table, &commit, metadata).await? {
        CommitOutcome::Committed { .. } => attempt(table, &Commit { progress, ..Commit::default() }, None).await,
        lost => Ok(lost),
    }
}

/// Commits new metadata and nothing else, as exactly the next version and at exactly `timestamp`: metadata that turns commit
/// timestamps on names both.
pub(crate) async fn commit_metadata(
    table: &Table,
    metadata: Metadata,
    protocol: Option<Protocol>,
    timestamp: i64,
) -> Result<CommitOutcome> {
    let commit = Commit { operation: Operation::Alter, ..Commit::default() };
    let mut race = Race::new(table, &commit, &[], Some((metadata, protocol))).await?;
    race.only_at = Some(timestamp);
    table.lake().drafts().remove(table.name());
    race.run().await
}

async fn attempt(table: &Table, commit: &Commit, metadata: Option<(Metadata, Option<Protocol>)>) -> Result<CommitOutcome> {
    let marked = marks::write(table, &commit.marks).await?;
    table.lake().drafts().remove(table.name());
    let outcome = Race::new(table, commit, &marked, metadata).await?.run().await?;
    if let CommitOutcome::Committed { version } = outcome {
        tracing::debug!(table = %table.name(), version, operation = name_of(commit), "committed");
        crate::checkpoint::write_when_due(table, version).await;
    }
    Ok(outcome)
}

/// One commit on its way into the log.
struct Race<'a> {
    table: &'a Table,
    log: &'a Log,
    state: &'a State,
    options: &'a LakeOptions,
    commit: &'a Commit,
    /// Every action but the commit information.
    body: Vec<Action>,
    txn_id: Uuid,
    /// The version that is tried next.
    next: u64,
    /// Milliseconds; of the commit before `next`, where commits carry a timestamp.
    last_timestamp: Option<i64>,
    /// Whether the commit itself carries its timestamp.
    has_timestamp: bool,
    /// It may be only the next version, with this timestamp.
    only_at: Option<i64>,
    /// A winner has moved rows on which the plan rests.
    moved: bool,
}

impl<'a> Race<'a> {
    async fn new(table: &'a Table, commit: &'a Commit, marked: &[Marked], metadata: Option<(Metadata, Option<Protocol>)>) -> Result<Self> {
        let (log, state) = (table.log(), table.state());
        let turned_on =
            metadata.as_ref().is_some_and(|(metadata, _)| metadata.configuration.get(COMMIT_TIMESTAMPS_ON).is_some_and(|on| on == "true"));
        Ok(Self {
            table,
            log,
            state,
            options: table.lake().options(),
            commit,
            body: body(table, commit, marked, metadata),
            txn_id: table.lake().new_id(),
            next: table.version() + 1,
            last_timestamp: last_timestamp(log, state).await?,
            has_timestamp: turned_on || state.is_on(COMMIT_TIMESTAMPS_ON),
            only_at: None,
            moved: false,
        })
    }

    async fn run(&mut self) -> Result<CommitOutcome> {
        let mut without_answer = 0;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let Err(error) = self.log.put(self.next, self.lines()?).await else {
                return Ok(CommitOutcome::Committed { version: self.next });
            };
            let tried = self.next;
            tracing::debug!(table = %self.log.table, version = tried, %error, "the version is taken, or no answer came");
            match self.catch_up().await? {
                Some(outcome) => return Ok(outcome),
                None if self.next > tried && self.only_at.is_some() => {
                    return Ok(CommitOutcome::Conflicted(Conflict::Attempts { attempts }));
                }
                None if self.next > tried => without_answer = 0,
                None if error::is_denied(&error) => return Err(self.store_error(error)),
                None => without_answer += 1,
            }
            if without_answer >= TRIES_WITHOUT_ANSWER {
                return Err(Error::Unknown { table: self.log.table.clone(), version: tried, source: Box::new(error) });
            }
            if attempts >= self.options.attempts_max {
                return Ok(CommitOutcome::Conflicted(Conflict::Attempts { attempts }));
            }
            pause(without_answer).await;
        }
    }

    /// Reads every commit from `next` on: an outcome when one of them is ours or breaks the plan, else `next` is the first version
    /// that is not there.
    async fn catch_up(&mut self) -> Result<Option<CommitOutcome>> {
        while let Some(bytes) = self.probe().await? {
            let version = self.next;
            if self.is_ours(&bytes) {
                return Ok(Some(CommitOutcome::Committed { version }));
            }
            let winner = self.log.parse(version, &bytes)?;
            if let Some(outcome) = self.lost_to(version, &winner).await? {
                return Ok(Some(outcome));
            }
            self.last_timestamp = timestamp_of(&winner).max(self.last_timestamp);
            self.next += 1;
        }
        Ok(None)
    }

    async fn lost_to(&mut self, version: u64, winner: &[Action]) -> Result<Option<CommitOutcome>> {
        if let Some(what) = winner
            .iter()
            .find_map(|action| if let Action::Protocol(protocol) = action { protocol::unreadable_protocol(protocol) } else { None })
        {
            return Err(Error::Unsupported { table: self.log.table.clone(), what: format!("{what} (since version {version})") });
        }
        let plan = Plan::of(self.commit);
        self.moved |= plan.rests_on_what_moves(winner);
        let only_lose = self.only_lose(winner).await?;
        let stats_of = |add: &Add| self.stats_of(add);
        Ok(match plan.after(&Winner { version, actions: winner, stats_of, only_lose, moved: self.moved }) {
            None => None,
            Some(Lost::Fenced { .. }) if controls::fencing_off(self.options) => None,
            Some(Lost::Conflict(_)) if controls::no_replan_after_conflict(self.options) => None,
            Some(Lost::Conflict(conflict)) => Some(CommitOutcome::Conflicted(conflict)),
            Some(Lost::Fenced { app_id, found }) => {
                let expected =
                    self.commit.progress.iter().find(|progress| progress.app_id == app_id).and_then(|progress| progress.expected);
                Some(CommitOutcome::Fenced { app_id, expected, found: Some(found) })
            }
        })
    }

    fn stats_of(&self, add: &Add) -> crate::FileStats {
        stats_read::of_file(add.stats.as_deref(), &add.partition_values, &self.state.schema, &self.log.table)
    }

    /// The files that the winner added again with every row marked that is marked in the snapshot, where that can matter: they hold no
    /// row that the snapshot does not have.
    async fn only_lose<'w>(&self, winner: &'w [Action]) -> Result<BTreeSet<&'w str>> {
        let mut only_lose = BTreeSet::new();
        let Reads::Keys(ranges) = &self.commit.reads else { return Ok(only_lose) };
        let again = winner.iter().filter_map(|action| match action {
            Action::Add(add) if add.data_change && add.deletion_vector.is_some() && may_hold(ranges, &self.stats_of(add)) => Some(add),
            _ => None,
        });
        for add in again {
            let live = self.table.live_files().await?;
            let (Some(file), Some(now)) = (live.iter().find(|file| file.log_path == add.path), &add.deletion_vector) else { continue };
            let loses = match &file.deletion_vector {
                None => true,
                Some(before) if before == now => true,
                Some(before) => deletion_vector::rows(self.log, before).await?.is_subset(&deletion_vector::rows(self.log, now).await?),
            };
            if loses {
                only_lose.insert(add.path.as_str());
            }
        }
        Ok(only_lose)
    }

    /// The commit of version `next`, or none. Asked several times: while it cannot be read, nobody knows whether it is ours.
    async fn probe(&self) -> Result<Option<Bytes>> {
        let mut tries = 0;
        loop {
            match self.log.read(self.next).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) if tries + 1 < TRIES_WITHOUT_ANSWER && !error::is_denied(&error) => tries += 1,
                Err(source) => return Err(Error::Unknown { table: self.log.table.clone(), version: self.next, source: Box::new(source) }),
            }
            pause(tries).await;
        }
    }

    fn is_ours(&self, bytes: &[u8]) -> bool {
        let id = self.txn_id.to_string();
        // The commit information is the first line of ours; a commit of others may be one that we cannot read.
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        matches!(serde_json::from_slice(first), Ok(Action::CommitInfo(info)) if info.txn_id.as_ref() == Some(&id))
    }

    fn store_error(&self, error: object_store::Error) -> Error {
        Error::store(format!("committing version {} of {}", self.next, self.log.table), error)
    }

    fn lines(&self) -> Result<Vec<u8>> {
        let now = self.options.clock.now().timestamp_millis();
        let growing = self.last_timestamp.map_or(now, |last| now.max(last + 1));
        let timestamp = self.only_at.unwrap_or(growing);
        let mut info = commit_info(self.commit, self.state, self.txn_id, timestamp);
        info.in_commit_timestamp = self.has_timestamp.then_some(timestamp);
        let actions: Vec<Action> = std::iter::once(Action::CommitInfo(Box::new(info))).chain(self.body.iter().cloned()).collect();
        action::to_lines(&actions).map_err(|error| Error::Malformed { table: self.log.table.clone(), reason: error.to_string() })
    }
}

async fn pause(tries: u32) {
    if tries > 0 {
        tokio::time::sleep(Duration::from_millis(10 << tries.min(6))).await;
    }
}

/// The timestamp in the commit that `state` ends with; none where commits carry none, or where its file is gone.
async fn last_timestamp(log: &Log, state: &State) -> Result<Option<i64>> {
    if !state.is_on(COMMIT_TIMESTAMPS_ON) {
        return Ok(None);
    }
    let bytes = log
        .read(state.version)
        .await
        .map_err(|error| Error::store(format!("reading version {} of {}", state.version, log.table), error))?;
    let actions = bytes.map(|bytes| log.parse(state.version, &bytes)).transpose()?;
    Ok(actions.and_then(|actions| timestamp_of(&actions)))
}

fn timestamp_of(actions: &[Action]) -> Option<i64> {
    actions.iter().find_map(|action| if let Action::CommitInfo(info) = action { info.in_commit_timestamp } else { None })
}

/// Metadata and protocol of a commit that adds columns, or writes a domain on a table without the feature.
fn changed_metadata(table: &Table, commit: &Commit, rewrites_all: bool) -> Result<Option<(Metadata, Option<Protocol>)>> {
    let state = table.state();
    let refused = |reason| Error::SchemaChange { table: table.name().clone(), reason };
    let wanted = commit.schema.as_ref().unwrap_or(&state.columns);
    let mut metadata = state.metadata.clone();
    let schema = if commit.replaces && rewrites_all && delta_schema::added(&state.columns, wanted, true).is_err() {
        let kept = table.bound_columns(&commit.layout.as_ref().map_or_else(|| table.lies(), |_| TableLayout::default()));
        delta_schema::replaced(&state.columns, wanted, &kept).map_err(refused)?;
        Some(delta_schema::schema_string(wanted))
    } else {
        delta_schema::added(&state.columns, wanted, rewrites_all).map_err(refused)?;
        delta_schema::schema_string_with(&metadata.schema_string, wanted).map_err(refused)?
    };
    metadata.schema_string = schema.unwrap_or(metadata.schema_string);
    metadata.configuration.extend(commit.properties.clone());
    if let Some(lies) = &commit.layout {
        if !rewrites_all {
            return Err(refused("it is to lie otherwise, and some of its rows stay".to_owned()));
        }
        create::check_layout(table.name(), wanted, lies).map_err(refused)?;
        metadata.partition_columns.clone_from(&lies.partition_by);
    }
    let clustered = commit.layout.as_ref().is_some_and(|lies| !lies.cluster_by.is_empty());
    let changed = metadata != state.metadata;
    let mut needed = if changed || clustered { protocol::needed(&metadata, clustered) } else { Default::default() };
    if !commit.domains.is_empty() {
        needed.extend(protocol::needed_by_domains());
    }
    let grown = protocol::grown(&state.protocol, &needed);
    Ok((changed || grown.is_some()).then_some((metadata, grown)))
}

fn body(table: &Table, commit: &Commit, marked: &[Marked], metadata: Option<(Metadata, Option<Protocol>)>) -> Vec<Action> {
    let data_change = commit.operation != Operation::Optimize;
    let now = table.lake().clock().now().timestamp_millis();
    let mut body = Vec::new();
    if let Some((metadata, protocol)) = metadata {
        body.extend(protocol.map(Action::Protocol));
        body.push(Action::Metadata(Box::new(metadata)));
    }
    body.extend(commit.layout.as_ref().and_then(|lies| clustering(lies, table.cluster_columns())));
    body.extend(commit.domains.iter().map(|(domain, configuration)| {
        let removed = configuration.is_none();
        Action::DomainMetadata(DomainMetadata { domain: domain.clone(), configuration: configuration.clone().unwrap_or_default(), removed })
    }));
    body.extend(
        commit
            .progress
            .iter()
            .map(|progress| Action::Txn(Txn { app_id: progress.app_id.clone(), version: progress.version, last_updated: None })),
    );
    body.extend(commit.removes.iter().chain(marked.iter().map(|marked| &marked.file)).map(|file| removal(file, data_change, now)));
    body.extend(marked.iter().filter_map(|marked| Some(addition_again(&marked.file, marked.vector.clone()?))));
    body.extend(
        commit.again.iter().map(|file| addition(file, file.deletion_vector.clone(), file.said.stats.as_deref().map(str::to_owned))),
    );
    body.extend(commit.adds.iter().map(|file| {
        Action::Add(Box::new(Add {
            path: action::encode_path(&file.path),
            partition_values: file.partition_values.clone(),
            size: file.size,
            modification_time: now,
            data_change,
            stats: Some(file.stats.clone()),
            // What rows are new is not yet arranged, whoever wrote it.
            tags: file.arranged.tags().filter(|_| !data_change),
            deletion_vector: None,
            base_row_id: None,
            default_row_commit_version: None,
            clustering_provider: file.arranged.provider().filter(|_| !data_change),
        }))
    }));
    body.extend(commit.changes.iter().map(|file| {
        let path = action::encode_path(&file.path);
        Action::Cdc(Box::new(Cdc { path, partition_values: file.partition_values.clone(), size: file.size, data_change: false }))
    }));
    body
}

fn removal(file: &DataFile, data_change: bool, now: i64) -> Action {
    Action::Remove(Box::new(Remove {
        path: file.log_path.clone(),
        deletion_timestamp: Some(now),
        data_change,
        extended_file_metadata: Some(true),
        partition_values: Some(file.partition_values.clone()),
        size: Some(file.size),
        stats: None,
        deletion_vector: file.deletion_vector.clone(),
        base_row_id: file.row_tracking.and_then(|tracking| tracking.base_row_id),
        default_row_commit_version: file.row_tracking.and_then(|tracking| tracking.default_row_commit_version),
    }))
}

/// A file as it was added, with another deletion vector.
fn addition_again(file: &DataFile, vector: DeletionVector) -> Action {
    addition(file, Some(vector), file.said.stats.as_deref().map(marks::with_loose_bounds))
}

fn addition(file: &DataFile, deletion_vector: Option<DeletionVector>, stats: Option<String>) -> Action {
    Action::Add(Box::new(Add {
        path: file.log_path.clone(),
        partition_values: file.partition_values.clone(),
        size: file.size,
        modification_time: file.modified_ms,
        data_change: true,
        stats,
        tags: file.said.tags.clone(),
        deletion_vector,
        base_row_id: file.row_tracking.and_then(|tracking| tracking.base_row_id),
        default_row_commit_version: file.row_tracking.and_then(|tracking| tracking.default_row_commit_version),
        clustering_provider: file.said.clustering_provider.clone(),
    }))
}

fn commit_info(commit: &Commit, state: &State, txn_id: Uuid, timestamp: i64) -> CommitInfo {
    let text = |text: &str| Value::String(text.to_owned());
    let mut parameters = match commit.operation {
        Operation::Write => BTreeMap::from([("mode".to_owned(), text("Append"))]),
        Operation::Overwrite => {
            let mode = ("mode".to_owned(), text("Overwrite"));
            std::iter::once(mode).chain(commit.replaces.then(|| (FULL_REFRESH.to_owned(), text("true")))).collect()
        }
        Operation::Optimize => {
            let cube = commit.adds.iter().find_map(|file| file.arranged.cube.as_ref());
            let columns =
                |curve| text(&Value::from(cube.filter(|cube| cube.curve == curve).map_or(&[][..], |cube| &cube.columns)).to_string());
            BTreeMap::from([
                ("predicate".to_owned(), text("[]")),
                ("zOrderBy".to_owned(), columns(Curve::ZOrder)),
                ("clusterBy".to_owned(), columns(Curve::Hilbert)),
            ])
        }
        Operation::Merge
        | Operation::Update
        | Operation::Delete
        | Operation::Restore
        | Operation::Alter
        | Operation::VacuumStart
        | Operation::VacuumEnd
        | Operation::Fsck => BTreeMap::new(),
    };
    parameters.extend(commit.parameters.iter().map(|(name, value)| (name.clone(), text(value))));
    let metrics: BTreeMap<String, Value> = commit.metrics.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    CommitInfo {
        in_commit_timestamp: None,
        timestamp: Some(timestamp),
        operation: Some(name_of(commit).to_owned()),
        operation_parameters: Some(parameters),
        operation_metrics: (!metrics.is_empty()).then_some(metrics),
        read_version: i64::try_from(state.version).ok(),
        isolation_level: Some("Serializable".to_owned()),
        is_blind_append: Some(commit.reads == Reads::BlindAppend && commit.schema.is_none() && commit.properties.is_empty()),
        user_metadata: commit.user_metadata.clone(),
        engine_info: Some(ENGINE.to_owned()),
        txn_id: Some(txn_id.to_string()),
    }
}

/// The action that has a table clustered otherwise than it was, where it is.
fn clustering(lies: &TableLayout, was: &[String]) -> Option<Action> {
    let (removed, configuration) = (lies.cluster_by.is_empty(), clustering_configuration(&lies.cluster_by));
    (lies.cluster_by != was)
        .then(|| Action::DomainMetadata(DomainMetadata { domain: CLUSTERING_DOMAIN.to_owned(), configuration, removed }))
}

/// Whether a commit of ours that says this took all rows away that were there.
pub(crate) fn replaces_all(info: &CommitInfo) -> bool {
    info.operation_parameters.as_ref().is_some_and(|parameters| parameters.contains_key(FULL_REFRESH))
}

fn name_of(commit: &Commit) -> &'static str {
    match commit.operation {
        Operation::Write | Operation::Overwrite => "WRITE",
        Operation::Merge => "MERGE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Optimize => "OPTIMIZE",
        Operation::Restore => "RESTORE",
        Operation::Alter => "SET TBLPROPERTIES",
        Operation::VacuumStart => VACUUM_START,
        Operation::VacuumEnd => "VACUUM END",
        Operation::Fsck => "FSCK",
    }
}
