//! What is altered and commented.

use tributary_fault::nearest;
use tributary_lake::{Commit, Lake, Operation, Reads, Table};
use tributary_spark_sql::{Alteration, Kind, Mask as Clause, Name};
use tributary_specs::{Column, TableName};

use super::create::refuse_system;
use super::masks::{self, Mask};
use super::session::kind_word;
use super::spaces::{self, Mark};
use super::{Error, Session, TextError};

impl Session {
    pub(super) async fn alter(&mut self, name: &Name, alteration: Alteration) -> Result<String, Error> {
        let table = self.catalogues.table_named(name).await?;
        let full = format!("{}.{}", table.lake().options().catalogue, table.name());
        refuse_system(table.lake(), &table.name().schema)?;
        match alteration {
            Alteration::SetProperties(properties) => {
                let commit = |_: &Table| Commit { operation: Operation::Alter, properties: properties.clone(), ..Commit::default() };
                self.commit(table, commit).await?;
                Ok(format!("properties of {full} set"))
            }
            Alteration::AddColumns(columns) => {
                self.check_defaults(&full, &columns).await?;
                let commit = |table: &Table| {
                    let all = table.columns().iter().cloned().chain(columns.iter().cloned()).collect();
                    Commit { operation: Operation::Alter, schema: Some(all), reads: Reads::WholeTable, ..Commit::default() }
                };
                self.commit(table, commit).await?;
                Ok(format!("columns of {full} added"))
            }
            Alteration::SetMask(clause) => {
                let mask = self.mask_of(table.lake(), table.name(), table.columns(), clause).await?;
                let clause = mask.clause();
                self.on_system(&masks::deletion(&mask.catalogue, &mask.table, mask.column.as_deref())).await?;
                masks::append(self.lake.inner(), &[mask]).await?;
                Ok(format!("{clause} on {full} recorded, NOT ENFORCED: every reader sees the data as it is"))
            }
            Alteration::DropMask { column } => {
                let column = column.map(|column| Ok::<_, Error>(column_named(table.columns(), &column)?.name.clone())).transpose()?;
                self.on_system(&masks::deletion(&table.lake().options().catalogue, table.name(), column.as_deref())).await?;
                Ok(match column {
                    Some(column) => format!("mask of column `{column}` of {full} dropped"),
                    None => format!("row filter of {full} dropped"),
                })
            }
        }
    }

    /// A mask or row filter as it is recorded, where it was agreed to that nothing enforces it.
    pub(super) async fn mask_of(&mut self, lake: &Lake, table: &TableName, columns: &[Column], clause: Clause) -> Result<Mask, Error> {
        let column = clause.column.map(|column| Ok::<_, Error>(column_named(columns, &column)?.name.clone())).transpose()?;
        let made = super::function_named(&mut self.catalogues, &clause.function).await?;
        let mask = Mask {
            catalogue: lake.options().catalogue.clone(),
            table: table.clone(),
            column,
            function: made.function.full_name(),
            using: clause.using,
            created_by: self.options.user.clone(),
        };
        match self.options.accept_unprotected {
            true => Ok(mask),
            false => Err(Error::Unprotected { table: format!("{}.{table}", mask.catalogue), clause: mask.clause() }),
        }
    }

    /// Commits what changes no row, on top of whoever is first.
    async fn commit(&self, mut table: Table, commit: impl Fn(&Table) -> Commit) -> Result<(), Error> {
        let attempts = self.lake.inner().options().attempts_max.max(1);
        let mut lost = String::new();
        for _ in 0..attempts {
            match super::lost(&table.commit(commit(&table)).await?) {
                None => return Ok(()),
                Some(why) => lost = why,
            }
            table = table.refresh().await?;
        }
        Err(Error::Contended { table: table.name().to_string(), attempts, conflict: lost })
    }

    pub(super) async fn comment(&mut self, kind: Kind, name: &Name, comment: Option<String>) -> Result<String, Error> {
        let (space, called) = match kind {
            Kind::Catalogue => {
                let lake = self.catalogues.catalogue_named(&name.to_string()).await?;
                let called = lake.options().catalogue.clone();
                (spaces::catalogue_space(&lake, &called)?, called)
            }
            Kind::Schema => {
                let (lake, schema) = self.catalogues.schema_named(name).await?;
                refuse_system(&lake, &schema)?;
                (spaces::schema_space(&lake, &schema)?, schema)
            }
            Kind::Table | Kind::Function => {
                let hint = "a table and a function have the comment they were created with".to_owned();
                let what = format!("COMMENT ON {}", kind_word(kind).to_uppercase());
                return Err(TextError::Refused { what, hint: Some(hint), span: name.span }.into());
            }
        };
        let mark = space.mark().await?.unwrap_or_else(|| self.mark(None));
        space.set(&Mark { comment, ..mark }).await?;
        Ok(format!("comment of {} {called} set", kind_word(kind)))
    }
}

/// A column by its name in any case.
pub(super) fn column_named<'c>(columns: &'c [Column], name: &str) -> Result<&'c Column, Error> {
    columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let suggestion = nearest(name, columns.iter().map(|column| column.name.as_str())).map(str::to_owned);
        TextError::NoColumn { column: name.to_owned(), suggestion, span: None }.into()
    })
}
