//! Cases handed to us: what people's pipeline files hold, and what must come out.

use serde_json::Value;
use tributary_pipeline_sql::{Kind, Parsed};
use tributary_specs::{ColumnSelection, Decode, ExpectationAction, FileFormat, MergePolicy, Source};

use crate::{faults, read, read_with};

fn case(id: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/handed.jsonl");
    let text = std::fs::read_to_string(path).expect("the cases");
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    cases.into_iter().find(|case| case["id"] == id).expect("the case")
}

fn sql(id: &str) -> String {
    case(id)["input"]["sql"].as_str().expect("SQL").to_owned()
}

/// The change flows of a case, each with the tables it needs.
fn changes(id: &str) -> Vec<Parsed> {
    let input = &case(id)["input"]["sql"];
    let texts = match input {
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        text => vec![text.as_str().expect("SQL").to_owned()],
    };
    let tables = "CREATE STREAMING TABLE dim;\nCREATE STREAMING LIVE TABLE feed AS SELECT * FROM cloud_files('in/', 'json');\n";
    texts.iter().filter(|text| text.starts_with("APPLY")).map(|text| read(&format!("{tables}{text}"))).collect()
}

#[test]
fn every_apply_changes_of_the_cases_is_a_silver_spec() {
    let mut seen = 0;
    for id in ["AC-01", "AC-03", "AC-06", "AC-07", "AC-09", "AC-13", "AC-15", "AC-17", "AC-19", "AC-20"] {
        for parsed in changes(id) {
            assert!(parsed.faults.is_empty(), "{id}: {:#?}", faults(&parsed));
            let pipeline = parsed.to_pipeline("case").expect("no faults").pipeline;
            let spec = &pipeline.silver[0];
            assert_eq!(spec.keys, ["id"], "{id}");
            assert_eq!(spec.sequence_by, ["seq"], "{id}");
            assert_eq!(spec.sources[0].to_string(), "main.feed", "{id}");
            if id != "AC-20" {
                assert_eq!(spec.deletes.apply_as_delete_when.as_deref(), Some("op='D'"), "{id}");
                assert_eq!(spec.columns, ColumnSelection::Except(vec!["op".to_owned(), "seq".to_owned()]), "{id}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 13, "{seen}");
}

#[test]
fn ac_09_a_key_column_that_columns_leaves_out_is_refused() {
    let text = "CREATE STREAMING TABLE dim; CREATE FLOW f AS AUTO CDC INTO dim FROM STREAM(raw.feed) KEYS (id)\nSEQUENCE BY seq COLUMNS * EXCEPT (ID, seq)";
    let parsed = read(text);
    assert_eq!(faults(&parsed).len(), 1, "{:#?}", parsed.faults);
    assert!(faults(&parsed)[0].starts_with("2:17 SP0030 main.dim: columns cannot use column \"id\""), "{:?}", faults(&parsed));
}

#[test]
fn ac_11_a_table_can_be_protected_from_full_refresh() {
    let text = "CREATE STREAMING TABLE t TBLPROPERTIES (pipelines.reset.allowed = false) AS SELECT * FROM STREAM(raw.t)";
    let pipeline = read(text).to_pipeline("case").expect("no faults").pipeline;
    assert_eq!(pipeline.silver[0].properties["pipelines.reset.allowed"], "false");
}

#[test]
fn dlt_01_a_rule_that_drops_rows_is_taken_over() {
    let parsed = read(&sql("DLT-01"));
    let pipeline = parsed.to_pipeline("case").expect("no faults").pipeline;
    let rule = &pipeline.silver[0].expectations[0];
    assert_eq!((rule.name.as_str(), rule.expression.as_str(), rule.action), ("pos", "amt > 0", ExpectationAction::Drop));
}

#[test]
fn dlt_03_double_quotes_are_a_text() {
    let tables = "CREATE STREAMING TABLE c;\nCREATE STREAMING LIVE TABLE b AS SELECT * FROM cloud_files('in/', 'json');\n";
    let parsed = read(&format!("{tables}{}", sql("DLT-03")));
    let pipeline = parsed.to_pipeline("case").expect("no faults").pipeline;
    assert_eq!(pipeline.silver[0].deletes.apply_as_delete_when.as_deref(), Some("operation = 'DELETE'"));
}

#[test]
fn dlt_03_a_text_in_double_quotes_that_is_also_a_column_is_refused() {
    let tables = "CREATE STREAMING TABLE c;\nCREATE STREAMING TABLE b (id BIGINT, `delete` STRING, operation STRING, ts BIGINT) AS SELECT * FROM STREAM read_files('in/', format => 'json');\n";
    let parsed = read(&format!("{tables}{}", sql("DLT-03")));
    let faults = faults(&parsed);
    assert!(
        faults.len() == 1 && faults[0].starts_with("3:90 PS0012 main.b: \"DELETE\" cannot stand here: double quotes make it a text"),
        "{faults:?}"
    );
}

#[test]
fn dlt_05_a_notebooks_export_has_two_statements() {
    let text = sql("DLT-05");
    let parsed = read(&text);
    assert!(parsed.faults.is_empty(), "{:#?}", parsed.faults);
    let kinds: Vec<(&str, Kind)> = parsed.datasets.iter().map(|dataset| (dataset.name.name.as_str(), dataset.kind)).collect();
    assert_eq!(kinds, [("b", Kind::StreamingTable), ("s", Kind::MaterializedView)]);
    assert_eq!(parsed.datasets[0].comment.as_deref(), Some("it's raw; not clean -- yet"));
    let reads: Vec<String> = parsed.datasets[1]
        .query
        .iter()
        .flat_map(|query| &query.reads)
        .filter_map(|read| read.name.as_ref())
        .map(ToString::to_string)
        .collect();
    assert_eq!(reads, ["main.b"]);
    let broken = read(&text.replace("SELECT * FROM LIVE.b", "SELECT * FROM LIVE.b WHERE"));
    let line = text.lines().position(|line| line.contains("LIVE TABLE s")).expect("the line") + 1;
    assert_eq!(broken.faults.len(), 1, "{:#?}", broken.faults);
    assert_eq!(broken.faults[0].line, line);
}

#[test]
fn dlt_07_parameters_stand_for_values_and_never_for_sql() {
    let parsed = read_with(&sql("DLT-07"), &[("layer", "bz")]);
    let lowered = parsed.to_pipeline("case").expect("no faults").pipeline;
    assert_eq!(lowered.silver[0].table.to_string(), "main.bz_x");
    assert_eq!(lowered.silver[0].select.as_deref(), Some("SELECT 'landing/a' AS s, 'cost $5' AS c FROM main.bz_x_input"));
    let Source::Files(files) = &lowered.feeds[0].source else { panic!("files") };
    assert_eq!((files.path.as_str(), files.format, lowered.feeds[0].decode), ("landing/a/", FileFormat::Csv, Decode::Csv));

    let unset = read(&sql("DLT-07"));
    assert_eq!(faults(&unset), ["2:35 PS0005 the parameter \"layer\" is not set"]);

    let injected =
        read_with("CREATE STREAMING TABLE t AS SELECT '${v}' AS a, ${v} AS b FROM STREAM(s.t)", &[("v", "x'; DROP TABLE y; --")]);
    assert_eq!(injected.faults.len(), 1);
    assert_eq!((injected.faults[0].code.0, injected.faults[0].column), ("PS0006", 49));
    let inside = read_with("CREATE STREAMING TABLE t AS SELECT '${v}' AS a FROM STREAM(s.t)", &[("v", "x'; DROP TABLE y; --")]);
    let pipeline = inside.to_pipeline("case").expect("no faults").pipeline;
    assert_eq!(pipeline.silver[0].select.as_deref(), Some("SELECT 'x''; DROP TABLE y; --' AS a FROM s.t"));
}

#[test]
fn dlt_09_circles_and_missing_sources_are_all_told_at_once() {
    let parsed = read(&sql("DLT-09"));
    let faults = faults(&parsed);
    assert_eq!(faults.len(), 3, "{faults:#?}");
    assert!(faults[0].contains("datasets read each other in a circle: a -> b -> a"), "{faults:#?}");
    assert!(faults[1].contains("main.c reads LIVE.nobody, which is not defined in this pipeline"), "{faults:#?}");
    assert!(faults[2].contains("main.d streams from the materialized view main.a"), "{faults:#?}");
}

#[test]
fn dlt_11_a_materialized_view_is_a_gold_spec() {
    let parsed = read(&format!("CREATE STREAMING TABLE s AS SELECT * FROM STREAM(raw.s);\n{}", sql("DLT-11")));
    let pipeline = parsed.to_pipeline("case").expect("no faults").pipeline;
    assert_eq!(pipeline.gold[0].query, "SELECT k, count(*) n FROM main.s GROUP BY k");
    assert_eq!(pipeline.silver[0].policy, MergePolicy::Append);
}
