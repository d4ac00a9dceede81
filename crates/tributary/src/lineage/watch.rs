//! Lineage of a run as it goes on: of each dataset that commits it is worked out once, told to a sink, and kept when the run ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use futures::FutureExt;
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::{Lake, Table};
use tributary_specs::{DatasetRef, DatasetReport, Layer, Status, TableName};

use super::kept::{self, Committed};
use super::openlineage::{Event, Job, OpenLineage};
use super::{Lineage, of_dataset};
use crate::{Error, Pipeline, RunReport, WithinJob};

/// The run that writes, and what it is done for.
#[derive(Debug, Clone)]
pub(crate) struct By {
    pub run_id: String,
    pub within: Option<WithinJob>,
}

/// What a run knows of its lineage.
pub(crate) struct Watch {
    lake: Lake,
    pipeline: Pipeline,
    by: By,
    continuous: bool,
    sink: Option<OpenLineage>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of datasets that have committed.
    lineage: BTreeMap<TableName, Arc<Lineage>>,
    /// Datasets whose lineage is in the system tables.
    kept: BTreeSet<TableName>,
    /// Datasets that have begun: the id of their run and when that was.
    begun: BTreeMap<TableName, Begun>,
}

#[derive(Clone)]
struct Begun {
    run_id: String,
    at: DateTime<Utc>,
}

impl Watch {
    pub(crate) fn new(lake: Lake, pipeline: Pipeline, by: By, continuous: bool, sink: Option<OpenLineage>) -> Self {
        Self { lake, pipeline, by, continuous, sink, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work on datasets begins. A continuous run tells of it when something came of it.
    pub(crate) fn begins(&self, tables: &[TableName]) {
        let Some(sink) = &self.sink else { return };
        for dataset in self.datasets().into_iter().filter(|dataset| tables.contains(&dataset.table)) {
            let begun = Begun { run_id: self.lake.new_id().to_string(), at: self.lake.clock().now() };
            if !self.continuous {
                sink.tell(&self.job(&dataset, &begun), &Event::Start, begun.at);
            }
            self.state().begun.insert(dataset.table, begun);
        }
    }

    /// A dataset has ended its turn.
    pub(crate) async fn ended(&self, report: &DatasetReport) {
        let datasets = self.datasets();
        let Some(dataset) = datasets.iter().find(|dataset| dataset.table.to_string() == report.table) else { return };
        let tables = match report.status {
            Status::Committed => self.committed(dataset).boxed().await,
            Status::NothingNew | Status::Failed | Status::Skipped => None,
        };
        let Some(sink) = &self.sink else { return };
        let Some(begun) = self.state().begun.remove(&dataset.table) else { return };
        if self.continuous && report.status == Status::NothingNew {
            return;
        }
        let job = self.job(dataset, &begun);
        if self.continuous {
            sink.tell(&job, &Event::Start, begun.at);
        }
        let event = match report.status {
            Status::Failed | Status::Skipped => Event::Fail { report },
            Status::Committed | Status::NothingNew => Event::Complete { report, tables: tables.as_ref() },
        };
        sink.tell(&job, &event, self.lake.clock().now());
    }

    /// Keeps the lineage of the datasets that the run has committed to, each once. What goes wrong here is logged, never the run's
    /// failure.
    pub(crate) async fn keep(&self, report: &RunReport) {
        // what was given up when the run had to end
        for dataset in report.datasets.iter().filter(|_| !self.continuous) {
            let is_begun = self.state().begun.keys().any(|table| table.to_string() == dataset.table);
            if is_begun {
                self.ended(dataset).await;
            }
        }
        if let Err(error) = self.try_keep(report).boxed().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "system.access.table_lineage and column_lineage were not written");
        }
    }

    async fn try_keep(&self, report: &RunReport) -> Result<(), Error> {
        let datasets = self.datasets();
        let committed: Vec<&DatasetRef> = datasets
            .iter()
            .filter(|dataset| {
                let of = |one: &&DatasetReport| one.commits > 0 && one.table == dataset.table.to_string();
                report.datasets.iter().any(|one| of(&one)) && !self.state().kept.contains(&dataset.table)
            })
            .collect();
        if committed.is_empty() {
            return Ok(());
        }
        let layers: BTreeMap<TableName, Layer> = datasets.iter().map(|dataset| (dataset.table.folded(), dataset.layer)).collect();
        let mut rows = Vec::new();
        for dataset in &committed {
            let known = self.state().lineage.get(&dataset.table).cloned();
            let lineage = match known {
                Some(known) => known,
                None => match self.committed(dataset).await {
                    Some(tables) => tables.lineage,
                    None => continue,
                },
            };
            rows.push(Committed { table: dataset.table.clone(), layer: dataset.layer, lineage: lineage.as_ref().clone() });
        }
        kept::append(&self.lake, &self.pipeline.spec().name, &self.by, &layers, &rows).await?;
        self.state().kept.extend(committed.into_iter().map(|dataset| dataset.table.clone()));
        Ok(())
    }

    /// The lineage of a dataset that has committed. With a sink it is worked out anew each time, for columns may have come.
    async fn committed(&self, dataset: &DatasetRef) -> Option<Tables> {
        match self.tables(dataset).await {
            Ok(tables) => {
                self.state().lineage.insert(dataset.table.clone(), Arc::clone(&tables.lineage));
                Some(tables)
            }
            Err(error) => {
                tracing::debug!(table = %dataset.table, error = &error as &dyn std::error::Error, "its lineage could not be told");
                None
            }
        }
    }

    async fn tables(&self, dataset: &DatasetRef) -> Result<Tables, Error> {
        let known = self.state().lineage.get(&dataset.table).cloned();
        if let (Some(lineage), None) = (known, &self.sink) {
            return Ok(Tables { lineage, target: None, sources: BTreeMap::new() });
        }
        let target = self.lake.table(&dataset.table).await?;
        let mut sources = BTreeMap::new();
        for source in self.pipeline.sources_of(dataset.layer, dataset.index) {
            if let Some(table) = self.lake.table(source).await? {
                sources.insert(source.clone(), table);
            }
        }
        let schemas: BTreeMap<TableName, SchemaRef> = sources.iter().map(|(name, table)| (name.clone(), table.schema())).collect();
        let columns: Vec<String> = target.iter().flat_map(|table| table.columns()).map(|column| column.name.clone()).collect();
        let lineage = Arc::new(of_dataset(&self.lake, &self.pipeline, dataset, &columns, &schemas).await);
        Ok(Tables { lineage, target, sources })
    }

    fn datasets(&self) -> Vec<DatasetRef> {
        self.pipeline.spec().datasets()
    }

    fn job<'a>(&'a self, dataset: &'a DatasetRef, begun: &'a Begun) -> Job<'a> {
        Job {
            lake: &self.lake,
            pipeline: &self.pipeline,
            dataset,
            run_id: &begun.run_id,
            parent_id: &self.by.run_id,
            within: self.by.within.as_ref(),
            continuous: self.continuous,
        }
    }
}

/// A dataset's lineage, its table and its sources as a run left them.
pub(super) struct Tables {
    pub lineage: Arc<Lineage>,
    pub target: Option<Table>,
    pub sources: BTreeMap<TableName, Table>,
}
