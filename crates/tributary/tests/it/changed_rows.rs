//! What `UPDATE`, `DELETE` and `MERGE` compute, read, and leave in the history.

use tributary::sql::SessionOptions;
use tributary::{Lake, OpenOptions};

use crate::statements::Sql;

#[tokio::test]
async fn generated_columns_are_computed_where_a_statement_gives_no_value_and_checked_where_it_does() {
    let mut sql = Sql::new();
    sql.says(
        "CREATE SCHEMA s;
         CREATE TABLE s.t (id BIGINT, at TIMESTAMP_NTZ, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), twice BIGINT GENERATED ALWAYS AS (id * 2))
         TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    )
    .await;
    let rows = "SELECT id, day, twice FROM s.t ORDER BY id";
    for (statement, said, left) in [
        ("INSERT INTO s.t (id, at) VALUES (1, TIMESTAMP_NTZ '2026-03-01 10:00:00')", "1 rows inserted", "1|2026-03-01|2"),
        ("INSERT INTO s.t VALUES (2, TIMESTAMP_NTZ '2026-03-02 10:00:00')", "1 rows inserted", "1|2026-03-01|2\n2|2026-03-02|4"),
        (
            "UPDATE s.t SET at = TIMESTAMP_NTZ '2026-04-01 00:00:00' WHERE id = 1",
            "1 rows updated, 0 deleted, 0 inserted",
            "1|2026-04-01|2\n2|2026-03-02|4",
        ),
        ("UPDATE s.t SET id = 3, day = DEFAULT WHERE id = 2", "1 rows updated, 0 deleted, 0 inserted", "1|2026-04-01|2\n3|2026-03-02|6"),
        (
            "MERGE INTO s.t USING (SELECT 3 AS id, TIMESTAMP_NTZ '2026-05-05 00:00:00' AS at UNION ALL SELECT 4, NULL) s ON t.id = s.id
             WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "1 rows updated, 0 deleted, 1 inserted",
            "1|2026-04-01|2\n3|2026-05-05|6\n4|null|8",
        ),
        (
            "MERGE INTO s.t USING (SELECT 4 AS id UNION ALL SELECT 5) s ON t.id = s.id
             WHEN MATCHED THEN UPDATE SET id = 40 WHEN NOT MATCHED THEN INSERT (id, twice) VALUES (s.id, 10)",
            "1 rows updated, 0 deleted, 1 inserted",
            "1|2026-04-01|2\n3|2026-05-05|6\n5|null|10\n40|null|80",
        ),
        ("DELETE FROM s.t WHERE twice = 10", "0 rows updated, 1 deleted, 0 inserted", "1|2026-04-01|2\n3|2026-05-05|6\n40|null|80"),
    ] {
        assert_eq!(sql.says(statement).await, said, "{statement}");
        assert_eq!(sql.says(rows).await, left, "{statement}");
    }
    for wrong in [
        "UPDATE s.t SET twice = 7 WHERE id = 1",
        "UPDATE s.t SET twice = NULL WHERE id = 1",
        "INSERT INTO s.t (id, twice) VALUES (1, 3)",
        "MERGE INTO s.t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET twice = 7",
    ] {
        assert!(sql.says(wrong).await.starts_with("error[LK0010]"), "{wrong}");
    }
    let told = sql.says("SELECT twice, _change_type FROM table_changes('s.t', 3, 4) WHERE id IN (2, 3) ORDER BY 2, 1").await;
    assert!(told.contains("6|update_postimage") && told.contains("4|update_preimage"), "{told}");
}

#[tokio::test]
async fn the_history_calls_each_statement_what_it_is() {
    let mut sql = Sql::new();
    sql.says("CREATE SCHEMA s; CREATE TABLE s.t (id BIGINT, v STRING); INSERT INTO s.t VALUES (1, 'a'), (2, 'b')").await;
    sql.says("UPDATE s.t SET v = 'c' WHERE id = 1; DELETE FROM s.t WHERE id = 2").await;
    sql.says("MERGE INTO s.t USING (SELECT 3 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)").await;
    let history = sql.says("DESCRIBE HISTORY s.t").await;
    let words: Vec<&str> = history
        .lines()
        .map(|line| ["UPDATE", "DELETE", "MERGE", "WRITE"].into_iter().find(|word| line.contains(word)).unwrap_or("-"))
        .collect();
    assert_eq!(words[..4], ["MERGE", "DELETE", "UPDATE", "WRITE"], "{history}");
}

#[tokio::test]
async fn files_whose_statistics_hold_no_row_of_a_condition_are_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let lake = Lake::open(folder.path().to_str().expect("a path"), OpenOptions::default()).expect("a lake");
    let mut sql = Sql::over(&lake, SessionOptions::default());
    sql.says("CREATE SCHEMA s; CREATE TABLE s.t (id BIGINT, name STRING, n DOUBLE)").await;
    for rows in ["(1, 'a', 1), (9, 'c', 2)", "(11, 'd', 3), (19, 'f', 4)", "(NULL, NULL, 5)"] {
        sql.says(&format!("INSERT INTO s.t VALUES {rows}")).await;
    }
    // all but the file with 11 and 19 are gone: whoever reads them fails
    for file in lake.table("s.t").await.expect("the table").into_inner().files().await.expect("its files") {
        let least = file.stats.columns.get("id").and_then(|stats| stats.min.clone()).map(|least| least.to_string());
        if least.as_deref() != Some("11") {
            std::fs::remove_file(folder.path().join("main/s/t").join(&file.path)).expect("a file");
        }
    }
    for reads_all in ["UPDATE s.t SET n = 0 WHERE id % 10 = 1", "DELETE FROM s.t WHERE n = 3", "UPDATE s.t SET n = 0 WHERE id IS NULL"] {
        assert!(sql.says(reads_all).await.starts_with("error["), "{reads_all}");
    }
    for (statement, said) in [
        ("UPDATE s.t SET n = 0 WHERE id = 11", "1 rows updated, 0 deleted, 0 inserted"),
        ("UPDATE s.t SET n = 0 WHERE id > 100", "0 rows updated, 0 deleted, 0 inserted"),
        ("UPDATE s.t SET n = 1 WHERE id BETWEEN 10 AND 15 AND name >= 'd'", "1 rows updated, 0 deleted, 0 inserted"),
        ("DELETE FROM s.t WHERE id IN (18, 19)", "0 rows updated, 1 deleted, 0 inserted"),
        (
            "MERGE INTO s.t USING (SELECT 11 AS id, 7 AS n) s ON t.id = s.id AND t.id >= 10 AND t.id < 20 WHEN MATCHED THEN UPDATE SET n = s.n",
            "1 rows updated, 0 deleted, 0 inserted",
        ),
        (
            "MERGE INTO s.t USING (VALUES (11, 8), (12, 1)) s (id, n) ON t.id = s.id WHEN MATCHED AND s.n > 9 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)",
            "1 rows updated, 0 deleted, 1 inserted",
        ),
        (
            "MERGE INTO s.t USING (SELECT CAST(NULL AS BIGINT) AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "0 rows updated, 0 deleted, 0 inserted",
        ),
    ] {
        assert_eq!(sql.says(statement).await, said, "{statement}");
    }
    // the source's keys say nothing where rows are looked for that it has not, or where it may give others when it is asked again
    for reads_all in [
        "MERGE INTO s.t USING (SELECT 11 AS id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "MERGE INTO s.t USING (SELECT cast(11 + rand() AS BIGINT) AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO s.t USING (SELECT 11 AS id) s ON t.id >= s.id WHEN MATCHED THEN DELETE",
    ] {
        assert!(sql.says(reads_all).await.starts_with("error["), "{reads_all}");
    }
}
