//! What is said to be otherwise on other platforms.

use std::collections::BTreeSet;

use tributary_pipeline_sql::{Elsewhere, Options, Parsed, Platform, SqlFile, parse, portability_of_bundles, portability_rules};

fn read(text: &str) -> Parsed {
    let files = [SqlFile { path: "a.sql".to_owned(), text: text.to_owned() }];
    let parameters = [("p".to_owned(), "bronze.raw".to_owned())].into();
    parse(&files, &parameters, &Options { catalog: None, schema: Some("s".to_owned()) })
}

/// Each rule with SQL that it is told of, and where.
const CASES: &[(&str, &str, (usize, usize))] = &[
    ("or_refresh", "CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT 1 AS a", (1, 1)),
    ("or_replace", "CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT 1 AS a", (1, 1)),
    ("live", "CREATE LIVE TABLE m AS SELECT 1 AS a", (1, 1)),
    ("live_name", "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x;\nCREATE MATERIALIZED VIEW m AS SELECT * FROM LIVE.a", (2, 45)),
    ("private", "CREATE PRIVATE MATERIALIZED VIEW m AS SELECT 1 AS a", (1, 1)),
    ("if_not_exists", "CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT 1 AS a", (1, 1)),
    ("view", "CREATE VIEW v AS SELECT 1 AS a", (1, 13)),
    ("untyped_column", "CREATE MATERIALIZED VIEW m (\n  a COMMENT 'x') AS SELECT 1 AS a", (2, 3)),
    ("not_null", "CREATE STREAMING TABLE t (a INT NOT NULL) AS SELECT * FROM STREAM(b.x)", (1, 33)),
    ("expect", "CREATE STREAMING TABLE t (\n  CONSTRAINT c EXPECT (a > 0)) AS SELECT * FROM STREAM(b.x)", (2, 14)),
    ("expect_on_view", "CREATE TEMPORARY VIEW v (CONSTRAINT c EXPECT (a > 0)) AS SELECT 1 AS a", (1, 37)),
    ("key", "CREATE MATERIALIZED VIEW m (a INT, PRIMARY KEY (a)) AS SELECT 1 AS a", (1, 36)),
    ("mask", "CREATE STREAMING TABLE t (a INT MASK f) AS SELECT * FROM STREAM(b.x)", (1, 33)),
    ("row_filter", "CREATE STREAMING TABLE t WITH ROW FILTER f ON (a) AS SELECT * FROM STREAM(b.x)", (1, 26)),
    ("text_length", "CREATE STREAMING TABLE t (a VARCHAR(3)) AS SELECT * FROM STREAM(b.x)", (1, 29)),
    ("cluster_by_auto", "CREATE STREAMING TABLE t CLUSTER BY AUTO AS SELECT * FROM STREAM(b.x)", (1, 26)),
    ("cluster_by_none", "CREATE STREAMING TABLE t CLUSTER BY NONE AS SELECT * FROM STREAM(b.x)", (1, 26)),
    ("schedule", "CREATE MATERIALIZED VIEW m\nSCHEDULE EVERY 1 HOUR AS SELECT 1 AS a", (2, 1)),
    ("location", "CREATE STREAMING TABLE t LOCATION '/x' AS SELECT * FROM STREAM(b.x)", (1, 26)),
    ("unquoted_property", "CREATE MATERIALIZED VIEW m TBLPROPERTIES (a.b = c) AS SELECT 1 AS a", (1, 43)),
    ("our_property", "CREATE MATERIALIZED VIEW m TBLPROPERTIES ('tributary.refresh' = 'full') AS SELECT 1 AS a", (1, 43)),
    ("platform_property", "CREATE MATERIALIZED VIEW m TBLPROPERTIES ('pipelines.reset.allowed' = 'false') AS SELECT 1 AS a", (1, 43)),
    ("property_as_text", "CREATE MATERIALIZED VIEW m TBLPROPERTIES ('pipelines.trigger.interval' = '1 hour') AS SELECT 1 AS a", (1, 43)),
    ("flow_once", "CREATE STREAMING TABLE t;\nCREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT * FROM b.x", (2, 35)),
    ("flow_in_table", "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM(b.x) KEYS (a) SEQUENCE BY b", (1, 26)),
    ("insert_in_table", "CREATE STREAMING TABLE t FLOW INSERT BY NAME SELECT * FROM STREAM(b.x)", (1, 26)),
    ("apply_changes", "CREATE STREAMING TABLE t;\nAPPLY CHANGES INTO t FROM STREAM(b.x) KEYS (a) SEQUENCE BY b", (2, 1)),
    ("bare_auto_cdc", "CREATE STREAMING TABLE t;\nAUTO CDC INTO t FROM STREAM(b.x) KEYS (a) SEQUENCE BY b", (2, 1)),
    (
        "implicit_deletes",
        "CREATE STREAMING TABLE f (a INT) AS SELECT * FROM STREAM read_files('x', format => 'kafka_jsonl');\n\
         CREATE STREAMING TABLE t;\nCREATE FLOW g AS AUTO CDC INTO t FROM STREAM(f) KEYS (a) SEQUENCE BY a",
        (3, 49),
    ),
    ("equal_sequences", "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x) KEYS (a) SEQUENCE BY b", (2, 32)),
    (
        "declared_columns",
        "CREATE STREAMING TABLE t (a INT, b INT);\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x) KEYS (a) SEQUENCE BY b",
        (1, 24),
    ),
    ("row_columns", "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x) KEYS (a) SEQUENCE BY b", (2, 32)),
    (
        "ignore_null_updates",
        "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x) KEYS (a)\nIGNORE NULL UPDATES SEQUENCE BY b",
        (3, 1),
    ),
    (
        "truncate_when",
        "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x) KEYS (a)\nAPPLY AS TRUNCATE WHEN op = 't' SEQUENCE BY b",
        (3, 1),
    ),
    (
        "clause_order",
        "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x)\nKEYS (a) STORED AS SCD TYPE 1 SEQUENCE BY b",
        (3, 1),
    ),
    ("keys_not_first", "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x)\nSEQUENCE BY b KEYS (a)", (3, 1)),
    (
        "bare_columns",
        "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x) KEYS (a) SEQUENCE BY b\nCOLUMNS a, b",
        (3, 9),
    ),
    (
        "all_columns",
        "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(b.x) KEYS (a) SEQUENCE BY b\nCOLUMNS *",
        (3, 9),
    ),
    ("feed_columns", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('x', format => 'json')", (1, 50)),
    ("read_files", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('x', format => 'json')", (1, 50)),
    ("read_kafka", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_kafka(bootstrapServers => 'b:1', subscribe => 'c')", (1, 50)),
    ("cloud_files", "CREATE STREAMING TABLE t AS SELECT * FROM cloud_files('x', 'json')", (1, 43)),
    ("table_changes", "CREATE STREAMING TABLE t AS SELECT a FROM STREAM table_changes('b.x', 1)", (1, 50)),
    ("our_option", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('x', format => 'json',\n  feed => 'f')", (2, 3)),
    (
        "option_not_applied",
        "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('x', format => 'json',\n  maxFilesPerTrigger => 3)",
        (2, 3),
    ),
    ("stream_options", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM b.x WITH ('a' = 'b')", (1, 54)),
    ("watermark", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(b.x) WATERMARK ts DELAY OF INTERVAL 10 SECONDS AS s", (1, 55)),
    ("remembered", "CREATE STREAMING TABLE t AS SELECT a, count(*) AS n FROM STREAM(b.x) GROUP BY a", (1, 24)),
    ("named_parameter", "CREATE MATERIALIZED VIEW m AS SELECT * FROM IDENTIFIER(:p)", (1, 56)),
    ("set_value", "SET p = 1;\nCREATE MATERIALIZED VIEW m AS SELECT ${p} AS a", (1, 1)),
    ("use_catalog", "USE CATALOG c", (1, 1)),
    ("notebook_cell", "USE SCHEMA s\n-- COMMAND ----------\nUSE SCHEMA s", (2, 1)),
    ("notebook_magic", "%sql\nUSE SCHEMA s", (1, 1)),
    ("invisible_sign", "USE SCHEMA\u{200b} s", (1, 11)),
    ("create_sink", "CREATE SINK k", (1, 1)),
    ("other_statement", "GRANT SELECT ON TABLE s.t TO b", (1, 1)),
];

#[test]
fn every_rule_is_told_where_its_construct_stands() {
    for (rule, text, place) in CASES {
        let parsed = read(text);
        // what is not executed here may still be asked about
        assert!(parsed.faults.iter().all(|fault| fault.code.0 == "PS0025"), "{rule}: {:?}", parsed.faults);
        let told: Vec<_> = parsed.constructs.iter().filter(|construct| construct.rule.name == *rule).collect();
        let places: Vec<_> = told.iter().map(|construct| (construct.place.line, construct.place.column)).collect();
        assert_eq!(places, [*place], "{rule} of {text}");
    }
    let tested: BTreeSet<&str> = CASES.iter().map(|(rule, ..)| *rule).chain(portability_of_bundles().map(|rule| rule.name)).collect();
    let rules: BTreeSet<&str> = portability_rules().iter().map(|rule| rule.name).collect();
    assert_eq!(tested, rules);
}

#[test]
fn every_rule_says_something_of_some_platform() {
    for rule in portability_rules() {
        assert!(Platform::ALL.iter().any(|platform| rule.on(*platform) != Elsewhere::Same), "{}", rule.name);
    }
}

#[test]
fn what_both_platforms_take_alike_is_not_listed() {
    let parsed = read(
        "USE SCHEMA s;
         CREATE STREAMING TABLE s.copied (id BIGINT COMMENT 'key', at TIMESTAMP) CLUSTER BY (id) COMMENT 'c'
         TBLPROPERTIES ('quality' = 'silver') AS SELECT id, at FROM STREAM(b.x);
         CREATE FLOW more AS INSERT INTO more_rows BY NAME SELECT id FROM STREAM b.y;
         CREATE STREAMING TABLE more_rows;
         CREATE TEMPORARY VIEW latest AS SELECT * EXCEPT (at) FROM s.copied;
         CREATE MATERIALIZED VIEW counts (id BIGINT, n BIGINT) AS SELECT id, count(*) AS n FROM latest GROUP BY ALL;",
    );
    assert!(parsed.faults.is_empty(), "{:?}", parsed.faults);
    assert_eq!(parsed.constructs, []);
}

#[test]
fn the_published_sql_needs_what_spark_does_not_have() {
    let parsed = parse(&crate::folder("dlt_pipelines/lakeflow"), &Default::default(), &Options::default());
    let missing = |platform| {
        let missing = parsed.constructs.iter().filter(|construct| matches!(construct.rule.on(platform), Elsewhere::Missing(_)));
        missing.map(|construct| (construct.rule.name, construct.place.line)).collect::<Vec<_>>()
    };
    assert_eq!(missing(Platform::Databricks), []);
    let spark = [
        ("or_refresh", 2),
        ("apply_changes", 3),
        ("or_refresh", 8),
        ("apply_changes", 9),
        ("or_refresh", 14),
        ("expect", 15),
        ("or_refresh", 21),
    ];
    assert_eq!(missing(Platform::Spark), spark);
}

#[test]
fn the_reference_page_is_made_of_the_rules() {
    let mut page = String::from(
        "# Portability\n\nWhat `tributary validate --portability` tells, generated from the rules. *Not there*: the pipeline is refused. \
         *Otherwise*: it is taken\nand means something else. Databricks' declarative pipelines in the default publishing mode; the open pipelines \
         of Spark 4.3.0.\n\n| rule | construct | Databricks | Spark 4.3 |\n|---|---|---|---|\n",
    );
    let said = |elsewhere: Elsewhere| match elsewhere {
        Elsewhere::Same => "the same".to_owned(),
        Elsewhere::Missing(text) => format!("not there: {text}"),
        Elsewhere::Differs(text) => format!("otherwise: {text}"),
    };
    for rule in portability_rules() {
        let (databricks, spark) = (said(rule.databricks), said(rule.spark));
        page.push_str(&format!("| `{}` | {} | {databricks} | {spark} |\n", rule.name, rule.construct));
    }
    tributary_testkit::assert_golden!("../../docs/reference/portability.md", page);
}

/// `scripts/spark-dry-run` asks Spark itself of the same files.
#[test]
fn of_the_files_that_spark_is_asked_of_it_is_told_which_it_refuses() {
    let files = crate::folder("tests/portability");
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        let parsed =
            parse(std::slice::from_ref(&file), &Default::default(), &Options { catalog: None, schema: Some("default".to_owned()) });
        assert!(parsed.faults.is_empty(), "{}: {:?}", file.path, parsed.faults);
        let missing = |told: &&tributary_pipeline_sql::Construct| matches!(told.rule.spark, Elsewhere::Missing(_));
        let refused: Vec<_> = parsed.constructs.iter().filter(missing).map(|told| told.rule.name).collect();
        assert_eq!(!refused.is_empty(), file.path.starts_with("refused_"), "{}: {refused:?}", file.path);
    }
}
