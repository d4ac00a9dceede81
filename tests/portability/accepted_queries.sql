-- Queries that unfold, pivot, window and join as Spark 4.3 takes them too. `raw` is made by sources.py.
CREATE MATERIALIZED VIEW wide AS SELECT * FROM (SELECT id, op, seq FROM raw) PIVOT (sum(seq) AS s, count(*) AS n FOR op IN ('D', 'U' AS u));
CREATE MATERIALIZED VIEW long AS SELECT * FROM (SELECT id, seq, id + 1 AS more FROM raw) UNPIVOT INCLUDE NULLS (n FOR which IN (seq, more AS m));
CREATE MATERIALIZED VIEW beside AS SELECT id, l.next, e.x FROM raw, LATERAL (SELECT id + 1 AS next) AS l, LATERAL explode(array(id, seq)) AS e(x);
CREATE STREAMING TABLE unfolded AS SELECT id, x FROM STREAM(raw) LATERAL VIEW explode(array(id, seq)) e AS x;
CREATE STREAMING TABLE stacked AS SELECT id, stack(2, 'id', id, 'seq', seq) AS (which, n) FROM STREAM(raw);
CREATE STREAMING TABLE halves AS SELECT * FROM (SELECT id, seq, id + 1 AS more FROM STREAM(raw)) UNPIVOT (n FOR which IN (seq, more));
CREATE STREAMING TABLE filled (id BIGINT DEFAULT 1, ts TIMESTAMP) AS SELECT id, ts FROM STREAM(raw);
CREATE STREAMING TABLE of_days (id BIGINT, ts TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(ts AS DATE))) AS SELECT id, ts FROM STREAM(raw);
CREATE STREAMING TABLE counted_by_minute AS SELECT window(ts, '1 minute') AS w, count(*) AS n FROM STREAM(raw) GROUP BY window(ts, '1 minute');
CREATE STREAMING TABLE ids AS SELECT DISTINCT id FROM STREAM(raw);
