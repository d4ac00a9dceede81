//! Files that a command writes: whole or not at all.

use std::io::{Result, Write as _};
use std::path::Path;

/// Writes a file beside its place and moves it there; folders that are missing are made.
pub fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    let mut out = std::fs::File::create(&beside)?;
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all())?;
    std::fs::rename(&beside, file)
}
