-- A row a version of each customer.
CREATE OR REFRESH STREAMING TABLE silver.customers
COMMENT 'Customers as they were, a row a version';

CREATE FLOW customers AS AUTO CDC INTO silver.customers
FROM STREAM(bronze.customers)
KEYS (id)
SEQUENCE BY _position
STORED AS SCD TYPE 2;
