-- Devices as they were registered. Epochs are seconds as doubles and stay 64 bits wide.
CREATE OR REFRESH STREAMING TABLE bronze.registered_users_bz (
  user_id                BIGINT,
  device_id              BIGINT,
  mac_address            STRING,
  registration_timestamp DOUBLE,
  load_time              TIMESTAMP,
  source_file            STRING
)
COMMENT 'Registered devices'
AS SELECT
  user_id, device_id, mac_address, registration_timestamp,
  _ingested_at AS load_time, _metadata.file_path AS source_file
FROM STREAM read_files(
  '1-registered_users_*.csv', format => 'csv', header => true,
  schema => 'user_id BIGINT, device_id BIGINT, mac_address STRING, registration_timestamp DOUBLE');
