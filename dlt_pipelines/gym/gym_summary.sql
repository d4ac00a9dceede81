CREATE OR REFRESH MATERIALIZED VIEW gold.gym_summary
COMMENT 'Minutes in the gym and exercising'
AS
SELECT
  CAST(l.login AS DATE) AS date, l.gym, l.mac_address, w.workout_id, w.session_id,
  round((CAST(l.logout AS DOUBLE) - CAST(l.login AS DOUBLE)) / 60, 2) AS minutes_in_gym,
  round((CAST(w.end_time AS DOUBLE) - CAST(w.start_time AS DOUBLE)) / 60, 2) AS minutes_exercising
FROM silver.gym_logs l
JOIN silver.users u ON u.mac_address = l.mac_address
JOIN silver.completed_workouts w ON w.user_id = u.user_id
WHERE w.start_time BETWEEN l.login AND l.logout;
