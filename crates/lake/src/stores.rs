//! One object store for the root of a lake.

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use url::Url;

use crate::{Error, Result};

/// The object store of a lake and where in it the lake begins. Every table of the lake is read and written through
/// this one store, so that a store wrapped around it sees everything.
#[derive(Debug, Clone)]
pub struct Stores {
    store: Arc<dyn ObjectStore>,
    root: Url,
}

impl Stores {
    /// A folder of this machine; it is created when absent.
    ///
    /// # Errors
    /// [`Error::Root`] when the folder cannot be created.
    pub fn local(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let refused = |reason: String| Error::Root { root: path.display().to_string(), reason };
        std::fs::create_dir_all(path).map_err(|error| refused(error.to_string()))?;
        let path = path.canonicalize().map_err(|error| refused(error.to_string()))?;
        let root = Url::from_directory_path(&path).map_err(|()| refused("the path is not absolute".to_owned()))?;
        Ok(Self { store: Arc::new(LocalFileSystem::new()), root })
    }

    /// A lake that lives as long as the process, private to this value and its clones.
    pub fn memory() -> Self {
        Self { store: Arc::new(InMemory::new()), root: memory_root() }
    }

    /// A store of the caller's, rooted where the scheme of `root` begins: for `file:///a/b/` it must understand `a/b/…`.
    pub fn wrap(store: Arc<dyn ObjectStore>, mut root: Url) -> Self {
        if !root.path().ends_with('/') {
            root.set_path(&format!("{}/", root.path()));
        }
        Self { store, root }
    }

    /// Where the lake begins; ends with a slash.
    pub fn root(&self) -> &Url {
        &self.root
    }

    /// The store, rooted where the scheme of [`Self::root`] begins.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }
}

#[allow(clippy::expect_used, reason = "the text is a constant")]
fn memory_root() -> Url {
    Url::parse("memory:///lake/").expect("a constant URL")
}
