//! Documents say what is so: every promise has a test, every error code a page, every link a target.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn files(folder: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden && !path.ends_with("target") && !path.ends_with("data") {
            files(&path, extension, into);
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push(path);
        }
    }
}

fn read_all(extension: &str) -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    files(&root(), extension, &mut paths);
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("text"))).collect()
}

#[test]
fn every_invariant_is_named_by_a_test() {
    let invariants = fs::read_to_string(root().join("docs/invariants.md")).expect("docs/invariants.md");
    let ids: BTreeSet<&str> = invariants
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .filter(|id| id.len() >= 2 && id.starts_with(char::is_uppercase) && id[1..].chars().all(|letter| letter.is_ascii_digit()))
        .collect();
    assert!(ids.len() > 10, "{ids:?}");
    let tests: String = read_all("rs")
        .into_iter()
        .filter(|(path, text)| path.components().any(|part| part.as_os_str() == "tests") || text.contains("#[cfg(test)]"))
        .filter(|(path, _)| !path.ends_with("documents.rs"))
        .map(|(_, text)| text)
        .collect();
    let words: BTreeSet<&str> = tests.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let unnamed: Vec<&&str> = ids.iter().filter(|id| !words.contains(**id)).collect();
    assert!(unnamed.is_empty(), "no test names {unnamed:?}");
}

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() {
    let mut codes = BTreeSet::new();
    for (path, text) in read_all("rs") {
        if !path.components().any(|part| part.as_os_str() == "src") {
            continue;
        }
        let words = text.split('"');
        for word in words {
            let shaped = word.len() == 6 && word.is_ascii() && word[..2].chars().all(|letter| letter.is_ascii_uppercase());
            if shaped && word[2..].chars().all(|letter| letter.is_ascii_digit()) {
                codes.insert(word.to_owned());
            }
        }
    }
    codes.remove("SP0000");
    assert!(codes.len() > 30, "{codes:?}");
    let mut pages = Vec::new();
    files(&root().join("docs/runbooks"), "md", &mut pages);
    let pages: BTreeSet<String> = pages.iter().map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    let missing: Vec<&String> = codes.difference(&pages).collect();
    let orphaned: Vec<&String> = pages.difference(&codes).filter(|page| *page != "README").collect();
    assert!(missing.is_empty(), "codes without a page in docs/runbooks: {missing:?}");
    assert!(orphaned.is_empty(), "pages of codes that do not exist: {orphaned:?}");
    let index = fs::read_to_string(root().join("docs/runbooks/README.md")).expect("the list of codes");
    let unlisted: Vec<&String> = codes.iter().filter(|code| !index.contains(&format!("| [{code}]({code}.md) |"))).collect();
    assert!(unlisted.is_empty(), "codes that docs/runbooks/README.md does not list: {unlisted:?}");
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut broken = Vec::new();
    let mut followed = 0;
    for (path, text) in read_all("md") {
        for rest in text.split("](").skip(1) {
            let Some(target) = rest.split(')').next() else { continue };
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            followed += 1;
            if !path.parent().expect("a folder").join(target).exists() {
                broken.push(format!("{} → {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(followed > 5, "only {followed} links were followed");
}

#[test]
fn every_dependency_has_a_reason_and_every_reason_a_dependency() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let (_, rest) = manifest.split_once("[workspace.dependencies]").expect("shared dependencies");
    let dependencies: BTreeSet<&str> = rest
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.contains("path = "))
        .filter_map(|line| Some(line.split_once(" = ")?.0).filter(|name| !name.starts_with('#')))
        .collect();
    assert!(dependencies.len() > 30, "{dependencies:?}");
    let page = fs::read_to_string(root().join("docs/dependencies.md")).expect("docs/dependencies.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let explained: BTreeSet<&str> = rows.filter(|names| *names != "dependency").flat_map(|names| names.split(", ")).collect();
    assert_eq!(explained, dependencies);
}
