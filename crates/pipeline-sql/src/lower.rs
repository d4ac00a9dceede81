//! Definitions and flows to specs.
//!
//! ```text
//! streaming table over files or topics, all columns ─▶ feed
//!                                        otherwise  ─▶ feed of its own, and rows appended from it
//! streaming table over a stream                     ─▶ silver, rows appended
//! streaming table over two, or one that is grouped  ─▶ gold, kept equal to its query
//! streaming table with AUTO CDC                     ─▶ silver, changes merged (type 1 or 2, or a merge policy of ours)
//! materialized view                                 ─▶ gold
//! view                                              ─▶ put into the queries that read it
//! ```

mod feed;
mod gold;
mod properties;
mod render;
mod silver;
mod validate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tributary_specs::{Column, GoldSpec, Layer, Pipeline, Place, TableName};

use crate::check::{Graph, remembers};
use crate::error::Error;
use crate::fault::Faults;
use crate::origin::{self, Origins};
use crate::parsed::{DatasetName, Definition, FlowAction, Kind, Parsed};
use crate::place::Lines;
use crate::query::{Query, Read};
use crate::read::Defined;
use crate::report::Report;
pub(crate) use properties::is_obeyed;

/// A pipeline as specs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lowered {
    /// What engines execute, validated.
    pub pipeline: Pipeline,
    /// The catalogue that the files name; none = the catalogue of the run.
    pub catalog: Option<String>,
    /// Where the dataset of each table is defined.
    pub places: BTreeMap<TableName, Place>,
    /// Where everything in the specs stands.
    pub origins: Arc<Origins>,
    /// Views that nothing reads, as if they were tables: to be planned, not to be run.
    unread: Vec<GoldSpec>,
}

impl Parsed {
    /// The specs of everything that has no mistake of its own. What they read of the rest is among the external
    /// tables, and their origins know which of these have mistakes.
    pub fn sound_parts(&self) -> Lowered {
        let mut lowered = self.lowered.clone();
        lowered.pipeline.gold.append(&mut lowered.unread);
        loop {
            lowered.pipeline.external = lowered.made_elsewhere();
            let problems = lowered.pipeline.validate();
            let of_datasets = problems.iter().filter(|problem| !validate::is_of_sources(&problem.error));
            let parts = of_datasets.filter_map(|problem| origin::part(&problem.path));
            let broken: BTreeSet<(Layer, usize)> = parts.map(|(layer, at, _)| (layer, at)).collect();
            if broken.is_empty() {
                break;
            }
            lowered.leave_out(&broken);
        }
        let mut mistaken: BTreeSet<TableName> = self.datasets.iter().map(|dataset| table_of(&dataset.name).folded()).collect();
        mistaken.retain(|table| lowered.pipeline.external.iter().any(|missing| missing.folded() == *table));
        Arc::make_mut(&mut lowered.origins).mistaken = mistaken;
        lowered
    }

    /// The pipeline as specs, of this name.
    ///
    /// # Errors
    /// Every mistake, as in [`Parsed::faults`].
    pub fn to_pipeline(&self, name: &str) -> Result<Lowered, Faults> {
        if let Some(faults) = Faults::when_any(self.faults.clone()) {
            return Err(faults);
        }
        let mut lowered = self.lowered.clone();
        name.clone_into(&mut lowered.pipeline.name);
        Ok(lowered)
    }
}

impl Lowered {
    /// What its datasets read and none of them is.
    fn made_elsewhere(&self) -> Vec<TableName> {
        let pipeline = &self.pipeline;
        let known: BTreeSet<TableName> = pipeline.datasets().into_iter().map(|dataset| dataset.table.folded()).collect();
        let sources = pipeline.silver.iter().flat_map(|spec| spec.reads()).chain(pipeline.gold.iter().flat_map(|spec| &spec.sources));
        let missing: BTreeMap<TableName, TableName> =
            sources.filter(|source| !known.contains(&source.folded())).map(|source| (source.folded(), source.clone())).collect();
        missing.into_values().collect()
    }

    fn leave_out(&mut self, datasets: &BTreeSet<(Layer, usize)>) {
        fn kept<T>(list: &mut Vec<T>, layer: Layer, out: &BTreeSet<(Layer, usize)>) {
            let mut at = 0..;
            list.retain(|_| at.next().is_some_and(|at| !out.contains(&(layer, at))));
        }
        let origins = Arc::make_mut(&mut self.origins);
        kept(&mut self.pipeline.feeds, Layer::Bronze, datasets);
        kept(&mut origins.feeds, Layer::Bronze, datasets);
        kept(&mut self.pipeline.silver, Layer::Silver, datasets);
        kept(&mut origins.silver, Layer::Silver, datasets);
        kept(&mut self.pipeline.gold, Layer::Gold, datasets);
        kept(&mut origins.gold, Layer::Gold, datasets);
    }
}

/// Makes specs of everything that has no mistake, and adds the mistakes that show only then.
pub(crate) fn lower(defined: &Defined, graph: &Graph, files: BTreeMap<String, Arc<Lines>>, report: &mut Report) -> Lowered {
    let (out, origins) = (Lowered::default(), Origins::default());
    let mut lowering = Lowering { defined, graph, report, out, origins, rendered: 0, steps: 0 };
    lowering.catalog();
    // Feeds first: what merges their changes goes by them.
    for feeds in [true, false] {
        for at in 0..defined.datasets.len() {
            let out = graph.out.get(at).copied().unwrap_or(true);
            if !out && reads_source(defined, graph, at) == feeds {
                lowering.dataset(at);
            }
        }
    }
    lowering.external();
    lowering.validate();
    lowering.unread();
    let Lowering { out, origins, .. } = lowering;
    Lowered { origins: Arc::new(Origins { files, ..origins }), ..out }
}

struct Lowering<'a> {
    defined: &'a Defined,
    graph: &'a Graph,
    report: &'a mut Report,
    out: Lowered,
    origins: Origins,
    /// Bytes of the queries made so far.
    rendered: usize,
    /// Steps of where they stand.
    steps: usize,
}

/// What writes rows of a streaming table: the query of its definition, or a flow.
struct Writer<'a> {
    /// The flow's name; none = the table's.
    name: Option<&'a str>,
    once: bool,
    place: &'a Place,
    action: Action<'a>,
}

/// What a writer does.
enum Action<'a> {
    Append(&'a Query),
    Changes(&'a crate::parsed::AutoCdc),
}

impl<'a> Writer<'a> {
    fn query(&self) -> &'a Query {
        match &self.action {
            Action::Append(query) => query,
            Action::Changes(body) => &body.source,
        }
    }

    /// The function that it reads files or topics by.
    fn call(&self) -> Option<(&'a crate::query::Read, &'a crate::call::Call)> {
        self.query().reads.iter().find_map(|read| Some((read, read.call.as_ref()?)))
    }
}

impl Lowering<'_> {
    /// All datasets of a pipeline are in one catalogue.
    fn catalog(&mut self) {
        let mut first: Option<(&String, String)> = None;
        for dataset in &self.defined.datasets {
            let Some(catalog) = &dataset.name.catalog else { continue };
            match &first {
                None => first = Some((catalog, dataset.name.to_string())),
                Some((known, name)) if !known.eq_ignore_ascii_case(catalog) => {
                    let reason = format!("all datasets of a pipeline are in one catalogue, and {name} is in {known}");
                    let name = dataset.name.to_string();
                    self.report.fault(&dataset.place, &Error::NameUnreadable { name, reason, instead: None });
                }
                Some(_) => {}
            }
        }
        self.out.catalog = first.map(|(catalog, _)| catalog.clone());
    }

    fn dataset(&mut self, at: usize) {
        let defined = self.defined;
        let Some(definition) = defined.datasets.get(at) else { return };
        match definition.kind {
            Kind::View => self.view(definition),
            Kind::MaterializedView => self.gold(definition),
            Kind::StreamingTable => {
                let writers = writers(defined, self.graph, at, definition);
                match writers.first().map(|writer| &writer.action) {
                    Some(Action::Append(query)) if writers.len() == 1 && remembers(query) => self.remembering(definition, query),
                    Some(Action::Append(_)) => self.rows(definition, &writers),
                    Some(Action::Changes(body)) => self.changes(at, definition, body, &writers),
                    None => {}
                }
            }
        }
    }

    /// Views have no rows of their own; what stands in them counts where they are read.
    fn view(&mut self, view: &Definition) {
        let of = view.name.to_string();
        if view.name.schema.is_some() {
            self.report.not_applied(view.place.clone(), "CREATE VIEW", Some(&of), "it is put into what reads it; nobody else sees it");
        }
        for rule in &view.expectations {
            let place = rule.place.as_ref().unwrap_or(&view.place);
            match rule.value.action {
                tributary_specs::ExpectationAction::Fail => {
                    let what = format!("ON VIOLATION FAIL UPDATE of the rule {} on a view", rule.value.name);
                    let instead = Some("the rule on the tables that read the view".to_owned());
                    self.report.fault(place, &Error::NotExecuted { of: of.clone(), what, instead });
                }
                tributary_specs::ExpectationAction::Drop => {
                    let reason = "rows that fail it are left out, but not counted";
                    self.report.not_applied(place.clone(), "counts of a rule on a view", Some(&of), reason);
                }
                _ => self.report.not_applied(place.clone(), "EXPECT on a view", Some(&of), "rows of a view are not counted"),
            }
        }
    }

    /// Declared columns that have a type.
    fn schema(&self, definition: &Definition) -> Vec<Column> {
        let typed = definition.columns.iter().filter_map(|column| {
            Some(Column {
                name: column.name.clone(),
                data_type: column.data_type.clone()?,
                nullable: column.nullable,
                comment: column.comment.clone(),
                default: column.default.clone(),
                generated: column.generated.clone(),
                encoding: None,
            })
        });
        typed.collect()
    }

    /// Tables that are read and made elsewhere.
    fn external(&mut self) {
        let pipeline = &mut self.out.pipeline;
        let tables = pipeline.datasets().into_iter().map(|dataset| dataset.table);
        let defined = self.defined.datasets.iter().map(|dataset| table_of(&dataset.name));
        let made: BTreeSet<TableName> = tables.chain(defined).map(|table| table.folded()).collect();
        let sources = pipeline.silver.iter().flat_map(|spec| spec.reads()).chain(pipeline.gold.iter().flat_map(|spec| &spec.sources));
        let mut external: BTreeMap<TableName, TableName> = BTreeMap::new();
        for source in sources {
            let folded = source.folded();
            let own = ["quarantine", "_state", "system"].contains(&folded.schema.as_str());
            if !own && !made.contains(&folded) {
                external.entry(folded).or_insert_with(|| source.clone());
            }
        }
        pipeline.external = external.into_values().collect();
    }

    /// The dataset that a read means, or the table that something else makes.
    fn meaning(&mut self, read: &Read, of: &str) -> Option<Meaning> {
        if let Some(at) = self.graph.dataset(self.defined, read) {
            return Some(Meaning::Dataset(at));
        }
        let name = read.name.clone()?;
        if let (Some(catalog), Some(own)) = (&name.catalog, &self.out.catalog)
            && !catalog.eq_ignore_ascii_case(own)
        {
            let what = format!("reading {name}, which is in another catalogue than {own},");
            self.report.fault(&read.place, &Error::NotExecuted { of: of.to_owned(), what, instead: None });
            return None;
        }
        let schema = name.schema?;
        Some(Meaning::Table(TableName::new(schema, name.name)))
    }
}

/// The table of a dataset.
fn table_of(name: &DatasetName) -> TableName {
    TableName::new(name.schema.clone().unwrap_or_default(), &name.name)
}

/// Whether a dataset is made straight of files or topics.
fn reads_source(defined: &Defined, graph: &Graph, at: usize) -> bool {
    let calls = |query: &Query| query.reads.iter().any(|read| read.call.is_some());
    let own = defined.datasets.get(at).and_then(|dataset| dataset.query.as_ref()).is_some_and(calls);
    let mut appends = graph.flows_into(defined, at).filter_map(|flow| match &flow.action {
        FlowAction::Append(query) => Some(query),
        FlowAction::AutoCdc(_) => None,
    });
    own || appends.any(calls)
}

/// What a name in a query stands for.
enum Meaning {
    Dataset(usize),
    Table(TableName),
}

/// What writes a table: its own query first, then the flows, in the order of files and lines.
fn writers<'a>(defined: &'a Defined, graph: &Graph, at: usize, definition: &'a Definition) -> Vec<Writer<'a>> {
    let own =
        definition.query.iter().map(|query| Writer { name: None, once: false, place: &definition.place, action: Action::Append(query) });
    let flows = graph.flows_into(defined, at).map(|flow| Writer {
        name: flow.name.as_deref().filter(|name| !name.eq_ignore_ascii_case(&definition.name.name)),
        once: flow.once,
        place: &flow.place,
        action: match &flow.action {
            FlowAction::Append(query) => Action::Append(query),
            FlowAction::AutoCdc(body) => Action::Changes(body),
        },
    });
    own.chain(flows).collect()
}
