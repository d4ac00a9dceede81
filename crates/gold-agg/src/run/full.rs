//! The refresh that computes every row, and its commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::datafusion::physical_plan::{ExecutionPlan, execute_stream};
use tributary_lake::datafusion::prelude::{DataFrame, ident};
use tributary_lake::{Commit, DataFile, DataWriter, NewFile, Operation, Reads, Table, WriterOptions};
use tributary_specs::{DatasetReport, Refresh};

use super::{Ended, Run, app_id, id_app_id, lost, version_of};
use crate::definition::{DOMAIN, Definition};
use crate::follow::means_of;
use crate::plan::InputState;
use crate::quarantine::{Quarantine, Stamp};
use crate::query::{Input, Joins, Rows, own_names, plan_rows};
use crate::reached::Late;
use crate::rules::{self, Tally};
use crate::scanned::Scanned;
use crate::target::{self, Target};
use crate::{Error, Result};

/// What the query came to.
enum Made {
    Rows(Box<Written>),
    /// A hash join did not fit in memory.
    NeedsSpilling,
}

/// Rows in files, in no commit yet.
struct Written {
    adds: Vec<NewFile>,
    rows_in: u64,
    tally: Tally,
    scanned: Scanned,
}

impl Run<'_> {
    /// Computes every row of the view.
    pub(super) async fn refresh(
        &self,
        there: Option<Table>,
        inputs: &[Input],
        states: &[InputState],
        late: &Late,
        report: &mut DatasetReport,
    ) -> Result<Ended> {
        let mut joins = Joins::Hash;
        loop {
            let kept = there.as_ref().filter(|_| !self.options.full_refresh);
            let rows = plan_rows(self.lake, self.spec, kept, inputs, self.options, joins).await?;
            let follows = self.follows(&rows, inputs).await?;
            target::check_columns(self.spec, &rows.columns)?;
            let target = target::prepare(self.lake, self.spec, there.clone(), &rows.columns, follows, self.options.full_refresh).await?;
            let definition = Definition {
                held: rows.held.clone(),
                brought: late.brought.clone(),
                ..Definition::of(self.spec, &self.options.called, rows.asks_for_time)
            };
            let mut quarantine = Quarantine::open(self.lake, self.spec, rows.columns.clone(), self.stamp(states)).await?;
            match self.write(rows, inputs, &target, &mut quarantine, joins).await {
                Ok(Made::Rows(written)) => {
                    report.inputs = self.reads(inputs, states, &BTreeMap::new(), &written.scanned).await?;
                    let ended = self.commit(*written, target, quarantine, definition, states, report).await?;
                    if let Ended::Committed = ended {
                        late.tell(report);
                    }
                    return Ok(ended);
                }
                Ok(Made::NeedsSpilling) => {
                    tracing::warn!(view = %self.spec.table, "a hash join did not fit in memory, planning with sort-merge joins");
                    report.notes.push("a hash join did not fit in memory: the query was planned again with sort-merge joins".to_owned());
                    quarantine.abandon().await;
                    joins = Joins::SortMerge;
                }
                Err(error) => {
                    quarantine.abandon().await;
                    return Err(error);
                }
            }
        }
    }

    fn stamp(&self, states: &[InputState]) -> Stamp {
        Stamp {
            run_id: self.options.run_id.clone(),
            now_us: self.lake.clock().now().timestamp_micros(),
            source_versions: states.iter().map(|state| (state.table.to_string(), version_of(state))).collect(),
        }
    }

    /// Runs the query into files.
    async fn write(&self, rows: Rows, inputs: &[Input], target: &Target, quarantine: &mut Quarantine<'_>, joins: Joins) -> Result<Made> {
        let planned = |error| Error::planned(&self.spec.table, error);
        let frame = self.sorted(rules::ask(self.spec, rows.frame, &own_names(self.options))?)?;
        let context = Arc::new(frame.task_ctx());
        let physical = frame.create_physical_plan().await.map_err(planned)?;
        let may_spill = joins == Joins::Hash && has_hash_join(physical.as_ref());
        let stream = execute_stream(Arc::clone(&physical), context).map_err(planned)?;
        let options = WriterOptions { columns: Some(target.columns.clone()), layout: target.lies.clone(), ..WriterOptions::default() };
        let mut writer = target.table.writer(options).map_err(Error::lake("writing", &self.spec.table))?;
        let mut tally = Tally::default();
        match self.pump(stream, &mut writer, quarantine, &mut tally).await {
            Ok(rows_in) => {
                let adds = writer.finish().await.map_err(Error::lake("writing", &self.spec.table))?;
                let mut scanned = Scanned::default();
                scanned.take_in(self.lake, inputs, physical.as_ref());
                Ok(Made::Rows(Box::new(Written { adds, rows_in, tally, scanned })))
            }
            Err(error) => {
                if let Err(error) = writer.abandon().await {
                    tracing::debug!(view = %self.spec.table, %error, "an unfinished file stays until vacuum");
                }
                if may_spill && matches!(error, Error::OutOfMemory { .. }) { Ok(Made::NeedsSpilling) } else { Err(error) }
            }
        }
    }

    /// Rows in the order their layout asks for.
    fn sorted(&self, frame: DataFrame) -> Result<DataFrame> {
        let layout = self.spec.partition_by.iter().chain(&self.spec.cluster_by).chain(&self.spec.zorder_by);
        let order: Vec<_> = layout.map(|column| ident(column).sort(true, true)).collect();
        if order.is_empty() {
            return Ok(frame);
        }
        frame.sort(order).map_err(|error| Error::planned(&self.spec.table, error))
    }

    async fn pump(
        &self,
        mut stream: SendableRecordBatchStream,
        writer: &mut DataWriter,
        quarantine: &mut Quarantine<'_>,
        tally: &mut Tally,
    ) -> Result<u64> {
        let mut rows_in = 0;
        loop {
            let next = self.options.cancel.run_until_cancelled(stream.next()).await;
            let Some(next) = next else { return Err(Error::Cancelled { table: self.spec.table.clone() }) };
            let Some(batch) = next else { return Ok(rows_in) };
            let batch = batch.map_err(|error| Error::failed(&self.spec.table, error))?;
            rows_in += batch.num_rows() as u64;
            if let Some(progress) = &self.options.progress {
                progress(rows_in);
            }
            let kept = self.sift(&batch, quarantine, tally).await?;
            writer.write(&kept).await.map_err(Error::lake("writing", &self.spec.table))?;
        }
    }

    /// The rows that stay, the others sent where the rules send them.
    async fn sift(&self, batch: &RecordBatch, quarantine: &mut Quarantine<'_>, tally: &mut Tally) -> Result<RecordBatch> {
        if self.spec.expectations.is_empty() {
            return Ok(batch.clone());
        }
        let sifted = rules::sift(&self.spec.expectations, rules::key_columns(self.spec), batch, tally)
            .map_err(|error| Error::failed(&self.spec.table, error.into()))?;
        quarantine.write(&sifted).await?;
        Ok(sifted.kept)
    }

    async fn commit(
        &self,
        written: Written,
        target: Target,
        mut quarantine: Quarantine<'_>,
        definition: Definition,
        states: &[InputState],
        report: &mut DatasetReport,
    ) -> Result<Ended> {
        let Written { adds, rows_in, tally, .. } = written;
        if let Err(error) = self.ensure_unbroken(&tally) {
            quarantine.abandon().await;
            return Err(error);
        }
        self.ensure_wanted()?;
        let positions: Vec<(String, i64)> = states
            .iter()
            .flat_map(|state| [(app_id(&state.table), version_of(state)), (id_app_id(&state.table), state.identity)])
            .collect();
        let refused = quarantine.finish().await?;
        let rows_quarantined = quarantine.rows;
        if let Some(why) = quarantine.commit(refused, &positions).await?.and_then(lost) {
            return Ok(Ended::Lost(why));
        }
        let removes = target.table.files().await.map_err(Error::lake("reading", &self.spec.table))?;
        let rows_deleted = removes.iter().filter_map(DataFile::live_rows).sum();
        let rows_out = adds.iter().map(|file| file.rows).sum();
        let commit = Commit {
            operation: Operation::Overwrite,
            adds,
            removes,
            progress: self.progress(states),
            schema: target.changes_columns.then(|| target.columns.clone()),
            layout: target.lies,
            domains: BTreeMap::from([(DOMAIN.to_owned(), Some(definition.to_text()))]),
            reads: Reads::WholeTable,
            rewinds: self.options.full_refresh || states.iter().any(InputState::is_made_again),
            replaces: self.options.full_refresh,
            metrics: BTreeMap::from([("numOutputRows".to_owned(), u64::to_string(&rows_out))]),
            ..Commit::default()
        };
        let ended = self.commit_view(&target.table, commit, states, tally, report).await?;
        if let Ended::Committed = ended {
            tracing::info!(view = %self.spec.table, version = report.version_to, rows = rows_out, reason = %report.reason, "refreshed in full");
            (report.rows_in, report.rows_out, report.rows_quarantined) = (rows_in, rows_out, rows_quarantined);
            (report.rows_inserted, report.rows_deleted) = (rows_out, rows_deleted);
        }
        Ok(ended)
    }

    /// Whether the view would follow its inputs.
    ///
    /// # Errors
    /// [`Error::IncrementalUnavailable`] where it is to follow or stop, and could never follow.
    async fn follows(&self, rows: &Rows, inputs: &[Input]) -> Result<bool> {
        if self.spec.refresh == Refresh::Full {
            return Ok(false);
        }
        match means_of(self.spec, rows, inputs, &(0..inputs.len()).collect(), &[]).await? {
            Err(reason) if self.spec.refresh == Refresh::Incremental => {
                Err(Error::IncrementalUnavailable { table: self.spec.table.clone(), reason })
            }
            means => Ok(means.is_ok()),
        }
    }
}

fn has_hash_join(plan: &dyn ExecutionPlan) -> bool {
    plan.name() == "HashJoinExec" || plan.children().into_iter().any(|child| has_hash_join(child.as_ref()))
}
