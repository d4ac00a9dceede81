//! The log of one table: opening a snapshot, reading and adding commit files.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, is_not_null, or};
use arrow::json::LineDelimitedWriter;
use bytes::Bytes;
use chrono::{DateTime, SubsecRound, Utc};
use delta_kernel::actions::get_all_actions_schema;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::{Engine, Snapshot, SnapshotRef};
use deltalake::logstore::{LogStoreRef, StorageConfig, default_logstore};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tributary_specs::TableName;
use url::Url;

use crate::action::{self, Action, Metadata, Protocol};
use crate::kept::Kept;
use crate::state::State;
use crate::{Error, Result, protocol};

/// The log of one table in the lake's store.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub table: TableName,
    /// Where the table is; ends with a slash.
    pub url: Url,
    /// Rooted where the scheme of `url` begins.
    pub store: Arc<dyn ObjectStore>,
    /// The table's root in `store`.
    pub root: Path,
    pub delta: LogStoreRef,
    /// What the lake keeps between batches.
    pub kept: Arc<Kept>,
}

/// What the log says at one version, files left out.
#[derive(Debug)]
pub(crate) struct Opened {
    pub version: u64,
    /// None of a draft, whose log was not read.
    pub kernel: Option<SnapshotRef>,
    pub protocol: Protocol,
    pub metadata: Metadata,
    /// Application id → version.
    pub progress: BTreeMap<String, i64>,
    /// Domain → configuration; removed ones are absent.
    pub domains: BTreeMap<String, String>,
}

impl Opened {
    pub(crate) fn follow(&mut self, action: &Action) {
        match action {
            Action::Protocol(protocol) => self.protocol = protocol.clone(),
            Action::Metadata(metadata) => self.metadata = metadata.as_ref().clone(),
            Action::Txn(txn) => _ = self.progress.insert(txn.app_id.clone(), txn.version),
            Action::DomainMetadata(domain) if domain.removed => _ = self.domains.remove(&domain.domain),
            Action::DomainMetadata(domain) => _ = self.domains.insert(domain.domain.clone(), domain.configuration.clone()),
            Action::CommitInfo(_) | Action::Add(_) | Action::Remove(_) | Action::Cdc(_) => {}
        }
    }
}

/// Commits that are read one by one; of more the log is read as a whole.
const COMMITS_MAX: u64 = 64;

/// Which versions of a table can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    /// The first whose commit file is there; none when every commit file is gone.
    pub earliest_commit: Option<u64>,
    /// The first whose snapshot can be built.
    pub earliest: u64,
    /// The last.
    pub latest: u64,
}

impl Log {
    pub(crate) fn new(table: TableName, url: Url, store: Arc<dyn ObjectStore>, kept: Arc<Kept>) -> Result<Self> {
        let root = Path::from_url_path(url.path()).map_err(|error| Error::Root { root: url.to_string(), reason: error.to_string() })?;
        let prefixed = Arc::new(PrefixStore::new(Arc::clone(&store), root.clone()));
        let delta = default_logstore(prefixed, Arc::clone(&store), &url, &StorageConfig::default());
        Ok(Self { table, url, store, root, delta, kept })
    }

    /// The snapshot of `version` or the latest; none when there is no table.
    pub(crate) async fn open(&self, version: Option<u64>) -> Result<Option<Opened>> {
        let (url, engine, table) = (self.url.clone(), self.delta.engine(None), self.table.clone());
        let opened = tokio::task::spawn_blocking(move || open(&table, url, engine.as_ref(), version)).await;
        match opened.map_err(|error| self.unreadable(error.to_string()))? {
            Err(error @ Error::Log { .. }) => Err(self.diagnosed(error).await),
            other => other,
        }
    }

    /// What the log says after the commits behind `base`, and those commits, oldest first; none where `base` does not lead to what is
    /// there, or by too many commits.
    pub(crate) async fn advanced(&self, base: &State) -> Option<(Opened, Vec<Vec<Action>>)> {
        let (engine, kernel) = (self.delta.engine(None), base.kernel.clone()?);
        let built = tokio::task::spawn_blocking(move || Snapshot::builder_from(kernel).build(engine.as_ref())).await;
        let kernel = built.ok()?.ok()?;
        if kernel.version() - base.version > COMMITS_MAX {
            return None;
        }
        let mut opened = Opened {
            protocol: base.protocol.clone(),
            metadata: base.metadata.clone(),
            progress: base.progress.clone(),
            domains: base.domains.clone(),
            version: kernel.version(),
            kernel: Some(kernel),
        };
        let mut commits = Vec::new();
        for version in base.version + 1..=opened.version {
            let actions = self.actions(version).await.ok()??;
            actions.iter().for_each(|action| opened.follow(action));
            commits.push(actions);
        }
        Some((opened, commits))
    }

    /// The kernel's view of a version; of a draft it is read now.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) async fn kernel(&self, state: &State) -> Result<SnapshotRef> {
        if let Some(kernel) = &state.kernel {
            return Ok(Arc::clone(kernel));
        }
        let opened = self.open(Some(state.version)).await?;
        opened.and_then(|opened| opened.kernel).ok_or_else(|| Error::NoTable { table: self.table.clone() })
    }

    /// A log that the kernel cannot read may need something that it does not know: then that is said, by name.
    async fn diagnosed(&self, error: Error) -> Error {
        let Ok(Versions { earliest_commit: Some(earliest), latest, .. }) = self.versions().await else { return error };
        let (mut found_protocol, mut found_metadata) = (None, None);
        for version in (earliest..=latest).rev() {
            let Ok(Some(bytes)) = self.read(version).await else { break };
            for line in bytes.split(|byte| *byte == b'\n') {
                match serde_json::from_slice(line) {
                    Ok(Action::Protocol(protocol)) => _ = found_protocol.get_or_insert(protocol),
                    Ok(Action::Metadata(metadata)) => _ = found_metadata.get_or_insert(*metadata),
                    _ => {}
                }
            }
        }
        let what = match (found_protocol, found_metadata) {
            (Some(protocol), Some(metadata)) => protocol::unreadable(&protocol, &metadata),
            (Some(protocol), None) => protocol::unreadable_protocol(&protocol),
            (None, _) => None,
        };
        what.map_or(error, |what| Error::Unsupported { table: self.table.clone(), what })
    }

    pub(crate) fn unreadable(&self, reason: String) -> Error {
        Error::Log { table: self.table.clone(), reason }
    }

    /// Where the commit file of a version is.
    pub(crate) fn path(&self, version: u64) -> Path {
        self.root.clone().join("_delta_log").join(format!("{version:020}.json"))
    }

    /// The bytes of a commit file, or none.
    pub(crate) async fn read(&self, version: u64) -> Result<Option<Bytes>, object_store::Error> {
        match self.store.get(&self.path(version)).await {
            Ok(result) => result.bytes().await.map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a commit file of this version.
    pub(crate) async fn is_there(&self, version: u64) -> Result<bool> {
        match self.store.head(&self.path(version)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(Error::store(format!("looking at version {version} of {}", self.table), error)),
        }
    }

    /// Adds a commit file unless one of that version is there.
    pub(crate) async fn put(&self, version: u64, lines: Vec<u8>) -> Result<(), object_store::Error> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.store.put_opts(&self.path(version), lines.into(), options).await.map(drop)
    }

    /// The actions of a commit file, or none when there is no such file.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an action that is not known, by name; store errors.
    pub(crate) async fn actions(&self, version: u64) -> Result<Option<Vec<Action>>> {
        let bytes =
            self.read(version).await.map_err(|error| Error::store(format!("reading version {version} of {}", self.table), error))?;
        bytes.map(|bytes| self.parse(version, &bytes)).transpose()
    }

    pub(crate) fn parse(&self, version: u64, bytes: &[u8]) -> Result<Vec<Action>> {
        action::parse(bytes).map_err(|reason| match reason.contains("is not known") {
            true => Error::Unsupported { table: self.table.clone(), what: format!("version {version}, where {reason}") },
            false => self.unreadable(format!("version {version}: {reason}")),
        })
    }

    /// When the commit file was written, by the store's clock, in the milliseconds of Delta's times.
    pub(crate) async fn modified(&self, version: u64) -> Result<DateTime<Utc>> {
        let head = self.store.head(&self.path(version)).await;
        head.map(|meta| meta.last_modified.trunc_subsecs(3))
            .map_err(|error| Error::store(format!("looking at version {version} of {}", self.table), error))
    }

    /// Which versions are there, by the names in the log.
    pub(crate) async fn versions(&self) -> Result<Versions> {
        let folder = self.root.clone().join("_delta_log");
        let listed: Vec<_> = self
            .store
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|error| Error::store(format!("listing the log of {}", self.table), error))?;
        let mut commits = Vec::new();
        let mut checkpoints = Vec::new();
        for meta in listed {
            let name = meta.location.filename().unwrap_or_default();
            let Some(version) = name.get(..20).and_then(|digits| digits.parse::<u64>().ok()) else { continue };
            match &name[20..] {
                ".json" => commits.push(version),
                rest if rest.starts_with(".checkpoint.") => checkpoints.push(version),
                _ => {}
            }
        }
        commits.sort_unstable();
        // Readable from the last gap on: each version follows from the one before, or from a checkpoint.
        let last = commits.last().copied().into_iter().chain(checkpoints.iter().copied()).max();
        let latest = last.ok_or_else(|| Error::NoTable { table: self.table.clone() })?;
        let mut earliest = latest;
        let has = |version: u64| commits.binary_search(&version).is_ok();
        while earliest > 0 && has(earliest) && has(earliest - 1) {
            earliest -= 1;
        }
        let run = has(latest).then_some(earliest);
        let built = match run {
            Some(0) => 0,
            _ => checkpoints.iter().copied().filter(|version| *version + 1 >= earliest).min().unwrap_or(latest),
        };
        Ok(Versions { earliest_commit: run, earliest: built, latest })
    }
}

/// Reads what the log says, in a thread that may block.
fn open(table: &TableName, url: Url, engine: &dyn Engine, version: Option<u64>) -> Result<Option<Opened>> {
    let failed = |error| kernel_error(table, error);
    let mut builder = Snapshot::builder_for(url);
    if let Some(version) = version {
        builder = builder.at_version(version);
    }
    let kernel = match builder.build(engine) {
        Ok(kernel) => kernel,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let schema = get_all_actions_schema().project(&["protocol", "metaData", "txn", "domainMetadata"]).map_err(failed)?;
    let (mut found_protocol, mut found_metadata) = (None, None);
    let mut progress = BTreeMap::new();
    let mut domains: BTreeMap<String, Option<String>> = BTreeMap::new();
    // Newest first: what is seen first counts.
    for batch in kernel.log_segment().read_actions(engine, schema).map_err(failed)? {
        let batch = ArrowEngineData::try_from_engine_data(batch.map_err(failed)?.actions).map_err(failed)?;
        for action in actions_of(table, batch.record_batch())? {
            match action {
                Action::Protocol(protocol) => _ = found_protocol.get_or_insert(protocol),
                Action::Metadata(metadata) => _ = found_metadata.get_or_insert(*metadata),
                Action::Txn(txn) => _ = progress.entry(txn.app_id).or_insert(txn.version),
                Action::DomainMetadata(domain) => {
                    domains.entry(domain.domain).or_insert_with(|| (!domain.removed).then_some(domain.configuration));
                }
                Action::CommitInfo(_) | Action::Add(_) | Action::Remove(_) | Action::Cdc(_) => {}
            }
        }
    }
    let absent = |what: &str| Error::Log { table: table.clone(), reason: format!("version {} has no {what}", kernel.version()) };
    Ok(Some(Opened {
        protocol: found_protocol.ok_or_else(|| absent("protocol"))?,
        metadata: found_metadata.ok_or_else(|| absent("metadata"))?,
        progress,
        domains: domains.into_iter().filter_map(|(domain, configuration)| Some((domain, configuration?))).collect(),
        version: kernel.version(),
        kernel: Some(kernel),
    }))
}

/// Whether there is no log: an empty one, or a local folder that is not there.
fn is_absent(error: &delta_kernel::Error) -> bool {
    match error {
        delta_kernel::Error::Backtraced { source, .. } => is_absent(source),
        delta_kernel::Error::InvalidTableLocation(_) => true,
        delta_kernel::Error::Generic(message) => message == "No files in log segment",
        _ => false,
    }
}

/// The actions of a batch of log rows; most rows hold none that was asked for.
pub(crate) fn actions_of(table: &TableName, batch: &RecordBatch) -> Result<Vec<Action>> {
    let mut any = BooleanArray::from(vec![false; batch.num_rows()]);
    for column in batch.columns() {
        any = or(&any, &is_not_null(column)?)?;
    }
    if any.true_count() == 0 {
        return Ok(Vec::new());
    }
    let mut lines = Vec::new();
    let mut writer = LineDelimitedWriter::new(&mut lines);
    writer.write(&filter_record_batch(batch, &any)?)?;
    writer.finish()?;
    action::parse(&lines).map_err(|reason| Error::Log { table: table.clone(), reason })
}

/// An error of the kernel: the store's own, what hides one of the store's, or a log that cannot be read.
pub(crate) fn kernel_error(table: &TableName, error: delta_kernel::Error) -> Error {
    match error {
        delta_kernel::Error::Backtraced { source, .. } => kernel_error(table, *source),
        delta_kernel::Error::ObjectStore(source) => Error::store(format!("reading the log of {table}"), source),
        error if comes_from_store(&error) => Error::Delta { table: table.clone(), source: Box::new(error) },
        error => Error::Log { table: table.clone(), reason: error.to_string() },
    }
}

fn comes_from_store(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<object_store::Error>() || error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}
