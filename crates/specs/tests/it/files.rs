use tributary_specs::{ColumnSelection, MergePolicy, Pipeline, TableName};

#[test]
fn a_legal_pipeline_of_every_kind_survives_its_yaml() {
    let text = include_str!("../pipelines/shop.yml");
    let pipeline = Pipeline::from_yaml("shop.yml", text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(Pipeline::from_yaml("again.yml", &pipeline.to_yaml()).unwrap(), pipeline);
    assert_eq!(pipeline.validate(), []);
}

#[test]
fn lists_of_several_files_are_joined_in_the_order_of_the_files() {
    let feeds = "feeds:\n  - {name: shop_orders, table: bronze.shop_orders, source: {files: {path: events, format: kafka_jsonl}}}\n";
    let silver = "name: shop\nsilver:\n  - {table: silver.orders, sources: [BRONZE.shop_orders], keys: [id]}\n";
    let pipeline = Pipeline::from_files(&[("silver.yml", silver), ("feeds.yml", feeds)]).unwrap();
    assert_eq!((pipeline.name.as_str(), pipeline.feeds.len()), ("shop", 1));
    assert_eq!(pipeline.silver[0].sources, [TableName::new("bronze", "shop_orders")]);
}

#[test]
fn a_variant_with_defaults_alone_may_be_written_as_a_word() {
    let text = "name: x\nexternal: [raw.t]\nsilver:\n  - {table: silver.a, sources: [raw.t], keys: [id], policy: scd_type2}\n  - {table: silver.b, sources: [raw.t], keys: [id], policy: insert_only}\n";
    let pipeline = Pipeline::from_yaml("x.yml", text).unwrap();
    assert_eq!(pipeline.silver[0].policy, MergePolicy::ScdType2 { track_history: ColumnSelection::All });
    assert_eq!(pipeline.silver[1].policy, MergePolicy::InsertOnly { exact: false });
}

#[test]
fn what_the_queries_read_is_validated_at_the_query() {
    let text = "name: x\nexternal: [raw.t]\ngold:\n  - {table: gold.a, query: raw.t}\n  - {table: gold.b, query: raw.nobody}\n  - {table: gold.c, query: '('}\n";
    let sources_of = |query: &str| query.parse().map(|table| vec![table]).map_err(|_| "it is no SQL".to_owned());
    let errors = Pipeline::from_files_with(&[("x.yml", text)], sources_of).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "x.yml:5:5: gold[1].sources[0]: no feed or dataset makes raw.nobody (SP0032)\n\
         x.yml:6:28: gold[2].query: the query cannot be read: it is no SQL (SP0041)"
    );
    let only_good = text.lines().take(4).collect::<Vec<_>>().join("\n");
    let pipeline = Pipeline::from_files_with(&[("x.yml", &only_good)], sources_of).unwrap();
    assert_eq!(pipeline.gold[0].sources, [TableName::new("raw", "t")]);
}
