//! What the tables of a pipeline will look like after a run, worked out without touching the lake: each table is made, without rows, in
//! a lake in memory, as it is or as its layer would make it, and what reads it is planned over that.

use std::collections::{BTreeMap, BTreeSet};

use tributary_lake::Table;
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_specs::{Column, DatasetRef, GrowthPolicy, Layer, SchemaPolicy, TableName, TableSpec};

use crate::check::{grows, make, missed_column};
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
    /// What would stop it unless new rows of a source bring the column that it misses.
    pub missed: Option<Error>,
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
        for source in pipeline.sources_of(dataset.layer, dataset.index).into_iter().filter(|source| !made.contains(&source.folded())) {
            work.external(source).await?;
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
        let sources = self.pipeline.sources_of(dataset.layer, dataset.index);
        let missing = sources.iter().find_map(|source| self.unknown.get(*source).cloned());
        let mut missed = None;
        let (declared, unknown, error) = match missing {
            Some(why) => (None, Some(why), None),
            None => match self.shadow.declaration(self.pipeline, &dataset, table.as_ref()).await {
                Ok(Some(spec)) => (Some(spec), None, None),
                Ok(None) => (None, Some(format!("only first rows tell the columns of `{}`", dataset.table)), None),
                Err(error) => match missed_column(&error) {
                    Some((column, None)) if self.reads_growing(&sources) => {
                        let why = format!("no feed declares `{column}`, which messages may bring");
                        missed = Some(error);
                        (None, Some(why), None)
                    }
                    _ => (None, None, Some(error)),
                },
            },
        };
        if grows(self.pipeline, &dataset, self.reads_growing(&sources)) {
            self.growing.insert(dataset.table.folded());
        }
        let widens = self.widens(&dataset);
        let foreseen = Foreseen { dataset, table, declared, unknown, error, missed, widens };
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

    fn reads_growing(&self, sources: &[&TableName]) -> bool {
        sources.iter().any(|source| self.growing.contains(&source.folded()))
    }

    /// Makes a table in memory.
    async fn make(&mut self, name: &TableName, spec: TableSpec) {
        // what its rows must meet is nothing to a plan
        match make(&self.shadow, &TableSpec { checks: Vec::new(), ..spec }).await {
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
