//! Planning a pipeline's queries and rules over the columns it declares, before there is any table.
//!
//! Each dataset's table is drafted in a lake in memory, in the order of the phases: what reads it is planned over it by the layer itself,
//! so that nothing is said here that a run would not say. Datasets of one phase are planned side by side, in tasks. Where only first records can tell a column, what reads it is
//! left to its first run, and that is a note.

mod mistakes;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_silver_merge::Error as Silver;
use tributary_spark_sql::Error as Text;
use tributary_specs::{DatasetRef, Expectation, GoldSpec, Layer, Path, Place, SchemaPolicy, SilverSpec, TableName, TableSpec};

use crate::amend::Draft;
use crate::spot::{self, Part, part};
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
    pub notes: Vec<QueryNote>,
}

/// Why a dataset, or a rule of it, could not be planned.
///
/// ```no_run
/// # fn f(note: tributary::QueryNote) {
/// println!("{}: {}", note.table, note.message);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryNote {
    /// The dataset.
    pub table: TableName,
    /// Why.
    pub message: String,
    /// Where what is not known stands, of a pipeline that was read from SQL files.
    pub place: Option<Place>,
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
    /// Where it stands, of a pipeline that was read from SQL files.
    pub place: Option<Place>,
}

impl QueryProblem {
    /// What is wrong, with all its causes; where it stands is not said again.
    ///
    /// ```no_run
    /// # fn f(problem: tributary::QueryProblem) {
    /// eprintln!("{}", problem.message());
    /// # }
    /// ```
    pub fn message(&self) -> String {
        spot::words(&self.error, self.place.is_some())
    }
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
            planner: Planner { pipeline: Arc::new(self.clone()), lake: Lake::open("memory://", OpenOptions::default())? },
            own: self.spec().datasets().into_iter().map(|dataset| dataset.table).collect(),
            made: BTreeMap::new(),
            unplanned: BTreeMap::new(),
            growing: BTreeSet::new(),
            found: QueryCheck::default(),
        };
        for phase in self.spec().phases()? {
            check.phase(phase).await;
        }
        Ok(check)
    }
}

/// Datasets planned side by side.
const AT_ONCE: usize = 8;

struct Check<'a> {
    pipeline: &'a Pipeline,
    planner: Planner,
    /// Tables of its datasets.
    own: BTreeSet<TableName>,
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
    LeftToFirstRun(String, Part),
}

impl<'a> Check<'a> {
    /// Datasets that do not read each other: planned side by side, told in their order.
    async fn phase(&mut self, datasets: Vec<DatasetRef>) {
        let check = &*self;
        let planned = |dataset: &DatasetRef| {
            let draft = check.unknown_source(dataset).is_none().then(|| check.draft(dataset, None));
            let planner = check.planner.clone();
            aside(async move {
                match &draft {
                    Some(draft) => Some(planner.plan(draft).await),
                    None => None,
                }
            })
        };
        let plans: Vec<_> = stream::iter(datasets.iter()).map(planned).buffered(AT_ONCE).collect().await;
        let mut specs = Vec::new();
        for (dataset, planned) in datasets.into_iter().zip(plans) {
            specs.extend(self.dataset(&dataset, planned).await.map(|spec| (dataset, spec)));
        }
        for (dataset, spec) in specs {
            match make(&self.planner.lake, &spec).await {
                Ok(_) => drop(self.made.insert(dataset.table, spec)),
                Err(error) => {
                    let unplanned = self.mistaken(&dataset, Part::default(), error);
                    self.leave(&dataset, unplanned);
                }
            }
        }
    }

    /// Takes down what planning a dataset came to; gives its table where it can be made.
    async fn dataset(&mut self, dataset: &DatasetRef, planned: Option<Result<Option<TableSpec>, Error>>) -> Option<TableSpec> {
        let planned = match (planned, self.unknown_source(dataset)) {
            (Some(planned), None) => self.table(dataset, planned).await,
            (_, why) => {
                self.functions(dataset);
                Err(Unplanned::LeftToFirstRun(why.unwrap_or_default(), Part::default()))
            }
        };
        planned.map_err(|unplanned| self.leave(dataset, unplanned)).ok()
    }

    /// A dataset whose table is not made, and why.
    fn leave(&mut self, dataset: &DatasetRef, unplanned: Unplanned) {
        let why = match unplanned {
            Unplanned::Mistaken => has_a_mistake(&dataset.table),
            Unplanned::LeftToFirstRun(why, part) => {
                if dataset.layer != Layer::Bronze {
                    self.note(dataset, &why, &part);
                }
                why
            }
        };
        self.unplanned.insert(dataset.table.clone(), why);
    }

    fn note(&mut self, dataset: &DatasetRef, why: &str, part: &Part) {
        let (table, message) = (dataset.table.clone(), format!("not planned before its first run: {why}"));
        let place = self.pipeline.place(&dataset.path(), part);
        self.found.notes.push(QueryNote { table, message, place });
    }

    /// Why the columns of a table that is read are not known, when they are not.
    fn unknown_source(&self, dataset: &DatasetRef) -> Option<String> {
        self.pipeline.sources_of(dataset.layer, dataset.index).iter().find_map(|source| self.why_unknown(source))
    }

    fn why_unknown(&self, table: &TableName) -> Option<String> {
        if let Some(why) = self.unplanned.get(table) {
            return Some(why.clone());
        }
        if self.own.contains(table) {
            return None;
        }
        Some(match self.pipeline.origins().is_some_and(|origins| origins.is_mistaken(table)) {
            true => has_a_mistake(table),
            false => format!("`{table}` is made elsewhere"),
        })
    }

    /// The table of a dataset. Where something is wrong it is planned without its rules and then with each alone, so that one mistake
    /// hides no other.
    async fn table(&mut self, dataset: &DatasetRef, planned: Result<Option<TableSpec>, Error>) -> Result<TableSpec, Unplanned> {
        let left = || Unplanned::LeftToFirstRun(format!("the columns of `{}` are not declared", dataset.table), Part::default());
        let spec = match planned {
            Ok(spec) => spec.ok_or_else(left)?,
            Err(_) => self.one_by_one(dataset).await?.ok_or_else(left)?,
        };
        self.names(dataset, &spec);
        self.misfits(dataset, &spec);
        if grows(self.pipeline, dataset, self.reads_growing(dataset)) {
            self.growing.insert(dataset.table.clone());
        }
        Ok(spec)
    }

    async fn one_by_one(&mut self, dataset: &DatasetRef) -> Result<Option<TableSpec>, Unplanned> {
        let spec = match self.plan(&self.draft(dataset, Some(Vec::new()))).await {
            Ok(spec) => spec,
            Err(error) => return Err(self.mistakes(dataset, error).await),
        };
        for rule in self.rules(dataset) {
            if let Err(error) = self.plan(&self.draft(dataset, Some(vec![rule.clone()]))).await {
                let part = part(&error, &self.pipeline.rules_of(dataset));
                // whatever the rule says, the table has the columns of the query
                if let Unplanned::LeftToFirstRun(why, part) = self.mistaken(dataset, part, error) {
                    self.note(dataset, &why, &part);
                }
            }
        }
        Ok(spec)
    }

    fn reads_growing(&self, dataset: &DatasetRef) -> bool {
        self.pipeline.sources_of(dataset.layer, dataset.index).iter().any(|source| self.growing.contains(source))
    }

    /// A dataset, with other rules than its own where they are given.
    fn draft(&self, dataset: &DatasetRef, rules: Option<Vec<Expectation>>) -> Draft {
        let spec = self.pipeline.spec();
        let rules = |own: &Vec<Expectation>| rules.unwrap_or_else(|| own.clone());
        match dataset.layer {
            Layer::Bronze => Draft::Feed(dataset.index),
            Layer::Silver => {
                let silver = &spec.silver[dataset.index];
                Draft::Silver(Box::new(SilverSpec { expectations: rules(&silver.expectations), ..silver.clone() }))
            }
            Layer::Gold => {
                let gold = &spec.gold[dataset.index];
                Draft::Gold(Box::new(GoldSpec { expectations: rules(&gold.expectations), ..gold.clone() }))
            }
        }
    }

    async fn plan(&self, draft: &Draft) -> Result<Option<TableSpec>, Error> {
        self.planner.plan(draft).await
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

/// Plans drafts over the tables that were made. Cheap to clone.
#[derive(Clone)]
struct Planner {
    pipeline: Arc<Pipeline>,
    lake: Lake,
}

impl Planner {
    /// The table of a draft; none where only its first records can tell.
    async fn plan(&self, draft: &Draft) -> Result<Option<TableSpec>, Error> {
        let lake = self.lake.inner();
        match draft {
            Draft::Feed(at) => Ok(tributary_bronze::table_spec(&self.pipeline.spec().feeds[*at])?),
            Draft::Silver(silver) => Ok(tributary_silver_merge::table_spec(lake, silver, &self.pipeline.silver_options(silver)).await?),
            Draft::Gold(gold) => Ok(tributary_gold_agg::table_spec(lake, gold, &self.pipeline.gold_options(gold)).await?),
        }
    }
}

/// What work in a task of its own comes to; where it panics, so does this.
async fn aside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => resume_unwind(error.into_panic()),
    }
}

fn has_a_mistake(table: &TableName) -> String {
    format!("`{table}` has a mistake")
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

/// The table without how its rows lie: that is nothing to a query, and may go by columns that only messages bring.
fn bare(spec: &TableSpec) -> TableSpec {
    TableSpec { partition_by: Vec::new(), cluster_by: Vec::new(), ..spec.clone() }
}

/// Drafts a table. It counts as written to: the layers think that a new one may yet get the columns that a query lacks.
pub(crate) async fn make(lake: &Lake, spec: &TableSpec) -> Result<SchemaRef, Error> {
    Ok(lake.inner().draft(&bare(spec)).await?.schema())
}

/// A column that is not there, and the nearest that is.
pub(crate) fn missed_column(error: &Error) -> Option<(&str, Option<&str>)> {
    match (error, spot::text_of(error)) {
        (Error::Silver(Silver::NoColumn { column, suggestion, .. }), _) => Some((column, suggestion.as_deref())),
        (_, Some(Text::NoColumn { column, suggestion, .. })) => Some((column, suggestion.as_deref())),
        _ => None,
    }
}
