//! Every form of both dialects: read, executed, told as not applied, or refused with what to write instead.

use tributary_pipeline_sql::{FlowAction, Kind, Options, Parsed, SqlFile, parse};
use tributary_specs::{
    ColumnSelection, DataType, Decode, ExpectationAction, IgnoreNullUpdates, LateRows, MergePolicy, NullKeys, Pipeline, Refresh,
    SchemaPolicy, SetRule, Source, StreamRead, Watermark,
};

use crate::{faults, read, read_with};

fn pipeline(text: &str) -> Pipeline {
    let parsed = read(text);
    match parsed.to_pipeline("case") {
        Ok(lowered) => lowered.pipeline,
        Err(faults) => panic!("{text}\n{faults}"),
    }
}

fn not_applied(parsed: &Parsed) -> Vec<&str> {
    parsed.not_applied.iter().map(|clause| clause.clause.as_str()).collect()
}

fn refused(text: &str) -> String {
    let parsed = read(text);
    assert_eq!(parsed.faults.len(), 1, "{text}\n{:#?}", faults(&parsed));
    let fault = &parsed.faults[0];
    format!("{}:{} {} {}; {}", fault.line, fault.column, fault.code, fault.message, fault.next.clone().unwrap_or_default())
}

#[test]
fn every_way_to_write_a_streaming_table_is_one() {
    for head in [
        "CREATE STREAMING TABLE t",
        "CREATE STREAMING TABLE IF NOT EXISTS t",
        "CREATE OR REFRESH STREAMING TABLE t",
        "create or refresh private streaming table T",
        "CREATE OR REFRESH TEMPORARY STREAMING TABLE t",
        "CREATE OR REFRESH STREAMING LIVE TABLE t",
        "CREATE OR REFRESH TEMPORARY STREAMING LIVE TABLE t",
        "CREATE INCREMENTAL LIVE TABLE t",
        "CREATE OR REFRESH STREAMING TABLE `t`",
        "CREATE OR REFRESH STREAMING TABLE main.t",
        "CREATE OR REFRESH STREAMING TABLE LIVE.t",
        "CREATE\u{a0}OR\u{a0}REFRESH\u{2009}STREAMING\u{202f}TABLE\u{200b} t",
    ] {
        for source in [
            "STREAM raw.s",
            "STREAM(raw.s)",
            "STREAM raw.s AS x",
            "STREAM(raw.s) x",
            "STREAM raw.s WATERMARK ts DELAY OF INTERVAL 10 SECONDS AS x",
        ] {
            let pipeline = pipeline(&format!("{head} AS SELECT a FROM {source}"));
            let spec = &pipeline.silver[0];
            assert_eq!((spec.table.schema.as_str(), spec.table.name.to_lowercase()), ("main", "t".to_owned()), "{head} {source}");
            assert_eq!((spec.sources[0].to_string(), &spec.policy), ("raw.s".to_owned(), &MergePolicy::Append), "{head} {source}");
            let select = spec.select.as_deref().unwrap_or_default();
            assert!(select.starts_with("SELECT a FROM raw.s"), "{select}");
            assert!(!select.to_uppercase().contains("STREAM") && !select.contains("WATERMARK"), "{select}");
        }
    }
}

#[test]
fn every_way_to_write_a_materialized_view_is_one() {
    for head in [
        "CREATE MATERIALIZED VIEW t",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS t",
        "CREATE OR REFRESH MATERIALIZED VIEW t",
        "CREATE OR REPLACE MATERIALIZED VIEW t",
        "CREATE OR REFRESH PRIVATE MATERIALIZED VIEW t",
        "CREATE OR REFRESH LIVE TABLE t",
        "CREATE LIVE TABLE t",
    ] {
        let pipeline = pipeline(&format!("{head} AS SELECT count(*) AS n FROM raw.s"));
        assert_eq!(pipeline.gold[0].query, "SELECT count(*) AS n FROM raw.s", "{head}");
    }
}

#[test]
fn clauses_of_a_definition_stand_in_any_order() {
    let text = "CREATE OR REFRESH STREAMING TABLE t (
        id BIGINT NOT NULL COMMENT 'the key' PRIMARY KEY RELY,
        price DECIMAL COMMENT \"in €\",
        name VARCHAR(20) DEFAULT 'none' || upper('x'),
        day DATE GENERATED ALWAYS AS (CAST(ts AS DATE)),
        ts TIMESTAMP,
        `a map` MAP<STRING, ARRAY<STRUCT<x: INT COMMENT 'it''s', y: DECIMAL(10,2)>>>,
        CONSTRAINT positive EXPECT (id > 0 AND name NOT IN ('a', 'b')) ON VIOLATION FAIL UPDATE,
        CONSTRAINT named EXPECT (name IS NOT NULL),
        CONSTRAINT fk FOREIGN KEY (name) REFERENCES other.names (name) NOT ENFORCED RELY
      )
      TBLPROPERTIES ('delta.appendOnly' = 'true', pipelines.reset.allowed = false, 'quality' = 'silver')
      SCHEDULE EVERY 4 HOURS
      CLUSTER BY (id, day)
      DEFAULT COLLATION UTF8_BINARY
      LOCATION 's3://x/y'
      COMMENT 'rows'
      AS SELECT * FROM STREAM(raw.s)";
    let parsed = read(text);
    let pipeline = parsed.to_pipeline("case").expect("no faults").pipeline;
    let spec = &pipeline.silver[0];
    let column = |name: &str| spec.schema.iter().find(|column| column.name == name).expect("a column");
    assert!(!column("id").nullable);
    assert_eq!(column("id").comment.as_deref(), Some("the key"));
    assert_eq!(column("price").data_type, DataType::Decimal { precision: 10, scale: 0 });
    assert_eq!(column("name").data_type, DataType::String);
    assert_eq!(column("name").default.as_deref(), Some("'none' || upper('x')"));
    assert_eq!(column("day").generated.as_deref(), Some("CAST(ts AS DATE)"));
    assert_eq!(column("a map").data_type.to_string(), "map<string,array<struct<x:integer comment 'it''s',y:decimal(10,2)>>>");
    assert_eq!(spec.expectations.len(), 2);
    assert_eq!(spec.cluster_by, ["id", "day"]);
    assert_eq!(spec.comment.as_deref(), Some("rows"));
    assert_eq!(spec.properties["quality"], "silver");
    assert_eq!(not_applied(&parsed), ["PRIMARY KEY", "the length of VARCHAR(20)", "FOREIGN KEY", "SCHEDULE", "LOCATION"]);
    assert_eq!(parsed.datasets[0].primary_key, ["id"]);
}

#[test]
fn what_hides_data_from_people_asks_for_a_word() {
    let text = "CREATE STREAMING TABLE t (email STRING MASK s.f USING COLUMNS (id, 'x'), id BIGINT) WITH ROW FILTER s.g ON (id) AS SELECT * FROM STREAM(raw.s);
ALTER TABLE main.t ALTER COLUMN email SET MASK s.f;
ALTER TABLE main.t SET ROW FILTER s.g ON (id);";
    let parsed = read(text);
    assert!(parsed.faults.is_empty(), "{:#?}", parsed.faults);
    let unprotected: Vec<(&str, usize, usize)> =
        parsed.unprotected().map(|clause| (clause.clause.as_str(), clause.place.line, clause.place.column)).collect();
    assert_eq!(unprotected, [("MASK of email", 1, 40), ("ROW FILTER", 1, 85), ("SET MASK", 2, 1), ("SET ROW FILTER", 3, 1)]);
}

#[test]
fn statements_that_pipelines_do_not_execute_are_told() {
    let text = "GRANT SELECT ON TABLE main.t TO `a@b.c`; REVOKE SELECT ON TABLE main.t FROM x; SHOW GRANTS ON TABLE main.t;
OPTIMIZE main.t ZORDER BY (a); COPY INTO main.t FROM 's3://x' FILEFORMAT = CSV; REFRESH MATERIALIZED VIEW main.m FULL;
DROP MATERIALIZED VIEW main.m; ALTER STREAMING TABLE main.t SET TBLPROPERTIES ('a' = 'b'); CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1;
MERGE WITH SCHEMA EVOLUTION INTO main.t USING s ON a = b WHEN MATCHED THEN DELETE; CREATE SINK k OPTIONS (a 'b');";
    let parsed = read(text);
    assert!(parsed.faults.is_empty(), "{:#?}", parsed.faults);
    let told = not_applied(&parsed);
    let expected = [
        "GRANT SELECT",
        "REVOKE SELECT",
        "SHOW GRANTS",
        "OPTIMIZE MAIN",
        "COPY INTO",
        "REFRESH MATERIALIZED",
        "DROP MATERIALIZED",
        "ALTER STREAMING",
        "CREATE FUNCTION",
        "MERGE WITH",
        "CREATE SINK",
    ];
    assert_eq!(told, expected);
    assert!(refused("SELECT 1").contains("SELECT is not a statement of pipelines"));
    assert!(refused("CREATE TABLE x (a INT)").contains("did you mean CREATE OR REFRESH STREAMING TABLE"));
    assert!(refused("CRATE VIEW x").contains("did you mean CREATE"));
}

#[test]
fn a_change_flow_says_all_that_the_platform_can_say() {
    let text = "CREATE STREAMING TABLE t;
CREATE FLOW f COMMENT 'changes' AS AUTO CDC INTO t FROM STREAM(raw.s) KEYS (a, `b c`) IGNORE NULL UPDATES
  APPLY AS DELETE WHEN op = 'D' AND columns = 1 APPLY AS TRUNCATE WHEN op = \"T\" SEQUENCE BY STRUCT(ts, lsn + 1)
  COLUMNS a, `b c`, d STORED AS SCD TYPE 1";
    let parsed = read(text);
    assert!(parsed.notices.iter().all(|notice| notice.kind != "clause_order"), "{:#?}", parsed.notices);
    let pipeline = parsed.to_pipeline("case").expect("no faults").pipeline;
    let spec = &pipeline.silver[0];
    assert_eq!(spec.keys, ["a", "b c"]);
    assert_eq!(spec.sequence_by, ["ts", "lsn + 1"]);
    assert_eq!(spec.deletes.apply_as_delete_when.as_deref(), Some("op = 'D' AND columns = 1"));
    assert_eq!(spec.deletes.apply_as_truncate_when.as_deref(), Some("op = 'T'"));
    assert_eq!(spec.ignore_null_updates, IgnoreNullUpdates::All);
    assert_eq!(spec.columns, ColumnSelection::Only(vec!["a".to_owned(), "b c".to_owned(), "d".to_owned()]));
    assert_eq!(spec.null_keys, NullKeys::Refuse);
    assert_eq!(spec.select, None);
}

#[test]
fn a_history_tracks_what_it_is_told_and_clauses_may_stand_in_any_order() {
    let text = "CREATE STREAMING TABLE t;
AUTO CDC INTO t FROM (SELECT *, a || b AS c FROM STREAM raw.s WHERE x <> 1) KEYS (a) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (polled)
  SEQUENCE BY (ts, n) COLUMNS (a, c, polled, ts)";
    let parsed = read(text);
    assert!(parsed.notices.iter().any(|notice| notice.kind == "clause_order"));
    let pipeline = parsed.to_pipeline("case").expect("no faults").pipeline;
    let spec = &pipeline.silver[0];
    assert_eq!(spec.policy, MergePolicy::ScdType2 { track_history: ColumnSelection::Except(vec!["polled".to_owned()]) });
    assert_eq!(spec.select.as_deref(), Some("SELECT *, a || b AS c FROM raw.s WHERE x <> 1"));
    assert_eq!(spec.sequence_by, ["ts", "n"]);
}

#[test]
fn a_flow_may_stand_in_the_tables_definition() {
    let changes = pipeline("CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM(raw.s) KEYS (a) SEQUENCE BY ts");
    assert_eq!(changes.silver[0].policy, MergePolicy::ScdType1);
    let rows = pipeline("CREATE OR REFRESH STREAMING TABLE t FLOW INSERT BY NAME SELECT * FROM STREAM(raw.s)");
    assert_eq!(rows.silver[0].policy, MergePolicy::Append);
    assert!(
        refused("CREATE STREAMING TABLE t FLOW REPLACE WHERE a > 1 BY NAME SELECT * FROM raw.s")
            .contains("FLOW REPLACE WHERE is not executed")
    );
}

#[test]
fn an_append_flow_adds_the_rows_of_its_query() {
    let spec = &pipeline("CREATE STREAMING TABLE t; CREATE FLOW f AS INSERT INTO t BY NAME SELECT a FROM STREAM(raw.s)").silver[0];
    assert_eq!((spec.table.to_string(), spec.select.as_deref()), ("main.t".to_owned(), Some("SELECT a FROM raw.s")));
    let once = read("CREATE STREAMING TABLE t; CREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT a FROM raw.s");
    assert!(once.flows[0].once && matches!(once.flows[0].action, FlowAction::Append(_)));
    let spec = &once.to_pipeline("p").expect("no faults").pipeline.silver[0];
    assert_eq!((spec.flow.as_deref(), spec.once, spec.select.as_deref()), (Some("f"), true, Some("SELECT a FROM raw.s")));
}

#[test]
fn several_flows_write_one_table_its_own_query_first() {
    let spec = &pipeline(
        "CREATE FLOW old AS INSERT INTO ONCE t BY NAME SELECT a FROM raw.archive;
         CREATE FLOW more AS INSERT INTO t BY NAME SELECT a FROM STREAM(raw.u) WITH (SKIPCHANGECOMMITS);
         CREATE STREAMING TABLE t AS SELECT a FROM STREAM(raw.s) WITH ('readChangeFeed' = 'true')",
    )
    .silver[0];
    assert_eq!((spec.flow_name(), spec.sources[0].to_string(), spec.stream), ("t", "raw.s".to_owned(), StreamRead::ChangeFeed));
    let flows: Vec<_> = spec.flows.iter().map(|flow| (flow.name.as_str(), flow.sources[0].to_string(), flow.once, flow.stream)).collect();
    assert_eq!(
        flows,
        [("old", "raw.archive".to_owned(), true, StreamRead::Auto), ("more", "raw.u".to_owned(), false, StreamRead::SkipChangeCommits)]
    );
}

#[test]
fn several_flows_of_changes_say_the_same_of_the_table_they_make() {
    let flow = |name: &str, rest: &str| {
        format!("CREATE FLOW {name} AS AUTO CDC INTO t FROM STREAM(raw.{name}) KEYS (id) APPLY AS DELETE WHEN op = '{name}' {rest};")
    };
    let table = "CREATE STREAMING TABLE t;";
    let same = "SEQUENCE BY seq STORED AS SCD TYPE 2";
    let spec = &pipeline(&[table, &flow("a", same), &flow("b", same)].concat()).silver[0];
    assert_eq!(spec.deletes.apply_as_delete_when.as_deref(), Some("op = 'a'"));
    assert_eq!(spec.flows[0].apply_as_delete_when.as_deref(), Some("op = 'b'"));
    let other = refused(&[table, &flow("a", same), &flow("b", "SEQUENCE BY at STORED AS SCD TYPE 2")].concat());
    assert!(other.contains("SEQUENCE BY") && other.contains("the first flow into the table says otherwise"), "{other}");
    let again = read(&[table, &flow("a", same), &flow("a", same)].concat());
    assert!(faults(&again).iter().any(|fault| fault.contains("flow a is already defined")), "{:#?}", faults(&again));
}

#[test]
fn rules_of_the_whole_table_are_properties() {
    let of = |text: &str| {
        let sql = format!("CREATE MATERIALIZED VIEW v TBLPROPERTIES ('tributary.expect.one' = '{text}') AS SELECT a, b FROM raw.s");
        pipeline(&sql).gold[0].set_expectations[0].clone()
    };
    let rule = of("unique(a, `b`) ON VIOLATION FAIL UPDATE");
    assert_eq!((rule.name.as_str(), rule.action), ("one", ExpectationAction::Fail));
    assert_eq!(rule.rule, SetRule::Unique(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(of("row_count >= 1").rule, SetRule::RowCount { min: Some(1), max: None });
    assert_eq!(of("row_count BETWEEN 1 AND 9").rule, SetRule::RowCount { min: Some(1), max: Some(9) });
    assert_eq!(of("freshness(a) <= 2 hours").rule, SetRule::Freshness { column: "a".to_owned(), max_age_seconds: 7200 });
    let letters = "İ".repeat(30);
    let grown = of(&format!("unique(a, {letters}) ON VIOLATION FAIL UPDATE")).rule;
    assert_eq!(grown, SetRule::Unique(vec!["a".to_owned(), letters]), "letters that grow when they are made small");
    for wrong in ["unique()", "row_count > 1", "freshness(a) <= soon", "unique(a) ON VIOLATION DROP ROW", ""] {
        let sql = format!("CREATE MATERIALIZED VIEW v TBLPROPERTIES ('tributary.expect.one' = '{wrong}') AS SELECT a FROM raw.s");
        assert!(refused(&sql).contains("row_count between 1 and 9"), "{wrong}");
    }
}

#[test]
fn changes_and_rows_do_not_go_into_one_table() {
    let text = "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(raw.s); CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw.u) KEYS (a) SEQUENCE BY b";
    assert!(refused(text).contains("a table takes either changes or rows"));
}

#[test]
fn views_are_put_into_what_reads_them() {
    let text =
        "CREATE MATERIALIZED VIEW g AS WITH v AS (SELECT 1 AS one) SELECT v.one, w.a FROM v JOIN w ON true JOIN LIVE.w AS x ON x.a = w.a;
CREATE TEMPORARY VIEW w (CONSTRAINT p EXPECT (a > 0) ON VIOLATION DROP ROW) AS SELECT a FROM v;
CREATE TEMPORARY VIEW v AS SELECT a FROM LIVE.t;
CREATE STREAMING TABLE t AS SELECT * FROM STREAM(raw.t)";
    let spec = &pipeline(text).gold[0];
    let inner = "SELECT * FROM (SELECT a FROM (SELECT a FROM main.t) AS v) AS w WHERE (a > 0)";
    let expected =
        format!("WITH v AS (SELECT 1 AS one) SELECT v.one, w.a FROM v JOIN ({inner}) AS w ON true JOIN ({inner}) AS x ON x.a = w.a");
    assert_eq!(spec.query, expected);
    assert_eq!(spec.sources.len(), 1);
}

#[test]
fn a_stream_may_go_through_a_view() {
    let text = "CREATE TEMPORARY VIEW v AS SELECT a FROM STREAM(raw.s) WHERE a > 0; CREATE STREAMING TABLE t AS SELECT a FROM STREAM(v)";
    let spec = &pipeline(text).silver[0];
    assert_eq!(
        (spec.sources[0].to_string(), spec.select.as_deref()),
        ("raw.s".to_owned(), Some("SELECT a FROM (SELECT a FROM raw.s WHERE a > 0) AS v"))
    );
}

#[test]
fn a_common_table_expression_hides_a_dataset_of_its_name() {
    let text = "CREATE STREAMING TABLE s AS SELECT * FROM STREAM(raw.s);
CREATE MATERIALIZED VIEW g AS WITH s AS (SELECT * FROM s), u AS (SELECT * FROM s) SELECT * FROM s JOIN u ON true";
    let spec = &pipeline(text).gold[0];
    assert_eq!(spec.query, "WITH s AS (SELECT * FROM main.s), u AS (SELECT * FROM s) SELECT * FROM s JOIN u ON true");
}

#[test]
fn the_words_of_streams_are_names_elsewhere() {
    let text = "CREATE MATERIALIZED VIEW g AS SELECT stream, extract(year FROM ts) AS y, watermark FROM raw.stream WHERE a IS DISTINCT FROM b AND keys = 1";
    let spec = &pipeline(text).gold[0];
    assert!(spec.query.starts_with("SELECT stream, extract(year FROM ts) AS y, watermark FROM raw.stream"), "{}", spec.query);
    assert_eq!(spec.sources[0].to_string(), "raw.stream");
}

#[test]
fn a_stream_that_is_grouped_or_joined_with_another_is_kept_equal_to_its_query() {
    for (text, query, streams) in [
        ("SELECT a, count(*) AS n FROM STREAM(raw.s) GROUP BY a", "SELECT a, count(*) AS n FROM raw.s GROUP BY a", vec![("raw.s", None)]),
        ("SELECT DISTINCT a FROM STREAM raw.s", "SELECT DISTINCT a FROM raw.s", vec![("raw.s", None)]),
        (
            "SELECT s.a FROM STREAM(raw.s) WATERMARK ts DELAY OF INTERVAL 10 SECONDS AS s JOIN STREAM raw.u WATERMARK at DELAY OF \
             INTERVAL '2 minutes' u ON s.a = u.a AND u.at BETWEEN s.ts AND s.ts + INTERVAL 1 HOUR",
            "SELECT s.a FROM raw.s AS s JOIN raw.u u ON s.a = u.a AND u.at BETWEEN s.ts AND s.ts + INTERVAL 1 HOUR",
            vec![("raw.s", Some(("ts", 10_000))), ("raw.u", Some(("at", 120_000)))],
        ),
        (
            "SELECT n FROM (SELECT a, count(*) AS n FROM STREAM(raw.s) GROUP BY a) AS x",
            "SELECT n FROM (SELECT a, count(*) AS n FROM raw.s GROUP BY a) AS x",
            vec![("raw.s", None)],
        ),
        (
            "SELECT a FROM STREAM(raw.s) UNION ALL SELECT a FROM STREAM(raw.u)",
            "SELECT a FROM raw.s UNION ALL SELECT a FROM raw.u",
            vec![("raw.s", None), ("raw.u", None)],
        ),
    ] {
        let pipeline = pipeline(&format!("CREATE STREAMING TABLE t AS {text}"));
        let [spec] = pipeline.gold.as_slice() else { panic!("{text}: {pipeline:#?}") };
        assert_eq!(spec.query, query);
        let found = spec.streams.iter().map(|stream| {
            let watermark = stream.watermark.as_ref().map(|watermark| (watermark.column.as_str(), watermark.delay_millis));
            (stream.table.to_string(), watermark)
        });
        let found: Vec<_> = found.collect();
        let expected: Vec<_> = streams.into_iter().map(|(table, watermark)| (table.to_owned(), watermark)).collect();
        assert_eq!(found, expected, "{text}");
    }
    // what is looked up and not streamed may be grouped, as ever
    let text =
        "CREATE STREAMING TABLE t AS SELECT s.a, d.n FROM STREAM(raw.s) s JOIN (SELECT a, count(*) AS n FROM raw.d GROUP BY a) d USING (a)";
    assert_eq!((pipeline(text).gold.len(), pipeline(text).silver.len()), (0, 1));
}

#[test]
fn late_rows_are_told_by_a_watermark_and_left_out_by_a_property() {
    let stateless = |property: &str| {
        format!("CREATE STREAMING TABLE t {property} AS SELECT a FROM STREAM(raw.s) WATERMARK ts DELAY OF INTERVAL 10 SECONDS")
    };
    for (property, late) in [("", LateRows::Apply), ("TBLPROPERTIES ('tributary.late' = 'drop')", LateRows::Drop)] {
        let spec = pipeline(&stateless(property)).silver.remove(0);
        assert_eq!((spec.watermark, spec.late), (Some(Watermark { column: "ts".to_owned(), delay_millis: 10_000 }), late));
    }
    let full_names = pipeline(
        "CREATE STREAMING TABLE t TBLPROPERTIES ('tributary.late' = 'drop') AS SELECT main.raw.s.a, raw.s.b.c, raw.u.*, count(*) AS n \
         FROM STREAM(main.raw.s) WATERMARK ts DELAY OF INTERVAL 1 DAY JOIN STREAM(raw.u) WATERMARK ts DELAY OF INTERVAL 1 DAY \
         ON raw.s.a = raw.u.a JOIN STREAM(other.s) WATERMARK ts DELAY OF INTERVAL 1 DAY ON other.s.a = raw.u.a GROUP BY ALL",
    );
    assert_eq!(
        full_names.gold[0].query,
        "SELECT raw_s.a, raw_s.b.c, u.*, count(*) AS n FROM main.t_s_in_time AS raw_s JOIN main.t_u_in_time AS u ON raw_s.a = u.a \
         JOIN main.t_s_in_time_2 AS other_s ON other_s.a = u.a GROUP BY ALL"
    );
    let text = "CREATE STREAMING TABLE t TBLPROPERTIES ('tributary.late' = 'drop') AS SELECT s.a, count(*) AS n FROM STREAM(raw.s) \
                WATERMARK ts DELAY OF INTERVAL 10 SECONDS JOIN STREAM(raw.u) AS u ON s.a = u.a GROUP BY s.a";
    let pipeline = pipeline(text);
    let (kept, view) = (&pipeline.silver[0], &pipeline.gold[0]);
    assert_eq!(
        (kept.table.to_string(), kept.sources[0].to_string(), kept.late),
        ("main.t_s_in_time".to_owned(), "raw.s".to_owned(), LateRows::Drop)
    );
    assert_eq!(view.query, "SELECT s.a, count(*) AS n FROM main.t_s_in_time AS s JOIN raw.u AS u ON s.a = u.a GROUP BY s.a");
    assert_eq!(view.sources.iter().map(ToString::to_string).collect::<Vec<_>>(), ["main.t_s_in_time", "raw.u"]);
    for text in [
        "CREATE STREAMING TABLE t TBLPROPERTIES ('tributary.late' = 'drop') AS SELECT a FROM STREAM(raw.s)",
        "CREATE MATERIALIZED VIEW t TBLPROPERTIES ('tributary.late' = 'drop') AS SELECT a FROM raw.s",
        "CREATE STREAMING TABLE t TBLPROPERTIES ('tributary.late' = 'drop') AS SELECT a, count(*) AS n FROM STREAM(raw.s) GROUP BY a",
    ] {
        assert!(refused(text).contains("means nothing without a WATERMARK"), "{text}: {}", refused(text));
    }
}

#[test]
fn a_stream_that_cannot_be_kept_equal_is_refused_with_what_to_write() {
    for (text, what) in [
        ("SELECT * FROM STREAM(raw.s) ORDER BY a", "ORDER BY over a stream"),
        ("SELECT a, count(*) AS n FROM STREAM(raw.s) GROUP BY a LIMIT 3", "LIMIT over a stream"),
        ("SELECT a FROM STREAM(raw.s) EXCEPT SELECT a FROM raw.u", "EXCEPT over a stream"),
        ("SELECT a FROM (SELECT a FROM STREAM(raw.s) LIMIT 2) x", "LIMIT over a stream"),
        ("SELECT * FROM STREAM(raw.s) QUALIFY row_number() OVER (ORDER BY ts) = 1", "QUALIFY without PARTITION BY over a stream"),
        ("SELECT a, sum(b) OVER w AS n FROM STREAM(raw.s) WINDOW w AS (ORDER BY ts)", "OVER without PARTITION BY over a stream"),
        ("SELECT * FROM STREAM(raw.s) s LEFT ANTI JOIN STREAM(raw.u) u ON s.a = u.a", "ANTI JOIN of two streams"),
        ("SELECT * FROM STREAM(raw.s) s WHERE NOT EXISTS (SELECT 1 FROM STREAM(raw.u) u WHERE u.a = s.a)", "NOT EXISTS over a stream"),
        ("SELECT * FROM STREAM(raw.s) s WHERE a NOT IN (SELECT a FROM STREAM(raw.u))", "NOT IN over a stream"),
        (
            "SELECT * FROM STREAM(raw.s) WATERMARK ts DELAY OF INTERVAL 1 DAY AS s\nLEFT JOIN\n  STREAM(raw.u) u ON s.a = u.a AND u.ts < s.ts",
            "3:10 ",
        ),
        (
            "SELECT * FROM STREAM(raw.s) s FULL JOIN STREAM(raw.u) WATERMARK ts DELAY OF INTERVAL 1 DAY AS u ON s.a = u.a AND u.ts < s.ts",
            "of which this one has no watermark",
        ),
        ("SELECT * FROM STREAM(raw.s) s FULL JOIN STREAM(raw.u) u USING (a)", "FULL JOIN of two streams"),
        ("WITH s AS (SELECT * FROM STREAM(raw.s)), u AS (SELECT * FROM STREAM(raw.u)) SELECT * FROM s LEFT JOIN u USING (a)", "LEFT JOIN"),
        (
            "WITH s AS (SELECT * FROM STREAM(raw.s)), r AS (SELECT * FROM S) SELECT * FROM STREAM(raw.u) u RIGHT JOIN r ON u.a = r.a",
            "RIGHT",
        ),
        ("WITH s AS (SELECT * FROM STREAM(raw.s)) SELECT * FROM s AS x FULL JOIN (SELECT * FROM s) AS y ON x.a = y.b", "FULL JOIN"),
        ("SELECT a, count(*) AS n FROM STREAM raw.s WITH (SKIPCHANGECOMMITS) GROUP BY a", "WITH (…) of a stream"),
        ("SELECT a, count(*) AS n FROM STREAM(raw.s) WATERMARK ts + INTERVAL 1 DAY DELAY OF INTERVAL 1 DAY GROUP BY a", "an expression"),
    ] {
        let told = refused(&format!("CREATE STREAMING TABLE t AS {text}"));
        assert!(told.contains(what), "{text}: {told}");
    }
    for text in [
        "SELECT s.a, u.b FROM STREAM(raw.s) s LEFT JOIN STREAM(raw.u) WATERMARK ts DELAY OF INTERVAL 1 DAY AS u ON s.a = u.a AND u.ts < s.ts",
        "WITH u AS (SELECT * FROM STREAM(raw.u) WATERMARK ts DELAY OF INTERVAL 1 DAY) \
         SELECT s.a, u.b FROM STREAM(raw.s) s LEFT JOIN u ON s.a = u.a AND u.ts < s.ts",
        "SELECT * FROM STREAM(raw.s) QUALIFY row_number() OVER (PARTITION BY a ORDER BY ts) = 1",
        "SELECT * FROM STREAM(raw.s) QUALIFY row_number() OVER w = 1 WINDOW w AS (PARTITION BY a ORDER BY ts)",
        "SELECT a, b FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY ts) AS n FROM STREAM(raw.s)) AS x WHERE n = 1",
    ] {
        let made = pipeline(&format!("CREATE STREAMING TABLE t AS {text}"));
        assert_eq!((made.silver.len(), made.gold.len()), (0, 1), "{text}");
    }
    let looked_up = "WITH d AS (SELECT * FROM raw.d) SELECT s.a, d.b FROM STREAM(raw.s) AS s LEFT JOIN d ON s.a = d.a";
    assert_eq!(pipeline(&format!("CREATE STREAMING TABLE t AS {looked_up}")).silver.len(), 1);
    for (view, text, what) in [
        ("SELECT a, count(*) AS n FROM raw.s GROUP BY a", "SELECT * FROM STREAM(v)", "GROUP BY of the view v over a stream"),
        ("SELECT * FROM (SELECT DISTINCT a FROM STREAM(raw.s)) AS x", "SELECT * FROM STREAM(v)", "DISTINCT of the view v"),
        ("SELECT * FROM STREAM(raw.s)", "SELECT u.a FROM STREAM(raw.u) AS u LEFT JOIN v ON u.a = v.a", "the stream that the view v reads"),
    ] {
        let told = refused(&format!("CREATE TEMPORARY VIEW v AS {view}; CREATE STREAMING TABLE t AS {text}"));
        assert!(told.contains(what), "{text}: {told}");
    }
    let two = "CREATE STREAMING TABLE t AS SELECT a, count(*) AS n FROM STREAM(raw.s) GROUP BY a;\n\
               CREATE FLOW f AS INSERT INTO t BY NAME SELECT a, 1 AS n FROM STREAM(raw.u)";
    assert!(refused(two).contains("in one of several flows"), "{}", refused(two));
    let text = "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(raw.s) WATERMARK ts DELAY OF INTERVAL '10' GROUP BY a";
    assert!(refused(text).contains("WATERMARK column DELAY OF INTERVAL n unit"), "{}", refused(text));
}

#[test]
fn streams_are_of_tables_and_functions() {
    let text = "CREATE STREAMING TABLE t AS SELECT * FROM STREAM (SELECT * FROM raw.s)";
    let parsed = read(text);
    assert!(faults(&parsed)[0].contains("a stream is of a table or of a function, not of a query"), "{:#?}", faults(&parsed));
    assert!(
        refused("CREATE STREAMING TABLE t AS SELECT * FROM raw.s").contains("write FROM STREAM(raw.s), or make it a materialized view")
    );
    assert!(
        refused("CREATE MATERIALIZED VIEW t AS SELECT * FROM STREAM(raw.s)").contains("a materialized view reads its sources as they are")
    );
    assert!(
        refused("CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM raw.s KEYS (a) SEQUENCE BY b")
            .contains("write FROM STREAM(raw.s)")
    );
}

#[test]
fn files_and_topics_become_feeds() {
    let files = "CREATE STREAMING TABLE f (a BIGINT, b STRING) CLUSTER BY (a) AS SELECT * FROM STREAM read_files('s3://in/2024/*/x-*.csv',
  format => 'csv', header => false, sep => ';', nullValue => 'NA', schemaEvolutionMode => 'rescue', maxFilesPerTrigger => 10)";
    let parsed = read(files);
    assert_eq!(not_applied(&parsed), ["the option maxFilesPerTrigger"]);
    let feed = &parsed.to_pipeline("case").expect("no faults").pipeline.feeds[0];
    let Source::Files(source) = &feed.source else { panic!("files") };
    assert_eq!((source.path.as_str(), source.glob.as_deref()), ("s3://in/2024", Some("*/x-*.csv")));
    assert!(!source.csv.header && source.csv.delimiter == ';' && source.csv.null_text.as_deref() == Some("NA"));
    assert_eq!((feed.schema_policy, feed.decode, feed.name.as_str()), (SchemaPolicy::Rescue, Decode::Csv, "main_f"));

    let topics = "CREATE STREAMING TABLE k AS SELECT * FROM STREAM read_kafka(bootstrapServers => 'a:1,b:2', subscribe => 'x, y', startingOffsets => 'latest', `kafka.security.protocol` => 'SSL')";
    let feed = &pipeline(topics).feeds[0];
    let Source::Kafka(source) = &feed.source else { panic!("topics") };
    assert_eq!((source.topics.clone(), feed.decode), (vec!["x".to_owned(), "y".to_owned()], Decode::Raw));
    assert_eq!(source.properties["security.protocol"], "SSL");

    let changes = "CREATE STREAMING TABLE k AS SELECT * FROM STREAM read_kafka(subscribePattern => 'shop\\\\..*', decode => 'debezium', replicaIdentity => 'full')";
    let feed = &pipeline(changes).feeds[0];
    let Source::Kafka(source) = &feed.source else { panic!("topics") };
    assert_eq!((source.pattern.as_deref(), feed.decode), (Some("shop\\..*"), Decode::Debezium));

    let more =
        "CREATE STREAMING TABLE t AS SELECT a, _metadata.file_path AS file FROM STREAM read_files('in', format => 'json') WHERE a > 1";
    let both = pipeline(more);
    assert_eq!(both.feeds[0].table.to_string(), "main.t_input");
    assert_eq!(both.silver[0].select.as_deref(), Some("SELECT a, _file AS file FROM main.t_input WHERE a > 1"));
    assert!(
        refused("CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('in', formt => 'csv', format => 'csv')")
            .contains("there is no option formt; did you mean format?")
    );
    assert!(refused("CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_filez('in')").contains("read_files"));
}

#[test]
fn a_rule_on_a_table_of_files_is_one_on_the_rows_appended_from_them() {
    let text = "CREATE STREAMING TABLE t (CONSTRAINT p EXPECT (a > 0) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM read_files('in', format => 'json')";
    let both = pipeline(text);
    assert_eq!((both.feeds[0].table.to_string(), both.silver[0].select.as_deref()), ("main.t_input".to_owned(), None));
    assert_eq!(both.silver[0].expectations.len(), 1);
}

#[test]
fn changes_of_a_feed_go_by_its_positions_wherever_the_feed_is_defined() {
    let flow = "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b) KEYS (a) SEQUENCE BY _position;";
    let feed = "CREATE STREAMING TABLE b COMMENT \"a\" AS SELECT * FROM STREAM read_files('in', format => 'kafka_jsonl');";
    for text in [format!("{flow}{feed}"), format!("{feed}{flow}")] {
        let spec = &pipeline(&text).silver[0];
        assert_eq!((spec.sequence_by.len(), spec.null_keys), (0, NullKeys::Quarantine), "{text}");
    }
}

#[test]
fn properties_of_ours_say_what_the_dialect_cannot() {
    let text = "CREATE STREAMING TABLE t (CONSTRAINT p EXPECT (a > 0), CONSTRAINT q EXPECT (b > 0)) TBLPROPERTIES (
  'tributary.expectations.quarantine' = 'p', 'tributary.nullKeys' = 'null_safe', 'tributary.quarantine' = 'quarantine.odd',
  'tributary.merge.policy' = 'monotonic_advance', 'tributary.merge.advance' = 'b');
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw.s) KEYS (a) SEQUENCE BY b;
CREATE MATERIALIZED VIEW g TBLPROPERTIES ('tributary.refresh' = 'full', 'pipelines.autoOptimize.zOrderCols' = 'a, b') AS SELECT * FROM t";
    let pipeline = pipeline(text);
    let spec = &pipeline.silver[0];
    assert_eq!(spec.expectations.iter().map(|rule| format!("{:?}", rule.action)).collect::<Vec<_>>(), ["Quarantine", "Warn"]);
    assert_eq!((spec.null_keys, &spec.policy), (NullKeys::NullSafe, &MergePolicy::MonotonicAdvance { columns: vec!["b".to_owned()] }));
    assert_eq!(spec.quarantine.as_ref().map(ToString::to_string).as_deref(), Some("quarantine.odd"));
    assert!(spec.properties.is_empty());
    assert_eq!((pipeline.gold[0].refresh, pipeline.gold[0].zorder_by.clone()), (Refresh::Full, vec!["a".to_owned(), "b".to_owned()]));
    assert!(
        refused("CREATE STREAMING TABLE t TBLPROPERTIES ('tributary.nulKeys' = 'x') AS SELECT * FROM STREAM(raw.s)").contains("SP0038")
    );
    assert!(
        refused("CREATE MATERIALIZED VIEW t TBLPROPERTIES ('tributary.nullKeys' = 'refuse') AS SELECT * FROM raw.s")
            .contains("means nothing for a materialized view")
    );
}

#[test]
fn use_set_and_named_parameters_hold_for_the_rest_of_the_file() {
    let text = "USE CATALOG c; USE SCHEMA one; CREATE STREAMING TABLE t AS SELECT * FROM STREAM(s); USE two;
SET n = 5; SET from = '2024-01-01'; SET CATALOG c;
CREATE MATERIALIZED VIEW m AS SELECT * FROM IDENTIFIER(:source) WHERE a > ${n} AND d >= ${from} AND e = :e AND v:x.y::INT = 1";
    let parsed = read_with(text, &[("source", "one.t"), ("e", "it's")]);
    let lowered = parsed.to_pipeline("case").expect("no faults");
    assert_eq!(lowered.catalog.as_deref(), Some("c"));
    assert_eq!(lowered.pipeline.silver[0].table.to_string(), "one.t");
    assert_eq!(lowered.pipeline.gold[0].table.to_string(), "two.m");
    let query = &lowered.pipeline.gold[0].query;
    assert_eq!(query, "SELECT * FROM one.t WHERE a > 5 AND d >= '2024-01-01' AND e = 'it''s' AND v:x.y::INT = 1");
    let unused = read("SET spark.sql.shuffle.partitions = 10;");
    assert_eq!(not_applied(&unused), ["SET spark.sql.shuffle.partitions"]);
}

#[test]
fn operators_and_literals_of_spark_stand_wherever_expressions_do() {
    let text = r"CREATE STREAMING TABLE s.t (CONSTRAINT c EXPECT (a div 2 > 1L) ON VIOLATION DROP ROW)
AS SELECT a, a << 1 AS b FROM STREAM(s.x) WHERE c RLIKE r'\d\' AND e >> 1 > 1.5BD;
CREATE STREAMING TABLE s.u;
CREATE FLOW f AS AUTO CDC INTO s.u FROM STREAM(s.x) KEYS (a) APPLY AS DELETE WHEN c = r'\' SEQUENCE BY a div 2;
CREATE MATERIALIZED VIEW s.m AS SELECT a div 2 AS half FROM s.t GROUP BY a div 2";
    let pipeline = pipeline(text);
    assert_eq!(pipeline.silver[0].expectations[0].expression, "a div 2 > 1L");
    assert_eq!(pipeline.silver[0].select.as_deref(), Some(r"SELECT a, a << 1 AS b FROM s.x WHERE c RLIKE '\\d\\' AND e >> 1 > 1.5BD"));
    assert_eq!(pipeline.silver[1].deletes.apply_as_delete_when.as_deref(), Some(r"c = '\\'"));
    assert_eq!(pipeline.silver[1].sequence_by, ["a div 2"]);
    assert_eq!(pipeline.gold[0].query, "SELECT a div 2 AS half FROM s.t GROUP BY a div 2");
}

#[test]
fn names_without_a_schema_need_the_pipelines() {
    let file = SqlFile { path: "a.sql".to_owned(), text: "CREATE MATERIALIZED VIEW m AS SELECT 1 AS x".to_owned() };
    let parsed = parse(&[file], &Default::default(), &Options::default());
    assert!(faults(&parsed)[0].starts_with("1:26 PS0016 m cannot be the name of a dataset: it has no schema"), "{:?}", faults(&parsed));
}

#[test]
fn a_name_that_is_nearly_one_of_the_pipelines_is_asked_about() {
    let told = |source: &str| {
        let table = "CREATE STREAMING TABLE bronze.events AS SELECT * FROM STREAM(raw.s)";
        let parsed = read(&format!("{table};\nCREATE MATERIALIZED VIEW gold.m AS SELECT * FROM {source}"));
        parsed.notices.iter().filter(|notice| notice.kind == "external_table").map(|notice| notice.message.clone()).collect::<String>()
    };
    for near in ["bronze.event", "bronz.events", "Bronce.EVENTS"] {
        assert!(told(near).ends_with("did you mean bronze.events?"), "{near}: {}", told(near));
    }
    for other in ["bronze.events", "raw.s", "silver.payments", "warehouse.events"] {
        assert_eq!(told(other), "", "{other}");
    }
}

#[test]
fn definitions_stand_in_any_order_and_in_any_file() {
    let file = |path: &str, text: &str| SqlFile { path: path.to_owned(), text: text.to_owned() };
    let files = [
        file("z.sql", "CREATE MATERIALIZED VIEW g.v AS SELECT * FROM s.t"),
        file("b.sql", "CREATE FLOW f AS AUTO CDC INTO s.t FROM STREAM(raw.t) KEYS (a) SEQUENCE BY b"),
        file("a.sql", "CREATE STREAMING TABLE s.t"),
    ];
    let parsed = parse(&files, &Default::default(), &Options::default());
    let pipeline = parsed.to_pipeline("case").expect("no faults").pipeline;
    assert_eq!(pipeline.phases().expect("no circle").len(), 2);
    assert_eq!(parsed.datasets.iter().map(|dataset| dataset.kind).collect::<Vec<_>>(), [Kind::MaterializedView, Kind::StreamingTable]);
}

#[test]
fn what_would_change_rows_if_left_out_is_refused() {
    for (text, message) in [
        (
            "CREATE STREAMING TABLE t (a BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 1)) AS SELECT * FROM STREAM(raw.s)",
            "IDENTITY is not executed",
        ),
        ("CREATE STREAMING TABLE t (a STRING, CHECK (a > 1)) AS SELECT * FROM STREAM(raw.s)", "datasets of pipelines have rules instead"),
        (
            "CREATE STREAMING TABLE t DEFAULT COLLATION UTF8_LCASE AS SELECT * FROM STREAM(raw.s)",
            "DEFAULT COLLATION UTF8_LCASE is not executed",
        ),
        ("CREATE STREAMING TABLE t PARTITIONED BY (a) CLUSTER BY (b) AS SELECT * FROM STREAM(raw.s)", "it excludes PARTITIONED BY"),
        ("CREATE STREAMING TABLE t PARTITIONED BY (days(ts)) AS SELECT * FROM STREAM(raw.s)", "the name of a column is expected here"),
        ("CREATE STREAMING TABLE t COMMENT 'a' COMMENT 'b' AS SELECT * FROM STREAM(raw.s)", "COMMENT stands twice"),
        ("CREATE MATERIALIZED VIEW t AS SELECT * FROM raw.s CHANGES FROM VERSION 1", "CHANGES FROM VERSION is not executed"),
        ("CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC FROM SNAPSHOT raw.s", "FROM SNAPSHOT, which compares whole copies"),
        (
            "CREATE OR REPLACE FLOW f AS INSERT INTO t BY NAME SELECT * FROM STREAM(raw.s); CREATE STREAMING TABLE t",
            "OR REPLACE cannot stand here",
        ),
        (
            "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw.s) KEYS (a) SEQUENCE BY b TRACK HISTORY ON c",
            "only SCD TYPE 2 keeps a history",
        ),
        (
            "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw.s) KEYS (a)\nSEQUENCE BY b APPLY AS TRUNCATE WHEN x STORED AS SCD TYPE 2",
            "2:15 SP0028",
        ),
        ("CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw.s) KEYS (a) SEQENCE BY b", "SEQUENCE BY"),
        (
            "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(raw.s) KEYS (a) SEQUENCE BY b STORED AS SCD TYPE 3",
            "SCD TYPE 1 or SCD TYPE 2 is expected",
        ),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(raw.s)\nCREATE STREAMING TABLE u AS SELECT * FROM STREAM(raw.u)",
            "semicolon before it",
        ),
        ("CREATE STREAMING TABLE my-table AS SELECT * FROM STREAM(raw.s)", "it has a dash outside back-quotes"),
        ("CREATE STREAMING TABLE a.b.c.d AS SELECT * FROM STREAM(raw.s)", "it has more than three parts"),
        ("CREATE STREAMING TABLE t (CONSTRAINT k EXPECT (a IN (SELECT b FROM c))) AS SELECT * FROM STREAM(raw.s)", "it asks other tables"),
        ("CREATE STREAMING TABLE t", "the clause AS or a flow into it is missing"),
        (
            "CREATE MATERIALIZED VIEW t AS SELECT 1 AS x; CREATE MATERIALIZED VIEW T AS SELECT 2 AS x",
            "dataset main.T is already defined in a.sql:1:26",
        ),
    ] {
        let parsed = read(text);
        let found = faults(&parsed);
        assert!(
            found.iter().any(|fault| fault.contains(message)) || parsed.faults.iter().any(|fault| fault.to_string().contains(message)),
            "{text}\n{found:#?}"
        );
    }
}
