//! Files that a bundle names: whether they are there, and notebooks or not.

use crate::error::Error;
use crate::fault::Faults;
use crate::folder::Folder;
use crate::place::{At, Files};
use crate::yaml::Node;

/// What a path should lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A file that is no notebook.
    File,
    /// A notebook: `.ipynb`, or a source file that begins with the notebook's line.
    Notebook,
    Folder,
}

/// Looks for files and takes down those it reads.
pub(crate) struct Sources<'a> {
    folder: &'a mut Folder,
    files: &'a mut Files,
}

/// Endings of files with source code.
const SOURCE_ENDINGS: &[&str] = &["sql", "py", "r", "scala", "ipynb"];

impl<'a> Sources<'a> {
    pub fn new(folder: &'a mut Folder, files: &'a mut Files) -> Self {
        Self { folder, files }
    }

    pub fn files(&self) -> &Files {
        self.files
    }

    /// The path that stands in a node, from the bundle's folder on; none where it is no path of the bundle.
    pub fn path_of(&self, node: &Node) -> Option<String> {
        let path = node.scalar().filter(|path| is_local(path))?;
        self.folder.resolve(self.files.folder(node.at.file), path).ok()
    }

    /// As [`Sources::path_of`], a path out of the bundle being a fault.
    pub fn resolve(&self, node: &Node, faults: &mut Faults) -> Option<String> {
        let path = node.scalar().filter(|path| is_local(path))?;
        match self.folder.resolve(self.files.folder(node.at.file), path) {
            Ok(relative) => Some(relative),
            Err(error) => {
                faults.error(node.at, error);
                None
            }
        }
    }

    /// Checks one path; gives it back where it leads to what it should.
    pub fn check(&mut self, node: &Node, expected: Expected, faults: &mut Faults) -> Option<String> {
        let relative = self.resolve(node, faults)?;
        let is_there = if expected == Expected::Folder { self.folder.is_folder(&relative) } else { self.folder.is_file(&relative) };
        if !is_there {
            faults.error(node.at, self.folder.missing(&relative));
            return None;
        }
        if expected == Expected::Folder {
            return Some(relative);
        }
        let is_notebook = match self.text_at(&relative, faults) {
            Some(text) => is_notebook(&relative, text),
            None => return None,
        };
        let mistake = match (expected, is_notebook) {
            (Expected::File, true) => Some(("a notebook", "a file")),
            (Expected::Notebook, false) => Some(("a file", "a notebook")),
            _ => None,
        };
        match mistake {
            Some((found, expected)) => {
                faults.error(node.at, Error::NotebookOrFile { path: relative, found, expected });
                None
            }
            None => Some(relative),
        }
    }

    /// Source files below a folder, at any depth, in alphabetical order; others are passed over.
    pub fn below(&self, relative: &str, at: At, faults: &mut Faults) -> Vec<String> {
        let matches = self.folder.below(relative);
        matches.mistakes.into_iter().for_each(|error| faults.error(at, error));
        matches.paths.into_iter().filter(|path| is_source(path)).collect()
    }

    /// A path from the bundle's folder on as one of this machine.
    pub fn whole(&self, relative: &str) -> String {
        self.folder.real().join(relative).to_string_lossy().into_owned()
    }

    pub fn is_folder(&self, relative: &str) -> bool {
        self.folder.is_folder(relative)
    }

    pub fn is_file(&self, relative: &str) -> bool {
        self.folder.is_file(relative)
    }

    pub fn missing(&self, relative: &str) -> Error {
        self.folder.missing(relative)
    }

    /// A file's text, read once.
    pub fn text_at(&mut self, relative: &str, faults: &mut Faults) -> Option<&str> {
        let number = match self.files.number_of(relative) {
            Some(number) => number,
            None => match self.folder.read(relative, self.files) {
                Ok(number) => number,
                Err((at, error)) => {
                    faults.error(at, error);
                    return None;
                }
            },
        };
        self.files.get(number).map(|file| file.text.as_str())
    }
}

/// Whether a file with this ending holds source code.
pub(crate) fn is_source(path: &str) -> bool {
    ending(path).is_some_and(|ending| SOURCE_ENDINGS.contains(&ending.to_lowercase().as_str()))
}

/// Whether it is SQL.
pub(crate) fn is_sql(path: &str) -> bool {
    ending(path).is_some_and(|ending| ending.eq_ignore_ascii_case("sql"))
}

fn ending(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    name.rsplit_once('.').map(|(_, ending)| ending)
}

/// Whether a path is of the bundle: not filled in later, not in the workspace, not at an address.
fn is_local(path: &str) -> bool {
    let is_open = path.contains("${") || path.contains("{{");
    let is_remote = path.starts_with('/') || path.contains("://") || path.starts_with("dbfs:");
    !path.is_empty() && !is_open && !is_remote
}

/// Whether a file is a notebook by its ending or its first line.
fn is_notebook(path: &str, text: &str) -> bool {
    let mark = match ending(path).unwrap_or_default().to_lowercase().as_str() {
        "ipynb" => return true,
        "sql" => "-- Databricks notebook source",
        "scala" => "// Databricks notebook source",
        _ => "# Databricks notebook source",
    };
    text.lines().next().is_some_and(|line| line.trim_end() == mark)
}
