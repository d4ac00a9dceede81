//! The datasets that are read: four a source, each in a file of its own.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// One dataset: what stands before its query, the query, and what stands after it.
#[derive(Debug)]
pub struct Dataset {
    pub path: String,
    head: String,
    /// From `SELECT` or `WITH` on; changes are merged from the query of a stream.
    query: String,
    tail: String,
}

impl Dataset {
    /// The file's text.
    pub fn text(&self) -> String {
        format!("{}{}{};\n", self.head, self.query, self.tail)
    }

    /// The query as any SQL parser takes it.
    pub fn plain_query(&self) -> String {
        self.query.replace("STREAM(", "(SELECT * FROM ").replace("STREAM read_files(", "read_files(")
    }
}

/// So many datasets.
pub fn datasets(count: usize) -> Vec<Dataset> {
    let kinds = [feed, current, checked, summary];
    (0..count).map(|at| kinds[at % kinds.len()](at / kinds.len())).collect()
}

/// Writes them as a bundle with one pipeline.
pub fn write_bundle(folder: &Path, datasets: &[Dataset]) -> Result<()> {
    let root = "bundle:\n  name: bench\nresources:\n  pipelines:\n    bench:\n      catalog: main\n      libraries:\n        - glob:\n            include: sql/**\n";
    fs::write(folder.join("databricks.yml"), root)?;
    fs::create_dir(folder.join("sql"))?;
    for dataset in datasets {
        fs::write(folder.join("sql").join(&dataset.path), dataset.text())?;
    }
    Ok(())
}

fn feed(source: usize) -> Dataset {
    let head = format!(
        "-- What the shop {source} wrote, as it came.\n\
         CREATE OR REFRESH STREAMING TABLE bronze.orders_{source} (\n  \
           order_id    BIGINT COMMENT 'of the shop',\n  customer_id BIGINT,\n  sku         STRING,\n  qty         INT,\n  \
           amount      DECIMAL(12,2),\n  status      STRING,\n  op          STRING,\n  placed_at   TIMESTAMP,\n  updated_at  TIMESTAMP\n)\n\
         COMMENT 'Orders of shop {source} as they came'\n\
         TBLPROPERTIES ('quality' = 'bronze')\n\
         AS "
    );
    let query = format!("SELECT * FROM STREAM read_files('shop_{source}/orders', format => 'json')");
    Dataset { path: format!("bronze_orders_{source}.sql"), head, query, tail: String::new() }
}

fn current(source: usize) -> Dataset {
    let head = format!(
        "CREATE OR REFRESH STREAMING TABLE silver.orders_{source} (\n  \
           CONSTRAINT qty_is_positive EXPECT (qty > 0),\n  \
           CONSTRAINT has_customer EXPECT (customer_id IS NOT NULL) ON VIOLATION DROP ROW\n)\n\
         CLUSTER BY (order_id)\n\
         COMMENT 'Orders of shop {source} as they are now';\n\n\
         CREATE FLOW orders_{source} AS AUTO CDC INTO silver.orders_{source}\nFROM ("
    );
    let query = format!(
        "SELECT order_id, customer_id, upper(trim(sku)) AS sku, qty, amount, lower(status) AS status, op, updated_at\n      \
         FROM STREAM(bronze.orders_{source}) WHERE order_id IS NOT NULL"
    );
    let tail =
        ")\nKEYS (order_id)\nAPPLY AS DELETE WHEN op = 'DELETE'\nSEQUENCE BY updated_at\nCOLUMNS * EXCEPT (op)\nSTORED AS SCD TYPE 1";
    Dataset { path: format!("silver_orders_{source}.sql"), head, query, tail: tail.to_owned() }
}

fn checked(source: usize) -> Dataset {
    let head = format!(
        "/* Rows that can be counted. */\n\
         CREATE OR REFRESH STREAMING TABLE silver.payments_{source} (\n  \
           CONSTRAINT known_status EXPECT (status IN ('new', 'paid', 'sent', 'returned')) ON VIOLATION DROP ROW,\n  \
           CONSTRAINT amount_is_sound EXPECT (amount BETWEEN 0 AND 1000000) ON VIOLATION FAIL UPDATE\n)\n\
         PARTITIONED BY (status)\nAS "
    );
    let query = format!(
        "SELECT\n  order_id,\n  status,\n  amount,\n  CAST(placed_at AS DATE) AS day,\n  \
         CASE WHEN amount > 500 THEN 'large' WHEN amount > 50 THEN 'medium' ELSE 'small' END AS size,\n  \
         coalesce(nullif(sku, ''), 'none') AS sku\nFROM STREAM(bronze.orders_{source}) AS o\nWHERE status <> 'draft' AND (qty > 0 OR amount > 0)"
    );
    Dataset { path: format!("silver_payments_{source}.sql"), head, query, tail: String::new() }
}

fn summary(source: usize) -> Dataset {
    let head = format!(
        "CREATE OR REFRESH MATERIALIZED VIEW gold.revenue_{source}\nCOMMENT 'Revenue of shop {source} a day and customer'\n\
         CLUSTER BY (day)\nAS "
    );
    let query = format!(
        "WITH paid AS (\n  SELECT day, order_id, amount FROM silver.payments_{source} WHERE status IN ('paid', 'sent')\n), ranked AS (\n  \
         SELECT o.customer_id, p.day, p.amount,\n    row_number() OVER (PARTITION BY o.customer_id ORDER BY p.amount DESC) AS rank\n  \
         FROM paid AS p\n  JOIN silver.orders_{source} AS o ON o.order_id = p.order_id\n)\nSELECT\n  day,\n  customer_id,\n  \
         sum(amount) AS revenue,\n  count(*) AS orders,\n  avg(amount) AS mean,\n  max(CASE WHEN rank = 1 THEN amount END) AS largest\n\
         FROM ranked\nGROUP BY day, customer_id\nHAVING sum(amount) > 0"
    );
    Dataset { path: format!("gold_revenue_{source}.sql"), head, query, tail: String::new() }
}
