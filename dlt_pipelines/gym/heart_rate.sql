CREATE OR REFRESH STREAMING TABLE silver.heart_rate (
  CONSTRAINT valid_heart_rate EXPECT (heartrate > 0)
)
COMMENT 'Heart rates, one a second'
TBLPROPERTIES ('tributary.merge.policy' = 'insert_only', 'tributary.nullKeys' = 'quarantine');

CREATE FLOW heart_rate AS AUTO CDC INTO silver.heart_rate
FROM (
  SELECT
    value:device_id::BIGINT AS device_id,
    CAST(value:time::DOUBLE AS TIMESTAMP) AS time,
    value:heartrate::DOUBLE AS heartrate,
    value:heartrate::DOUBLE > 0 AS valid
  FROM STREAM(bronze.kafka_multiplex_bz)
  WHERE topic = 'bpm'
)
KEYS (device_id, time)
SEQUENCE BY time;
