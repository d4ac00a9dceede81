//! One text means one thing, in `sql`, in a view, in a select and in an expectation: what Spark means, or a refusal.

use std::fs;
use std::sync::Arc;

use tributary::object_store::memory::InMemory;
use tributary::{Fault, Lake, Pipeline, RunOptions, RunReport, Status};

use crate::shop;

/// Expressions over the row `id 7, amount 10.50, name 'ada', nothing null`, and what the dialect gives, as an expression that needs
/// no rule, and as text.
const MEANINGS: &[(&str, &str, &str)] = &[
    // whole numbers
    ("id / 2", "cast(3.5 as double)", "3.5"),
    ("5 / 2", "cast(2.5 as double)", "2.5"),
    ("id % 4", "3", "3"),
    ("id + 9223372036854775800", "9223372036854775807", "9223372036854775807"),
    // decimals keep Spark's digits
    ("amount / 4", "cast('2.625000' as decimal(13, 6))", "2.625000"),
    ("amount / id", "cast('1.50000000000000000000000' as decimal(38, 23))", "1.50000000000000000000000"),
    ("round(amount / 4, 1)", "cast('2.6' as decimal(9, 1))", "2.6"),
    ("amount * 1.1", "cast('11.550' as decimal(11, 3))", "11.550"),
    // texts
    ("substring(name, 0, 2)", "'ad'", "ad"),
    ("substring(name, -2)", "'da'", "da"),
    ("concat(name, '!')", "'ada!'", "ada!"),
    ("concat(name, nothing)", "cast(null as string)", "∅"),
    ("name || id", "'ada7'", "ada7"),
    ("NAME || Nothing", "cast(null as string)", "∅"),
    // implicit casts and nulls
    ("cast('12' as int) + id", "19", "19"),
    ("try_cast(name as int)", "cast(null as int)", "∅"),
    ("nothing <=> null", "true", "true"),
    ("nothing = nothing", "cast(null as boolean)", "∅"),
    ("date '2024-01-31' < '2024-02-01'", "true", "true"),
    ("coalesce(nothing, name)", "'ada'", "ada"),
    ("date_format(cast('2024-05-01 12:00:00' as timestamp), 'dd.MM.yyyy HH:mm')", "'01.05.2024 12:00'", "01.05.2024 12:00"),
    ("name = '7' or '7' = id", "true", "true"),
    ("transform(array(id, 1), x -> x + 1)[0]", "8", "8"),
    ("cast('2024-05-01 12:00:00' as timestamp)", "timestamp '2024-05-01 12:00:00'", "2024-05-01T12:00:00Z"),
];

/// Texts that the engine would answer otherwise than the dialect, or not at all, each with a word of the refusal.
const REFUSALS: &[(&str, &str)] = &[
    ("to_number(name, '9')", "`to_number`"),
    ("to_char(id, '9')", "`to_char`"),
    ("monotonically_increasing_id()", "`monotonically_increasing_id`"),
    ("uper(name)", "the nearest known name is `upper`"),
    ("nmae", "did you mean `name`?"),
    ("name collate utf8_binary", "COLLATE"),
    ("extract(epoch from current_date())", "extract(EPOCH"),
];

/// Calls over values of a wrong type, and what stands in every message.
const MISTYPED: &[(&str, &str)] = &[
    ("element_at(name, 1)", "`element_at` takes an array or a map"),
    ("size(name)", "`size` takes an array or a map"),
    ("id = true", "oolean"),
];

fn pipeline(select: &str, expectations: &[String], query: &str) -> Result<Pipeline, tributary::Error> {
    let rules: String =
        expectations.iter().enumerate().map(|(at, rule)| format!("      - {{name: rule_{at}, expression: {rule:?}}}\n")).collect();
    let rules = if rules.is_empty() { String::new() } else { format!("    expectations:\n{rules}") };
    let text = format!(
        "
name: meanings
feeds:
  - name: rows
    table: bronze.rows
    decode: json
    source: {{files: {{path: rows, format: jsonl}}}}
    columns: [{{name: id, type: long}}, {{name: amount, type: 'decimal(8,2)'}}, {{name: name, type: string}}, {{name: nothing, type: string}}]
silver:
  - table: silver.rows
    sources: [bronze.rows]
    policy: append
    select: {select:?}
{rules}gold:
  - table: gold.rows
    query: {query:?}
"
    );
    Pipeline::from_yaml(&[("meanings.yml", &text)])
}

async fn run(lake: &Lake, pipeline: &Pipeline) -> RunReport {
    let base = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(base.path().join("rows")).expect("a folder");
    fs::write(base.path().join("rows/1.jsonl"), "{\"id\":7,\"amount\":10.5,\"name\":\"ada\",\"nothing\":null}\n").expect("a drop");
    lake.run(pipeline, RunOptions { base_data_path: base.path().to_owned(), ..RunOptions::default() }).await.expect("a report")
}

async fn row(lake: &Lake, query: &str) -> Vec<String> {
    let batches =
        tributary::sql::query(lake, query).await.unwrap_or_else(|error| panic!("{query}: {error}")).collect().await.expect("rows");
    let rows: Vec<String> = batches.iter().flat_map(shop::rows_as_text).collect();
    assert_eq!(rows.len(), 1, "{query}");
    rows[0].split('|').map(str::to_owned).collect()
}

/// What a select and a view with the text, and a select with the rule, fail with: the dataset and its error.
async fn said_at_the_doors(text: &str, rule: &str) -> Vec<(&'static str, String)> {
    let (all, one) = ("select * from bronze.rows", "select 1 as one from bronze.rows");
    let column = format!("select id, {text} as x from bronze.rows");
    let doors = [
        ("silver.rows", pipeline(&column, &[], one)),
        ("silver.rows", pipeline(all, &[rule.to_owned()], one)),
        ("gold.rows", pipeline(all, &[], &column)),
    ];
    let mut said = Vec::new();
    for (table, pipeline) in doors {
        let report = run(&shop::open(Arc::new(InMemory::new())), &pipeline.expect("a pipeline")).await;
        let dataset = report.datasets.iter().find(|dataset| dataset.table == table).expect("a dataset");
        let error = dataset.error.as_ref().unwrap_or_else(|| panic!("{table}: {text} was executed"));
        said.push((table, serde_json::to_string(error).expect("JSON")));
    }
    said
}

#[tokio::test]
async fn every_text_means_the_same_through_every_door() {
    let columns: Vec<String> = MEANINGS.iter().enumerate().map(|(at, (text, ..))| format!("{text} as c{at}")).collect();
    let rules: Vec<String> = MEANINGS.iter().map(|(text, same, _)| format!("({text}) <=> ({same})")).collect();
    let names: Vec<String> = (0..MEANINGS.len()).map(|at| format!("c{at}")).collect();
    let (columns, names) = (columns.join(", "), names.join(", "));
    let select = format!("select *, {columns} from bronze.rows");
    let pipeline = pipeline(&select, &rules, &format!("select {columns} from bronze.rows")).expect("a pipeline");
    let lake = shop::open(Arc::new(InMemory::new()));
    let report = run(&lake, &pipeline).await;
    assert!(report.datasets.iter().all(|dataset| dataset.status == Status::Committed), "{report:#?}");
    let expected: Vec<&str> = MEANINGS.iter().map(|(.., text)| *text).collect();
    assert_eq!(row(&lake, &format!("select {columns} from bronze.rows")).await, expected, "sql");
    assert_eq!(row(&lake, &format!("select {names} from gold.rows")).await, expected, "a view");
    assert_eq!(row(&lake, &format!("select {names} from silver.rows")).await, expected, "a select");
    let failed: Vec<_> = report.datasets.iter().flat_map(|dataset| &dataset.expectations).filter(|(_, rows)| **rows > 0).collect();
    assert!(failed.is_empty(), "{failed:?} of {rules:#?}");
}

/// Nulls come first when ascending, through every door that orders.
#[tokio::test]
async fn nulls_are_ordered_alike_in_sql_and_in_a_view() {
    let query = "select row_number() over (order by v) as place, v from (values (1), (null)) as t(v)";
    let pipeline = pipeline("select * from bronze.rows", &[], &format!("select place from ({query}) where v is null")).expect("a pipeline");
    let lake = shop::open(Arc::new(InMemory::new()));
    run(&lake, &pipeline).await;
    assert_eq!(row(&lake, &format!("select place from ({query}) where v is null")).await, ["1"]);
    assert_eq!(row(&lake, "select place from gold.rows").await, ["1"]);
}

#[tokio::test]
async fn what_is_refused_is_refused_through_every_door() {
    for (text, word) in REFUSALS {
        let lake = shop::open(Arc::new(InMemory::new()));
        let plain = pipeline("select * from bronze.rows", &[], "select 1 as one from bronze.rows").expect("a pipeline");
        run(&lake, &plain).await;
        let said = tributary::sql::query(&lake, &format!("select {text} as x from bronze.rows")).await.expect_err(text);
        assert!(said.to_string().contains(word) && said.code().to_string().starts_with("SQ"), "sql: {text}: {said}");
        for (table, said) in said_at_the_doors(text, &format!("({text}) is null")).await {
            assert!(said.contains(word) && said.contains("SQ000"), "{table}: {text}: {said}");
        }
    }
}

#[tokio::test]
async fn a_value_of_a_wrong_type_is_told_with_its_function_through_every_door() {
    for (text, word) in MISTYPED {
        for (table, said) in said_at_the_doors(text, &format!("({text}) is null")).await {
            assert!(said.contains(word) && said.contains("\"exit_code\":2"), "{table}: {text}: {said}");
        }
    }
}

/// A whole number that grows too large stops through every door, and no message holds the value.
#[tokio::test]
async fn an_overflow_stops_through_every_door_and_tells_no_value() {
    let text = "id * 4611686018427387904";
    for (table, said) in said_at_the_doors(text, &format!("{text} > 0")).await {
        assert!(said.contains("too large") && !said.contains("46116") && !said.contains(" 7"), "{table}: {said}");
    }
}
