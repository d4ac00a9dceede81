//! Broken bundles: each mistake once, at its place.

use crate::folder::{Folder, faults_of};

/// The faults of a root file are these, in this order.
fn says(root: &str, expected: &[&str]) {
    let found = faults_of(root);
    assert_eq!(found, expected.iter().map(|line| format!("databricks.yml:{line}")).collect::<Vec<_>>());
}

#[test]
fn a_root_file_is_one_mapping_in_one_file() {
    says("- a\n", &["1:1: `the root` is a list, not a mapping (BU0006)"]);
    says("a: [\n", &["2:1: not readable as YAML: while parsing a node, did not find expected node content (BU0003)"]);
    says("x-a: !secret b\n", &["1:6: not readable as YAML: the tag !secret has no meaning here (BU0003)"]);
    says("x-a: 1\n---\nx-a: 2\n", &["2:1: not readable as YAML: a file holds one document (BU0003)"]);
    says("x-a: {<<: 1}\n", &["1:11: not readable as YAML: `<<` takes a mapping, or a list of mappings (BU0003)"]);
    let merged = "bundle: {name: t}\nx-a: &a {b: 1}\nx-c: {<<: *a, <<: *a}\n";
    says(merged, &["3:15: the key \"<<\" stands twice in one mapping, first in line 3 (BU0005)"]);
    let two = Folder::with(&[("databricks.yml", ""), ("bundle.yaml", "")]);
    let found = two.load(None).faults;
    assert_eq!(found[0].message, "the folder holds more than one root file: databricks.yml, bundle.yaml");
    assert_eq!((found.len(), found[0].code), (1, "BU0002"));
    let empty = Folder::with(&[]);
    let message = &empty.load(None).faults[0].message;
    assert!(message.ends_with("it holds none of databricks.yml, databricks.yaml, bundle.yml, bundle.yaml"), "{message}");
    assert!(tributary_bundle::load(&empty.path().join("gone"), None, &Default::default()).faults[0].message.contains("no such folder"));
}

#[test]
fn files_that_cannot_be_joined_say_both_places() {
    let folder = Folder::with(&[
        ("databricks.yml", "bundle: {name: t}\ninclude: [a.yml, b.yml, gone.yml, \"*.txt\", \"job/*.yml\"]\n"),
        ("a.yml", "presets: {tags: {a: 1}}\nsync: {paths: [x]}\nresources: {jobs: {j: {name: j}}}\n"),
        ("b.yml", "presets: {tags: [1]}\nsync: {paths: {}}\nresources: {jobs: {j: {name: again}}}\n"),
        ("c.txt", ""),
    ]);
    let place = folder.path().display();
    let expected = [
        format!("b.yml:1:17: `presets.tags` is a list here and a mapping in {place}/a.yml:1: they cannot be joined (BU0007)")
            .replace(&format!("{place}/"), ""),
        "b.yml:2:15: `sync.paths` is a mapping here and a list in a.yml:2: they cannot be joined (BU0007)".to_owned(),
        "b.yml:3:20: the key j is used twice: for one of the jobs here and for one of the jobs in a.yml:3 (BU0013)".to_owned(),
        "databricks.yml:2:25: include \"gone.yml\": no such file (BU0026)".to_owned(),
        "databricks.yml:2:35: include \"*.txt\": c.txt is neither .yml nor .yaml nor .json (BU0026)".to_owned(),
        "databricks.yml:2:44: warning: include \"job/*.yml\": no file is like this (BU0026)".to_owned(),
    ];
    assert_eq!(folder.faults(&folder.load(None)), expected);
}

#[test]
fn keys_and_values_that_mean_nothing_are_said_with_what_was_meant() {
    let text = "bundle: {name: t, nmae: x}
resorces: {}
x-base: {anything: 1}
base: &b {goes: 1}
workspace: {profile: \"${var.p}\"}
variables: {p: {default: a}}
resources:
  jobs:
    j:
      max_concurrent_runs: many
      timeout_seconds: \"60\"
      queue: {enabled: maybe}
      tags: [a]
      edit_mode: UI_LOKED
      description: null
      schedule: {timezone_id: UTC}
  pipelines:
    p: {channel: [CURRENT], edition: PRO, clusters: [{autoscale: {min_workers: 1}}]}
";
    says(
        text,
        &[
            "1:19: warning: there is no key \"nmae\" in `bundle`; did you mean \"name\"? (BU0008)",
            "2:1: warning: there is no key \"resorces\" in the root; did you mean \"resources\"? (BU0008)",
            "5:22: `workspace.profile` cannot hold a reference (BU0023)",
            "10:28: warning: `resources.jobs.j.max_concurrent_runs` is the text \"many\"; a whole number belongs there (BU0009)",
            "11:24: warning: `resources.jobs.j.timeout_seconds` is the text \"60\"; a whole number belongs there (BU0009)",
            "12:24: warning: `resources.jobs.j.queue.enabled` is the text \"maybe\"; true or false belongs there (BU0009)",
            "13:13: `resources.jobs.j.tags` is a list, not a mapping (BU0006)",
            "14:18: `resources.jobs.j.edit_mode` is \"UI_LOKED\"; it can be EDITABLE, UI_LOCKED; did you mean \"UI_LOCKED\"? (BU0012)",
            "15:20: warning: `resources.jobs.j.description` is null; a text belongs there (BU0010)",
            "16:17: `resources.jobs.j.schedule` needs the key \"quartz_cron_expression\" (BU0011)",
            "18:18: `resources.pipelines.p.channel` is a list, not a word (BU0006)",
            "18:66: `resources.pipelines.p.clusters[0].autoscale` needs the key \"max_workers\" (BU0011)",
        ],
    );
}

#[test]
fn resources_have_a_key_without_references_and_a_body() {
    let text = "bundle: {name: t}
resources:
  jobs:
    \"a${var.x}\": {name: a}
    empty: {}
    nothing:
";
    says(
        text,
        &[
            "4:5: the resource key \"a${var.x}\" holds a reference (BU0014)",
            "5:5: resources.jobs.empty is empty (BU0015)",
            "6:5: resources.jobs.nothing is empty (BU0015)",
        ],
    );
}

#[test]
fn a_job_with_every_mistake_says_each_once() {
    let text = r#"bundle: {name: t}
resources:
  jobs:
    j:
      max_concurrent_runs: -1
      schedule: {quartz_cron_expression: "0 2 * * *", timezone_id: Europe/Berln}
      continuous: {pause_status: PAUSED}
      parameters: [{name: day, default: a}, {name: day, default: b}]
      job_clusters: [{job_cluster_key: big, new_cluster: {num_workers: 1}}]
      tasks:
        - {task_key: a, notebook_task: {notebook_path: /x}, max_retries: -2}
        - {task_key: a, notebook_task: {notebook_path: /x}}
        - {task_key: "b c", depends_on: [{task_key: aa}, {task_key: a, outcome: "true"}], run_if: ALL_DON, notebook_task: {notebook_path: /x}}
        - {task_key: none}
        - {task_key: two, notebook_task: {notebook_path: /x}, condition_task: {op: EQUAL_TO, left: a, right: b}}
        - {task_key: x, depends_on: [{task_key: y}], notebook_task: {notebook_path: "/{{job.parameters.dya}}/{{job.id}}/{{tasks.none.values.v}}"}}
        - {task_key: y, depends_on: [{task_key: x}], job_cluster_key: bigg, notebook_task: {notebook_path: /x}}
        - {task_key: w, python_wheel_task: {package_name: p, entry_point: e, parameters: [a], named_parameters: {b: c}}}
        - task_key: each
          for_each_task: {inputs: "1, 2", task: {task_key: i, for_each_task: {inputs: "[]", task: {task_key: k, run_job_task: {job_id: 1}}}}}
        - {task_key: q, sql_task: {warehouse_id: x, query: {query_id: a}, file: {path: /x}}}
        - {task_key: c, depends_on: [{task_key: two, outcome: yes}], run_job_task: {job_id: "${resources.jobs.k.id}"}}
    k:
      trigger: {periodic: {interval: 1, unit: HOURS}, file_arrival: {url: /x}}
      tasks: [{task_key: c, run_job_task: {job_id: "${resources.jobs.j.id}"}}]
"#;
    says(
        text,
        &[
            "4:5: jobs wait for each other in a circle: j -> k -> j (BU0035)",
            "5:28: `resources.jobs.j.max_concurrent_runs` is -1; it must be 0 to 1000 (BU0040)",
            "6:42: quartz_cron_expression \"0 2 * * *\": it has 5 fields, not six or seven; the first field is the second (BU0038)",
            "6:68: timezone_id \"Europe/Berln\": no such time zone; did you mean \"Europe/Berlin\"? (BU0038)",
            "7:7: resources.jobs.j has schedule with continuous: they exclude each other (BU0039)",
            "8:52: the parameter \"day\" stands twice, first in databricks.yml:8 (BU0033)",
            "11:74: `resources.jobs.j.tasks.a.max_retries` is -2; it must be -1 or more (BU0040)",
            "12:22: task_key \"a\" stands twice, first in databricks.yml:11 (BU0033)",
            "13:22: `resources.jobs.j.tasks.task_key` is b c; it must be 1 to 100 letters, digits, `-` and `_` (BU0040)",
            "13:53: task b c depends on \"aa\", which the job does not have; did you mean \"a\"? (BU0034)",
            "13:81: task b c waits for an outcome of a, which is no condition_task (BU0037)",
            "13:99: `resources.jobs.j.tasks[2].run_if` is \"ALL_DON\"; it can be ALL_DONE, ALL_FAILED, ALL_SUCCESS, AT_LEAST_ONE_FAILED, AT_LEAST_ONE_SUCCESS, NONE_FAILED; did you mean \"ALL_DONE\"? (BU0012)",
            "14:11: task none has nothing to do; exactly one belongs there: clean_rooms_notebook_task, condition_task, dashboard_task, dbt_cloud_task, dbt_platform_task, dbt_task, for_each_task, gen_ai_compute_task, notebook_task, pipeline_task, power_bi_task, python_wheel_task, run_job_task, spark_jar_task, spark_python_task, spark_submit_task, sql_task (BU0036)",
            "15:63: task two has condition_task and notebook_task; exactly one belongs there: clean_rooms_notebook_task, condition_task, dashboard_task, dbt_cloud_task, dbt_platform_task, dbt_task, for_each_task, gen_ai_compute_task, notebook_task, pipeline_task, power_bi_task, python_wheel_task, run_job_task, spark_jar_task, spark_python_task, spark_submit_task, sql_task (BU0036)",
            "16:11: tasks wait for each other in a circle: x -> y -> x (BU0035)",
            "16:87: warning: the run-time reference {{job.parameters.dya}} does not exist; did you mean \"job.parameters.day\"? (BU0046)",
            "17:71: warning: job_cluster_key \"bigg\" is not declared in the job; did you mean \"big\"? (BU0031)",
            "18:25: task w is a python_wheel_task and has neither a cluster nor an environment (BU0032)",
            "18:95: python_wheel_task of w has parameters with named_parameters: they exclude each other (BU0039)",
            "20:35: `resources.jobs.j.tasks.each.for_each_task.inputs` is 1, 2; it must be a JSON list or a reference to one (BU0040)",
            "20:63: the task inside each is a for_each_task again (BU0041)",
            "21:75: sql_task of q has file and query; exactly one belongs there: alert, dashboard, file, query (BU0036)",
            "22:63: `resources.jobs.j.tasks.c.depends_on.outcome` is yes; it must be \"true\" or \"false\" (BU0040)",
            "24:55: `resources.jobs.k.trigger` has file_arrival and periodic; exactly one belongs there: file_arrival, model, periodic, table_update (BU0036)",
        ],
    );
}

#[test]
fn files_that_are_not_there_or_of_another_kind_are_said() {
    let text = r#"bundle: {name: t}
resources:
  jobs:
    j:
      tasks:
        - {task_key: a, notebook_task: {notebook_path: ./plain.sql}}
        - {task_key: b, sql_task: {warehouse_id: x, file: {path: book.sql}}}
        - {task_key: c, notebook_task: {notebook_path: plan.sql}}
        - {task_key: d, spark_python_task: {python_file: ../x.py}, environment_key: e}
        - {task_key: e, notebook_task: {notebook_path: nowhere.py, source: GIT}}
      environments: [{environment_key: e}]
  pipelines:
    p:
      root_path: nowhere
      libraries:
        - file: {path: book.sql}
        - notebook: {path: plain.sql}
        - glob: {include: "docs/**"}
        - glob: {include: "*.sql"}
        - glob: {include: plain.sql}
        - glob: {include: gone/**}
        - {file: {path: plain.sql}, notebook: {path: book.sql}}
        - {}
        - file: {path: docs/readme.md}
        - file: {path: job.py}
        - jar: x.jar
"#;
    let folder = Folder::with(&[
        ("databricks.yml", text),
        ("plain.sql", "-- nothing yet\n"),
        ("book.sql", "-- Databricks notebook source\nSELECT 1;\n"),
        ("docs/readme.md", ""),
        ("job.py", "print(1)\n"),
    ]);
    let choices = "exactly one belongs there: file, glob, jar, maven, notebook, whl (BU0036)";
    let expected = [
        "6:56: plain.sql is a file, not a notebook (BU0030)".to_owned(),
        "7:66: book.sql is a notebook, not a file (BU0030)".to_owned(),
        "8:56: the file plan.sql is not there; did you mean \"plain.sql\"? (BU0028)".to_owned(),
        "9:58: the path \"../x.py\" leads out of the bundle (BU0027)".to_owned(),
        "14:18: the file nowhere is not there (BU0028)".to_owned(),
        "15:7: warning: job.py is not run here: only SQL is run (BU0043)".to_owned(),
        "16:24: book.sql is a notebook, not a file (BU0030)".to_owned(),
        "17:28: plain.sql is a file, not a notebook (BU0030)".to_owned(),
        "18:27: library \"docs/**\": no source file belongs to it (BU0042)".to_owned(),
        "19:27: library \"*.sql\": only one file or a folder as `folder/**` can stand here (BU0042)".to_owned(),
        "21:27: library \"gone/**\": no source file belongs to it (BU0042)".to_owned(),
        format!("22:37: a library of pipeline p has file and notebook; {choices}"),
        format!("23:11: a library of pipeline p has nothing; {choices}"),
        "24:24: library \"docs/readme.md\": docs/readme.md is not source code: neither .sql nor .py (BU0042)".to_owned(),
    ];
    let loaded = folder.load(None);
    assert_eq!(folder.faults(&loaded), expected.map(|line| format!("databricks.yml:{line}")));
    assert_eq!(loaded.bundle.pipelines["p"].files, ["plain.sql"]);
}

#[test]
fn a_feed_says_its_mistakes_where_it_stands() {
    let folder = Folder::with(&[
        ("databricks.yml", "bundle: {name: t}\ninclude: [feeds/*.yml]\nvariables: {path: {default: shop}}\n"),
        (
            "feeds/a.yml",
            "feeds:\n  - name: orders\n    table: bronze.orders\n    source: {files: {path: \"${var.path}\", format: kafka_jsonl}}\n",
        ),
        (
            "feeds/b.yml",
            "feeds:\n  - name: stock\n    table: stock\n    source:\n      files: {path: x, format: jsonlines}\n    kesy: [a]\n    columns:\n      - {name: a, type: lonk}\n",
        ),
    ]);
    let found = folder.faults(&folder.load(None));
    assert_eq!(
        found,
        [
            "feeds/b.yml:3:12: feeds[1].table: \"stock\" is not a table name of the form schema.table: the schema is missing (SP0001)",
            "feeds/b.yml:5:32: feeds[1].source.files.format: \"jsonlines\" is not one of csv, jsonl, kafka_jsonl; did you mean \"jsonl\"? (SP0013)",
            "feeds/b.yml:6:5: feeds[1].kesy: there is no field \"kesy\" here; did you mean \"keys\"? (SP0011)",
            "feeds/b.yml:8:25: feeds[1].columns[0].type: \"lonk\" is not a column type: there is no type lonk; did you mean long? (SP0002)",
        ]
    );
    folder.write("feeds/b.yml", "");
    let loaded = folder.load(None);
    assert_eq!(folder.faults(&loaded), Vec::<String>::new());
    assert_eq!(loaded.bundle.feeds[0].name, "orders");
}

#[test]
fn a_bundle_without_mistakes_is_sound_and_can_be_written_as_json() {
    let folder = Folder::with(&[("databricks.yml", include_str!("whole.yml")), ("src/a.sql", "")]);
    let loaded = folder.load(None);
    assert_eq!(folder.faults(&loaded), Vec::<String>::new());
    assert!(loaded.is_sound());
    assert_eq!(folder.load(None), loaded);
    let json = serde_json::to_value(&loaded.bundle).unwrap();
    assert_eq!(json["pipelines"]["retail"]["files"], serde_json::json!(["src/a.sql"]));
    assert_eq!(json["pipelines"]["retail"]["schema"], "dev_user_silver");
    assert_eq!(
        json["jobs"]["nightly"]["tasks"][2]["action"],
        serde_json::json!({"kind": "pipeline", "pipeline": {"resource": "retail"}, "full_refresh": false, "refresh_selection": [], "full_refresh_selection": [], "parameters": {}})
    );
}
