//! Catalogues and schemas of a lake.
//!
//! Both are folders: `<root>/<catalogue>/<schema>/<table>`. One that was created and has nothing in it is kept by a mark, a small object
//! in it; one that has tables needs none. The lake's own catalogue and `system` are always there.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tributary_lake::object_store::path::Path;
use tributary_lake::object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tributary_lake::{Lake, LakeOptions};

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
    pub created_at: String,
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
        if catalogue_mark(lake, &name).await?.is_some() || !catalogue(lake, &name)?.tables().await?.is_empty() {
            names.insert(name);
        }
    }
    Ok(names.into_iter().collect())
}

/// The names of all schemas of a catalogue, sorted; those that hold what nobody asks for (`_state`) left out.
pub(crate) async fn schemas(lake: &Lake) -> Result<Vec<String>, Error> {
    let mut names: BTreeSet<String> = lake.tables().await?.into_iter().map(|table| table.schema).collect();
    for name in folders(lake, &root(lake)?.join(lake.options().catalogue.as_str())).await? {
        if !names.contains(&name) && schema_mark(lake, &name).await?.is_some() {
            names.insert(name);
        }
    }
    names.retain(|name| !name.starts_with('_'));
    Ok(names.into_iter().collect())
}

/// The mark of a catalogue, where it has one.
pub(crate) async fn catalogue_mark(lake: &Lake, name: &str) -> Result<Option<Mark>, Error> {
    read(lake, &root(lake)?.join(name).join(CATALOGUE_MARK)).await
}

/// The mark of a schema, where it has one.
pub(crate) async fn schema_mark(lake: &Lake, name: &str) -> Result<Option<Mark>, Error> {
    read(lake, &schema_path(lake, name)?).await
}

/// Marks a catalogue; whether it was not marked before.
pub(crate) async fn create_catalogue(lake: &Lake, name: &str, mark: &Mark) -> Result<bool, Error> {
    put(lake, &root(lake)?.join(name).join(CATALOGUE_MARK), mark, PutMode::Create).await
}

/// Marks a schema; whether it was not marked before.
pub(crate) async fn create_schema(lake: &Lake, name: &str, mark: &Mark) -> Result<bool, Error> {
    put(lake, &schema_path(lake, name)?, mark, PutMode::Create).await
}

/// Writes the mark of a schema anew.
pub(crate) async fn mark_schema(lake: &Lake, name: &str, mark: &Mark) -> Result<(), Error> {
    put(lake, &schema_path(lake, name)?, mark, PutMode::Overwrite).await.map(drop)
}

/// Writes the mark of a catalogue anew.
pub(crate) async fn mark_catalogue(lake: &Lake, name: &str, mark: &Mark) -> Result<(), Error> {
    put(lake, &root(lake)?.join(name).join(CATALOGUE_MARK), mark, PutMode::Overwrite).await.map(drop)
}

/// Takes the mark of an empty schema away.
pub(crate) async fn drop_schema(lake: &Lake, name: &str) -> Result<(), Error> {
    delete(lake, &schema_path(lake, name)?).await
}

/// Takes the mark of an empty catalogue away.
pub(crate) async fn drop_catalogue(lake: &Lake, name: &str) -> Result<(), Error> {
    delete(lake, &root(lake)?.join(name).join(CATALOGUE_MARK)).await
}

/// Deletes every object of a table, its log first, so that it is gone before its files are.
pub(crate) async fn delete_table(lake: &Lake, table: &tributary_specs::TableName) -> Result<(), Error> {
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

fn schema_path(lake: &Lake, name: &str) -> Result<Path, Error> {
    Ok(root(lake)?.join(lake.options().catalogue.as_str()).join(name).join(SCHEMA_MARK))
}

async fn folders(lake: &Lake, path: &Path) -> Result<Vec<String>, Error> {
    let listed = lake.stores().store().list_with_delimiter(Some(path)).await.map_err(|error| failed("listing", path, error))?;
    Ok(listed.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned)).collect())
}

async fn read(lake: &Lake, path: &Path) -> Result<Option<Mark>, Error> {
    match lake.stores().store().get(path).await {
        Ok(found) => {
            let bytes = found.bytes().await.map_err(|error| failed("reading", path, error))?;
            Ok(Some(serde_json::from_slice(&bytes).unwrap_or_default()))
        }
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(failed("reading", path, error)),
    }
}

async fn put(lake: &Lake, path: &Path, mark: &Mark, mode: PutMode) -> Result<bool, Error> {
    let bytes = serde_json::to_vec(mark).unwrap_or_default();
    let options = PutOptions { mode, ..PutOptions::default() };
    match lake.stores().store().put_opts(path, bytes.into(), options).await {
        Ok(_) => Ok(true),
        Err(StoreError::AlreadyExists { .. }) => Ok(false),
        Err(error) => Err(failed("writing", path, error)),
    }
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
