-- Facts that never change: the first registration of a user is the row.
CREATE OR REFRESH STREAMING TABLE silver.users
COMMENT 'Users and their devices'
TBLPROPERTIES ('tributary.merge.policy' = 'insert_only', 'tributary.nullKeys' = 'quarantine');

CREATE FLOW users AS AUTO CDC INTO silver.users
FROM (
  SELECT user_id, device_id, mac_address, CAST(registration_timestamp AS TIMESTAMP) AS registration_timestamp
  FROM STREAM(bronze.registered_users_bz)
)
KEYS (user_id)
SEQUENCE BY registration_timestamp;
