CREATE OR REFRESH MATERIALIZED VIEW silver.workout_bpm
COMMENT 'Heart rates during workouts'
AS
SELECT w.user_id, w.workout_id, w.session_id, w.start_time, w.end_time, h.time, h.heartrate
FROM silver.completed_workouts w
JOIN silver.users u ON u.user_id = w.user_id
JOIN silver.heart_rate h ON h.device_id = u.device_id
WHERE h.valid AND h.time > w.start_time AND h.time <= w.end_time;
