CREATE OR REFRESH STREAMING TABLE bronze.gym_logins_bz (
  mac_address STRING,
  gym         BIGINT,
  login       DOUBLE,
  logout      DOUBLE
)
COMMENT 'Visits of gyms'
AS SELECT * FROM STREAM read_files('5-gym_logins_*.csv', format => 'csv', header => true);
