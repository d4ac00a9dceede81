-- Visits as doors told them. Epochs are seconds as doubles and stay 64 bits wide.
CREATE OR REFRESH STREAMING TABLE bronze.gym_logins_bz (
  mac_address STRING,
  gym         BIGINT,
  login       DOUBLE,
  logout      DOUBLE,
  load_time   TIMESTAMP,
  source_file STRING
)
COMMENT 'Visits of gyms'
AS SELECT mac_address, gym, login, logout, _ingested_at AS load_time, _metadata.file_path AS source_file
FROM STREAM read_files(
  '5-gym_logins_*.csv', format => 'csv', header => true,
  schema => 'mac_address STRING, gym BIGINT, login DOUBLE, logout DOUBLE');
