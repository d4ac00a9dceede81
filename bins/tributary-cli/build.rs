//! Takes the runbook pages into the program, so that `tributary help CODE` needs no checkout.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbooks");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages = String::new();
    for page in pages_of(&folder)? {
        println!("cargo::rerun-if-changed={}", page.display());
        if let Some(code) = page.file_stem().and_then(|stem| stem.to_str()) {
            pages.push_str(&format!("    ({code:?}, include_str!({:?})),\n", page.display().to_string()));
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?);
    fs::write(out.join("pages.rs"), format!("&[\n{pages}]\n"))
}

/// The pages in the order of their codes; none where the folder is missing.
fn pages_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut pages = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_page = path.extension().is_some_and(|extension| extension == "md") && path.file_stem().is_some_and(|stem| stem != "README");
        if is_page {
            pages.push(path.canonicalize()?);
        }
    }
    pages.sort();
    Ok(pages)
}
