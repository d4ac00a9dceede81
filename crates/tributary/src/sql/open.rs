//! Opens what a statement uses. The only step that reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::datafusion::catalog::TableProvider;
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;
use tributary_lake::{Lake as TableStore, LakeOptions, Table};
use tributary_specs::{TableName, nearest};

use super::scope::{Column, same};
use super::uses::{Point, Read, TableUse};
use super::{Error, changes, error, quotient, rounding};
use crate::Lake;

/// Every table a statement uses, opened, or why it cannot be.
#[derive(Debug, Default)]
pub(super) struct Tables {
    found: BTreeMap<TableUse, Result<Opened, Missing>>,
}

/// A table, one version of it, or its changes.
#[derive(Debug)]
pub(super) struct Opened {
    /// What the rewritten statement calls it.
    pub registered: String,
    /// Catalogue, schema and table, as they are spelled.
    pub names: Vec<String>,
    pub columns: Vec<Column>,
    provider: Arc<dyn TableProvider>,
}

/// A name without a table; a name of a common table expression looks like this until the query is walked.
#[derive(Debug)]
enum Missing {
    NoTable { suggestion: Option<String> },
    Ambiguous { candidates: String },
}

impl Tables {
    /// What a use stands for.
    pub(super) fn get(&self, used: &TableUse, span: Span) -> Result<&Opened, Error> {
        let name = || used.parts.join(".");
        let span = error::position(span);
        match self.found.get(used) {
            Some(Ok(opened)) => Ok(opened),
            Some(Err(Missing::Ambiguous { candidates })) => Err(Error::Ambiguous { name: name(), candidates: candidates.clone(), span }),
            Some(Err(Missing::NoTable { suggestion })) => Err(Error::NoTable { table: name(), suggestion: suggestion.clone(), span }),
            None => Err(Error::NoTable { table: name(), suggestion: None, span }),
        }
    }

    /// A context that holds these tables and nothing else, with the dialect's meaning of nulls in an order and of numbers.
    pub(super) fn session(&self, lake: &Lake) -> SessionContext {
        self.register_in(lake.inner().session())
    }

    fn register_in(&self, context: SessionContext) -> SessionContext {
        {
            let state = context.state_ref();
            let mut state = state.write();
            let parser = &mut state.config_mut().options_mut().sql_parser;
            parser.enable_ident_normalization = false;
            parser.map_string_types_to_utf8view = false;
            parser.parse_float_as_decimal = true;
            parser.default_null_ordering = "nulls_min".to_owned();
        }
        context.register_udf(quotient::function());
        context.register_udf(rounding::function());
        for opened in self.found.values().flatten() {
            let reference = tributary_lake::datafusion::common::TableReference::bare(opened.registered.clone());
            // the name is new in this context, and a fresh context's own schema accepts tables
            let _ = context.register_table(reference, Arc::clone(&opened.provider));
        }
        context
    }

    /// Tables in memory under the catalogue `main`, for tests of the steps after this one.
    #[cfg(test)]
    pub(super) fn of_providers(providers: Vec<(&str, Arc<dyn TableProvider>)>, uses: Vec<TableUse>) -> (Self, SessionContext) {
        let names: Vec<TableName> = providers.iter().map(|(name, _)| name.parse().unwrap()).collect();
        let mut tables = Self::default();
        for used in uses {
            let found = match used.parts.as_slice() {
                [catalogue, ..] if used.parts.len() == 3 && !same(catalogue, "main") => Err(Missing::NoTable { suggestion: None }),
                parts => choose(&names, &parts[parts.len().saturating_sub(2)..]),
            };
            let opened = found.map(|name| {
                let (_, provider) = providers.iter().find(|(candidate, _)| *candidate == name.to_string()).unwrap();
                Opened::new(name, "main", &used.read, provider.schema(), Arc::clone(provider))
            });
            tables.found.insert(used, opened);
        }
        let context = tables.register_in(SessionContext::new());
        (tables, context)
    }
}

impl Opened {
    fn new(name: &TableName, catalogue: &str, read: &Read, schema: SchemaRef, provider: Arc<dyn TableProvider>) -> Self {
        let columns = schema.fields().iter().map(|field| Column { name: field.name().clone(), data_type: Some(field.data_type().clone()) });
        let point = |point: &Point| match point {
            Point::Version(version) => format!("v{version}"),
            Point::Instant(instant) => instant.to_rfc3339(),
        };
        let registered = match read {
            Read::Latest => format!("{catalogue}.{name}"),
            Read::At(at) => format!("{catalogue}.{name}@{}", point(at)),
            Read::Changes(from, to) => {
                let to = to.as_ref().map_or_else(|| "latest".to_owned(), point);
                format!("changes of {catalogue}.{name} from {} to {to}", point(from))
            }
        };
        let names = vec![catalogue.to_owned(), name.schema.clone(), name.name.clone()];
        Self { registered, names, columns: columns.collect(), provider }
    }
}

/// Opens every use whose name is that of a table.
pub(super) async fn open(lake: &Lake, uses: Vec<TableUse>) -> Result<Tables, Error> {
    let mut catalogues = Catalogues { lake, names: BTreeMap::new() };
    let mut tables = Tables::default();
    for used in uses {
        let opened = match catalogues.find(&used.parts).await? {
            Err(missing) => Err(missing),
            Ok(table) => Ok(read(table, &used.read).await?),
        };
        tables.found.insert(used, opened);
    }
    Ok(tables)
}

async fn read(table: Table, read: &Read) -> Result<Opened, Error> {
    let catalogue = table.lake().options().catalogue.clone();
    let (name, provider) = match read {
        Read::Latest => (table.name().clone(), table.provider().await?),
        Read::At(Point::Version(version)) => (table.name().clone(), table.at_version(*version).await?.provider().await?),
        Read::At(Point::Instant(instant)) => (table.name().clone(), table.at_timestamp(*instant).await?.provider().await?),
        Read::Changes(from, to) => {
            let from = match from {
                Point::Version(version) => *version,
                Point::Instant(instant) => first_at_or_after(&table, *instant).await?,
            };
            let to = match to {
                Some(Point::Version(version)) => *version,
                Some(Point::Instant(instant)) => table.at_timestamp(*instant).await?.version(),
                None => table.version(),
            };
            (table.name().clone(), changes::provider(table, from, to).await?)
        }
    };
    Ok(Opened::new(&name, &catalogue, read, provider.schema(), provider))
}

/// The first version committed at the instant or later; the one after the latest when there is none.
async fn first_at_or_after(table: &Table, instant: DateTime<Utc>) -> Result<u64, Error> {
    let history = table.history(None).await?;
    let first = history.iter().filter(|entry| entry.timestamp >= instant).map(|entry| entry.version).min();
    Ok(first.unwrap_or_else(|| table.version() + 1))
}

/// The lake's own catalogue and the one of its system tables.
struct Catalogues<'a> {
    lake: &'a Lake,
    names: BTreeMap<String, Vec<TableName>>,
}

impl Catalogues<'_> {
    async fn find(&mut self, parts: &[String]) -> Result<Result<Table, Missing>, Error> {
        let own = self.lake.inner().options().catalogue.clone();
        let (catalogue, parts) = match parts {
            [catalogue, rest @ ..] if rest.len() == 2 => (catalogue.as_str(), rest),
            parts => (own.as_str(), parts),
        };
        let lake = if same(catalogue, &own) {
            self.lake.inner().clone()
        } else if same(catalogue, SYSTEM) {
            system(self.lake.inner())?
        } else {
            let suggestion = nearest(catalogue, [own.as_str(), SYSTEM]).map(|nearest| format!("{nearest}.{}", parts.join(".")));
            return Ok(Err(Missing::NoTable { suggestion }));
        };
        if let [schema, name] = parts
            && let Some(table) = lake.table(&TableName::new(schema, name)).await?
        {
            return Ok(Ok(table));
        }
        let catalogue = lake.options().catalogue.clone();
        if !self.names.contains_key(&catalogue) {
            self.names.insert(catalogue.clone(), lake.tables().await?);
        }
        let names = self.names.get(&catalogue).map(Vec::as_slice).unwrap_or_default();
        match choose(names, parts) {
            Err(missing) => Ok(Err(missing)),
            Ok(name) => Ok(lake.table(name).await?.ok_or(Missing::NoTable { suggestion: None })),
        }
    }
}

/// The catalogue of the system tables.
pub(crate) const SYSTEM: &str = "system";

fn system(lake: &TableStore) -> Result<TableStore, Error> {
    Ok(TableStore::open(lake.stores().clone(), LakeOptions { catalogue: SYSTEM.to_owned(), ..lake.options().clone() })?)
}

/// The table that `schema.table` or `table` names, without regard to case; of several in one schema the one spelled so.
fn choose<'n>(names: &'n [TableName], parts: &[String]) -> Result<&'n TableName, Missing> {
    let (schema, table) = match parts {
        [schema, table] => (Some(schema), table),
        [table] => (None, table),
        _ => return Err(Missing::NoTable { suggestion: None }),
    };
    let fits = |name: &&TableName| schema.is_none_or(|schema| same(schema, &name.schema)) && same(table, &name.name);
    let mut found: Vec<&TableName> = names.iter().filter(fits).collect();
    if let (Some(schema), true) = (schema, found.len() > 1) {
        found.retain(|name| *schema == name.schema && *table == name.name);
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let known: Vec<String> = names.iter().flat_map(|name| [name.to_string(), name.name.clone()]).collect();
            let suggestion = nearest(&parts.join("."), known.iter().map(String::as_str)).map(str::to_owned);
            Err(Missing::NoTable { suggestion })
        }
        several => {
            let candidates: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Missing::Ambiguous { candidates: candidates.join(", ") })
        }
    }
}
