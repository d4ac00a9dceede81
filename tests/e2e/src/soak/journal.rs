//! What a process that may be killed says of itself: one JSON document a line.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A file of lines.
#[derive(Debug, Clone)]
pub struct Journal(PathBuf);

impl Journal {
    /// The journal of a name in a folder.
    pub fn of(folder: &Path, name: &str) -> Self {
        Self(folder.join(format!("{name}.jsonl")))
    }

    /// Adds an entry.
    pub fn add(&self, entry: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(entry).context("an entry of a journal")?;
        line.push('\n');
        let mut file = File::options().create(true).append(true).open(&self.0).context("opening a journal")?;
        file.write_all(line.as_bytes()).context("writing a journal")
    }

    /// All entries; none when there is no journal. A line that was not written to its end is no entry.
    pub fn entries<T: DeserializeOwned>(&self) -> Vec<T> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}
