-- Weeks are counted from 1 January, not as ISO counts them.
CREATE OR REFRESH STREAMING TABLE bronze.date_lookup (
  date       STRING,
  week       STRING,
  year       STRING,
  month      STRING,
  dayofweek  STRING,
  dayofmonth STRING,
  dayofyear  STRING,
  week_part  STRING
)
COMMENT 'Days and the weeks they are in'
AS SELECT * FROM STREAM read_files('6-date-lookup.json', format => 'json');
