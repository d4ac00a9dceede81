//! `tributary test`: each test of a dataset in a lake in memory, run by the layer's own engine.

mod compare;
mod rows;
mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tributary::{Column, DataType, ExitCode, Fault as _, GivenRow, Pipeline, Trial, Trials};
use tributary_bundle::{Fault, Loaded as Read, Test, TestFile, TestRun, find, find_tests, load_sql, load_tests, load_with};
use tributary_config::Loaded;

use self::compare::Difference;
use self::said::{End, Said};
use crate::bundle::{self, Given};
use crate::failure::{Error, Failure, Outcome};
use crate::start;

/// Runs the tests at the paths, or all of the bundle around the working folder, and says how each ended.
pub fn test(loaded: &Loaded, given: &Given) -> Outcome {
    let paths = paths(given)?;
    let (files, unseen): (Vec<_>, Vec<_>) = paths.iter().map(|path| find_tests(path)).unzip();
    let (files, mut faults) = (files.concat(), unseen.concat());
    if files.is_empty() && faults.is_empty() {
        return Err(Error::NoTests { paths }.into());
    }
    let mut tests = Vec::new();
    for file in files {
        let (read, mistakes) = load_tests(&file);
        faults.extend(mistakes);
        tests.extend(read.map(|read| (file, read)));
    }
    let begin = Instant::now();
    let said = start::block_on(async {
        let ready = prepare(loaded, given, tests, faults.iter().map(mistake).collect()).await?;
        let mut said = Vec::new();
        for (trials, file) in &ready {
            for test in &file.tests {
                let begin = Instant::now();
                let end = run(trials, file, test).await;
                said.push(Said { file: file.clone(), test: test.clone(), end, millis: begin.elapsed().as_millis() });
            }
        }
        Ok::<_, Failure>(said)
    })?;
    start::print(&said::all(&said, loaded.settings.output, begin.elapsed()))?;
    let code = match () {
        () if said.iter().any(|said| matches!(said.end, End::Unfit(_))) => ExitCode::BadInput,
        () if said.iter().all(|said| matches!(said.end, End::Passed)) => ExitCode::Done,
        () => ExitCode::Failed,
    };
    Ok(code.code())
}

/// What each file of tests is tried with. Everything that is wrong with files, their pipelines and their columns comes in one go, with
/// the `failures` that are known already; then no test is run.
async fn prepare(
    loaded: &Loaded,
    given: &Given,
    tests: Vec<(PathBuf, TestFile)>,
    mut failures: Vec<Failure>,
) -> Result<Vec<(Trials, TestFile)>, Failure> {
    let mut projects = Projects { loaded, given, read: BTreeMap::new(), trials: BTreeMap::new() };
    let mut ready = Vec::new();
    for (path, file) in tests {
        failures.extend(file.columns.keys().filter_map(|table| types(&file, table).err()));
        match projects.trials_of(&path, &file.dataset).await {
            Ok(trials) => ready.push((trials, file)),
            Err(failure) => failures.push(failure),
        }
    }
    // the mistakes of one pipeline stop each of its files
    let mut told = BTreeSet::new();
    failures.retain(|failure| told.insert(failure.message.clone()));
    if failures.is_empty() { Ok(ready) } else { Err(Failure::of_all(failures)) }
}

fn mistake(fault: &Fault) -> Failure {
    Failure {
        exit_code: ExitCode::BadInput,
        code: fault.code.to_owned(),
        message: format!("{}:{}:{}: {}", fault.file, fault.line, fault.column, fault.message),
        next: fault.next.clone(),
    }
}

/// Where tests are looked for.
fn paths(given: &Given) -> Result<Vec<PathBuf>, Failure> {
    match given.paths() {
        [] => Ok(vec![given.around().cloned().unwrap_or_else(|| PathBuf::from("."))]),
        paths => {
            if let Some(missing) = paths.iter().find(|path| !path.exists()) {
                return Err(Error::NoTests { paths: vec![missing.clone()] }.into());
            }
            Ok(paths.to_vec())
        }
    }
}

/// Bundles and folders of SQL that tests are of, each read once.
struct Projects<'a> {
    loaded: &'a Loaded,
    given: &'a Given,
    read: BTreeMap<PathBuf, Read>,
    trials: BTreeMap<(PathBuf, String), Trials>,
}

impl Projects<'_> {
    /// What the dataset of a file of tests is tried with: of the bundle around the file, or of the SQL beside its folder.
    async fn trials_of(&mut self, file: &Path, dataset: &str) -> Result<Trials, Failure> {
        let whole = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let beside = whole.parent().and_then(Path::parent).unwrap_or(&whole).to_owned();
        let (root, is_bundle) = match find(&beside) {
            Some(root) => (root, true),
            None => (beside.clone(), false),
        };
        if !self.read.contains_key(&root) {
            let read = match is_bundle {
                true => load_with(&root, &self.given.options(&self.loaded.settings)),
                false => load_sql(std::slice::from_ref(&root), &self.given.parameters()),
            };
            if !read.is_sound() {
                return Err(bundle::faults(&read));
            }
            self.read.insert(root.clone(), read);
        }
        let none = || Error::NotInPipeline { file: file.to_owned(), dataset: dataset.to_owned() };
        let pipelines = self.read.get(&root).map(|read| &read.bundle.pipelines).ok_or_else(none)?;
        let makes = |pipeline: &&tributary_bundle::Pipeline| {
            let made = pipeline.spec.iter().flat_map(|spec| spec.datasets());
            made.into_iter().any(|made| made.table.to_string().eq_ignore_ascii_case(dataset))
        };
        // of several pipelines with such a dataset it is the one whose SQL lies beside the tests
        let lies_beside =
            |pipeline: &&tributary_bundle::Pipeline| pipeline.files.iter().any(|sql| root.join(sql).parent() == Some(&beside));
        let found = pipelines.values().filter(makes).find(lies_beside).or_else(|| pipelines.values().find(makes)).ok_or_else(none)?;
        let at = (root.clone(), found.key.clone());
        if let Some(trials) = self.trials.get(&at) {
            return Ok(trials.clone());
        }
        let user = found.run_as.as_deref().or(self.given.user()).unwrap_or("user");
        let pipeline = Pipeline::from_spec(found.spec.clone().unwrap_or_default())?.with_origins(Arc::clone(&found.origins));
        let trials = pipeline.run_as(user).trials().await?;
        self.trials.insert(at, trials.clone());
        Ok(trials)
    }
}

/// How a test ends.
async fn run(trials: &Trials, file: &TestFile, test: &Test) -> End {
    match all_runs(trials, file, test).await {
        Ok(differences) if differences.is_empty() => End::Passed,
        Ok(differences) => End::Failed(differences),
        Err(failure) => End::Unfit(failure),
    }
}

async fn all_runs(trials: &Trials, file: &TestFile, test: &Test) -> Result<Vec<Difference>, Failure> {
    let mut trial = trials.begin(&file.dataset)?;
    for (at, run) in test.runs.iter().enumerate() {
        let differences = one_run(&mut trial, file, run, at + 1).await?;
        if !differences.is_empty() {
            return Ok(differences);
        }
    }
    Ok(Vec::new())
}

async fn one_run(trial: &mut Trial, file: &TestFile, run: &TestRun, number: usize) -> Result<Vec<Difference>, Failure> {
    for (table, rows) in &run.given {
        let rows: Vec<GivenRow> = rows::read(rows)?;
        trial.give(table, &rows, &types(file, table)?).await?;
    }
    let report = trial.run().await?;
    let error = report.datasets.iter().find_map(|dataset| dataset.error.as_ref());
    let of_run = |what: String| vec![Difference { table: trial.dataset().to_string(), run: number, what, ..Difference::default() }];
    match (error, &run.fails) {
        (Some(error), Some(code)) if error.code.eq_ignore_ascii_case(code) => return Ok(Vec::new()),
        (Some(error), Some(code)) => return Ok(of_run(format!("it failed with {} and not with {code}: {}", error.code, error.message))),
        (Some(error), None) => return Ok(of_run(format!("it failed: {} ({})", error.message, error.code))),
        (None, Some(code)) => return Ok(of_run(format!("it did not fail with {code}"))),
        (None, None) => {}
    }
    let mut differences = Vec::new();
    for (table, rows) in &run.expect {
        let own = table.eq_ignore_ascii_case(&trial.dataset().to_string());
        let keys = match own {
            true if file.keys.is_empty() => trial.keys(),
            true => file.keys.clone(),
            false => Vec::new(),
        };
        let expected: Vec<GivenRow> = rows::read(rows)?;
        let found = compare::compare(trial.lake(), table, &expected, &keys).await?;
        differences.extend(found.map(|difference| Difference { run: number, ..difference }));
    }
    Ok(differences)
}

/// What the file says of a table's columns.
fn types(file: &TestFile, table: &str) -> Result<Vec<Column>, Failure> {
    let said = file.columns.iter().filter(|(named, _)| named.eq_ignore_ascii_case(table)).flat_map(|(_, columns)| columns);
    let (mut columns, mut failures) = (Vec::new(), Vec::new());
    for (name, text) in said {
        match text.parse::<DataType>() {
            Ok(data_type) => columns.push(Column::new(name, data_type)),
            Err(error) => failures.push(Failure {
                exit_code: ExitCode::BadInput,
                code: error.code().to_string(),
                message: format!("{}: columns.{table}.{name}: {error}", file.file),
                next: Some(format!("tributary help {}", error.code())),
            }),
        }
    }
    if failures.is_empty() { Ok(columns) } else { Err(Failure::of_all(failures)) }
}
