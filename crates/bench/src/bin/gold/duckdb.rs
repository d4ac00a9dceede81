//! DuckDB over the same files.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use tributary_bench::process::{self, Measured, services};

use crate::lakes::{Lakes, Outcome};
use crate::views::View;

/// The environment's folder; it is an error when it is not installed.
pub fn environment() -> Result<PathBuf> {
    let folder = services()?.join("duckdb_newest");
    if !folder.join("bin/python").is_file() {
        bail!("no DuckDB at {}: `tests/services/install.sh duckdb_newest` installs it", folder.display());
    }
    Ok(folder)
}

/// What makes the view's rows from the files of its inputs.
pub fn command(lakes: &Lakes, view: View) -> Result<Command> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut setup = format!("SET threads = {cores}; SET TimeZone = 'UTC'; CREATE SCHEMA silver;");
    for (table, files) in lakes.inputs()? {
        let files: Vec<_> = files.iter().map(|file| format!("'{}'", file.display())).collect();
        setup.push_str(&format!(" CREATE VIEW silver.{table} AS SELECT * FROM read_parquet([{}]);", files.join(", ")));
    }
    let mut command = Command::new(environment()?.join("bin/python"));
    command.arg("-c").arg(include_str!("duckdb.py"));
    command.arg(lakes.runs().join("duckdb.parquet")).arg(setup).arg(view.query);
    Ok(command)
}

/// From start to exit.
pub fn measure(lakes: &Lakes, view: View) -> Result<(Measured, Outcome)> {
    std::fs::create_dir_all(lakes.runs())?;
    let (took, printed) = process::measure(&mut command(lakes, view)?)?;
    Ok((took, serde_json::from_str(&printed).with_context(|| format!("duckdb said `{printed}`"))?))
}
