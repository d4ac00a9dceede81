//! What a run would do to each dataset: its table beside its declaration, then what is new in what it reads.

use std::collections::BTreeSet;

use tributary_gold_agg::RefreshMode;
use tributary_lake::{Difference, Table};
use tributary_specs::{DataType, DatasetRef, GoldSpec, Layer, Refresh, Source, TableName, TableSpec};

use super::columns::{self, Policy};
use super::inputs::{self, Inputs};
use super::{ColumnChangeKind, DatasetPlan, FileAmount, PlannedInput, PlannedWork};
use crate::amounts::count;
use crate::definition::Definition;
use crate::forecast::{Forecast, Foreseen};
use crate::{Error, Lake, Pipeline, RunOptions};

/// Why a dataset is built anew that need not be.
const ASKED: &str = "a full refresh was asked for";

/// A plan a dataset that was chosen, in the order of the phases.
pub(super) async fn plan(
    lake: &Lake,
    pipeline: &Pipeline,
    options: &RunOptions,
    forecast: &Forecast,
    inputs: &Inputs,
) -> Result<Vec<DatasetPlan>, Error> {
    let mut planning = Planning { lake, pipeline, options, inputs, before: Vec::new(), unsure: BTreeSet::new() };
    for foreseen in forecast.datasets.iter().filter(|one| options.chooses(one.dataset.layer, &one.dataset.table)) {
        let planned = planning.dataset(foreseen).await?;
        planning.before.push(planned);
    }
    Ok(planning.before)
}

struct Planning<'a> {
    lake: &'a Lake,
    pipeline: &'a Pipeline,
    options: &'a RunOptions,
    inputs: &'a Inputs,
    /// Plans of the datasets before the one at hand.
    before: Vec<DatasetPlan>,
    /// Those of them of which only the run can tell whether it writes them.
    unsure: BTreeSet<TableName>,
}

/// How the rows of a table lie, which a full refresh changes.
const LAYOUT: [&str; 2] = ["partition columns", "clustering columns"];

impl Planning<'_> {
    async fn dataset(&mut self, foreseen: &Foreseen) -> Result<DatasetPlan, Error> {
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
            stops: error.iter().map(|error| self.pipeline.told(&dataset.table, error)).collect(),
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
            Layer::Bronze => self.feed(&mut plan, dataset, table.as_ref()).await?,
            Layer::Silver => self.silver(&mut plan, dataset, table.as_ref()).await?,
            Layer::Gold => self.gold(&mut plan, dataset, table.as_ref()).await?,
        }
        let sources: Vec<TableName> = self.pipeline.sources_of(dataset.layer, dataset.index).into_iter().cloned().collect();
        let is_planned = plan.moves() || !plan.definition.is_empty();
        if let Some(error) = foreseen.missed.as_ref().filter(|_| is_planned && self.moving(&sources).is_empty()) {
            plan.stops.push(tributary_fault::chain(error));
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
        let in_full = self.builds_anew(dataset);
        let of_columns = |difference: &Difference| difference.what.starts_with("column ");
        for difference in self.lake.inner().difference(spec).await?.into_iter().filter(|difference| !of_columns(difference)) {
            let made_with =
                ["tributary.keys", "tributary.policy", "tributary.sequence"].iter().find(|name| difference.what.contains(*name));
            match made_with {
                // what a view was made with decides nothing
                Some(_) if dataset.layer != Layer::Silver => {}
                Some(&"tributary.sequence") if self.sequence_goes_on(dataset, &difference) => {}
                Some(name) if !in_full => plan.stops.push(format!(
                    "its table was made with {} {} and the declaration says {}: --full-refresh {} makes it anew",
                    name.trim_start_matches("tributary."),
                    difference.found.as_deref().unwrap_or("none"),
                    difference.declared.as_deref().unwrap_or("none"),
                    plan.table
                )),
                Some(_) => {}
                // it lies as it is declared from then on
                None if in_full && LAYOUT.contains(&difference.what.as_str()) => {}
                None => plan.differs.push(difference.into()),
            }
        }
        if plan.differs.iter().any(|differs| LAYOUT.contains(&differs.what.as_str())) {
            plan.notes.push(format!("--full-refresh {} lays its rows as they are declared", plan.table));
        }
        Ok(())
    }

    /// Whether another type of its sequence keeps the order of the rows that are there.
    fn sequence_goes_on(&self, dataset: &DatasetRef, difference: &Difference) -> bool {
        let of = |side: &Option<String>| side.as_deref().and_then(|side| side.parse::<DataType>().ok());
        let policy = self.pipeline.spec().silver[dataset.index].schema_policy;
        let types = of(&difference.found).zip(of(&difference.declared));
        types.is_some_and(|(found, declared)| tributary_silver_merge::sequence_goes_on(policy, &found, &declared))
    }

    async fn feed(&mut self, plan: &mut DatasetPlan, dataset: &DatasetRef, table: Option<&Table>) -> Result<(), Error> {
        let feed = &self.pipeline.spec().feeds[dataset.index];
        let Some(look) = self.inputs.feeds.get(&dataset.index) else { return Ok(()) };
        plan.stops.extend(look.faults.iter().cloned());
        if look.settling > 0 {
            plan.notes.push(format!("{} files were changed too short a time ago and are left for a later run", look.settling));
        }
        let from = crate::lineage::places(feed).join(", ");
        if matches!(feed.source, Source::Files(_)) {
            let (files, bytes) = (look.files.len() as u64, look.files.iter().map(|file| file.size).sum());
            (plan.work, plan.reason) = match files {
                0 => (PlannedWork::Nothing, "no file is new".to_owned()),
                files => (PlannedWork::TakesUp, count(files, "new file")),
            };
            if files > 0 {
                plan.rows_estimated = self.inputs.rows_of_bytes(&dataset.table, bytes);
                plan.inputs.push(PlannedInput { from, files: Some(files), bytes: Some(bytes), ..PlannedInput::default() });
            }
        } else {
            (plan.work, plan.reason) = (PlannedWork::Asks, "what its source holds is asked by the run".to_owned());
            self.unsure.insert(plan.table.clone());
            plan.inputs.push(PlannedInput { from, positions: look.positions.clone(), ..PlannedInput::default() });
        }
        let mirrors = look.mirrors && table.is_some();
        if mirrors {
            (plan.work, plan.reason) = (PlannedWork::Refreshes, "files of its folder have changed or gone".to_owned());
            self.replaces(plan, table).await?;
        }
        if self.builds_anew(dataset) && table.is_some() && !mirrors {
            (plan.work, plan.reason) = (PlannedWork::Refreshes, ASKED.to_owned());
            self.replaces(plan, table).await?;
            let lost = match look.gone {
                _ if !matches!(feed.source, Source::Files(_)) => {
                    "records that its source no longer holds, which the run looks for".to_owned()
                }
                0 => return Ok(()),
                gone => format!("rows of {} not there any more under the names they had", count(gone, "file")),
            };
            let accepted = if self.options.accept_shorter_history { "" } else { "; the run stops before, unless --accept-shorter-history" };
            plan.loses.push(format!("{lost}{accepted}"));
        }
        Ok(())
    }

    async fn silver(&mut self, plan: &mut DatasetPlan, dataset: &DatasetRef, table: Option<&Table>) -> Result<(), Error> {
        let spec = &self.pipeline.spec().silver[dataset.index];
        let in_full = self.builds_anew(dataset);
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
            (plan.work, plan.reason) = (PlannedWork::Refreshes, ASKED.to_owned());
            self.replaces(plan, table).await?;
            plan.loses.push("rows that its sources no longer hold the changes of".to_owned());
        } else if !plan.inputs.is_empty() {
            let what: Vec<String> = plan.inputs.iter().map(behind).collect();
            (plan.work, plan.reason) = (PlannedWork::TakesUp, what.join(", "));
        } else {
            self.follow(plan, &streams);
        }
        plan.rows_estimated = rows.filter(|_| !plan.inputs.is_empty());
        // a source whose columns change has a new version, too
        if plan.work == PlannedWork::Nothing && !plan.columns.is_empty() && !self.alters(&streams) {
            plan.rewrites = None;
            plan.notes.push("its columns change when it next takes up rows: nothing is new".to_owned());
        }
        let keeps_rows = table.is_some() && !in_full && plan.stops.is_empty();
        if keeps_rows && plan.definition.iter().any(|change| !changes_no_row(&change.part)) {
            plan.notes.push(format!(
                "the new definition holds for rows taken up from now on; --full-refresh {} makes the earlier ones anew",
                plan.table
            ));
        }
        Ok(())
    }

    async fn gold(&mut self, plan: &mut DatasetPlan, dataset: &DatasetRef, table: Option<&Table>) -> Result<(), Error> {
        let spec = &self.pipeline.spec().gold[dataset.index];
        let sources: Vec<TableName> = self.pipeline.sources_of(dataset.layer, dataset.index).into_iter().cloned().collect();
        let asked = self.builds_anew(dataset) && table.is_some();
        let mut recorded: Vec<(TableName, Option<i64>)> = Vec::new();
        match tributary_gold_agg::look(self.lake.inner(), spec, &self.pipeline.gold_options(spec)).await {
            Err(error) => plan.stops.push(tributary_fault::chain(&error)),
            Ok(None) => self.follow(plan, &sources),
            Ok(Some(look)) => {
                recorded = look.inputs.into_iter().map(|(name, recorded, _)| (name, recorded)).collect();
                if asked {
                    (plan.work, plan.reason) = (PlannedWork::Refreshes, ASKED.to_owned());
                } else if look.refreshes {
                    (plan.work, plan.reason) = (PlannedWork::Refreshes, look.reason);
                } else {
                    self.follow(plan, &sources);
                    if plan.work == PlannedWork::Nothing {
                        plan.reason = look.reason;
                    }
                }
            }
        }
        let moving = self.moving(&sources);
        if !asked && self.takes_up(plan, spec).await {
            if plan.work == PlannedWork::TakesUp && !moving.is_empty() {
                plan.notes.push(format!("{} moves with this run", named(&moving)));
            }
            return Ok(());
        }
        match plan.work {
            // a view that follows is refreshed too, and its reason names what moves
            PlannedWork::Follows => plan.work = PlannedWork::Refreshes,
            PlannedWork::Refreshes if !moving.is_empty() => plan.notes.push(format!("{} moves with this run", named(&moving))),
            PlannedWork::Refreshes => {}
            PlannedWork::Nothing | PlannedWork::TakesUp | PlannedWork::Asks => return Ok(()),
        }
        for source in &sources {
            let from = recorded.iter().find(|(name, _)| name.same_without_case(source)).and_then(|(_, version)| *version);
            let input = PlannedInput { from: source.to_string(), ..PlannedInput::default() };
            plan.inputs.push(match self.lake.inner().table(source).await? {
                Some(table) => PlannedInput {
                    version_from: from.and_then(|version| u64::try_from(version).ok()),
                    version_to: Some(table.version()),
                    ..input.holding(&table.files().await?)
                },
                None => input,
            });
        }
        plan.rows_estimated = inputs::live_rows(table).await?.filter(|rows| *rows > 0);
        self.replaces(plan, table).await
    }

    /// Whether a view takes up what changed, and of each of its inputs the part of its change feed that it reads.
    async fn takes_up(&self, plan: &mut DatasetPlan, spec: &GoldSpec) -> bool {
        if !matches!(plan.work, PlannedWork::Refreshes | PlannedWork::Follows) {
            return false;
        }
        // what keeps it from being told, the run tells
        let explained = tributary_gold_agg::explain(self.lake.inner(), spec, &self.pipeline.gold_options(spec)).await;
        let Ok(Some(explained)) = explained else { return false };
        let means = explained.means.map(|means| format!(", by {means}")).unwrap_or_default();
        match (plan.work, explained.mode) {
            (_, RefreshMode::Incremental) => {
                (plan.work, plan.reason) = (PlannedWork::TakesUp, format!("{}{means}", explained.reason));
            }
            (PlannedWork::Follows, RefreshMode::Nothing) if explained.in_full_for.is_none() && spec.refresh != Refresh::Full => {
                plan.reason.push_str(&means);
            }
            _ => return false,
        }
        plan.rows_estimated = explained.rows.filter(|rows| *rows > 0);
        plan.inputs.extend(explained.inputs.into_iter().map(|input| PlannedInput {
            from: input.table.to_string(),
            bytes: Some(input.changes_bytes).filter(|bytes| *bytes > 0),
            rows: Some(input.changes_rows).filter(|rows| *rows > 0),
            version_from: input.version_from.and_then(|version| u64::try_from(version).ok()),
            version_to: Some(input.version_to),
            ..PlannedInput::default()
        }));
        true
    }

    /// Whether a full refresh of it was asked for, and is allowed.
    fn builds_anew(&self, dataset: &DatasetRef) -> bool {
        let spec = self.pipeline.spec();
        match dataset.layer {
            Layer::Bronze => self.options.builds_feed_anew(self.pipeline, &spec.feeds[dataset.index]),
            Layer::Silver => self.options.builds_anew(&dataset.table, &spec.silver[dataset.index].properties),
            Layer::Gold => self.options.builds_anew(&dataset.table, &spec.gold[dataset.index].properties),
        }
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
    fn follow(&mut self, plan: &mut DatasetPlan, sources: &[TableName]) {
        let moving = self.moving(sources);
        if moving.is_empty() {
            (plan.work, plan.reason) = (PlannedWork::Nothing, "no input moved".to_owned());
            return;
        }
        let writes = match moving.iter().any(|table| !self.unsure.contains(table)) {
            true => "this run writes",
            false => {
                self.unsure.insert(plan.table.clone());
                "this run may write"
            }
        };
        (plan.work, plan.reason) = (PlannedWork::Follows, format!("{writes} {}, which it reads", named(&moving)));
    }

    /// Whether the same run changes columns of any of the sources.
    fn alters(&self, sources: &[TableName]) -> bool {
        let altered = |name: &TableName| self.before.iter().any(|plan| !plan.columns.is_empty() && plan.table.same_without_case(name));
        sources.iter().any(altered)
    }

    /// Those of the sources that the same run writes.
    fn moving(&self, sources: &[TableName]) -> Vec<TableName> {
        let written = |name: &TableName| self.before.iter().find(|plan| plan.moves() && plan.table.same_without_case(name));
        sources.iter().filter_map(written).map(|plan| plan.table.clone()).collect()
    }
}

fn named(tables: &[TableName]) -> String {
    tables.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
