//! The root file and the files it includes, as one tree.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::fault::Faults;
use crate::folder::{Folder, has_wildcard};
use crate::merge::merge;
use crate::place::{At, Files};
use crate::yaml::{Budget, Node, parse};

/// Names that a root file can have.
pub(crate) const ROOT_NAMES: &[&str] = &["databricks.yml", "databricks.yaml", "bundle.yml", "bundle.yaml"];
/// How many files a bundle includes at most.
const INCLUDED_MAX: usize = 2_000;

/// What is read so far.
pub(crate) struct Reading<'a> {
    pub folder: &'a mut Folder,
    pub files: &'a mut Files,
    pub budget: &'a mut Budget,
    pub faults: &'a mut Faults,
}

impl Reading<'_> {
    /// The root file with everything it includes; none where the root file cannot be read.
    pub fn tree(&mut self, root_name: &str) -> Option<Node> {
        let mut root = self.file(root_name)?;
        let mut resources = Resources::default();
        resources.take(&root, self);
        for relative in self.included(&root, root_name) {
            let Some(mut node) = self.file(&relative) else { continue };
            if let Some(entry) = node.as_map_mut().and_then(|map| map.remove("include")) {
                let problem = "only the root file includes others; this is ignored".to_owned();
                self.faults.warning(entry.key_at, Error::Include { pattern: "include".to_owned(), problem });
            }
            if node.as_map().is_none() {
                self.faults.error(node.at, not_a_mapping(&node));
                continue;
            }
            resources.take(&node, self);
            merge(&mut root, node, "", self.files, self.faults);
        }
        Some(root)
    }

    /// One file as a tree.
    pub fn file(&mut self, relative: &str) -> Option<Node> {
        let number = match self.folder.read(relative, self.files) {
            Ok(number) => number,
            Err((at, error)) => {
                self.faults.error(at, error);
                return None;
            }
        };
        let text = self.files.get(number).map_or("", |file| file.text.as_str());
        let parsed = parse(number, text, self.budget);
        parsed.mistakes.into_iter().for_each(|(at, error)| self.faults.error(at, error));
        parsed.root
    }

    /// Files that the root file includes, each once.
    fn included(&mut self, root: &Node, root_name: &str) -> Vec<String> {
        let mut included: Vec<String> = Vec::new();
        let mut seen = BTreeSet::from([root_name.to_owned()]);
        for item in root.items_of("include") {
            let Some(pattern) = item.scalar() else { continue };
            let refuse = |problem: &str| Error::Include { pattern: pattern.to_owned(), problem: problem.to_owned() };
            if pattern.starts_with('/') || pattern.get(1..3) == Some(":\\") {
                self.faults.error(item.at, refuse("it is absolute; paths count from the root file's folder"));
                continue;
            }
            let pattern_inside = match self.folder.resolve("", pattern) {
                Ok(inside) => inside,
                Err(error) => {
                    self.faults.error(item.at, error);
                    continue;
                }
            };
            let found = if has_wildcard(pattern) {
                let matches = self.folder.matching(&pattern_inside);
                if matches.mistakes.is_empty() && matches.paths.is_empty() {
                    self.faults.warning(item.at, refuse("no file is like this"));
                }
                matches.mistakes.into_iter().for_each(|error| self.faults.error(item.at, error));
                matches.paths
            } else if self.folder.is_file(&pattern_inside) {
                vec![pattern_inside]
            } else {
                self.faults.error(item.at, refuse("no such file"));
                continue;
            };
            for path in found {
                if ![".yml", ".yaml", ".json"].iter().any(|ending| path.ends_with(ending)) {
                    self.faults.error(item.at, refuse(&format!("{path} is neither .yml nor .yaml nor .json")));
                } else if included.len() >= INCLUDED_MAX {
                    let limit = format!("it includes more than {INCLUDED_MAX} files");
                    self.faults.error(item.at, Error::TooLarge { what: "the bundle".to_owned(), limit });
                    return included;
                } else if seen.insert(path.clone()) {
                    included.push(path);
                }
            }
        }
        included
    }
}

pub(crate) fn not_a_mapping(node: &Node) -> Error {
    Error::WrongKind { path: "the root".to_owned(), expected: "a mapping".to_owned(), found: node.kind() }
}

/// Keys of resources so far: each names one resource, whatever its kind.
#[derive(Default)]
struct Resources(BTreeMap<String, (String, At)>);

impl Resources {
    fn take(&mut self, file: &Node, reading: &mut Reading<'_>) {
        for (kind, resources) in file.get("resources").into_iter().flat_map(Node::entries) {
            for (key, entry) in resources.node.entries() {
                match self.0.get(key) {
                    Some((other_kind, other_at)) => {
                        let error = Error::ResourceTwice {
                            key: key.to_owned(),
                            kind: kind.to_owned(),
                            other_kind: other_kind.clone(),
                            other_place: reading.files.line(*other_at),
                        };
                        reading.faults.error(entry.key_at, error);
                    }
                    None => drop(self.0.insert(key.to_owned(), (kind.to_owned(), entry.key_at))),
                }
            }
        }
    }
}
