use tributary_specs::{FileFormat, FileSource, GoldSpec, Layer, Pipeline, SilverSpec, SourceFeed, TableName};

fn table(text: &str) -> TableName {
    text.parse().unwrap()
}

fn feed(name: &str) -> SourceFeed {
    SourceFeed::new(name, TableName::new("bronze", name), FileSource::new("events", FileFormat::KafkaJsonl))
}

fn silver(name: &str, sources: &[&str]) -> SilverSpec {
    SilverSpec::new(TableName::new("silver", name), sources.iter().map(|text| table(text))).with_keys(["id"])
}

fn gold(name: &str, sources: &[&str]) -> GoldSpec {
    GoldSpec::new(TableName::new("gold", name), "SELECT 1").with_sources(sources.iter().map(|text| table(text)))
}

fn names(pipeline: &Pipeline) -> Vec<Vec<String>> {
    let phases = pipeline.phases().unwrap();
    phases.iter().map(|phase| phase.iter().map(|dataset| dataset.table.to_string()).collect()).collect()
}

#[test]
fn a_phase_reads_only_what_earlier_phases_make() {
    let pipeline = Pipeline::builder("shop")
        .feed(feed("shop_orders"))
        .feed(feed("shop_customers"))
        .silver(silver("enriched", &["silver.orders", "silver.customers"]))
        .silver(silver("orders", &["bronze.shop_orders"]))
        .silver(silver("customers", &["bronze.shop_customers"]))
        .gold(gold("revenue", &["silver.enriched"]))
        .gold(gold("revenue_rank", &["gold.revenue", "silver.customers"]))
        .gold(gold("customer_count", &["silver.customers"]))
        .build()
        .unwrap();
    assert_eq!(
        names(&pipeline),
        [
            vec!["bronze.shop_orders", "bronze.shop_customers"],
            vec!["silver.orders", "silver.customers"],
            vec!["silver.enriched", "gold.customer_count"],
            vec!["gold.revenue"],
            vec!["gold.revenue_rank"],
        ]
    );
}

#[test]
fn a_view_whose_sources_are_not_known_yet_comes_after_all_silver() {
    let pipeline = Pipeline::builder("shop")
        .feed(feed("shop_orders"))
        .silver(silver("orders", &["bronze.shop_orders"]))
        .gold(gold("count", &[]))
        .build()
        .unwrap();
    let phases = pipeline.phases().unwrap();
    assert_eq!(phases[2][0].layer, Layer::Gold);
    assert_eq!(phases.len(), 3);
}

#[test]
fn a_dataset_that_reads_only_foreign_tables_is_in_the_first_phase() {
    let pipeline = Pipeline::builder("shop").external(table("raw.orders")).silver(silver("orders", &["Raw.Orders"])).build().unwrap();
    assert_eq!(names(&pipeline), [["silver.orders"]]);
    assert_eq!(pipeline.silver[0].sources, [table("raw.orders")], "the source is spelled as the table is");
}

#[test]
fn each_circle_is_named_once_with_all_its_tables() {
    let pipeline = Pipeline {
        silver: vec![
            silver("a", &["silver.b"]),
            silver("b", &["silver.c", "silver.a"]),
            silver("c", &["silver.b"]),
            silver("self", &["silver.self"]),
        ],
        ..Pipeline::default()
    };
    let errors = pipeline.phases().unwrap_err().to_string();
    assert_eq!(
        errors,
        "silver[0].sources: datasets read each other in a circle: silver.a -> silver.b -> silver.a (SP0033)\n\
         silver[2].sources: datasets read each other in a circle: silver.c -> silver.b -> silver.c (SP0033)\n\
         silver[3].sources: datasets read each other in a circle: silver.self -> silver.self (SP0033)"
    );
}

#[test]
fn a_long_chain_is_ordered_without_recursion() {
    let chain = |at: usize| silver(&format!("t{at}"), &[&format!("silver.t{}", at + 1)]);
    let pipeline = Pipeline { silver: (0..300).map(chain).collect(), ..Pipeline::default() };
    assert_eq!(pipeline.phases().unwrap().len(), 300);
}
