//! Functions that statements made, and the views that call them.

use crate::statements::{Sql, lines};
use tributary::sql::SessionOptions;
use tributary::{Lake, Layer, Pipeline, PlannedWork, RunOptions, SetupOutcome, Status};

const PIPELINE: &str = "
name: prices
feeds: []
external: [raw.prices]
gold:
  - {table: gold.priced, query: select tools.gross(net) as gross from raw.prices}
  - {table: gold.count, query: select count(*) as net_taxes from raw.prices}
";

async fn gross(lake: &Lake) -> Vec<String> {
    let frame = tributary::sql::query(lake, "select gross from gold.priced order by gross").await.expect("a query");
    frame.collect().await.expect("rows").iter().flat_map(lines).collect()
}

#[tokio::test]
async fn a_view_is_made_anew_once_a_function_that_it_calls_is_another_however_deep_and_no_other_view_is() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let pipeline = Pipeline::from_yaml(&[("prices.yml", PIPELINE)]).expect("a pipeline");
    let mut sql = Sql::over(&lake, SessionOptions::default());
    let mut says = async |text: &str| {
        let said = sql.says(text).await;
        assert!(!said.contains("error"), "{said}");
    };
    let run = async || lake.run(&pipeline, RunOptions::default()).await.expect("a report");
    says(
        "CREATE SCHEMA raw; CREATE TABLE raw.prices (net BIGINT); INSERT INTO raw.prices VALUES (10), (20); CREATE SCHEMA tools;
         CREATE FUNCTION tools.tax(x BIGINT) RETURNS BIGINT RETURN x + 1;
         CREATE FUNCTION tools.gross(x BIGINT) RETURNS BIGINT RETURN tools.tax(x)",
    )
    .await;
    assert!(run().await.datasets.iter().all(|dataset| dataset.status == Status::Committed));
    assert_eq!(gross(&lake).await, ["11", "21"]);
    assert!(run().await.nothing_new());

    for (text, part, rows) in [
        ("CREATE OR REPLACE FUNCTION tools.gross(x BIGINT) RETURNS BIGINT RETURN tools.tax(x) * 2", "main.tools.gross", ["22", "42"]),
        ("CREATE OR REPLACE FUNCTION tools.tax(x BIGINT) RETURNS BIGINT RETURN x + 5", "main.tools.tax", ["30", "50"]),
    ] {
        says(text).await;
        let plan = lake.plan(&pipeline, &RunOptions::default()).await.expect("a plan");
        let planned = plan.datasets.iter().map(|dataset| (dataset.table.to_string(), dataset.work)).collect::<Vec<_>>();
        let expected = [("gold.count".to_owned(), PlannedWork::Nothing), ("gold.priced".to_owned(), PlannedWork::Refreshes)];
        assert!(expected.iter().all(|one| planned.contains(one)), "{planned:?}");
        let changed = plan.datasets.iter().flat_map(|dataset| &dataset.definition).map(|change| change.part.clone()).collect::<Vec<_>>();
        assert_eq!(changed, [format!("function {part}")]);
        let report = run().await;
        let of = |table: &str| report.datasets.iter().find(|dataset| dataset.table == table).expect("its report");
        assert_eq!((of("gold.priced").status, of("gold.count").status), (Status::Committed, Status::NothingNew));
        assert!(of("gold.priced").reason.starts_with("the definition changed"), "{report:?}");
        assert_eq!(gross(&lake).await, rows);
        assert!(run().await.nothing_new());
    }
    says("CREATE FUNCTION tools.taxes(x BIGINT) RETURNS BIGINT RETURN x").await;
    assert!(run().await.nothing_new(), "no view calls it");
}

#[tokio::test]
async fn a_view_that_calls_a_function_of_the_lake_is_set_up_as_its_run_would_make_it() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let pipeline = Pipeline::from_yaml(&[("prices.yml", PIPELINE)]).expect("a pipeline");
    let said = Sql::over(&lake, SessionOptions::default())
        .says(
            "CREATE SCHEMA raw; CREATE TABLE raw.prices (net BIGINT); CREATE SCHEMA tools;
             CREATE FUNCTION tools.gross(x BIGINT) RETURNS BIGINT RETURN x + 1",
        )
        .await;
    assert!(!said.contains("error"), "{said}");
    let priced = "gold.priced".parse().expect("a name");
    assert_eq!(lake.declared(&pipeline, &priced).await.expect("a declaration").expect("columns").columns[0].name, "gross");
    let setups = lake.setup(&pipeline, &Layer::ALL, &[]).await.expect("setup");
    assert!(setups.iter().all(|setup| setup.outcome == SetupOutcome::Created), "{setups:?}");
}

const SILVER: &str = "
name: prices
feeds: []
external: [raw.prices]
silver:
  - {table: silver.priced, sources: [raw.prices], policy: append, select: select tools.gross(net) as gross from raw.prices}
  - {table: silver.plain, sources: [raw.prices], policy: append}
";

#[tokio::test]
async fn a_silver_table_keeps_rows_made_with_a_replaced_function_and_plan_and_report_say_so_until_a_full_refresh() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let pipeline = Pipeline::from_yaml(&[("prices.yml", SILVER)]).expect("a pipeline");
    let mut sql = Sql::over(&lake, SessionOptions::default());
    sql.says("CREATE SCHEMA raw; CREATE TABLE raw.prices (net BIGINT); INSERT INTO raw.prices VALUES (10); CREATE SCHEMA tools").await;
    sql.says("CREATE FUNCTION tools.gross(x BIGINT) RETURNS BIGINT RETURN x + 1").await;
    let run = async |full_refresh: Vec<tributary::TableName>| {
        lake.run(&pipeline, RunOptions { full_refresh, ..RunOptions::default() }).await.expect("a report")
    };
    let notes = |report: &tributary::RunReport| report.datasets.iter().flat_map(|dataset| dataset.notes.clone()).collect::<Vec<_>>();
    assert!(notes(&run(Vec::new()).await).is_empty());
    sql.says("CREATE OR REPLACE FUNCTION tools.gross(x BIGINT) RETURNS BIGINT RETURN x * 2; INSERT INTO raw.prices VALUES (20)").await;
    let plan = lake.plan(&pipeline, &RunOptions::default()).await.expect("a plan").to_text();
    assert!(
        plan.contains("function main.tools.gross") && plan.contains("--full-refresh silver.priced makes the earlier ones anew"),
        "{plan}"
    );
    let said = notes(&run(Vec::new()).await);
    assert!(said.len() == 1 && said[0].contains("main.tools.gross") && said[0].contains("--full-refresh silver.priced"), "{said:?}");
    let gross = "SELECT gross FROM silver.priced ORDER BY gross";
    assert_eq!(sql.says(gross).await, "11\n40");
    assert!(notes(&run(Vec::new()).await).is_empty());
    let report = run(vec!["silver.priced".parse().expect("a name")]).await;
    assert!(notes(&report).iter().all(|note| !note.contains("tools.gross")), "{report:?}");
    assert_eq!(sql.says(gross).await, "20\n40");
}
