CREATE OR REFRESH STREAMING TABLE silver.workouts
COMMENT 'Starts and stops of workouts'
TBLPROPERTIES ('tributary.merge.policy' = 'insert_only', 'tributary.nullKeys' = 'quarantine');

CREATE FLOW workouts AS AUTO CDC INTO silver.workouts
FROM (
  SELECT
    value:user_id::INT AS user_id,
    value:workout_id::INT AS workout_id,
    CAST(value:timestamp::DOUBLE AS TIMESTAMP) AS time,
    value:action::STRING AS action,
    value:session_id::INT AS session_id
  FROM STREAM(bronze.kafka_multiplex_bz)
  WHERE topic = 'workout'
)
KEYS (user_id, time)
SEQUENCE BY time;
