//! `setup` makes what is missing, and calls a difference only what a person must look at.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tributary::object_store::memory::InMemory;
use tributary::{Column, DataType, Lake, Layer, Pipeline, RunOptions, SetupOutcome, Status, Stores, TableName, TableSpec};
use tributary_lake::{Lake as TableStore, LakeOptions};

use crate::shop::{self, Drops};

const POLICIES: [&str; 5] = ["freeze", "add", "widen", "rescue", "quarantine"];

/// Visits of a shop, with one schema policy, through all layers.
fn visits(policy: &str) -> Pipeline {
    let text = "
name: visits
feeds:
  - name: web_visits
    table: bronze.visits
    decode: json
    schema_policy: POLICY
    source: {files: {path: visits, format: jsonl}}
    columns: [{name: id, type: integer}, {name: page, type: string}, {name: at, type: integer}]
    properties: {shop.owner: web}
silver:
  - table: silver.visits
    sources: [bronze.visits]
    keys: [id]
    sequence_by: [at]
  - table: silver.pages
    sources: [bronze.visits]
    select: select id, page, at from bronze.visits
    keys: [id]
    sequence_by: [at]
    policy: {scd_type2: {}}
gold:
  - table: gold.pages
    query: select page, count(*) as visits from silver.pages group by page
";
    Pipeline::from_yaml(&[("visits.yml", &text.replace("POLICY", policy))]).expect("a pipeline")
}

/// The outcomes that are not `AsDeclared`, as text.
async fn odd(lake: &Lake, pipeline: &Pipeline) -> Vec<String> {
    let setups = lake.setup(pipeline, &Layer::ALL, &[]).await.expect("setup");
    let outcome = |outcome: &SetupOutcome| match outcome {
        SetupOutcome::Differs(differences) => differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        other => format!("{other:?}"),
    };
    setups
        .iter()
        .filter(|setup| setup.outcome != SetupOutcome::AsDeclared)
        .map(|setup| format!("{}: {}", setup.table, outcome(&setup.outcome)))
        .collect()
}

async fn run(lake: &Lake, pipeline: &Pipeline, base: &Path, layers: &[Layer]) {
    let options = RunOptions { base_data_path: base.to_owned(), layers: layers.to_vec(), ..RunOptions::default() };
    let report = lake.run(pipeline, options).await.expect("a report");
    assert!(report.datasets.iter().all(|dataset| matches!(dataset.status, Status::Committed | Status::NothingNew)), "{report:#?}");
}

fn drop_visits(base: &Path, name: &str, lines: &str) {
    fs::create_dir_all(base.join("visits")).expect("a folder");
    fs::write(base.join("visits").join(name), lines).expect("a drop");
}

#[tokio::test]
async fn a_normal_life_under_any_policy_leaves_no_difference() {
    for policy in POLICIES {
        let base = tempfile::tempdir().expect("a folder");
        let (lake, pipeline) = (shop::open(Arc::new(InMemory::new())), visits(policy));
        assert_eq!(odd(&lake, &pipeline).await.len(), 4, "all are made");
        assert_eq!(odd(&lake, &pipeline).await, [""; 0], "{policy}, before a run");
        drop_visits(base.path(), "1.jsonl", "{\"id\":1,\"page\":\"/\",\"at\":1}\n");
        run(&lake, &pipeline, base.path(), &Layer::ALL).await;
        assert_eq!(odd(&lake, &pipeline).await, [""; 0], "{policy}, after a run");
        if policy != "freeze" {
            drop_visits(base.path(), "2.jsonl", "{\"id\":2,\"page\":\"/\",\"at\":2,\"browser\":\"lynx\"}\n");
            run(&lake, &pipeline, base.path(), &[Layer::Bronze]).await;
            assert_eq!(odd(&lake, &pipeline).await, [""; 0], "{policy}, between bronze and silver");
            run(&lake, &pipeline, base.path(), &Layer::ALL).await;
            assert_eq!(odd(&lake, &pipeline).await, [""; 0], "{policy}, after a new column");
            let grown = lake.table("bronze.visits").await.expect("a table").schema().column_with_name("browser").is_some();
            assert_eq!(grown, matches!(policy, "add" | "widen"), "{policy}");
        }
    }
}

#[tokio::test]
async fn a_table_that_turns_off_what_is_declared_is_changed_and_shown() {
    let base = tempfile::tempdir().expect("a folder");
    let off = "name: visits
feeds:
  - name: web_visits
    table: bronze.visits
    decode: json
    source: {files: {path: visits, format: jsonl}}
    columns: [{name: id, type: integer}, {name: at, type: integer}]
silver:
  - table: silver.visits
    sources: [bronze.visits]
    keys: [id]
    sequence_by: [at]
    properties: {delta.enableDeletionVectors: false, delta.enableChangeDataFeed: false}
";
    let on = off.replace("    properties: {delta.enableDeletionVectors: false, delta.enableChangeDataFeed: false}\n", "");
    let pipeline = |text: &str| Pipeline::from_yaml(&[("visits.yml", text)]).expect("a pipeline");
    let (lake, off, on) = (shop::open(Arc::new(InMemory::new())), pipeline(off), pipeline(&on));
    drop_visits(base.path(), "1.jsonl", "{\"id\":1,\"at\":1}\n");
    run(&lake, &off, base.path(), &Layer::ALL).await;
    assert_eq!(odd(&lake, &off).await, [""; 0]);
    let only = ["silver.visits".parse().expect("a name")];
    for pipeline in [&on, &off] {
        let setups = lake.setup(pipeline, &Layer::ALL, &only).await.expect("setup");
        let SetupOutcome::Changed { changed, left } = &setups[0].outcome else { panic!("{setups:?}") };
        let mut what: Vec<&str> = changed.iter().map(|difference| difference.what.as_str()).collect();
        what.sort_unstable();
        assert_eq!(what, ["property `delta.enableChangeDataFeed`", "property `delta.enableDeletionVectors`"]);
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(odd(&lake, pipeline).await, [""; 0], "once");
    }
}

#[tokio::test]
async fn a_type_that_the_policy_widened_is_no_difference() {
    let base = tempfile::tempdir().expect("a folder");
    let (lake, pipeline) = (shop::open(Arc::new(InMemory::new())), visits("widen"));
    drop_visits(base.path(), "1.jsonl", "{\"id\":1,\"page\":\"/\",\"at\":1}\n");
    run(&lake, &pipeline, base.path(), &[Layer::Bronze]).await;
    drop_visits(base.path(), "2.jsonl", "{\"id\":2,\"page\":\"/\",\"at\":9000000000}\n");
    run(&lake, &pipeline, base.path(), &[Layer::Bronze]).await;
    let found = lake.table("bronze.visits").await.expect("a table").schema();
    assert_eq!(found.field_with_name("at").expect("a column").data_type(), &tributary::arrow::datatypes::DataType::Int64);
    let only = ["bronze.visits".parse().expect("a name")];
    let setups = lake.setup(&pipeline, &Layer::ALL, &only).await.expect("setup");
    assert_eq!(setups[0].outcome, SetupOutcome::AsDeclared);
    let strict = lake.setup(&visits("add"), &Layer::ALL, &only).await.expect("setup");
    assert!(matches!(&strict[0].outcome, SetupOutcome::Differs(found) if found[0].what == "column `at`"), "{strict:?}");
}

#[tokio::test]
async fn the_retail_pipeline_is_as_declared_before_and_after_its_runs() {
    let drops = Drops::new();
    let lake = shop::open(Arc::new(InMemory::new()));
    odd(&lake, &shop::retail()).await;
    // only messages can tell the columns that this view names
    assert_eq!(odd(&lake, &shop::retail()).await, ["gold.low_stock: LeftToFirstRun"]);
    for base in drops.in_turn() {
        shop::run(&lake, &base).await;
        assert_eq!(odd(&lake, &shop::retail()).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_lake_that_was_set_up_first_ends_as_one_that_was_not() {
    let drops = Drops::new();
    let (plain, set_up) = (shop::open(Arc::new(InMemory::new())), shop::open(Arc::new(InMemory::new())));
    set_up.setup(&shop::retail(), &Layer::ALL, &[]).await.expect("setup");
    for lake in [&plain, &set_up] {
        shop::run(lake, &drops.all()).await;
    }
    for table in
        ["silver.orders", "silver.customers", "silver.customers_current", "silver.inventory", "gold.low_stock", "gold.daily_revenue"]
    {
        assert_eq!(rows(&plain, table).await, rows(&set_up, table).await, "{table}");
    }
}

/// The rows of a table as sorted text, columns by name: a column that came later stands behind.
async fn rows(lake: &Lake, table: &str) -> Vec<String> {
    let schema = lake.table(table).await.expect("a table").schema();
    let mut columns: Vec<String> = schema.fields().iter().map(|field| format!("`{}`", field.name())).collect();
    columns.sort_unstable();
    let query = format!("select {} from {table}", columns.join(", "));
    let batches = tributary::sql::query(lake, &query).await.expect("a plan").collect().await.expect("rows");
    let mut rows: Vec<String> = batches.iter().flat_map(shop::rows_as_text).collect();
    rows.sort_unstable();
    rows
}

/// What somebody else may have made in place of a table, and what is said of it.
type Change = fn(&mut TableSpec);
const CHANGES: [(&str, Change); 6] = [
    ("column `page`: declared string, found absent", |spec| spec.columns.retain(|column| column.name != "page")),
    ("found date", |spec| column(spec, "id").data_type = DataType::Date),
    ("not null", |spec| column(spec, "id").nullable = false),
    ("partition columns: declared absent, found page", |spec| spec.partition_by = vec!["page".to_owned()]),
    ("property `", |spec| {
        spec.properties.insert("shop.owner".to_owned(), "somebody".to_owned());
        spec.properties.insert("tributary.policy".to_owned(), "append".to_owned());
    }),
    ("clustering columns", |spec| spec.cluster_by = vec!["id".to_owned()]),
];

fn column<'a>(spec: &'a mut TableSpec, name: &str) -> &'a mut Column {
    spec.columns.iter_mut().find(|column| column.name == name).expect("a column")
}

#[tokio::test]
async fn a_table_made_by_somebody_else_differs_in_what_it_lacks_or_has_otherwise() {
    for policy in POLICIES {
        for (said, change) in CHANGES {
            for (schema, name) in [("bronze", "visits"), ("silver", "pages")] {
                let table = TableName::new(schema, name);
                let store = Arc::new(InMemory::new());
                let (lake, pipeline) = (shop::open(store.clone()), visits(policy));
                lake.setup(&pipeline, &[Layer::Bronze], &[]).await.expect("setup");
                let mut spec = lake.declared(&pipeline, &table).await.expect("a declaration").expect("columns");
                change(&mut spec);
                let store = if schema == "bronze" { Arc::new(InMemory::new()) } else { store };
                let root = "memory:///lake/".parse().expect("a URL");
                let tables = TableStore::open(Stores::wrap(store.clone(), root), LakeOptions::default()).expect("a lake");
                tables.create(&spec).await.expect("somebody's table");
                let setups = shop::open(store).setup(&pipeline, &Layer::ALL, &[table]).await.expect("setup");
                let SetupOutcome::Differs(found) = &setups[0].outcome else { panic!("{policy}, {schema}: {said}: {setups:?}") };
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                assert!(found.len() == 1 && found[0].contains(said), "{policy}, {schema}: {said}: {found:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_column_that_the_policy_cannot_have_added_is_a_difference() {
    for policy in POLICIES {
        let store = Arc::new(InMemory::new());
        let (lake, pipeline) = (shop::open(store.clone()), visits(policy));
        let name = TableName::new("bronze", "visits");
        let mut spec = lake.declared(&pipeline, &name).await.expect("a declaration").expect("columns");
        spec.columns.push(Column::new("browser", DataType::String));
        spec.columns.push(Column::new("_seen_by", DataType::String));
        let tables =
            TableStore::open(Stores::wrap(store, "memory:///lake/".parse().expect("a URL")), LakeOptions::default()).expect("a lake");
        tables.create(&spec).await.expect("somebody's table");
        let setups = lake.setup(&pipeline, &Layer::ALL, &[name]).await.expect("setup");
        match &setups[0].outcome {
            SetupOutcome::AsDeclared => assert!(matches!(policy, "add" | "widen"), "{policy}"),
            SetupOutcome::Differs(found) => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                assert_eq!(found, ["column `browser`: declared absent, found string"], "{policy}");
                assert!(!matches!(policy, "add" | "widen"), "{policy}");
            }
            other => panic!("{policy}: {other:?}"),
        }
    }
}

#[test]
fn a_table_that_a_view_misspells_is_named_with_file_and_line_and_the_nearest() {
    let views = "gold:\n  - table: gold.n\n    query: select count(*) as n from silver.vists\n";
    let feeds = "name: visits\nfeeds:\n  - name: web_visits\n    table: bronze.visits\n    decode: json\n    source: {files: {path: visits, format: jsonl}}\nsilver:\n  - {table: silver.visits, sources: [bronze.visits], policy: append}\n";
    let said = Pipeline::from_yaml(&[("feeds.yml", feeds), ("views.yml", views)]).expect_err("no such table").to_string();
    assert!(said.contains("views.yml:") && said.contains("silver.vists") && said.contains("silver.visits"), "{said}");
}
