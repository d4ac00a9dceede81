//! The pipelines of the three designs.

use std::path::Path;

use tributary_pipeline_sql::{Kind, Options, parse};
use tributary_specs::{ExpectationAction, MergePolicy, Pipeline};

use crate::folder;

fn retail_yaml() -> Pipeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pipelines/retail.yml");
    let text = std::fs::read_to_string(path).expect("the YAML");
    Pipeline::from_yaml("retail.yml", &text).expect("a pipeline")
}

#[test]
fn the_retail_pipeline_is_the_same_in_sql_as_in_yaml() {
    let parsed = parse(&folder("dlt_pipelines/retail"), &Default::default(), &Options::default());
    assert!(parsed.faults.is_empty(), "{:#?}", parsed.faults);
    assert_eq!(parsed.not_applied, []);
    let mut sql = parsed.to_pipeline("retail").expect("no faults").pipeline;
    let mut yaml = retail_yaml();
    assert!(sql.gold.iter().all(|view| !view.sources.is_empty()));
    for pipeline in [&mut sql, &mut yaml] {
        pipeline.feeds.sort_by(|a, b| a.table.cmp(&b.table));
        pipeline.silver.sort_by(|a, b| a.table.cmp(&b.table));
        pipeline.gold.sort_by(|a, b| a.table.cmp(&b.table));
        for view in &mut pipeline.gold {
            view.sources.clear();
            view.query = view.query.trim().to_owned();
        }
    }
    assert_eq!(sql, yaml);
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
    assert_eq!((pipeline.feeds.len(), pipeline.silver.len(), pipeline.gold.len()), (4, 5, 5));
    assert_eq!(pipeline.phases().expect("no circle").len(), 5);
    let logs = pipeline.silver.iter().find(|spec| spec.table.name == "gym_logs").expect("gym_logs");
    assert_eq!(logs.policy, MergePolicy::MonotonicAdvance { columns: vec!["logout".to_owned()] });
}
