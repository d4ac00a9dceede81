//! What the names of a text stand for.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_fault::nearest;
use tributary_lake::datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider};
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;
use tributary_specs::{TableName, is_kept_by_the_lake};

use crate::scope::{Column, same};
use crate::uses::{Read, TableUse};
use crate::{Error, error};

/// The catalogue and the schema of a text's tables; no text can name them.
pub(crate) const CATALOGUE: &str = "tables of the text";
pub(crate) const SCHEMA: &str = "all";

/// Every table a text uses, or why it cannot be read.
#[derive(Debug, Default)]
pub struct Tables {
    found: BTreeMap<TableUse, Result<Source, Missing>>,
}

/// A table, one version of it, or its changes, as a text may name it.
#[derive(Debug)]
pub struct Source {
    /// What the rewritten text calls it.
    pub(crate) registered: String,
    /// Catalogue, schema and table, as they are spelled.
    pub(crate) names: Vec<String>,
    pub(crate) columns: Vec<Column>,
    provider: Arc<dyn TableProvider>,
}

/// Why a name stands for no table. A name of `WITH` looks like this until the text is walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// None is called so.
    NoTable {
        /// The nearest name there is.
        suggestion: Option<String>,
    },
    /// Several are.
    Ambiguous {
        /// Their names.
        candidates: String,
    },
}

impl Source {
    /// What `provider` gives of a table; `read` tells several readings of one table apart. A star brings the columns of its rows, not
    /// those that [`is_kept_by_the_lake`].
    pub fn new(catalogue: &str, name: &TableName, read: &Read, provider: Arc<dyn TableProvider>) -> Self {
        let schema = provider.schema();
        let all: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let columns = schema.fields().iter().map(|field| Column {
            starred: !is_kept_by_the_lake(&all, field.name()),
            ..Column::new(field.name(), Some(field.data_type().clone()))
        });
        let names = vec![catalogue.to_owned(), name.schema.clone(), name.name.clone()];
        Self { registered: read.describe(&format!("{catalogue}.{name}")), names, columns: columns.collect(), provider }
    }

    /// What a text reads that is no table of a catalogue; `registered` tells it from every other.
    pub(crate) fn of_text(registered: &str, names: Vec<String>, provider: Arc<dyn TableProvider>) -> Self {
        let schema = provider.schema();
        let columns = schema.fields().iter().map(|field| Column::new(field.name(), Some(field.data_type().clone())));
        Self { registered: registered.to_owned(), names, columns: columns.collect(), provider }
    }

    /// The same without the columns that a text may not name.
    #[must_use]
    pub fn hiding(mut self, hidden: impl Fn(&str) -> bool) -> Self {
        self.columns.retain(|column| !hidden(&column.name));
        self
    }

    /// The same with columns that no star brings, besides those that the lake keeps.
    #[must_use]
    pub fn out_of_stars(mut self, out: impl Fn(&str) -> bool) -> Self {
        self.columns.iter_mut().filter(|column| out(&column.name)).for_each(|column| column.starred = false);
        self
    }
}

impl Tables {
    /// Says what a use stands for.
    pub fn put(&mut self, used: TableUse, found: Result<Source, Missing>) {
        self.found.insert(used, found);
    }

    /// Says which table a change of rows is of.
    pub fn put_target(&mut self, names: [&str; 3], provider: Arc<dyn TableProvider>) {
        let used = TableUse { parts: vec!["__target".to_owned()], read: Read::Latest };
        let names = names.map(str::to_owned).to_vec();
        self.found.insert(used, Ok(Source::of_text("rows that are changed", names, provider)));
    }

    /// What a use stands for.
    pub(crate) fn get(&self, used: &TableUse, span: Span) -> Result<&Source, Error> {
        let name = || used.parts.join(".");
        let span = error::position(span);
        match self.found.get(used) {
            Some(Ok(source)) => Ok(source),
            Some(Err(Missing::Ambiguous { candidates })) => Err(Error::Ambiguous { name: name(), candidates: candidates.clone(), span }),
            Some(Err(Missing::NoTable { suggestion })) => Err(Error::NoTable { table: name(), suggestion: suggestion.clone(), span }),
            None => Err(Error::NoTable { table: name(), suggestion: None, span }),
        }
    }

    /// Makes the tables known to a context, in a catalogue of their own.
    pub(crate) fn register_in(&self, context: &SessionContext) -> Result<(), Error> {
        let schema = Arc::new(MemorySchemaProvider::new());
        for source in self.found.values().flatten() {
            schema.register_table(source.registered.clone(), Arc::clone(&source.provider)).map_err(Error::plan)?;
        }
        let catalogue = MemoryCatalogProvider::new();
        catalogue.register_schema(SCHEMA, schema).map_err(Error::plan)?;
        context.register_catalog(CATALOGUE, Arc::new(catalogue));
        Ok(())
    }
}

/// The table of one catalogue that a use names, without regard to case: `catalogue.schema.table`, `schema.table`, or `table` where
/// only one schema has it; of several in one schema the one spelled so.
///
/// # Errors
/// None or several are called so.
///
/// ```
/// use tributary_spark_sql::{Missing, choose};
///
/// let tables = ["silver.Orders", "bronze.orders"].map(|name| name.parse().unwrap());
/// let parts = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
/// assert_eq!(choose("main", &tables, &parts("MAIN.silver.ORDERS")), Ok(&tables[0]));
/// assert!(matches!(choose("main", &tables, &parts("orders")), Err(Missing::Ambiguous { .. })));
/// assert_eq!(choose("main", &tables, &parts("silver.order")), Err(Missing::NoTable { suggestion: Some("silver.Orders".to_owned()) }));
/// ```
pub fn choose<'n>(catalogue: &str, tables: &'n [TableName], parts: &[String]) -> Result<&'n TableName, Missing> {
    let (schema, table) = match parts {
        [in_catalogue, schema, table] if same(in_catalogue, catalogue) => (Some(schema), table),
        [schema, table] => (Some(schema), table),
        [table] => (None, table),
        [_, schema, table] => {
            let known: Vec<String> = tables.iter().map(ToString::to_string).collect();
            let suggestion = nearest(&format!("{schema}.{table}"), known.iter().map(String::as_str));
            return Err(Missing::NoTable { suggestion: suggestion.map(|table| format!("{catalogue}.{table}")) });
        }
        _ => return Err(Missing::NoTable { suggestion: None }),
    };
    let fits = |name: &&TableName| schema.is_none_or(|schema| same(schema, &name.schema)) && same(table, &name.name);
    let mut found: Vec<&TableName> = tables.iter().filter(fits).collect();
    if let (Some(schema), true) = (schema, found.len() > 1) {
        found.retain(|name| *schema == name.schema && *table == name.name);
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let known: Vec<String> = tables.iter().flat_map(|name| [name.to_string(), name.name.clone()]).collect();
            let written = schema.map_or_else(|| table.clone(), |schema| format!("{schema}.{table}"));
            Err(Missing::NoTable { suggestion: nearest(&written, known.iter().map(String::as_str)).map(str::to_owned) })
        }
        several => {
            let candidates: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Missing::Ambiguous { candidates: candidates.join(", ") })
        }
    }
}
