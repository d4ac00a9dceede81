//! Folders of files that are never written to again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Where prepared tables are kept.
///
/// # Errors
/// Where it cannot be made.
pub fn data_folder() -> Result<PathBuf> {
    let built = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::current_exe()?.ancestors().nth(2).context("the program lies in no target folder")?.to_owned(),
    };
    let folder = built.join("bench-data");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A copy of a folder by hard links.
pub fn link_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link_all(&entry.path(), &target)?;
        } else {
            fs::hard_link(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Removes a folder that may not be there.
pub fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).with_context(|| format!("removing {}", folder.display())),
        _ => Ok(()),
    }
}

/// Bytes of the files below a folder that are no links to a prepared table's.
pub fn bytes_written(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            bytes += bytes_written(&entry.path())?;
        } else if metadata.nlink() == 1 {
            bytes += metadata.len();
        }
    }
    Ok(bytes)
}
