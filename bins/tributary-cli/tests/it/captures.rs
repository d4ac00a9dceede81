//! Every recorded capture: silver, current and history, equals the database's final state. Where the source's own settings
//! lose something on the way, the columns are named here, with the reason, and nothing else may differ.

use std::path::{Path, PathBuf};

use tributary::ExitCode;
use tributary_cli::demo::{DemoArgs, demo};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/debezium").join(name)
}

async fn run(capture: &str, known_losses: &[&str]) -> (ExitCode, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let zipped = if capture == "postgres-big-workload" { ".gz" } else { "" };
    let args = DemoArgs {
        events: Some(fixture(&format!("{capture}.jsonl{zipped}"))),
        expected: Some(fixture(&format!("{capture}.expected.json{zipped}"))),
        known_losses: known_losses.iter().map(|loss| (*loss).to_owned()).collect(),
        folder: Some(folder.path().to_owned()),
        ..DemoArgs::default()
    };
    let mut out = Vec::new();
    let code = demo(&args, &mut out).await.expect("the demo runs");
    (code, String::from_utf8(out).expect("text"))
}

async fn equals_source(capture: &str, known_losses: &[&str]) {
    let (code, out) = run(capture, known_losses).await;
    assert_eq!(code, ExitCode::Done, "{capture}\n{out}");
    for loss in known_losses {
        let column = loss.split_once('.').expect("table.column").1;
        assert!(out.contains(&format!("  {column}: ")), "{capture}: {loss} is named as lost but nothing of it differs\n{out}");
    }
}

macro_rules! captures {
    ($($name:ident: $capture:literal, [$($loss:literal),* $(,)?];)*) => {
        $(#[tokio::test]
        async fn $name() {
            equals_source($capture, &[$($loss),*]).await;
        })*
    };
}

captures! {
    postgres_json_default: "postgres-json-default", [];
    postgres_json_schema: "postgres-json-schema", [];
    postgres_json_string_isostring: "postgres-json-string-isostring", [];
    postgres_json_double_connect: "postgres-json-double-connect", [];
    postgres_json_schema_double_connect: "postgres-json-schema-double-connect", [];
    postgres_unwrap_rewrite: "postgres-unwrap-rewrite", [];
    postgres_txmeta_heartbeat: "postgres-txmeta-heartbeat", [];
    postgres_incremental_snapshot: "postgres-incremental-snapshot", [];
    postgres_json_default_debezium_3_0: "postgres-json-default-dbz307", [];
    postgres_null_default_without_key: "postgres-null-default-nokey", [];
    postgres_null_kept_without_key: "postgres-null-kept-nokey", [];
    postgres_big_workload: "postgres-big-workload", [];
    mysql_json_default: "mysql-json-default", [];
    mysql_json_schema: "mysql-json-schema", [];
    mysql_json_string_isostring: "mysql-json-string-isostring", [];
    mysql_unwrap_rewrite: "mysql-unwrap-rewrite", [];
}
