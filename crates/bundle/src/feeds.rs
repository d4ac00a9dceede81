//! Feeds: sources that become bronze tables, in the form that pipeline files have them.

use serde_json::json;
use tributary_fault::Fault as _;
use tributary_specs::{Pipeline, SourceFeed, Step};

use crate::fault::Faults;
use crate::place::At;
use crate::yaml::{Node, Value};

/// The feeds under a node, and where each stands; what is wrong with one is a fault at its place.
pub(crate) fn read(feeds: &Node, faults: &mut Faults) -> Vec<(SourceFeed, At)> {
    if feeds.items().is_empty() {
        return Vec::new();
    }
    // JSON is YAML too: the reader of pipelines checks form and rules, and says of each mistake which part it is in.
    let text = json!({"name": "bundle", "feeds": feeds.to_json()}).to_string();
    match Pipeline::from_yaml("feeds", &text) {
        Ok(pipeline) => pipeline.feeds.into_iter().zip(feeds.items()).map(|(feed, node)| (feed, node.at)).collect(),
        Err(errors) => {
            for problem in errors.problems() {
                let at = place(feeds, problem.path.steps());
                faults.foreign(at, problem.error.code().0, format!("{}: {}", problem.path, problem.error), problem.error.next_command());
            }
            Vec::new()
        }
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
