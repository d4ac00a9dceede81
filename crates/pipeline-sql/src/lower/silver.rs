//! Streaming tables that read streams of tables, and those that changes are applied to.

use std::collections::BTreeMap;

use tributary_specs::{Flow, IgnoreNullUpdates, MergePolicy, NullKeys, Place, SilverSpec, StreamRead, TableName};

use super::properties::Said;
use super::{Action, Lowering, Writer, table_of};
use crate::check::is_stream;
use crate::error::Error;
use crate::origin::Origin;
use crate::parsed::{AutoCdc, Definition, FlowAction, Kind};
use crate::portability::rules;
use crate::woven::Woven;

impl Lowering<'_> {
    /// A streaming table of the rows of queries.
    pub(super) fn rows(&mut self, definition: &Definition, writers: &[Writer<'_>]) {
        let said = self.said(definition);
        self.refuse_merge_properties(definition, &said, "rows that are appended");
        let plain = definition.expectations.is_empty() && said.of_set.is_empty();
        if let [only] = writers
            && let Some((_, call)) = only.call().filter(|_| only.query().shape.everything && plain && !only.once && said.late.is_none())
        {
            self.watermarks_not_applied(definition, only.query());
            return self.feed(definition, call, said);
        }
        let Some((flows, texts)) = self.flows(definition, writers) else { return };
        let mut spec = SilverSpec::new(table_of(&definition.name), Vec::new()).with_policy(MergePolicy::Append);
        let_write(&mut spec, flows);
        self.watermark(definition, &mut spec, &said, writers);
        let mut origin = self.origin(definition, &said.names_of_set());
        origin.texts.extend(texts);
        self.silver(definition, spec, said, origin);
    }

    /// Late rows are told of one flow that reads a table by its appends. Of a view that is put in, the columns are not the table's.
    fn watermark(&mut self, definition: &Definition, spec: &mut SilverSpec, said: &Said, writers: &[Writer<'_>]) {
        let stream = writers.first().and_then(|writer| writer.query().reads.iter().find(|read| is_stream(read)));
        let is_view = stream.and_then(|read| self.graph.dataset(self.defined, read)).and_then(|at| self.defined.datasets.get(at));
        let by_appends = !spec.once && !spec.stream.is_change_feed() && spec.flows.is_empty();
        let told = by_appends && is_view.is_none_or(|dataset| dataset.kind != Kind::View);
        match stream.and_then(|read| read.watermark.as_ref()).filter(|_| told) {
            Some(watermark) => {
                spec.watermark = Some(watermark.value.clone());
                spec.late = said.late.as_ref().map(|(late, _)| *late).unwrap_or_default();
            }
            None => {
                self.refuse_late(definition, said);
                writers.iter().for_each(|writer| self.watermarks_not_applied(definition, writer.query()));
            }
        }
    }

    /// A streaming table that changes are applied to.
    pub(super) fn changes(&mut self, at: usize, definition: &Definition, body: &AutoCdc, writers: &[Writer<'_>]) {
        let mut said = self.said(definition);
        self.refuse_different(definition, body, writers);
        self.refuse_late(definition, &said);
        writers.iter().for_each(|writer| self.watermarks_not_applied(definition, writer.query()));
        let Some((flows, texts)) = self.flows(definition, writers) else { return };
        let feeds = &self.out.pipeline.feeds;
        let feed = |flow: &Flow| {
            let stream = flow.sources.first()?;
            feeds.iter().find(|feed| feed.table.same_without_case(stream))
        };
        let ours = flows.iter().all(|flow| feed(flow).is_some());
        let placed = matches!(flows.as_slice(), [only] if feed(only).is_some_and(tributary_specs::SourceFeed::has_position));
        let mut spec = SilverSpec::new(table_of(&definition.name), Vec::new());
        let_write(&mut spec, flows);
        spec.keys.clone_from(&body.keys.value);
        spec.sequence_by.clone_from(&body.sequence_by.value);
        if placed && matches!(spec.sequence_by.as_slice(), [only] if only.eq_ignore_ascii_case("_position")) {
            spec.sequence_by.clear();
        }
        spec.policy = self.policy(definition, body, &mut said);
        spec.columns.clone_from(&body.columns.value);
        spec.ignore_null_updates.clone_from(&body.ignore_null_updates);
        spec.null_keys = said.null_keys.unwrap_or(if ours { NullKeys::Quarantine } else { NullKeys::Refuse });
        let mut origin = self.origin_of_changes(at, definition, body, &said);
        origin.texts.extend(texts);
        for writer in writers {
            let Action::Changes(body) = &writer.action else { continue };
            if body.apply_as_delete_when.is_none() && spec.implicit_deletes() && spec.policy.applies_deletes() {
                let of = definition.name.to_string();
                let message = format!(
                    "{of}: deletes of a change feed are applied though APPLY AS DELETE WHEN is absent; the platform would upsert them. \
                     TBLPROPERTIES ('tributary.cdc.implicitDeletes' = 'false') gives the platform's way"
                );
                let place = body.keys.place.as_ref().unwrap_or(&definition.place);
                self.report.uses(place.clone(), &rules::IMPLICIT_DELETES, None);
                self.report.notice(place.clone(), "implicit_deletes", message);
            }
        }
        self.silver(definition, spec, said, origin);
    }

    /// What each writer reads and how, as flows; a mistake is told and gives none.
    fn flows(&mut self, definition: &Definition, writers: &[Writer<'_>]) -> Option<(Vec<Flow>, BTreeMap<String, Woven>)> {
        let mut feeds = 0;
        let (mut flows, mut texts) = (Vec::new(), BTreeMap::new());
        for writer in writers {
            let feed = match writer.call() {
                Some((read, call)) => {
                    let name = writer.name.filter(|_| feeds > 0);
                    feeds += 1;
                    Some(self.own_feed(definition, writer.query(), call, &read.place, name)?)
                }
                None => None,
            };
            let (flow, of_flow) = self.flow(definition, writer, feed.as_ref())?;
            let further = flows.len().checked_sub(1);
            texts.extend(of_flow.into_iter().map(|(field, woven)| (way_of_flow(further, field), woven)));
            flows.push(flow);
        }
        Some((flows, texts))
    }

    fn flow(&mut self, definition: &Definition, writer: &Writer<'_>, feed: Option<&TableName>) -> Option<(Flow, TextsOfFlow)> {
        let of = definition.name.to_string();
        let query = writer.query();
        if let Some(gathers) = query.shape.gathers.filter(|_| writer.once) {
            let instead = Some("it as a materialized view, and a flow that reads that once".to_owned());
            self.report
                .fault(&query.place, &Error::NotExecuted { of, what: format!("{} in a flow that runs ONCE", gathers.clause), instead });
            return None;
        }
        let rendered = self.render(query, &of, feed, writer.once)?;
        if let Some(table) = &rendered.changes_of {
            let what = format!("table_changes of {table} without STREAM");
            let instead = Some("FROM STREAM table_changes(…), or make it a materialized view".to_owned());
            self.report.fault(&query.place, &Error::NotExecuted { of, what, instead });
            return None;
        }
        let sources = rendered.sources();
        let mut texts = TextsOfFlow::new();
        let (select, delete, truncate) = match &writer.action {
            Action::Append(query) => {
                let plain = query.shape.everything && !rendered.has_view;
                ((!plain).then(|| rendered.woven.clone()), None, None)
            }
            Action::Changes(body) => {
                let condition = |placed: &Option<crate::parsed::Placed<String>>| placed.as_ref().map(|placed| placed.value.clone());
                for (field, placed) in
                    [("apply_as_delete_when", &body.apply_as_delete_when), ("apply_as_truncate_when", &body.apply_as_truncate_when)]
                {
                    let woven = placed.as_ref().and_then(|placed| self.report.expression_of(placed.place.as_ref(), &placed.value));
                    texts.extend(woven.map(|woven| (field, woven.clone())));
                }
                let select = (body.subquery || rendered.has_view).then(|| selected(&rendered.woven, body.subquery));
                (select, condition(&body.apply_as_delete_when), condition(&body.apply_as_truncate_when))
            }
        };
        let flow = Flow {
            name: writer.name.unwrap_or(&definition.name.name).to_owned(),
            sources,
            select: select.as_ref().map(|select| select.text.clone()),
            once: writer.once,
            stream: if writer.once { StreamRead::Auto } else { rendered.stream_read },
            apply_as_delete_when: delete,
            apply_as_truncate_when: truncate,
        };
        texts.extend(select.map(|select| ("select", select)));
        Some((flow, texts))
    }

    /// Flows of changes into one table say the same of keys, order, columns and kind.
    fn refuse_different(&mut self, definition: &Definition, first: &AutoCdc, writers: &[Writer<'_>]) {
        for writer in writers.iter().skip(1) {
            let Action::Changes(body) = &writer.action else { continue };
            let same_words = |one: &[String], other: &[String]| {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.trim().eq_ignore_ascii_case(other.trim()))
            };
            let differs = [
                ("KEYS", !same_words(&first.keys.value, &body.keys.value)),
                ("SEQUENCE BY", !same_words(&first.sequence_by.value, &body.sequence_by.value)),
                ("COLUMNS", first.columns.value != body.columns.value),
                ("STORED AS SCD TYPE", first.scd_type != body.scd_type),
                ("TRACK HISTORY ON", first.track_history.value != body.track_history.value),
                ("IGNORE NULL UPDATES", first.ignore_null_updates != body.ignore_null_updates),
            ];
            for (clause, _) in differs.into_iter().filter(|(_, differs)| *differs) {
                let reason = "the first flow into the table says otherwise; all of them make one table".to_owned();
                let instead = Some("the same in each, and what differs in the query that a flow reads FROM".to_owned());
                let of = definition.name.to_string();
                self.report.fault(writer.place, &Error::ClauseRefused { of, clause: clause.to_owned(), reason, instead });
            }
        }
    }

    fn policy(&mut self, definition: &Definition, body: &AutoCdc, said: &mut Said) -> MergePolicy {
        let history = body.track_history.place.as_ref();
        if let (1, Some(place)) = (body.scd_type, history) {
            let reason = "only SCD TYPE 2 keeps a history".to_owned();
            let instead = Some("STORED AS SCD TYPE 2".to_owned());
            let clause = "TRACK HISTORY ON".to_owned();
            self.report.fault(place, &Error::ClauseRefused { of: definition.name.to_string(), clause, reason, instead });
        }
        match (said.policy.take(), body.scd_type) {
            (Some(policy), 1) => policy,
            (Some(policy), _) => {
                let reason = format!("{} keeps no history; it contradicts SCD TYPE 2", policy.word());
                let property = "tributary.merge.policy".to_owned();
                self.report.fault(&definition.place, &Error::PropertyValue { of: definition.name.to_string(), property, reason });
                policy
            }
            (None, 1) => MergePolicy::ScdType1,
            (None, _) => MergePolicy::ScdType2 { track_history: body.track_history.value.clone() },
        }
    }

    /// What every silver spec takes from the definition.
    fn silver(&mut self, definition: &Definition, mut spec: SilverSpec, said: Said, origin: Origin) {
        spec.schema = self.schema(definition);
        spec.expectations = self.expectations(definition, &said);
        spec.partition_by.clone_from(&definition.partition_by.value);
        spec.cluster_by.clone_from(&definition.cluster_by.value);
        if !said.zorder_by.is_empty() && spec.cluster_by.is_empty() && spec.partition_by.is_empty() {
            self.report.not_applied(
                definition.place.clone(),
                "the property pipelines.autoOptimize.zOrderCols",
                Some(&definition.name.to_string()),
                "it is kept with the table; maintenance goes by it",
            );
        }
        spec.set_expectations = said.of_set;
        spec.quarantine = said.quarantine;
        spec.deletes.soft_delete_column = said.soft_delete_column;
        spec.insert_when = said.insert_when;
        spec.update_when = said.update_when;
        spec.delete_when = said.delete_when;
        spec.comment.clone_from(&definition.comment);
        spec.properties = said.table;
        self.origins.silver.push(origin);
        self.out.places.insert(spec.table.clone(), definition.place.clone());
        self.out.pipeline.silver.push(spec);
    }

    fn origin_of_changes(&self, at: usize, definition: &Definition, body: &AutoCdc, said: &Said) -> Origin {
        let mut origin = self.origin(definition, &said.names_of_set());
        let mut clause = |field: &str, place: Option<&Place>| {
            if let Some(place) = place {
                origin.fields.insert(field.to_owned(), place.clone());
            }
        };
        clause("keys", body.keys.place.as_ref());
        clause("sequence_by", body.sequence_by.place.as_ref());
        clause("columns", body.columns.place.as_ref());
        clause("policy", body.track_history.place.as_ref());
        clause("track_history", body.track_history.place.as_ref());
        let truncate = body.apply_as_truncate_when.as_ref().and_then(|condition| condition.place.as_ref());
        let delete = body.apply_as_delete_when.as_ref().and_then(|condition| condition.place.as_ref());
        clause("deletes", truncate.or(delete));
        clause("sources", Some(&body.source.place));
        if body.ignore_null_updates != IgnoreNullUpdates::Off {
            clause("ignore_null_updates", body.keys.place.as_ref());
        }
        let flow = self.graph.flows_into(self.defined, at).next();
        if let Some(flow) = flow.filter(|flow| matches!(flow.action, FlowAction::AutoCdc(_))) {
            clause("select", Some(&flow.place));
        }
        for (number, text) in body.sequence_by.value.iter().enumerate() {
            let woven = self.report.expression_of(body.sequence_by.place.as_ref(), text);
            origin.texts.extend(woven.map(|woven| (format!("sequence_by[{number}]"), woven.clone())));
        }
        origin
    }
}

/// Gives a dataset its flows: the first one's fields are its own.
fn let_write(spec: &mut SilverSpec, flows: Vec<Flow>) {
    let mut flows = flows.into_iter();
    let Some(first) = flows.next() else { return };
    spec.flow = Some(first.name).filter(|name| !name.eq_ignore_ascii_case(&spec.table.name));
    spec.sources = first.sources;
    spec.select = first.select;
    spec.once = first.once;
    spec.stream = first.stream;
    spec.deletes.apply_as_delete_when = first.apply_as_delete_when;
    spec.deletes.apply_as_truncate_when = first.apply_as_truncate_when;
    spec.flows = flows.collect();
}

/// A query in brackets without them; a table as a query of all its columns.
fn selected(query: &Woven, subquery: bool) -> Woven {
    let inner = query.text.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')')).filter(|_| subquery);
    match inner {
        Some(inner) if balanced(inner) => {
            let inner = inner.trim();
            let from = query.text.find('(').map_or(0, |open| open + 1);
            let from = from + query.text[from..].find(inner).unwrap_or(0);
            query.part(from..from + inner.len())
        }
        _ => {
            let mut all = Woven::default();
            all.say("SELECT * FROM ");
            all.add(query);
            all
        }
    }
}

/// Texts of a flow by the names of its fields.
type TextsOfFlow = BTreeMap<&'static str, Woven>;

/// The way from a spec to a text of its first flow, or of a further one.
fn way_of_flow(further: Option<usize>, field: &str) -> String {
    match (further, field) {
        (None, "select") => field.to_owned(),
        (None, field) => format!("deletes.{field}"),
        (Some(at), field) => format!("flows[{at}].{field}"),
    }
}

/// Whether brackets close what opens in the same text. Strings may hold brackets: then the longer form is taken, which means the same.
fn balanced(text: &str) -> bool {
    let mut depth = 0i32;
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}
