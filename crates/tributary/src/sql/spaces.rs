//! Catalogues and schemas of a lake.
//!
//! Both are folders: `<root>/<catalogue>/<schema>/<table>`. One that was created and has nothing in it is kept by a mark, a small object
//! in it; one that has tables needs none. The lake's own catalogue and `system` are always there.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tributary_lake::object_store::path::Path;
use tributary_lake::object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tributary_lake::{Lake, LakeOptions};
use tributary_specs::TableName;

use super::Error;
use crate::system;

/// The mark of a catalogue, in its folder.
const CATALOGUE_MARK: &str = "_catalogue.json";
/// The mark of a schema, in its folder.
const SCHEMA_MARK: &str = "_schema.json";

/// What is known of a catalogue or schema that was created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// When, as RFC 3339.
    #[serde(default)]
    pub created_at: Option<String>,
    /// By whom.
    #[serde(default)]
    pub created_by: Option<String>,
    /// `COMMENT`.
    #[serde(default)]
    pub comment: Option<String>,
}

/// A catalogue of the same root.
pub(crate) fn catalogue(lake: &Lake, name: &str) -> Result<Lake, Error> {
    if lake.options().catalogue == name {
        return Ok(lake.clone());
    }
    Ok(Lake::open(lake.stores().clone(), LakeOptions { catalogue: name.to_owned(), ..lake.options().clone() })?)
}

/// The names of all catalogues, sorted.
pub(crate) async fn catalogues(lake: &Lake) -> Result<Vec<String>, Error> {
    let mut names = BTreeSet::from([lake.options().catalogue.clone(), system::NAME.to_owned()]);
    for name in folders(lake, &root(lake)?).await? {
        if name.starts_with(['_', '.']) || name == "Volumes" || names.contains(&name) {
            continue;
        }
        if catalogue_space(lake, &name)?.mark().await?.is_some() || !catalogue(lake, &name)?.tables().await?.is_empty() {
            names.insert(name);
        }
    }
    Ok(names.into_iter().collect())
}

/// The names of all schemas of a catalogue, sorted; those that hold what nobody asks for left out.
pub(crate) async fn schemas(lake: &Lake) -> Result<Vec<String>, Error> {
    let mut names: BTreeSet<String> = tables(lake).await?.into_iter().map(|table| table.schema).collect();
    for name in folders(lake, &root(lake)?.join(lake.options().catalogue.as_str())).await? {
        if !name.starts_with('_') && !names.contains(&name) && schema_space(lake, &name)?.mark().await?.is_some() {
            names.insert(name);
        }
    }
    Ok(names.into_iter().collect())
}

/// A catalogue or a schema, of which its mark tells.
pub(crate) struct Space {
    lake: Lake,
    mark: Path,
}

/// A catalogue of the same root.
pub(crate) fn catalogue_space(lake: &Lake, name: &str) -> Result<Space, Error> {
    Ok(Space { lake: lake.clone(), mark: root(lake)?.join(name).join(CATALOGUE_MARK) })
}

/// A schema of a catalogue.
pub(crate) fn schema_space(lake: &Lake, name: &str) -> Result<Space, Error> {
    let mark = root(lake)?.join(lake.options().catalogue.as_str()).join(name).join(SCHEMA_MARK);
    Ok(Space { lake: lake.clone(), mark })
}

impl Space {
    /// Its mark, where it has one.
    pub(crate) async fn mark(&self) -> Result<Option<Mark>, Error> {
        match self.lake.stores().store().get(&self.mark).await {
            Ok(found) => {
                let bytes = found.bytes().await.map_err(|error| failed("reading", &self.mark, error))?;
                Ok(Some(serde_json::from_slice(&bytes).unwrap_or_default()))
            }
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("reading", &self.mark, error)),
        }
    }

    /// Marks it where it is not marked; whether it was not.
    pub(crate) async fn create(&self, mark: &Mark) -> Result<bool, Error> {
        self.put(mark, PutMode::Create).await
    }

    /// Marks it, whatever its mark was.
    pub(crate) async fn set(&self, mark: &Mark) -> Result<(), Error> {
        self.put(mark, PutMode::Overwrite).await.map(drop)
    }

    /// Takes its mark away, after which an empty one is gone.
    pub(crate) async fn remove(&self) -> Result<(), Error> {
        delete(&self.lake, &self.mark).await
    }

    async fn put(&self, mark: &Mark, mode: PutMode) -> Result<bool, Error> {
        let bytes = serde_json::to_vec(mark).unwrap_or_default();
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.lake.stores().store().put_opts(&self.mark, bytes.into(), options).await {
            Ok(_) => Ok(true),
            Err(StoreError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(failed("writing", &self.mark, error)),
        }
    }
}

/// The tables of a catalogue, those that hold what nobody asks for (`_state`) left out.
pub(crate) async fn tables(lake: &Lake) -> Result<Vec<TableName>, Error> {
    let mut tables = lake.tables().await?;
    tables.retain(|table| !table.schema.starts_with('_'));
    Ok(tables)
}

/// Deletes every object of a table, its log first, so that it is gone before its files are.
pub(crate) async fn delete_table(lake: &Lake, table: &TableName) -> Result<(), Error> {
    use futures::TryStreamExt;
    let folder = root(lake)?.join(lake.options().catalogue.as_str()).join(table.schema.as_str()).join(table.name.as_str());
    let store = lake.stores().store();
    for folder in [folder.clone().join("_delta_log"), folder] {
        let failed = |error| failed("deleting", &folder, error);
        let mut objects: Vec<Path> = store.list(Some(&folder)).map_ok(|object| object.location).try_collect().await.map_err(failed)?;
        objects.sort();
        for object in objects.iter().rev() {
            delete(lake, object).await?;
        }
    }
    Ok(())
}

fn root(lake: &Lake) -> Result<Path, Error> {
    let root = lake.stores().root();
    Path::from_url_path(root.path())
        .map_err(|error| tributary_lake::Error::Root { root: root.to_string(), reason: error.to_string() }.into())
}

async fn folders(lake: &Lake, path: &Path) -> Result<Vec<String>, Error> {
    let listed = lake.stores().store().list_with_delimiter(Some(path)).await.map_err(|error| failed("listing", path, error))?;
    Ok(listed.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned)).collect())
}

async fn delete(lake: &Lake, path: &Path) -> Result<(), Error> {
    match lake.stores().store().delete(path).await {
        Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
        Err(error) => Err(failed("deleting", path, error)),
    }
}

fn failed(action: &str, path: &Path, source: StoreError) -> Error {
    tributary_lake::Error::Store { action: format!("{action} {path}"), source }.into()
}
