//! `tributary schema infer`.

use crate::commands::Shop;

#[test]
fn a_proposed_feed_is_taken_by_a_pipeline_as_it_stands() {
    let shop = Shop::new();
    shop.write("in/orders.csv", "id,price,note\n1,1.50,\n2,2.25,x\n");
    shop.write(
        "in/changes.jsonl",
        "{\"topic\":\"shop.public.customers\",\"partition\":0,\"offset\":0,\"key\":\"{\\\"id\\\":1}\",\
         \"value\":\"{\\\"before\\\":null,\\\"after\\\":{\\\"id\\\":1,\\\"since\\\":20000},\\\"source\\\":{},\\\"op\\\":\\\"c\\\"}\"}\n",
    );
    let csv = shop.says(0, &["schema", "infer", "--from-file", "in/orders.csv"]);
    let changes = shop.says(0, &["schema", "infer", "--from-file", "in/changes.jsonl", "-n", "10"]);
    assert!(csv.contains("- { name: price, type: \"decimal(38,2)\" } # "), "{csv}");
    assert!(changes.contains("- { name: since, type: long } # a whole number; not known: whether it is days (date)"), "{changes}");
    shop.write("proposed.yml", &format!("name: proposed\nfeeds:\n{csv}{changes}"));
    let validated = shop.says(0, &["validate", "-p", "proposed.yml"]);
    assert!(validated.contains("bronze.orders") && validated.contains("bronze.shop_public_customers"), "{validated}");
}

#[test]
fn what_cannot_be_proposed_says_why_and_exits_2() {
    let shop = Shop::new();
    shop.write("empty.jsonl", "");
    for arguments in [
        &["schema", "infer", "--from-file", "empty.jsonl"][..],
        &["schema", "infer", "--from-file", "nowhere.jsonl"],
        &["schema", "infer"],
        &["schema", "infer", "--from-file", "a", "--from-topic", "t"],
        &["schema", "infer", "--from-topic", "t"],
    ] {
        shop.says(2, arguments);
    }
}
