//! What must hold of specs beyond their form. Pure; every rule adds to one list of findings.

mod columns;
mod condition;
mod feed;
mod flows;
mod gold;
mod property;
mod sequence;
mod silver;
mod sql;
mod tables;

use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::problem::{Path, Problem};
use crate::table_name::TableName;

/// Parts of the files that could not be read: what they would make is not held against the rest.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// Tables of unreadable datasets.
    pub tables: Vec<TableName>,
    /// Whether there may be datasets whose table is not known.
    pub something: bool,
    /// Whether the pipeline's name stood there but could not be read.
    pub name: bool,
}

/// The list the rules add to.
#[derive(Debug, Default)]
struct Findings(Vec<Problem>);

impl Findings {
    fn add(&mut self, path: Path, error: Error) {
        self.0.push(Problem::new(path, error));
    }

    /// Adds that something is empty, where it is.
    fn refuse_empty(&mut self, path: &Path, text: &str, what: &'static str) {
        if text.trim().is_empty() {
            self.add(path.clone(), Error::Empty { what });
        }
    }
}

/// Every mistake of the pipeline that shows in the specs alone.
pub(crate) fn check(pipeline: &Pipeline, unread: &Unread) -> Vec<Problem> {
    let mut findings = Findings::default();
    if pipeline.name.trim().is_empty() && !unread.name {
        findings.add(Path::root(), Error::MissingField { field: "name".to_owned() });
    }
    for (index, spec) in pipeline.feeds.iter().enumerate() {
        feed::check(&mut findings, &Path::root().field("feeds").index(index), spec);
    }
    for (index, spec) in pipeline.silver.iter().enumerate() {
        silver::check(&mut findings, &Path::root().field("silver").index(index), spec, pipeline);
    }
    for (index, spec) in pipeline.gold.iter().enumerate() {
        gold::check(&mut findings, &Path::root().field("gold").index(index), spec);
    }
    tables::check(&mut findings, pipeline, unread);
    findings.0
}
