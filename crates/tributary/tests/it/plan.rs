//! What a plan says, that it writes nothing, and that a run of it is refused once it no longer holds.

use std::path::Path;
use std::sync::Arc;

use tributary::object_store::ObjectStore;
use tributary::object_store::memory::InMemory;
use tributary::{DatasetPlan, ExitCode, Lake, Pipeline, Plan, PlannedWork, RunOptions};
use tributary_testkit::{FaultyStore, Mode, assert_golden};

use crate::shop::open;

const PIPELINE: &str = "
name: shop
feeds:
  - name: shop_orders
    table: bronze.orders
    decode: json
    schema_policy: widen
    source: {files: {path: orders, format: jsonl}}
    columns: [{name: id, type: long}, {name: status, type: string}, {name: amount, type: integer}, {name: seq, type: long}]
silver:
  - {table: silver.orders, sources: [bronze.orders], keys: [id], sequence_by: [seq], schema_policy: widen}
gold:
  - table: gold.by_status
    query: |-
      select status, count(*) as orders
      from silver.orders
      group by status
  - {table: gold.orders, query: select count(*) as orders from silver.orders}
";

const FIRST: &str = "{\"id\":1,\"status\":\"new\",\"amount\":5,\"seq\":1}\n{\"id\":2,\"status\":\"new\",\"amount\":7,\"seq\":1}\n";
const SECOND: &str = "{\"id\":2,\"status\":\"paid\",\"amount\":7,\"seq\":2}\n";

fn drops() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    drop_file(folder.path(), "1.jsonl", FIRST);
    folder
}

fn drop_file(folder: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder.join("orders")).unwrap();
    std::fs::write(folder.join("orders").join(name), text).unwrap();
}

fn pipeline(text: &str) -> Pipeline {
    Pipeline::from_yaml(&[("shop.yml", text)]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn options(folder: &Path) -> RunOptions {
    RunOptions { base_data_path: folder.to_owned(), ..RunOptions::default() }
}

async fn run(lake: &Lake, pipeline: &Pipeline, folder: &Path) {
    let report = lake.run(pipeline, options(folder)).await.unwrap();
    assert_eq!(report.exit_code(), ExitCode::Done, "{report:?}");
}

async fn plan(lake: &Lake, pipeline: &Pipeline, folder: &Path) -> Plan {
    lake.plan(pipeline, &options(folder)).await.unwrap()
}

/// The text of a plan, sizes of Parquet files left out: they are the libraries' business.
fn text(plan: &Plan) -> String {
    let mut text = String::new();
    for line in plan.to_text().lines() {
        let mut line = line.to_owned();
        while let Some(at) = line.find(" (") {
            let Some(length) = line[at..].find(')').filter(|length| line[at..at + length].ends_with('B')) else { break };
            line.replace_range(at..=at + length, "");
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn of<'a>(plan: &'a Plan, table: &str) -> &'a DatasetPlan {
    plan.datasets.iter().find(|dataset| dataset.table.to_string() == table).unwrap()
}

#[tokio::test]
async fn plans_of_a_life_say_what_each_run_then_does() {
    let (drops, lake, shop) = (drops(), open(Arc::new(InMemory::new())), pipeline(PIPELINE));
    let mut told = String::new();
    let mut tell = |what: &str, plan: &Plan| told.push_str(&format!("== {what}\n{}\n", text(plan)));
    tell("an empty lake", &plan(&lake, &shop, drops.path()).await);
    run(&lake, &shop, drops.path()).await;
    tell("nothing new", &plan(&lake, &shop, drops.path()).await);
    drop_file(drops.path(), "2.jsonl", SECOND);
    tell("a new file", &plan(&lake, &shop, drops.path()).await);
    let bronze = RunOptions { layers: vec![tributary::Layer::Bronze], ..options(drops.path()) };
    lake.run(&shop, bronze).await.unwrap();
    tell("bronze alone has run", &plan(&lake, &shop, drops.path()).await);
    run(&lake, &shop, drops.path()).await;
    let wider = pipeline(
        &PIPELINE.replace("amount, type: integer", "amount, type: long").replace("{name: seq", "{name: note, type: string}, {name: seq"),
    );
    tell("a wider and a new column", &plan(&lake, &wider, drops.path()).await);
    let rekeyed = pipeline(&PIPELINE.replace("keys: [id]", "keys: [id, status]"));
    tell("other keys", &plan(&lake, &rekeyed, drops.path()).await);
    let anew = RunOptions { full_refresh: vec!["silver.orders".parse().unwrap()], ..options(drops.path()) };
    tell("a full refresh asked for", &lake.plan(&shop, &anew).await.unwrap());
    assert_golden!("tests/golden/plans.txt", told);
}

/// One table by two flows over two feeds, and a flow that comes to the first feed later, before the others in the file.
fn of_flows(first: &str) -> Pipeline {
    let feed = |name: &str| {
        format!(
            "
  - name: {name}
    table: bronze.{name}
    decode: json
    source: {{files: {{path: {name}, format: jsonl}}}}
    columns: [{{name: id, type: long}}]"
        )
    };
    pipeline(&format!(
        "
name: flows
feeds:{}{}
silver:
  - table: silver.all
    policy: append
    {first}
      - {{name: of_returns, sources: [bronze.returns]}}
",
        feed("orders"),
        feed("returns")
    ))
}

#[tokio::test]
async fn plans_graphs_and_lineage_see_every_flow_of_a_table() {
    let (drops, lake) = (tempfile::tempdir().unwrap(), open(Arc::new(InMemory::new())));
    let table: tributary::TableName = "silver.all".parse().unwrap();
    for name in ["orders", "returns"] {
        std::fs::create_dir_all(drops.path().join(name)).unwrap();
        std::fs::write(drops.path().join(name).join("1.jsonl"), "{\"id\":1}\n{\"id\":2}\n").unwrap();
    }
    let two = of_flows("sources: [bronze.orders]\n    flows:");
    let bronze = RunOptions { layers: vec![tributary::Layer::Bronze], ..options(drops.path()) };
    lake.run(&two, bronze).await.unwrap();
    let of_plan = |plan: &Plan| -> Vec<String> { of(plan, "silver.all").inputs.iter().map(|input| input.from.clone()).collect() };
    assert_eq!(of_plan(&plan(&lake, &two, drops.path()).await), ["bronze.orders", "bronze.returns"]);

    let (_, lineage) = lake.lineage(&two, Some(&table)).await.unwrap().remove(0);
    assert_eq!(lineage.sources.iter().map(ToString::to_string).collect::<Vec<_>>(), ["bronze.orders", "bronze.returns"]);
    assert_eq!(lineage.columns.iter().find(|column| column.column == "id").unwrap().from.len(), 2, "{lineage:?}");
    let graph = lake.graph(&two).await.unwrap();
    let node = graph.nodes.iter().find(|node| node.name == "silver.all").unwrap();
    let flows: Vec<_> = node.flows.iter().map(|flow| (flow.name.as_str(), flow.reads[0].as_str())).collect();
    assert_eq!(flows, [("all", "bronze.orders"), ("of_returns", "bronze.returns")]);

    let report = lake.run(&two, options(drops.path())).await.unwrap();
    let silver = report.datasets.iter().find(|one| one.table == "silver.all").unwrap();
    assert!(silver.positions.keys().eq(["bronze.orders", "bronze.returns"]), "{silver:?}");
    assert_eq!(plan(&lake, &two, drops.path()).await.datasets.iter().filter(|one| one.changes_anything()).count(), 0);

    let first = "flow: later\n    sources: [bronze.orders]\n    flows:\n      - {name: all, sources: [bronze.orders]}";
    let unclear = plan(&lake, &of_flows(&first.replace("later", "one").replace("name: all", "name: two")), drops.path()).await;
    assert!(of(&unclear, "silver.all").stops[0].contains("does not say by which flow"), "{}", unclear.to_text());
    let three = of_flows(first);
    assert_eq!(of_plan(&plan(&lake, &three, drops.path()).await), ["bronze.orders"], "the new flow alone begins");
    run(&lake, &three, drops.path()).await;
    let consumed = lake.table("silver.all").await.unwrap().consumed().await.unwrap();
    let sources: Vec<String> = consumed.iter().map(|(source, _)| source.to_string()).collect();
    assert_eq!(sources, ["bronze.orders", "bronze.returns", "bronze.orders"], "one a flow");
}

#[tokio::test]
async fn a_lake_with_one_changed_definition_is_planned_as_exactly_that_change() {
    let (drops, lake, shop) = (drops(), open(Arc::new(InMemory::new())), pipeline(PIPELINE));
    run(&lake, &shop, drops.path()).await;
    let nothing = plan(&lake, &shop, drops.path()).await;
    assert!(nothing.datasets.iter().all(|dataset| !dataset.changes_anything()), "{}", nothing.to_text());
    assert!(nothing.to_text().ends_with("\n\nnothing would change\n"), "{}", nothing.to_text());

    let changed = pipeline(&PIPELINE.replace("      from silver.orders\n", "      from silver.orders where id > 0\n"));
    let planned = plan(&lake, &changed, drops.path()).await;
    let changing: Vec<String> =
        planned.datasets.iter().filter(|dataset| dataset.changes_anything()).map(|dataset| dataset.table.to_string()).collect();
    assert_eq!(changing, ["gold.by_status"]);
    let view = of(&planned, "gold.by_status");
    assert_eq!((view.work, view.reason.as_str()), (PlannedWork::Refreshes, "the definition changed"));
    let parts: Vec<&str> = view.definition.iter().map(|change| change.part.as_str()).collect();
    assert_eq!((parts, view.columns.len(), view.stops.len()), (vec!["query"], 0, 0));
    assert!(planned.to_text().contains("- from silver.orders\n") && planned.to_text().contains("+ from silver.orders where id > 0\n"));

    run(&lake, &changed, drops.path()).await;
    assert!(plan(&lake, &changed, drops.path()).await.to_text().ends_with("nothing would change\n"));
    // what a run with nothing new for it was given is not yet what made the table
    let commented = pipeline(
        &PIPELINE
            .replace("      from silver.orders\n", "      from silver.orders where id > 0\n")
            .replace("sequence_by: [seq]", "sequence_by: [seq], comment: all"),
    );
    run(&lake, &commented, drops.path()).await;
    let planned = plan(&lake, &commented, drops.path()).await;
    assert_eq!(of(&planned, "silver.orders").definition.len(), 1, "{}", planned.to_text());
}

/// Runs a changed definition after its plan, and says which datasets stop by each of them.
async fn both_stop(lake: &Lake, changed: &Pipeline, folder: &Path) -> (Vec<String>, Vec<String>) {
    let planned = plan(lake, changed, folder).await;
    let planned = planned.datasets.iter().filter(|one| !one.stops.is_empty()).map(|one| one.table.to_string()).collect();
    let report = lake.run(changed, options(folder)).await.unwrap();
    let failed = report.datasets.iter().filter(|one| one.status == tributary::Status::Failed).map(|one| one.table.clone()).collect();
    (planned, failed)
}

#[tokio::test]
async fn a_plan_says_stops_exactly_where_a_run_stops_with_and_without_new_rows() {
    let silver = "keys: [id], sequence_by: [seq], schema_policy: widen";
    let cases = [
        ("keys: [id], sequence_by", "keys: [id, status], sequence_by", vec!["silver.orders"]),
        ("sequence_by: [seq], schema_policy", "sequence_by: [amount], schema_policy", vec![]),
        ("amount, type: integer", "amount, type: long", vec![]),
        (silver, "policy: append, schema_policy: widen", vec!["silver.orders"]),
        (
            silver,
            "keys: [id], sequence_by: [seq], schema_policy: add, select: 'select id, status, cast(amount as string) as amount, seq from bronze.orders'",
            vec!["silver.orders"],
        ),
        (
            silver,
            "keys: [id], sequence_by: [seq], schema_policy: freeze, select: 'select *, amount + 1 as more from bronze.orders'",
            vec!["silver.orders"],
        ),
        (silver, "keys: [id], sequence_by: [seq], select: 'select *, ammount + 1 as more from bronze.orders'", vec!["silver.orders"]),
        ("select count(*) as orders from silver.orders}", "select count(statu) as orders from silver.orders}", vec!["gold.orders"]),
        ("select count(*) as orders from silver.orders}", "select 'none' as orders from silver.orders}", vec!["gold.orders"]),
        (silver, "keys: [id], sequence_by: [seq], schema_policy: widen, select: 'select *, amount + 1 as more from bronze.orders'", vec![]),
        (silver, "keys: [id], sequence_by: [seq], schema_policy: widen, comment: all", vec![]),
        ("name: shop\n", "name: store\n", vec![]),
    ];
    let by_amount = PIPELINE.replace("sequence_by: [seq], schema_policy: widen", "sequence_by: [amount], schema_policy: add");
    let cases = cases.map(|(from, to, expected)| (PIPELINE, from, to, expected));
    let of_amount = (by_amount.as_str(), "sequence_by: [amount]", "sequence_by: [seq]", vec!["silver.orders"]);
    // where a feed takes on columns, new rows may bring one that is missed
    let counts = "select count(*) as orders from silver.orders}";
    let of_more = (PIPELINE, counts, "select count(more) as orders from silver.orders}", vec!["gold.orders"]);
    for (text, from, to, expected) in cases.into_iter().chain([of_amount, of_more]) {
        assert!(text.contains(from), "{from}");
        for new_rows in [false, true].into_iter().take(if to.contains("(more)") { 1 } else { 2 }) {
            let (drops, lake) = (drops(), open(Arc::new(InMemory::new())));
            run(&lake, &pipeline(text), drops.path()).await;
            if new_rows {
                drop_file(drops.path(), "2.jsonl", SECOND);
            }
            let both = both_stop(&lake, &pipeline(&text.replace(from, to)), drops.path()).await;
            let expected: Vec<String> = expected.iter().map(|table| (*table).to_owned()).collect();
            assert_eq!(both, (expected.clone(), expected), "{to}, new rows: {new_rows}");
        }
    }
}

#[tokio::test]
async fn before_the_first_rows_views_wait_as_their_plan_says_and_the_run_names_what_nothing_has_come_to() {
    let (drops, lake) = (tempfile::tempdir().unwrap(), open(Arc::new(InMemory::new())));
    std::fs::create_dir_all(drops.path().join("orders")).unwrap();
    let shop = pipeline(&format!("{PIPELINE}  - {{table: gold.twice, query: select orders * 2 as twice from gold.orders}}\n"));
    assert_eq!(both_stop(&lake, &shop, drops.path()).await, (Vec::new(), Vec::new()));
    let only = RunOptions { only: vec!["gold.twice".parse().unwrap()], ..options(drops.path()) };
    let report = lake.run(&shop, only).await.unwrap();
    assert_eq!((report.exit_code(), report.nothing_new()), (ExitCode::Done, true), "{report:?}");
    let reason = "`gold.orders`, which it reads, does not exist yet: nothing has come to `bronze.orders`";
    assert_eq!(report.datasets[0].reason, reason);
    let foreign = pipeline("name: f\nfeeds: []\nexternal: [raw.gone]\ngold: [{table: gold.g, query: select * from raw.gone}]\n");
    let report = lake.run(&foreign, options(drops.path())).await.unwrap();
    assert_eq!(report.datasets[0].error.as_ref().unwrap().code, "GA0003", "a table that nothing here makes is a mistake");
    drop_file(drops.path(), "1.jsonl", FIRST);
    run(&lake, &shop, drops.path()).await;
    assert_eq!(lake.table("gold.twice").await.unwrap().version(), 1);
}

#[tokio::test]
async fn a_plan_rewrites_a_silver_table_exactly_where_a_run_does() {
    let sum = "keys: [id], schema_policy: widen, select: 'select id, status, amount, seq from bronze.orders', sequence_by: [seq]";
    let text = PIPELINE.replace("keys: [id], sequence_by: [seq], schema_policy: widen", sum);
    for new_rows in [false, true] {
        let (drops, lake) = (drops(), open(Arc::new(InMemory::new())));
        run(&lake, &pipeline(&text), drops.path()).await;
        if new_rows {
            drop_file(drops.path(), "2.jsonl", SECOND);
        }
        let wider = pipeline(&text.replace("status, amount, seq", "status, cast(amount as bigint) as amount, seq"));
        let planned = of(&plan(&lake, &wider, drops.path()).await, "silver.orders").clone();
        assert_eq!((planned.columns.len(), planned.rewrites.is_some()), (1, new_rows), "{planned:?}");
        run(&lake, &wider, drops.path()).await;
        let now = lake.table("silver.orders").await.unwrap();
        let is_wide = now.schema().field_with_name("amount").unwrap().data_type() == &tributary::arrow::datatypes::DataType::Int64;
        assert_eq!(is_wide, new_rows);
    }
}

#[tokio::test]
async fn the_tables_that_a_plan_creates_and_alters_are_those_of_the_run() {
    let (drops, lake, shop) = (drops(), open(Arc::new(InMemory::new())), pipeline(PIPELINE));
    let columns = |plan: &Plan| {
        plan.datasets
            .iter()
            .map(|one| one.creates.iter().map(|column| column.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let planned = columns(&plan(&lake, &shop, drops.path()).await);
    run(&lake, &shop, drops.path()).await;
    let mut made = Vec::new();
    for dataset in &plan(&lake, &shop, drops.path()).await.datasets {
        let schema = lake.table(&dataset.table.to_string()).await.unwrap().schema();
        made.push(schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>());
    }
    assert_eq!(planned, made);

    let wider = pipeline(&PIPELINE.replace("amount, type: integer", "amount, type: long"));
    let planned = plan(&lake, &wider, drops.path()).await;
    let files = lake.table("bronze.orders").await.unwrap().into_inner().files().await.unwrap();
    let rewritten = of(&planned, "bronze.orders").rewrites.unwrap();
    assert_eq!((rewritten.files, rewritten.bytes), (files.len() as u64, files.iter().map(|file| file.size).sum()));
    run(&lake, &wider, drops.path()).await;
    let now = lake.table("bronze.orders").await.unwrap();
    assert_eq!(now.schema().field_with_name("amount").unwrap().data_type(), &tributary::arrow::datatypes::DataType::Int64);
    assert!(plan(&lake, &wider, drops.path()).await.datasets.iter().all(|dataset| dataset.columns.is_empty()));
}

#[tokio::test]
async fn a_plan_is_refused_once_a_table_a_file_or_a_definition_has_moved() {
    let (drops, lake, shop) = (drops(), open(Arc::new(InMemory::new())), pipeline(PIPELINE));
    let refusal = async |plan: &Plan, pipeline: &Pipeline| {
        lake.check_plan(plan, pipeline, &options(drops.path())).await.err().map(|error| error.to_string())
    };
    let first = plan(&lake, &shop, drops.path()).await;
    let again: Plan = serde_json::from_str(&serde_json::to_string(&first).unwrap()).unwrap();
    assert_eq!(again, first);
    assert_eq!(refusal(&again, &shop).await, None);

    let other = pipeline(&PIPELINE.replace("select count(*) as orders from", "select count(id) as orders from"));
    assert_eq!(refusal(&first, &other).await.unwrap(), "the plan no longer holds: the definition of gold.orders changed");
    drop_file(drops.path(), "2.jsonl", SECOND);
    let moved = refusal(&first, &shop).await.unwrap();
    assert!(moved.contains("files of bronze.orders: 1 due"), "{moved}");
    std::fs::remove_file(drops.path().join("orders/2.jsonl")).unwrap();
    assert_eq!(refusal(&first, &shop).await, None);

    run(&lake, &shop, drops.path()).await;
    let moved = refusal(&first, &shop).await.unwrap();
    assert!(moved.contains("table main.silver.orders: absent in the plan, version"), "{moved}");
    let error = lake.check_plan(&Plan { format: 99, ..first }, &shop, &options(drops.path())).await.unwrap_err();
    assert_eq!(tributary::Fault::code(&error).to_string(), "TR0021");
}

#[tokio::test]
async fn plans_graphs_and_lineage_ask_a_store_for_no_change() {
    let (drops, shop) = (drops(), pipeline(PIPELINE));
    let store = Arc::new(InMemory::new());
    for rounds in 0..2 {
        let read_only = Arc::new(FaultyStore::new(Arc::clone(&store) as Arc<dyn ObjectStore>));
        // the first call that would change anything, and every one after it
        read_only.kill_at(1, Mode::Before);
        let lake = open(Arc::clone(&read_only) as Arc<dyn ObjectStore>);
        for text in [
            PIPELINE.to_owned(),
            PIPELINE.replace("amount, type: integer", "amount, type: long"),
            PIPELINE.replace("count(*)", "count(id)"),
        ] {
            let planned = plan(&lake, &pipeline(&text), drops.path()).await;
            assert_eq!(planned.datasets.len(), 4);
            assert!(planned.datasets.iter().all(|dataset| dataset.stops.is_empty()), "{}", planned.to_text());
            lake.check_plan(&planned, &pipeline(&text), &options(drops.path())).await.unwrap();
        }
        let graph = lake.graph(&shop).await.unwrap();
        assert_eq!((graph.nodes.len(), graph.to_html().is_empty()), (5, false));
        lake.lineage(&shop, None).await.unwrap();
        assert!(!read_only.killed() && read_only.counts().mutating == 0, "round {rounds}: {:?}", read_only.calls());
        run(&open(Arc::clone(&store) as Arc<dyn ObjectStore>), &shop, drops.path()).await;
    }
}
