-- The latest state of each order. `_position` is the place of a change in the database's own log.
CREATE OR REFRESH STREAMING TABLE silver.orders (
  CONSTRAINT qty_is_positive EXPECT (qty > 0)
)
COMMENT 'Orders as they are now';

CREATE FLOW orders AS AUTO CDC INTO silver.orders
FROM STREAM(bronze.orders)
KEYS (order_id)
SEQUENCE BY _position
STORED AS SCD TYPE 1;
