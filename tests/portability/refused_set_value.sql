SET words = 'D';
CREATE MATERIALIZED VIEW m AS SELECT * FROM raw WHERE op <> ${words};
