//! One immutable snapshot of a table.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use chrono::{DateTime, Utc};
use datafusion::catalog::TableProvider;
use datafusion::common::Column as NamedColumn;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use tributary_specs::{Check, Column, TableName, TableSpec};

use crate::action::Action;
use crate::log::Log;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::{
    Commit, CommitOutcome, DataFile, Difference, Error, Lake, Result, TableLayout, align, create, draft, history, identity, live_files,
    provider, read_files, transact,
};

/// What of a table is read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// These columns in this order; `None` = all.
    pub columns: Option<Vec<String>>,
    /// Only rows for which this is true; files and row groups that cannot hold one are skipped.
    pub filter: Option<Expr>,
}

/// Rows that a range of commits added, where some commits were passed over.
pub struct Appended {
    /// In the table's columns.
    pub rows: SendableRecordBatchStream,
    /// Commits that removed rows.
    pub passed_over: u64,
}

/// One commit of a table's history.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitEntry {
    /// The version it made.
    pub version: u64,
    /// In-commit timestamp where the table has them, else the log file's time.
    pub timestamp: DateTime<Utc>,
    /// `WRITE`, `MERGE`, …; `None` for a commit without commit information.
    pub operation: Option<String>,
    /// As the writer described it.
    pub parameters: BTreeMap<String, String>,
    /// As the writer counted it.
    pub metrics: BTreeMap<String, String>,
    /// Who wrote it.
    pub engine: Option<String>,
    /// The writer's own id of the commit.
    pub txn_id: Option<String>,
    /// Free text of the writer.
    pub user_metadata: Option<String>,
    /// Positions that rode in it.
    pub progress: BTreeMap<String, i64>,
    /// Files added.
    pub files_added: u64,
    /// Files removed.
    pub files_removed: u64,
}

/// One immutable snapshot of a table. Cheap to clone.
#[derive(Clone)]
pub struct Table {
    inner: Arc<Inner>,
}

struct Inner {
    lake: Lake,
    log: Log,
    snapshot: Arc<Snapshot>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", self.name()).field("version", &self.version()).finish_non_exhaustive()
    }
}

impl Table {
    pub(crate) fn new(lake: Lake, log: Log, snapshot: Arc<Snapshot>) -> Self {
        Self { inner: Arc::new(Inner { lake, log, snapshot }) }
    }

    /// Keeps the snapshot for the next who opens the table.
    pub(crate) fn keep(&self) {
        self.lake().kept().keep_snapshot(self.name(), &self.inner.snapshot);
    }

    /// Its name.
    pub fn name(&self) -> &TableName {
        &self.inner.log.table
    }

    /// The lake it is in.
    pub fn lake(&self) -> &Lake {
        &self.inner.lake
    }

    pub(crate) fn log(&self) -> &Log {
        &self.inner.log
    }

    pub(crate) fn state(&self) -> &State {
        &self.inner.snapshot.state
    }

    /// The version of this snapshot.
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// Tells the table from every other one, also from one made again under its name: 63 bits of its metadata's id. Versions count
    /// within one identity.
    pub fn identity(&self) -> i64 {
        identity::of(&self.state().metadata.id)
    }

    /// Whether rows can be written to it, to be asked before the work that would be in vain.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when writing needs something this program does not know, by name.
    pub fn ensure_writable(&self) -> Result<()> {
        self.state().ensure_writable(self.name())
    }

    /// Whether a commit may mark rows as deleted ([`Commit::marks`]): the table has deletion vectors, and its property allows new ones.
    pub fn marks_rows(&self) -> bool {
        self.state().marks_rows()
    }

    /// Its columns as Arrow types: timestamps in µs (`UTC` or without zone), text as `Utf8`, decimals as `Decimal128`. Fields carry
    /// what the log says of them as metadata.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.state().schema)
    }

    /// Its columns as declared, in order.
    pub fn columns(&self) -> &[Column] {
        &self.state().columns
    }

    /// Its CHECK constraints.
    pub fn checks(&self) -> &[Check] {
        &self.state().checks
    }

    /// Partition columns, in order.
    pub fn partition_columns(&self) -> &[String] {
        &self.state().metadata.partition_columns
    }

    /// Clustering columns, in order; empty when it has none.
    pub fn cluster_columns(&self) -> &[String] {
        &self.state().cluster_columns
    }

    /// Table properties, constraints left out.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.state().properties
    }

    /// Whether commits tell what they do to rows.
    pub fn has_change_feed(&self) -> bool {
        self.state().is_on(create::CHANGE_FEED_ON)
    }

    /// Where a table of ours itself turns the change feed or deletion vectors on or off otherwise than declared; a run obeys the table.
    pub fn said_otherwise(&self, spec: &TableSpec) -> Vec<Difference> {
        let said = create::said_otherwise(spec, self.state()).into_iter();
        said.map(|(name, declared, found)| create::property(name, declared, Some(found))).collect()
    }

    /// What catalogues show of it.
    pub fn comment(&self) -> Option<&str> {
        self.state().metadata.description.as_deref()
    }

    /// Every table feature that a writer must honour, sorted.
    pub fn features(&self) -> Vec<String> {
        self.state().features().into_iter().collect()
    }

    /// The latest snapshot of the same table.
    ///
    /// # Errors
    /// [`Error::NoTable`] when it is gone; as [`Lake::table`].
    pub async fn refresh(&self) -> Result<Self> {
        let kept = self.lake().kept().snapshot(self.name());
        if kept.is_none_or(|kept| kept.state.version < self.version())
            && let Some(table) = self.lake().newer(self.log(), &self.inner.snapshot).await?
        {
            return Ok(table);
        }
        self.lake().table(self.name()).await?.ok_or_else(|| Error::NoTable { table: self.name().clone() })
    }

    /// The snapshot of an earlier (or later) version.
    ///
    /// # Errors
    /// [`Error::NoVersion`] when it was never made or its log is gone.
    pub async fn at_version(&self, version: u64) -> Result<Self> {
        if version == self.version() {
            return Ok(self.clone());
        }
        match self.log().open(Some(version)).await {
            Ok(Some(opened)) => {
                let snapshot = Arc::new(Snapshot::new(self.name(), opened)?);
                Ok(Self::new(self.lake().clone(), self.log().clone(), snapshot))
            }
            Ok(None) | Err(Error::Log { .. }) => Err(self.no_version(version).await),
            Err(error) => Err(error),
        }
    }

    /// That there is no such version, and which there are.
    pub(crate) async fn no_version(&self, version: u64) -> Error {
        match self.log().versions().await {
            Ok(versions) => Error::NoVersion { table: self.name().clone(), version, earliest: versions.earliest, latest: versions.latest },
            Err(error) => error,
        }
    }

    /// The position of `app_id` in this snapshot.
    ///
    /// # Errors
    /// None today: positions are read with the snapshot.
    pub async fn progress(&self, app_id: &str) -> Result<Option<i64>> {
        Ok(self.state().progress.get(app_id).copied())
    }

    /// All positions whose application id begins with `prefix`.
    ///
    /// # Errors
    /// None today: positions are read with the snapshot.
    pub async fn progress_with_prefix(&self, prefix: &str) -> Result<BTreeMap<String, i64>> {
        let from = self.state().progress.range(prefix.to_owned()..);
        Ok(from.take_while(|(app_id, _)| app_id.starts_with(prefix)).map(|(app_id, version)| (app_id.clone(), *version)).collect())
    }

    /// A metadata domain's configuration in this snapshot.
    ///
    /// # Errors
    /// None today: domains are read with the snapshot.
    pub async fn domain(&self, domain: &str) -> Result<Option<String>> {
        Ok(self.state().domains.get(domain).cloned())
    }

    /// The snapshot as a DataFusion table: pruned by statistics, deletion vectors applied. Register it in a context made by
    /// [`Lake::session`]: another context may have a store of its own for the lake's root.
    ///
    /// # Errors
    /// Store errors.
    pub async fn provider(&self) -> Result<Arc<dyn TableProvider>> {
        match &self.state().kernel {
            Some(_) => provider::of(self.log(), self.version()).await,
            None => draft::no_rows(self),
        }
    }

    /// Live rows.
    ///
    /// # Errors
    /// [`Error::Batch`] when a column does not exist; store errors, also while the stream is read.
    pub async fn read(&self, options: ReadOptions) -> Result<SendableRecordBatchStream> {
        let schema = self.projected(options.columns.as_deref())?;
        let mut rows = self.lake().session().read_table(self.provider().await?)?;
        if let Some(filter) = options.filter {
            rows = rows.filter(filter)?;
        }
        let columns: Vec<Expr> = schema.fields().iter().map(|field| Expr::Column(NamedColumn::from_name(field.name()))).collect();
        let stream = rows.select(columns)?.execute_stream().await?;
        let (table, target) = (self.name().clone(), Arc::clone(&schema));
        let batches = stream.map(move |batch| align::read_as(&table, &batch?, &target).map_err(read_files::external));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn projected(&self, columns: Option<&[String]>) -> Result<SchemaRef> {
        let schema = self.schema();
        let Some(columns) = columns else { return Ok(schema) };
        let index = |name: &String| {
            schema.index_of(name).map_err(|_| Error::Batch { table: self.name().clone(), reason: format!("it has no column `{name}`") })
        };
        let places = columns.iter().map(index).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(schema.project(&places)?))
    }

    /// Rows added by the data-changing commits of `(from_exclusive, to_inclusive]`, commit by commit; `None` reads from the start:
    /// from the first commit, or, where the log no longer reaches back so far, all live rows of `to_inclusive`.
    /// Commits that only rearranged rows are passed over.
    ///
    /// # Errors
    /// [`Error::NotAppendOnly`] when a commit in the range removed rows, [`Error::NoVersion`] when its log is gone.
    pub async fn appended(&self, from_exclusive: Option<u64>, to_inclusive: u64) -> Result<SendableRecordBatchStream> {
        let files = self.added(from_exclusive, to_inclusive).await?;
        Ok(read_files::stream(self.log(), files, self.schema()))
    }

    /// The files that [`Self::appended`] reads, with their statistics.
    ///
    /// # Errors
    /// As [`Self::appended`].
    pub async fn added(&self, from_exclusive: Option<u64>, to_inclusive: u64) -> Result<Vec<DataFile>> {
        self.walk(from_exclusive, to_inclusive, false).await.map(|(files, _)| files)
    }

    /// As [`Self::appended`], but commits that removed rows are passed over, with what they added.
    ///
    /// # Errors
    /// [`Error::NoVersion`] when the log of the range is gone.
    pub async fn appended_without_changes(&self, from_exclusive: Option<u64>, to_inclusive: u64) -> Result<Appended> {
        let (files, passed_over) = self.walk(from_exclusive, to_inclusive, true).await?;
        Ok(Appended { rows: read_files::stream(self.log(), files, self.schema()), passed_over })
    }

    /// Whether the log still has the table's first commit.
    ///
    /// # Errors
    /// Store errors.
    pub async fn reaches_back(&self) -> Result<bool> {
        Ok(self.log().actions(0).await?.is_some())
    }

    /// Whether a commit of ours took all rows away that were there, as a full refresh does.
    ///
    /// # Errors
    /// [`Error::NoVersion`] when its log is gone.
    pub async fn was_built_anew(&self, version: u64) -> Result<bool> {
        let actions = self.commit_actions(version).await?;
        Ok(actions.iter().any(|action| matches!(action, Action::CommitInfo(info) if transact::replaces_all(info))))
    }

    /// Every live row of a version, file by file, in the columns of this snapshot.
    ///
    /// # Errors
    /// As [`Self::at_version`].
    pub async fn live_rows(&self, version: u64) -> Result<SendableRecordBatchStream> {
        let files = self.at_version(version).await?.files().await?;
        Ok(read_files::stream(self.log(), files, self.schema()))
    }

    /// Files that the commits of a range added, and how many of them were passed over.
    async fn walk(&self, from_exclusive: Option<u64>, to_inclusive: u64, skips: bool) -> Result<(Vec<DataFile>, u64)> {
        let first = from_exclusive.map_or(0, |version| version + 1);
        let (mut files, mut passed_over) = (Vec::new(), 0);
        for version in first..=to_inclusive {
            let Some(actions) = self.log().actions(version).await? else {
                if from_exclusive.is_none() && version == 0 {
                    let table = self.at_version(to_inclusive).await?;
                    return table.files().await.map(|files| (files, 0));
                }
                return Err(self.no_version(version).await);
            };
            if actions.iter().any(|action| matches!(action, Action::Remove(remove) if remove.data_change)) {
                if !skips {
                    return Err(Error::NotAppendOnly { table: self.name().clone(), version });
                }
                passed_over += 1;
                continue;
            }
            let added = actions.iter().filter_map(|action| match action {
                Action::Add(add) if add.data_change => Some(live_files::of_add(add, self.state(), self.name())),
                _ => None,
            });
            files.extend(added);
        }
        Ok((files, passed_over))
    }

    /// By which columns the table is partitioned or clustered.
    pub fn lies(&self) -> TableLayout {
        TableLayout { partition_by: self.partition_columns().to_vec(), cluster_by: self.cluster_columns().to_vec() }
    }

    /// How the table is to lie once it is built anew, where it lies otherwise now.
    pub fn lies_otherwise(&self, declared: TableLayout) -> Option<TableLayout> {
        (declared != self.lies()).then_some(declared)
    }

    /// Columns that a table which lies so is partitioned, clustered or checked by, as far as they are named.
    pub(crate) fn bound_columns(&self, lies: &TableLayout) -> Vec<String> {
        let named = |column: &&Column| self.checks().iter().any(|check| check.expression.contains(&column.name));
        let checked = self.columns().iter().filter(named).map(|column| column.name.clone());
        lies.partition_by.iter().cloned().chain(lies.cluster_by.iter().cloned()).chain(checked).collect()
    }

    /// Live data files with their statistics.
    ///
    /// # Errors
    /// Store errors.
    pub async fn files(&self) -> Result<Vec<DataFile>> {
        self.live_files().await.map(<[DataFile]>::to_vec)
    }

    pub(crate) async fn live_files(&self) -> Result<&[DataFile]> {
        let is_new = !self.inner.snapshot.knows_files();
        let files = self.inner.snapshot.files(self.log()).await?;
        if is_new && self.lake().kept().snapshot(self.name()).is_some_and(|kept| Arc::ptr_eq(&kept, &self.inner.snapshot)) {
            // It takes more from now on.
            self.keep();
        }
        Ok(files)
    }

    /// Live rows of one file in file order, in the table's schema (or `columns` of it), partition columns filled in.
    ///
    /// # Errors
    /// Store errors, also while the stream is read.
    pub async fn read_file(&self, file: &DataFile, columns: Option<&[String]>) -> Result<SendableRecordBatchStream> {
        Ok(read_files::stream(self.log(), vec![file.clone()], self.projected(columns)?))
    }

    /// Commits, newest first, as far as the log goes.
    ///
    /// # Errors
    /// Store errors.
    pub async fn history(&self, limit: Option<usize>) -> Result<Vec<CommitEntry>> {
        history::read(self.log(), self.version(), limit).await
    }

    /// Whether the next commit of rows would leave another text than the table has: see [`Lake::leaving`].
    pub fn gets_another_text(&self) -> bool {
        self.lake().imprint().is_some_and(|imprint| imprint.is_new_to(self))
    }

    /// One commit. A blind append that lost a race is tried again on top of the winner; everything else follows
    /// [`crate::Reads`]. See [`CommitOutcome`].
    ///
    /// # Errors
    /// [`Error::Malformed`] for a plan that contradicts itself, [`Error::SchemaChange`], [`Error::Unsupported`] for a table or a
    /// winner's commit that needs something we do not know, [`Error::Unknown`] when no answer came and the log cannot be read either.
    pub async fn commit(&self, commit: Commit) -> Result<CommitOutcome> {
        let commit = match self.lake().imprint() {
            Some(imprint) => imprint.on(self, commit),
            None => commit,
        };
        transact::commit(self, commit).await
    }
}
