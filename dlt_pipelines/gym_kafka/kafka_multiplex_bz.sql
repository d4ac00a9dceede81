-- The three topics themselves in one table, in the columns of their dump: the time of a record is in milliseconds there, and comes as a
-- timestamp here. A record is a place of a topic's partition.
CREATE OR REFRESH STREAMING TABLE bronze.kafka_multiplex_bz (
  key         STRING,
  value       STRING,
  topic       STRING,
  partition   BIGINT,
  offset      BIGINT,
  timestamp   BIGINT,
  date        DATE,
  week_part   STRING,
  load_time   TIMESTAMP,
  source_file STRING,
  CONSTRAINT day_in_date_lookup EXPECT (week_part IS NOT NULL) ON VIOLATION FAIL UPDATE
)
PARTITIONED BY (topic, week_part)
COMMENT 'Profiles, workouts and heart rates'
AS SELECT
  base64(k.key) AS key, CAST(k.value AS STRING) AS value, k.topic,
  CAST(k.partition AS BIGINT) AS partition, k.offset, unix_seconds(k.timestamp) AS timestamp,
  CAST(k.timestamp AS DATE) AS date, d.week_part,
  k._ingested_at AS load_time, concat(k.topic, '/', k.partition) AS source_file
FROM STREAM read_kafka(subscribe => '${gym_topics}') AS k
LEFT JOIN bronze.date_lookup AS d ON d.date = CAST(k.timestamp AS DATE);
