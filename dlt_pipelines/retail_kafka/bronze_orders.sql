-- Every change of the shop's orders, as Debezium sends it. Bare JSON does not say how numbers and times are written.
CREATE OR REFRESH STREAMING TABLE bronze.orders (
  order_id    BIGINT,
  customer_id BIGINT,
  sku         STRING,
  warehouse   SMALLINT,
  qty         INT,
  amount      DECIMAL(12,2),
  status      STRING,
  channel     STRING,
  placed_at   TIMESTAMP,
  updated_at  TIMESTAMP,
  ship_day    DATE,
  notes       STRING
)
COMMENT 'Every change of shop.public.orders'
AS SELECT * FROM STREAM read_kafka(
  subscribe => '${shop_prefix}.public.orders',
  decode => 'debezium',
  feed => 'shop_orders',
  encodings => 'amount unscaled, placed_at iso, updated_at iso'
);
