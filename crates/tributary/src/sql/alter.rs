//! What is altered and commented.

use tributary_fault::nearest;
use tributary_lake::{Commit, CommitOutcome, Operation, Reads, Table};
use tributary_spark_sql::{Alteration, Kind, Name};

use super::create::refuse_system;
use super::functions::Kept;
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
                let commit = |_: &Table| Ok(Commit { operation: Operation::Alter, properties: properties.clone(), ..Commit::default() });
                self.commit(table, commit).await?;
                Ok(format!("properties of {full} set"))
            }
            Alteration::AddColumns(columns) => {
                self.check_defaults(&full, &columns).await?;
                let commit = |table: &Table| {
                    let all = table.columns().iter().cloned().chain(columns.iter().cloned()).collect();
                    Ok(Commit { operation: Operation::Alter, schema: Some(all), reads: Reads::WholeTable, ..Commit::default() })
                };
                self.commit(table, commit).await?;
                Ok(format!("columns of {full} added"))
            }
            Alteration::SetMask { column, function, using } => {
                let found = table.columns().iter().find(|known| known.name.eq_ignore_ascii_case(&column));
                let Some(found) = found else {
                    let suggestion = nearest(&column, table.columns().iter().map(|column| column.name.as_str())).map(str::to_owned);
                    return Err(TextError::NoColumn { column, suggestion, span: None }.into());
                };
                let made = super::function_named(&mut self.catalogues, &function).await?;
                let clause = format!("MASK {} of `{}`", made.function.full_name(), found.name);
                self.record_mask(&table, &full, Some(found.name.clone()), made, using, clause).await
            }
            Alteration::SetRowFilter { function, on } => {
                let made = super::function_named(&mut self.catalogues, &function).await?;
                let clause = format!("ROW FILTER {}", made.function.full_name());
                self.record_mask(&table, &full, None, made, on, clause).await
            }
            Alteration::DropMask { column } => {
                let text = masks::deletion(&table.lake().options().catalogue, table.name(), Some(&column));
                Box::pin(self.on_system(&text)).await?;
                Ok(format!("mask of column `{column}` of {full} dropped"))
            }
            Alteration::DropRowFilter => {
                let text = masks::deletion(&table.lake().options().catalogue, table.name(), None);
                Box::pin(self.on_system(&text)).await?;
                Ok(format!("row filter of {full} dropped"))
            }
        }
    }

    async fn record_mask(
        &mut self,
        table: &Table,
        full: &str,
        column: Option<String>,
        made: Kept,
        using: Vec<String>,
        clause: String,
    ) -> Result<String, Error> {
        if !self.options.accept_unprotected {
            return Err(Error::Unprotected { table: full.to_owned(), clause });
        }
        let catalogue = table.lake().options().catalogue.clone();
        let text = masks::deletion(&catalogue, table.name(), column.as_deref());
        Box::pin(self.on_system(&text)).await?;
        let (table, function) = (table.name().clone(), made.function.full_name());
        let mask = Mask { catalogue, table, column, function, using, created_by: self.options.user.clone() };
        masks::append(self.lake.inner(), &mask).await?;
        Ok(format!("{clause} on {full} recorded, NOT ENFORCED: every reader sees the data as it is"))
    }

    /// Commits what changes no row, on top of whoever is first.
    async fn commit(&self, mut table: Table, commit: impl Fn(&Table) -> Result<Commit, Error>) -> Result<(), Error> {
        let attempts = self.lake.inner().options().attempts_max.max(1);
        let mut lost = String::new();
        for _ in 0..attempts {
            match table.commit(commit(&table)?).await? {
                CommitOutcome::Committed { .. } => return Ok(()),
                CommitOutcome::Conflicted(conflict) => lost = conflict.to_string(),
                CommitOutcome::Fenced { app_id, .. } => lost = format!("another run moved the position {app_id}"),
            }
            table = table.refresh().await?;
        }
        Err(Error::Contended { table: table.name().to_string(), attempts, conflict: lost })
    }

    pub(super) async fn comment(&mut self, kind: Kind, name: &Name, comment: Option<String>) -> Result<String, Error> {
        match kind {
            Kind::Catalogue => {
                let lake = self.catalogues.catalogue_named(&name.to_string()).await?;
                let called = lake.options().catalogue.clone();
                let mark = spaces::catalogue_mark(&lake, &called).await?.unwrap_or_else(|| self.mark(None));
                spaces::mark_catalogue(&lake, &called, &Mark { comment, ..mark }).await?;
                Ok(format!("comment of catalogue {called} set"))
            }
            Kind::Schema => {
                let (lake, schema) = self.catalogues.schema_named(name).await?;
                refuse_system(&lake, &schema)?;
                let mark = spaces::schema_mark(&lake, &schema).await?.unwrap_or_else(|| self.mark(None));
                spaces::mark_schema(&lake, &schema, &Mark { comment, ..mark }).await?;
                Ok(format!("comment of schema {schema} set"))
            }
            Kind::Table | Kind::Function => {
                let hint = "a table and a function have the comment they were created with".to_owned();
                Err(TextError::Refused {
                    what: format!("COMMENT ON {}", kind_word(kind).to_uppercase()),
                    hint: Some(hint),
                    span: name.span,
                }
                .into())
            }
        }
    }
}
