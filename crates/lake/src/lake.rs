//! A lake: tables under one root.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use tributary_specs::{TableName, TableSpec};
use url::Url;
use uuid::Uuid;

use crate::constraints::Rules;
use crate::create::{self, Follow, Weight};
use crate::imprint::Imprint;
use crate::kept::Kept;
use crate::log::Log;
use crate::log_cache::LogCache;
use crate::snapshot::Snapshot;
use crate::{Clock, CommitOutcome, Error, Ids, RandomIds, Result, Stores, SystemClock, Table, action, filters_by_name, transact};

/// How a lake behaves.
#[derive(Debug, Clone)]
pub struct LakeOptions {
    /// The first folder below the root.
    pub catalogue: String,
    /// Where commit timestamps come from.
    pub clock: Arc<dyn Clock>,
    /// Where ids of tables, commits and files come from.
    pub ids: Arc<dyn Ids>,
    /// How often one [`Table::commit`] tries a next version before it gives up as conflicted.
    pub attempts_max: u32,
    /// Bytes that all queries in sessions of the lake may hold together before they spill; an eighth of it may be what is kept of
    /// tables from one batch to the next, and a sixteenth a row group that is being written (a mebibyte at least).
    pub memory_limit: usize,
    /// Where queries spill to; the system's temporary folder by default.
    pub spill_path: Option<std::path::PathBuf>,
    /// Bytes of immutable log objects kept in memory.
    pub log_cache_bytes: usize,
    /// Rules broken on purpose.
    #[cfg(feature = "controls")]
    pub controls: tributary_testkit::Controls,
}

impl Default for LakeOptions {
    fn default() -> Self {
        Self {
            catalogue: "main".to_owned(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            attempts_max: 32,
            memory_limit: 1 << 30,
            spill_path: None,
            log_cache_bytes: 64 << 20,
            #[cfg(feature = "controls")]
            controls: tributary_testkit::Controls::none(),
        }
    }
}

/// One way in which a table differs from its declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The column, constraint or property.
    pub what: String,
    /// As declared; `None` when the declaration has no such thing.
    pub declared: Option<String>,
    /// As the table has it; `None` when it has no such thing.
    pub found: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "absent".to_owned());
        write!(f, "{}: declared {}, found {}", self.what, side(&self.declared), side(&self.found))
    }
}

/// Tables under one root. Cheap to clone; clones share the store, what is kept of tables, the memory limit and the clock.
#[derive(Debug, Clone)]
pub struct Lake {
    inner: Arc<Inner>,
    imprint: Option<Arc<Imprint>>,
}

#[derive(Debug)]
struct Inner {
    stores: Stores,
    log_cache: LogCache,
    /// The lake's store with immutable log objects cached.
    cached: Arc<dyn ObjectStore>,
    kept: Arc<Kept>,
    /// Tables whose logs need not be read.
    drafts: Mutex<BTreeMap<TableName, Arc<Snapshot>>>,
    runtime: Arc<RuntimeEnv>,
    options: LakeOptions,
}

/// The part of the memory that may hold what is kept between batches.
const KEPT_PART: usize = 8;

/// How often `create` looks again when others create, upgrade or commit at the same time.
const TRIES: u32 = 10;

impl Lake {
    /// A lake over a root. Nothing is read or written yet.
    ///
    /// # Errors
    /// [`Error::Root`] when the spill folder cannot be used.
    pub fn open(stores: Stores, options: LakeOptions) -> Result<Self> {
        let log_cache = LogCache::new(stores.store(), options.log_cache_bytes);
        let cached: Arc<dyn ObjectStore> = Arc::new(log_cache.clone());
        let spill = match &options.spill_path {
            Some(path) => DiskManagerMode::Directories(vec![path.clone()]),
            None => DiskManagerMode::OsTmpDirectory,
        };
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(options.memory_limit)))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(spill))
            .build_arc()?;
        runtime.register_object_store(stores.root(), Arc::clone(&cached));
        let kept = Arc::new(Kept::new(options.memory_limit / KEPT_PART, &runtime.memory_pool));
        Ok(Self { inner: Arc::new(Inner { stores, log_cache, cached, kept, drafts: Mutex::default(), runtime, options }), imprint: None })
    }

    /// The same lake, whose commits of rows or positions to one of these tables leave a text in the table's metadata domain `domain`,
    /// where it does not hold that text yet. It rides in the commit: both are there, or neither is.
    pub fn leaving(&self, domain: impl Into<String>, texts: BTreeMap<TableName, String>) -> Self {
        Self { inner: Arc::clone(&self.inner), imprint: Some(Arc::new(Imprint { domain: domain.into(), texts })) }
    }

    pub(crate) fn imprint(&self) -> Option<&Imprint> {
        self.imprint.as_deref()
    }

    /// The latest snapshot of a table, or none when there is no such table.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the table needs a feature this program does not know; store errors.
    pub async fn table(&self, name: &TableName) -> Result<Option<Table>> {
        let log = self.log(name)?;
        let draft = self.drafts().get(name).map(Arc::clone);
        if let Some(draft) = draft {
            return Ok(Some(Table::new(self.clone(), log, draft)));
        }
        if let Some(known) = self.inner.kept.snapshot(name) {
            if let Some(table) = self.newer(&log, &known).await? {
                return Ok(Some(table));
            }
            self.inner.kept.forget_snapshot(name);
            self.inner.log_cache.forget(&log.root);
        }
        let Some(opened) = log.open(None).await? else { return Ok(None) };
        let table = Table::new(self.clone(), log, Arc::new(Snapshot::new(name, opened)?));
        // By its last commit file a snapshot is known again.
        if matches!(table.log().read(table.version()).await, Ok(Some(_))) {
            table.keep();
        }
        Ok(Some(table))
    }

    /// The latest snapshot of a table of which one is known; none where that one is no longer part of the table.
    pub(crate) async fn newer(&self, log: &Log, known: &Arc<Snapshot>) -> Result<Option<Table>> {
        if !self.inner.log_cache.is_still_there(&log.path(known.state.version)).await {
            return Ok(None);
        }
        let Some((opened, commits)) = log.advanced(&known.state).await else { return Ok(None) };
        let checkpoint = opened.kernel.as_ref().and_then(|kernel| kernel.log_segment().checkpoint_version);
        let snapshot = match commits.is_empty() && checkpoint == known.state.checkpoint_version() {
            true => Arc::clone(known),
            false => Arc::new(known.followed_by(&log.table, opened, commits)?),
        };
        let table = Table::new(self.clone(), log.clone(), snapshot);
        table.keep();
        Ok(Some(table))
    }

    /// Tables of this lake that are drafts, see [`Self::draft`].
    pub(crate) fn drafts(&self) -> MutexGuard<'_, BTreeMap<TableName, Arc<Snapshot>>> {
        self.inner.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn kept(&self) -> &Kept {
        &self.inner.kept
    }

    /// The latest version of a table, or none when there is no such table. From a known version on only the commits after it are
    /// asked for, which costs one question when there is none.
    ///
    /// # Errors
    /// Store errors.
    pub async fn latest_version(&self, name: &TableName, known: Option<u64>) -> Result<Option<u64>> {
        let log = self.log(name)?;
        let Some(mut version) = known else {
            return match log.versions().await {
                Ok(versions) => Ok(Some(versions.latest)),
                Err(Error::NoTable { .. }) => Ok(None),
                Err(error) => Err(error),
            };
        };
        while log.is_there(version + 1).await? {
            version += 1;
        }
        Ok(Some(version))
    }

    /// Creates a table as declared, or opens the one that is there when it is compatible and may be written to. A table of ours
    /// made by an older release is brought up to date by one commit of metadata and protocol.
    ///
    /// # Errors
    /// [`Error::Spec`] when the declaration cannot be honoured, [`Error::Incompatible`] when a table is there that
    /// differs in more than columns the declaration lacks, [`Error::Unsupported`] when it cannot be written to.
    pub async fn create(&self, spec: &TableSpec) -> Result<Table> {
        if let Some(table) = self.table(&spec.name).await? {
            return self.adopt(table, spec).await;
        }
        let refused = |reason| Error::Spec { table: spec.name.clone(), reason };
        let now = self.clock().now();
        let actions = create::first_commit(spec, self.new_id(), self.new_id(), now).map_err(refused)?;
        let schema = Arc::new(create::arrow_schema(&spec.columns).map_err(refused)?);
        Rules::new(&spec.name, &schema, &spec.columns, &spec.checks, now)?;
        let lines = action::to_lines(&actions).map_err(|error| refused(error.to_string()))?;
        let put = self.log(&spec.name)?.put(0, lines).await;
        // Whatever was answered: the table that is there now is the one, made by us or by another.
        match (self.table(&spec.name).await, put) {
            (Ok(Some(table)), _) => self.adopt(table, spec).await,
            (_, Err(error)) => Err(Error::store(format!("creating {}", spec.name), error)),
            (Err(error), Ok(())) => Err(error),
            (Ok(None), Ok(())) => Err(Error::Log { table: spec.name.clone(), reason: "version 0 was written and is not there".to_owned() }),
        }
    }

    async fn adopt(&self, table: Table, spec: &TableSpec) -> Result<Table> {
        table.state().ensure_writable(table.name())?;
        let incompatible: Vec<String> = create::differences(spec, table.state())
            .into_iter()
            .filter(|(weight, _)| *weight == Weight::Incompatible)
            .map(|(_, difference)| difference.to_string())
            .collect();
        if !incompatible.is_empty() {
            return Err(Error::Incompatible { table: spec.name.clone(), differences: incompatible.join("; ") });
        }
        self.bring_up_to_date(table, spec).await
    }

    /// The table, brought up to date by one commit of metadata and protocol where an older release made it: with what every table of
    /// ours has today, and with the change feed and deletion vectors as declared where the table does not say. Where it says, it is
    /// obeyed: see [`Self::bring_to_declaration`]. A table that is not ours stays as it is.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when it cannot be written to; store errors.
    pub async fn bring_up_to_date(&self, table: Table, spec: &TableSpec) -> Result<Table> {
        self.follow(table, spec, Follow::Unsaid).await
    }

    /// As [`Self::bring_up_to_date`], and where the table itself turns the change feed or deletion vectors on or off it is changed to
    /// what is declared.
    ///
    /// # Errors
    /// As [`Self::bring_up_to_date`].
    pub async fn bring_to_declaration(&self, table: Table, spec: &TableSpec) -> Result<Table> {
        self.follow(table, spec, Follow::All).await
    }

    async fn follow(&self, table: Table, spec: &TableSpec, follow: Follow) -> Result<Table> {
        let mut table = table;
        for _ in 0..TRIES {
            table.state().ensure_writable(table.name())?;
            let now = self.clock().now().timestamp_millis();
            let Some((metadata, protocol)) = create::upgrade(spec, table.state(), follow, table.version() + 1, now) else {
                return Ok(table);
            };
            match transact::commit_metadata(&table, metadata, protocol, now).await? {
                CommitOutcome::Committed { version } => tracing::info!(table = %spec.name, version, "brought the table up to date"),
                CommitOutcome::Conflicted(_) | CommitOutcome::Fenced { .. } => {}
            }
            table = table.refresh().await?;
        }
        Ok(table)
    }

    /// Every table of the catalogue, sorted.
    ///
    /// # Errors
    /// Store errors.
    pub async fn tables(&self) -> Result<Vec<TableName>> {
        let catalogue = self.path()?.join(self.inner.options.catalogue.as_str());
        let mut tables = BTreeSet::new();
        for schema in self.folders(&catalogue).await? {
            for table in self.folders(&schema).await? {
                let mut log = self.inner.cached.list(Some(&table.clone().join("_delta_log")));
                if let Some(first) = log.next().await {
                    first.map_err(|error| Error::store("listing tables", error))?;
                    let name = |path: &Path| path.filename().unwrap_or_default().to_owned();
                    tables.insert(TableName::new(name(&schema), name(&table)));
                }
            }
        }
        Ok(tables.into_iter().collect())
    }

    async fn folders(&self, path: &Path) -> Result<Vec<Path>> {
        let listed = self.inner.cached.list_with_delimiter(Some(path)).await;
        listed.map(|listed| listed.common_prefixes).map_err(|error| Error::store(format!("listing {path}"), error))
    }

    /// Every way in which the existing table differs from its declaration; empty when equal; the table itself when there is none.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub async fn difference(&self, spec: &TableSpec) -> Result<Vec<Difference>> {
        let Some(table) = self.table(&spec.name).await? else {
            return Ok(vec![Difference { what: "table".to_owned(), declared: Some(spec.name.to_string()), found: None }]);
        };
        Ok(create::differences(spec, table.state()).into_iter().map(|(_, difference)| difference).collect())
    }

    /// A query context with the lake's store and memory limit, spilling to disk; no tables are registered.
    pub fn session(&self) -> SessionContext {
        let mut config = SessionConfig::new();
        config.options_mut().execution.parquet.schema_force_view_types = false;
        // Spark's legacy 96-bit times: in nanoseconds, as they would be read, most years do not fit
        config.options_mut().execution.parquet.coerce_int96 = Some("us".to_owned());
        let state = SessionStateBuilder::new().with_config(config).with_runtime_env(Arc::clone(&self.inner.runtime));
        SessionContext::new_with_state(state.with_default_features().with_physical_optimizer_rules(filters_by_name::rules()).build())
    }

    /// Bytes that are kept of its tables from one batch to the next: snapshots, footers, Bloom filters, deletion vectors.
    pub fn kept_bytes(&self) -> usize {
        self.inner.kept.bytes()
    }

    /// The clock of the lake.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.inner.options.clock)
    }

    /// An id nobody else has.
    pub fn new_id(&self) -> Uuid {
        self.inner.options.ids.next()
    }

    /// The options it was opened with.
    pub fn options(&self) -> &LakeOptions {
        &self.inner.options
    }

    /// The store and root it was opened with.
    pub fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    /// Where a table is, whether it exists or not; ends with a slash.
    ///
    /// # Errors
    /// [`Error::Root`] when the lake's root can have nothing below it.
    pub fn url(&self, name: &TableName) -> Result<Url> {
        let mut url = self.inner.stores.root().clone();
        let bare = || Error::Root { root: self.inner.stores.root().to_string(), reason: "it can have nothing below it".to_owned() };
        url.path_segments_mut()
            .map_err(|()| bare())?
            .pop_if_empty()
            .extend([&self.inner.options.catalogue, &name.schema, &name.name])
            .push("");
        Ok(url)
    }

    fn path(&self) -> Result<Path> {
        let root = self.inner.stores.root();
        Path::from_url_path(root.path()).map_err(|error| Error::Root { root: root.to_string(), reason: error.to_string() })
    }

    pub(crate) fn log(&self, name: &TableName) -> Result<Log> {
        Log::new(name.clone(), self.url(name)?, Arc::clone(&self.inner.cached), Arc::clone(&self.inner.kept))
    }
}
