//! Feeds: sources that become bronze tables, in the form that pipeline files have them.
//!
//! A path of files that begins with `./` or `../` goes from the file that holds it, as every path of a bundle does; others begin at
//! the root of file drops.

use serde_json::json;
use tributary_fault::Fault as _;
use tributary_specs::{Pipeline, Source, SourceFeed, Step};

use crate::fault::Faults;
use crate::place::At;
use crate::source::Sources;
use crate::yaml::{Node, Value};

/// The feeds under a node, and where each stands; what is wrong with one is a fault at its place.
pub(crate) fn read(feeds: &Node, sources: &Sources<'_>, faults: &mut Faults) -> Vec<(SourceFeed, At)> {
    if feeds.items().is_empty() {
        return Vec::new();
    }
    // JSON is YAML too: the reader of pipelines checks form and rules, and says of each mistake which part it is in.
    let text = json!({"name": "bundle", "feeds": feeds.to_json()}).to_string();
    match Pipeline::from_yaml("feeds", &text) {
        Ok(pipeline) => {
            let mut read: Vec<(SourceFeed, At)> =
                pipeline.feeds.into_iter().zip(feeds.items()).map(|(feed, node)| (feed, node.at)).collect();
            for ((feed, _), node) in read.iter_mut().zip(feeds.items()) {
                from_its_file(feed, node, sources, faults);
            }
            read
        }
        Err(errors) => {
            for problem in errors.problems() {
                let at = place(feeds, problem.path.steps());
                faults.foreign(at, problem.error.code().0, format!("{}: {}", problem.path, problem.error), problem.error.next_command());
            }
            Vec::new()
        }
    }
}

/// Makes the path of a feed's files whole where it goes from the file that holds it.
fn from_its_file(feed: &mut SourceFeed, node: &Node, sources: &Sources<'_>, faults: &mut Faults) {
    let Source::Files(files) = &mut feed.source else { return };
    if !files.path.starts_with("./") && !files.path.starts_with("../") {
        return;
    }
    let Some(path) = node.find(&["source", "files", "path"]) else { return };
    if let Some(relative) = sources.resolve(path, faults) {
        files.path = sources.whole(&relative);
    }
}

/// Where the deepest part of a path begins that the feeds have: a field with a list or mapping at its key, anything else at itself.
fn place(feeds: &Node, steps: &[Step]) -> At {
    let (mut node, mut at) = (feeds, feeds.at);
    for step in steps.iter().skip_while(|step| **step == Step::Field("feeds".to_owned())) {
        match step {
            Step::Index(index) => match node.items().get(*index) {
                Some(item) => (node, at) = (item, item.at),
                None => break,
            },
            Step::Field(name) => match node.entry(name) {
                Some(entry) => {
                    let is_part = matches!(entry.node.value, Value::List(_) | Value::Map(_));
                    (node, at) = (&entry.node, if is_part { entry.key_at } else { entry.node.at });
                }
                None => break,
            },
        }
    }
    at
}
