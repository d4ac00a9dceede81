//! What a run would do, worked out without writing: from the logs of the lake, the folders of file feeds, and the pipeline.
//!
//! ```text
//! forecast (tables as they will be) ─┐
//! definitions (kept, now)           ─┼─▶ Plan ──▶ text, JSON ──▶ run of exactly that, or a refusal once its basis has moved
//! looks (files due, versions behind)─┘
//! ```

mod basis;
mod columns;
mod inputs;
mod text;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tributary_lake::{DataFile, Difference, Table};
use tributary_specs::{DatasetRef, Layer, TableName, TableSpec};

use columns::Policy;
use inputs::Inputs;

pub use columns::{ColumnChange, ColumnChangeKind};

use crate::definition::{Definition, DefinitionChange};
use crate::forecast::{Foreseen, forecast, reads, with_functions};
use crate::{Error, Lake, Pipeline, RunOptions, protection};

/// The form of plans that this release writes and reads.
const FORMAT: u32 = 1;
/// How a reason begins that rests on what only the run can tell.
const MAY: &str = "this run may write";
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

    /// Whether only the run can tell.
    fn may_move(&self) -> bool {
        self.work == PlannedWork::Asks || self.reason.starts_with(MAY)
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
        let unprotected = protection::recorded(self, &chosen).await?;
        let pipeline = &with_functions(self, pipeline).await?;
        let forecast = Box::pin(forecast(self, pipeline)).await?;
        let inputs = Inputs::look(self, pipeline, options).await?;
        let mut datasets: Vec<DatasetPlan> = Vec::new();
        for foreseen in &forecast.datasets {
            if options.chooses(foreseen.dataset.layer, &foreseen.dataset.table) {
                let planning = Planning { lake: self, pipeline, options, inputs: &inputs, before: &datasets };
                let mut planned = Box::pin(planning.dataset(foreseen)).await?;
                let of_it = unprotected.iter().filter(|(table, _)| *table == planned.table);
                planned.notes.extend(of_it.map(|(_, clause)| format!("{NOT_PROTECTED}: {clause}")));
                datasets.push(planned);
            }
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
        let pipeline = &with_functions(self, pipeline).await?;
        let forecast = Box::pin(forecast(self, pipeline)).await?;
        let inputs = Inputs::look(self, pipeline, options).await?;
        let moved = basis::moved(&plan.basis, &basis::of(self, pipeline, options, &forecast, &inputs));
        if moved.is_empty() { Ok(()) } else { Err(Error::PlanMoved { moved }) }
    }
}

struct Planning<'a> {
    lake: &'a Lake,
    pipeline: &'a Pipeline,
    options: &'a RunOptions,
    inputs: &'a Inputs,
    /// Plans of the datasets before it.
    before: &'a [DatasetPlan],
}

impl Planning<'_> {
    async fn dataset(&self, foreseen: &Foreseen) -> Result<DatasetPlan, Error> {
        let Foreseen { dataset, table, declared, unknown, error, .. } = foreseen;
        let mut plan = DatasetPlan {
            table: dataset.table.clone(),
            layer: dataset.layer.to_string(),
            version: table.as_ref().map(Table::version),
            creates: Vec::new(),
            columns_unknown: table.is_none() && declared.is_none(),
            definition: Vec::new(),
            definition_known: true,
            columns: Vec::new(),
            differs: Vec::new(),
            rewrites: None,
            work: PlannedWork::Nothing,
            reason: String::new(),
            inputs: Vec::new(),
            rows_estimated: None,
            loses: Vec::new(),
            stops: error.iter().map(|error| tributary_fault::chain(error)).collect(),
            notes: unknown.iter().filter(|_| table.is_some()).cloned().collect(),
        };
        match (table, declared) {
            (None, Some(spec)) => {
                plan.creates = spec.columns.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect()
            }
            (Some(table), declared) => self.beside_table(&mut plan, dataset, table, declared.as_ref()).await?,
            (None, None) => {}
        }
        match dataset.layer {
            Layer::Bronze => self.feed(&mut plan, dataset),
            Layer::Silver => self.silver(&mut plan, dataset, table.as_ref()).await?,
            Layer::Gold => self.gold(&mut plan, dataset, table.as_ref()).await?,
        }
        Ok(plan)
    }

    /// What the declaration says otherwise than the table that is there.
    async fn beside_table(
        &self,
        plan: &mut DatasetPlan,
        dataset: &DatasetRef,
        table: &Table,
        declared: Option<&TableSpec>,
    ) -> Result<(), Error> {
        let now = Definition::of(self.pipeline, dataset);
        match Definition::of_table(table).await? {
            Some(before) => plan.definition = now.changes_since(&before),
            None => plan.definition_known = false,
        }
        let Some(spec) = declared else { return Ok(()) };
        let policy = match dataset.layer {
            Layer::Bronze => Policy::Feed(self.pipeline.spec().feeds[dataset.index].schema_policy),
            Layer::Silver => Policy::Silver(self.pipeline.spec().silver[dataset.index].schema_policy),
            Layer::Gold => Policy::View,
        };
        let outcome = columns::compare(policy, table.columns(), &spec.columns, !plan.definition.is_empty());
        plan.columns = outcome.changes;
        plan.stops.extend(outcome.stops);
        plan.notes.extend(outcome.notes);
        if plan.columns.iter().any(|change| change.kind == ColumnChangeKind::Widened) {
            plan.rewrites = Some(FileAmount::of(&table.files().await?));
        }
        let of_columns = |difference: &Difference| difference.what.starts_with("column ");
        for difference in self.lake.inner().difference(spec).await?.into_iter().filter(|difference| !of_columns(difference)) {
            let made_with =
                ["tributary.keys", "tributary.policy", "tributary.sequence"].iter().find(|name| difference.what.contains(*name));
            match made_with {
                // what a view was made with decides nothing
                Some(_) if dataset.layer != Layer::Silver => {}
                Some(name) if !self.options.refreshes_in_full(&plan.table) => plan.stops.push(format!(
                    "its table was made with {} {} and the declaration says {}: --full-refresh {} makes it anew",
                    name.trim_start_matches("tributary."),
                    difference.found.as_deref().unwrap_or("none"),
                    difference.declared.as_deref().unwrap_or("none"),
                    plan.table
                )),
                Some(_) => {}
                None => plan.differs.push(difference.into()),
            }
        }
        Ok(())
    }

    fn feed(&self, plan: &mut DatasetPlan, dataset: &DatasetRef) {
        let feed = &self.pipeline.spec().feeds[dataset.index];
        let Some(look) = self.inputs.feeds.get(&dataset.index) else { return };
        plan.stops.extend(look.faults.iter().cloned());
        if look.settling > 0 {
            plan.notes.push(format!("{} files were changed too short a time ago and are left for a later run", look.settling));
        }
        let from = crate::lineage::places(feed).join(", ");
        if matches!(feed.source, tributary_specs::Source::Files(_)) {
            let (files, bytes) = (look.files.len() as u64, look.files.iter().map(|file| file.size).sum());
            (plan.work, plan.reason) = match files {
                0 => (PlannedWork::Nothing, "no file is new".to_owned()),
                files => (PlannedWork::TakesUp, format!("{files} new {}", if files == 1 { "file" } else { "files" })),
            };
            if files > 0 {
                plan.rows_estimated = self.inputs.rows_of_bytes(&dataset.table, bytes);
                plan.inputs.push(PlannedInput { from, files: Some(files), bytes: Some(bytes), ..PlannedInput::default() });
            }
        } else {
            (plan.work, plan.reason) = (PlannedWork::Asks, "what its source holds is asked by the run".to_owned());
            plan.inputs.push(PlannedInput { from, positions: look.positions.clone(), ..PlannedInput::default() });
        }
    }

    async fn silver(&self, plan: &mut DatasetPlan, dataset: &DatasetRef, table: Option<&Table>) -> Result<(), Error> {
        let in_full = self.options.refreshes_in_full(&plan.table);
        let spec = &self.pipeline.spec().silver[dataset.index];
        let flows = match tributary_silver_merge::look(self.lake.inner(), spec, table.filter(|_| !in_full)).await {
            Ok(flows) => flows,
            Err(error @ tributary_silver_merge::Error::FlowUnknown { .. }) => {
                plan.stops.push(tributary_fault::chain(&error));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let streams: Vec<TableName> = flows.iter().map(|flow| flow.source.clone()).collect();
        let mut rows = Some(0);
        for flow in flows.iter().filter(|flow| !flow.done) {
            match inputs::of_flow(self.lake, flow, self.options.starting_version).await? {
                None => rows = None,
                Some(input) if input.version_from < input.version_to => {
                    rows = rows.zip(input.rows).map(|(all, more)| all + more);
                    plan.inputs.push(input);
                }
                Some(_) => {}
            }
        }
        if in_full && table.is_some() {
            (plan.work, plan.reason) = (PlannedWork::Refreshes, "a full refresh was asked for".to_owned());
            self.replaces(plan, table).await?;
            plan.loses.push("rows that its sources no longer hold the changes of".to_owned());
        } else if !plan.inputs.is_empty() {
            let what: Vec<String> = plan.inputs.iter().map(behind).collect();
            (plan.work, plan.reason) = (PlannedWork::TakesUp, what.join(", "));
        } else {
            self.follow(plan, &streams);
        }
        plan.rows_estimated = rows.filter(|_| !plan.inputs.is_empty());
        if !plan.definition.is_empty() && plan.stops.is_empty() && table.is_some() && !in_full {
            let all = plan.definition.iter().all(|change| changes_no_row(&change.part));
            if !all {
                plan.notes.push(format!(
                    "the new definition holds for rows taken up from now on; --full-refresh {} makes the earlier ones anew",
                    plan.table
                ));
            }
        }
        Ok(())
    }

    async fn gold(&self, plan: &mut DatasetPlan, dataset: &DatasetRef, table: Option<&Table>) -> Result<(), Error> {
        let spec = &self.pipeline.spec().gold[dataset.index];
        let sources = reads(self.pipeline, dataset);
        let look = tributary_gold_agg::look(self.lake.inner(), spec, &self.pipeline.gold_options(spec)).await;
        match look {
            Err(error) => plan.stops.push(tributary_fault::chain(&error)),
            Ok(None) => self.follow(plan, &sources),
            Ok(Some(look)) => {
                let asked = self.options.refreshes_in_full(&plan.table) && table.is_some();
                if look.refreshes || asked {
                    plan.work = PlannedWork::Refreshes;
                    plan.reason = if asked { "a full refresh was asked for".to_owned() } else { look.reason };
                } else {
                    self.follow(plan, &sources);
                    if plan.work == PlannedWork::Nothing {
                        plan.reason = look.reason;
                    }
                }
            }
        }
        let moves = self.moving(&sources);
        if plan.work == PlannedWork::Follows {
            plan.work = PlannedWork::Refreshes;
        }
        if plan.work == PlannedWork::Refreshes {
            for source in &sources {
                let from = self.inputs.recorded(table, source).await?;
                match self.lake.inner().table(source).await? {
                    Some(input) => plan.inputs.push(inputs::whole(&input, from).await?),
                    None => plan.inputs.push(PlannedInput { from: source.to_string(), ..PlannedInput::default() }),
                }
            }
            if !moves.is_empty() && !plan.reason.starts_with("this run ") {
                plan.notes.push(format!("{} moves with this run", moves.join(", ")));
            }
            let rows = inputs::live_rows(table).await?;
            plan.rows_estimated = rows.filter(|rows| *rows > 0);
            self.replaces(plan, table).await?;
        }
        Ok(())
    }

    /// What of its table is replaced.
    async fn replaces(&self, plan: &mut DatasetPlan, table: Option<&Table>) -> Result<(), Error> {
        let Some(table) = table else { return Ok(()) };
        let amount = FileAmount::of(&table.files().await?);
        if amount.files > 0 {
            plan.rewrites = Some(amount);
        }
        let gone = plan.columns.iter().filter(|change| change.kind == ColumnChangeKind::NoLongerMade);
        plan.loses.extend(gone.map(|change| format!("the values of column {}", change.column)));
        Ok(())
    }

    /// Nothing is new as things are; what the same run writes is taken up.
    fn follow(&self, plan: &mut DatasetPlan, sources: &[TableName]) {
        let moving = self.moving(sources);
        (plan.work, plan.reason) = match moving.is_empty() {
            true => (PlannedWork::Nothing, "no input moved".to_owned()),
            false => {
                let only_may = self.before.iter().filter(|plan| moving.contains(&plan.table.to_string())).all(DatasetPlan::may_move);
                let writes = if only_may { MAY } else { "this run writes" };
                (PlannedWork::Follows, format!("{writes} {}, which it reads", moving.join(", ")))
            }
        };
    }

    /// Those of the sources that the same run writes.
    fn moving(&self, sources: &[TableName]) -> Vec<String> {
        let writes = |name: &&TableName| self.before.iter().any(|plan| plan.moves() && plan.table.same_without_case(name));
        sources.iter().filter(writes).map(ToString::to_string).collect()
    }
}

/// What says how rows lie or are spoken of, and not what they are.
fn changes_no_row(part: &str) -> bool {
    ["comment", "cluster_by", "partition_by", "properties", "quarantine", "meaning of SQL"].iter().any(|kind| part.starts_with(kind))
}

fn behind(input: &PlannedInput) -> String {
    match (input.version_from, input.version_to) {
        (Some(from), Some(to)) => format!("{} moved from version {from} to {to}", input.from),
        _ => format!("{} was not taken up yet", input.from),
    }
}
