//! A run that ends: phases in order, datasets of a phase side by side.

use std::collections::BTreeSet;
use std::time::Instant;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tributary_specs::{Layer, Status, TableName};

use super::GRACE;
use super::lag::SourceTimes;
use super::work::{Run, Unfinished, Work, skipped};
use crate::report::{Finished, millis};
use crate::{Error, ProgressEvent, RunReport};

/// Brings everything chosen up to date with what is there now.
pub(super) async fn drain(run: &Run, phases: Vec<Vec<Work>>) -> Result<RunReport, Error> {
    let started = Instant::now();
    let started_at = run.lake.inner().clock().now();
    let chosen: usize = phases.iter().flatten().map(|work| work.tables(&run.pipeline).len()).sum();
    let mut drain = Drain { run, failed: BTreeSet::new(), times: SourceTimes::default(), finished: Vec::new() };
    let count = phases.len();
    for (phase, works) in phases.into_iter().enumerate() {
        if run.options.cancel.is_cancelled() {
            break;
        }
        run.options.progress.event(&ProgressEvent::PhaseStarted { phase, phases: count });
        drain.phase(works).await;
    }
    let cancelled = run.options.cancel.is_cancelled() && drain.finished.len() < chosen;
    let datasets = drain.finished.into_iter().map(|finished| finished.report).collect();
    let report = run.report(started_at, millis(started.elapsed()), cancelled, datasets);
    run.record(&report).await;
    report.datasets.iter().for_each(|dataset| run.lake.announce(dataset));
    Ok(report)
}

struct Drain<'a> {
    run: &'a Run,
    failed: BTreeSet<TableName>,
    times: SourceTimes,
    finished: Vec<Finished>,
}

impl Drain<'_> {
    async fn phase(&mut self, works: Vec<Work>) {
        let run = self.run;
        let started = Instant::now();
        let mut running: FuturesUnordered<BoxFuture<'_, Vec<Finished>>> = FuturesUnordered::new();
        let mut open: BTreeSet<(Layer, TableName)> = BTreeSet::new();
        let mut finished = Vec::new();
        for work in works {
            let (layer, tables) = (work.layer(), work.tables(&run.pipeline).into_iter().cloned().collect::<Vec<_>>());
            match work.sources(&run.pipeline).into_iter().find(|source| self.failed.contains(*source)) {
                Some(source) => finished.extend(tables.iter().map(|table| skipped(layer, table, source))),
                None => {
                    open.extend(tables.iter().map(|table| (layer, table.clone())));
                    running.push(async move { run.work(&work, &tables).await }.boxed());
                }
            }
        }
        let too_long = async {
            run.options.cancel.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::pin!(too_long);
        loop {
            tokio::select! {
                next = running.next() => match next {
                    Some(reports) => {
                        reports.iter().for_each(|one| open.retain(|(_, table)| table.to_string() != one.report.table));
                        finished.extend(reports);
                    }
                    None => break,
                },
                () = &mut too_long => {
                    let left = open.into_iter();
                    finished.extend(left.map(|(layer, table)| Finished { layer, report: Unfinished::Interrupted { table }.report(started) }));
                    break;
                }
            }
        }
        drop(running);
        finished.sort_by(|a, b| (a.layer, &a.report.table).cmp(&(b.layer, &b.report.table)));
        finished.into_iter().for_each(|one| self.end(one));
    }

    fn end(&mut self, mut one: Finished) {
        self.times.note(&mut one.report, self.run.lake.inner().clock().now());
        self.run.options.progress.event(&ProgressEvent::DatasetFinished { layer: one.layer, report: Box::new(one.report.clone()) });
        if matches!(one.report.status, Status::Failed | Status::Skipped)
            && let Ok(table) = one.report.table.parse()
        {
            self.failed.insert(table);
        }
        self.finished.push(one);
    }
}
