use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tributary_fault::{ExitCode, Fault};
use tributary_specs::{Errors, Pipeline};
use tributary_testkit::golden;

fn cases_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Names and texts of a case: one file, or the files of a folder.
fn files_of(case: &Path) -> Vec<(String, String)> {
    let mut paths = vec![case.to_owned()];
    if case.is_dir() {
        paths = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
    }
    let named = |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap());
    paths.into_iter().map(named).collect()
}

fn errors_of(case: &Path) -> Errors {
    let files = files_of(case);
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Pipeline::from_files(&files).expect_err(&format!("{} has mistakes", case.display()))
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(cases_folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = entries.filter(|path| path.is_dir() || path.extension().is_some_and(|ending| ending == "yml")).collect();
    cases.sort();
    assert!(cases.len() >= 10, "cases were found");
    cases
}

#[test]
fn golden_error_texts_are_as_a_person_agreed_to() {
    for case in cases() {
        golden::compare(&case.with_extension("txt"), &format!("{}\n", errors_of(&case)));
    }
}

#[test]
fn every_error_names_its_file_line_path_page_and_a_next_command() {
    for case in cases() {
        let files = files_of(&case);
        let errors = errors_of(&case);
        assert_eq!(ExitCode::of(errors.class()).code(), 2);
        for problem in errors.problems() {
            let place = problem.place.as_ref().expect("a problem of a file has a place");
            let (_, text) = files.iter().find(|(name, _)| *name == place.file).expect("the place names a file of the case");
            assert!((1..=text.lines().count().max(1)).contains(&place.line), "{problem}");
            let message = problem.to_string();
            assert!(message.starts_with(&format!("{}:{}:{}: ", place.file, place.line, place.column)), "{message}");
            assert!(message.ends_with(&format!("({})", problem.error.code())), "{message}");
            assert_eq!(problem.error.next_command(), Some(format!("tributary help {}", problem.error.code())));
            let text = problem.error.to_string();
            assert!(!text.ends_with('.'), "{text}");
        }
    }
}

#[test]
fn every_kind_of_mistake_a_file_can_hold_has_a_case() {
    let seen: BTreeSet<&str> = cases()
        .iter()
        .flat_map(|case| errors_of(case).problems().iter().map(|problem| problem.error.code().0).collect::<Vec<_>>())
        .collect();
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/error.rs")).unwrap();
    let declared: BTreeSet<&str> = source.split('"').filter(|word| word.len() == 6 && word.starts_with("SP00")).collect();
    // Neither a query's Arrow type nor its SQL is read here.
    let missing: Vec<_> = declared.difference(&seen).filter(|code| !["SP0003", "SP0041"].contains(code)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn a_pipeline_built_in_rust_is_told_the_path_without_a_file() {
    use tributary_specs::{SilverSpec, TableName};
    let spec = SilverSpec::new(TableName::new("silver", "orders"), [TableName::new("bronze", "orders")]).with_keys(["id", "ID"]);
    let errors = Pipeline::builder("shop").silver(spec).build().unwrap_err();
    assert_eq!(
        errors.to_string(),
        "silver[0].keys[1]: \"ID\" and \"id\" are the same column; case does not count (SP0022)\n\
         silver[0].sources[0]: no feed or dataset makes bronze.orders; did you mean \"silver.orders\"? (SP0032)"
    );
}
