//! Opens what a text uses. The only step that reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tributary_fault::nearest;
use tributary_lake::Table;
use tributary_lake::datafusion::catalog::TableProvider;
use tributary_spark_sql::{Missing, Point, Read, Source, TableUse, Tables, choose};
use tributary_specs::TableName;

use super::{Error, changes};
use crate::{Lake, system};

/// Opens every use whose name is that of a table.
pub(super) async fn open(lake: &Lake, uses: &[TableUse]) -> Result<Tables, Error> {
    let mut catalogues = Catalogues { lake, names: BTreeMap::new() };
    let mut tables = Tables::default();
    for used in uses {
        let opened = match catalogues.find(&used.parts).await? {
            Err(missing) => Err(missing),
            Ok(table) => Ok(read(table, &used.read).await?),
        };
        tables.put(used.clone(), opened);
    }
    Ok(tables)
}

async fn read(table: Table, read: &Read) -> Result<Source, Error> {
    let (catalogue, name) = (table.lake().options().catalogue.clone(), table.name().clone());
    let provider: Arc<dyn TableProvider> = match read {
        Read::Latest => table.provider().await?,
        Read::At(Point::Version(version)) => table.at_version(*version).await?.provider().await?,
        Read::At(Point::Instant(instant)) => table.at_timestamp(*instant).await?.provider().await?,
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
            changes::provider(table, from, to).await?
        }
    };
    Ok(Source::new(&catalogue, &name, read, provider))
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
        let lake = if catalogue.eq_ignore_ascii_case(&own) {
            self.lake.inner().clone()
        } else if catalogue.eq_ignore_ascii_case(system::NAME) {
            system::catalogue(self.lake.inner())?
        } else {
            let suggestion = nearest(catalogue, [own.as_str(), system::NAME]).map(|nearest| format!("{nearest}.{}", parts.join(".")));
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
        match choose(&catalogue, names, parts) {
            Err(missing) => Ok(Err(missing)),
            Ok(name) => Ok(lake.table(name).await?.ok_or(Missing::NoTable { suggestion: None })),
        }
    }
}
