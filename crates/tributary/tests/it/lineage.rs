//! Where columns come from, query by query, and what runs keep and tell of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tributary::{
    Column, FileFormat, FileSource, GoldSpec, Lake, Lineage, LineageSink, Manner, MergePolicy, OpenLineage, Pipeline, RunOptions,
    SilverSpec, SourceFeed, TableName,
};

use crate::shop::rows_as_text;

/// Three tables, as feeds declare them.
fn feed(name: &str, columns: &str) -> SourceFeed {
    let mut feed = SourceFeed::new(format!("shop_{name}"), TableName::new("bronze", name), FileSource::new(name, FileFormat::Jsonl));
    feed.decode = tributary::Decode::Json;
    feed.columns = columns
        .split(", ")
        .map(|column| {
            let (name, data_type) = column.split_once(' ').unwrap();
            Column::new(name, data_type.parse().unwrap())
        })
        .collect();
    feed
}

fn shop() -> tributary::PipelineBuilder {
    Pipeline::builder("shop")
        .feed(feed(
            "o",
            "id long, cust long, amount double, qty integer, day date, note string, tags array<string>, addr struct<city:string,zip:string>",
        ))
        .feed(feed("c", "id long, name string, region string"))
        .feed(feed("p", "id long, price double"))
}

async fn lineage_of(pipeline: &Pipeline, table: &str) -> Lineage {
    let lake = Lake::open("memory://", Default::default()).unwrap();
    let table = table.parse().unwrap();
    let mut found = lake.lineage(pipeline, Some(&table)).await.unwrap();
    found.remove(0).1
}

/// `column<-o.a c.b;` with `~` before what is computed and `+` before what is aggregated.
fn written(lineage: &Lineage) -> String {
    let column = |column: &tributary::ColumnLineage| {
        let from: Vec<String> = column
            .from
            .iter()
            .map(|from| {
                let mark = match from.manner {
                    Manner::Identity => "",
                    Manner::Transformation => "~",
                    Manner::Aggregation => "+",
                };
                format!("{mark}{}.{}", from.source.to_string().trim_start_matches("bronze."), from.column)
            })
            .collect();
        format!("{}<-{}", column.column, from.join(" "))
    };
    lineage.columns.iter().map(column).collect::<Vec<_>>().join("; ")
}

fn sources(lineage: &Lineage) -> String {
    lineage.sources.iter().map(|source| source.to_string().trim_start_matches("bronze.").to_owned()).collect::<Vec<_>>().join(" ")
}

/// Query, tables read, where each column comes from. Written by hand.
const QUERIES: [(&str, &str, &str); 34] = [
    ("select id, amount from bronze.o", "o", "id<-o.id; amount<-o.amount"),
    ("select id as key, o.note text from bronze.o as o", "o", "key<-o.id; text<-o.note"),
    ("select amount * qty as total from bronze.o", "o", "total<-~o.amount ~o.qty"),
    ("select upper(note) as n, 1 as one, 'x' as x from bronze.o", "o", "n<-~o.note"),
    ("select cast(qty as bigint) as q from bronze.o", "o", "q<-~o.qty"),
    ("select case when amount > 10 then note else cast(id as string) end as v from bronze.o", "o", "v<-~o.amount ~o.id ~o.note"),
    ("select coalesce(note, cast(day as string)) as v from bronze.o", "o", "v<-~o.day ~o.note"),
    ("select id from bronze.o where amount > 5 and note is not null", "o", "id<-o.id"),
    ("select id from bronze.o order by amount limit 3", "o", "id<-o.id"),
    ("select distinct cust from bronze.o", "o", "cust<-o.cust"),
    ("select count(*) as n from bronze.o", "o", ""),
    ("select cust, sum(amount) as total, count(*) as n from bronze.o group by cust", "o", "cust<-o.cust; total<-+o.amount"),
    ("select year(day) as y, max(amount * qty) as m from bronze.o group by year(day)", "o", "y<-~o.day; m<-+o.amount +o.qty"),
    (
        "select cust, sum(amount) / count(id) as avg from bronze.o group by cust having count(*) > 1",
        "o",
        "cust<-o.cust; avg<-+o.amount +o.id",
    ),
    ("select sum(amount) filter (where qty > 1) as big from bronze.o", "o", "big<-+o.amount"),
    ("select o.id, c.name from bronze.o o join bronze.c c on o.cust = c.id", "c o", "id<-o.id; name<-c.name"),
    (
        "select o.id, c.name, p.price from bronze.o o left join bronze.c c on o.cust = c.id left join bronze.p p on p.id = o.id",
        "c o p",
        "id<-o.id; name<-c.name; price<-p.price",
    ),
    (
        "select o.id, concat(c.name, c.region) as who from bronze.o o, bronze.c c where o.cust = c.id",
        "c o",
        "id<-o.id; who<-~c.name ~c.region",
    ),
    ("select a.id, b.note from bronze.o a join bronze.o b on a.id = b.cust", "o", "id<-o.id; note<-o.note"),
    ("select id from bronze.o left semi join bronze.c using (id)", "c o", "id<-o.id"),
    ("select id from bronze.o union all select id from bronze.c", "c o", "id<-c.id o.id"),
    ("select id, amount as v from bronze.o union all select id, price + 1 from bronze.p", "o p", "id<-o.id p.id; v<-o.amount ~p.price"),
    ("with t as (select cust, amount * 2 as twice from bronze.o) select cust, twice from t", "o", "cust<-o.cust; twice<-~o.amount"),
    (
        "with t as (select cust, sum(amount) as s from bronze.o group by cust) select c.name, t.s from t join bronze.c c on c.id = t.cust",
        "c o",
        "name<-c.name; s<-+o.amount",
    ),
    ("select x.k from (select id + cust as k from bronze.o) x", "o", "k<-~o.cust ~o.id"),
    ("select id, (select max(price) from bronze.p) as top from bronze.o", "o p", "id<-o.id; top<-+p.price"),
    ("select id from bronze.o where cust in (select id from bronze.c)", "c o", "id<-o.id"),
    ("select id from bronze.o where exists (select 1 from bronze.c where c.id = o.cust)", "c o", "id<-o.id"),
    ("select id, (select sum(p.price) from bronze.p p where p.id = o.id) as s from bronze.o o", "o p", "id<-o.id; s<-+p.price"),
    ("select id, sum(amount) over (partition by cust order by day) as run from bronze.o", "o", "id<-o.id; run<-+o.amount"),
    ("select id, row_number() over (partition by cust order by day) as nr from bronze.o", "o", "id<-o.id"),
    ("select id, addr.city from bronze.o", "o", "id<-o.id; city<-~o.addr"),
    ("select id, explode(tags) as tag from bronze.o", "o", "id<-o.id; tag<-~o.tags"),
    (
        "select cust, region, count(amount) as n from bronze.o join bronze.c on cust = c.id group by cust, region with rollup",
        "c o",
        "cust<-o.cust; region<-c.region; n<-+o.amount",
    ),
];

#[tokio::test]
async fn each_column_of_a_view_comes_from_the_columns_that_its_query_says() {
    for (query, tables, expected) in QUERIES {
        let pipeline =
            shop().gold(GoldSpec::new("gold.v".parse().unwrap(), query)).build().unwrap_or_else(|error| panic!("{query}: {error}"));
        let lineage = lineage_of(&pipeline, "gold.v").await;
        assert_eq!((written(&lineage).as_str(), sources(&lineage).as_str()), (expected, tables), "{query}");
    }
}

#[tokio::test]
async fn columns_of_silver_come_through_its_query_or_as_they_are_and_ours_from_what_they_hold() {
    let current = SilverSpec::new("silver.o".parse().unwrap(), ["bronze.o".parse().unwrap()]).with_keys(["id"]);
    let current = SilverSpec {
        sequence_by: vec!["day".to_owned()],
        columns: tributary::ColumnSelection::Only(vec!["id".into(), "note".into()]),
        ..current
    };
    let select = "select o.id, c.name, amount * qty as total from bronze.o o left join bronze.c c on c.id = o.cust";
    let history =
        SilverSpec::new("silver.h".parse().unwrap(), ["bronze.o".parse().unwrap(), "bronze.c".parse().unwrap()]).with_keys(["id"]);
    let history = SilverSpec {
        select: Some(select.to_owned()),
        sequence_by: vec!["day".to_owned()],
        policy: MergePolicy::ScdType2 { track_history: Default::default() },
        ..history
    };
    let pipeline = shop().silver(current).silver(history).build().unwrap();
    assert_eq!(written(&lineage_of(&pipeline, "silver.o").await), "id<-o.id; note<-o.note; __sequence<-o.day");
    let history = lineage_of(&pipeline, "silver.h").await;
    assert_eq!(written(&history), "id<-o.id; name<-c.name; total<-~o.amount ~o.qty; __START_AT<-o.day; __END_AT<-o.day");
    assert_eq!(sources(&history), "c o");
}

#[tokio::test]
async fn a_feeds_columns_come_from_its_path_and_lineage_goes_on_through_layers() {
    let pipeline = shop()
        .silver(SilverSpec {
            sequence_by: vec!["id".to_owned()],
            ..SilverSpec::new("silver.c".parse().unwrap(), ["bronze.c".parse().unwrap()]).with_keys(["id"])
        })
        .gold(GoldSpec::new("gold.regions".parse().unwrap(), "select region, count(id) as n from silver.c group by region"))
        .build()
        .unwrap();
    assert_eq!(written(&lineage_of(&pipeline, "bronze.c").await), "id<-c.id; name<-c.name; region<-c.region");
    assert_eq!(written(&lineage_of(&pipeline, "gold.regions").await), "region<-silver.c.region; n<-+silver.c.id");
    let lake = Lake::open("memory://", Default::default()).unwrap();
    let missing = lake.lineage(&pipeline, Some(&"gold.region".parse().unwrap())).await.unwrap_err();
    assert!(missing.to_string().contains("did you mean `gold.regions`?"), "{missing}");
}

#[tokio::test]
async fn a_view_built_in_code_has_lineage_too() {
    use tributary::BuildWith;
    let built = GoldSpec { sources: vec!["bronze.o".parse().unwrap()], ..GoldSpec::new("gold.v".parse().unwrap(), "select 1 as built") }
        .build_with(|_context, mut inputs| async move {
            use tributary::datafusion::prelude::{col, lit};
            inputs.remove("bronze.o").expect("the input").select(vec![col("id"), (col("amount") + lit(1.0)).alias("more")])
        });
    let pipeline = shop().gold(built).build().unwrap();
    assert_eq!(written(&lineage_of(&pipeline, "gold.v").await), "id<-o.id; more<-~o.amount");
}

/// Keeps events in memory.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Value>>);

impl LineageSink for Kept {
    fn event(&self, event: &Value) {
        self.0.lock().unwrap().push(event.clone());
    }
}

const PIPELINE: &str = "
name: shop
feeds:
  - {name: shop_orders, table: bronze.orders, decode: json, source: {files: {path: orders, format: jsonl}},
     columns: [{name: id, type: long}, {name: status, type: string}, {name: seq, type: long}]}
silver:
  - {table: silver.orders, sources: [bronze.orders], keys: [id], sequence_by: [seq]}
gold:
  - {table: gold.by_status, query: 'select status, count(*) as orders from silver.orders group by status'}
";

fn drops() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("orders")).unwrap();
    std::fs::write(
        folder.path().join("orders/1.jsonl"),
        "{\"id\":1,\"status\":\"new\",\"seq\":1}\n{\"id\":2,\"status\":\"new\",\"seq\":1}\n",
    )
    .unwrap();
    folder
}

async fn rows(lake: &Lake, query: &str) -> Vec<String> {
    let batches = tributary::sql::query(lake, query).await.unwrap().collect().await.unwrap();
    batches.iter().flat_map(rows_as_text).collect()
}

#[tokio::test]
async fn a_run_keeps_the_lineage_of_what_it_committed_in_the_platforms_tables_and_one_without_news_keeps_none() {
    let (drops, lake) = (drops(), Lake::open("memory://", Default::default()).unwrap());
    let pipeline = Pipeline::from_yaml(&[("shop.yml", PIPELINE)]).unwrap();
    let options = || RunOptions { base_data_path: drops.path().to_owned(), ..RunOptions::default() };
    let report = lake.run(&pipeline, options()).await.unwrap();
    assert_eq!(report.exit_code(), tributary::ExitCode::Done, "{report:?}");
    let tables = "select coalesce(source_table_full_name, source_path) as source, source_type, target_table_full_name, target_type, \
                  entity_type, entity_id, entity_run_id, entity_metadata.dlt_pipeline_info.dlt_update_id \
                  from system.access.table_lineage order by source";
    let run = &report.run_id;
    let expected = [
        format!("main.bronze.orders|STREAMING_TABLE|main.silver.orders|STREAMING_TABLE|PIPELINE|shop|{run}|{run}"),
        format!("main.silver.orders|STREAMING_TABLE|main.gold.by_status|MATERIALIZED_VIEW|PIPELINE|shop|{run}|{run}"),
        format!("orders|PATH|main.bronze.orders|STREAMING_TABLE|PIPELINE|shop|{run}|{run}"),
    ];
    assert_eq!(rows(&lake, tables).await, expected);
    let columns = "select coalesce(source_table_name, source_path), source_column_name, target_table_name, target_column_name \
                   from system.access.column_lineage";
    let of_columns = rows(&lake, columns).await;
    for expected in ["orders|status|by_status|status", "orders|id|orders|id", "orders|seq|orders|seq"] {
        assert!(of_columns.contains(&expected.to_owned()), "{expected}: {of_columns:?}");
    }
    let shared = "select count(distinct event_id), count(distinct record_id), count(*) from system.access.table_lineage";
    assert_eq!(rows(&lake, shared).await, ["3|3|3"]);

    lake.run(&pipeline, options()).await.unwrap();
    assert_eq!(rows(&lake, tables).await, expected, "nothing was new");
}

#[tokio::test]
async fn a_run_tells_openlineage_of_each_dataset_when_it_begins_and_how_it_ended() {
    let (drops, lake) = (drops(), Lake::open("memory://", Default::default()).unwrap());
    let pipeline = Pipeline::from_yaml(&[(
        "shop.yml",
        &PIPELINE.replace("group by status'", "group by status', expectations: [{name: none, expression: orders > 5, action: fail}]"),
    )])
    .unwrap();
    let kept = Arc::new(Kept::default());
    let openlineage = Some(OpenLineage { sink: kept.clone(), namespace: "tests".to_owned() });
    let options = RunOptions { base_data_path: drops.path().to_owned(), openlineage, ..RunOptions::default() };
    let report = lake.run(&pipeline, options).await.unwrap();
    let events = kept.0.lock().unwrap().clone();
    let told: Vec<String> =
        events.iter().map(|event| format!("{} {}", event["job"]["name"].as_str().unwrap(), event["eventType"].as_str().unwrap())).collect();
    assert_eq!(
        told,
        [
            "shop.bronze.orders START",
            "shop.bronze.orders COMPLETE",
            "shop.silver.orders START",
            "shop.silver.orders COMPLETE",
            "shop.gold.by_status START",
            "shop.gold.by_status FAIL",
        ]
    );
    for event in &events {
        check_event(event);
        assert_eq!(event["run"]["facets"]["parent"]["run"]["runId"], report.run_id.as_str());
    }
    let silver = &events[3];
    assert_eq!(events[2]["run"]["runId"], silver["run"]["runId"]);
    let output = &silver["outputs"][0];
    assert_eq!(output["name"], "lake/main/silver/orders");
    assert_eq!(output["outputFacets"]["outputStatistics"]["rowCount"], 2);
    assert_eq!(output["facets"]["version"]["datasetVersion"], lake.table("silver.orders").await.unwrap().version().to_string());
    let fields: BTreeMap<&str, &str> = output["facets"]["schema"]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| (field["name"].as_str().unwrap(), field["type"].as_str().unwrap()))
        .collect();
    assert_eq!(fields["id"], "long");
    let status = &output["facets"]["columnLineage"]["fields"]["status"]["inputFields"][0];
    assert_eq!((status["name"].as_str(), status["field"].as_str()), (Some("lake/main/bronze/orders"), Some("status")));
    assert_eq!(status["transformations"][0]["subtype"], "IDENTITY");
    assert_eq!(
        silver["inputs"][0]["facets"]["version"]["datasetVersion"],
        lake.table("bronze.orders").await.unwrap().version().to_string()
    );
    assert!(events[5]["run"]["facets"]["errorMessage"]["message"].as_str().unwrap().contains("GA"), "{}", events[5]);
}

/// What the specification requires of a run event, and of every facet in it.
fn check_event(event: &Value) {
    for key in ["eventTime", "producer", "schemaURL"] {
        assert!(event[key].is_string(), "{key}: {event}");
    }
    assert!(event["eventTime"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().is_ok());
    assert_eq!(event["schemaURL"], "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent");
    let id = event["run"]["runId"].as_str().unwrap();
    assert!(id.len() == 36 && id.split('-').map(str::len).eq([8, 4, 4, 4, 12]), "{id}");
    assert_eq!(event["job"]["namespace"], "tests");
    let datasets = event["inputs"].as_array().unwrap().iter().chain(event["outputs"].as_array().unwrap());
    let mut facets = vec![&event["run"]["facets"], &event["job"]["facets"]];
    for dataset in datasets {
        assert!(dataset["namespace"].is_string() && dataset["name"].is_string(), "{dataset}");
        facets.extend([&dataset["facets"], &dataset["outputFacets"]]);
    }
    for facet in facets.into_iter().filter_map(Value::as_object).flat_map(|facets| facets.values()) {
        assert!(facet["_producer"].as_str().unwrap().starts_with("https://"), "{facet}");
        let shape = facet["_schemaURL"].as_str().unwrap();
        assert!(shape.starts_with("https://openlineage.io/spec/facets/") && shape.contains(".json#/$defs/"), "{shape}");
    }
}
