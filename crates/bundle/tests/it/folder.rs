//! Bundles made for a test.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tributary_bundle::{Loaded, Options, load_with};

/// A folder with a bundle in it, gone with the value.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// With these files, as pairs of path and text.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            folder.write(path, text);
        }
        folder
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn load(&self, target: Option<&str>) -> Loaded {
        self.load_with(&Options { target: target.map(str::to_owned), ..Options::default() })
    }

    pub fn load_var(&self, target: Option<&str>, variables: &[(&str, &str)]) -> Loaded {
        let variables: BTreeMap<String, String> = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.load_with(&Options { target: target.map(str::to_owned), variables, ..Options::default() })
    }

    pub fn load_with(&self, options: &Options) -> Loaded {
        load_with(self.path(), options)
    }

    /// Faults as lines, the folder's own path taken off.
    pub fn faults(&self, loaded: &Loaded) -> Vec<String> {
        let before = format!("{}/", self.path().display());
        loaded.faults.iter().map(|fault| fault.to_string().replace(&before, "")).collect()
    }
}

/// Faults of a bundle of one file.
pub fn faults_of(root: &str) -> Vec<String> {
    let folder = Folder::with(&[("databricks.yml", root)]);
    folder.faults(&folder.load(None))
}
