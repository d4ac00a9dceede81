-- A start and the stop that follows it within three hours.
CREATE OR REFRESH MATERIALIZED VIEW silver.completed_workouts
COMMENT 'Workouts with begin and end'
AS
SELECT a.user_id, a.workout_id, a.session_id, a.time AS start_time, b.time AS end_time
FROM silver.workouts a
JOIN silver.workouts b
  ON a.user_id = b.user_id AND a.workout_id = b.workout_id AND a.session_id = b.session_id
WHERE a.action = 'start' AND b.action = 'stop' AND b.time > a.time AND b.time < a.time + INTERVAL '3' HOUR;
