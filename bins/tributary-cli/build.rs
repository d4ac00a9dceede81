//! Takes the runbook pages into the program, so that `tributary help CODE` needs no checkout, and this repository's pipelines, so that
//! `tributary init` writes what is run here.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Pipelines that are templates.
const TEMPLATES: [&str; 3] = ["retail", "gym", "lakeflow"];

fn main() -> io::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?);
    let pages =
        files(&repository.join("docs/runbooks"), &["md"])?.into_iter().filter(|page| page.file_stem().is_some_and(|stem| stem != "README"));
    let entries = pages.filter_map(|page| Some(entry(page.file_stem()?.to_str()?, &page)));
    fs::write(out.join("pages.rs"), format!("&[\n{}]\n", entries.collect::<String>()))?;
    let mut templates = String::new();
    for name in TEMPLATES {
        let mut found = Vec::new();
        for kind in ["pipelines", "jobs", "feeds"] {
            let file = repository.join(format!("bundles/{kind}/{name}.yml"));
            println!("cargo::rerun-if-changed={}", file.display());
            found.extend(file.is_file().then_some(file));
        }
        let sql = repository.join("dlt_pipelines").join(name);
        found.extend(files(&sql, &["sql"])?);
        found.extend(Some(sql.join(".env.example")).filter(|settings| settings.is_file()));
        found.extend(files(&sql.join("tests"), &["csv", "jsonl", "yml"])?);
        for feed in folders(&sql.join("data"))? {
            found.extend(files(&feed, &["jsonl"])?);
        }
        let entries = found.iter().filter_map(|file| Some(entry(file.strip_prefix(&repository).ok()?.to_str()?, file)));
        templates.push_str(&format!("(\"{name}\", &[\n{}]),\n", entries.collect::<String>()));
    }
    fs::write(out.join("templates.rs"), format!("&[\n{templates}]\n"))
}

fn entry(name: &str, file: &Path) -> String {
    format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string())
}

/// Files of a folder with these endings, in the order of their names; none where the folder is missing.
fn files(folder: &Path, endings: &[&str]) -> io::Result<Vec<PathBuf>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| endings.contains(&ending)) {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Folders of a folder, in the order of their names; none where it is missing.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut folders: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}
