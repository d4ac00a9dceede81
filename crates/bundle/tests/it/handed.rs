//! Cases from the field: what went wrong in another tool, and what is right.

use serde_json::{Value as Json, json};
use tributary_bundle::Loaded;

use crate::folder::Folder;

fn job<'a>(loaded: &'a Loaded, key: &str) -> &'a Json {
    &loaded.bundle.resolved["resources"]["jobs"][key]
}

/// DAB-01.
#[test]
fn one_key_for_a_job_and_a_pipeline_is_an_error_that_names_both_places() {
    let text = "resources:\n  jobs:\n    loader: {name: loader job}\n  pipelines:\n    loader: {name: loader pipe}\n";
    let folder = Folder::with(&[("databricks.yml", text)]);
    let loaded = folder.load(None);
    let expected = format!(
        "databricks.yml:5:5: the key loader is used twice: for one of the pipelines here and for one of the jobs in {}/databricks.yml:3 (BU0013)",
        folder.path().display()
    );
    let errors: Vec<String> = loaded.faults.iter().filter(|fault| fault.is_error()).map(ToString::to_string).collect();
    assert_eq!(errors, [format!("{}/{expected}", folder.path().display())]);
}

/// DAB-03.
#[test]
fn a_structured_variable_of_a_target_replaces_the_default_whole() {
    let text = "bundle: {name: t}
variables:
  cfg:
    type: complex
    default: {a: 1, b: {c: 2, d: 3}}
targets:
  dev:
    variables:
      cfg: {b: {c: 9}}
  qa:
    variables:
      cfg: {default: {a: 7}}
";
    let folder = Folder::with(&[("databricks.yml", text)]);
    for (target, expected) in [("dev", json!({"b": {"c": 9}})), ("qa", json!({"a": 7}))] {
        let loaded = folder.load(Some(target));
        assert_eq!(folder.faults(&loaded), Vec::<String>::new());
        assert_eq!(loaded.bundle.resolved["variables"]["cfg"]["value"], expected);
    }
}

/// DAB-05.
#[test]
fn a_target_changes_one_task_by_its_key_and_leaves_the_others() {
    let text = "bundle: {name: t}
resources:
  jobs:
    j:
      tasks:
        - {task_key: a, notebook_task: {notebook_path: ./a.sql}}
        - {task_key: b, depends_on: [{task_key: a}], notebook_task: {notebook_path: ./b.sql}}
targets:
  prod:
    resources:
      jobs:
        j:
          tasks:
            - {task_key: b, max_retries: 3}
";
    let notebook = "-- Databricks notebook source\nSELECT 1;\n";
    let folder = Folder::with(&[("databricks.yml", text), ("a.sql", notebook), ("b.sql", notebook)]);
    let loaded = folder.load(Some("prod"));
    assert_eq!(folder.faults(&loaded), Vec::<String>::new());
    let b = json!({"task_key": "b", "depends_on": [{"task_key": "a"}], "max_retries": 3, "notebook_task": {"notebook_path": "./b.sql"}});
    assert_eq!(job(&loaded, "j")["tasks"], json!([{"task_key": "a", "notebook_task": {"notebook_path": "./a.sql"}}, b]));
    let tasks = &loaded.bundle.jobs["j"].tasks;
    assert_eq!(tasks.iter().map(|task| (task.key.as_str(), task.retries.max)).collect::<Vec<_>>(), [("a", Some(0)), ("b", Some(3))]);
}

/// DAB-08.
#[test]
fn keys_of_a_mapping_win_over_merged_ones_whole() {
    let text = "bundle: {name: t}
x-base: &base {retries: 1, tags: {team: a}}
resources:
  jobs:
    j:
      <<: *base
      tags: {env: dev}
      name: j
";
    let folder = Folder::with(&[("databricks.yml", text)]);
    let loaded = folder.load(None);
    assert_eq!(*job(&loaded, "j"), json!({"retries": 1, "tags": {"env": "dev"}, "name": "j"}));
    assert_eq!(folder.faults(&loaded).len(), 1, "no task has retries, and that alone is said: {:?}", loaded.faults);
    let twice = Folder::with(&[("databricks.yml", "bundle: {name: t}\nx-a: 1\nx-a: 2\n")]);
    let faults = twice.faults(&twice.load(None));
    assert_eq!(faults, ["databricks.yml:3:1: the key \"x-a\" stands twice in one mapping, first in line 2 (BU0005)"]);
}

/// DAB-09.
#[test]
fn settings_that_exclude_each_other_are_all_said_in_one_run() {
    let text = "bundle: {name: t}
workspace: {host: null}
resources:
  pipelines:
    p:
      serverless: true
      clusters: [{num_workers: 2}]
      catalog: c
      storage: store/x
";
    let folder = Folder::with(&[("databricks.yml", text)]);
    let expected = [
        "databricks.yml:2:19: `workspace.host` is null; a text belongs there (BU0010)",
        "databricks.yml:7:7: resources.pipelines.p has serverless with clusters: they exclude each other (BU0039)",
        "databricks.yml:9:7: resources.pipelines.p has catalog with storage: they exclude each other (BU0039)",
    ];
    assert_eq!(folder.faults(&folder.load(None)), expected);
}

/// DAB-11.
#[test]
fn paths_count_from_the_file_they_stand_in() {
    let included = "resources: {pipelines: {p: {libraries: [{file: {path: ../src/a.sql}}, {glob: {include: ../src/dlt/**}}]}}}";
    let folder = Folder::with(&[
        ("databricks.yml", "bundle: {name: t}\ninclude: [res/*.yml]\n"),
        ("res/p.yml", included),
        ("src/a.sql", ""),
        ("src/dlt/x.sql", ""),
        ("src/dlt/sub/y.sql", ""),
        ("src/dlt/readme.md", ""),
    ]);
    let loaded = folder.load(None);
    assert_eq!(folder.faults(&loaded), Vec::<String>::new());
    assert_eq!(loaded.bundle.pipelines["p"].files, ["src/a.sql", "src/dlt/sub/y.sql", "src/dlt/x.sql"]);
    folder.write("res/p.yml", included.replace("../src/a.sql", "../../a.sql"));
    let faults = folder.faults(&folder.load(None));
    assert_eq!(faults, ["res/p.yml:1:55: the path \"../../a.sql\" leads out of the bundle (BU0027)"]);
}
