-- The latest state of each product in each warehouse.
CREATE OR REFRESH STREAMING TABLE silver.inventory
COMMENT 'Stock as it is now';

CREATE FLOW inventory AS AUTO CDC INTO silver.inventory
FROM STREAM(bronze.inventory)
KEYS (sku, warehouse)
SEQUENCE BY _position
STORED AS SCD TYPE 1;
