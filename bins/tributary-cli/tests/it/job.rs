//! Jobs of a bundle as a shell sees them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::commands::Shop;

const SQL: &str = "CREATE OR REFRESH STREAMING TABLE bronze.orders (id BIGINT, status STRING, seq BIGINT)
AS SELECT * FROM STREAM read_files('orders', format => 'json', settleSeconds => 0);
CREATE OR REFRESH MATERIALIZED VIEW gold.days AS SELECT '${day}' AS day, count(*) AS orders FROM bronze.orders;
";

/// A shop whose bundle has one pipeline and this job.
fn shop(job: &str) -> Shop {
    let shop = Shop::new();
    std::fs::remove_file(shop.path("pipeline.yml")).unwrap();
    let indented: String = job.lines().map(|line| format!("      {line}\n")).collect();
    shop.write(
        "databricks.yml",
        &format!(
            "bundle: {{name: shop}}\nresources:\n  pipelines:\n    retail:\n      catalog: main\n      parameters: {{day: none}}\n      libraries: [{{file: {{path: shop.sql}}}}]\n  jobs:\n    nightly:\n      name: nightly\n{indented}"
        ),
    );
    shop.write("shop.sql", SQL);
    shop
}

fn csv(shop: &Shop, query: &str) -> String {
    shop.says(0, &["sql", query, "-o", "csv"])
}

/// The objects that a command printed.
fn events(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What a run said last.
fn last(text: &str) -> Value {
    events(text).into_iter().rfind(|event| event["event"] == "job_finished").unwrap()
}

fn ends(text: &str) -> Vec<String> {
    let finished = events(text).into_iter().filter(|event| event["event"] == "task_finished");
    finished.map(|event| format!("{} {}", event["task"].as_str().unwrap(), event["result_state"].as_str().unwrap())).collect()
}

const REFRESH: &str = "pipeline_task: {pipeline_id: \"${resources.pipelines.retail.id}\"}";

#[test]
fn parameters_of_the_job_reach_pipelines_statements_conditions_and_iterations() {
    let job = format!(
        "parameters: [{{name: day, default: monday}}]
tasks:
  - {{task_key: refresh, {REFRESH}}}
  - {{task_key: count, depends_on: [{{task_key: refresh}}], sql_task: {{warehouse_id: w, file: {{path: count.sql}}, parameters: {{least: \"1\"}}}}}}
  - {{task_key: many, depends_on: [{{task_key: count}}], condition_task: {{op: GREATER_THAN, left: \"{{{{tasks.count.values.n}}}}\", right: \"1\"}}}}
  - {{task_key: few, depends_on: [{{task_key: many, outcome: \"false\"}}], {REFRESH}}}
  - task_key: each
    depends_on: [{{task_key: many, outcome: \"true\"}}]
    for_each_task:
      inputs: '[\"friday\", \"{{{{job.parameters.day}}}}\"]'
      task: {{task_key: one, condition_task: {{op: EQUAL_TO, left: \"{{{{input}}}}\", right: x}}}}
"
    );
    let shop = shop(&job);
    shop.write(
        "count.sql",
        "select count(*) as n from gold.days where day = :day and orders >= {{least}};\nselect orders as n from gold.days;\n",
    );
    let said = shop.says(0, &["job", "run", "nightly", "--param", "day=friday"]);
    assert_eq!(csv(&shop, "select day, orders from gold.days"), "day,orders\nfriday,2\n");
    assert_eq!(
        ends(&said),
        ["refresh SUCCEEDED", "count SUCCEEDED", "many SUCCEEDED", "one_0 SUCCEEDED", "one_1 SUCCEEDED", "each SUCCEEDED"]
    );
    let last = last(&said);
    assert_eq!((&last["result_state"], &last["exit_code"]), (&"SUCCEEDED".into(), &0.into()));
    let recorded = csv(&shop, "select job_name, result_state, job_parameters['day'] as day from system.lakeflow.job_run_timeline");
    assert_eq!(recorded, "job_name,result_state,day\nnightly,SUCCEEDED,friday\n");
    let said = shop.says(2, &["job", "run", "nightly", "--param", "dya=friday"]);
    assert!(said.contains("CL0021") && said.contains("job nightly has no parameter"), "{said}");
}

#[test]
fn a_task_that_fails_is_tried_again_told_of_and_decides_the_exit_code() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while !text.contains("event_type") || !text.trim_end().ends_with('}') {
            let count = stream.read(&mut piece).unwrap();
            text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n").unwrap();
        text
    });
    let shop = shop(&format!(
        "email_notifications: {{on_failure: [ann@example.com]}}
webhook_notifications: {{on_failure: [{{id: \"http://{address}/hook\"}}, {{id: \"http://127.0.0.1:1/gone\"}}]}}
tasks:
  - {{task_key: broken, max_retries: 1, sql_task: {{warehouse_id: w, file: {{path: broken.sql}}}}}}
  - {{task_key: after, depends_on: [{{task_key: broken}}], {REFRESH}}}
"
    ));
    shop.write("broken.sql", "select nothing from gold.nowhere");
    let said = shop.says(2, &["job", "run", "nightly"]);
    assert_eq!(ends(&said), ["broken FAILED", "broken FAILED"]);
    let heard = heard.join().unwrap();
    assert!(heard.starts_with("POST /hook ") && heard.contains("\"event_type\":\"jobs.on_failure\""), "{heard}");
    let told: Vec<Value> = events(&said).into_iter().filter(|event| event["event"] == "notification").collect();
    assert_eq!(told.iter().filter(|event| event["kind"] == "email" && event["to"][0] == "ann@example.com").count(), 1);
    let rows = csv(&shop, "select task_key, result_state from system.lakeflow.job_task_run_timeline order by run_id");
    assert_eq!(rows, "task_key,result_state\nbroken,FAILED\nbroken,FAILED\n");
    assert!(last(&said)["tasks"].to_string().contains("UPSTREAM_FAILED"));
}

#[test]
fn one_job_runs_another_and_only_chosen_tasks_where_that_is_asked() {
    let shop = shop(&format!("tasks:\n  - {{task_key: a, {REFRESH}}}\n  - {{task_key: b, depends_on: [{{task_key: a}}], {REFRESH}}}"));
    let root = std::fs::read_to_string(shop.path("databricks.yml")).unwrap();
    let other = "    outer: {name: outer, tasks: [{task_key: inner, run_job_task: {job_id: \"${resources.jobs.nightly.id}\"}}]}\n";
    shop.write("databricks.yml", &format!("{root}{other}"));
    assert_eq!(ends(&shop.says(0, &["job", "run", "outer"])), ["a SUCCEEDED", "b SUCCEEDED", "inner SUCCEEDED"]);
    let runs = csv(&shop, "select job_name, trigger_type from system.lakeflow.job_run_timeline order by run_id");
    assert_eq!(runs, "job_name,trigger_type\nouter,ONETIME\nnightly,RUN_JOB_TASK\n");
    assert_eq!(ends(&shop.says(0, &["job", "run", "nightly", "--tasks", "b"])), ["b SUCCEEDED"]);
    assert!(shop.says(2, &["job", "run", "nightly", "--tasks", "c"]).contains("job nightly has no task"));
    let jobs = csv(&shop, "select name, count(*) as n from system.lakeflow.jobs group by name order by name");
    assert_eq!(jobs, "name,n\nnightly,1\nouter,1\n", "a definition that stays is written once");
}

#[test]
fn a_job_with_tasks_that_are_not_run_here_does_not_begin() {
    let shop = shop("tasks: [{task_key: a, sql_task: {warehouse_id: w, query: {query_id: q}}}]");
    let said = shop.says(2, &["job", "run", "nightly"]);
    assert!(said.contains("CL0022") && said.contains("databricks.yml:11:15: task a of job nightly is not run here"), "{said}");
    assert!(!shop.path("data/lake").exists());
    assert!(shop.says(0, &["validate"]).contains("databricks.yml:11:15: warning: sql_task a is not run here"));
}

#[test]
fn a_job_that_runs_a_job_with_tasks_that_are_not_run_here_begins_no_task() {
    let inner =
        "tasks: [{task_key: a, notebook_task: {notebook_path: a.py}}, {task_key: b, sql_task: {warehouse_id: w, query: {query_id: q}}}]";
    let shop = shop(inner);
    shop.write("a.py", "# Databricks notebook source\nprint()\n");
    let root = std::fs::read_to_string(shop.path("databricks.yml")).unwrap();
    let outer = format!(
        "    outer:\n      tasks:\n        - {{task_key: first, {REFRESH}}}\n        - task_key: each\n          depends_on: [{{task_key: first}}]\n          for_each_task: {{inputs: '[1]', task: {{task_key: one, run_job_task: {{job_id: \"${{resources.jobs.nightly.id}}\"}}}}}}\n"
    );
    shop.write("databricks.yml", &format!("{root}{outer}"));
    let said = shop.says(2, &["job", "run", "outer"]);
    for task in ["databricks.yml:11:15: task a of job nightly", "task b of job nightly"] {
        assert!(said.contains(task), "{task} is not in {said}");
    }
    assert!(!shop.path("data/lake").exists(), "{said}");
    let validated = shop.says(0, &["validate"]);
    assert_eq!(validated.matches("is not run here").count(), 2, "{validated}");
}

#[test]
fn lineage_of_a_jobs_task_is_the_jobs_and_events_go_where_they_are_asked_to() {
    let shop = shop(&format!(
        "tasks: [{{task_key: refresh, {REFRESH}}}, {{task_key: more, depends_on: [{{task_key: refresh}}], sql_task: {{warehouse_id: w, file: {{path: more.sql}}}}}}]"
    ));
    shop.write("more.sql", "CREATE OR REFRESH MATERIALIZED VIEW gold.more AS SELECT count(*) AS n FROM bronze.orders;\n");
    let said = shop.says(0, &["job", "run", "nightly", "--openlineage-file", "events.jsonl"]);
    let (run, job) = (last(&said)["run_id"].as_str().unwrap().to_owned(), events(&said)[0]["job_id"].as_str().unwrap().to_owned());
    let rows = csv(
        &shop,
        "select entity_type, entity_id, entity_run_id, entity_metadata.job_info.job_run_id as of_job, entity_metadata.dlt_pipeline_info.dlt_pipeline_id as pipeline, target_table_name from system.access.table_lineage order by target_table_name",
    );
    let of = |pipeline: &str, table: &str| format!("JOB,{job},{run},{run},{pipeline},{table}\n");
    let columns = "entity_type,entity_id,entity_run_id,of_job,pipeline,target_table_name\n";
    assert_eq!(rows, format!("{columns}{}{}{}", of("retail", "days"), of("sql", "more"), of("retail", "orders")));
    let shown = shop.says(0, &["show", "lineage", "-o", "csv"]);
    assert!(shown.contains(",retail,") && shown.contains(",sql,"), "{shown}");

    let told = events(&std::fs::read_to_string(shop.path("events.jsonl")).unwrap());
    let kinds: Vec<String> =
        told.iter().map(|event| format!("{} {}", event["eventType"].as_str().unwrap(), event["job"]["name"].as_str().unwrap())).collect();
    for kind in ["START retail.bronze.orders", "COMPLETE retail.bronze.orders", "COMPLETE retail.gold.days", "COMPLETE sql.gold.more"] {
        assert_eq!(kinds.iter().filter(|one| *one == kind).count(), 1, "{kinds:?}");
    }
    let roots: std::collections::BTreeSet<String> = told.iter().map(|event| event["run"]["facets"]["parent"]["root"].to_string()).collect();
    assert!(roots.len() == 1 && roots.first().unwrap().contains("\"name\":\"nightly\""), "{roots:?}");
    let task = &told[0]["run"]["facets"]["tributary_task"]["task"];
    assert_eq!((&task["task"], &task["jobRunId"]), (&"refresh".into(), &run.as_str().into()));

    shop.says(0, &["run", "--pipeline", "retail"]);
    let alone = csv(&shop, "select count(*) as n from system.access.table_lineage where entity_type = 'PIPELINE'");
    assert_eq!(alone, "n\n0\n", "nothing was new");
    shop.write("data/raw/orders/2.jsonl", "{\"id\":3,\"status\":\"new\",\"seq\":1}\n");
    shop.says(0, &["run", "--pipeline", "retail"]);
    let alone =
        csv(&shop, "select distinct entity_type, entity_id from system.access.table_lineage where entity_metadata.job_info is null");
    assert_eq!(alone, "entity_type,entity_id\nPIPELINE,retail\n");
}

#[test]
fn what_a_failed_task_says_next_is_typed_as_it_stands() {
    let shop = shop(&format!(
        "parameters: [{{name: day, default: monday}}]\ntasks: [{{task_key: refresh, {REFRESH}}}, {{task_key: count, sql_task: {{warehouse_id: w, file: {{path: count.sql}}}}}}]"
    ));
    shop.write("count.sql", "select nothing from gold.nowhere");
    shop.write("shop.sql", &format!("{SQL}CREATE OR REFRESH STREAMING TABLE silver.orders;\nCREATE FLOW o AS AUTO CDC INTO silver.orders FROM STREAM(bronze.orders) KEYS (id) SEQUENCE BY seq;\n"));
    shop.says(2, &["job", "run", "nightly", "-w", "lake"]);
    let text = std::fs::read_to_string(shop.path("shop.sql")).unwrap();
    shop.write("shop.sql", &text.replace("KEYS (id)", "KEYS (id, status)"));
    let said = shop.says(2, &["job", "run", "nightly", "-w", "lake", "--target", "default"]);
    let next = "tributary run --full-refresh silver.orders --warehouse lake --pipeline retail --target default --conf day=monday";
    assert_eq!(said.matches(next).count(), 3, "of the dataset, of its task, of the job: {said}");
    let tables = "tributary show tables --warehouse lake";
    assert!(said.contains(&format!("(next: {tables})")), "{said}");
    shop.says(0, &tables.split(' ').skip(1).collect::<Vec<_>>());
    shop.says(0, &next.split(' ').skip(1).collect::<Vec<_>>());
    shop.write("count.sql", "select 1");
    shop.says(0, &["job", "run", "nightly", "-w", "lake"]);
}

#[test]
fn a_job_that_was_killed_leaves_no_lock_and_is_known_to_the_next_run() {
    let shop = shop(&format!(
        "tasks:\n  - {{task_key: a, {REFRESH}}}\n  - {{task_key: b, depends_on: [{{task_key: a}}], max_retries: -1, min_retry_interval_millis: 60000, sql_task: {{warehouse_id: w, file: {{path: b.sql}}}}}}"
    ));
    shop.write("b.sql", "select nothing from gold.nowhere");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
    command.args(["job", "run", "nightly"]).current_dir(shop.path("")).env_clear().stdout(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut out = running.stdout.take().unwrap();
    let (mut text, mut piece, begun) = (String::new(), [0; 4096], Instant::now());
    while !text.contains("\"again\":true") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{text}");
        let count = out.read(&mut piece).unwrap();
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    let busy = shop.says(75, &["job", "run", "nightly"]);
    assert!(busy.contains("MAX_CONCURRENT_RUNS_EXCEEDED"), "{busy}");
    running.kill().unwrap();
    running.wait().unwrap();
    shop.write("b.sql", "select 1 as one");
    shop.says(0, &["job", "run", "nightly"]);
    let runs = csv(&shop, "select result_state, termination_code from system.lakeflow.job_run_timeline order by run_id");
    assert_eq!(runs, "result_state,termination_code\nERROR,INTERNAL_ERROR\nSKIPPED,MAX_CONCURRENT_RUNS_EXCEEDED\nSUCCEEDED,SUCCESS\n");
}
