-- A visit's logout only moves forward.
CREATE OR REFRESH STREAMING TABLE silver.gym_logs
COMMENT 'Visits of gyms'
TBLPROPERTIES ('tributary.merge.policy' = 'monotonic_advance', 'tributary.merge.advance' = 'logout', 'tributary.nullKeys' = 'quarantine');

CREATE FLOW gym_logs AS AUTO CDC INTO silver.gym_logs
FROM (
  SELECT mac_address, gym, CAST(login AS TIMESTAMP) AS login, CAST(logout AS TIMESTAMP) AS logout
  FROM STREAM(bronze.gym_logins_bz)
)
KEYS (mac_address, gym, login)
SEQUENCE BY logout;
