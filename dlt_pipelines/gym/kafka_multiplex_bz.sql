-- Three topics in one table, as they were dumped: a record a line, its time in seconds. The same topic, partition and offset come again
-- in other files: a record is a line of a file. One whose day is not in the lookup is set aside and counted, until the lookup has it.
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
  k.key, k.value, k.topic, k.partition, k.offset, k.timestamp,
  CAST(timestamp_seconds(k.timestamp) AS DATE) AS date, d.week_part,
  k._ingested_at AS load_time, _metadata.file_path AS source_file
FROM STREAM read_files(
  '[234]-*.json', format => 'json',
  schema => 'key STRING, value STRING, topic STRING, partition BIGINT, offset BIGINT, timestamp BIGINT') AS k
LEFT JOIN bronze.date_lookup AS d ON d.date = CAST(timestamp_seconds(k.timestamp) AS DATE);
