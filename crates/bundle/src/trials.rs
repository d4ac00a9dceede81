//! Tests of datasets: rows that sources have, and rows that a dataset then has.
//!
//! ```yaml
//! dataset: silver.orders
//! tests:
//!   - name: the latest change of an order wins
//!     given:
//!       bronze.orders:
//!         - {order_id: 1, status: new}
//!         - {order_id: 1, status: paid}
//!     expect:
//!       - {order_id: 1, status: paid}
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map as JsonMap, Value as Json};

use crate::check;
use crate::error::Error;
use crate::fault::{Fault, Faults};
use crate::folder::{Folder, Matches};
use crate::include::Reading;
use crate::job::{texts, words};
use crate::load::nowhere;
use crate::model::trials::FILE;
use crate::place::Files;
use crate::yaml::{Budget, Node, Value};

/// The tests of one dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct TestFile {
    /// The file, as messages name it.
    pub file: String,
    /// The dataset, schema and table.
    pub dataset: String,
    /// Columns that tell its rows apart; empty = the dataset's own keys.
    pub keys: Vec<String>,
    /// Of columns that nothing declares, by table and column, what they hold.
    pub columns: BTreeMap<String, BTreeMap<String, String>>,
    /// The tests, in the order of the file.
    pub tests: Vec<Test>,
}

/// One test.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// What is promised.
    pub name: String,
    /// The line it begins in.
    pub line: usize,
    /// Runs of the dataset, one after the other; at least one.
    pub runs: Vec<TestRun>,
}

/// One run of the dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRun {
    /// The line it begins in.
    pub line: usize,
    /// Rows that come before it, by table.
    pub given: Vec<(String, TestRows)>,
    /// Rows that tables hold after it; the dataset's own under its name.
    pub expect: Vec<(String, TestRows)>,
    /// The code of the error that it ends with instead.
    pub fails: Option<String>,
}

/// Rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TestRows {
    /// As they stand in the test.
    Here(Vec<JsonMap<String, Json>>),
    /// In a file of CSV with a header, or of JSON objects, one a line.
    File(PathBuf),
}

/// Folders of tests, beside the SQL they are about.
const FOLDER: &str = "tests";

/// Every file of tests at a path: itself, or all that lie in folders called `tests` below it; and what kept it from looking everywhere.
pub fn find_tests(path: &Path) -> (Vec<PathBuf>, Vec<Fault>) {
    if path.is_file() {
        return (vec![path.to_owned()], Vec::new());
    }
    let (mut files, mut faults) = (Files::default(), Faults::default());
    let found = Folder::open(path).map(|folder| folder.below(""));
    let matches = found.unwrap_or_else(|error| Matches { paths: Vec::new(), mistakes: vec![error] });
    matches.mistakes.into_iter().for_each(|error| nowhere(path, error, &mut files, &mut faults));
    let is_test = |relative: &String| {
        let in_tests = relative.split('/').rev().nth(1).map_or(path.ends_with(FOLDER), |parent| parent == FOLDER);
        in_tests && (relative.ends_with(".yml") || relative.ends_with(".yaml"))
    };
    (matches.paths.into_iter().filter(is_test).map(|relative| path.join(relative)).collect(), faults.sorted(&files))
}

/// Reads a file of tests, and every mistake in it. Never panics; a file with mistakes gives none of its tests.
pub fn load_tests(path: &Path) -> (Option<TestFile>, Vec<Fault>) {
    let (mut files, mut faults) = (Files::default(), Faults::default());
    let read = read(path, &mut files, &mut faults);
    let faults = faults.sorted(&files);
    (read.filter(|_| faults.is_empty()), faults)
}

fn read(path: &Path, files: &mut Files, faults: &mut Faults) -> Option<TestFile> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str());
    let nameless = || Error::Unreadable { path: path.display().to_string(), reason: "its name is no text".to_owned() };
    let opened = Folder::open(parent).and_then(|folder| Ok((folder, name.ok_or_else(nameless)?)));
    let (mut folder, name) = opened.map_err(|error| nowhere(path, error, files, faults)).ok()?;
    let root = Reading { folder: &mut folder, files, budget: &mut Budget::default(), faults }.file(name)?;
    check::check_as(&root, &FILE, faults);
    Some(test_file(&root, &folder, files, faults))
}

fn test_file(root: &Node, folder: &Folder, files: &Files, faults: &mut Faults) -> TestFile {
    let dataset = root.text_of("dataset").unwrap_or_default().to_owned();
    let columns =
        root.get("columns").into_iter().flat_map(|tables| tables.entries().map(|(table, _)| (table.to_owned(), texts(tables, table))));
    let mut reader = Reader { dataset: &dataset, folder, faults };
    let tests: Vec<Test> = root.items_of("tests").iter().map(|test| reader.test(test)).collect();
    if tests.is_empty() {
        let at = root.entry("tests").map_or(root.at, |entry| entry.key_at);
        faults.error(at, Error::Missing { parent: "`tests`".to_owned(), key: "name" });
    }
    TestFile { file: files.shown(root.at.file).to_owned(), keys: words(root, "keys"), columns: columns.collect(), tests, dataset }
}

struct Reader<'a> {
    dataset: &'a str,
    folder: &'a Folder,
    faults: &'a mut Faults,
}

impl Reader<'_> {
    fn test(&mut self, test: &Node) -> Test {
        let mut runs = vec![self.run(test)];
        runs.extend(test.items_of("then").iter().map(|run| self.run(run)));
        Test { name: test.text_of("name").unwrap_or_default().to_owned(), line: test.at.line as usize, runs }
    }

    fn run(&mut self, run: &Node) -> TestRun {
        let tables = |given: &Node| given.entries().map(|(table, entry)| (table.to_owned(), entry.node.clone())).collect::<Vec<_>>();
        let given = run.get("given").map(tables).unwrap_or_default();
        let expect = match run.get("expect") {
            Some(expect) if expect.as_map().is_some() => tables(expect),
            Some(rows) => vec![(self.dataset.to_owned(), rows.clone())],
            None => Vec::new(),
        };
        let fails = run.text_of("fails").map(str::to_owned);
        if expect.is_empty() && fails.is_none() {
            self.faults.error(run.at, Error::Missing { parent: "a test".to_owned(), key: "expect" });
        }
        let mut rows = |tables: Vec<(String, Node)>| -> Vec<(String, TestRows)> {
            tables.into_iter().filter_map(|(table, node)| Some((table, self.rows(&node)?))).collect()
        };
        TestRun { line: run.at.line as usize, given: rows(given), expect: rows(expect), fails }
    }

    /// A list of rows, or the name of a file of them.
    fn rows(&mut self, node: &Node) -> Option<TestRows> {
        let wrong =
            |node: &Node, expected: &str| Error::WrongKind { path: "rows".to_owned(), expected: expected.to_owned(), found: node.kind() };
        match &node.value {
            Value::List(items) => {
                for item in items.iter().filter(|item| item.as_map().is_none()) {
                    self.faults.error(item.at, wrong(item, "a mapping of columns"));
                }
                let rows = items.iter().filter_map(|item| match item.to_json() {
                    Json::Object(row) => Some(row),
                    _ => None,
                });
                Some(TestRows::Here(rows.collect()))
            }
            Value::Text(name) => {
                let found = self.folder.resolve("", name).and_then(|relative| match self.folder.is_file(&relative) {
                    true => Ok(self.folder.real().join(relative)),
                    false => Err(self.folder.missing(&relative)),
                });
                match found {
                    Ok(path) => Some(TestRows::File(path)),
                    Err(error) => {
                        self.faults.error(node.at, error);
                        None
                    }
                }
            }
            _ => {
                self.faults.error(node.at, wrong(node, "a list of rows, or the name of a file of them"));
                None
            }
        }
    }
}
