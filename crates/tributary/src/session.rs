//! The lake as DataFusion catalogues: `catalogue.schema.table`, tables opened when a query names them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tributary_lake::Lake;
use tributary_lake::datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_specs::TableName;

use crate::Error;

/// A context over the lake's catalogue; unqualified schemas are looked up in it too.
pub(crate) async fn session(lake: &Lake) -> Result<SessionContext, Error> {
    let context = lake.session();
    let catalogue = lake.options().catalogue.clone();
    let names = lake.tables().await?;
    context.register_catalog(&catalogue, Arc::new(Catalogue::new(lake.clone(), names)));
    {
        let state = context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        options.catalog.default_catalog = catalogue;
        options.sql_parser.enable_ident_normalization = false;
    }
    Ok(context)
}

#[derive(Debug)]
struct Catalogue {
    schemas: BTreeMap<String, Arc<Schema>>,
}

impl Catalogue {
    fn new(lake: Lake, names: Vec<TableName>) -> Self {
        let mut tables: BTreeMap<String, Vec<TableName>> = BTreeMap::new();
        for name in names {
            tables.entry(name.schema.clone()).or_default().push(name);
        }
        let schemas = tables.into_iter().map(|(schema, names)| (schema, Arc::new(Schema { lake: lake.clone(), names })));
        Self { schemas: schemas.collect() }
    }
}

impl CatalogProvider for Catalogue {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.keys().cloned().collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let exact = self.schemas.get(name);
        let found = exact.or_else(|| self.schemas.iter().find(|(schema, _)| schema.eq_ignore_ascii_case(name)).map(|(_, schema)| schema));
        found.map(|schema| Arc::clone(schema) as Arc<dyn SchemaProvider>)
    }
}

#[derive(Debug)]
struct Schema {
    lake: Lake,
    names: Vec<TableName>,
}

impl Schema {
    fn find(&self, name: &str) -> Option<&TableName> {
        let exact = self.names.iter().find(|table| table.name == name);
        exact.or_else(|| self.names.iter().find(|table| table.name.eq_ignore_ascii_case(name)))
    }
}

#[async_trait]
impl SchemaProvider for Schema {
    fn table_names(&self) -> Vec<String> {
        self.names.iter().map(|table| table.name.clone()).collect()
    }

    async fn table(&self, name: &str) -> QueryResult<Option<Arc<dyn TableProvider>>> {
        let Some(found) = self.find(name) else { return Ok(None) };
        let external = |error| DataFusionError::External(Box::new(error));
        match self.lake.table(found).await.map_err(external)? {
            Some(table) => Ok(Some(table.provider().await.map_err(external)?)),
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}
