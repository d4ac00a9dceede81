//! The root of file drops: an object store and where in it relative paths begin.

use std::path::{Component, PathBuf};
use std::sync::Arc;

use tributary_lake::object_store::local::LocalFileSystem;
use tributary_lake::object_store::path::Path;
use tributary_lake::object_store::{self, ObjectStore};

use super::walk::needs_a_person;
use crate::{Error, Result};

/// The root of file drops. Everything is read through its object store.
#[derive(Debug, Clone)]
pub struct DataRoot {
    store: Arc<dyn ObjectStore>,
    /// Where relative paths begin, as the store names it.
    prefix: Path,
    /// The same folder on this machine, when it is one.
    folder: Option<PathBuf>,
}

/// A feed's path below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// As the store names it.
    pub path: Path,
    /// As a person knows it.
    pub shown: String,
    /// On this machine, when it is there.
    pub local: Option<PathBuf>,
}

impl DataRoot {
    /// A folder of this machine, relative to the working directory or absolute; a `file://` URL is one too. It need not exist yet.
    ///
    /// # Errors
    /// [`Error::Root`] for a URL of another scheme or a path that has no absolute form.
    pub fn local(path: &str) -> Result<Self> {
        let folder = local_path(path)?;
        let prefix = store_path(&folder)?;
        Ok(Self { store: Arc::new(LocalFileSystem::new()), prefix, folder: Some(folder) })
    }

    /// A store of the caller's; relative paths begin at `prefix`.
    pub fn wrap(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self { store, prefix: Path::from(prefix.trim_matches('/')), folder: None }
    }

    /// A store around the store of this root: paths and their meaning stay.
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn ObjectStore>) -> Self {
        self.store = store;
        self
    }

    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Where a feed's path is.
    pub(crate) fn place(&self, path: &str) -> Result<Place> {
        if let Some(folder) = &self.folder {
            let local = if path.contains("://") { local_path(path)? } else { tidy(&folder.join(path)) };
            return Ok(Place { path: store_path(&local)?, shown: local.display().to_string(), local: Some(local) });
        }
        let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
        let path = parts.fold(self.prefix.clone(), |path, part| path.join(part));
        Ok(Place { shown: path.to_string(), path, local: None })
    }

    /// Whether there is a folder. A store without folders says yes: there an empty prefix and a missing one are the same.
    pub(crate) async fn is_folder(&self, place: &Place) -> Result<bool> {
        match &place.local {
            None => Ok(true),
            Some(local) => match tokio::fs::metadata(local).await {
                Ok(metadata) => Ok(metadata.is_dir()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(match needs_a_person(&error) {
                    Some(reason) => Error::Unreachable { path: place.shown.clone(), reason },
                    None => Error::Read {
                        path: place.shown.clone(),
                        source: object_store::Error::Generic { store: "local files", source: Box::new(error) },
                    },
                }),
            },
        }
    }
}

fn local_path(path: &str) -> Result<PathBuf> {
    let refused = |reason: &str| Error::Root { root: path.to_owned(), reason: reason.to_owned() };
    let bare = match path.split_once("://") {
        Some(("file", rest)) => rest.strip_prefix("localhost").unwrap_or(rest),
        Some(_) => return Err(refused("only folders of this machine and stores handed in by the program are read")),
        None => path,
    };
    let absolute = std::path::absolute(if bare.is_empty() { "." } else { bare }).map_err(|error| refused(&error.to_string()))?;
    Ok(tidy(&absolute))
}

/// The path without `.` and `..`, by its text alone.
fn tidy(path: &std::path::Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

pub(super) fn store_path(path: &std::path::Path) -> Result<Path> {
    Path::from_absolute_path(path).map_err(|error| Error::Root { root: path.display().to_string(), reason: error.to_string() })
}
