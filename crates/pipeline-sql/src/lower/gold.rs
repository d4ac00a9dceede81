//! Materialized views.

use std::collections::BTreeSet;

use tributary_specs::{GoldSpec, TableName};

use super::render::renamed;
use super::{Lowering, table_of};
use crate::check::is_stream;
use crate::parsed::{Definition, Kind};

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
        let calls: Vec<_> = query.reads.iter().filter_map(|read| Some((read, read.call.as_ref()?))).collect();
        let files = match calls.as_slice() {
            [(read, call)] if !is_stream(read) && call.function == "read_files" => {
                let Some(table) = self.folder(definition, query, call, &read.place) else { return };
                Some(table)
            }
            _ => None,
        };
        let Some(rendered) = self.render(query, &of, files.as_ref(), false) else { return };
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
