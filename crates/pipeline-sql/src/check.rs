//! Names over all files: who defines what, who reads whom, whether it can be put in an order.

use std::collections::{HashMap, HashSet};

use tributary_specs::Place;

use crate::error::Error;
use crate::parsed::{DatasetName, Definition, Flow, FlowAction, Kind};
use crate::query::{Query, Read, Unkept};
use crate::read::Defined;
use crate::report::Report;

/// Who reads whom, by numbers of datasets.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Of each dataset the flows into it.
    pub(crate) flows: Vec<Vec<usize>>,
    /// Datasets that cannot be made into specs: a mistake of theirs has been told.
    pub(crate) out: Vec<bool>,
    by_name: HashMap<(String, String), Vec<usize>>,
    by_last: HashMap<String, Vec<usize>>,
}

impl Graph {
    /// The flows into a dataset.
    pub(crate) fn flows_into<'d>(&self, defined: &'d Defined, at: usize) -> impl Iterator<Item = &'d Flow> {
        self.flows.get(at).into_iter().flatten().filter_map(|flow| defined.flows.get(*flow))
    }

    /// The datasets that a query reads.
    fn sources(&self, defined: &Defined, query: &Query) -> Vec<usize> {
        query.reads.iter().filter_map(|read| self.dataset(defined, read)).collect()
    }

    /// The dataset that a read means; none for a table that something else makes.
    pub(crate) fn dataset(&self, defined: &Defined, read: &Read) -> Option<usize> {
        let name = read.name.as_ref()?;
        self.find(defined, name, read.written.parts.len() == 1, read.written.live)
    }

    /// A view or private dataset by its last part first, then by its full name.
    fn find(&self, defined: &Defined, name: &DatasetName, one_part: bool, live: bool) -> Option<usize> {
        let last = self.by_last.get(&name.name.to_lowercase()).map(Vec::as_slice).unwrap_or_default();
        let inner = |at: &&usize| defined.datasets.get(**at).is_some_and(|dataset| dataset.name.schema.is_none() || dataset.private);
        if one_part && let Some(at) = last.iter().find(inner) {
            return Some(*at);
        }
        let full = self.by_name.get(&folded(name)).map(Vec::as_slice).unwrap_or_default();
        let same_catalog = |at: &&usize| {
            let other = defined.datasets.get(**at).and_then(|dataset| dataset.name.catalog.as_ref());
            name.catalog.as_ref().zip(other).is_none_or(|(a, b)| a.eq_ignore_ascii_case(b))
        };
        if let Some(at) = full.iter().find(same_catalog) {
            return Some(*at);
        }
        // `LIVE.x` always means a dataset of the pipeline.
        match last {
            [only] if live && one_part => Some(*only),
            _ => None,
        }
    }
}

fn folded(name: &DatasetName) -> (String, String) {
    (name.schema.as_deref().unwrap_or_default().to_lowercase(), name.name.to_lowercase())
}

/// Checks everything that needs all files.
pub(crate) fn check(defined: &Defined, report: &mut Report) -> Graph {
    let mut graph = Graph { flows: vec![Vec::new(); defined.datasets.len()], out: vec![false; defined.datasets.len()], ..Graph::default() };
    for (at, dataset) in defined.datasets.iter().enumerate() {
        let same = graph.by_name.entry(folded(&dataset.name)).or_default();
        if let Some(first) = same.first().and_then(|first| defined.datasets.get(*first)) {
            let error = Error::NameTwice { what: "dataset", name: dataset.name.to_string(), first: first.place.clone() };
            report.fault(&dataset.place, &error);
            graph.out[at] = true;
            continue;
        }
        same.push(at);
        graph.by_last.entry(dataset.name.name.to_lowercase()).or_default().push(at);
        graph.out[at] |= defined.broken.contains(&dataset.name);
    }
    flows(defined, &mut graph, report);
    for (at, dataset) in defined.datasets.iter().enumerate() {
        if let Some(query) = &dataset.query {
            reads(defined, &graph, query, &dataset.name.to_string(), dataset.kind, report);
            if dataset.kind == Kind::StreamingTable {
                let alone = graph.flows_into(defined, at).next().is_none();
                stream(defined, &graph, query, &dataset.name.to_string(), alone, report);
            }
        }
        let alone = dataset.query.is_none() && graph.flows_into(defined, at).count() == 1;
        for flow in graph.flows_into(defined, at) {
            let of = dataset.name.to_string();
            reads(defined, &graph, flow.action.query(), &of, Kind::StreamingTable, report);
            if let FlowAction::Append(query) = &flow.action
                && !flow.once
            {
                stream(defined, &graph, query, &of, alone, report);
            }
        }
    }
    circles(defined, &mut graph, report);
    double_quoted(defined, &graph, report);
    graph
}

fn flows(defined: &Defined, graph: &mut Graph, report: &mut Report) {
    let mut names: HashMap<String, &Flow> = HashMap::new();
    // tables whose flow is told to miss them by a letter
    let mut missed: HashSet<String> = HashSet::new();
    for (at, flow) in defined.flows.iter().enumerate() {
        if let Some(name) = &flow.name
            && let Some(first) = names.insert(name.to_lowercase(), flow)
        {
            let error = Error::NameTwice { what: "flow", name: name.clone(), first: first.place.clone() };
            report.fault(&flow.place, &error);
        }
        match graph.find(defined, &flow.target, false, false) {
            Some(target) if defined.datasets.get(target).is_some_and(|dataset| dataset.kind == Kind::StreamingTable) => {
                graph.flows[target].push(at);
            }
            // that a view lacks its query is told where it stands
            Some(target) if defined.datasets.get(target).is_some_and(|view| view.query.is_none()) => {}
            Some(_) => {
                let found = "which is no streaming table";
                report.fault(&flow.place, &Error::NoTarget { target: flow.target.to_string(), found, nearest: None });
            }
            None if defined.may_define(&flow.target) => {}
            None => {
                let tables = defined.datasets.iter().filter(|dataset| dataset.kind == Kind::StreamingTable);
                let near = near_name(&flow.target, &mut tables.into_iter(), report);
                let found = "which nothing here defines";
                missed.extend(near.clone());
                report.fault(&flow.place, &Error::NoTarget { target: flow.target.to_string(), found, nearest: near });
            }
        }
    }
    for (at, dataset) in defined.datasets.iter().enumerate() {
        let into: Vec<&Flow> = graph.flows_into(defined, at).collect();
        let changes = into.iter().find(|flow| matches!(flow.action, FlowAction::AutoCdc(_)));
        let appends = dataset.query.is_some() || into.iter().any(|flow| matches!(flow.action, FlowAction::Append(_)));
        if let Some(changes) = changes.filter(|_| appends) {
            let reason = "the table also gets rows of a query; a table takes either changes or rows".to_owned();
            let of = dataset.name.to_string();
            report.fault(&changes.place, &Error::ClauseRefused { of, clause: "AUTO CDC".to_owned(), reason, instead: None });
            graph.out[at] = true;
        }
        let headed = dataset.clauses.iter().any(|clause| clause == "AS" || clause == "FLOW");
        if dataset.kind == Kind::StreamingTable && into.is_empty() && !headed && !graph.out[at] {
            graph.out[at] = true;
            if missed.contains(&dataset.name.to_string()) {
                continue;
            }
            let instead = format!("CREATE FLOW {0} AS AUTO CDC INTO {0} FROM STREAM(…) …, or AS SELECT … in the definition", dataset.name);
            let error = Error::ClauseMissing { of: dataset.name.to_string(), clause: "AS or a flow into it", instead };
            report.fault(&dataset.place, &error);
        }
    }
}

/// What a query reads must be there, and be read in a way it can be.
fn reads(defined: &Defined, graph: &Graph, query: &Query, of: &str, kind: Kind, report: &mut Report) {
    for read in &query.reads {
        if kind == Kind::MaterializedView && read.streaming {
            let reason = "a materialized view reads its sources as they are".to_owned();
            let instead = Some("the name without STREAM, or make it a streaming table".to_owned());
            report.fault(&read.place, &Error::ClauseRefused { of: of.to_owned(), clause: "STREAM".to_owned(), reason, instead });
        }
        let Some(name) = &read.name else { continue };
        match graph.dataset(defined, read).and_then(|at| defined.datasets.get(at)) {
            Some(view) if view.kind == Kind::MaterializedView && read.streaming => {
                report.fault(&read.place, &Error::StreamFromView { of: of.to_owned(), view: view.name.to_string() });
            }
            Some(_) => {}
            None => unknown(defined, read, name, of, report),
        }
    }
}

/// A name that nothing here defines.
fn unknown(defined: &Defined, read: &Read, name: &DatasetName, of: &str, report: &mut Report) {
    if defined.may_define(name) {
        return;
    }
    let last = || defined.datasets.iter().map(|dataset| dataset.name.name.clone());
    if read.written.live {
        let near = report.nearest(&name.name, last());
        report.fault(&read.place, &Error::SourceUnknown { of: of.to_owned(), name: name.name.clone(), nearest: near });
    } else if name.schema.is_none() {
        let near = report.nearest(&name.name, last());
        let reason = format!("{of} reads it, nothing here defines it, and it has no schema");
        let instead = near.or_else(|| Some(format!("schema.{}", name.name)));
        report.fault(&read.place, &Error::NameUnreadable { name: name.to_string(), reason, instead });
    } else {
        let same_schema = |dataset: &&Definition| folded(&dataset.name).0 == folded(name).0;
        let near = near_name(name, &mut defined.datasets.iter().filter(same_schema), report);
        let Some(near) = near.or_else(|| near_schema(defined, name, report)) else { return };
        let message =
            format!("{of} reads {name}, which nothing here defines: it is taken for a table made elsewhere; did you mean {near}?");
        report.notice(read.place.clone(), "external_table", message);
    }
}

/// The dataset whose last part is nearest to a name's.
fn near_name(name: &DatasetName, datasets: &mut dyn Iterator<Item = &Definition>, report: &mut Report) -> Option<String> {
    let named: Vec<&DatasetName> = datasets.map(|dataset| &dataset.name).collect();
    let near = report.nearest(&name.name, named.iter().map(|name| name.name.clone()))?;
    named.iter().find(|name| name.name == near).map(ToString::to_string)
}

/// The dataset of the same last part whose schema is nearest.
fn near_schema(defined: &Defined, name: &DatasetName, report: &mut Report) -> Option<String> {
    let same_name = |known: &&DatasetName| folded(known).1 == folded(name).1;
    let named: Vec<&DatasetName> = defined.datasets.iter().map(|dataset| &dataset.name).filter(same_name).collect();
    let schemas = named.iter().filter_map(|known| known.schema.clone());
    let near = report.nearest(name.schema.as_deref()?, schemas)?;
    named.iter().find(|known| known.schema.as_deref() == Some(near.as_str())).map(ToString::to_string)
}

/// A streaming table's query reads a stream; what it remembers of several, or gathers, must follow from groups of rows.
fn stream(defined: &Defined, graph: &Graph, query: &Query, of: &str, alone: bool, report: &mut Report) {
    let streams: Vec<&Read> = query.reads.iter().filter(|read| is_stream(read)).collect();
    let Some(first) = streams.first() else {
        let first = query.reads.first();
        let name = match first {
            Some(Read { name: Some(name), .. }) => name.to_string(),
            Some(Read { call: Some(call), .. }) => format!("{}(…)", call.function),
            _ => "table".to_owned(),
        };
        let place = first.map_or(&query.place, |read| &read.place);
        let instead = format!("FROM STREAM({name}), or make it a materialized view");
        report.fault(place, &Error::NotStreaming { of: of.to_owned(), found: format!("it reads {name} as a whole"), instead });
        return;
    };
    if let Some((place, what, instead)) = query.reads.iter().find_map(|read| of_a_view(defined, graph, read)) {
        report.fault(&place, &Error::NotExecuted { of: of.to_owned(), what, instead: Some(instead) });
        return;
    }
    let gathers = query.shape.around_stream.or(query.shape.gathers);
    let (what, instead, place) = if let Some(gathers) = gathers.filter(|gathers| !gathers.by_groups) {
        (format!("{} over a stream", gathers.clause), "it as a materialized view", None)
    } else if let Some(Unkept { what, instead, place }) = &query.shape.unkept {
        (what.clone(), *instead, place.as_ref())
    } else if remembers(query) && !query.stream_read.is_auto() {
        let what = "WITH (…) of a stream, or a stream of table_changes, that is grouped or joined with another".to_owned();
        (what, "a streaming table of its rows, and this one FROM STREAM of that; or a materialized view", None)
    } else if remembers(query) && !alone {
        let what = "a stream that is grouped or joined with another, in one of several flows".to_owned();
        (what, "a streaming table of its own, and a flow that reads it", None)
    } else {
        return;
    };
    report.fault(place.unwrap_or(&first.place), &Error::NotExecuted { of: of.to_owned(), what, instead: Some(instead.to_owned()) });
}

/// What a view that a streaming table reads makes of several rows: it is told here, and not kept, since the table's own query does not say
/// it. The place, what it is, and what to write.
fn of_a_view(defined: &Defined, graph: &Graph, read: &Read) -> Option<(Place, String, String)> {
    let mut seen = HashSet::new();
    let mut views = vec![(read, is_stream(read))];
    while let Some((inside, streamed)) = views.pop() {
        let Some(at) = graph.dataset(defined, inside) else { continue };
        let Some(view) = defined.datasets.get(at).filter(|view| view.kind == Kind::View && seen.insert((at, streamed))) else { continue };
        for (number, of_view) in view.query.iter().flat_map(|query| query.reads.iter().enumerate()) {
            let streams = is_stream(of_view) || (streamed && number == 0);
            let name = &view.name;
            if streams && let Some(gathers) = of_view.gathers {
                let instead = "that in the table's own query, or make it a materialized view".to_owned();
                return Some((read.place.clone(), format!("{} of the view {name} over a stream", gathers.clause), instead));
            }
            if streams && (!streamed || number > 0) {
                let what = format!("the stream that the view {name} reads beside another");
                let instead = format!("STREAM of it in the table's own query in the place of {name}");
                return Some((read.place.clone(), what, instead));
            }
            views.push((of_view, streams));
        }
    }
    None
}

/// Whether rows of the result are made of several rows that come at different times.
pub(crate) fn remembers(query: &Query) -> bool {
    let streams = query.reads.iter().filter(|read| is_stream(read)).count();
    streams > 0 && (streams > 1 || query.shape.around_stream.is_some())
}

/// Whether only new rows are read; `cloud_files` never needed the word.
pub(crate) fn is_stream(read: &Read) -> bool {
    read.streaming || read.call.as_ref().is_some_and(|call| call.function == "cloud_files")
}

/// Datasets each dataset reads.
fn edges(defined: &Defined, graph: &Graph) -> Vec<Vec<usize>> {
    let of = |(at, dataset): (usize, &Definition)| {
        let queries = dataset.query.iter().chain(graph.flows_into(defined, at).map(|flow| flow.action.query()));
        queries.flat_map(|query| graph.sources(defined, query)).collect()
    };
    defined.datasets.iter().enumerate().map(of).collect()
}

/// Tells each circle once, at the dataset of it that stands first; datasets of circles are left out of the specs.
fn circles(defined: &Defined, graph: &mut Graph, report: &mut Report) {
    let edges = edges(defined, graph);
    // 0 = not seen, 1 = on the way, 2 = done.
    let mut state = vec![0u8; edges.len()];
    for start in 0..edges.len() {
        if state[start] != 0 {
            continue;
        }
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        state[start] = 1;
        while let Some((at, next)) = way.last().copied() {
            let Some(to) = edges[at].get(next).copied() else {
                state[at] = 2;
                way.pop();
                continue;
            };
            if let Some(last) = way.last_mut() {
                last.1 += 1;
            }
            match state[to] {
                0 => {
                    state[to] = 1;
                    way.push((to, 0));
                }
                1 => {
                    let from = way.iter().position(|(on, _)| *on == to).unwrap_or_default();
                    let circle: Vec<usize> = way[from..].iter().map(|(on, _)| *on).collect();
                    tell(defined, graph, &circle, report);
                }
                _ => {}
            }
        }
    }
}

fn tell(defined: &Defined, graph: &mut Graph, circle: &[usize], report: &mut Report) {
    let first = circle.iter().copied().min().unwrap_or_default();
    let turn = circle.iter().position(|at| *at == first).unwrap_or_default();
    let in_order = circle[turn..].iter().chain(&circle[..turn]).chain(std::iter::once(&first));
    let schema = |at: &usize| defined.datasets.get(*at).and_then(|dataset| dataset.name.schema.as_ref());
    let one_schema = circle.iter().all(|at| schema(at) == schema(&first));
    let named = |at: &usize| match defined.datasets.get(*at) {
        Some(dataset) if one_schema => crate::parsed::quoted(&dataset.name.name),
        Some(dataset) => short(dataset),
        None => String::new(),
    };
    let cycle = in_order.map(named).collect::<Vec<_>>().join(" -> ");
    if let Some(dataset) = defined.datasets.get(first) {
        report.fault(&dataset.place, &Error::Cycle { cycle });
    }
    circle.iter().for_each(|at| graph.out[*at] = true);
}

/// A dataset's name without its catalogue.
fn short(dataset: &Definition) -> String {
    DatasetName { catalog: None, ..dataset.name.clone() }.to_string()
}

/// A text in double quotes that is also a column there can be read in two ways.
fn double_quoted(defined: &Defined, graph: &Graph, report: &mut Report) {
    let mut near: HashMap<&Place, Vec<usize>> = HashMap::new();
    if !defined.double_quoted.is_empty() {
        for (at, dataset) in defined.datasets.iter().enumerate() {
            let own = near.entry(&dataset.place).or_default();
            own.push(at);
            own.extend(dataset.query.iter().flat_map(|query| graph.sources(defined, query)));
            for flow in graph.flows_into(defined, at) {
                let own = near.entry(&flow.place).or_default();
                own.push(at);
                own.extend(graph.sources(defined, flow.action.query()));
            }
        }
    }
    for (owner, text, place) in &defined.double_quoted {
        let datasets = near.get(owner).into_iter().flatten().filter_map(|at| defined.datasets.get(*at));
        let named = datasets.flat_map(|dataset| dataset.columns.iter().map(move |column| (dataset, column)));
        if let Some((dataset, column)) = named.into_iter().find(|(_, column)| column.name.eq_ignore_ascii_case(text)) {
            let reason = format!("double quotes make it a text, and {} has a column of this name", dataset.name);
            let instead = Some(format!("'{text}' for the text, or `{}` for the column", column.name));
            let of = dataset.name.to_string();
            report.fault(place, &Error::ClauseRefused { of, clause: format!("\"{text}\""), reason, instead });
        }
    }
}
