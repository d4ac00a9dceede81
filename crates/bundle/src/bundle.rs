//! A bundle with everything filled in.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;
use tributary_fault::nearest;
use tributary_specs::SourceFeed;

use crate::error::Error;
use crate::job::Job;
use crate::pipelines::Pipeline;

/// Pipelines, jobs and feeds of one target.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Bundle {
    /// Its name.
    pub name: String,
    /// The target it was read for.
    pub target: String,
    /// `development`, `production` or nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// Its folder, as it was given; empty = the working folder.
    pub folder: String,
    /// Pipelines by key.
    pub pipelines: BTreeMap<String, Pipeline>,
    /// Jobs by key.
    pub jobs: BTreeMap<String, Job>,
    /// Feeds, in the order of files.
    pub feeds: Vec<SourceFeed>,
    /// Datasets of all pipelines.
    pub datasets: Vec<Dataset>,
    /// The whole configuration, targets joined, references filled in, keys that are not known included.
    pub resolved: Json,
}

/// What one dataset is, for people and tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Dataset {
    /// The pipeline's key; none for SQL files alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// Its full name.
    pub name: String,
    /// `streaming table`, `materialized view`, `view` or `feed`.
    pub kind: String,
    /// Tables it reads.
    pub reads: Vec<String>,
    /// Its key columns.
    pub keys: Vec<String>,
    /// Names of the rules its rows must meet.
    pub expectations: Vec<String>,
    /// Clauses of its definition and flows.
    pub clauses: Vec<String>,
    /// The file it stands in.
    pub file: String,
    /// The line of its name.
    pub line: usize,
    /// The column of its name.
    pub column: usize,
}

impl Bundle {
    /// A pipeline by its key, or by its name.
    ///
    /// # Errors
    /// [`Error::NoResource`] with the nearest key.
    pub fn pipeline(&self, name: &str) -> Result<&Pipeline, Error> {
        let found = self.pipelines.get(name).or_else(|| self.pipelines.values().find(|pipeline| pipeline.name == name));
        found.ok_or_else(|| none("pipeline", name, self.pipelines.keys()))
    }

    /// A job by its key, or by its name.
    ///
    /// # Errors
    /// [`Error::NoResource`] with the nearest key.
    pub fn job(&self, name: &str) -> Result<&Job, Error> {
        let found = self.jobs.get(name).or_else(|| self.jobs.values().find(|job| job.name == name));
        found.ok_or_else(|| none("job", name, self.jobs.keys()))
    }
}

fn none<'a>(kind: &'static str, name: &str, known: impl Iterator<Item = &'a String>) -> Error {
    Error::NoResource { kind, name: name.to_owned(), nearest: nearest(name, known.map(String::as_str)).map(str::to_owned) }
}
