//! Pipeline SQL from the outside.

mod designs;
mod dialect;
mod functions;
mod handed;
mod hostile;
mod laws;
mod mistakes;
mod portability;

use std::collections::BTreeMap;
use std::path::Path;

use tributary_pipeline_sql::{Options, Parsed, SqlFile, parse};

/// Reads one file named `a.sql`, names without schema in `main`.
fn read(text: &str) -> Parsed {
    read_with(text, &[])
}

fn read_with(text: &str, parameters: &[(&str, &str)]) -> Parsed {
    let parameters: BTreeMap<String, String> = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = Options { catalog: None, schema: Some("main".to_owned()) };
    parse(&[SqlFile { path: "a.sql".to_owned(), text: text.to_owned() }], &parameters, &options)
}

/// Mistakes as `line:column code message`.
fn faults(parsed: &Parsed) -> Vec<String> {
    parsed.faults.iter().map(|fault| format!("{}:{} {} {}", fault.line, fault.column, fault.code, fault.message)).collect()
}

/// All SQL files of a folder of the repository.
fn folder(path: &str) -> Vec<SqlFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../").join(path);
    let mut files: Vec<_> = std::fs::read_dir(&root).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let file = |path: &std::path::PathBuf| SqlFile {
        path: path.file_name().expect("a name").to_string_lossy().into_owned(),
        text: std::fs::read_to_string(path).expect("text"),
    };
    files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "sql")).map(file).collect()
}
