//! Earlier versions of tables: read by every spelling, compared, brought back; and what a vacuum says.

use tributary::maintenance::{Positions, RestoreOptions, RestoreTo};
use tributary::sql::SessionOptions;
use tributary::{DiffOptions, Fault as _, Lake, TableName};

use crate::statements::{Sql, lines};

fn lake() -> Lake {
    Lake::open("memory://", Default::default()).expect("a lake")
}

fn sql(lake: &Lake) -> Sql {
    Sql::over(lake, SessionOptions::default())
}

const STOCK: &str = "CREATE SCHEMA shop; CREATE TABLE shop.stock (sku STRING, pieces INT); INSERT INTO shop.stock VALUES ('a', 1), ('b', 2);
    UPDATE shop.stock SET pieces = 5 WHERE sku = 'b'; INSERT INTO shop.stock VALUES ('c', 3), ('c', 3); DELETE FROM shop.stock WHERE sku = 'a'";

#[tokio::test]
async fn an_earlier_version_is_read_by_every_spelling_and_one_that_is_not_there_is_told() {
    let lake = lake();
    let mut sql = sql(&lake);
    sql.says(STOCK).await;
    for table in ["shop.stock@v1", "shop.stock VERSION AS OF 1", "shop.stock FOR SYSTEM_VERSION AS OF '1'", "main.shop.stock@v1"] {
        assert_eq!(sql.says(&format!("SELECT * FROM {table} ORDER BY sku")).await, "a|1\nb|2", "{table}");
    }
    let joined = "SELECT now.pieces - then.pieces FROM shop.stock now JOIN shop.stock@v1 then ON now.sku = then.sku";
    assert_eq!(sql.says(joined).await, "3");
    assert!(sql.says("SELECT * FROM shop.stock@v99").await.starts_with("error[LK0011]"));
    assert!(sql.says("SELECT * FROM shop.stock@19990101000000000").await.starts_with("error[LK0012]"));
}

#[tokio::test]
async fn a_table_is_restored_by_sql_and_a_vacuum_lists_what_it_would_delete() {
    let lake = lake();
    let mut sql = sql(&lake);
    sql.says(STOCK).await;
    let said = sql.says("RESTORE TABLE shop.stock TO VERSION AS OF 1").await;
    assert!(said.starts_with("main.shop.stock is at version 5 what it was at version 1"), "{said}");
    assert_eq!(sql.says("SELECT * FROM shop.stock ORDER BY sku").await, "a|1\nb|2");
    assert_eq!(sql.says("RESTORE shop.stock VERSION AS OF 1").await, "main.shop.stock is as it was at version 1");
    assert!(sql.says("RESTORE TABLE shop.stock TO VERSION AS OF 99").await.starts_with("error[LK0011]"));
    assert_eq!(sql.says("VACUUM shop.stock DRY RUN").await, "", "everything is within the retention");
    assert!(sql.says("VACUUM shop.stock RETAIN 0 HOURS").await.starts_with("error[MT0005]"));
    assert_eq!(sql.says("SELECT count(*) FROM shop.stock@v4").await, "3");
}

#[tokio::test]
async fn two_versions_are_compared_by_key_or_as_bags() {
    let lake = lake();
    sql(&lake).says(STOCK).await;
    let stock = lake.table("shop.stock").await.expect("the table");
    let first = stock.at_version(1).await.expect("version 1");
    let bags = lake.diff(&first, &stock, &DiffOptions::default()).await.expect("compared");
    assert_eq!((bags.before, bags.after, bags.added, bags.removed, bags.changed), (1, stock.version(), 3, 2, 0));
    assert_eq!(lines(&bags.samples), ["added|1|b|5", "added|2|c|3", "removed|1|a|1", "removed|1|b|2"]);
    let keyed = DiffOptions { keys: Some(vec!["SKU".to_owned()]), ..DiffOptions::default() };
    let keys = lake.diff(&first, &stock, &keyed).await.expect("compared");
    assert_eq!((keys.keys.as_slice(), keys.added, keys.removed, keys.changed), (["sku".to_owned()].as_slice(), 2, 1, 1));
    assert_eq!(lines(&keys.samples), ["added|2|c|3", "removed|1|a|1", "before|1|b|2", "after|1|b|5"]);
    let back = lake.diff(&stock, &first, &DiffOptions { samples: 0, ..keyed.clone() }).await.expect("compared");
    assert_eq!((back.added, back.removed, back.changed, back.samples.num_rows()), (1, 2, 1, 0));
    let same = lake.diff(&stock, &stock, &keyed).await.expect("compared");
    assert_eq!((same.added, same.removed, same.changed, same.bytes, same.samples.num_rows()), (0, 0, 0, 0, 0));
    let unknown =
        lake.diff(&first, &stock, &DiffOptions { keys: Some(vec!["skv".to_owned()]), ..keyed }).await.expect_err("no such column");
    assert_eq!(unknown.code().to_string(), "TR0008");
}

const PIPELINE: &str = "CREATE OR REFRESH STREAMING TABLE silver.t;
    CREATE FLOW f AS AUTO CDC INTO silver.t FROM STREAM(bronze.t) KEYS (id) SEQUENCE BY q";

async fn pipeline() -> (Lake, Sql) {
    let lake = lake();
    let mut sql = sql(&lake);
    sql.says(
        "CREATE SCHEMA bronze; CREATE TABLE bronze.t (id BIGINT, v STRING, q BIGINT); INSERT INTO bronze.t VALUES (1, 'a', 1), (2, 'b', 1)",
    )
    .await;
    assert_eq!(sql.says(PIPELINE).await, "silver.t committed");
    sql.says("INSERT INTO bronze.t VALUES (2, 'c', 2), (3, 'd', 1)").await;
    assert_eq!(sql.says(PIPELINE).await, "silver.t committed");
    (lake, sql)
}

#[tokio::test]
async fn the_keys_that_a_table_was_made_with_tell_its_rows_apart() {
    let (lake, _) = pipeline().await;
    let table = lake.table("silver.t").await.expect("the table");
    let first = table.at_version(table.version() - 1).await.expect("the version before");
    let diff = lake.diff(&first, &table, &DiffOptions::default()).await.expect("compared");
    assert_eq!((diff.keys.as_slice(), diff.added, diff.removed, diff.changed), (["id".to_owned()].as_slice(), 1, 0, 1));
}

#[tokio::test]
async fn a_restored_table_takes_up_again_what_came_since_or_does_not() {
    for (positions, expected) in [(Positions::Back, "1|a\n2|c\n3|d"), (Positions::Keep, "1|a\n2|b")] {
        let (lake, mut sql) = pipeline().await;
        let name: TableName = "silver.t".parse().expect("a name");
        let first = lake.table("silver.t").await.expect("the table").version() - 1;
        let options = RestoreOptions { positions, ..RestoreOptions::default() };
        lake.restore(&name, RestoreTo::Version(first), &options).await.expect("restored");
        assert_eq!(sql.says("SELECT id, v FROM silver.t ORDER BY id").await, "1|a\n2|b");
        sql.says(PIPELINE).await;
        assert_eq!(sql.says("SELECT id, v FROM silver.t ORDER BY id").await, expected, "{positions:?}");
    }
}

#[tokio::test]
async fn a_run_stops_at_a_table_that_somebody_else_restored_until_a_person_has_chosen() {
    let (lake, mut sql) = pipeline().await;
    let table = lake.table("silver.t").await.expect("the table").into_inner();
    let first = table.version() - 1;
    let then = table.at_version(first).await.expect("the version before");
    let commit = table.plan_restore(&then).await.expect("a plan").expect("something to do");
    let _ = table.restore(&then, commit).await.expect("restored without its positions");
    let said = sql.says(PIPELINE).await;
    assert!(said.contains("silver.t failed TR0011"), "{said}");
    assert_eq!(sql.says("SELECT id, v FROM silver.t ORDER BY id").await, "1|a\n2|b", "nothing was changed");
    let name: TableName = "silver.t".parse().expect("a name");
    lake.restore(&name, RestoreTo::Version(first), &RestoreOptions::default()).await.expect("restored with its positions");
    assert_eq!(sql.says(PIPELINE).await, "silver.t committed");
    assert_eq!(sql.says("SELECT id, v FROM silver.t ORDER BY id").await, "1|a\n2|c\n3|d");
}

#[tokio::test]
async fn readers_of_a_table_are_the_targets_that_are_made_from_it() {
    let (lake, _) = pipeline().await;
    let bronze = lake.table("bronze.t").await.expect("the table");
    let readers = lake.readers(&bronze).await.expect("readers");
    assert_eq!(readers.len(), 1, "{readers:?}");
    assert!(readers[0].name.starts_with("silver.t") && !readers[0].declared, "{readers:?}");
}
