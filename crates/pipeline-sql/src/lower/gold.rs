//! Materialized views, and streaming tables that are kept like them.

use std::collections::BTreeSet;

use tributary_specs::{GoldSpec, LateRows, MergePolicy, SilverSpec, StreamedTable, TableName};

use super::properties::Said;
use super::render::{Rendered, renamed};
use super::{Lowering, table_of};
use crate::check::is_stream;
use crate::error::Error;
use crate::origin::Origin;
use crate::parsed::{Definition, Kind};
use crate::portability::rules;
use crate::query::{Query, Read};

impl Lowering<'_> {
    /// Views that nothing reads. What stands in the way of reading them is told where they are read.
    pub(super) fn unread(&mut self) {
        let defined = self.defined;
        let own = defined.datasets.iter().filter_map(|dataset| dataset.query.as_ref());
        let queries = own.chain(defined.flows.iter().map(|flow| flow.action.query()));
        let read: BTreeSet<usize> = queries.flat_map(|query| &query.reads).filter_map(|read| self.graph.dataset(defined, read)).collect();
        for (at, view) in defined.datasets.iter().enumerate().filter(|(at, _)| !read.contains(at)) {
            let out = self.graph.out.get(at).copied().unwrap_or(true);
            let (Kind::View, Some(query), false) = (view.kind, &view.query, out) else { continue };
            let told = self.report.faults.len();
            let rendered = self.render(query, &view.name.to_string(), None, false);
            self.report.faults.truncate(told);
            let Some(rendered) = rendered else { continue };
            let sources = rendered.sources();
            let query = renamed(view, rendered.woven);
            let table = TableName::new(view.name.schema.as_deref().unwrap_or("views"), &view.name.name);
            let rules = view.expectations.iter().map(|rule| rule.value.clone()).collect();
            let mut origin = self.origin(view, &[]);
            self.out.unread.push(GoldSpec { sources, expectations: rules, ..GoldSpec::new(table, query.text.clone()) });
            origin.texts.insert("query".to_owned(), query);
            self.origins.gold.push(origin);
        }
    }

    pub(super) fn gold(&mut self, definition: &Definition) {
        let of = definition.name.to_string();
        let Some(query) = &definition.query else { return };
        let said = self.said(definition);
        self.refuse_merge_properties(definition, &said, "a materialized view");
        self.refuse_late(definition, &said);
        let calls: Vec<_> = query.reads.iter().filter_map(|read| Some((read, read.call.as_ref()?))).collect();
        let files = match calls.as_slice() {
            [(read, call)] if !is_stream(read) && call.function == "read_files" => {
                let Some(table) = self.folder(definition, query, call, &read.place) else { return };
                Some(table)
            }
            _ => None,
        };
        let Some(rendered) = self.render(query, &of, files.as_ref(), false) else { return };
        self.kept_equal(definition, rendered, said, Vec::new());
    }

    /// A streaming table whose rows are made of several rows of its streams: it is kept equal to its query, as a view is.
    pub(super) fn remembering(&mut self, definition: &Definition, query: &Query) {
        let of = definition.name.to_string();
        let said = self.said(definition);
        self.refuse_merge_properties(definition, &said, "rows that are made of several");
        let calls: Vec<_> = query.reads.iter().filter_map(|read| Some((read, read.call.as_ref()?))).collect();
        let feed = match calls.as_slice() {
            [] => None,
            [(read, call)] => {
                let Some(table) = self.own_feed(definition, query, call, &read.place, None) else { return };
                Some(table)
            }
            [_, (second, call), ..] => {
                let what = format!("a second {}(…) in a query", call.function);
                let instead = Some("a streaming table of its rows, and STREAM of that table".to_owned());
                return self.report.fault(&second.place, &Error::NotExecuted { of, what, instead });
            }
        };
        let drops = said.late.as_ref().is_some_and(|(late, _)| *late == LateRows::Drop);
        if said.late.is_some() && query.reads.iter().all(|read| read.watermark.is_none()) {
            self.refuse_late(definition, &said);
        }
        let defined = self.defined;
        let is_view = |read: &&Read| self.graph.dataset(defined, read).is_some_and(|at| defined.datasets[at].kind == Kind::View);
        if let Some(read) = query.reads.iter().filter(|read| drops && read.watermark.is_some()).find(is_view) {
            let what = "leaving out late rows of a view".to_owned();
            let instead = Some("WATERMARK behind the table that the view reads".to_owned());
            return self.report.fault(&read.place, &Error::NotExecuted { of, what, instead });
        }
        let in_time = drops.then(|| table_of(&definition.name));
        let Some(rendered) = self.render_in_time(query, &of, feed.as_ref(), in_time) else { return };
        let streams = rendered.streams.clone();
        self.in_time(definition, &rendered);
        self.report.uses(definition.place.clone(), &rules::REMEMBERED, Some(&of));
        self.kept_equal(definition, rendered, said, streams);
    }

    /// Tables of the rows of streams that come in time.
    fn in_time(&mut self, definition: &Definition, rendered: &Rendered) {
        for (table, source, watermark) in &rendered.in_time {
            let message = format!("what of {source} comes in time for {} is kept in the table {table}", definition.name);
            let place = watermark.place.clone().unwrap_or_else(|| definition.place.clone());
            self.report.notice(place.clone(), "extra_table", message);
            let spec = SilverSpec::new(table.clone(), [source.clone()]).with_policy(MergePolicy::Append);
            self.out.pipeline.silver.push(spec.with_watermark(watermark.value.clone(), LateRows::Drop));
            self.origins.silver.push(Origin { of: definition.name.to_string(), place: place.clone(), ..Origin::default() });
            self.out.places.insert(table.clone(), place);
        }
    }

    fn kept_equal(&mut self, definition: &Definition, rendered: Rendered, said: Said, streams: Vec<StreamedTable>) {
        let of = definition.name.to_string();
        let typed = definition.columns.iter().all(|column| column.data_type.is_some());
        if !typed && definition.columns.iter().any(|column| column.comment.is_some() || column.data_type.is_some()) {
            let reason = "types and comments of columns are kept only where every column has a type";
            self.report.not_applied(definition.place.clone(), "columns of the view", Some(&of), reason);
        }
        let mut origin = self.origin(definition, &said.names_of_set());
        let sources = rendered.sources();
        let query = renamed(definition, rendered.woven);
        let mut spec = GoldSpec::new(table_of(&definition.name), query.text.clone());
        spec.sources = sources;
        spec.streams = streams;
        spec.refresh = said.refresh.unwrap_or_default();
        spec.schema = if typed { self.schema(definition) } else { Vec::new() };
        spec.expectations = self.expectations(definition, &said);
        spec.partition_by.clone_from(&definition.partition_by.value);
        spec.cluster_by.clone_from(&definition.cluster_by.value);
        spec.zorder_by = said.zorder_by;
        spec.set_expectations = said.of_set;
        spec.quarantine = said.quarantine;
        spec.comment.clone_from(&definition.comment);
        spec.properties = said.table;
        origin.texts.insert("query".to_owned(), query);
        self.origins.gold.push(origin);
        self.out.places.insert(spec.table.clone(), definition.place.clone());
        self.out.pipeline.gold.push(spec);
    }
}
