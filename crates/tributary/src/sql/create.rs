//! What is created, altered, dropped, granted and revoked.

use tributary_fault::nearest;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::{Commit, CommitOutcome, Operation, Reads, Table};
use tributary_spark_sql::{
    Alteration, CreateFunction, CreateTable, Grant, Kind, Name, Securable as Written, SqlFunction, Statement, expression,
};
use tributary_specs::{Column, TableName, TableSpec};

use super::functions::Kept;
use super::grants::{self, Granted, Securable};
use super::listing::Listing;
use super::masks::{self, Mask};
use super::session::kind_word;
use super::spaces::{self, Mark};
use super::{Error, Session, TextError, ddl, functions, keys};
use crate::system;

/// What was done, in words.
pub(super) struct Created(pub String);

/// Executes a statement that is no query and changes no rows.
pub(super) async fn execute(session: &mut Session, statement: Statement) -> Result<Created, Error> {
    match statement {
        Statement::CreateSpace { kind, name, if_not_exists, comment } => session.create_space(kind, &name, if_not_exists, comment).await,
        Statement::CreateTable(table) => session.create_table(*table).await,
        Statement::CreateFunction(function) => session.create_function(function).await,
        Statement::Drop { kind, name, if_exists } => session.drop_named(kind, &name, if_exists).await,
        Statement::Alter { table, alteration } => session.alter(&table, alteration).await,
        Statement::Comment { kind, name, text } => session.comment(kind, &name, text).await,
        Statement::Grant(grant) => session.grant(grant).await,
        Statement::Revoke(grant) => session.revoke(grant).await,
        _ => Err(TextError::Syntax { reason: "this statement is executed elsewhere".to_owned() }.into()),
    }
    .map(Created)
}

impl Session {
    fn mark(&self, comment: Option<String>) -> Mark {
        let created_at = self.lake.inner().clock().now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        Mark { created_at, created_by: self.options.user.clone(), comment }
    }

    async fn create_space(&mut self, kind: Kind, name: &Name, if_not_exists: bool, comment: Option<String>) -> Result<String, Error> {
        let mark = self.mark(comment);
        let (full, made) = match kind {
            Kind::Catalogue => {
                let [called] = name.parts.as_slice() else {
                    return Err(Error::Name { name: name.to_string(), kind: "catalogue", reason: "it has more than one part" });
                };
                check_part(called, "catalogue")?;
                match self.catalogues.find_catalogue(called).await? {
                    // the lake's own catalogue is there without a mark, and may get one
                    Some(found) if found.options().catalogue != self.lake.inner().options().catalogue => (called.clone(), false),
                    _ => (called.clone(), spaces::create_catalogue(self.lake.inner(), called, &mark).await?),
                }
            }
            _ => {
                let (catalogue, schema) = self.catalogues.schema_of(name)?;
                check_part(&schema, "schema")?;
                let lake = self.catalogues.catalogue_named(&catalogue).await?;
                refuse_system(&lake, &schema)?;
                let there = spaces::schemas(&lake).await?.iter().any(|known| known.eq_ignore_ascii_case(&schema));
                let full = format!("{}.{schema}", lake.options().catalogue);
                (full, !there && spaces::create_schema(&lake, &schema, &mark).await?)
            }
        };
        let kind = kind_word(kind);
        match (made, if_not_exists) {
            (true, _) => Ok(format!("{kind} {full} created")),
            (false, true) => Ok(format!("{kind} {full} is there already")),
            (false, false) => Err(Error::Exists { kind, name: full }),
        }
    }

    async fn create_table(&mut self, table: CreateTable) -> Result<String, Error> {
        let (catalogue, name) = self.catalogues.place_of(&table.name, "table")?;
        check_part(&name.name, "table")?;
        let schema = Name { parts: vec![catalogue, name.schema.clone()], span: table.name.span };
        let (lake, schema) = self.catalogues.schema_named(&schema).await?;
        refuse_system(&lake, &schema)?;
        let name = TableName::new(schema, name.name);
        let full = format!("{}.{name}", lake.options().catalogue);
        if let Some((clause, _)) = table.unprotected.first()
            && !self.options.accept_unprotected
        {
            return Err(Error::Unprotected { table: full, clause: clause.clone() });
        }
        if lake.tables().await?.iter().any(|known| known.same_without_case(&name)) {
            return match table.if_not_exists {
                true => Ok(format!("table {full} is there already")),
                false => Err(Error::Exists { kind: "table", name: full }),
            };
        }
        let mut spec = TableSpec::new(name.clone(), table.columns);
        let rows = match table.query {
            None => None,
            Some(query) => {
                let frame = self.plan(query).await?;
                for field in frame.schema().fields() {
                    let data_type = tributary_specs::DataType::from_arrow(field.name(), field.data_type())
                        .map_err(|error| Error::Columns { table: full.clone(), reason: error.to_string() })?;
                    spec.columns.push(Column::new(field.name(), data_type));
                }
                Some(frame)
            }
        };
        self.check_defaults(&full, &spec.columns).await?;
        spec.partition_by = spelled(&spec.columns, table.partition_by);
        spec.cluster_by = spelled(&spec.columns, table.cluster_by);
        spec.checks = table.checks;
        spec.comment = table.comment;
        spec.row_changes = !table.properties.get("delta.appendOnly").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        spec.properties = table.properties;
        spec.properties.extend(keys::properties(&name.name, &table.keys));
        let made = lake.create(&spec).await?;
        for (clause, _) in &table.unprotected {
            tracing::warn!(table = full, clause, "not enforced: every reader sees the data as it is");
        }
        if let Some(frame) = rows {
            let written = write(&made, frame).await?;
            return Ok(format!("table {full} created with {written} rows"));
        }
        Ok(format!("table {full} created"))
    }

    /// Defaults are read when the table is made, not when the first row needs them.
    async fn check_defaults(&self, table: &str, columns: &[Column]) -> Result<(), Error> {
        let (context, own) = self.context().await?;
        for column in columns {
            let Some(default) = &column.default else { continue };
            expression(&context.state(), default, None, &DFSchema::empty(), &own).map_err(|error| Error::Columns {
                table: table.to_owned(),
                reason: format!("the default of `{}`: {error}", column.name),
            })?;
        }
        Ok(())
    }

    async fn create_function(&mut self, made: CreateFunction) -> Result<String, Error> {
        let (catalogue, place) = self.catalogues.place_of(&made.name, "function")?;
        check_part(&place.name, "function")?;
        let schema = Name { parts: vec![catalogue, place.schema], span: made.name.span };
        let (lake, schema) = match self.catalogues.schema_named(&schema).await {
            Ok(found) => found,
            // A schema that only functions are in comes with its first one.
            Err(Error::Missing { kind: "schema", .. }) => {
                let (catalogue, schema) = self.catalogues.schema_of(&schema)?;
                let lake = self.catalogues.catalogue_named(&catalogue).await?;
                spaces::create_schema(&lake, &schema, &self.mark(None)).await?;
                (lake, schema)
            }
            Err(error) => return Err(error),
        };
        refuse_system(&lake, &schema)?;
        let names = [lake.options().catalogue.clone(), schema, place.name];
        let full = names.join(".");
        let known = functions::load(self.lake.inner()).await?;
        let there = known.iter().any(|known| known.function.full_name().eq_ignore_ascii_case(&full));
        match (there, made.replace, made.if_not_exists) {
            (true, false, true) => return Ok(format!("function {full} is there already")),
            (true, false, false) => return Err(Error::Exists { kind: "function", name: full }),
            _ => {}
        }
        let CreateFunction { parameters, returns, comment, body, body_span, .. } = made;
        let function = SqlFunction { names, parameters, returns, body, body_span };
        // What it calls must have been there before it; so no circle can come to be.
        let before = known.iter().position(|known| known.function.full_name().eq_ignore_ascii_case(&full)).unwrap_or(known.len());
        let context = self.lake.inner().session();
        tributary_spark_sql::prepare(&context);
        tributary_spark_sql::run_as(&context, self.options.user.as_deref().unwrap_or_default());
        let own = functions::register(&context, &known[..before]);
        function.to_udf(&context.state(), &own)?;
        if there {
            let later: Vec<Kept> = known[before + 1..].to_vec();
            self.delete_function(&known[before].function.names).await?;
            functions::append(self.lake.inner(), &Kept { function, comment, created_by: self.options.user.clone() }).await?;
            // Those that call it come after it again.
            for one in later {
                self.delete_function(&one.function.names).await?;
                functions::append(self.lake.inner(), &one).await?;
            }
            return Ok(format!("function {full} replaced"));
        }
        functions::append(self.lake.inner(), &Kept { function, comment, created_by: self.options.user.clone() }).await?;
        Ok(format!("function {full} created"))
    }

    async fn delete_function(&mut self, names: &[String; 3]) -> Result<(), Error> {
        let [catalogue, schema, name] = names.each_ref().map(|part| ddl::literal(part));
        let text =
            format!("DELETE FROM system.tributary.functions WHERE catalogue = {catalogue} AND `schema` = {schema} AND name = {name}");
        Box::pin(self.on_system(&text)).await
    }

    async fn drop_named(&mut self, kind: Kind, name: &Name, if_exists: bool) -> Result<String, Error> {
        let dropped = match kind {
            Kind::Catalogue => self.drop_catalogue(name).await,
            Kind::Schema => self.drop_schema(name).await,
            Kind::Table => self.drop_table(name).await,
            Kind::Function => match super::function_named(&mut self.catalogues, name).await {
                Ok(made) => {
                    self.delete_function(&made.function.names).await?;
                    let [catalogue, schema, function] = made.function.names.clone();
                    self.forget_grants(&Securable::Function(catalogue, schema, function)).await?;
                    Ok(format!("function {} dropped", made.function.full_name()))
                }
                Err(error) => Err(error),
            },
        };
        match dropped {
            Err(Error::Missing { .. } | Error::Text(TextError::NoTable { .. })) if if_exists => {
                Ok(format!("there is no {} {name}", kind_word(kind)))
            }
            other => other,
        }
    }

    async fn drop_catalogue(&mut self, name: &Name) -> Result<String, Error> {
        let lake = self.catalogues.catalogue_named(&name.to_string()).await?;
        let called = lake.options().catalogue.clone();
        if called == self.lake.inner().options().catalogue || called == system::NAME {
            return Err(Error::Kept { table: called, by: "the lake" });
        }
        if let Some(schema) = spaces::schemas(&lake).await?.first() {
            return Err(Error::NotEmpty { kind: "catalogue", name: called, holds: schema.clone() });
        }
        spaces::drop_catalogue(self.lake.inner(), &called).await?;
        self.catalogues.forget(&called);
        self.forget_grants(&Securable::Catalogue(called.clone())).await?;
        Ok(format!("catalogue {called} dropped"))
    }

    async fn drop_schema(&mut self, name: &Name) -> Result<String, Error> {
        let (lake, schema) = self.catalogues.schema_named(name).await?;
        let catalogue = lake.options().catalogue.clone();
        let full = format!("{catalogue}.{schema}");
        let table = lake.tables().await?.into_iter().find(|table| table.schema == schema).map(|table| table.to_string());
        let functions = functions::load(self.lake.inner()).await?;
        let function = functions.iter().find(|made| made.function.names[..2] == [catalogue.clone(), schema.clone()]);
        if let Some(holds) = table.or_else(|| function.map(|made| made.function.full_name())) {
            return Err(Error::NotEmpty { kind: "schema", name: full, holds });
        }
        spaces::drop_schema(&lake, &schema).await?;
        self.forget_grants(&Securable::Schema(catalogue, schema)).await?;
        Ok(format!("schema {full} dropped"))
    }

    async fn drop_table(&mut self, name: &Name) -> Result<String, Error> {
        let table = self.catalogues.table_named(name).await?;
        let catalogue = table.lake().options().catalogue.clone();
        let (short, full) = (table.name().to_string(), format!("{catalogue}.{}", table.name()));
        refuse_system(table.lake(), &table.name().schema)?;
        let own = catalogue == self.lake.inner().options().catalogue;
        let agreed = |wanted: &String| wanted.eq_ignore_ascii_case(&full) || (own && wanted.eq_ignore_ascii_case(&short));
        if !self.options.destroy.iter().any(agreed) {
            return Err(Error::Destroy { table: full });
        }
        // The schema stays, also when this was its last table.
        if spaces::schema_mark(table.lake(), &table.name().schema).await?.is_none() {
            spaces::create_schema(table.lake(), &table.name().schema, &self.mark(None)).await?;
        }
        spaces::delete_table(table.lake(), table.name()).await?;
        let TableName { schema, name } = table.name().clone();
        self.forget_grants(&Securable::Table(catalogue, schema, name)).await?;
        Ok(format!("table {full} dropped"))
    }

    async fn forget_grants(&mut self, securable: &Securable) -> Result<(), Error> {
        Box::pin(self.on_system(&grants::deletion(securable, None, &[]))).await
    }

    async fn alter(&mut self, name: &Name, alteration: Alteration) -> Result<String, Error> {
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

    async fn comment(&mut self, kind: Kind, name: &Name, comment: Option<String>) -> Result<String, Error> {
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

    /// The thing that a grant names, which must be there.
    async fn securable(&mut self, written: &Written) -> Result<Securable, Error> {
        let missing = || Error::Missing { kind: "securable", name: written.name.to_string(), nearest: None };
        match written.kind.as_str() {
            "METASTORE" => Ok(Securable::Metastore),
            "CATALOG" => {
                let lake = self.catalogues.catalogue_named(&written.name.to_string()).await?;
                Ok(Securable::Catalogue(lake.options().catalogue.clone()))
            }
            "SCHEMA" => {
                let (lake, schema) = self.catalogues.schema_named(&written.name).await?;
                Ok(Securable::Schema(lake.options().catalogue.clone(), schema))
            }
            "TABLE" | "VIEW" | "MATERIALIZED VIEW" | "STREAMING TABLE" => {
                let table = self.catalogues.table_named(&written.name).await?;
                let TableName { schema, name } = table.name().clone();
                Ok(Securable::Table(table.lake().options().catalogue.clone(), schema, name))
            }
            "FUNCTION" => {
                let made = super::function_named(&mut self.catalogues, &written.name).await?;
                let [catalogue, schema, name] = made.function.names;
                Ok(Securable::Function(catalogue, schema, name))
            }
            _ => Err(missing()),
        }
    }

    async fn grant(&mut self, grant: Grant) -> Result<String, Error> {
        let securable = self.securable(&grant.on).await?;
        let has = grants::load(self.lake.inner()).await?;
        let mut given = Vec::new();
        for privilege in &grant.privileges {
            let privilege = grants::known(privilege, securable.kind())?.to_owned();
            let granted = Granted {
                securable: securable.clone(),
                principal: grant.principal.clone(),
                privilege,
                granted_by: self.options.user.clone(),
            };
            let same = |known: &Granted| {
                known.securable == granted.securable && known.principal == granted.principal && known.privilege == granted.privilege
            };
            if !has.iter().chain(&given).any(same) {
                given.push(granted);
            }
        }
        if !given.is_empty() {
            grants::append(self.lake.inner(), &given).await?;
        }
        Ok(format!("{} granted on {} {securable} to {}", listed(&grant), securable.kind().to_lowercase(), grant.principal))
    }

    async fn revoke(&mut self, grant: Grant) -> Result<String, Error> {
        let securable = self.securable(&grant.on).await?;
        let mut privileges = Vec::new();
        for privilege in &grant.privileges {
            privileges.push(grants::known(privilege, securable.kind())?);
        }
        // ALL PRIVILEGES takes back every one.
        let taken: &[&str] = if privileges.contains(&"ALL PRIVILEGES") { &[] } else { &privileges };
        Box::pin(self.on_system(&grants::deletion(&securable, Some(&grant.principal), taken))).await?;
        Ok(format!("{} revoked on {} {securable} from {}", listed(&grant), securable.kind().to_lowercase(), grant.principal))
    }

    pub(super) async fn show_grants(&mut self, principal: Option<String>, on: Option<Written>) -> Result<RecordBatch, Error> {
        let all = grants::load(self.lake.inner()).await?;
        let shown: Vec<&Granted> = match &on {
            Some(on) => {
                let securable = self.securable(on).await?;
                grants::on(&all, &securable)
            }
            None => all.iter().collect(),
        };
        let mut listing = Listing::texts(&["Principal", "ActionType", "ObjectType", "ObjectKey"]);
        for granted in shown.into_iter().filter(|granted| principal.as_ref().is_none_or(|principal| *principal == granted.principal)) {
            let (kind, key) = (granted.securable.kind(), granted.securable.to_string());
            listing.push([granted.principal.clone().into(), granted.privilege.clone().into(), kind.into(), key.into()]);
        }
        listing.batch()
    }
}

fn listed(grant: &Grant) -> String {
    grant.privileges.iter().map(|privilege| privilege.words.as_str()).collect::<Vec<_>>().join(", ")
}

/// Nothing of `system` and of `information_schema` is made by people.
fn refuse_system(lake: &tributary_lake::Lake, schema: &str) -> Result<(), Error> {
    let catalogue = &lake.options().catalogue;
    if catalogue == system::NAME || schema.eq_ignore_ascii_case(super::information::SCHEMA) || schema.starts_with('_') {
        return Err(Error::Kept { table: format!("{catalogue}.{schema}"), by: "the program" });
    }
    Ok(())
}

/// A part of a name that can be a folder.
fn check_part(part: &str, kind: &'static str) -> Result<(), Error> {
    let reason = match part {
        "" => "it is empty",
        "." | ".." => "no folder is called so",
        part if part.contains(['/', '\\', '\0']) || part.chars().any(char::is_control) => "a slash or a control character is in it",
        part if part.starts_with('_') && kind != "table" && kind != "function" => "names that begin with _ are the program's own",
        part if part.len() > 255 => "it is longer than 255 bytes",
        _ => return Ok(()),
    };
    Err(Error::Name { name: part.to_owned(), kind, reason })
}

/// Columns as the table spells them.
fn spelled(columns: &[Column], names: Vec<String>) -> Vec<String> {
    let of = |name: String| match columns.iter().find(|column| column.name.eq_ignore_ascii_case(&name)) {
        Some(column) => column.name.clone(),
        None => name,
    };
    names.into_iter().map(of).collect()
}

/// Writes the rows of `CREATE TABLE … AS`.
async fn write(table: &Table, frame: tributary_lake::datafusion::prelude::DataFrame) -> Result<u64, Error> {
    use futures::TryStreamExt;
    let mut rows = frame.execute_stream().await.map_err(Error::run)?;
    let mut writer = table.writer(tributary_lake::WriterOptions::default())?;
    let mut count = 0;
    while let Some(batch) = rows.try_next().await.map_err(Error::run)? {
        count += batch.num_rows() as u64;
        writer.write(&batch).await?;
    }
    let adds = writer.finish().await?;
    if !adds.is_empty() {
        let commit = Commit { operation: Operation::Write, adds, reads: Reads::BlindAppend, ..Commit::default() };
        if let CommitOutcome::Conflicted(conflict) = table.commit(commit).await? {
            return Err(Error::Contended { table: table.name().to_string(), attempts: 1, conflict: conflict.to_string() });
        }
    }
    Ok(count)
}
