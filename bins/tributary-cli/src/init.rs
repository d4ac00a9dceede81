//! `tributary init`: a bundle to begin with, of a template or of a source's first records.
//!
//! Templates are this repository's own files, taken in when the program is built.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use tributary::{Decode, Pipeline, SourceFeed};
use tributary_config::Loaded;

use crate::failure::{Error, Failure, Outcome};
use crate::{infer, opened, start};

/// Files of each template, by their paths from the bundle's folder on.
const TEMPLATES: &[(&str, &[(&str, &str)])] = include!(concat!(env!("OUT_DIR"), "/templates.rs"));
/// The root file of this repository's bundle, whatever the template.
const ROOT: &str = include_str!("../../../databricks.yml");

/// Words for `--template`.
pub const NAMES: [&str; 4] = ["retail", "gym", "lakeflow", "empty"];

/// A file to write: its path from the bundle's folder on, and its text.
type Written = (String, String);

/// Writes the bundle and says what to type next. Nothing is written where a file is in the way.
pub fn init(loaded: &Loaded, matches: &ArgMatches) -> Outcome {
    let folder = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_default();
    let name = name_of(&folder)?;
    let (pipeline, mut files) = match (matches.get_one::<PathBuf>("from_file"), matches.get_one::<String>("from_topic")) {
        (Some(file), _) => {
            let whole = fs::canonicalize(file).unwrap_or_else(|_| file.clone());
            let proposal = infer::of_file(&whole, matches)?;
            let base = opened::folder(&loaded.settings.data_root()).map(|base| folder.join(base));
            (name.clone(), of_proposal(&name, &from_base(&proposal, &whole, base.as_deref()))?)
        }
        (None, Some(topic)) => (name.clone(), of_proposal(&name, &infer::of_topic(topic, &loaded.settings, matches)?)?),
        (None, None) => match matches.get_one::<String>("template").map_or("empty", String::as_str) {
            "empty" => (name.clone(), empty(&name)),
            template => (template.to_owned(), of_template(template)),
        },
    };
    files.insert(0, ("databricks.yml".to_owned(), root(&name)));
    write_all(&folder, &files)?;
    let mut said: String = files.iter().map(|(path, _)| format!("wrote {}\n", folder.join(path).display())).collect();
    said.push_str(&format!("pipeline: {pipeline}\n"));
    if matches.get_one::<String>("template").is_some_and(|template| template == "gym") {
        said.push_str(&format!("data: tributary sample gym {}\n", folder.join("data/raw").display()));
    }
    said.push_str(&format!("next: tributary validate {}\n", folder.display()));
    start::print(&said)
}

/// A name for the bundle and its pipeline, after the folder.
fn name_of(folder: &Path) -> Result<String, Failure> {
    let io = |source| Error::Io { action: format!("looking at {}", folder.display()), source };
    let whole = std::path::absolute(folder).map_err(io)?;
    let last = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' };
    let name: String = last.chars().map(plain).collect();
    let name = name.trim_matches('_').to_owned();
    Ok(if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name
    } else {
        format!("bundle_{name}").trim_end_matches('_').to_owned()
    })
}

/// The repository's root file under another name.
fn root(name: &str) -> String {
    let after_comment = ROOT.find("\nbundle:").map_or(ROOT, |before| &ROOT[before + 1..]);
    let text = after_comment.replacen("name: tributary", &format!("name: {name}"), 1);
    format!("# An asset bundle: `tributary validate` checks it, `tributary run --pipeline KEY` runs one of its pipelines.\n{text}")
}

/// The files of a template; none where there is no such template.
pub fn of_template(template: &str) -> Vec<Written> {
    let found = TEMPLATES.iter().find(|(name, _)| *name == template);
    found.into_iter().flat_map(|(_, files)| files.iter()).map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn empty(name: &str) -> Vec<Written> {
    let sql = "-- Datasets of the pipeline, in any order and in any number of files, for example:\n\
               --\n\
               -- CREATE OR REFRESH STREAMING TABLE bronze.visits (page STRING, seen_at TIMESTAMP)\n\
               -- AS SELECT * FROM STREAM read_files('visits', format => 'json');\n\
               --\n\
               -- CREATE OR REFRESH MATERIALIZED VIEW gold.pages\n\
               -- AS SELECT page, count(*) AS visits FROM bronze.visits GROUP BY page;\n";
    vec![pipeline_file(name), (format!("dlt_pipelines/{name}/datasets.sql"), sql.to_owned())]
}

fn pipeline_file(name: &str) -> Written {
    let text = format!(
        "resources:\n  pipelines:\n    {name}:\n      name: {name}\n      catalog: ${{var.catalog}}\n      serverless: true\n      \
         libraries:\n        - glob:\n            include: ../../dlt_pipelines/{name}/**\n"
    );
    (format!("bundles/pipelines/{name}.yml"), text)
}

/// The proposal with its file named from the base data path on, where it lies below; else it says that the path is of this machine.
fn from_base(proposal: &str, file: &Path, base: Option<&Path>) -> String {
    let base = base.and_then(|base| fs::canonicalize(base).ok());
    let written = |path: &Path| serde_json::Value::from(path.to_string_lossy()).to_string();
    match base.and_then(|base| Some(file.strip_prefix(base).ok()?.to_owned())) {
        Some(below) => proposal.replace(&written(file), &written(&below)),
        None => format!("# the path is of this machine alone: elsewhere, name it from the base data path (data/raw) on\n{proposal}"),
    }
}

/// The proposed feeds as they are, comments on what is not known among them, and a silver table of each.
fn of_proposal(name: &str, proposal: &str) -> Result<Vec<Written>, Failure> {
    let indented: String = proposal.lines().map(|line| format!("  {line}\n")).collect();
    let feeds = format!("# Types are proposed from the first records; comments say what these cannot tell.\nfeeds:\n{indented}");
    let pipeline = Pipeline::from_yaml(&[("the proposal", &format!("name: {name}\n{feeds}"))])?;
    let mut files = vec![pipeline_file(name), (format!("bundles/feeds/{name}.yml"), feeds)];
    files.extend(pipeline.spec().feeds.iter().map(|feed| (format!("dlt_pipelines/{name}/silver_{}.sql", feed.name), silver(feed))));
    Ok(files)
}

fn silver(feed: &SourceFeed) -> String {
    let (table, from) = (&feed.name, &feed.table);
    let keys: Vec<String> = feed.keys.iter().map(|key| format!("`{}`", key.replace('`', "``"))).collect();
    let changes = matches!(feed.decode, Decode::Debezium | Decode::DebeziumFlattened | Decode::Avro) && feed.has_position();
    if changes && !keys.is_empty() {
        return format!(
            "-- The latest state of each row of {from}. `_position` is the place of a change in the database's own log.\n\
             CREATE OR REFRESH STREAMING TABLE silver.{table};\n\n\
             CREATE FLOW {table} AS AUTO CDC INTO silver.{table}\nFROM STREAM({from})\nKEYS ({})\nSEQUENCE BY _position\nSTORED AS SCD TYPE 1;\n",
            keys.join(", ")
        );
    }
    format!(
        "-- Every row of {from}.\n\
         -- not known: which columns are the key, and which one tells the later of two rows. With them, its latest state is\n\
         --   CREATE OR REFRESH STREAMING TABLE silver.{table};\n\
         --   CREATE FLOW {table} AS AUTO CDC INTO silver.{table} FROM STREAM({from}) KEYS (…) SEQUENCE BY … STORED AS SCD TYPE 1;\n\
         CREATE OR REFRESH STREAMING TABLE silver.{table}\nAS SELECT * FROM STREAM({from});\n"
    )
}

fn write_all(folder: &Path, files: &[Written]) -> Result<(), Failure> {
    let in_the_way: Vec<String> =
        files.iter().map(|(path, _)| path).filter(|path| fs::symlink_metadata(folder.join(path)).is_ok()).cloned().collect();
    if !in_the_way.is_empty() {
        return Err(Error::InTheWay { folder: folder.to_owned(), files: in_the_way }.into());
    }
    for (path, text) in files {
        let file = folder.join(path);
        let io = |source| Error::Io { action: format!("writing {}", file.display()), source };
        fs::create_dir_all(file.parent().unwrap_or(folder)).map_err(io)?;
        // a file that came meanwhile is not written over
        let mut out = fs::OpenOptions::new().write(true).create_new(true).open(&file).map_err(io)?;
        out.write_all(text.as_bytes()).map_err(io)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_file_of_a_bundle_is_this_repositorys_under_another_name() {
        let text = root("shop");
        assert!(text.contains("KEY` runs one of its pipelines.\nbundle:\n  name: shop\n") && !text.contains("name: tributary"), "{text}");
        assert!(ROOT.ends_with(text.rsplit_once("name: shop").map_or("", |(_, rest)| rest)), "{text}");
    }

    #[test]
    fn every_template_but_the_empty_one_has_files() {
        for name in NAMES.iter().filter(|name| **name != "empty") {
            let files = of_template(name);
            assert!(files.iter().any(|(path, _)| path.ends_with(".sql")) && files.iter().any(|(path, _)| path.ends_with(".yml")), "{name}");
        }
    }

    #[test]
    fn names_come_of_folders_whatever_they_are_called() {
        for (folder, name) in [("shop", "shop"), ("a/My Shop-2", "my_shop_2"), ("/tmp/7", "bundle_7"), ("x/ü", "bundle")] {
            assert_eq!(name_of(Path::new(folder)).unwrap(), name);
        }
    }
}
