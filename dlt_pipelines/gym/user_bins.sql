-- Whole years at the day of the run.
CREATE OR REFRESH MATERIALIZED VIEW silver.user_bins
COMMENT 'Users by age, gender and city'
AS
SELECT
  user_id,
  CASE
    WHEN age < 18 THEN 'under 18'
    WHEN age < 25 THEN '18-25'
    WHEN age < 35 THEN '25-35'
    WHEN age < 45 THEN '35-45'
    WHEN age < 55 THEN '45-55'
    WHEN age < 65 THEN '55-65'
    WHEN age < 75 THEN '65-75'
    WHEN age < 85 THEN '75-85'
    WHEN age < 95 THEN '85-95'
    WHEN age >= 95 THEN '95+'
  END AS age,
  gender, city, state
FROM (
  SELECT user_id, floor(months_between(current_date(), dob) / 12) AS age, gender, city, state
  FROM silver.user_profile
) AS profiles;
