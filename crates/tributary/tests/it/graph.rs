//! The graph in each of its forms.

use std::sync::Arc;

use tributary::object_store::memory::InMemory;
use tributary::{Graph, Pipeline, RunOptions};
use tributary_testkit::assert_golden;

use crate::shop::open;

const PIPELINE: &str = "
name: shop
feeds:
  - {name: shop_orders, table: bronze.orders, decode: json, source: {files: {path: orders, format: jsonl}},
     columns: [{name: id, type: long}, {name: cust, type: long}, {name: amount, type: double}, {name: seq, type: long}]}
  - {name: shop_customers, table: bronze.customers, decode: json, source: {kafka: {topics: [shop.customers], bootstrap: 'broker:9092'}},
     columns: [{name: id, type: long}, {name: name, type: string}, {name: seq, type: long}]}
silver:
  - {table: silver.orders, sources: [bronze.orders], keys: [id], sequence_by: [seq]}
  - {table: silver.customers, sources: [bronze.customers], keys: [id], sequence_by: [seq], policy: {scd_type2: {}}}
gold:
  - table: gold.revenue
    query: >-
      select c.name, sum(o.amount) as revenue, count(*) as orders
      from silver.orders o join silver.customers c on c.id = o.cust group by c.name
  - {table: gold.big, query: 'select name, revenue * 2 as twice from gold.revenue where orders > 1'}
";

async fn graph() -> Graph {
    let pipeline = Pipeline::from_yaml(&[("shop.yml", PIPELINE)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("orders")).unwrap();
    std::fs::write(
        folder.path().join("orders/1.jsonl"),
        "{\"id\":1,\"cust\":7,\"amount\":2.5,\"seq\":1}\n{\"id\":2,\"cust\":7,\"amount\":1.5,\"seq\":1}\n",
    )
    .unwrap();
    let lake = open(Arc::new(InMemory::new()));
    let only = ["bronze.orders", "silver.orders"].map(|table| table.parse().unwrap()).to_vec();
    let options = RunOptions { base_data_path: folder.path().to_owned(), only, ..RunOptions::default() };
    lake.run(&pipeline, options).await.unwrap();
    lake.graph(&pipeline).await.unwrap()
}

#[tokio::test]
async fn golden_forms_of_a_graph() {
    let graph = graph().await;
    assert_golden!("tests/golden/graph.txt", graph.to_text());
    assert_golden!("tests/golden/graph.dot", graph.to_dot());
    assert_golden!("tests/golden/graph.mmd", graph.to_mermaid());
}

#[tokio::test]
async fn the_page_stands_alone_and_holds_the_whole_graph() {
    let graph = graph().await;
    let page = graph.to_html();
    for outside in ["http://", "https://", "src=", "@import", "url(http", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"graph\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    assert_eq!(serde_json::from_str::<Graph>(data).unwrap(), graph);
    assert_eq!(page.matches("class=\"edge\"").count(), 7);
    assert_eq!(page.matches("class=\"node ").count(), graph.nodes.len());
}

#[tokio::test]
async fn no_text_of_the_data_becomes_a_part_of_the_page() {
    let evil = "</script><script>alert(1)</script>";
    let pipeline = Pipeline::from_yaml(&[("shop.yml", &PIPELINE.replace("path: orders", &format!("path: '{evil}'")))]).unwrap();
    let page = open(Arc::new(InMemory::new())).graph(&pipeline).await.unwrap().to_html();
    assert!(!page.contains(evil) && !page.contains("<script>alert"), "{page}");
    assert_eq!(page.matches("</script>").count(), 2);
}
