//! Functions in FROM of pipelines, as a shell sees what they come to.

use crate::commands::Shop;

const SQL: &str = "
CREATE STREAMING TABLE bronze.orders (id BIGINT, status STRING, seq BIGINT)
AS SELECT * FROM STREAM read_files('orders', format => 'json');
CREATE STREAMING TABLE silver.orders;
CREATE FLOW orders AS AUTO CDC INTO silver.orders FROM STREAM(bronze.orders) KEYS (id) SEQUENCE BY seq;
CREATE STREAMING TABLE silver.log
AS SELECT id, status, _change_type AS kind, _commit_version AS version FROM STREAM table_changes('silver.orders', 1);
CREATE MATERIALIZED VIEW gold.kinds
AS SELECT _change_type AS kind, count(*) AS n FROM table_changes('silver.orders', 0) GROUP BY _change_type;
CREATE MATERIALIZED VIEW gold.files
AS SELECT *, _metadata.file_name, _metadata.file_size FROM read_files('orders', format => 'json', schema => 'id BIGINT, status STRING, seq BIGINT');
CREATE STREAMING TABLE silver.sizes
AS SELECT *, _metadata.file_size AS bytes, _metadata.file_modification_time AS at FROM STREAM read_files('orders', format => 'json');
CREATE MATERIALIZED VIEW gold.names AS SELECT DISTINCT file_name FROM gold.files;
CREATE MATERIALIZED VIEW gold.numbers AS SELECT r.id, o.status FROM range(1, 4) r LEFT JOIN silver.orders o ON o.id = r.id;
";

fn rows(shop: &Shop, query: &str) -> Vec<String> {
    shop.json(&["sql", query, "-o", "json"]).iter().map(ToString::to_string).collect()
}

#[test]
fn changes_of_a_table_are_a_stream_and_a_batch_and_a_folder_is_a_view() {
    let shop = Shop::new();
    shop.write("shop.sql", SQL);
    shop.says(0, &["validate", "--pipeline", "shop.sql"]);
    shop.says(0, &["plan", "--pipeline", "shop.sql"]);
    shop.says(0, &["run", "--pipeline", "shop.sql"]);
    let log = "SELECT id, status, kind FROM silver.log ORDER BY version, id, kind DESC";
    let inserted = [r#"{"id":1,"kind":"insert","status":"new"}"#, r#"{"id":2,"kind":"insert","status":"new"}"#];
    assert_eq!(rows(&shop, log), inserted);
    shop.write("data/raw/orders/2.jsonl", "{\"id\":2,\"status\":\"paid\",\"seq\":2}\n");
    shop.says(0, &["plan", "--pipeline", "shop.sql"]);
    shop.says(0, &["run", "--pipeline", "shop.sql"]);
    let changed = [r#"{"id":2,"kind":"update_preimage","status":"new"}"#, r#"{"id":2,"kind":"update_postimage","status":"paid"}"#];
    assert_eq!(rows(&shop, log), [inserted, changed].concat());
    let kinds = rows(&shop, "SELECT kind, n FROM gold.kinds ORDER BY kind");
    assert_eq!(kinds, [r#"{"kind":"insert","n":2}"#, r#"{"kind":"update_postimage","n":1}"#, r#"{"kind":"update_preimage","n":1}"#]);
    assert_eq!(rows(&shop, "SELECT count(*) AS n, count(status) AS known FROM gold.numbers"), [r#"{"known":2,"n":3}"#]);
    for (range, ids) in [("3", "0,1,2"), ("-1, 2", "-1,0,1"), ("5, 0, -2", "5,3,1"), ("2, 2", ""), ("3, 1", ""), ("0, 5, -1", "")] {
        let query =
            format!("SELECT id FROM range({range}) AS r WHERE r.id > -9 ORDER BY id * CASE WHEN '{range}' LIKE '5%' THEN -1 ELSE 1 END");
        let found: Vec<String> = shop.json(&["sql", &query, "-o", "json"]).iter().map(|row| row["id"].to_string()).collect();
        assert_eq!(found.join(","), ids, "range({range})");
    }
    shop.says(2, &["sql", "SELECT id FROM range(0, 9, 0)"]);
    let files = "SELECT id, file_name FROM gold.files ORDER BY file_name, id";
    let names = rows(&shop, files);
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[2], r#"{"file_name":"2.jsonl","id":2}"#);
    let sizes = rows(&shop, "SELECT bytes, count(*) AS n, count(at) AS known FROM silver.sizes GROUP BY bytes ORDER BY bytes");
    assert_eq!(sizes, [r#"{"bytes":33,"known":1,"n":1}"#, r#"{"bytes":64,"known":2,"n":2}"#]);
    let columns = shop.says(0, &["ddl", "silver.sizes", "--pipeline", "shop.sql"]);
    assert!(!columns.contains("_file_size") && columns.contains("bytes"), "{columns}");
    assert_eq!(rows(&shop, "SELECT DISTINCT file_size AS n FROM gold.files ORDER BY n"), [r#"{"n":33}"#, r#"{"n":64}"#]);
    std::fs::remove_file(shop.path("data/raw/orders/1.jsonl")).unwrap();
    let plan = shop.says(0, &["plan", "--pipeline", "shop.sql"]);
    assert!(plan.contains("files of its folder have changed or gone"), "{plan}");
    shop.says(0, &["run", "--pipeline", "shop.sql"]);
    assert_eq!(rows(&shop, files), [r#"{"file_name":"2.jsonl","id":2}"#], "the view is what the folder holds");
    assert_eq!(rows(&shop, log).len(), 4, "and what was taken as a stream stays");
    let before = shop.versions();
    shop.says(0, &["run", "--pipeline", "shop.sql"]);
    let moved: Vec<_> = shop.versions().into_iter().filter(|version| !before.contains(version) && !version.0.contains("runs")).collect();
    assert!(moved.is_empty(), "{moved:?}");
}
