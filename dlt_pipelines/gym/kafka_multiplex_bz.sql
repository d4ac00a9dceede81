-- Three topics in one table, as they were dumped: a record a line, the timestamp in seconds.
CREATE OR REFRESH STREAMING TABLE bronze.kafka_multiplex_bz (
  key       STRING,
  value     STRING,
  topic     STRING,
  partition BIGINT,
  offset    BIGINT,
  timestamp BIGINT
)
PARTITIONED BY (topic)
COMMENT 'Profiles, workouts and heart rates'
AS SELECT * FROM STREAM read_files('[234]-*.json', format => 'json');
