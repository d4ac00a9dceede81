//! Other engines, each a Python program in an environment of its own that tests/services/install.sh makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    DeltaRs,
    DuckDb,
    Spark,
}

/// One table to be read.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub name: String,
    pub path: PathBuf,
    pub version: u64,
    pub columns: Vec<String>,
    pub feed: Option<Feed>,
}

/// Its changes, of these versions, both inclusive.
#[derive(Debug, Serialize)]
pub struct Feed {
    pub from: u64,
    pub to: u64,
    pub columns: Vec<String>,
}

/// What an engine made of a table.
#[derive(Debug)]
pub enum Read {
    /// Lines, sorted.
    Lines(Vec<String>),
    /// It could not, and said why.
    Refused(String),
}

impl Engine {
    pub const ALL: [Self; 3] = [Self::DeltaRs, Self::DuckDb, Self::Spark];

    pub fn name(self) -> &'static str {
        match self {
            Self::DeltaRs => "delta-rs",
            Self::DuckDb => "duckdb",
            Self::Spark => "spark",
        }
    }

    pub fn has_change_feed(self) -> bool {
        self != Self::DuckDb
    }

    fn environment(self) -> &'static str {
        match self {
            Self::DeltaRs => "delta_rs",
            Self::DuckDb => "duckdb",
            Self::Spark => "pyspark",
        }
    }

    fn reader(self) -> &'static str {
        match self {
            Self::DeltaRs => "delta_rs_reader.py",
            Self::DuckDb => "duckdb_reader.py",
            Self::Spark => "spark_reader.py",
        }
    }

    /// Runs one of the programs in `readers/`.
    pub fn run(self, program: &str, arguments: &[&Path]) -> Result<()> {
        run(self.environment(), program, arguments)
    }

    /// Reads every table of the plan; the feeds are under the name and ` feed`.
    pub fn read(self, plan: &[&Entry], scratch: &Path) -> Result<BTreeMap<String, Read>> {
        let folder = scratch.join(self.name());
        std::fs::create_dir(&folder)?;
        let file = folder.join("plan.json");
        std::fs::write(&file, serde_json::to_string(plan)?)?;
        self.run(self.reader(), &[&file, &folder])?;
        let mut read = BTreeMap::new();
        for entry in plan {
            read.insert(entry.name.clone(), outcome(&folder, &entry.name, "rows")?);
            if entry.feed.is_some() && self.has_change_feed() {
                read.insert(format!("{} feed", entry.name), outcome(&folder, &entry.name, "feed")?);
            }
        }
        Ok(read)
    }
}

/// Runs one of the programs in `readers/` in an environment.
pub fn run(environment: &str, program: &str, arguments: &[&Path]) -> Result<()> {
    let services = services()?;
    let python = services.join(environment).join("bin/python");
    if !python.is_file() {
        bail!("no {}: `tests/services/install.sh interop` installs it", python.display());
    }
    let readers = Path::new(env!("CARGO_MANIFEST_DIR")).join("readers");
    let mut command = Command::new(python);
    command.arg(readers.join(program)).args(arguments);
    let jars = services.join("jars");
    command.env("SPARK_JARS", jars.join("spark")).env("ROW_TABLES", jars.join("row_tables"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("TZ", "America/St_Johns");
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} ended with {}\n{said}", output.status);
    }
    Ok(())
}

/// What a program wrote about `name`.
pub fn outcome(folder: &Path, name: &str, what: &str) -> Result<Read> {
    let refused = folder.join(format!("{name}.{what}-refused"));
    if refused.is_file() {
        return Ok(Read::Refused(std::fs::read_to_string(refused)?));
    }
    let file = folder.join(format!("{name}.{what}"));
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let mut lines: Vec<String> = text.split_terminator('\n').map(str::to_owned).collect();
    lines.sort();
    Ok(Read::Lines(lines))
}

fn services() -> Result<PathBuf> {
    match std::env::var_os("SERVICES_DIR") {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Ok(PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache/tributary-services")),
    }
}
