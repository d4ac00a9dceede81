//! What a run would do, worked out without writing: from the logs of the lake, the folders of file feeds, and the pipeline.
//!
//! ```text
//! forecast (tables as they will be) ─┐
//! definitions (kept, now)           ─┼─▶ Plan ──▶ text, JSON ──▶ run of exactly that, or a refusal once its basis has moved
//! looks (files due, versions behind)─┘
//! ```

mod basis;
mod columns;
mod dataset;
mod inputs;
mod text;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tributary_lake::{DataFile, Difference};
use tributary_specs::TableName;

use inputs::Inputs;

pub use columns::{ColumnChange, ColumnChangeKind};

use crate::definition::DefinitionChange;
use crate::forecast::forecast;
use crate::{Error, Lake, Pipeline, RunOptions, protection};

/// The form of plans that this release writes and reads.
const FORMAT: u32 = 1;
/// How a note begins on a mask or row filter that is recorded and not enforced.
const NOT_PROTECTED: &str = "not protected, a run needs --accept-unprotected";

/// What a run would do.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
/// let lake = tributary::Lake::open("memory://", Default::default())?;
/// let plan = lake.plan(&tributary::Pipeline::builder("empty").build()?, &Default::default()).await?;
/// assert!(plan.datasets.is_empty());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The form of this document.
    pub format: u32,
    /// The release that made it.
    pub release: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// The catalogue.
    pub catalogue: String,
    /// When it was made.
    pub made_at: DateTime<Utc>,
    /// Layers that were asked for.
    pub layers: Vec<String>,
    /// Datasets that were asked for; none = all of the layers.
    pub only: Vec<TableName>,
    /// Datasets that are built anew because that was asked for.
    pub full_refresh: Vec<TableName>,
    /// Whether all of them are.
    pub full_refresh_all: bool,
    /// A plan a dataset, in the order of the phases.
    pub datasets: Vec<DatasetPlan>,
    /// What of the pipeline's text is read and not executed, each with its place and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<String>,
    /// What the plan rests on, by name: versions of tables, fingerprints of definitions and of the files that are due.
    pub basis: BTreeMap<String, String>,
}

/// What a run would do to one dataset.
///
/// ```no_run
/// # async fn f(plan: tributary::Plan) {
/// for dataset in plan.datasets.iter().filter(|dataset| dataset.changes_anything()) {
///     println!("{}: {:?}, {}", dataset.table, dataset.work, dataset.reason);
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetPlan {
    /// The table.
    pub table: TableName,
    /// Its layer.
    pub layer: String,
    /// The version it has; none where the run makes it.
    pub version: Option<u64>,
    /// Columns it is made with, each as name and type; empty where it is there.
    pub creates: Vec<String>,
    /// Whether only its first rows tell its columns.
    pub columns_unknown: bool,
    /// What is otherwise in its definition than when it was last run.
    pub definition: Vec<DefinitionChange>,
    /// Whether it is known what it was last run with. An older release did not keep it.
    pub definition_known: bool,
    /// Columns that come, grow or are made no longer.
    pub columns: Vec<ColumnChange>,
    /// What else the declaration says otherwise than the table, and no run changes.
    pub differs: Vec<Differs>,
    /// What is rewritten for it.
    pub rewrites: Option<FileAmount>,
    /// What is done with its rows.
    pub work: PlannedWork,
    /// Why.
    pub reason: String,
    /// What is new in what it reads.
    pub inputs: Vec<PlannedInput>,
    /// Rows it would take up or make, as far as they can be told.
    pub rows_estimated: Option<u64>,
    /// What is lost by it.
    pub loses: Vec<String>,
    /// Why it would stop.
    pub stops: Vec<String>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// What is done with the rows of a dataset.
///
/// ```
/// assert_ne!(tributary::PlannedWork::Nothing, tributary::PlannedWork::TakesUp);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedWork {
    /// Nothing is new.
    Nothing,
    /// What is new in its inputs is taken up.
    TakesUp,
    /// All its rows are made anew.
    Refreshes,
    /// What it reads is written by the same run, and it follows.
    Follows,
    /// Its source is asked by the run alone: brokers and record sources are not asked for a plan.
    Asks,
}

/// What is new in one input.
///
/// ```
/// assert!(tributary::PlannedInput::default().files.is_none());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedInput {
    /// The table, or the path of files.
    pub from: String,
    /// Files that are new.
    pub files: Option<u64>,
    /// Their bytes, as stored.
    pub bytes: Option<u64>,
    /// Their rows, where they are known.
    pub rows: Option<u64>,
    /// The version that was taken up last.
    pub version_from: Option<u64>,
    /// The latest version.
    pub version_to: Option<u64>,
    /// Positions of topics and record sources that the table has reached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub positions: BTreeMap<String, i64>,
}

/// Files and bytes.
///
/// ```
/// assert_eq!(tributary::FileAmount::default().bytes, 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAmount {
    /// How many files.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
}

impl FileAmount {
    fn of(files: &[DataFile]) -> Self {
        Self { files: files.len() as u64, bytes: files.iter().map(|file| file.size).sum() }
    }
}

/// A difference between declaration and table that a run leaves.
///
/// ```no_run
/// # fn f(differs: tributary::Differs) {
/// println!("{}: declared {:?}, found {:?}", differs.what, differs.declared, differs.found);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differs {
    /// The constraint, property or layout.
    pub what: String,
    /// As declared.
    pub declared: Option<String>,
    /// As the table has it.
    pub found: Option<String>,
}

impl From<Difference> for Differs {
    fn from(Difference { what, declared, found }: Difference) -> Self {
        Self { what, declared, found }
    }
}

impl DatasetPlan {
    /// Whether a run would change anything of the dataset, or stop at it, or its definition is another.
    ///
    /// ```no_run
    /// # fn f(dataset: tributary::DatasetPlan) {
    /// assert!(dataset.changes_anything() || dataset.work == tributary::PlannedWork::Nothing);
    /// # }
    /// ```
    pub fn changes_anything(&self) -> bool {
        self.moves() || !self.definition.is_empty() || !self.columns.is_empty() || !self.stops.is_empty()
    }

    /// Whether its table may get other rows.
    fn moves(&self) -> bool {
        self.work != PlannedWork::Nothing
    }

    /// Whether the run makes its table: one with nothing to take up makes none.
    fn is_created(&self) -> bool {
        self.version.is_none() && self.moves()
    }
}

impl Lake {
    /// What a run of the pipeline with these options would do. Reads the lake's logs and lists the folders of file feeds; writes nothing
    /// and asks no broker.
    ///
    /// # Errors
    /// As [`Lake::run`]'s before any dataset has its turn; the lake's, when it cannot be read. What would stop one dataset is in its plan.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake, pipeline: tributary::Pipeline) -> Result<(), tributary::Error> {
    /// print!("{}", lake.plan(&pipeline, &Default::default()).await?.to_text());
    /// # Ok(()) }
    /// ```
    pub async fn plan(&self, pipeline: &Pipeline, options: &RunOptions) -> Result<Plan, Error> {
        let chosen = crate::run::choose(pipeline, options)?;
        let unprotected = protection::recorded(self, pipeline, &chosen).await?;
        let pipeline = &pipeline.with_functions_of(self).await?;
        let forecast = Box::pin(forecast(self, pipeline)).await?;
        let inputs = Inputs::look(self, pipeline, options).await?;
        let mut datasets = Box::pin(dataset::plan(self, pipeline, options, &forecast, &inputs)).await?;
        for planned in &mut datasets {
            let of_it = unprotected.iter().filter(|(table, _)| *table == planned.table);
            planned.notes.extend(of_it.map(|(_, clause)| format!("{NOT_PROTECTED}: {clause}")));
        }
        let basis = basis::of(self, pipeline, options, &forecast, &inputs);
        Ok(Plan {
            format: FORMAT,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            pipeline: pipeline.spec().name.clone(),
            catalogue: self.inner().options().catalogue.clone(),
            made_at: self.inner().clock().now(),
            layers: options.layers.iter().map(ToString::to_string).collect(),
            only: options.only.clone(),
            full_refresh: options.full_refresh.clone(),
            full_refresh_all: options.full_refresh_all,
            datasets,
            not_applied: pipeline.not_applied().to_vec(),
            basis,
        })
    }

    /// Whether a run would still do what a plan says: every table has the version, every definition and every file that is due the
    /// fingerprint that the plan rests on.
    ///
    /// # Errors
    /// [`Error::PlanMoved`] with everything that is otherwise; [`Error::PlanFormat`] for a plan of another release's form.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// let pipeline = tributary::Pipeline::builder("empty").build()?;
    /// let plan = lake.plan(&pipeline, &Default::default()).await?;
    /// lake.check_plan(&plan, &pipeline, &Default::default()).await?;
    /// # Ok(()) }
    /// ```
    pub async fn check_plan(&self, plan: &Plan, pipeline: &Pipeline, options: &RunOptions) -> Result<(), Error> {
        if plan.format != FORMAT {
            return Err(Error::PlanFormat { found: plan.format, known: FORMAT });
        }
        let pipeline = &pipeline.with_functions_of(self).await?;
        let forecast = Box::pin(forecast(self, pipeline)).await?;
        let inputs = Inputs::look(self, pipeline, options).await?;
        let moved = basis::moved(&plan.basis, &basis::of(self, pipeline, options, &forecast, &inputs));
        if moved.is_empty() { Ok(()) } else { Err(Error::PlanMoved { moved }) }
    }
}
