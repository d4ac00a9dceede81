//! Making a pipeline's tables ahead of its first run.

mod growth;

use tributary_lake::{Difference, Table};
use tributary_specs::{DatasetRef, Layer, SourceFeed, TableName, TableSpec};

use growth::Growth;

use crate::options::is_chosen;
use crate::{Error, Lake, Pipeline};

/// What [`Lake::setup`] found of one dataset's table.
///
/// ```no_run
/// # async fn f(lake: tributary::Lake, pipeline: tributary::Pipeline) -> Result<(), tributary::Error> {
/// for setup in lake.setup(&pipeline, &tributary::Layer::ALL, &[]).await? {
///     println!("{} {:?}", setup.table, setup.outcome);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSetup {
    /// The table.
    pub table: TableName,
    /// Its layer.
    pub layer: Layer,
    /// What became of it.
    pub outcome: SetupOutcome,
}

/// What became of one table.
///
/// ```
/// assert_ne!(tributary::SetupOutcome::Created, tributary::SetupOutcome::AsDeclared);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupOutcome {
    /// It was not there and is now, without rows.
    Created,
    /// It is there as the pipeline declares it, or as its schema policy and its input have let it grow since.
    AsDeclared,
    /// It is there and differs; nothing was changed.
    Differs(Vec<Difference>),
    /// Its change feed or deletion vectors were turned on or off as declared; what else differs was not changed.
    Changed {
        /// What was changed: the table as it was.
        changed: Vec<Difference>,
        /// What still differs.
        left: Vec<Difference>,
    },
    /// Only its first rows can tell its columns: the first run makes it.
    LeftToFirstRun,
}

impl Lake {
    /// Makes the tables of a pipeline's datasets that are not there, and compares those that are. A table of ours that itself turns its
    /// change feed or deletion vectors on or off otherwise than declared is changed, by one commit of metadata and protocol; nothing
    /// else is changed, and nothing dropped.
    ///
    /// `layers` and `only` choose datasets as in [`crate::RunOptions`].
    ///
    /// # Errors
    /// As [`Lake::run`]'s before any dataset has its turn, and what a layer's own planning of its table reports.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake, pipeline: tributary::Pipeline) -> Result<(), tributary::Error> {
    /// let setups = lake.setup(&pipeline, &tributary::Layer::ALL, &[]).await?;
    /// # Ok(()) }
    /// ```
    pub async fn setup(&self, pipeline: &Pipeline, layers: &[Layer], only: &[TableName]) -> Result<Vec<TableSetup>, Error> {
        let pipeline = &pipeline.with_functions_of(self).await?;
        let mut setups = Vec::new();
        for dataset in pipeline.spec().phases()?.into_iter().flatten() {
            if is_chosen(layers, only, dataset.layer, &dataset.table) {
                let outcome = self.set_up(pipeline, &dataset).await?;
                setups.push(TableSetup { table: dataset.table, layer: dataset.layer, outcome });
            }
        }
        Ok(setups)
    }

    /// The table a dataset of the pipeline makes, as far as it can be told before its first run.
    ///
    /// # Errors
    /// What a layer's own planning of its table reports.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake, pipeline: tributary::Pipeline) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Some(spec) = lake.declared(&pipeline, &"silver.orders".parse()?).await? {
    ///     println!("{}", tributary::sql::create_table("main", &spec));
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn declared(&self, pipeline: &Pipeline, table: &TableName) -> Result<Option<TableSpec>, Error> {
        let pipeline = &pipeline.with_functions_of(self).await?;
        let datasets = pipeline.spec().phases()?.into_iter().flatten();
        match datasets.into_iter().find(|dataset| dataset.table.same_without_case(table)) {
            Some(dataset) => self.declaration(pipeline, &dataset, None).await,
            None => Ok(None),
        }
    }

    async fn set_up(&self, pipeline: &Pipeline, dataset: &DatasetRef) -> Result<SetupOutcome, Error> {
        let table = self.inner().table(&dataset.table).await?;
        let Some(spec) = self.declaration(pipeline, dataset, table.as_ref()).await? else { return Ok(SetupOutcome::LeftToFirstRun) };
        let Some(table) = table else {
            self.inner().create(&spec).await?;
            return Ok(SetupOutcome::Created);
        };
        let spec = growth(pipeline, dataset).of_table(&spec, table.columns(), table.version() == 0);
        let changed = table.said_otherwise(&spec);
        if !changed.is_empty() {
            self.inner().bring_to_declaration(table, &spec).await?;
            return Ok(SetupOutcome::Changed { changed, left: self.inner().difference(&spec).await? });
        }
        let differences = self.inner().difference(&spec).await?;
        Ok(if differences.is_empty() { SetupOutcome::AsDeclared } else { SetupOutcome::Differs(differences) })
    }

    /// The table of a dataset; where only messages tell the columns of a feed, those that the table has.
    pub(crate) async fn declaration(
        &self,
        pipeline: &Pipeline,
        dataset: &DatasetRef,
        table: Option<&Table>,
    ) -> Result<Option<TableSpec>, Error> {
        let spec = pipeline.spec();
        match dataset.layer {
            Layer::Bronze => {
                let feed = &spec.feeds[dataset.index];
                match table.filter(|_| feed.columns.is_empty()) {
                    None => Ok(tributary_bronze::table_spec(feed)?),
                    Some(table) => {
                        let columns = table.columns().iter().filter(|column| !column.name.starts_with('_')).cloned().collect();
                        Ok(tributary_bronze::table_spec(&SourceFeed { columns, ..feed.clone() })?)
                    }
                }
            }
            Layer::Silver => {
                let silver = &spec.silver[dataset.index];
                Ok(tributary_silver_merge::table_spec(self.inner(), silver, &pipeline.silver_options(silver)).await?)
            }
            Layer::Gold => {
                let gold = &spec.gold[dataset.index];
                Ok(tributary_gold_agg::table_spec(self.inner(), gold, &pipeline.gold_options(gold)).await?)
            }
        }
    }
}

/// How far a dataset's table may go beyond its declaration.
fn growth(pipeline: &Pipeline, dataset: &DatasetRef) -> Growth {
    let spec = pipeline.spec();
    match dataset.layer {
        Layer::Bronze => Growth::of_feed(&spec.feeds[dataset.index]),
        Layer::Silver => Growth::of_silver(&spec.silver[dataset.index], pipeline.build_of(&dataset.table).is_some()),
        Layer::Gold => Growth::of_gold(&spec.gold[dataset.index]),
    }
}
