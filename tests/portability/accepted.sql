-- What both this program and Spark 4.3 take, though some of it means something else there. `raw` is made by sources.py.
CREATE STREAMING TABLE latest COMMENT 'of each key' TBLPROPERTIES ('quality' = 'silver', 'tributary.nullKeys' = 'refuse');
CREATE FLOW latest_changes COMMENT 'as they come' AS AUTO CDC INTO latest FROM STREAM(raw)
KEYS (id) APPLY AS DELETE WHEN op = "D" SEQUENCE BY STRUCT(seq, ts) COLUMNS * EXCEPT (v);
CREATE STREAMING TABLE history FLOW AUTO CDC FROM (SELECT * FROM STREAM raw) KEYS (id) SEQUENCE BY seq COLUMNS (id, seq, op)
STORED AS SCD TYPE 2 TRACK HISTORY ON (op);
CREATE STREAMING TABLE IF NOT EXISTS late CLUSTER BY (id) AS
SELECT * FROM STREAM(raw) WATERMARK ts DELAY OF INTERVAL 10 SECONDS AS s;
CREATE STREAMING TABLE typed (id BIGINT COMMENT 'key', ts TIMESTAMP) AS SELECT id, ts FROM STREAM(raw);
CREATE STREAMING TABLE both;
CREATE FLOW first_half AS INSERT INTO both BY NAME SELECT id FROM STREAM raw;
CREATE FLOW second_half AS INSERT INTO both BY NAME SELECT id FROM STREAM raw;
CREATE TEMPORARY VIEW counted AS SELECT op, count(*) AS n FROM latest GROUP BY ALL;
CREATE MATERIALIZED VIEW counts (op STRING, n BIGINT COMMENT 'rows') AS SELECT * FROM counted;
CREATE VIEW last_ones AS SELECT * EXCEPT (n) FROM counts QUALIFY row_number() OVER (PARTITION BY op ORDER BY n DESC) = 1;
