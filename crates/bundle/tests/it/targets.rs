//! Targets, variables, references, modes and presets.

use serde_json::json;
use tributary_bundle::Options;

use crate::folder::{Folder, faults_of};

const NONE: [&str; 0] = [];

#[test]
fn a_target_is_the_named_one_the_only_one_or_the_default() {
    let bundle = |targets: &str| Folder::with(&[("databricks.yml", &format!("bundle: {{name: t}}\n{targets}"))]);
    let none = bundle("");
    assert_eq!(none.load(None).bundle.target, "default");
    let one = bundle("targets: {dev: }\n");
    assert_eq!(one.load(None).bundle.target, "dev");
    let two = bundle("targets:\n  dev: {default: true}\n  prod: {}\n");
    assert_eq!(two.load(None).bundle.target, "dev");
    assert_eq!(two.load(Some("prod")).bundle.target, "prod");
    let wrong = two.load(Some("prd"));
    assert_eq!(two.faults(&wrong), ["databricks.yml:2:1: there is no target \"prd\", only dev, prod; did you mean \"prod\"? (BU0024)"]);
    let open = bundle("targets:\n  dev: {}\n  prod: {}\n");
    assert_eq!(open.faults(&open.load(None)), ["databricks.yml:2:1: no target is the default: name one of dev, prod (BU0024)"]);
    let both = bundle("targets:\n  dev: {default: true}\n  prod: {default: true}\n");
    let expected = "databricks.yml:4:3: the targets dev and prod both say that they are the default (BU0024)";
    assert_eq!(both.faults(&both.load(Some("dev"))), [expected]);
}

const VARIABLES: &str = "bundle: {name: shop}
variables:
  catalog: {default: main}
  region:
  cfg: {type: complex, default: {retries: 3, hosts: [a, b]}}
  where: {default: \"${var.catalog}.${bundle.target}\"}
resources:
  jobs:
    j:
      name: load ${var.where} in ${var.region}
      max_concurrent_runs: ${var.cfg.retries}
      tags: {host: \"${var.cfg.hosts[1]}\", all: \"${bundle.name}/${var.catalog}\"}
targets:
  dev: {variables: {region: eu}}
";

#[test]
fn variables_come_from_the_command_line_the_environment_a_file_the_target_and_the_default_in_this_order() {
    let folder = Folder::with(&[("databricks.yml", VARIABLES)]);
    let region = |options: &Options| {
        let loaded = folder.load_with(options);
        assert_eq!(folder.faults(&loaded), NONE);
        loaded.bundle.jobs["j"].name.clone()
    };
    assert_eq!(region(&Options::default()), "load main.dev in eu");
    folder.write(".databricks/bundle/dev/variable-overrides.json", r#"{"region": "us", "cfg": {"retries": 4, "hosts": ["x", "y"]}}"#);
    assert_eq!(region(&Options::default()), "load main.dev in us");
    let environment = Options { environment: [("region".to_owned(), "asia".to_owned())].into(), ..Options::default() };
    assert_eq!(region(&environment), "load main.dev in asia");
    let line = Options { variables: [("region".to_owned(), "mars".to_owned())].into(), ..environment };
    assert_eq!(region(&line), "load main.dev in mars");
}

#[test]
fn a_reference_alone_takes_the_type_and_one_in_a_text_must_be_a_word() {
    let folder = Folder::with(&[("databricks.yml", VARIABLES)]);
    let loaded = folder.load(None);
    let job = &loaded.bundle.resolved["resources"]["jobs"]["j"];
    assert_eq!(job["max_concurrent_runs"], json!(3));
    assert_eq!(job["tags"], json!({"host": "b", "all": "shop/main"}));
    let faults = faults_of(
        "bundle: {name: t}\nvariables:\n  c: {type: complex, default: [1]}\nresources:\n  jobs:\n    j: {name: \"x ${var.c}\"}\n",
    );
    assert_eq!(faults, ["databricks.yml:6:18: ${var.c} is a list: it cannot stand inside a text (BU0022)"]);
}

#[test]
fn a_number_given_as_text_by_the_command_line_is_no_mistake() {
    let text =
        "bundle: {name: t}\nvariables: {runs: {default: 1}}\nresources:\n  jobs:\n    j: {name: j, max_concurrent_runs: \"${var.runs}\"}\n";
    let folder = Folder::with(&[("databricks.yml", text)]);
    let loaded = folder.load_var(None, &[("runs", "7")]);
    assert_eq!(folder.faults(&loaded), NONE);
    assert_eq!(loaded.bundle.jobs["j"].max_concurrent_runs, 7);
}

#[test]
fn variables_that_have_no_value_or_no_declaration_are_said() {
    let text = "bundle: {name: t}
variables:
  needed: {description: x}
  house: {lookup: {warehouse: big one}}
  cfg: {type: complex, default: {}}
targets:
  dev:
    variables: {neded: 1}
";
    let folder = Folder::with(&[("databricks.yml", text)]);
    let loaded = folder.load_var(None, &[("cfg", "{}"), ("nobody", "1")]);
    let expected = [
        "databricks.yml:1:1: the variable nobody is not declared (BU0019)",
        "databricks.yml:3:3: no value assigned to required variable needed (BU0018)",
        "databricks.yml:4:19: the variable house is looked up in a workspace (warehouse \"big one\"), which is not asked offline (BU0021)",
        "databricks.yml:5:3: the variable cfg cannot take this value: it is complex, and the command line gives texts only (BU0020)",
        "databricks.yml:8:17: the variable neded is not declared; did you mean \"needed\"? (BU0019)",
    ];
    assert_eq!(folder.faults(&loaded), expected);
    assert_eq!(loaded.faults[1].next.as_deref(), Some("tributary validate --var needed=VALUE"));
    let given = folder.load_var(None, &[("house", "abc"), ("needed", "1")]);
    assert_eq!(folder.faults(&given).len(), 1, "{:?}", given.faults);
}

#[test]
fn references_in_a_circle_are_said_once_with_the_way_round() {
    let text = "bundle: {name: t}
variables:
  a: {default: \"${var.b}\"}
  b: {default: \"x ${var.c}\"}
  c: {default: \"${var.a}\"}
  d: {default: \"${var.a}\"}
  e: {default: \"${var.e}\"}
";
    let expected = [
        "databricks.yml:3:17: references in a circle: var.b -> var.c -> var.a -> var.b (BU0017)",
        "databricks.yml:7:17: references in a circle: var.e -> var.e (BU0017)",
    ];
    assert_eq!(faults_of(text), expected);
}

#[test]
fn a_reference_to_nothing_names_what_was_meant() {
    let text = "bundle: {name: t}
variables: {catalog: {default: c}}
resources:
  pipelines: {retail: {name: \"${var.catlog}\"}}
  jobs:
    j:
      name: at ${workspace.hots} ${workspace.host}, ${vra.catalog}, ${HOME} ${{x}} $${}
      tasks:
        - {task_key: a, pipeline_task: {pipeline_id: \"${resources.pipelines.retial.id}\"}}
        - {task_key: b, pipeline_task: {pipeline_id: \"${resources.pipelines.retail.id}\"}}
        - {task_key: c, pipeline_task: {pipeline_id: \"${resources.jobs.j.id}\"}}
";
    let expected = [
        "databricks.yml:4:31: reference does not exist: ${var.catlog}; did you mean \"var.catalog\"? (BU0016)",
        "databricks.yml:7:16: reference does not exist: ${workspace.hots}; did you mean \"workspace.host\"? (BU0016)",
        "databricks.yml:7:53: reference does not exist: ${vra.catalog}; did you mean \"var.catalog\"? (BU0016)",
        "databricks.yml:9:55: reference does not exist: ${resources.pipelines.retial.id}; did you mean \"resources.pipelines.retail.id\"? (BU0016)",
        "databricks.yml:11:54: `pipeline_id` is a resource of another kind, not the id of one of the pipelines (BU0006)",
    ];
    assert_eq!(faults_of(text), expected);
}

#[test]
fn parts_of_a_target_are_joined_and_lists_follow_each_other() {
    let text = "bundle: {name: t}
resources:
  pipelines:
    p:
      catalog: c
      clusters: [{num_workers: 1}, {label: MAINTENANCE, num_workers: 1}]
      configuration: {a: 1, b: 2}
  jobs:
    j:
      parameters: [{name: day, default: today}]
      job_clusters: [{job_cluster_key: k, new_cluster: {num_workers: 1}}]
targets:
  dev:
    resources:
      pipelines:
        p:
          catalog: dev
          clusters: [{label: default, num_workers: 5}, {label: maintenance, policy_id: x}]
          configuration: {b: 3}
      jobs:
        j:
          parameters: [{name: day, default: yesterday}, {name: more, default: \"1\"}]
          job_clusters: [{job_cluster_key: k, new_cluster: {node_type_id: n}}]
";
    let folder = Folder::with(&[("databricks.yml", text)]);
    let loaded = folder.load(None);
    assert_eq!(folder.faults(&loaded), NONE);
    let resources = &loaded.bundle.resolved["resources"];
    let clusters = json!([{"num_workers": 5, "label": "default"}, {"label": "maintenance", "num_workers": 1, "policy_id": "x"}]);
    assert_eq!(resources["pipelines"]["p"]["clusters"], clusters);
    assert_eq!(loaded.bundle.pipelines["p"].parameters, [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "3".to_owned())].into());
    assert_eq!(loaded.bundle.pipelines["p"].catalog.as_deref(), Some("dev"));
    assert_eq!(resources["jobs"]["j"]["job_clusters"][0]["new_cluster"], json!({"num_workers": 1, "node_type_id": "n"}));
    let parameters = [("day".to_owned(), "yesterday".to_owned()), ("more".to_owned(), "1".to_owned())];
    assert_eq!(loaded.bundle.jobs["j"].parameters, parameters.into());
}

const MODES: &str = "bundle: {name: shop}
resources:
  jobs:
    j:
      name: nightly
      schedule: {quartz_cron_expression: 0 0 2 * * ?, timezone_id: UTC}
    k:
      name: hourly
      max_concurrent_runs: 2
      trigger: {pause_status: UNPAUSED, periodic: {interval: 1, unit: HOURS}}
  pipelines:
    p: {name: retail, continuous: true}
  schemas:
    s: {name: silver, catalog_name: c}
targets:
  dev: {mode: development, default: true}
  prod: {mode: production, workspace: {root_path: /Workspace/Shared/shop}}
";

#[test]
fn development_names_tags_and_pauses_what_is_the_persons_own() {
    let folder = Folder::with(&[("databricks.yml", MODES)]);
    let loaded = folder.load_with(&Options { user: "Jo.Doe@example.com".to_owned(), ..Options::default() });
    assert_eq!(folder.faults(&loaded), NONE);
    let resources = &loaded.bundle.resolved["resources"];
    let (j, k) = (&resources["jobs"]["j"], &resources["jobs"]["k"]);
    assert_eq!(j["name"], "[dev jo_doe] nightly");
    assert_eq!(j["tags"], json!({"dev": "jo_doe"}));
    assert_eq!((&j["max_concurrent_runs"], &k["max_concurrent_runs"]), (&json!(4), &json!(2)));
    assert_eq!((&j["schedule"]["pause_status"], &k["trigger"]["pause_status"]), (&json!("PAUSED"), &json!("UNPAUSED")));
    assert!(loaded.bundle.jobs["j"].schedule.as_ref().unwrap().paused);
    assert_eq!(resources["schemas"]["s"]["name"], "dev_jo_doe_silver");
    let pipeline = &loaded.bundle.pipelines["p"];
    assert!(pipeline.development && !pipeline.continuous);
    let workspace = &loaded.bundle.resolved["workspace"];
    assert_eq!(workspace["file_path"], "/Workspace/Users/Jo.Doe@example.com/.bundle/shop/dev/files");
}

#[test]
fn production_leaves_everything_as_it_is() {
    let folder = Folder::with(&[("databricks.yml", MODES)]);
    let loaded = folder.load(Some("prod"));
    assert_eq!(folder.faults(&loaded), NONE);
    assert_eq!(loaded.bundle.jobs["j"].name, "nightly");
    assert!(loaded.bundle.pipelines["p"].continuous);
    assert_eq!(loaded.bundle.mode, "production");
}

#[test]
fn a_preset_wins_over_the_mode() {
    let text = MODES.replace(
        "mode: development,",
        "mode: development, presets: {name_prefix: user_x_, jobs_max_concurrent_runs: 9, pipelines_development: false},",
    );
    let folder = Folder::with(&[("databricks.yml", &text)]);
    let loaded = folder.load(None);
    assert_eq!(folder.faults(&loaded), NONE);
    assert_eq!(loaded.bundle.jobs["j"].name, "user_x_nightly");
    assert_eq!(loaded.bundle.jobs["j"].max_concurrent_runs, 9);
    assert!(!loaded.bundle.pipelines["p"].development);
}

#[test]
fn modes_refuse_what_does_not_belong_to_them() {
    let text = "bundle: {name: shop}
resources:
  pipelines:
    p: {name: retail, development: true}
targets:
  dev:
    mode: development
    presets: {trigger_pause_status: UNPAUSED, name_prefix: ours_}
    workspace: {root_path: /Workspace/Shared/x}
  prod:
    mode: production
    git: {branch: main}
  other:
    mode: staging
";
    let folder = Folder::with(&[("databricks.yml", text), (".git/HEAD", "ref: refs/heads/try\n")]);
    let staging = "databricks.yml:14:11: `targets.other.mode` is \"staging\"; it can be development, production (BU0012)";
    let own = "as with ${workspace.current_user.userName} in it";
    let dev = [
        "databricks.yml:8:37: development mode: triggers are paused; presets.trigger_pause_status cannot be UNPAUSED (BU0025)".to_owned(),
        "databricks.yml:8:60: development mode: presets.name_prefix must hold the user's name, as user (BU0025)".to_owned(),
        format!("databricks.yml:9:28: development mode: workspace.root_path must be the user's own, {own} (BU0025)"),
    ];
    let found = folder.faults(&folder.load(Some("dev")));
    for line in &dev {
        assert!(found.contains(line), "{line}\n{found:#?}");
    }
    assert!(found.contains(&staging.to_owned()));
    let prod = [
        "databricks.yml:4:36: production mode: pipeline p has development: true (BU0025)",
        "databricks.yml:10:3: production mode: the target must set workspace.root_path, or run_as be a service principal (BU0025)",
        "databricks.yml:12:19: production mode: the target is for the branch main, and try is checked out (BU0025)",
        staging,
    ];
    assert_eq!(folder.faults(&folder.load(Some("prod"))), prod);
    let forced = folder.load_with(&Options { target: Some("prod".to_owned()), force: true, ..Options::default() });
    assert_eq!(folder.faults(&forced).len(), 3);
}

#[test]
fn the_commit_that_is_checked_out_is_known() {
    let text =
        "bundle: {name: t}\nresources: {jobs: {j: {name: \"${bundle.git.branch} ${bundle.git.commit} [${bundle.git.origin_url}]\"}}}\n";
    let folder =
        Folder::with(&[("databricks.yml", text), (".git/HEAD", "ref: refs/heads/try/it\n"), (".git/refs/heads/try/it", "abc123\n")]);
    let loaded = folder.load(None);
    assert_eq!(folder.faults(&loaded), NONE);
    assert_eq!(loaded.bundle.jobs["j"].name, "try/it abc123 []");
}

#[test]
fn parameters_of_a_run_go_over_those_of_the_pipeline() {
    let root = "bundle: {name: t}\nrun_as: {user_name: ann@example.com}\nresources:\n  pipelines:\n    p:\n      catalog: main\n      configuration: {day: monday}\n      libraries: [{file: {path: a.sql}}]\n";
    let view = "CREATE OR REFRESH MATERIALIZED VIEW gold.days AS SELECT '${day}' AS day;\n";
    let folder = Folder::with(&[("databricks.yml", root), ("a.sql", view)]);
    let query = |parameters: &[(&str, &str)]| {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let loaded = folder.load_with(&Options { parameters, ..Options::default() });
        assert!(loaded.is_sound(), "{:?}", folder.faults(&loaded));
        assert_eq!(loaded.bundle.pipelines["p"].run_as.as_deref(), Some("ann@example.com"));
        loaded.bundle.pipelines["p"].spec.as_ref().unwrap().gold[0].query.clone()
    };
    assert!(query(&[]).contains("'monday'"));
    assert!(query(&[("day", "friday")]).contains("'friday'"));
}

#[test]
fn a_feeds_path_goes_from_its_file_where_it_says_so() {
    let feed = |path: &str| {
        let feeds =
            format!("feeds:\n  - name: a\n    table: bronze.a\n    source: {{files: {{path: {path}, format: jsonl}}}}\n    decode: json\n");
        let folder = Folder::with(&[
            ("databricks.yml", "bundle: {name: t}\ninclude: [feeds/*.yml]\n"),
            ("feeds/a.yml", &feeds),
            ("data/a/1.jsonl", "{}"),
        ]);
        let loaded = folder.load(None);
        let path = loaded.bundle.feeds.first().map(|feed| match &feed.source {
            tributary_specs::Source::Files(files) => {
                files.path.replace(&format!("{}/", folder.path().canonicalize().unwrap().display()), "<bundle>/")
            }
            other => panic!("{other:?}"),
        });
        (path, folder.faults(&loaded))
    };
    assert_eq!(feed("data/a"), (Some("data/a".to_owned()), vec![]));
    assert_eq!(feed("../data/a"), (Some("<bundle>/data/a".to_owned()), vec![]));
    assert_eq!(feed("../../data").1, ["feeds/a.yml:4:28: the path \"../../data\" leads out of the bundle (BU0027)"]);
}

#[test]
fn a_task_that_is_not_run_here_is_said_of_a_sound_job() {
    let root = "bundle: {name: t}\nresources:\n  jobs:\n    j:\n      tasks:\n        - {task_key: a, pipeline_task: {pipeline_id: 0123-ab}}\n        - {task_key: b, sql_task: {warehouse_id: w, query: {query_id: q}}}\n        - {task_key: c, dbt_task: {commands: [dbt run]}, environment_key: e}\n        - {task_key: d, notebook_task: {notebook_path: /Shared/n}}\n        - {task_key: e, condition_task: {op: EQUAL_TO, left: a, right: b}}\n      environments: [{environment_key: e}]\n";
    let folder = Folder::with(&[("databricks.yml", root)]);
    let loaded = folder.load(None);
    let said = folder.faults(&loaded);
    assert!(loaded.is_sound());
    assert_eq!(said.len(), 4, "{said:#?}");
    for (line, word) in said.iter().zip(["pipeline_task a", "sql_task b", "dbt_task c", "notebook_task d"]) {
        assert!(line.contains(&format!("warning: {word} is not run here: ")), "{line}");
    }
    assert_eq!(loaded.bundle.jobs["j"].tasks.iter().filter(|task| task.action.not_run().is_none()).count(), 1);
}
