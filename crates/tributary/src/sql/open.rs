//! Finds and opens what a text names. The only step of a query that reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_fault::nearest;
use tributary_lake::Table;
use tributary_lake::arrow::datatypes::Schema;
use tributary_lake::datafusion::datasource::MemTable;
use tributary_spark_sql::{Missing, Name, Read, Source, TableUse, Tables, choose};
use tributary_specs::{Column, TableName};

use super::{Error, TextError as Text, information, spaces};
use crate::system;

/// The catalogues of one root, and which of them and of their schemas are meant where a name does not say.
#[derive(Debug)]
pub(super) struct Catalogues {
    lake: tributary_lake::Lake,
    pub catalogue: String,
    pub schema: Option<String>,
    opened: BTreeMap<String, tributary_lake::Lake>,
    names: BTreeMap<String, Vec<TableName>>,
}

impl Catalogues {
    pub(super) fn new(lake: &tributary_lake::Lake) -> Self {
        let catalogue = lake.options().catalogue.clone();
        Self { lake: lake.clone(), catalogue, schema: None, opened: BTreeMap::new(), names: BTreeMap::new() }
    }

    /// The lake's own catalogue, whichever is the current one.
    pub(super) fn lake(&self) -> &tributary_lake::Lake {
        &self.lake
    }

    /// Forgets a catalogue that is gone; the current one is the lake's again where it was that.
    pub(super) fn forget(&mut self, catalogue: &str) {
        self.opened.remove(catalogue);
        if self.catalogue == catalogue {
            self.lake.options().catalogue.clone_into(&mut self.catalogue);
            self.schema = None;
        }
    }

    /// Forgets which tables there are, for what is asked next.
    pub(super) fn look_again(&mut self) {
        self.names.clear();
    }

    /// A catalogue that is there, by its name in any case.
    pub(super) async fn find_catalogue(&mut self, name: &str) -> Result<Option<tributary_lake::Lake>, Error> {
        let known = [self.lake.options().catalogue.as_str(), system::NAME];
        let found = match known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            Some(known) => Some((*known).to_owned()),
            None => match self.opened.keys().find(|known| known.eq_ignore_ascii_case(name)) {
                Some(known) => Some(known.clone()),
                None => spaces::catalogues(&self.lake).await?.into_iter().find(|known| known.eq_ignore_ascii_case(name)),
            },
        };
        let Some(found) = found else { return Ok(None) };
        if let Some(opened) = self.opened.get(&found) {
            return Ok(Some(opened.clone()));
        }
        let opened = spaces::catalogue(&self.lake, &found)?;
        self.opened.insert(found, opened.clone());
        Ok(Some(opened))
    }

    /// As [`Self::find_catalogue`].
    ///
    /// # Errors
    /// [`Error::Missing`] with the nearest name.
    pub(super) async fn catalogue_named(&mut self, name: &str) -> Result<tributary_lake::Lake, Error> {
        if let Some(found) = self.find_catalogue(name).await? {
            return Ok(found);
        }
        let known = spaces::catalogues(&self.lake).await?;
        let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        Err(Error::Missing { kind: "catalogue", name: name.to_owned(), nearest })
    }

    /// The catalogue and the schema that a name of one or two parts stands for; whether they are there is not asked.
    pub(super) fn schema_of(&self, name: &Name) -> Result<(String, String), Error> {
        match name.parts.as_slice() {
            [schema] => Ok((self.catalogue.clone(), schema.clone())),
            [catalogue, schema] => Ok((catalogue.clone(), schema.clone())),
            _ => Err(Error::Name { name: name.to_string(), kind: "schema", reason: "it has more than two parts" }),
        }
    }

    /// The catalogue and the name that something in a schema stands for; whether it is there is not asked.
    pub(super) fn place_of(&self, name: &Name, kind: &'static str) -> Result<(String, TableName), Error> {
        match (name.parts.as_slice(), &self.schema) {
            ([catalogue, schema, table], _) => Ok((catalogue.clone(), TableName::new(schema, table))),
            ([schema, table], _) => Ok((self.catalogue.clone(), TableName::new(schema, table))),
            ([table], Some(schema)) => Ok((self.catalogue.clone(), TableName::new(schema, table))),
            _ => Err(Error::Name { name: name.to_string(), kind, reason: "say schema.name, or USE SCHEMA first" }),
        }
    }

    /// A schema that is there: its catalogue, and its name as it is spelled.
    ///
    /// # Errors
    /// [`Error::Missing`] with the nearest name.
    pub(super) async fn schema_named(&mut self, name: &Name) -> Result<(tributary_lake::Lake, String), Error> {
        let (catalogue, schema) = self.schema_of(name)?;
        let lake = self.catalogue_named(&catalogue).await?;
        let known = spaces::schemas(&lake).await?;
        match known.iter().find(|known| known.eq_ignore_ascii_case(&schema)) {
            Some(found) => Ok((lake, found.clone())),
            None => {
                let nearest = nearest(&schema, known.iter().map(String::as_str)).map(str::to_owned);
                Err(Error::Missing { kind: "schema", name: format!("{}.{schema}", lake.options().catalogue), nearest })
            }
        }
    }

    /// A table that is there.
    ///
    /// # Errors
    /// [`Error::Text`] with the nearest name.
    pub(super) async fn table_named(&mut self, name: &Name) -> Result<Table, Error> {
        match self.find(&name.parts).await? {
            Ok(table) => Ok(table),
            Err(Missing::Ambiguous { candidates }) => Err(Text::Ambiguous { name: name.to_string(), candidates, span: name.span }.into()),
            Err(Missing::NoTable { suggestion }) => Err(Text::NoTable { table: name.to_string(), suggestion, span: name.span }.into()),
        }
    }

    async fn find(&mut self, parts: &[String]) -> Result<Result<Table, Missing>, Error> {
        let (catalogue, parts) = match parts {
            [catalogue, rest @ ..] if rest.len() == 2 => (catalogue.clone(), rest.to_vec()),
            [table] if self.schema.is_some() => {
                let within = [self.schema.clone().unwrap_or_default(), table.clone()];
                match Box::pin(self.find(&within)).await? {
                    Ok(found) => return Ok(Ok(found)),
                    Err(_) => (self.catalogue.clone(), vec![table.clone()]),
                }
            }
            parts => (self.catalogue.clone(), parts.to_vec()),
        };
        let Some(lake) = self.find_catalogue(&catalogue).await? else {
            let known = spaces::catalogues(&self.lake).await?;
            let suggestion = nearest(&catalogue, known.iter().map(String::as_str)).map(|nearest| format!("{nearest}.{}", parts.join(".")));
            return Ok(Err(Missing::NoTable { suggestion }));
        };
        if let [schema, name] = parts.as_slice()
            && let Some(table) = lake.table(&TableName::new(schema, name)).await?
        {
            return Ok(Ok(table));
        }
        let catalogue = lake.options().catalogue.clone();
        if !self.names.contains_key(&catalogue) {
            self.names.insert(catalogue.clone(), lake.tables().await?);
        }
        let names = self.names.get(&catalogue).map(Vec::as_slice).unwrap_or_default();
        match choose(&catalogue, names, &parts) {
            Err(missing) => Ok(Err(missing)),
            Ok(name) => Ok(lake.table(name).await?.ok_or(Missing::NoTable { suggestion: None })),
        }
    }

    /// Opens every use whose name is that of a table.
    pub(super) async fn open(&mut self, uses: &[TableUse]) -> Result<Tables, Error> {
        let mut tables = Tables::default();
        for used in uses {
            let opened = match self.find(&used.parts).await? {
                Ok(table) => Ok(tributary_spark_sql::open(table, &used.read).await?),
                Err(missing) => match self.made(used).await? {
                    Some(source) => Ok(source),
                    None => Err(missing),
                },
            };
            tables.put(used.clone(), opened);
        }
        Ok(tables)
    }

    /// What is made when it is asked for: `information_schema`, and tables of `system` that nothing was written to yet.
    async fn made(&mut self, used: &TableUse) -> Result<Option<Source>, Error> {
        if used.read != Read::Latest {
            return Ok(None);
        }
        let (catalogue, schema, name) = match used.parts.as_slice() {
            [catalogue, schema, name] => (catalogue.clone(), schema, name),
            [schema, name] => (self.catalogue.clone(), schema, name),
            _ => return Ok(None),
        };
        let table = TableName::new(schema.to_lowercase(), name.to_lowercase());
        let Some(lake) = self.find_catalogue(&catalogue).await? else { return Ok(None) };
        let catalogue = lake.options().catalogue.clone();
        if table.schema == information::SCHEMA {
            let Some(rows) = information::rows(self, &catalogue, &table.name).await? else { return Ok(None) };
            let provider = MemTable::try_new(rows.schema(), vec![vec![rows]]).map_err(Error::run)?;
            return Ok(Some(Source::new(&catalogue, &table, &used.read, Arc::new(provider))));
        }
        if catalogue != system::NAME {
            return Ok(None);
        }
        let Some(spec) = system::specs().into_iter().find(|spec| spec.name == table) else { return Ok(None) };
        let schema: Arc<Schema> = Arc::new(Column::all_to_arrow(&spec.columns));
        let provider = MemTable::try_new(schema, vec![vec![]]).map_err(Error::run)?;
        Ok(Some(Source::new(&catalogue, &table, &used.read, Arc::new(provider))))
    }
}
