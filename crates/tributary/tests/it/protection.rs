//! Masks and row filters that statements recorded, and runs that write the tables they are on.

use tributary::sql::{Session, SessionOptions};
use tributary::{Error, Lake, Pipeline, RunOptions, TableName};

const PIPELINE: &str = "
name: people
feeds: []
external: [raw.people]
gold:
  - {table: gold.people, query: select email from raw.people}
  - {table: gold.count, query: select count(*) as n from raw.people}
";

async fn execute(lake: &Lake, text: &str) {
    let options = SessionOptions { accept_unprotected: true, ..SessionOptions::default() };
    Session::new(lake, options).run(text).await.expect("statements");
}

fn name(table: &str) -> TableName {
    table.parse().expect("a name")
}

async fn version(lake: &Lake) -> u64 {
    lake.table("gold.people").await.expect("the table").version()
}

#[tokio::test]
async fn a_run_that_writes_a_table_with_a_recorded_mask_is_refused_until_a_person_accepts_it() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let pipeline = Pipeline::from_yaml(&[("people.yml", PIPELINE)]).expect("a pipeline");
    execute(
        &lake,
        "CREATE SCHEMA raw; CREATE TABLE raw.people (email STRING); INSERT INTO raw.people VALUES ('a');
         CREATE FUNCTION raw.hide(e STRING) RETURNS STRING RETURN '***'",
    )
    .await;
    let run = async |options: RunOptions| lake.run(&pipeline, options).await;
    let report = run(RunOptions::default()).await.expect("no mask yet");
    assert!(report.unprotected.is_empty() && report.datasets.iter().all(|dataset| dataset.error.is_none()), "{report:?}");

    execute(
        &lake,
        "ALTER TABLE gold.people ALTER COLUMN email SET MASK raw.hide; ALTER TABLE gold.people SET ROW FILTER raw.hide ON (email);
         INSERT INTO raw.people VALUES ('b')",
    )
    .await;
    let clauses = ["MASK main.raw.hide of `email` on `main.gold.people`", "ROW FILTER main.raw.hide on `main.gold.people`"];
    let before = version(&lake).await;
    match run(RunOptions::default()).await {
        Err(Error::Unprotected { clauses: found }) => assert_eq!(found, clauses),
        other => panic!("{other:?}"),
    }
    let plan = lake.plan(&pipeline, &RunOptions::default()).await.expect("a plan");
    let notes = |table: &str| plan.datasets.iter().find(|dataset| dataset.table == name(table)).expect("its plan").notes.join("\n");
    assert!(clauses.iter().all(|clause| notes("gold.people").contains(clause)), "{plan:?}");
    assert!(!notes("gold.count").contains("MASK"), "{plan:?}");
    let count = lake.table("gold.count").await.expect("the table");
    let alone = run(RunOptions { only: vec![name("gold.count")], ..RunOptions::default() }).await.expect("it writes no such table");
    assert!(alone.unprotected.is_empty());
    assert_eq!(version(&lake).await, before, "nothing was touched");
    assert_eq!(alone.datasets[0].version_to, Some(count.version() + 1), "the refused run left it to this one");

    let report = run(RunOptions { accept_unprotected: true, ..RunOptions::default() }).await.expect("accepted");
    assert_eq!(report.unprotected, clauses);
    assert!(version(&lake).await > before);

    execute(&lake, "ALTER TABLE gold.people ALTER COLUMN email DROP MASK; ALTER TABLE gold.people DROP ROW FILTER").await;
    assert!(run(RunOptions::default()).await.expect("no mask any more").unprotected.is_empty());
}
