//! The statements of the design that the `lakeflow` pipeline is of, pasted in the order of its steps.

use std::path::Path;

use crate::statements::Sql;
use tributary::Lake;
use tributary::sql::SessionOptions;

/// The telemetry that is pushed, and what two tables of an ERP send, as statements would write them.
const SOURCES: &str = "
INSERT INTO prod.bronze.telemetry_events BY NAME SELECT * FROM VALUES
  ('e1', '1', 'page_view', 1), ('e2', '1', 'purchase', 2), ('e3', '2', 'nonsense', 3), ('e4', '2', 'add_to_cart', 4)
  AS t(event_id, user_id, event_type, ts);
CREATE TABLE prod.bronze.orders_raw (order_id BIGINT, customer_id BIGINT, order_amount DECIMAL(10,2), order_status STRING, updated_at TIMESTAMP);
CREATE TABLE prod.bronze.customers_raw (customer_id BIGINT, customer_name STRING, email STRING, updated_at TIMESTAMP);
INSERT INTO prod.bronze.orders_raw VALUES
  (10, 1, 5, 'new', TIMESTAMP'2026-01-01 00:00:00'), (10, 1, 5, 'paid', TIMESTAMP'2026-01-02 00:00:00'),
  (11, 2, 7, 'new', TIMESTAMP'2026-01-01 00:00:00');
INSERT INTO prod.bronze.customers_raw VALUES
  (1, 'Ann', 'ann@example.com', TIMESTAMP'2026-01-01 00:00:00'), (2, 'Bob', 'bob@example.com', TIMESTAMP'2026-01-01 00:00:00');
";

const STEP_1: &str = "CREATE CATALOG IF NOT EXISTS prod; 
CREATE SCHEMA IF NOT EXISTS prod.bronze; 
CREATE TABLE IF NOT EXISTS prod.bronze.telemetry_events ( 
  event_id    STRING, 
  user_id     STRING, 
  event_type  STRING, 
  session_id  STRING, 
  ts          BIGINT, 
  page        STRING, 
  duration_ms INT 
); 

GRANT USE CATALOG ON CATALOG prod TO `<client-id>`; 
GRANT USE SCHEMA ON SCHEMA prod.bronze TO `<client-id>`; 
GRANT MODIFY, SELECT ON TABLE prod.bronze.telemetry_events TO `<client-id>`; ";

const STEP_4: &str = "-- Grant analysts read access to the Gold layer only 
GRANT SELECT ON TABLE prod.gold.customer_activity TO `analysts@contoso.com`; 
-- Mask PII for non-privileged users 
CREATE FUNCTION prod.security.mask_email(email STRING) 
  RETURNS STRING 
  RETURN CASE WHEN is_account_group_member('data-engineers') THEN email 
              ELSE CONCAT(LEFT(email, 2), '***@***.com') END; 
";

const MASK: &str = "ALTER TABLE prod.silver.customers 
  ALTER COLUMN email SET MASK prod.security.mask_email; ";

const STEP_5: &str = "SELECT job_name, result_state, DATEDIFF(second, start_time, end_time) AS duration_sec 

FROM system.lakeflow.job_run_timeline 

WHERE start_time >= CURRENT_TIMESTAMP - INTERVAL 24 HOURS 

ORDER BY start_time DESC; ";

fn step_3() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dlt_pipelines/lakeflow/lakeflow.sql");
    std::fs::read_to_string(file).expect("the pipeline")
}

#[tokio::test]
async fn the_article_s_statements_run_as_they_are_pasted() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let mut sql = Sql::over(&lake, SessionOptions { user: Some("ann".to_owned()), ..SessionOptions::default() });
    let said = sql.says(STEP_1).await;
    assert!(said.ends_with("MODIFY, SELECT granted on table prod.bronze.telemetry_events to <client-id>"), "{said}");
    assert_eq!(sql.says(STEP_1).await.lines().count(), 6, "pasted again");
    let said = sql.says(SOURCES).await;
    assert!(!said.contains("error"), "{said}");

    let said = sql.says(&step_3()).await;
    assert!(said.lines().count() == 4 && said.lines().all(|line| line.ends_with(" committed")), "{said}");
    let rows = "SELECT order_id, customer_id, customer_name, email, order_amount, order_status, total_events, purchase_events
                FROM prod.gold.customer_activity ORDER BY order_id";
    let expected = "10|1|Ann|ann@example.com|5.00|paid|2|1\n11|2|Bob|bob@example.com|7.00|new|1|0";
    assert_eq!(sql.says(rows).await, expected);

    let said = sql.says(STEP_4).await;
    assert!(said.ends_with("function prod.security.mask_email created"), "{said}");
    assert_eq!(sql.says("SELECT prod.security.mask_email('ann@example.com')").await, "an***@***.com");
    assert!(sql.says(MASK).await.starts_with("error[TR0112]"), "what is not enforced is not pretended");
    assert!(sql.says("UPDATE prod.silver.orders SET order_status = 'x'").await.starts_with("error[TR0111]"));
    assert_eq!(sql.says(STEP_5).await, "", "no job ran yet");
    let said = sql.says("SHOW GRANTS `analysts@contoso.com` ON TABLE prod.gold.customer_activity").await;
    assert_eq!(said, "analysts@contoso.com|SELECT|TABLE|prod.gold.customer_activity");
}

#[tokio::test]
async fn a_function_of_the_lake_is_called_in_a_pipeline() {
    let mut sql = Sql::new();
    let said = sql
        .says(
            "CREATE SCHEMA bronze; CREATE TABLE bronze.t (id BIGINT, v STRING); INSERT INTO bronze.t VALUES (1, 'a'), (2, 'b');
             CREATE FUNCTION tools.shout(x STRING) RETURNS STRING RETURN concat(upper(x), '!');
             CREATE OR REFRESH STREAMING TABLE silver.t AS SELECT id, tools.shout(v) AS v FROM STREAM(bronze.t);
             CREATE OR REFRESH MATERIALIZED VIEW gold.t AS SELECT main.tools.shout(v) AS v, count(*) AS n FROM silver.t GROUP BY ALL;
             SELECT * FROM gold.t ORDER BY 1",
        )
        .await;
    assert!(said.ends_with("A!!|1\nB!!|1"), "{said}");
}
