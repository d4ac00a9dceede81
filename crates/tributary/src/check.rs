//! Planning a pipeline's queries and rules over the columns it declares, before there is any table.
//!
//! Each dataset's table is made, without rows, in a lake in memory, in the order of the phases: what reads it is planned over it by the
//! layer itself, so that nothing is said here that a run would not say. Where only first records can tell a column, what reads it is
//! left to its first run, and that is a note.

use std::collections::{BTreeMap, BTreeSet};

use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::{Commit, Operation, Progress};
use tributary_specs::{DatasetRef, Expectation, GoldSpec, Layer, Path, SchemaPolicy, SilverSpec, TableName, TableSpec};

use crate::{Error, Lake, OpenOptions, Pipeline};

/// What planning a pipeline over its declared columns has found.
///
/// ```
/// assert!(tributary::QueryCheck::default().problems.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct QueryCheck {
    /// What a run would stop at, in the order of the phases.
    pub problems: Vec<QueryProblem>,
    /// Datasets that could not be planned, and why.
    pub notes: Vec<(TableName, String)>,
}

/// A query, rule or condition that cannot be planned.
///
/// ```no_run
/// # async fn f(pipeline: tributary::Pipeline, files: &[(&str, &str)]) -> Result<(), tributary::Error> {
/// let places = tributary::Places::of(files);
/// for problem in pipeline.check_queries().await?.problems {
///     eprintln!("{}: {}", places.find(&problem.path), tributary::chain(&problem.error));
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct QueryProblem {
    /// The part of the pipeline.
    pub path: Path,
    /// What is wrong with it.
    pub error: Error,
}

impl Pipeline {
    /// Plans the queries, rules and conditions of silver and gold over the columns that the pipeline declares; touches no lake. What
    /// names a column that no feed declares and messages may bring all the same is left to its first run, unless the name is nearly a
    /// declared one.
    ///
    /// # Errors
    /// [`Error::Spec`] where datasets read each other in a circle. A query that cannot be planned is no error: it is in the result.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
    /// let pipeline = tributary::Pipeline::from_yaml(&[("shop.yml", "
    /// name: shop
    /// feeds:
    ///   - {name: visits, table: bronze.visits, decode: json, source: {files: {path: visits, format: jsonl}}, columns: [{name: day, type: date}]}
    /// gold:
    ///   - {table: gold.visits, query: select dya from bronze.visits}
    /// ")])?;
    /// let check = pipeline.check_queries().await?;
    /// assert_eq!(check.problems[0].path.to_string(), "gold[0].query");
    /// assert!(tributary::chain(&check.problems[0].error).contains("did you mean `day`?"));
    /// # Ok(()) }
    /// ```
    pub async fn check_queries(&self) -> Result<QueryCheck, Error> {
        Ok(self.checked().await?.found)
    }

    /// The tables of the datasets that can be planned over the columns that the pipeline declares, and those that may get more.
    pub(crate) async fn table_specs(&self) -> Result<(BTreeMap<TableName, TableSpec>, BTreeSet<TableName>), Error> {
        let checked = self.checked().await?;
        Ok((checked.made, checked.growing))
    }

    async fn checked(&self) -> Result<Check<'_>, Error> {
        let mut check = Check {
            pipeline: self,
            lake: Lake::open("memory://", OpenOptions::default())?,
            made: BTreeMap::new(),
            unplanned: BTreeMap::new(),
            growing: BTreeSet::new(),
            found: QueryCheck::default(),
        };
        for dataset in self.spec().phases()?.into_iter().flatten() {
            check.dataset(dataset).await;
        }
        Ok(check)
    }
}

struct Check<'a> {
    pipeline: &'a Pipeline,
    lake: Lake,
    /// Tables that were made.
    made: BTreeMap<TableName, TableSpec>,
    /// Tables that could not be made, and why.
    unplanned: BTreeMap<TableName, String>,
    /// Tables that may get more columns than are declared.
    growing: BTreeSet<TableName>,
    found: QueryCheck,
}

/// Why a dataset was not planned.
enum Unplanned {
    /// It has a mistake, which is among the problems.
    Mistaken,
    /// Only its first run can tell, because of this.
    LeftToFirstRun(String),
}

impl<'a> Check<'a> {
    async fn dataset(&mut self, dataset: DatasetRef) {
        let unknown = self.pipeline.sources_of(dataset.layer, dataset.index).iter().find_map(|source| self.why_unknown(source));
        let planned = match unknown {
            Some(why) => Err(Unplanned::LeftToFirstRun(why)),
            None => self.plan_and_make(&dataset).await,
        };
        let why = match planned {
            Ok(()) => return,
            Err(Unplanned::Mistaken) => format!("`{}` has a mistake", dataset.table),
            Err(Unplanned::LeftToFirstRun(why)) => {
                if dataset.layer != Layer::Bronze {
                    self.note(&dataset, &why);
                }
                why
            }
        };
        self.unplanned.insert(dataset.table, why);
    }

    fn note(&mut self, dataset: &DatasetRef, why: &str) {
        self.found.notes.push((dataset.table.clone(), format!("not planned before its first run: {why}")));
    }

    /// Why the columns of a table are not known, when they are not.
    fn why_unknown(&self, table: &TableName) -> Option<String> {
        let made_here = || self.pipeline.spec().datasets().iter().any(|dataset| dataset.table == *table);
        match self.unplanned.get(table) {
            Some(why) => Some(why.clone()),
            None => (!made_here()).then(|| format!("`{table}` is made elsewhere")),
        }
    }

    /// Plans a dataset, first without its rules and then with each alone, so that one mistake hides no other; and makes its table.
    async fn plan_and_make(&mut self, dataset: &DatasetRef) -> Result<(), Unplanned> {
        let spec = match self.plan(dataset, Vec::new()).await {
            Ok(Some(spec)) => spec,
            Ok(None) => return Err(Unplanned::LeftToFirstRun(format!("the columns of `{}` are not declared", dataset.table))),
            Err(error) => {
                let path = part(&error).iter().fold(dataset.path(), |path, field| path.field(*field));
                return Err(self.mistaken(dataset, path, error));
            }
        };
        for (at, rule) in self.rules(dataset).iter().enumerate() {
            if let Err(error) = self.plan(dataset, vec![rule.clone()]).await {
                let path = dataset.path().field("expectations").index(at).field("expression");
                // whatever the rule says, the table has the columns of the query
                if let Unplanned::LeftToFirstRun(why) = self.mistaken(dataset, path, error) {
                    self.note(dataset, &why);
                }
            }
        }
        if grows(self.pipeline, dataset, self.reads_growing(dataset)) {
            self.growing.insert(dataset.table.clone());
        }
        make(&self.lake, &spec).await.map_err(|error| self.mistaken(dataset, dataset.path(), error))?;
        self.made.insert(dataset.table.clone(), spec);
        Ok(())
    }

    /// A mistake; or, where messages may bring the column that is missed, a dataset that is left to its first run. A column that is
    /// nearly a declared one is a mistake in any case.
    fn mistaken(&mut self, dataset: &DatasetRef, path: Path, error: Error) -> Unplanned {
        match missed_column(&error) {
            Some((column, None)) if self.reads_growing(dataset) => {
                Unplanned::LeftToFirstRun(format!("no feed declares `{column}`, which messages may bring"))
            }
            _ => {
                self.found.problems.push(QueryProblem { path, error });
                Unplanned::Mistaken
            }
        }
    }

    fn reads_growing(&self, dataset: &DatasetRef) -> bool {
        self.pipeline.sources_of(dataset.layer, dataset.index).iter().any(|source| self.growing.contains(source))
    }

    /// The table of a dataset with these rules and no others; none where only its first records can tell.
    async fn plan(&self, dataset: &DatasetRef, expectations: Vec<Expectation>) -> Result<Option<TableSpec>, Error> {
        let (spec, lake) = (self.pipeline.spec(), self.lake.inner());
        match dataset.layer {
            Layer::Bronze => Ok(tributary_bronze::table_spec(&spec.feeds[dataset.index])?),
            Layer::Silver => {
                let silver = SilverSpec { expectations, ..spec.silver[dataset.index].clone() };
                Ok(tributary_silver_merge::table_spec(lake, &silver, &self.pipeline.silver_options(&silver)).await?)
            }
            Layer::Gold => {
                let gold = GoldSpec { expectations, ..spec.gold[dataset.index].clone() };
                Ok(tributary_gold_agg::table_spec(lake, &gold, &self.pipeline.gold_options(&gold)).await?)
            }
        }
    }

    fn rules(&self, dataset: &DatasetRef) -> &'a [Expectation] {
        let spec = self.pipeline.spec();
        match dataset.layer {
            Layer::Bronze => &[],
            Layer::Silver => &spec.silver[dataset.index].expectations,
            Layer::Gold => &spec.gold[dataset.index].expectations,
        }
    }
}

/// Whether a table may get more columns than are declared. `reads_growing` = so may one that it reads.
pub(crate) fn grows(pipeline: &Pipeline, dataset: &DatasetRef, reads_growing: bool) -> bool {
    let spec = pipeline.spec();
    match dataset.layer {
        Layer::Bronze => matches!(spec.feeds[dataset.index].schema_policy, SchemaPolicy::Add | SchemaPolicy::Widen),
        Layer::Silver => spec.silver[dataset.index].schema.is_empty() && reads_growing,
        Layer::Gold => spec.gold[dataset.index].schema.is_empty() && reads_growing,
    }
}

/// Makes a table that counts as written to: the layers think that a new one may yet get the columns that a query lacks.
pub(crate) async fn make(lake: &Lake, spec: &TableSpec) -> Result<SchemaRef, Error> {
    // how rows lie is nothing to a query, and may go by columns that only messages bring
    let spec = TableSpec { partition_by: Vec::new(), cluster_by: Vec::new(), ..spec.clone() };
    let table = lake.inner().create(&spec).await?;
    let made = Progress { app_id: "tributary:made".to_owned(), expected: None, version: 0 };
    let commit = Commit { operation: Operation::Write, progress: vec![made], ..Commit::default() };
    let _ = table.commit(commit).await?;
    Ok(table.schema())
}

/// A column that is not there, and the nearest that is.
pub(crate) fn missed_column(error: &Error) -> Option<(&str, Option<&str>)> {
    use tributary_gold_agg::Error as Gold;
    use tributary_silver_merge::Error as Silver;
    match error {
        Error::Silver(Silver::NoColumn { column, suggestion, .. }) => Some((column, suggestion.as_deref())),
        Error::Silver(Silver::Text { source, .. }) | Error::Gold(Gold::Sql { source, .. }) => match source.as_ref() {
            tributary_spark_sql::Error::NoColumn { column, suggestion, .. } => Some((column, suggestion.as_deref())),
            _ => None,
        },
        _ => None,
    }
}

/// The part of a dataset that an error is about, below the dataset.
fn part(error: &Error) -> &'static [&'static str] {
    use tributary_gold_agg::Error as Gold;
    use tributary_silver_merge::Error as Silver;
    match error {
        Error::Silver(Silver::Text { clause, .. } | Silver::Sql { clause, .. }) => match clause.as_str() {
            "select" => &["select"],
            "sequence_by" => &["sequence_by"],
            "apply_as_delete_when" => &["deletes", "apply_as_delete_when"],
            "apply_as_truncate_when" => &["deletes", "apply_as_truncate_when"],
            "insert_when" => &["insert_when"],
            "delete_when" => &["delete_when"],
            _ => &[],
        },
        Error::Silver(Silver::NoColumn { clause: "keys", .. }) => &["keys"],
        Error::Silver(Silver::NoColumn { .. }) => &["columns"],
        Error::Silver(Silver::DeclaredSchema { .. }) | Error::Gold(Gold::DeclaredSchema { .. }) => &["schema"],
        Error::Gold(Gold::Sql { .. } | Gold::Query { .. } | Gold::Planned { .. } | Gold::Column { .. } | Gold::Volatile { .. }) => {
            &["query"]
        }
        _ => &[],
    }
}
