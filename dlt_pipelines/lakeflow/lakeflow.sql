-- Silver: latest order state (SCD Type 1) 
CREATE OR REFRESH STREAMING TABLE prod.silver.orders; 
APPLY CHANGES INTO prod.silver.orders 
  FROM STREAM(prod.bronze.orders_raw) 
  KEYS (order_id) SEQUENCE BY updated_at STORED AS SCD TYPE 1; 

-- Silver: full customer history (SCD Type 2) 
CREATE OR REFRESH STREAMING TABLE prod.silver.customers; 
APPLY CHANGES INTO prod.silver.customers 
  FROM STREAM(prod.bronze.customers_raw) 
  KEYS (customer_id) SEQUENCE BY updated_at STORED AS SCD TYPE 2; 

-- Silver: telemetry with data quality check 
CREATE OR REFRESH STREAMING TABLE prod.silver.telemetry_events ( 
  CONSTRAINT valid_event_type 
    EXPECT (event_type IN ('page_view', 'add_to_cart', 'purchase')) 
    ON VIOLATION DROP ROW 
) AS SELECT * FROM STREAM(prod.bronze.telemetry_events); 

-- Gold: materialized view joining all three Silver tables 
CREATE OR REFRESH MATERIALIZED VIEW prod.gold.customer_activity AS 
SELECT 
  o.order_id, o.customer_id, c.customer_name, c.email, 
  o.order_amount, o.order_status, 
  COUNT(e.event_id) AS total_events, 
  SUM(CASE WHEN e.event_type = 'purchase' THEN 1 ELSE 0 END) AS purchase_events 
FROM prod.silver.orders o 
LEFT JOIN prod.silver.customers c ON o.customer_id = c.customer_id 
LEFT JOIN prod.silver.telemetry_events e 
  ON CAST(o.customer_id AS STRING) = e.user_id  -- user_id in telemetry is string 
GROUP BY o.order_id, o.customer_id, c.customer_name, c.email, 
  o.order_amount, o.order_status; 
