//! The published near-real-time example, as it stands, over the repository's sample data.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The repository's own bundle, with a warehouse of its own.
struct Repository {
    warehouse: tempfile::TempDir,
}

impl Repository {
    fn new() -> Self {
        Self { warehouse: tempfile::tempdir().unwrap() }
    }

    /// What a command prints when it exits with 0.
    fn says(&self, arguments: &[&str]) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
        command.args(arguments).arg("--warehouse").arg(self.warehouse.path()).current_dir(root).env_clear();
        let output = command.output().unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{out}\n{err}");
        out
    }

    fn csv(&self, query: &str) -> String {
        self.says(&["sql", query, "--catalogue", "prod", "-o", "csv"])
    }
}

/// An article's query, its non-breaking spaces and blank lines included.
const MONITORING: &str = "SELECT job_name, result_state, DATEDIFF(second, start_time, end_time) AS duration_sec \n\nFROM system.lakeflow.job_run_timeline \n\nWHERE start_time >= CURRENT_TIMESTAMP - INTERVAL 24 HOURS \n\nORDER BY start_time DESC; ";

/// Worked out by hand: Ann's mail address changed once, so each of her orders has a row a version; Bob's second version has the name
/// and address of the first, so both are in one group and count his events twice; nobody knows customer 4; `scroll` is no event type.
const ACTIVITY: &str = "order_id,customer_id,customer_name,email,order_amount,order_status,total_events,purchase_events
101,1,Ann,ann@example.com,40.00,shipped,3,1
101,1,Ann,ann@new.example.com,40.00,shipped,3,1
102,1,Ann,ann@example.com,15.50,placed,3,1
102,1,Ann,ann@new.example.com,15.50,placed,3,1
103,2,Bob,bob@example.com,99.99,paid,4,2
104,4,,,5.00,placed,0,0
";

#[test]
fn the_published_pipeline_ends_with_the_rows_worked_out_by_hand() {
    let repository = Repository::new();
    repository.says(&["run", "--target", "dev", "--pipeline", "lakeflow"]);
    assert_eq!(repository.csv("select * from prod.gold.customer_activity order by order_id, email"), ACTIVITY);
    let again = repository.says(&["run", "--target", "dev", "--pipeline", "lakeflow"]);
    let last: Value = serde_json::from_str(again.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["nothing_new"]), (&Value::from("run_finished"), &Value::from(true)));
}

#[test]
fn the_published_monitoring_query_prints_the_job_just_run() {
    let repository = Repository::new();
    repository.says(&["job", "run", "lakeflow_demo", "--target", "dev"]);
    assert_eq!(repository.csv("select * from prod.gold.customer_activity order by order_id, email"), ACTIVITY);
    let rows = repository.csv(MONITORING);
    let (head, row) = rows.trim_end().split_once('\n').unwrap();
    assert_eq!(head, "job_name,result_state,duration_sec");
    let cells: Vec<&str> = row.rsplitn(3, ',').collect();
    assert!(cells[2].ends_with("lakeflow-demo") && cells[1] == "SUCCEEDED" && cells[0].parse::<u64>().is_ok(), "{row}");
    let tasks = repository.csv("select task_key, result_state from system.lakeflow.job_task_run_timeline order by run_id");
    assert_eq!(tasks, "task_key,result_state\ningest_sql_server_cdc,SUCCEEDED\ntransform_bronze_to_gold,SUCCEEDED\n");
    let updates = repository.csv("select count(*) as n from system.lakeflow.pipeline_update_timeline where result_state = 'COMPLETED'");
    assert_eq!(updates, "n\n2\n");
    let joined = "select j.name from system.lakeflow.jobs j join system.lakeflow.job_run_timeline r on j.job_id = r.job_id";
    assert!(repository.csv(joined).trim_end().ends_with("lakeflow-demo"));
}
