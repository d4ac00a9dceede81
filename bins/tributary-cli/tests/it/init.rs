//! `tributary init`.

use crate::commands::Shop;

fn validated(shop: &Shop, folder: &str) {
    let said = shop.says(0, &["validate", folder]);
    assert!(said.ends_with("0 errors\n"), "{said}");
}

#[test]
fn every_template_writes_a_bundle_that_validates_and_says_what_to_type_next() {
    let shop = Shop::new();
    for template in ["retail", "gym", "lakeflow", "empty"] {
        let said = shop.says(0, &["init", template, "--template", template]);
        assert!(said.contains(&format!("wrote {template}/databricks.yml\n")), "{said}");
        assert!(said.ends_with(&format!("next: tributary validate {template}\n")), "{said}");
        validated(&shop, template);
    }
    assert_eq!(
        std::fs::read_to_string(shop.path("retail/dlt_pipelines/retail/silver_orders.sql")).unwrap(),
        include_str!("../../../../dlt_pipelines/retail/silver_orders.sql")
    );
    ["retail", "gym"].iter().for_each(|template| drop(shop.says(0, &["test", template])));
    let bare = shop.says(0, &["init", "bare"]);
    assert!(bare.contains("pipeline: bare\n"), "{bare}");
}

#[test]
fn files_in_the_way_are_named_and_nothing_is_written() {
    let shop = Shop::new();
    shop.write("shop/bundles/pipelines/retail.yml", "mine\n");
    let said = shop.says(2, &["init", "shop", "--template", "retail"]);
    assert!(said.contains("error[CL0043]: in shop these files are in the way: bundles/pipelines/retail.yml\n"), "{said}");
    assert!(!shop.path("shop/databricks.yml").exists());
    shop.says(0, &["init", "other", "--template", "retail"]);
    let again = shop.says(2, &["init", "other", "--template", "retail"]);
    assert!(again.contains("databricks.yml, ") && again.contains("silver_orders.sql"), "{again}");
}

#[test]
fn a_file_of_every_kind_becomes_a_bundle_that_validates_and_runs() {
    let shop = Shop::new();
    shop.write("in/orders.csv", "id,price,note\n1,1.50,\n2,2.25,x\n");
    shop.write("in/visits.jsonl", "{\"page\":\"a\",\"ms\":3}\n{\"page\":\"b\",\"ms\":4}\n");
    let change = |offset: u32, op: &str, status: &str| {
        format!(
            "{{\"topic\":\"shop.public.orders\",\"partition\":0,\"offset\":{offset},\"key\":\"{{\\\"id\\\":1}}\",\
             \"value\":\"{{\\\"before\\\":null,\\\"after\\\":{{\\\"id\\\":1,\\\"status\\\":\\\"{status}\\\"}},\\\"source\\\":{{}},\\\"op\\\":\\\"{op}\\\"}}\"}}\n"
        )
    };
    shop.write("in/changes.jsonl", &(change(0, "c", "new") + &change(1, "u", "paid")));
    for (folder, file, table, count) in [
        ("of_csv", "in/orders.csv", "silver.orders", 2),
        ("of_json", "in/visits.jsonl", "silver.visits", 2),
        ("of_changes", "in/changes.jsonl", "silver.shop_public_orders", 1),
    ] {
        let said = shop.says(0, &["init", folder, "--from-file", file]);
        assert!(said.contains(&format!("wrote {folder}/bundles/feeds/{folder}.yml\n")), "{said}");
        validated(&shop, folder);
        let run = ["run", "--pipeline", folder, "--warehouse", "../lake"];
        shop.says_in(folder, 0, &run);
        let query = format!("select count(*) as n from {table}");
        assert_eq!(shop.says(0, &["sql", &query, "--warehouse", "lake", "-o", "csv"]), format!("n\n{count}\n"), "{folder}");
    }
    let feeds = std::fs::read_to_string(shop.path("of_csv/bundles/feeds/of_csv.yml")).unwrap();
    assert!(feeds.contains("- { name: price, type: \"decimal(38,2)\" } # "), "{feeds}");
    let silver = std::fs::read_to_string(shop.path("of_csv/dlt_pipelines/of_csv/silver_orders.sql")).unwrap();
    assert!(silver.contains("-- not known: which columns are the key"), "{silver}");
    let merged = std::fs::read_to_string(shop.path("of_changes/dlt_pipelines/of_changes/silver_shop_public_orders.sql")).unwrap();
    assert!(merged.contains("KEYS (`id`)"), "{merged}");
}

#[test]
fn a_csv_file_has_the_columns_that_its_delimiter_cuts_and_a_place_below_the_base_data_path() {
    let shop = Shop::new();
    let rows = "id;price\n1;1,50\n2;2,25\n";
    shop.write("in/orders.csv", rows);
    shop.write("below/data/raw/drops/orders.csv", rows);
    let absolute = shop.path("in/orders.csv");
    let below = shop.path("below/data/raw/drops/orders.csv");
    for (folder, file) in [("elsewhere", absolute.to_str().unwrap()), ("relative", "in/orders.csv"), ("below", below.to_str().unwrap())] {
        shop.says(0, &["init", folder, "--from-file", file]);
        let feeds = std::fs::read_to_string(shop.path(&format!("{folder}/bundles/feeds/{folder}.yml"))).unwrap();
        assert!(feeds.contains("delimiter: \";\"") && feeds.contains("{ name: id, type: long }"), "{feeds}");
        assert_eq!(feeds.contains("path: \"drops/orders.csv\""), folder == "below", "{feeds}");
        assert_eq!(feeds.contains("# the path is of this machine alone"), folder != "below", "{feeds}");
        validated(&shop, folder);
        shop.says_in(folder, 0, &["run", "--pipeline", folder, "--warehouse", &format!("../lake_{folder}")]);
        let query = ["sql", "select id, price from silver.orders order by id", "-o", "csv", "--warehouse", &format!("lake_{folder}")];
        assert_eq!(shop.says(0, &query), "id,price\n1,\"1,50\"\n2,\"2,25\"\n");
    }
}

#[test]
fn what_cannot_be_begun_with_says_why() {
    let shop = Shop::new();
    shop.write("empty.jsonl", "");
    for arguments in [
        &["init"][..],
        &["init", "x", "--template", "retial"],
        &["init", "x", "--template", "retail", "--from-file", "empty.jsonl"],
        &["init", "x", "--from-file", "empty.jsonl"],
        &["init", "x", "--from-topic", "t"],
    ] {
        shop.says(2, arguments);
    }
    assert!(!shop.path("x").exists());
}
