//! All mistakes of a dataset: what is wrong is left out and the rest is looked at again.

use std::collections::BTreeSet;

use tributary_fault::Fault as _;
use tributary_gold_agg::Error as Gold;
use tributary_silver_merge::Error as Silver;
use tributary_spark_sql::Error as Text;
use tributary_specs::{Column, DataType, DatasetRef, Layer, Path, SetExpectation, SetRule, SilverSpec, Step, TableSpec};

use super::{Check, QueryProblem, Unplanned, grows, missed_column};
use crate::amend::{Draft, Left, Shift};
use crate::spot::{self, Part, function_of, part};
use crate::{Error, Pipeline};

/// Mistakes of one dataset at most.
const MISTAKES_MAX: usize = 20;

impl Check<'_> {
    /// Takes down a mistake, and those that show once it is left out; each flow of several by itself.
    pub(super) async fn mistakes(&mut self, dataset: &DatasetRef, error: Error) -> Unplanned {
        let silver = match self.draft(dataset, Some(Vec::new())) {
            Draft::Silver(silver) => silver,
            draft @ (Draft::Feed(_) | Draft::Gold(_)) => return self.mistakes_of(dataset, draft, error, None).await,
        };
        let mut ended = None;
        for (at, flow) in silver.each_flow().into_iter().enumerate() {
            let further = at.checked_sub(1);
            let draft = Draft::Silver(Box::new(SilverSpec { flows: Vec::new(), ..flow }));
            if let Err(error) = self.plan(&draft).await {
                let unplanned = self.mistakes_of(dataset, draft, error, further).await;
                ended = Some(heavier(ended, unplanned));
            }
        }
        match ended {
            Some(ended) => ended,
            // only together do they not fit
            None => self.mistaken(dataset, part(&error, &[]), error),
        }
    }

    async fn mistakes_of(&mut self, dataset: &DatasetRef, mut draft: Draft, first: Error, flow: Option<usize>) -> Unplanned {
        let (mut error, mut ended) = (first, None);
        let (mut named, mut shifts): (BTreeSet<String>, Vec<Shift>) = (BTreeSet::new(), Vec::new());
        for _ in 0..MISTAKES_MAX {
            let rules = self.pipeline.rules_of(dataset);
            let mut part = in_flow(part(&error, &rules), flow);
            part.position = part.position.map(|at| shifts.iter().rev().fold(at, |at, shift| shift.undone(at)));
            let again = part.name.as_ref().is_some_and(|name| !named.insert(name.to_lowercase()));
            let left = draft.leave_out(&error);
            if !again {
                let unplanned = self.mistaken(dataset, part, error);
                ended = Some(heavier(ended, unplanned));
            }
            shifts.extend(match left {
                Some(Left::InQuery(shift)) => Some(shift),
                Some(Left::Clause) => None,
                None => break,
            });
            match self.plan(&draft).await {
                Err(next) if follows(&next, !shifts.is_empty()) => error = next,
                _ => break,
            }
        }
        ended.unwrap_or(Unplanned::Mistaken)
    }

    /// A mistake; or, where messages may bring the column that is missed, a dataset that is left to its first run. A column that is
    /// nearly a declared one is a mistake in any case.
    pub(super) fn mistaken(&mut self, dataset: &DatasetRef, part: Part, error: Error) -> Unplanned {
        if let (Some((column, None)), true) = (missed_column(&error), self.reads_growing(dataset)) {
            return Unplanned::LeftToFirstRun(format!("no feed declares `{column}`, which messages may bring"), part);
        }
        if let Some(function) = function_of_lake(&error) {
            return Unplanned::LeftToFirstRun(format!("the function `{function}` can only be one that was made in the lake"), part);
        }
        for error in each(error) {
            let part = if matches!(part.field(), Some("schema")) { spot::part(&error, &[]) } else { part.clone() };
            self.tell(dataset, &part, error);
        }
        Unplanned::Mistaken
    }

    /// Takes down a problem, the same at one place once.
    fn tell(&mut self, dataset: &DatasetRef, part: &Part, error: Error) {
        if function_of_lake(&error).is_some() {
            return;
        }
        let place = self.pipeline.place(&dataset.path(), part);
        let same = |known: &&QueryProblem| known.place.is_some() && known.place == place && known.error.code() == error.code();
        if self.found.problems.iter().find(same).is_none() {
            self.found.problems.push(QueryProblem { path: part.path(&dataset.path()), error, place });
        }
    }

    /// Functions that there are not, of a dataset that cannot be planned.
    pub(super) fn functions(&mut self, dataset: &DatasetRef) {
        let own: Vec<String> = self.pipeline.functions().iter().map(|function| function.name().to_owned()).collect();
        let table = &dataset.table;
        match self.draft(dataset, None) {
            Draft::Feed(_) => {}
            Draft::Silver(silver) => {
                let of_rules =
                    silver.expectations.iter().map(|rule| (format!("expectation `{}`", rule.name), rule.expression.clone(), None));
                let of_flow = |(at, flow): (usize, SilverSpec)| Some(("select".to_owned(), flow.select?, at.checked_sub(1)));
                for (clause, text, flow) in silver.each_flow().into_iter().enumerate().filter_map(of_flow).chain(of_rules) {
                    for source in tributary_spark_sql::unknown_functions(&text, &own) {
                        let (table, clause, source) = (table.clone(), clause.clone(), Box::new(source));
                        let error = Error::from(Silver::Text { table, clause, source });
                        let part = in_flow(part(&error, &self.pipeline.rules_of(dataset)), flow);
                        self.tell(dataset, &part, error);
                    }
                }
            }
            Draft::Gold(gold) => {
                for source in tributary_spark_sql::unknown_functions(&gold.query, &own) {
                    let error = Error::from(Gold::Sql { table: table.clone(), source: Box::new(source) });
                    let part = part(&error, &[]);
                    self.tell(dataset, &part, error);
                }
            }
        }
    }

    /// Names of columns by which rows lie, and of rules of the whole table, that the table does not have.
    pub(super) fn names(&mut self, dataset: &DatasetRef, spec: &TableSpec) {
        let grows = grows(self.pipeline, dataset, self.reads_growing(dataset));
        for (path, column) in named_columns(self.pipeline, dataset) {
            let known = || spec.columns.iter().map(|known| known.name.as_str());
            if known().any(|known| known.eq_ignore_ascii_case(&column)) {
                continue;
            }
            let nearest = tributary_fault::nearest(&column, known()).map(str::to_owned);
            if nearest.is_none() && grows {
                continue;
            }
            let clause = path.iter().cloned().collect::<Path>().to_string();
            let part = Part { steps: path, name: Some(column.clone()), ..Part::default() };
            let table = dataset.table.to_string();
            self.tell(dataset, &part, Error::NoColumn { table, clause, column, nearest });
        }
    }

    /// Columns that are not what is declared of them: defaults that do not fit, and times by which rows are to be fresh that are none.
    pub(super) fn misfits(&mut self, dataset: &DatasetRef, spec: &TableSpec) {
        let table = dataset.table.to_string();
        let now = self.planner.lake.inner().clock().now();
        for (column, reason) in tributary_lake::refused_defaults(declared_columns(self.pipeline, dataset), now) {
            let part = Part { steps: vec![Step::Field("schema".to_owned())], name: Some(column.clone()), ..Part::default() };
            let (table, reason) = (table.clone(), format!("cannot have its default: {reason}"));
            self.tell(dataset, &part, Error::ColumnMisfit { table, clause: "schema".to_owned(), column, reason });
        }
        let rules = set_rules(self.pipeline, dataset).iter().enumerate();
        let fresh = rules.filter_map(|(at, rule)| match &rule.rule {
            SetRule::Freshness { column, .. } => Some((at, column)),
            SetRule::Unique(_) | SetRule::RowCount { .. } => None,
        });
        for (at, name) in fresh {
            let Some(column) = spec.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)) else { continue };
            if matches!(column.data_type, DataType::Date | DataType::Timestamp | DataType::TimestampNtz) {
                continue;
            }
            let steps = vec![Step::Field("set_expectations".to_owned()), Step::Index(at)];
            let clause = steps.iter().cloned().collect::<Path>().to_string();
            let part = Part { steps, ..Part::default() };
            let reason = format!("is {}, and freshness asks for a date or a timestamp", tributary_spark_sql::type_name(&column.data_type));
            self.tell(dataset, &part, Error::ColumnMisfit { table: table.clone(), clause, column: name.clone(), reason });
        }
    }
}

/// The columns that a dataset declares.
fn declared_columns<'p>(pipeline: &'p Pipeline, dataset: &DatasetRef) -> &'p [Column] {
    let spec = pipeline.spec();
    match dataset.layer {
        Layer::Bronze => &spec.feeds[dataset.index].columns,
        Layer::Silver => &spec.silver[dataset.index].schema,
        Layer::Gold => &spec.gold[dataset.index].schema,
    }
}

/// The rules of a dataset's whole table.
fn set_rules<'p>(pipeline: &'p Pipeline, dataset: &DatasetRef) -> &'p [SetExpectation] {
    let spec = pipeline.spec();
    match dataset.layer {
        Layer::Bronze => &[],
        Layer::Silver => &spec.silver[dataset.index].set_expectations,
        Layer::Gold => &spec.gold[dataset.index].set_expectations,
    }
}

/// A mistake weighs more than what only the first run can tell, and of that what comes first.
fn heavier(ended: Option<Unplanned>, next: Unplanned) -> Unplanned {
    match (ended, next) {
        (Some(ended), Unplanned::LeftToFirstRun(..)) => ended,
        (_, next) => next,
    }
}

/// Columns that a dataset names without being planned by them, and where.
fn named_columns(pipeline: &Pipeline, dataset: &DatasetRef) -> Vec<(Vec<Step>, String)> {
    let spec = pipeline.spec();
    let mut named = Vec::new();
    let mut add =
        |field: &str, columns: &[String]| named.extend(columns.iter().map(|column| (vec![Step::Field(field.to_owned())], column.clone())));
    match dataset.layer {
        Layer::Bronze => {
            let feed = &spec.feeds[dataset.index];
            add("partition_by", &feed.partition_by);
            add("cluster_by", &feed.cluster_by);
        }
        Layer::Silver => {
            let silver = &spec.silver[dataset.index];
            add("partition_by", &silver.partition_by);
            add("cluster_by", &silver.cluster_by);
        }
        Layer::Gold => {
            let gold = &spec.gold[dataset.index];
            add("partition_by", &gold.partition_by);
            add("cluster_by", &gold.cluster_by);
            add("zorder_by", &gold.zorder_by);
        }
    }
    for (at, rule) in set_rules(pipeline, dataset).iter().enumerate() {
        let columns = match &rule.rule {
            SetRule::Unique(columns) => columns.as_slice(),
            SetRule::Freshness { column, .. } => std::slice::from_ref(column),
            SetRule::RowCount { .. } => &[],
        };
        let steps = vec![Step::Field("set_expectations".to_owned()), Step::Index(at)];
        named.extend(columns.iter().map(|column| (steps.clone(), column.clone())));
    }
    named
}

/// The part of a further flow.
fn in_flow(part: Part, flow: Option<usize>) -> Part {
    let Some(at) = flow else { return part };
    let field = match part.steps.as_slice() {
        [Step::Field(select)] if select == "select" => select.clone(),
        [Step::Field(deletes), Step::Field(condition)] if deletes == "deletes" => condition.clone(),
        _ => return part,
    };
    Part { steps: vec![Step::Field("flows".to_owned()), Step::Index(at), Step::Field(field)], ..part }
}

/// Whether an error is another mistake and does not come of what was left out.
fn follows(error: &Error, of_query: bool) -> bool {
    let is_name = |text: &Text| matches!(text, Text::NoColumn { .. }) || function_of(text).is_some();
    match error {
        Error::Gold(Gold::Sql { source, .. }) => is_name(source),
        Error::Silver(Silver::Text { clause, source, .. }) if clause == "select" => is_name(source),
        Error::Silver(Silver::Text { .. } | Silver::NoColumn { .. } | Silver::DeclaredSchema { .. }) => !of_query,
        _ => false,
    }
}

/// Each difference of a declared schema by itself.
fn each(error: Error) -> Vec<Error> {
    match error {
        Error::Silver(Silver::DeclaredSchema { table, differences }) => {
            let one = |difference| Silver::DeclaredSchema { table: table.clone(), differences: vec![difference] }.into();
            differences.into_iter().map(one).collect()
        }
        Error::Gold(Gold::DeclaredSchema { table, differences }) => {
            let one = |difference| Gold::DeclaredSchema { table: table.clone(), differences: vec![difference] }.into();
            differences.into_iter().map(one).collect()
        }
        other => vec![other],
    }
}

/// A function with a schema before its name, which no declaration makes.
fn function_of_lake(error: &Error) -> Option<&str> {
    spot::text_of(error).and_then(function_of).filter(|name| name.contains('.'))
}
