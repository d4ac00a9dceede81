//! A table after the other: plan, write a group anew, commit it, until nothing is left.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tributary_lake::{DataFile, FileForm, Lake, Table};
use tributary_specs::TableName;

use crate::busy::{Pace, pace};
use crate::group::{self, Done, Ended};
use crate::plan::{Asked, Becomes, Bin, File, Work, decide, groups};
use crate::report::{Amount, Event, Report, Status, TableReport};
use crate::rewrite::{Sink, rewrite};
use crate::{Error, Options, Result, Task, inputs};

/// How often a table is planned in one run: what is left small by one group is taken by the next, what appenders bring meanwhile is not
/// run after.
const ROUNDS: usize = 4;

/// Commits that are looked at to learn whether somebody is at work.
const COMMITS_LOOKED_AT: usize = 20;

/// Bytes that are written to nowhere to learn what writing makes of them.
const REHEARSED_BYTES: u64 = 32 << 20;

/// Files that are looked into side by side.
const AT_ONCE: usize = 16;

/// Does a task to each of these tables, one after the other; a failure of one is in its report. `tell` is told of each table when it is
/// known what is to be done to it, and when it has had its turn.
pub async fn maintain(lake: &Lake, tables: &[TableName], task: &Task, options: &Options, tell: &(dyn Fn(Event<'_>) + Sync)) -> Report {
    let mut report = Report::default();
    let began = lake.clock().now();
    for name in tables {
        let table = of_table(lake, name, task, options, began, tell).await;
        tell(Event::Ended(&table));
        report.tables.push(table);
    }
    report
}

async fn of_table(
    lake: &Lake,
    name: &TableName,
    task: &Task,
    options: &Options,
    began: DateTime<Utc>,
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> TableReport {
    let mut report = TableReport::new(name, task.name());
    let limit = options.time_limit.and_then(|limit| TimeDelta::from_std(limit).ok());
    let clock = lake.clock();
    let is_over = || limit.is_some_and(|limit| clock.now() - began >= limit);
    let mut run = Run { task, options, is_over: &is_over, tell, report: &mut report };
    let ended = run.table(lake, name).await;
    report.status = match (ended, &report.left) {
        (Err(error), _) if error.is_unsupported() && *task == Task::Auto => {
            report.left = Some(tributary_fault::chain(&error));
            Status::Skipped
        }
        (Err(error), _) => {
            report.error = Some(error);
            Status::Failed
        }
        (Ok(_), Some(_)) => Status::Left,
        (Ok(status), None) => status,
    };
    report
}

struct Run<'a> {
    task: &'a Task,
    options: &'a Options,
    is_over: &'a (dyn Fn() -> bool + Sync),
    tell: &'a (dyn Fn(Event<'_>) + Sync),
    report: &'a mut TableReport,
}

impl Run<'_> {
    async fn table(&mut self, lake: &Lake, name: &TableName) -> Result<Status> {
        let opened = lake.table(name).await.map_err(Error::lake("opening", name))?;
        let mut table = opened.ok_or_else(|| Error::lake("opening", name)(tributary_lake::Error::NoTable { table: name.clone() }))?;
        table.ensure_writable().map_err(Error::lake("opening", name))?;
        self.check(&table)?;
        self.report.before = amount(&files(&table).await?);
        self.report.after = self.report.before;
        self.report.predicted = self.report.before;
        for round in 0..ROUNDS {
            let files = files(&table).await?;
            let work = self.plan(&table, &files).await?;
            if round == 0 {
                self.report.reason.clone_from(&work.reason);
                self.predict(&table, &files, &work).await?;
            }
            if work.bins.is_empty() && !work.checkpoint {
                break;
            }
            if self.options.dry_run {
                return Ok(Status::Planned);
            }
            if round == 0 {
                (self.tell)(Event::Planned(self.report));
            }
            let goes_on = self.round(&table, &files, work).await?;
            table = table.refresh().await.map_err(Error::lake("opening", name))?;
            if !goes_on {
                break;
            }
        }
        self.report.after = amount(&self::files(&table).await?);
        let is_idle = self.report.commits == 0 && !self.report.checkpoint;
        Ok(if is_idle { Status::NothingToDo } else { Status::Done })
    }

    /// Whether the task can be done to such a table.
    fn check(&self, table: &Table) -> Result<()> {
        let name = || table.name().clone();
        match self.task {
            Task::Cluster if table.cluster_columns().is_empty() => Err(Error::NotClustered { table: name() }),
            Task::ZOrder(_) if !table.cluster_columns().is_empty() => {
                Err(Error::Clustered { table: name(), columns: table.cluster_columns().to_vec() })
            }
            Task::ZOrder(columns) => columns.iter().try_for_each(|column| orders_by(table, column)),
            Task::Cluster => table.cluster_columns().iter().try_for_each(|column| orders_by(table, column)),
            Task::Auto | Task::Optimize | Task::Reorg | Task::Checkpoint => Ok(()),
        }
    }

    async fn plan(&self, table: &Table, files: &[DataFile]) -> Result<Work> {
        let outdated = if *self.task == Task::Reorg { outdated(table, files).await? } else { BTreeSet::new() };
        let asked = Asked {
            task: self.task,
            files: &File::all(files),
            cluster_columns: table.cluster_columns(),
            zorder_columns: &zorder_columns(table),
            file_bytes: table.file_bytes_target(amount(files).bytes),
            commits_since_checkpoint: table.commits_since_checkpoint(),
            outdated: &outdated,
        };
        Ok(decide(&asked, self.options))
    }

    /// One plan from its first group to its last. Whether it is worth planning again.
    async fn round(&mut self, table: &Table, files: &[DataFile], work: Work) -> Result<bool> {
        let groups = groups(work.bins, self.options.group_bytes);
        let (count, mut dropped) = (groups.len(), 0);
        for (at, group) in groups.into_iter().enumerate() {
            let left = count - at;
            match self.pace(table).await? {
                Pace::Wait { seconds } => return Ok(self.leave(left, &format!("somebody changed rows {seconds} s ago"))),
                Pace::Once if self.report.commits > 0 => return Ok(self.leave(left, "somebody is changing rows")),
                Pace::Free | Pace::Once => {}
            }
            if (self.is_over)() {
                return Ok(self.leave(left, "the time is over"));
            }
            let Some(done) = self.rewrite(table, files, group, false).await? else {
                return Ok(self.leave(left, "the time is over"));
            };
            dropped += self.commit(table, done).await?;
        }
        if work.checkpoint {
            let latest = table.refresh().await.map_err(Error::lake("opening", table.name()))?;
            self.report.checkpoint |= latest.checkpoint().await.map_err(Error::lake("writing a checkpoint of", table.name()))?;
        }
        Ok(count > 0 && dropped == 0)
    }

    /// Leaves the rest of the work, and says why.
    fn leave(&mut self, groups: usize, why: &str) -> bool {
        self.report.left = Some(format!("{groups} groups of files, because {why}"));
        false
    }

    async fn pace(&self, table: &Table) -> Result<Pace> {
        let failed = || Error::lake("reading the history of", table.name());
        if self.options.yield_to.is_zero() {
            return Ok(Pace::Free);
        }
        let latest = table.refresh().await.map_err(failed())?;
        let commits = latest.history(Some(COMMITS_LOOKED_AT)).await.map_err(failed())?;
        Ok(pace(&commits, table.lake().clock().now(), self.options.yield_to))
    }

    /// Bins written anew, some side by side; none where time is over.
    async fn rewrite(&self, table: &Table, files: &[DataFile], bins: Vec<Bin>, rehearses: bool) -> Result<Option<Vec<Done>>> {
        let sink = Sink { file_bytes: table.file_bytes_target(amount(files).bytes), rehearses, is_over: self.is_over };
        let each: Vec<BoxFuture<'_, _>> = bins.into_iter().map(|bin| one(table, files, bin, sink).boxed()).collect();
        let at_once = inputs::side_by_side(table);
        let done: Vec<Option<Done>> = stream::iter(each).buffered(at_once).try_collect().await?;
        Ok(done.into_iter().collect())
    }

    /// Commits a group; how many of its bins were dropped.
    async fn commit(&mut self, table: &Table, done: Vec<Done>) -> Result<u64> {
        let Ended { read, written, kept, dropped } = group::commit(table, done).await?;
        self.report.read += read;
        self.report.written += written;
        self.report.commits += u64::from(kept > 0);
        self.report.lost_races += dropped;
        if dropped > 0 {
            self.report.left = Some(format!("{dropped} bins of files, because somebody else touched them first"));
        }
        Ok(dropped)
    }

    /// What the table will have: some of the bins are written to nowhere, the others taken to become as they do.
    async fn predict(&mut self, table: &Table, files: &[DataFile], work: &Work) -> Result<()> {
        let file_bytes = table.file_bytes_target(amount(files).bytes);
        let (mut rehearsed, mut tried, mut made) = (Vec::new(), 0, Amount::default());
        let mut others = Vec::new();
        for bin in &work.bins {
            if tried + bin.bytes() <= REHEARSED_BYTES {
                tried += bin.bytes();
                rehearsed.push(bin.clone());
            } else {
                others.push(bin);
            }
        }
        let live: u64 = rehearsed.iter().map(Bin::live_bytes).sum();
        for done in self.rewrite(table, files, rehearsed, true).await?.unwrap_or_default() {
            made += Amount::of(done.adds.iter().map(|file| file.size));
        }
        let ratio = if live > 0 { made.bytes as f64 / live as f64 } else { 1.0 };
        let predicted = &mut self.report.predicted;
        *predicted += made;
        for bin in others {
            let bytes = (bin.live_bytes() as f64 * ratio).round() as u64;
            let files = if bin.becomes == Becomes::Purged { 1 } else { bytes.div_ceil(file_bytes).max(1) };
            *predicted += Amount { files, bytes };
        }
        for bin in &work.bins {
            *predicted -= Amount { files: bin.files.len() as u64, bytes: bin.bytes() };
        }
        Ok(())
    }
}

/// The property by which a declaration wants its table Z-ordered, in any case.
const ZORDER_COLUMNS: &str = "pipelines.autoOptimize.zOrderCols";

/// The columns that the table's own property names; none where one of them can order nothing.
fn zorder_columns(table: &Table) -> Vec<String> {
    let said = table.properties().iter().find(|(name, _)| name.eq_ignore_ascii_case(ZORDER_COLUMNS)).map(|(_, said)| said.as_str());
    let columns = said.unwrap_or_default().split(',').map(|name| name.trim().trim_matches('`').to_owned());
    let columns: Vec<String> = columns.filter(|name| !name.is_empty()).collect();
    match columns.iter().try_for_each(|column| orders_by(table, column)) {
        Ok(()) => columns,
        Err(error) => {
            tracing::warn!(table = %table.name(), %error, "not Z-ordered as its property says");
            Vec::new()
        }
    }
}

fn orders_by(table: &Table, column: &str) -> Result<()> {
    let refused = |reason: &str| Err(Error::Column { table: table.name().clone(), column: column.to_owned(), reason: reason.to_owned() });
    match table.schema().field_with_name(column) {
        Err(_) => refused("there is no such column"),
        Ok(_) if table.partition_columns().iter().any(|name| name == column) => refused("the table is partitioned by it"),
        Ok(field) if field.data_type().is_nested() => refused("its values have no order"),
        Ok(_) => Ok(()),
    }
}

/// Paths of files that have columns which the table does not have.
async fn outdated(table: &Table, files: &[DataFile]) -> Result<BTreeSet<String>> {
    let schema = table.schema();
    let is_gone = |name: &String| !schema.fields().iter().any(|field| field.name().eq_ignore_ascii_case(name));
    let forms: Vec<BoxFuture<'_, _>> = files.iter().map(|file| table.form(file).boxed()).collect();
    let forms: Vec<FileForm> =
        stream::iter(forms).buffered(AT_ONCE).try_collect().await.map_err(Error::lake("reading footers of", table.name()))?;
    let outdated = files.iter().zip(forms).filter(|(_, form)| form.columns.iter().any(is_gone));
    Ok(outdated.map(|(file, _)| file.path.clone()).collect())
}

async fn one(table: &Table, files: &[DataFile], bin: Bin, sink: Sink<'_>) -> Result<Option<Done>> {
    let adds = rewrite(table, files, &bin, sink).await?;
    let inputs = bin.files.iter().map(|file| files[file.at].clone()).collect();
    Ok(adds.map(|adds| Done { inputs, adds }))
}

async fn files(table: &Table) -> Result<Vec<DataFile>> {
    table.files().await.map_err(Error::lake("listing the files of", table.name()))
}

fn amount(files: &[DataFile]) -> Amount {
    Amount::of(files.iter().map(|file| file.size))
}
