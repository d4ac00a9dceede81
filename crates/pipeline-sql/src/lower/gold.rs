//! Materialized views.

use tributary_specs::GoldSpec;

use super::render::renamed;
use super::{Lowering, table_of};
use crate::parsed::Definition;

impl Lowering<'_> {
    pub(super) fn gold(&mut self, definition: &Definition) {
        let of = definition.name.to_string();
        let Some(query) = &definition.query else { return };
        let said = self.said(definition);
        self.refuse_merge_properties(definition, &said, "a materialized view");
        let Some(rendered) = self.render(query, &of, None, false) else { return };
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
