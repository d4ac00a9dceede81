//! What is dropped, and the privileges on it with it.

use tributary_spark_sql::{Kind, Name};
use tributary_specs::TableName;

use super::create::refuse_system;
use super::grants::{self, Securable};
use super::session::kind_word;
use super::{Error, Session, TextError, functions, masks, spaces};
use crate::system;

impl Session {
    pub(super) async fn drop_named(&mut self, kind: Kind, name: &Name, if_exists: bool) -> Result<String, Error> {
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
        spaces::catalogue_space(self.lake.inner(), &called)?.remove().await?;
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
        spaces::schema_space(&lake, &schema)?.remove().await?;
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
        spaces::schema_space(table.lake(), &table.name().schema)?.create(&self.mark(None)).await?;
        spaces::delete_table(table.lake(), table.name()).await?;
        let TableName { schema, name } = table.name().clone();
        self.on_system(&masks::deletion_of_table(&catalogue, table.name())).await?;
        self.forget_grants(&Securable::Table(catalogue, schema, name)).await?;
        Ok(format!("table {full} dropped"))
    }

    async fn forget_grants(&mut self, securable: &Securable) -> Result<(), Error> {
        self.on_system(&grants::deletion(securable, None, &[])).await
    }
}
