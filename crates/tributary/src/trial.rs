//! One dataset over rows that are given: what its sources hold is written into a lake in memory, and the layer's own engine runs it.
//!
//! Tables have the columns that the pipeline declares or that follow from it; where only first records could tell them, from the rows
//! that are given. Columns of ours that a row does not give are filled in: changes of a feed come in the order they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use tributary_fault::nearest;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::arrow::json::ReaderBuilder;
use tributary_lake::arrow::json::reader::infer_json_schema_from_iterator;
use tributary_specs::{Column, Layer, SourceFeed, TableName, TableSpec};

use crate::{Error, Lake, OpenOptions, Pipeline, RunOptions, RunReport, check, system};

/// A row by its columns; one that is left out is null.
pub type GivenRow = Map<String, Json>;

/// What the datasets of a pipeline are tried with.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
/// let pipeline = tributary::Pipeline::from_yaml(&[("shop.yml", "
/// name: shop
/// feeds:
///   - {name: visits, table: bronze.visits, decode: json, source: {files: {path: visits, format: jsonl}}, columns: [{name: page, type: string}]}
/// gold:
///   - {table: gold.pages, query: 'select page, count(*) as visits from bronze.visits group by page'}
/// ")])?;
/// let mut trial = pipeline.trials().await?.begin("gold.pages")?;
/// let row = |text: &str| serde_json::from_str::<tributary::GivenRow>(text).unwrap();
/// trial.give("bronze.visits", &[row(r#"{"page": "a"}"#), row(r#"{"page": "a"}"#)], &[]).await?;
/// assert!(trial.run().await?.datasets[0].error.is_none());
/// assert_eq!(trial.lake().table("gold.pages").await?.schema().field(1).name(), "visits");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Trials {
    pipeline: Pipeline,
    /// Tables whose columns are known before a run.
    specs: BTreeMap<TableName, TableSpec>,
    /// Those among them that may get more columns than are declared.
    growing: BTreeSet<TableName>,
}

/// One dataset and the rows its sources have so far.
///
/// ```no_run
/// # async fn f(trials: tributary::Trials) -> Result<(), tributary::Error> {
/// let trial = trials.begin("silver.orders")?;
/// println!("{}", trial.dataset());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Trial {
    trials: Trials,
    dataset: TableName,
    sources: Vec<TableName>,
    lake: Lake,
    /// Rows given so far, of all tables.
    given: u64,
}

impl Pipeline {
    /// Plans what each table holds, so that datasets can be tried.
    ///
    /// # Errors
    /// Those of [`Pipeline::check_queries`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
    /// let trials = tributary::Pipeline::builder("empty").build()?.trials().await?;
    /// assert!(trials.begin("silver.orders").is_err());
    /// # Ok(()) }
    /// ```
    pub async fn trials(&self) -> Result<Trials, Error> {
        let (specs, growing) = self.table_specs().await?;
        Ok(Trials { pipeline: self.clone(), specs, growing })
    }
}

impl Trials {
    /// A dataset of silver or gold with sources that have no rows yet, in a lake of its own.
    ///
    /// # Errors
    /// [`Error::NoDataset`] where the pipeline has none of this name.
    ///
    /// ```no_run
    /// # async fn f(pipeline: tributary::Pipeline) -> Result<(), tributary::Error> {
    /// let trial = pipeline.trials().await?.begin("silver.orders")?;
    /// # Ok(()) }
    /// ```
    pub fn begin(&self, dataset: &str) -> Result<Trial, Error> {
        let datasets = self.pipeline.spec().datasets();
        let made: Vec<_> = datasets.iter().filter(|made| made.layer != Layer::Bronze).collect();
        let found = made
            .iter()
            .find(|made| made.table.to_string().eq_ignore_ascii_case(dataset))
            .ok_or_else(|| Error::no_dataset(dataset, made.iter().map(|made| &made.table)))?;
        Ok(Trial {
            trials: self.clone(),
            dataset: found.table.clone(),
            sources: self.pipeline.sources_of(found.layer, found.index).into_iter().cloned().collect(),
            lake: Lake::open("memory://", OpenOptions::default())?,
            given: 0,
        })
    }

    /// What a table of the pipeline, or one that something else makes, holds; columns that nothing declares are taken from `seen`.
    /// A new name that is nearly a declared one is taken for a mistake, unless `types` has it.
    fn spec(&self, table: &TableName, seen: &[Column], types: &[Column]) -> Result<TableSpec, Error> {
        let known = self.specs.get(table);
        if let Some(known) = known.filter(|_| !self.growing.contains(table)) {
            return Ok(known.clone());
        }
        let declared = self.feed(table).map(|feed| feed.columns.as_slice()).or(known.map(|known| known.columns.as_slice()));
        let mut columns = declared.unwrap_or_default().to_vec();
        let is_new = |column: &&Column| {
            let is_it = |other: &Column| other.name.eq_ignore_ascii_case(&column.name);
            let of_ours = self.feed(table).is_some() && column.name.starts_with('_');
            let misspelt = nearest(&column.name, columns.iter().map(|known| known.name.as_str())).is_some();
            !columns.iter().any(is_it) && !of_ours && (!misspelt || types.iter().any(is_it))
        };
        let new: Vec<Column> = seen.iter().filter(is_new).cloned().collect();
        columns.extend(new);
        match (self.feed(table), known) {
            (Some(feed), _) => {
                let feed = SourceFeed { columns: columns.clone(), ..feed.clone() };
                Ok(tributary_bronze::table_spec(&feed)?.unwrap_or_else(|| TableSpec::new(table.clone(), columns)))
            }
            (None, Some(known)) => Ok(TableSpec { columns, ..known.clone() }),
            (None, None) => Ok(TableSpec::new(table.clone(), columns)),
        }
    }

    fn feed(&self, table: &TableName) -> Option<&SourceFeed> {
        self.pipeline.spec().feeds.iter().find(|feed| feed.table == *table)
    }
}

impl Trial {
    /// The dataset.
    ///
    /// ```no_run
    /// # fn f(trial: tributary::Trial) { println!("{}", trial.dataset()); }
    /// ```
    pub fn dataset(&self) -> &TableName {
        &self.dataset
    }

    /// The columns that tell its rows apart: the keys of a silver dataset, with the begin of each version where it keeps a history; none
    /// for gold.
    ///
    /// ```no_run
    /// # fn f(trial: tributary::Trial) { println!("{:?}", trial.keys()); }
    /// ```
    pub fn keys(&self) -> Vec<String> {
        let silver = self.trials.pipeline.spec().silver.iter().find(|silver| silver.table == self.dataset);
        let mut keys = silver.map(|silver| silver.keys.clone()).unwrap_or_default();
        if silver.is_some_and(|silver| matches!(silver.policy, tributary_specs::MergePolicy::ScdType2 { .. })) {
            keys.push("__START_AT".to_owned());
        }
        keys
    }

    /// Adds rows to a table, which need not be one that the dataset reads. `types` says of columns that nothing declares what they
    /// hold; of others the rows tell it.
    ///
    /// # Errors
    /// [`Error::GivenRows`] for columns that the table does not have and values that are not theirs.
    ///
    /// ```no_run
    /// # async fn f(mut trial: tributary::Trial, rows: Vec<tributary::GivenRow>) -> Result<(), tributary::Error> {
    /// trial.give("bronze.orders", &rows, &[]).await
    /// # }
    /// ```
    pub async fn give(&mut self, table: &str, rows: &[GivenRow], types: &[Column]) -> Result<(), Error> {
        let named: TableName = table.parse().map_err(|_| refused(table, "its name is not schema.table"))?;
        let known = |other: &&TableName| other.same_without_case(&named);
        let table = self.sources.iter().chain(self.trials.specs.keys()).find(known).cloned().unwrap_or(named);
        let spec = self.trials.spec(&table, &seen(&table, rows, types)?, types)?;
        if spec.columns.is_empty() {
            return Err(refused(&table.to_string(), "nothing says which columns it has"));
        }
        let filled = self.filled(&table, &spec, rows);
        let batch = rows_as(&table.to_string(), &Arc::new(Column::all_to_arrow(&spec.columns)), &filled)?;
        match batch.num_rows() {
            0 if self.lake.inner().table(&spec.name).await?.is_some() => Ok(()),
            0 => check::make(&self.lake, &spec).await.map(drop),
            _ => system::append(self.lake.inner(), &spec, batch).await,
        }
    }

    /// Rows with the columns of ours that they do not give.
    fn filled(&mut self, table: &TableName, spec: &TableSpec, rows: &[GivenRow]) -> Vec<GivenRow> {
        let feed = self.trials.feed(table);
        let has = |name: &str| spec.columns.iter().any(|column| column.name == name);
        let mut filled = Vec::with_capacity(rows.len());
        for row in rows {
            let mut row = row.clone();
            self.given += 1;
            if let Some(feed) = feed {
                let position = feed.has_position().then(|| Json::from(format!("000000/{:020}", self.given)));
                let ours = [
                    ("_op", Some(Json::from("create"))),
                    ("_position", position),
                    ("_topic", Some(Json::from("given"))),
                    ("_partition", Some(Json::from(0))),
                    ("_offset", Some(Json::from(self.given))),
                    ("_ingested_at", Some(Json::from("2000-01-01T00:00:00Z"))),
                ];
                for (name, value) in ours {
                    if let Some(value) = value.filter(|_| has(name) && !row.contains_key(name)) {
                        row.insert(name.to_owned(), value);
                    }
                }
            }
            filled.push(row);
        }
        filled
    }

    /// Runs the dataset alone over what its sources hold now. A source that was given no rows has none.
    ///
    /// # Errors
    /// [`Error::GivenRows`] for a source that was never given and whose columns nothing declares. That the dataset fails is no error:
    /// it is in the report.
    ///
    /// ```no_run
    /// # async fn f(mut trial: tributary::Trial) -> Result<(), tributary::Error> {
    /// println!("{:?}", trial.run().await?.datasets);
    /// # Ok(()) }
    /// ```
    pub async fn run(&mut self) -> Result<RunReport, Error> {
        for source in self.sources.clone() {
            if self.lake.inner().table(&source).await?.is_none() {
                self.give(&source.to_string(), &[], &[]).await?;
            }
        }
        self.lake.run(&self.trials.pipeline, RunOptions { only: vec![self.dataset.clone()], ..RunOptions::default() }).await
    }

    /// The lake that it runs in.
    ///
    /// ```no_run
    /// # async fn f(trial: tributary::Trial) -> Result<(), tributary::Error> {
    /// println!("{:?}", trial.lake().tables().await?);
    /// # Ok(()) }
    /// ```
    pub fn lake(&self) -> &Lake {
        &self.lake
    }
}

/// Columns as rows have them.
fn seen(table: &TableName, rows: &[GivenRow], types: &[Column]) -> Result<Vec<Column>, Error> {
    let unknown = |reason: String| refused(&table.to_string(), &reason);
    let values = rows.iter().map(|row| Ok(Json::Object(row.clone())));
    let schema = infer_json_schema_from_iterator(values).map_err(|error| unknown(error.to_string()))?;
    let said = |column: Column| types.iter().find(|said| said.name.eq_ignore_ascii_case(&column.name)).cloned().unwrap_or(column);
    let mut columns: Vec<Column> =
        Column::all_from_arrow(&schema).map_err(|error| unknown(error.to_string()))?.into_iter().map(said).collect();
    let lacking = types.iter().filter(|said| !columns.iter().any(|column| column.name.eq_ignore_ascii_case(&said.name)));
    let lacking: Vec<Column> = lacking.cloned().collect();
    columns.extend(lacking);
    Ok(columns)
}

/// Rows as a batch of these columns; `table` stands in messages.
///
/// # Errors
/// [`Error::GivenRows`] for a column that is not there and for values that are not its own, with the row counted from 1.
///
/// ```
/// use tributary::arrow::datatypes::{DataType, Field, Schema};
/// let schema = std::sync::Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
/// let row = |text: &str| serde_json::from_str::<tributary::GivenRow>(text).unwrap();
/// assert_eq!(tributary::rows_as("t", &schema, &[row(r#"{"id": 1}"#), row("{}")]).unwrap().num_rows(), 2);
/// let error = tributary::rows_as("t", &schema, &[row(r#"{"ids": 1}"#)]).unwrap_err();
/// assert!(error.to_string().ends_with("row 1: there is no column \"ids\"; did you mean \"id\"?"));
/// ```
pub fn rows_as(table: &str, schema: &SchemaRef, rows: &[GivenRow]) -> Result<RecordBatch, Error> {
    let named = |at: usize, name: &str| -> Result<String, Error> {
        let found = schema.fields().iter().find(|field| field.name().eq_ignore_ascii_case(name));
        found.map(|field| field.name().clone()).ok_or_else(|| {
            let near = nearest(name, schema.fields().iter().map(|field| field.name().as_str()));
            let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            refused(table, &format!("row {}: there is no column {name:?}{near}", at + 1))
        })
    };
    let mut spelled: Vec<Json> = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let row = row.iter().map(|(name, value)| Ok((named(at, name)?, value.clone())));
        spelled.push(Json::Object(row.collect::<Result<_, Error>>()?));
    }
    let decoded = |rows: &[Json]| {
        let mut decoder = ReaderBuilder::new(Arc::clone(schema)).with_coerce_primitive(true).build_decoder()?;
        decoder.serialize(rows)?;
        decoder.flush()
    };
    match decoded(&spelled) {
        Ok(batch) => Ok(batch.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(schema)))),
        Err(error) => {
            let first = spelled.iter().position(|row| decoded(std::slice::from_ref(row)).is_err()).unwrap_or_default();
            Err(refused(table, &format!("row {}: {error}", first + 1)))
        }
    }
}

fn refused(table: &str, reason: &str) -> Error {
    Error::GivenRows { table: table.to_owned(), reason: reason.to_owned() }
}
