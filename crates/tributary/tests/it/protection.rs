//! Masks and row filters that statements recorded, and runs that write or read the tables they are on.

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

#[tokio::test]
async fn a_run_that_copies_from_a_masked_table_is_refused_until_a_person_accepts_it_and_drop_table_forgets_the_mask() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let silver = "silver: [{table: silver.people, sources: [raw.people], policy: append}]\ngold:";
    let pipeline = Pipeline::from_yaml(&[("people.yml", &PIPELINE.replace("gold:", silver))]).expect("a pipeline");
    let made = "CREATE TABLE raw.people (email STRING); INSERT INTO raw.people VALUES ('a')";
    execute(&lake, &format!("CREATE SCHEMA raw; {made}; CREATE FUNCTION raw.hide(e STRING) RETURNS STRING RETURN '***'")).await;
    execute(&lake, "ALTER TABLE RAW.People ALTER COLUMN email SET MASK raw.hide; GRANT SELECT ON TABLE raw.people TO `ann`").await;
    let run = async |options: RunOptions| lake.run(&pipeline, options).await;
    let clause = |reader: &str| format!("MASK main.raw.hide of `email` on `main.raw.people`, which `{reader}` reads");
    match run(RunOptions::default()).await {
        Err(Error::Unprotected { clauses }) => assert_eq!(clauses, ["gold.count", "gold.people", "silver.people"].map(clause)),
        other => panic!("{other:?}"),
    }
    match run(RunOptions { only: vec![name("silver.people")], ..RunOptions::default() }).await {
        Err(Error::Unprotected { clauses }) => assert_eq!(clauses, [clause("silver.people")]),
        other => panic!("{other:?}"),
    }
    assert!(lake.table("silver.people").await.is_err(), "nothing was touched");
    let plan = lake.plan(&pipeline, &RunOptions::default()).await.expect("a plan");
    for dataset in &plan.datasets {
        assert!(dataset.notes.iter().any(|note| note.ends_with(&clause(&dataset.table.to_string()))), "{plan:?}");
    }
    let report = run(RunOptions { accept_unprotected: true, ..RunOptions::default() }).await.expect("accepted");
    assert_eq!(report.unprotected, ["gold.count", "gold.people", "silver.people"].map(clause));

    // as on the platform, what is recorded of a table goes with it: one made again with its name has neither mask nor grant
    let options = SessionOptions { destroy: vec!["raw.people".to_owned()], ..SessionOptions::default() };
    Session::new(&lake, options).run("DROP TABLE raw.people").await.expect("dropped");
    execute(&lake, made).await;
    let report = run(RunOptions::default()).await.expect("no mask");
    assert!(report.unprotected.is_empty(), "{report:?}");
    let left =
        "select (select count(*) from system.tributary.masks) + (select count(*) from system.tributary.grants where name = 'people') as n";
    let rows = tributary::sql::query(&lake, left).await.expect("a query").collect().await.expect("rows");
    assert_eq!(tributary::arrow::util::pretty::pretty_format_batches(&rows).expect("text").to_string().lines().nth(3), Some("| 0 |"));
}
