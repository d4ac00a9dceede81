-- Devices as they were registered. Epochs are seconds as doubles and stay 64 bits wide.
CREATE OR REFRESH STREAMING TABLE bronze.registered_users_bz (
  user_id                BIGINT,
  device_id              BIGINT,
  mac_address            STRING,
  registration_timestamp DOUBLE
)
COMMENT 'Registered devices'
AS SELECT * FROM STREAM read_files('1-registered_users_*.csv', format => 'csv', header => true);
