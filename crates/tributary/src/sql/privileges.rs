//! What is granted, revoked and shown of it.

use tributary_lake::arrow::array::RecordBatch;
use tributary_spark_sql::{Grant, Securable as Written};
use tributary_specs::TableName;

use super::grants::{self, Granted, Securable};
use super::listing::Listing;
use super::{Error, Session};

impl Session {
    /// The thing that a grant names, which must be there.
    async fn securable(&mut self, written: &Written) -> Result<Securable, Error> {
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
            _ => Err(Error::Missing { kind: "securable", name: written.name.to_string(), nearest: None }),
        }
    }

    pub(super) async fn grant(&mut self, grant: Grant) -> Result<String, Error> {
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
            if !has.iter().chain(&given).any(|known| known.is_same(&granted)) {
                given.push(granted);
            }
        }
        if !given.is_empty() {
            grants::append(self.lake.inner(), &given).await?;
        }
        Ok(format!("{} granted on {} {securable} to {}", listed(&grant), securable.kind().to_lowercase(), grant.principal))
    }

    pub(super) async fn revoke(&mut self, grant: Grant) -> Result<String, Error> {
        let securable = self.securable(&grant.on).await?;
        let mut privileges = Vec::new();
        for privilege in &grant.privileges {
            privileges.push(grants::known(privilege, securable.kind())?);
        }
        // ALL PRIVILEGES takes back every one.
        let taken: &[&str] = if privileges.contains(&"ALL PRIVILEGES") { &[] } else { &privileges };
        self.on_system(&grants::deletion(&securable, Some(&grant.principal), taken)).await?;
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
