CREATE OR REFRESH MATERIALIZED VIEW gold.workout_bpm_summary
COMMENT 'Heart rates of each workout, with who worked out'
AS
SELECT
  b.workout_id, b.session_id, u.user_id, u.age, u.gender, u.city, u.state,
  min(b.heartrate) AS min_bpm, avg(b.heartrate) AS avg_bpm, max(b.heartrate) AS max_bpm, count(*) AS num_recordings
FROM silver.workout_bpm b
JOIN silver.user_bins u ON u.user_id = b.user_id
GROUP BY b.workout_id, b.session_id, u.user_id, u.age, u.gender, u.city, u.state;
