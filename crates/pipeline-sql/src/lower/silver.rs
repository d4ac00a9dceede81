//! Streaming tables that read streams of tables, and those that changes are applied to.

use tributary_specs::{IgnoreNullUpdates, MergePolicy, NullKeys, Place, SilverSpec};

use super::properties::Said;
use super::validate::Origin;
use super::{Lowering, table_of};
use crate::error::Error;
use crate::parsed::{AutoCdc, Definition, FlowAction};
use crate::query::Query;

impl Lowering<'_> {
    /// A streaming table of the rows of a query.
    pub(super) fn rows(&mut self, definition: &Definition, query: &Query) {
        let of = definition.name.to_string();
        let call = query.reads.iter().find_map(|read| Some((read, read.call.as_ref()?)));
        let said = self.said(definition);
        self.refuse_merge_properties(definition, &said, "rows that are appended");
        let feed = match call {
            Some((_, call)) if query.shape.everything && definition.expectations.is_empty() => return self.feed(definition, call, said),
            Some((read, call)) => match self.own_feed(definition, call, &read.place) {
                Some(table) => Some(table),
                None => return,
            },
            None => None,
        };
        let Some(rendered) = self.render(query, &of, feed.as_ref()) else { return };
        let plain = query.shape.everything && !rendered.has_view;
        let table = table_of(&definition.name);
        let mut spec = SilverSpec::new(table, rendered.sources()).with_policy(MergePolicy::Append);
        spec.select = (!plain).then(|| rendered.text.clone());
        self.silver(definition, spec, said, definition.into());
    }

    /// A streaming table that changes are applied to.
    pub(super) fn changes(&mut self, at: usize, definition: &Definition, body: &AutoCdc) {
        let of = definition.name.to_string();
        let mut said = self.said(definition);
        let call = body.source.reads.iter().find_map(|read| Some((read, read.call.as_ref()?)));
        let feed = match call {
            Some((read, call)) => match self.own_feed(definition, call, &read.place) {
                Some(table) => Some(table),
                None => return,
            },
            None => None,
        };
        let Some(rendered) = self.render(&body.source, &of, feed.as_ref()) else { return };
        let table = table_of(&definition.name);
        let mut spec = SilverSpec::new(table, rendered.sources());
        spec.select = (body.subquery || rendered.has_view).then(|| selected(&rendered.text, body.subquery));
        spec.keys.clone_from(&body.keys.value);
        spec.sequence_by.clone_from(&body.sequence_by.value);
        let stream = rendered.stream.clone().or_else(|| rendered.reads.first().cloned());
        let feeds = &self.out.pipeline.feeds;
        let feed = stream.and_then(|stream| feeds.iter().find(|feed| feed.table.same_without_case(&stream)));
        let (ours, placed) = (feed.is_some(), feed.is_some_and(tributary_specs::SourceFeed::has_position));
        if placed && matches!(spec.sequence_by.as_slice(), [only] if only.eq_ignore_ascii_case("_position")) {
            spec.sequence_by.clear();
        }
        spec.policy = self.policy(definition, body, &mut said);
        spec.deletes.apply_as_delete_when = body.apply_as_delete_when.as_ref().map(|condition| condition.value.clone());
        spec.deletes.apply_as_truncate_when = body.apply_as_truncate_when.as_ref().map(|condition| condition.value.clone());
        spec.columns.clone_from(&body.columns.value);
        spec.ignore_null_updates.clone_from(&body.ignore_null_updates);
        spec.null_keys = said.null_keys.unwrap_or(if ours { NullKeys::Quarantine } else { NullKeys::Refuse });
        let origin = self.origin_of_changes(at, definition, body);
        if body.apply_as_delete_when.is_none() && spec.implicit_deletes() && spec.policy.applies_deletes() {
            let message = format!(
                "{of}: deletes of a change feed are applied though APPLY AS DELETE WHEN is absent; the platform would upsert them. \
                 TBLPROPERTIES ('tributary.cdc.implicitDeletes' = 'false') gives the platform's way"
            );
            let place = body.keys.place.as_ref().unwrap_or(&definition.place);
            self.report.notice(place.clone(), "implicit_deletes", message);
        }
        self.silver(definition, spec, said, origin);
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

    fn origin_of_changes(&self, at: usize, definition: &Definition, body: &AutoCdc) -> Origin {
        let mut origin = Origin::from(definition);
        let mut clause = |field: &str, place: Option<&Place>| {
            if let Some(place) = place {
                origin.fields.insert(field.to_owned(), place.clone());
            }
        };
        clause("keys", body.keys.place.as_ref());
        clause("sequence_by", body.sequence_by.place.as_ref());
        clause("columns", body.columns.place.as_ref());
        clause("policy", body.track_history.place.as_ref());
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
        origin
    }
}

/// A query in brackets without them; a table as a query of all its columns.
fn selected(text: &str, subquery: bool) -> String {
    let inner = text.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')')).filter(|_| subquery);
    match inner {
        Some(inner) if balanced(inner) => inner.trim().to_owned(),
        _ => format!("SELECT * FROM {text}"),
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
