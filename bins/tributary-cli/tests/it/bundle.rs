//! Bundles and SQL files as a shell sees them.

use serde_json::Value;

use crate::commands::Shop;

const ROOT: &str = "
bundle: {name: shop}
variables: {catalog: {default: main}}
resources:
  pipelines:
    retail:
      catalog: ${var.catalog}
      libraries: [{glob: {include: sql/**}}]
  jobs:
    hourly:
      tasks: [{task_key: refresh, pipeline_task: {pipeline_id: \"${resources.pipelines.retail.id}\"}}]
targets:
  dev: {default: true}
  prod: {variables: {catalog: prod}}
";
const ORDERS: &str = "CREATE OR REFRESH STREAMING TABLE silver.orders;
APPLY CHANGES INTO silver.orders FROM STREAM(bronze.orders) KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 1;
";
const FEED: &str = "CREATE OR REFRESH STREAMING TABLE bronze.orders (id BIGINT, status STRING, seq BIGINT)
AS SELECT * FROM STREAM read_files('orders', format => 'json', settleSeconds => 0);
";

fn shop() -> Shop {
    let shop = Shop::new();
    std::fs::remove_file(shop.path("pipeline.yml")).unwrap();
    shop.write("databricks.yml", ROOT);
    shop.write("sql/orders.sql", ORDERS);
    shop.write("sql/bronze.sql", FEED);
    shop
}

#[test]
fn a_sound_bundle_is_counted_and_exits_0() {
    let shop = shop();
    let said = shop.says(0, &["validate"]);
    assert!(said.ends_with("2 datasets, 1 job, 3 files checked, 0 errors\n"), "{said}");
    assert!(shop.says(0, &["validate", ".", "--target", "prod"]).ends_with("0 errors\n"));
    assert!(shop.says(0, &["validate", "sql"]).ends_with("2 datasets, 0 jobs, 2 files checked, 0 errors\n"));
}

#[test]
fn a_broken_bundle_says_each_error_with_its_place_and_exits_2() {
    let shop = shop();
    shop.write(
        "databricks.yml",
        &ROOT.replace("${var.catalog}", "${var.catlog}").replace("task_key: refresh", "task_key: refresh, max_retries: -7"),
    );
    let said = shop.says(2, &["validate"]);
    assert!(
        said.contains("databricks.yml:7:16: reference does not exist: ${var.catlog}; did you mean \"var.catalog\"? (BU0016)\n"),
        "{said}"
    );
    assert!(said.ends_with("3 files checked, 2 errors\n"), "{said}");
    let json: Value = serde_json::from_str(&shop.says(2, &["validate", "--output", "json"])).unwrap();
    let faults = json["faults"].as_array().unwrap();
    let place = |fault: &Value| (fault["code"].clone(), fault["file"].clone(), fault["line"].clone(), fault["column"].clone());
    assert_eq!(place(&faults[0]), ("BU0016".into(), "databricks.yml".into(), 7.into(), 16.into()));
    assert_eq!(json["errors"], 2);
    assert_eq!(json["datasets"][1]["keys"], serde_json::json!(["id"]));
    assert!(shop.says(2, &["validate", "--target", "porduction"]).contains("there is no target \"porduction\""));
    assert!(shop.says(2, &["validate", "--var", "catlog=x"]).contains("the variable catlog is not declared"));
}

#[test]
fn a_pipeline_of_the_bundle_is_run_by_its_key() {
    let shop = shop();
    shop.says(0, &["run", "--target", "dev", "--pipeline", "retail"]);
    assert_eq!(shop.says(0, &["sql", "select id, status from silver.orders order by id", "-o", "csv"]), "id,status\n1,new\n2,new\n");
    shop.says(0, &["run", "--target", "prod", "--pipeline", "retail"]);
    let rows = shop.says(0, &["sql", "select count(*) as n from silver.orders", "--catalogue", "prod", "-o", "csv"]);
    assert_eq!(rows, "n\n2\n");
    let said = shop.says(2, &["run", "--pipeline", "retial"]);
    assert!(said.contains("the bundle has no pipeline retial; did you mean"), "{said}");
}

#[test]
fn a_command_in_a_bundle_that_names_no_pipeline_is_told_which_there_are() {
    let shop = shop();
    let root = std::fs::read_to_string(shop.path("databricks.yml")).unwrap();
    shop.write("databricks.yml", &root.replace("  jobs:\n", "    other: {libraries: [{glob: {include: sql/**}}]}\n  jobs:\n"));
    for command in ["run", "plan", "graph", "setup", "doctor", "explain gold.v", "ddl silver.orders"] {
        let words: Vec<&str> = command.split(' ').chain(["--target", "prod"]).collect();
        let said = shop.says(2, &words);
        assert!(said.contains("CL0045") && said.contains("other, retail"), "{command}: {said}");
        assert!(said.contains(&format!("tributary {command} --pipeline other --target prod")), "{command}: {said}");
    }
    shop.says(0, &["run", "--pipeline", "retail", "--target", "prod"]);
    let listed = shop.says_in("sql", 2, &["run"]);
    assert!(listed.contains("other, retail"), "{listed}");
    shop.write("pipeline.yml", crate::commands::PIPELINE);
    shop.says(0, &["run"]);
}

#[test]
fn a_pipeline_that_hides_values_runs_only_when_told_that_it_does_not() {
    let shop = shop();
    shop.write("sql/bronze.sql", &FEED.replace("status STRING", "status STRING MASK hide"));
    let said = shop.says(2, &["run", "--pipeline", "retail"]);
    assert!(said.contains("MASK") && said.contains("tributary run --pipeline retail --accept-unprotected"), "{said}");
    let report = shop.path("report.json");
    let run = ["run", "--pipeline", "retail", "--accept-unprotected", "--log-format", "text", "--report", report.to_str().unwrap()];
    let said = shop.says(0, &run);
    assert!(said.contains("not protected: MASK") && said.contains("note: not protected: MASK"), "{said}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert!(document["unprotected"][0].as_str().unwrap().starts_with("MASK"), "{document}");
    let notes =
        shop.says(0, &["sql", "select count(*) as n from system.tributary.runs where notes like '%not protected: MASK%'", "-o", "csv"]);
    assert_eq!(notes, "n\n2\n");
}

#[test]
fn every_way_to_run_a_pipeline_says_what_of_its_text_is_not_done() {
    let shop = shop();
    let root = std::fs::read_to_string(shop.path("databricks.yml")).unwrap();
    shop.write("databricks.yml", &root.replace("{glob: {include: sql/**}}", "{glob: {include: sql/**}}, {file: {path: job.py}}"));
    shop.write("job.py", "print()\n");
    let view = "CREATE OR REFRESH MATERIALIZED VIEW gold.n (n BIGINT, PRIMARY KEY (n)) SCHEDULE EVERY 1 HOUR AS SELECT count(*) AS n FROM silver.orders;\n";
    shop.write("sql/gold.sql", view);
    let expected = [
        "job.py: only SQL is run (databricks.yml:8:7)",
        "PRIMARY KEY of gold.n: keys are for people; nothing enforces them (sql/gold.sql:1:55)",
        "SCHEDULE of gold.n",
    ];
    let says_all = |said: &str| {
        for clause in expected {
            assert!(said.contains(&format!("not applied: {clause}")), "{clause}\n{said}");
        }
    };
    says_all(&shop.says(0, &["plan", "--pipeline", "retail"]));
    let report = shop.path("report.json");
    let run = ["run", "--pipeline", "retail", "--log-format", "text", "--report", report.to_str().unwrap()];
    for said in [shop.says(0, &run), shop.says(0, &run), shop.says(0, &["job", "run", "hourly", "--log-format", "text"])] {
        says_all(&said);
    }
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let listed: Vec<&str> = document["not_applied"].as_array().unwrap().iter().map(|clause| clause.as_str().unwrap()).collect();
    assert_eq!(listed.len(), expected.len(), "{document}");
    assert!(listed.iter().zip(expected).all(|(listed, expected)| listed.starts_with(expected)), "{document}");
    let of_job = shop.says(0, &["job", "run", "hourly"]);
    let told = of_job.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).filter(|line| line["event"] == "not_done");
    assert_eq!(told.count(), expected.len(), "{of_job}");
    let validated = shop.says(0, &["validate"]);
    for clause in expected {
        assert!(validated.contains(clause.split(" (").next().unwrap().split(':').next().unwrap()), "{clause}\n{validated}");
    }
    let said = shop.says(0, &["sql", view]);
    assert!(said.contains("not applied: SCHEDULE of gold.n"), "{said}");
    shop.write("sql/gold.sql", "CREATE OR REFRESH MATERIALIZED VIEW gold.n AS SELECT count(*) AS n FROM silver.orders;\n");
    shop.write("databricks.yml", &root);
    assert!(!shop.says(0, &run).contains("not applied"));
}

#[test]
fn sql_files_alone_are_run_by_their_folder_or_one_by_one() {
    let shop = shop();
    std::fs::remove_file(shop.path("databricks.yml")).unwrap();
    let rows = |shop: &Shop| shop.says(0, &["sql", "select count(*) as n from silver.orders", "-o", "csv"]);
    shop.says(0, &["run", "--pipeline", "sql"]);
    assert_eq!(rows(&shop), "n\n2\n");
    shop.write("data/raw/orders/2.jsonl", "{\"id\":3,\"status\":\"new\",\"seq\":1}\n");
    shop.says(0, &["run", "--pipeline", "sql/bronze.sql", "--pipeline", "sql/orders.sql"]);
    assert_eq!(rows(&shop), "n\n3\n");
    assert!(shop.says(0, &["validate", "--pipeline", "sql"]).ends_with("2 datasets, 0 jobs, 2 files checked, 0 errors\n"));
    shop.write("feeds.yml", "name: shop\nfeeds: []\n");
    assert!(shop.says(2, &["run", "--pipeline", "sql", "--pipeline", "feeds.yml"]).contains("CL0019"));
    let said = shop.says(2, &["run", "--pipeline", "nowhere"]);
    assert!(said.contains("nowhere") && said.contains("CL0001"), "{said}");
}

#[test]
fn names_in_sql_stand_for_what_the_run_says_and_one_that_nobody_sets_stops_it_before_any_table() {
    let shop = shop();
    shop.write("sql/day.sql", "CREATE OR REFRESH MATERIALIZED VIEW gold.day AS SELECT '${day}' AS day, current_user() AS who;\n");
    let said = shop.says(2, &["run", "--pipeline", "retail"]);
    assert!(said.contains("sql/day.sql:1:") && said.contains("day"), "{said}");
    assert!(!shop.path("data/lake").exists(), "no table was touched");
    let root = std::fs::read_to_string(shop.path("databricks.yml")).unwrap();
    shop.write("databricks.yml", &root.replacen("resources:", "run_as: {user_name: ann@example.com}\nresources:", 1));
    shop.says(0, &["run", "--pipeline", "retail", "--conf", "day=monday"]);
    assert_eq!(shop.says(0, &["sql", "select day, who from gold.day", "-o", "csv"]), "day,who\nmonday,ann@example.com\n");
}
