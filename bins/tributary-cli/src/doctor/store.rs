//! The warehouse: whether its store lets a run do what it must, and refuses what it must refuse.

use std::path::Path as FilePath;
use std::time::Duration;

use chrono::Utc;
use tributary::object_store::path::Path;
use tributary::object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tributary::{Clock as _, Lake, Pipeline, SystemClock, TableName};
use tributary_config::Settings;

use super::finding::Finding;
use crate::failure::{Error, Failure};
use crate::opened;

/// How long the store may take over one call.
const PATIENCE: Duration = Duration::from_secs(10);
/// How far clocks may be apart, in seconds: commit times of one table must grow.
const APART_MAX: i64 = 60;

/// Looks at the warehouse, its catalogue and its clock.
pub async fn check(settings: &Settings, pipeline: Option<&Pipeline>, findings: &mut Vec<Finding>) {
    let location = settings.warehouse.to_string();
    let left = Folders::before(settings);
    let lake = match opened::lake(settings) {
        Ok(lake) => lake,
        Err(failure) => return findings.push(Finding::failed("warehouse", &location, failure)),
    };
    match probe(&lake, settings).await {
        Ok(modified) => {
            let detail = "objects can be created, read, listed and deleted; a second creation is refused";
            findings.push(Finding::ok("warehouse", &location, detail.to_owned()));
            findings.push(catalogue(&lake, settings).await);
            findings.push(clock(&lake, pipeline, modified).await);
        }
        Err(failure) => findings.push(Finding::failed("warehouse", &location, failure)),
    }
    left.tidy_up();
}

/// Creates, reads, lists and deletes an object, and creates it a second time, which must be refused: commits rest on that.
/// Gives the time that the store says the object is of.
async fn probe(lake: &Lake, settings: &Settings) -> Result<chrono::DateTime<Utc>, Failure> {
    let stores = lake.stores();
    let store = stores.store();
    let failed =
        |action: &str, source| Failure::from(Error::Store { location: settings.warehouse.to_string(), action: action.to_owned(), source });
    let root = Path::from_url_path(stores.root().path()).map_err(|error| failed("naming an object", error.into()))?;
    let name = format!("_probe-{}-{}", std::process::id(), SystemClock.now().timestamp_micros());
    let path = root.join(settings.catalogue.as_str()).join(name.as_str());
    let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    within(store.put_opts(&path, "first".into(), create.clone())).await.map_err(|error| failed("creating an object", error))?;
    let looked = look(store.as_ref(), &path, create, &failed, settings).await;
    let deleted = within(store.delete(&path)).await.map_err(|error| failed("deleting an object", error));
    let modified = looked?;
    deleted.map(|()| modified)
}

async fn look(
    store: &dyn ObjectStore,
    path: &Path,
    create: PutOptions,
    failed: &impl Fn(&str, StoreError) -> Failure,
    settings: &Settings,
) -> Result<chrono::DateTime<Utc>, Failure> {
    match within(store.put_opts(path, "second".into(), create)).await {
        Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {}
        Ok(_) => return Err(Error::NotAtomic { location: settings.warehouse.to_string() }.into()),
        Err(error) => return Err(failed("creating an object that is there already", error)),
    }
    let read = within(async { store.get(path).await?.bytes().await }).await.map_err(|error| failed("reading an object", error))?;
    if read.as_ref() != b"first" {
        return Err(Error::NotAtomic { location: settings.warehouse.to_string() }.into());
    }
    let folder: Path = path.parts().take(path.parts().count().saturating_sub(1)).collect();
    let listed = within(store.list_with_delimiter(Some(&folder))).await.map_err(|error| failed("listing objects", error))?;
    let found = listed.objects.into_iter().find(|object| object.location == *path);
    let gone = || StoreError::NotFound { path: path.to_string(), source: "it was created just now and is not listed".into() };
    found.map(|object| object.last_modified).ok_or_else(|| failed("listing objects", gone()))
}

async fn within<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let silent = || StoreError::Generic { store: "store", source: format!("no answer within {} s", PATIENCE.as_secs()).into() };
    tokio::time::timeout(PATIENCE, call).await.unwrap_or_else(|_| Err(silent()))
}

async fn catalogue(lake: &Lake, settings: &Settings) -> Finding {
    let name = settings.catalogue.as_str();
    match lake.tables().await {
        Ok(tables) if tables.is_empty() => Finding::ok("catalogue", name, "a folder of the warehouse; it holds no table yet".to_owned()),
        Ok(tables) => Finding::ok("catalogue", name, format!("a folder of the warehouse with {} tables", tables.len())),
        Err(error) => Finding::failed("catalogue", name, error),
    }
}

/// This machine's clock beside the store's and beside the newest commits, which no clock may lie before.
async fn clock(lake: &Lake, pipeline: Option<&Pipeline>, modified: chrono::DateTime<Utc>) -> Finding {
    let now = SystemClock.now();
    let apart = (modified - now).num_seconds().abs();
    if apart > APART_MAX {
        return Finding::failed("clock", "", Error::Clock { other: "the store's clock".to_owned(), seconds: apart });
    }
    let mut newest: Option<(TableName, chrono::DateTime<Utc>)> = None;
    for dataset in pipeline.map(|pipeline| pipeline.spec().datasets()).unwrap_or_default() {
        let name = dataset.table;
        let Ok(table) = lake.table(&name.to_string()).await else { continue };
        let Ok(history) = table.history(Some(1)).await else { continue };
        if let Some(commit) = history.first().filter(|commit| newest.as_ref().is_none_or(|(_, at)| commit.timestamp > *at)) {
            newest = Some((name, commit.timestamp));
        }
    }
    match newest {
        Some((table, at)) if (at - now).num_seconds() > APART_MAX => {
            Finding::failed("clock", "", Error::Clock { other: format!("the last commit of {table}"), seconds: (at - now).num_seconds() })
        }
        _ => Finding::ok("clock", "", format!("within {APART_MAX} s of the store's; no commit lies ahead")),
    }
}

/// Folders of this machine that were not there before: looking makes them, and takes them away again while they are empty.
struct Folders(Vec<std::path::PathBuf>);

impl Folders {
    fn before(settings: &Settings) -> Self {
        let Some(warehouse) = opened::folder(&settings.warehouse) else { return Self(Vec::new()) };
        let catalogue = warehouse.join(settings.catalogue.as_str());
        let missing = catalogue.ancestors().take_while(|folder| !folder.exists() && *folder != FilePath::new(""));
        Self(missing.map(FilePath::to_owned).collect())
    }

    fn tidy_up(self) {
        for folder in self.0 {
            // one that a run has begun to fill stays
            if std::fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }
}
