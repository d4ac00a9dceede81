-- Every change of the shop's customers, as Debezium recorded it.
CREATE OR REFRESH STREAMING TABLE bronze.customers (
  id           BIGINT,
  external_id  STRING COMMENT 'UUID',
  name         STRING,
  email        STRING,
  tier         STRING,
  balance      DECIMAL(38,9),
  credit_limit DECIMAL(12,2),
  signup_at    TIMESTAMP,
  birth_date   DATE,
  tags         ARRAY<STRING>,
  prefs        STRING COMMENT 'JSON',
  last_ip      STRING,
  active       BOOLEAN
)
COMMENT 'Every change of shop.public.customers'
AS SELECT * FROM STREAM read_files(
  'shop',
  format => 'kafka_jsonl',
  topics => 'shop.public.customers',
  feed => 'shop_customers',
  encodings => 'balance unscaled, credit_limit unscaled, signup_at iso'
);
