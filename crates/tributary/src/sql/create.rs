//! What is created.

use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::{Commit, Lake, Operation, Reads, Table};
use tributary_spark_sql::{CreateFunction, CreateTable, Kind, Name, SqlFunction, expression};
use tributary_specs::{Column, TableName, TableSpec};

use super::functions::Kept;
use super::session::kind_word;
use super::spaces::{self, Mark};
use super::{Error, Session, functions, insert, keys, masks};
use crate::system;

impl Session {
    pub(super) fn mark(&self, comment: Option<String>) -> Mark {
        let created_at = self.lake.inner().clock().now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        Mark { created_at: Some(created_at), created_by: self.options.user.clone(), comment }
    }

    pub(super) async fn create_space(
        &mut self,
        kind: Kind,
        name: &Name,
        if_not_exists: bool,
        comment: Option<String>,
    ) -> Result<String, Error> {
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
                    _ => (called.clone(), spaces::catalogue_space(self.lake.inner(), called)?.create(&mark).await?),
                }
            }
            _ => {
                let (catalogue, schema) = self.catalogues.schema_of(name)?;
                check_part(&schema, "schema")?;
                let lake = self.catalogues.catalogue_named(&catalogue).await?;
                refuse_system(&lake, &schema)?;
                let there = spaces::schemas(&lake).await?.iter().any(|known| known.eq_ignore_ascii_case(&schema));
                let full = format!("{}.{schema}", lake.options().catalogue);
                (full, !there && spaces::schema_space(&lake, &schema)?.create(&mark).await?)
            }
        };
        let kind = kind_word(kind);
        match (made, if_not_exists) {
            (true, _) => Ok(format!("{kind} {full} created")),
            (false, true) => Ok(format!("{kind} {full} is there already")),
            (false, false) => Err(Error::Exists { kind, name: full }),
        }
    }

    pub(super) async fn create_table(&mut self, table: CreateTable) -> Result<String, Error> {
        let (catalogue, name) = self.catalogues.place_of(&table.name, "table")?;
        check_part(&name.name, "table")?;
        let schema = Name { parts: vec![catalogue, name.schema.clone()], span: table.name.span };
        let (lake, schema) = self.catalogues.schema_named(&schema).await?;
        refuse_system(&lake, &schema)?;
        let name = TableName::new(schema, name.name);
        let full = format!("{}.{name}", lake.options().catalogue);
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
        let mut masks = Vec::new();
        for clause in table.masks {
            masks.push(self.mask_of(&lake, &name, &spec.columns, clause).await?);
        }
        spec.partition_by = spelled(&spec.columns, table.partition_by);
        spec.cluster_by = spelled(&spec.columns, table.cluster_by);
        spec.checks = table.checks;
        spec.comment = table.comment;
        spec.row_changes = !table.properties.get("delta.appendOnly").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        spec.properties = table.properties;
        spec.properties.extend(keys::properties(&name.name, &table.keys));
        let made = lake.create(&spec).await?;
        // before the first row, for whatever becomes of the rows
        if !masks.is_empty() {
            masks::append(self.lake.inner(), &masks).await?;
        }
        let mut done = format!("table {full} created");
        if let Some(frame) = rows {
            let written = write(&made, frame).await?;
            done.push_str(&format!(" with {written} rows"));
        }
        for mask in &masks {
            done.push_str(&format!("; {} recorded, NOT ENFORCED: every reader sees the data as it is", mask.clause()));
        }
        Ok(done)
    }

    /// Defaults are read when the table is made, not when the first row needs them.
    pub(super) async fn check_defaults(&self, table: &str, columns: &[Column]) -> Result<(), Error> {
        let planner = self.planner().await?;
        for column in columns {
            let Some(default) = &column.default else { continue };
            expression(&planner.state, default, None, &DFSchema::empty(), &planner.own).map_err(|error| Error::Columns {
                table: table.to_owned(),
                reason: format!("the default of `{}`: {error}", column.name),
            })?;
        }
        Ok(())
    }

    pub(super) async fn create_function(&mut self, made: CreateFunction) -> Result<String, Error> {
        let (catalogue, place) = self.catalogues.place_of(&made.name, "function")?;
        check_part(&place.name, "function")?;
        check_part(&place.schema, "schema")?;
        let lake = self.catalogues.catalogue_named(&catalogue).await?;
        refuse_system(&lake, &place.schema)?;
        let known = spaces::schemas(&lake).await?.into_iter().find(|known| known.eq_ignore_ascii_case(&place.schema));
        // A schema that only functions are in comes with its first one.
        let is_first = known.is_none();
        let schema = known.unwrap_or(place.schema);
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
        if is_first {
            spaces::schema_space(&lake, &function.names[1])?.create(&self.mark(None)).await?;
        }
        functions::append(self.lake.inner(), &Kept { function, comment, created_by: self.options.user.clone() }).await?;
        Ok(format!("function {full} created"))
    }

    pub(super) async fn delete_function(&mut self, names: &[String; 3]) -> Result<(), Error> {
        let [catalogue, schema, name] = names.each_ref().map(|part| Some(part.as_str()));
        self.on_system(&functions::TABLE.deletion(&[("catalogue", catalogue), ("schema", schema), ("name", name)])).await
    }
}

/// Nothing of `system` and of `information_schema` is made by people.
pub(super) fn refuse_system(lake: &Lake, schema: &str) -> Result<(), Error> {
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
async fn write(table: &Table, frame: DataFrame) -> Result<u64, Error> {
    let (adds, count) = insert::write(table, frame).await?;
    if adds.is_empty() {
        return Ok(count);
    }
    let commit = Commit { operation: Operation::Write, adds, reads: Reads::BlindAppend, ..Commit::default() };
    match super::lost(&table.commit(commit).await?) {
        None => Ok(count),
        Some(conflict) => Err(Error::Contended { table: table.name().to_string(), attempts: 1, conflict }),
    }
}
