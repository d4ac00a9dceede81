//! What the tables of a pipeline will look like after a run, worked out without touching the lake: each table is made, without rows, in
//! a lake in memory, as it is or as its layer would make it, and what reads it is planned over that.

use std::collections::{BTreeMap, BTreeSet};

use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::{Commit, Operation, Progress, Table};
use tributary_specs::{Column, DatasetRef, GrowthPolicy, Layer, SchemaPolicy, SourceFeed, TableName, TableSpec};

use crate::check::missed_column;
use crate::{Error, Lake, OpenOptions, Pipeline};

/// A dataset and its table before and after.
pub(crate) struct Foreseen {
    pub dataset: DatasetRef,
    /// The table as it is.
    pub table: Option<Table>,
    /// What its layer declares, where that can be told.
    pub declared: Option<TableSpec>,
    /// Why it cannot.
    pub unknown: Option<String>,
    /// What would stop it.
    pub error: Option<Error>,
    /// Whether columns of its table may get wider types.
    widens: bool,
}

impl Foreseen {
    /// Its columns after the run, as far as they are known.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let mut columns = self.table.as_ref().map(|table| table.columns().to_vec()).unwrap_or_default();
        for column in self.declared.iter().flat_map(|spec| &spec.columns) {
            match columns.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&column.name)) {
                Some(known) if self.widens => {
                    let with_fields = known.data_type.with_fields_of(&column.data_type);
                    known.data_type = with_fields.joined(&column.data_type.with_fields_of(&known.data_type));
                }
                Some(known) => known.data_type = known.data_type.with_fields_of(&column.data_type),
                None => columns.push(column.clone()),
            }
        }
        columns
    }
}

/// The pipeline's datasets in the order of their phases, and the columns of every table that is read.
pub(crate) struct Forecast {
    pub datasets: Vec<Foreseen>,
    pub schemas: BTreeMap<TableName, SchemaRef>,
    /// Tables that are read and that something else makes.
    pub external: BTreeMap<TableName, Table>,
}

/// Every table that a dataset reads.
pub(crate) fn reads(pipeline: &Pipeline, dataset: &DatasetRef) -> Vec<TableName> {
    let spec = pipeline.spec();
    match dataset.layer {
        Layer::Bronze => Vec::new(),
        Layer::Silver => spec.silver[dataset.index].reads().into_iter().cloned().collect(),
        Layer::Gold => spec.gold[dataset.index].sources.clone(),
    }
}

/// The pipeline with the functions that its texts may call besides its own, as a run has it.
///
/// # Errors
/// As [`Lake::run`]'s before any dataset has its turn.
pub(crate) async fn with_functions(lake: &Lake, pipeline: &Pipeline) -> Result<Pipeline, Error> {
    let functions = crate::sql::functions_beside(lake.inner(), pipeline.functions()).await?;
    Ok(pipeline.clone().with_functions(functions))
}

/// Works it out. Reads logs of the lake and writes nothing to it.
///
/// # Errors
/// [`Error::Spec`] for datasets that read each other in a circle; the lake's, when it cannot be read.
pub(crate) async fn forecast(lake: &Lake, pipeline: &Pipeline) -> Result<Forecast, Error> {
    let options = lake.inner().options();
    let shadow = OpenOptions {
        catalogue: options.catalogue.clone(),
        clock: std::sync::Arc::clone(&options.clock),
        memory_limit: options.memory_limit,
        ..OpenOptions::default()
    };
    let mut work = Work {
        lake,
        pipeline,
        shadow: Lake::open("memory://", shadow)?,
        unknown: BTreeMap::new(),
        growing: BTreeSet::new(),
        found: Forecast { datasets: Vec::new(), schemas: BTreeMap::new(), external: BTreeMap::new() },
    };
    let datasets: Vec<DatasetRef> = pipeline.spec().phases()?.into_iter().flatten().collect();
    let made: BTreeSet<TableName> = datasets.iter().map(|dataset| dataset.table.folded()).collect();
    for dataset in datasets {
        for source in reads(pipeline, &dataset).into_iter().filter(|source| !made.contains(&source.folded())) {
            work.external(&source).await?;
        }
        work.dataset(dataset).await?;
    }
    Ok(work.found)
}

struct Work<'a> {
    lake: &'a Lake,
    pipeline: &'a Pipeline,
    shadow: Lake,
    /// Tables of which the columns cannot be told, and why.
    unknown: BTreeMap<TableName, String>,
    /// Tables that may get more columns than are declared.
    growing: BTreeSet<TableName>,
    found: Forecast,
}

impl Work<'_> {
    async fn external(&mut self, name: &TableName) -> Result<(), Error> {
        if self.found.schemas.contains_key(name) || self.unknown.contains_key(name) {
            return Ok(());
        }
        match self.lake.inner().table(name).await? {
            Some(table) => {
                self.make(name, as_it_is(&table)).await;
                self.found.external.insert(name.clone(), table);
            }
            None => _ = self.unknown.insert(name.clone(), format!("`{name}`, which it reads, is not there")),
        }
        Ok(())
    }

    async fn dataset(&mut self, dataset: DatasetRef) -> Result<(), Error> {
        let table = self.lake.inner().table(&dataset.table).await?;
        let sources = reads(self.pipeline, &dataset);
        let missing = sources.iter().find_map(|source| self.unknown.get(source).cloned());
        let (declared, unknown, error) = match missing {
            Some(why) => (None, Some(why), None),
            None => match self.declared(&dataset, table.as_ref()).await {
                Ok(Some(spec)) => (Some(spec), None, None),
                Ok(None) => (None, Some(format!("only first rows tell the columns of `{}`", dataset.table)), None),
                Err(error) => match missed_column(&error) {
                    Some((column, None)) if self.reads_growing(&sources) => {
                        (None, Some(format!("no feed declares `{column}`, which messages may bring")), None)
                    }
                    _ => (None, None, Some(error)),
                },
            },
        };
        if self.grows(&dataset, &sources) {
            self.growing.insert(dataset.table.folded());
        }
        let widens = self.widens(&dataset);
        let foreseen = Foreseen { dataset, table, declared, unknown, error, widens };
        let name = foreseen.dataset.table.clone();
        match (&foreseen.declared, &foreseen.table) {
            (None, None) => {
                let why = foreseen.unknown.clone().unwrap_or_else(|| format!("`{name}`, which it reads, cannot be made"));
                self.unknown.insert(name, why);
            }
            (declared, table) => {
                let mut spec =
                    table.as_ref().map(as_it_is).or_else(|| declared.clone()).unwrap_or_else(|| TableSpec::new(name.clone(), Vec::new()));
                spec.columns = foreseen.columns();
                self.make(&name, spec).await;
            }
        }
        self.found.datasets.push(foreseen);
        Ok(())
    }

    fn widens(&self, dataset: &DatasetRef) -> bool {
        let spec = self.pipeline.spec();
        match dataset.layer {
            Layer::Bronze => spec.feeds[dataset.index].schema_policy == SchemaPolicy::Widen,
            Layer::Silver => spec.silver[dataset.index].schema_policy == GrowthPolicy::Widen,
            Layer::Gold => false,
        }
    }

    fn grows(&self, dataset: &DatasetRef, sources: &[TableName]) -> bool {
        let spec = self.pipeline.spec();
        match dataset.layer {
            Layer::Bronze => matches!(spec.feeds[dataset.index].schema_policy, SchemaPolicy::Add | SchemaPolicy::Widen),
            Layer::Silver => spec.silver[dataset.index].schema.is_empty() && self.reads_growing(sources),
            Layer::Gold => spec.gold[dataset.index].schema.is_empty() && self.reads_growing(sources),
        }
    }

    fn reads_growing(&self, sources: &[TableName]) -> bool {
        sources.iter().any(|source| self.growing.contains(&source.folded()))
    }

    /// What the layer makes of the dataset over the tables in memory.
    async fn declared(&self, dataset: &DatasetRef, table: Option<&Table>) -> Result<Option<TableSpec>, Error> {
        let spec = self.pipeline.spec();
        let lake = self.shadow.inner();
        Ok(match dataset.layer {
            Layer::Bronze => {
                let feed = &spec.feeds[dataset.index];
                let known = table.filter(|_| feed.columns.is_empty());
                let of_table = known.map(|table| {
                    let columns = table.columns().iter().filter(|column| !column.name.starts_with('_')).cloned().collect();
                    SourceFeed { columns, ..feed.clone() }
                });
                tributary_bronze::table_spec(of_table.as_ref().unwrap_or(feed))?
            }
            Layer::Silver => {
                let silver = &spec.silver[dataset.index];
                tributary_silver_merge::table_spec(lake, silver, &self.pipeline.silver_options(silver)).await?
            }
            Layer::Gold => {
                let gold = &spec.gold[dataset.index];
                tributary_gold_agg::table_spec(lake, gold, &self.pipeline.gold_options(gold)).await?
            }
        })
    }

    /// Makes a table in memory, so that it counts as written to: the layers think that a new one may yet get columns.
    async fn make(&mut self, name: &TableName, spec: TableSpec) {
        // how rows lie and what they must meet is nothing to a plan
        let spec = TableSpec { partition_by: Vec::new(), cluster_by: Vec::new(), checks: Vec::new(), ..spec };
        let made = async {
            let table = self.shadow.inner().create(&spec).await?;
            let progress = vec![Progress { app_id: "tributary:foreseen".to_owned(), expected: None, version: 0 }];
            let _ = table.commit(Commit { operation: Operation::Write, progress, ..Commit::default() }).await?;
            Ok::<_, tributary_lake::Error>(table.schema())
        };
        match made.await {
            Ok(schema) => _ = self.found.schemas.insert(name.clone(), schema),
            Err(error) => _ = self.unknown.insert(name.clone(), format!("`{name}`, which it reads: {}", tributary_fault::chain(&error))),
        }
    }
}

/// A table as it would be declared.
fn as_it_is(table: &Table) -> TableSpec {
    let kept = |name: &&String| name.starts_with("tributary.");
    let properties = table.properties().iter().filter(|(name, _)| kept(name)).map(|(name, value)| (name.clone(), value.clone()));
    let row_changes = table.properties().get("tributary.rowChanges").is_some_and(|value| value == "true");
    TableSpec { properties: properties.collect(), row_changes, ..TableSpec::new(table.name().clone(), table.columns().to_vec()) }
}
