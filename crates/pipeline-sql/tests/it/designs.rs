//! The pipelines of the three designs.

use tributary_pipeline_sql::{Kind, Options, parse};
use tributary_specs::{Decode, Encoding, ExpectationAction, FileFormat, MergePolicy, SchemaPolicy, Source};

use crate::folder;

#[test]
fn the_retail_pipeline_is_feeds_of_changes_merged_tables_and_views() {
    let parsed = parse(&folder("dlt_pipelines/retail"), &Default::default(), &Options::default());
    assert!(parsed.faults.is_empty(), "{:#?}", parsed.faults);
    assert_eq!(parsed.not_applied, []);
    let pipeline = parsed.to_pipeline("retail").expect("no faults").pipeline;
    assert_eq!(pipeline.external, []);
    let feeds: Vec<(&str, String, usize)> =
        pipeline.feeds.iter().map(|feed| (feed.name.as_str(), feed.table.to_string(), feed.columns.len())).collect();
    assert_eq!(
        feeds,
        [
            ("shop_customers", "bronze.customers".to_owned(), 13),
            ("depot_inventory", "bronze.inventory".to_owned(), 3),
            ("shop_orders", "bronze.orders".to_owned(), 11),
        ]
    );
    assert!(pipeline.feeds.iter().all(|feed| feed.decode == Decode::Debezium));
    let inventory = &pipeline.feeds[1];
    assert_eq!(inventory.schema_policy, SchemaPolicy::Widen);
    let Source::Files(files) = &inventory.source else { panic!("{inventory:?}") };
    assert_eq!(
        (files.path.as_str(), files.format, files.topics.as_slice()),
        ("depot", FileFormat::KafkaJsonl, &["wh.depot.inventory".to_owned()][..])
    );
    let amount = pipeline.feeds[2].columns.iter().find(|column| column.name == "amount").expect("amount");
    assert_eq!((amount.data_type.to_string().as_str(), amount.encoding), ("decimal(12,2)", Some(Encoding::Unscaled)));
    let mut silver: Vec<(String, String, &MergePolicy)> =
        pipeline.silver.iter().map(|spec| (spec.table.to_string(), spec.keys.join(","), &spec.policy)).collect();
    silver.sort_by(|a, b| a.0.cmp(&b.0));
    let of = |table: &str, keys: &str| (table.to_owned(), keys.to_owned());
    let history = silver.remove(0);
    assert!(history.0 == "silver.customers" && history.1 == "id" && matches!(history.2, MergePolicy::ScdType2 { .. }), "{history:?}");
    let current: Vec<(String, String)> = silver.iter().map(|(table, keys, _)| of(table, keys)).collect();
    assert_eq!(current, [of("silver.customers_current", "id"), of("silver.inventory", "sku,warehouse"), of("silver.orders", "order_id")]);
    assert!(silver.iter().all(|(_, _, policy)| **policy == MergePolicy::ScdType1));
    let rules: Vec<&str> = pipeline.silver.iter().flat_map(|spec| &spec.expectations).map(|rule| rule.expression.as_str()).collect();
    assert_eq!(rules, ["qty > 0"]);
    let mut views: Vec<(String, Vec<String>)> =
        pipeline.gold.iter().map(|view| (view.table.to_string(), view.sources.iter().map(ToString::to_string).collect())).collect();
    views.sort();
    let view = |name: &str, sources: &[&str]| (name.to_owned(), sources.iter().map(|source| (*source).to_owned()).collect::<Vec<_>>());
    assert_eq!(
        views,
        [
            view("gold.customer_orders", &["silver.customers_current", "silver.orders"]),
            view("gold.daily_revenue", &["silver.orders"]),
            view("gold.low_stock", &["silver.inventory"]),
        ]
    );
}

#[test]
fn the_articles_sql_is_read_byte_for_byte() {
    let files = folder("dlt_pipelines/lakeflow");
    assert_eq!(files.len(), 1);
    let parsed = parse(&files, &Default::default(), &Options::default());
    assert!(parsed.faults.is_empty(), "{:#?}", parsed.faults);
    let lowered = parsed.to_pipeline("lakeflow").expect("no faults");
    assert_eq!(lowered.catalog.as_deref(), Some("prod"));
    let pipeline = lowered.pipeline;
    assert_eq!(
        pipeline.external.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["bronze.customers_raw", "bronze.orders_raw", "bronze.telemetry_events"]
    );
    let silver = |name: &str| pipeline.silver.iter().find(|spec| spec.table.name == name).expect("a silver table");
    assert_eq!(silver("orders").policy, MergePolicy::ScdType1);
    assert!(matches!(silver("customers").policy, MergePolicy::ScdType2 { .. }));
    let telemetry = silver("telemetry_events");
    assert_eq!(telemetry.policy, MergePolicy::Append);
    assert_eq!(telemetry.select, None);
    assert_eq!(telemetry.expectations[0].expression, "event_type IN ('page_view', 'add_to_cart', 'purchase')");
    assert_eq!(telemetry.expectations[0].action, ExpectationAction::Drop);
    let gold = &pipeline.gold[0];
    assert_eq!(
        gold.sources.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["silver.orders", "silver.customers", "silver.telemetry_events"]
    );
    assert!(
        gold.query.starts_with("SELECT \n  o.order_id") && gold.query.contains("FROM silver.orders o \nLEFT JOIN silver.customers c"),
        "{}",
        gold.query
    );
    assert_eq!(parsed.datasets.iter().filter(|dataset| dataset.kind == Kind::StreamingTable).count(), 3);
    let implicit = parsed.notices.iter().filter(|notice| notice.kind == "implicit_deletes").count();
    assert_eq!(implicit, 2, "{:#?}", parsed.notices);
}

#[test]
fn the_gym_pipeline_is_read() {
    let parsed = parse(&folder("dlt_pipelines/gym"), &Default::default(), &Options::default());
    assert!(parsed.faults.is_empty(), "{:#?}", parsed.faults);
    let pipeline = parsed.to_pipeline("gym").expect("no faults").pipeline;
    assert_eq!((pipeline.feeds.len(), pipeline.silver.len(), pipeline.gold.len()), (4, 9, 5));
    let phases = pipeline.phases().expect("no circle");
    let of = |table: &str| phases.iter().position(|phase| phase.iter().any(|dataset| dataset.table.to_string() == table));
    assert!(of("bronze.date_lookup") < of("bronze.kafka_multiplex_bz"), "the lookup is loaded before what it is joined to");
    assert!(of("silver.user_bins") < of("gold.workout_bpm_summary") && of("silver.workouts") < of("silver.completed_workouts"));
    let multiplex = pipeline.silver.iter().find(|spec| spec.table.name == "kafka_multiplex_bz").expect("the multiplexed topics");
    assert_eq!((&multiplex.policy, multiplex.partition_by.join(",")), (&MergePolicy::Append, "topic,week_part".to_owned()));
    assert_eq!(multiplex.expectations[0].action, ExpectationAction::Fail);
    let logs = pipeline.silver.iter().find(|spec| spec.table.name == "gym_logs").expect("gym_logs");
    assert_eq!(logs.policy, MergePolicy::MonotonicAdvance { columns: vec!["logout".to_owned()] });
}
