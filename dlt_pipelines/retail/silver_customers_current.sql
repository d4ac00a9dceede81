-- The latest state of each customer.
CREATE OR REFRESH STREAMING TABLE silver.customers_current
COMMENT 'Customers as they are now';

CREATE FLOW customers_current AS AUTO CDC INTO silver.customers_current
FROM STREAM(bronze.customers)
KEYS (id)
SEQUENCE BY _position
STORED AS SCD TYPE 1;
