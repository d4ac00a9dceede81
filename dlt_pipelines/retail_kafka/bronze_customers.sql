-- Every change of the shop's customers, as Debezium sends it, with the whole row as it was before.
CREATE OR REFRESH STREAMING TABLE bronze.customers (
  id           BIGINT,
  external_id  STRING COMMENT 'UUID',
  name         STRING,
  email        STRING,
  tier         STRING,
  balance      DECIMAL(38,9),
  credit_limit DECIMAL(12,2),
  score        DOUBLE,
  signup_at    TIMESTAMP,
  seen_at      TIMESTAMP_NTZ,
  calls_from   BIGINT COMMENT 'µs of the day',
  birth_date   DATE,
  tags         ARRAY<STRING>,
  prefs        STRING COMMENT 'JSON',
  last_ip      STRING,
  active       BOOLEAN,
  bio          STRING
)
COMMENT 'Every change of shop.public.customers'
AS SELECT * FROM STREAM read_kafka(
  subscribe => '${shop_prefix}.public.customers',
  decode => 'debezium',
  feed => 'shop_customers',
  replicaIdentity => 'full',
  encodings => 'balance unscaled, credit_limit unscaled, signup_at iso, seen_at micros, calls_from micros'
);
