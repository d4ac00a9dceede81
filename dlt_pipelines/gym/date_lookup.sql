-- Days and the weeks they are in, counted from 1 January and not as ISO counts them. A file may be dropped again, or come with days that
-- are there: the first row of a day stays.
CREATE OR REFRESH STREAMING TABLE bronze.date_lookup
COMMENT 'Days and the weeks they are in'
TBLPROPERTIES ('tributary.merge.policy' = 'insert_only', 'tributary.nullKeys' = 'quarantine');

CREATE FLOW date_lookup AS AUTO CDC INTO bronze.date_lookup
FROM (
  SELECT
    CAST(date AS DATE) AS date,
    CAST(week AS INT) AS week,
    CAST(year AS INT) AS year,
    CAST(month AS INT) AS month,
    CAST(dayofweek AS INT) AS dayofweek,
    CAST(dayofmonth AS INT) AS dayofmonth,
    CAST(dayofyear AS INT) AS dayofyear,
    week_part
  FROM STREAM read_files(
    '6-date-lookup*.json', format => 'json',
    schema => 'date STRING, week STRING, year STRING, month STRING, dayofweek STRING, dayofmonth STRING, dayofyear STRING, week_part STRING')
)
KEYS (date)
SEQUENCE BY date;
