//! What may depend on what, under which licence, in how many versions: read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Every edge there may be between crates of ours (dev-dependencies on `testkit` aside). A crate may have fewer.
const EDGES: &[(&str, &[&str])] = &[
    ("tributary-fault", &[]),
    ("tributary-specs", &["tributary-fault"]),
    ("tributary-config", &["tributary-fault"]),
    ("tributary-cdc-decode", &["tributary-fault", "tributary-specs"]),
    ("tributary-testkit", &["tributary-specs"]),
    ("tributary-workspace-hack", &[]),
    ("tributary-sql-dialect", &[]),
    ("tributary-pipeline-sql", &["tributary-fault", "tributary-specs", "tributary-sql-dialect"]),
    ("tributary-bundle", &["tributary-fault", "tributary-pipeline-sql", "tributary-specs"]),
    ("tributary-lake", &["tributary-fault", "tributary-specs", "tributary-testkit", "tributary-workspace-hack"]),
    ("tributary-spark-sql", &["tributary-fault", "tributary-specs", "tributary-lake", "tributary-sql-dialect"]),
    ("tributary-bronze", &["tributary-fault", "tributary-specs", "tributary-cdc-decode", "tributary-lake"]),
    ("tributary-silver-merge", &["tributary-fault", "tributary-specs", "tributary-lake", "tributary-spark-sql", "tributary-testkit"]),
    ("tributary-gold-agg", &["tributary-fault", "tributary-specs", "tributary-lake", "tributary-spark-sql"]),
    ("tributary-maintenance", &["tributary-fault", "tributary-specs", "tributary-lake", "tributary-testkit"]),
    (
        "tributary",
        &[
            "tributary-fault",
            "tributary-specs",
            "tributary-cdc-decode",
            "tributary-lake",
            "tributary-maintenance",
            "tributary-pipeline-sql",
            "tributary-bronze",
            "tributary-silver-merge",
            "tributary-gold-agg",
            "tributary-spark-sql",
            "tributary-testkit",
        ],
    ),
    (
        "tributary-bench",
        &[
            "tributary",
            "tributary-bundle",
            "tributary-cdc-decode",
            "tributary-gold-agg",
            "tributary-lake",
            "tributary-pipeline-sql",
            "tributary-silver-merge",
            "tributary-specs",
        ],
    ),
    ("tributary-cli", &["tributary", "tributary-bundle", "tributary-config"]),
    ("tributary-e2e", &["tributary", "tributary-cli", "tributary-lake", "tributary-specs", "tributary-testkit"]),
    ("tributary-interop", &["tributary-specs", "tributary-lake", "tributary-silver-merge", "tributary-testkit"]),
    ("tributary-examples", &[]),
    ("tributary-bronze-bin", &["tributary", "tributary-config", "tributary-cli"]),
    ("tributary-silver-bin", &["tributary", "tributary-config", "tributary-cli"]),
    ("tributary-gold-bin", &["tributary", "tributary-config", "tributary-cli"]),
    ("tributary-maintain-bin", &["tributary", "tributary-config", "tributary-cli"]),
];

/// Crates that may be there once only: two of them would be two kinds of Arrow batch.
const ONCE: &[&str] =
    &["arrow", "arrow-array", "arrow-schema", "parquet", "datafusion", "datafusion-common", "object_store", "sqlparser", "deltalake-core"];

/// Licences a user of an MIT program can live with. `deny.toml` says the same.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "BSL-1.0",
    "MPL-2.0",
    "Unlicense",
    "OpenSSL",
    "bzip2-1.0.6",
    "MIT-0",
];

fn metadata() -> Value {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--offline", "--manifest-path"]).arg(manifest);
    let output = cargo.output().expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn packages(metadata: &Value) -> &Vec<Value> {
    metadata["packages"].as_array().expect("packages")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[test]
fn crates_depend_only_on_what_lies_below_them() {
    let metadata = metadata();
    let allowed: BTreeMap<&str, BTreeSet<&str>> = EDGES.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for package in packages(&metadata).iter().filter(|package| package["source"].is_null()) {
        let name = text(package, "name");
        let Some(allowed) = allowed.get(name) else {
            wrong.push(format!("{name} is not in the list"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let to = text(dependency, "name");
            let dev = dependency["kind"] == "dev";
            if to.starts_with("tributary") && !dev && !allowed.contains(to) {
                wrong.push(format!("{name} → {to}"));
            }
            seen += usize::from(to.starts_with("tributary"));
        }
    }
    assert!(wrong.is_empty(), "edges that the list does not allow: {wrong:#?}");
    assert!(seen > 20, "only {seen} edges were looked at");
}

#[test]
fn there_is_one_version_of_everything_that_columns_pass_through() {
    let metadata = metadata();
    for name in ONCE {
        let versions: BTreeSet<&str> =
            packages(&metadata).iter().filter(|package| package["name"] == *name).map(|package| text(package, "version")).collect();
        assert_eq!(versions.len(), 1, "{name}: {versions:?}");
    }
}

#[test]
fn every_licence_is_one_an_mit_program_can_carry() {
    let metadata = metadata();
    let allowed: BTreeSet<&str> = LICENCES.iter().copied().collect();
    let accepts = |licence: &str| {
        let plain = licence.replace(['(', ')'], "").replace('/', " OR ");
        plain.split(" AND ").all(|all| all.split(" OR ").any(|one| allowed.contains(one.trim())))
    };
    let wrong: Vec<String> = packages(&metadata)
        .iter()
        .filter(|package| !accepts(text(package, "license")))
        .map(|package| format!("{} {}", text(package, "name"), package["license"]))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn features_that_would_change_how_the_log_is_read_stay_off() {
    let metadata = metadata();
    for node in metadata["resolve"]["nodes"].as_array().expect("nodes") {
        if text(node, "id").contains("serde_json@") || text(node, "id").contains("#serde_json") {
            let features: Vec<&str> = node["features"].as_array().expect("features").iter().filter_map(Value::as_str).collect();
            assert!(!features.contains(&"arbitrary_precision"), "serde_json/arbitrary_precision is on");
            assert!(!features.contains(&"preserve_order"), "serde_json/preserve_order is on");
        }
    }
}

#[test]
fn no_release_binary_can_break_a_rule_on_purpose() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    for package in ["tributary-cli", "tributary-bronze-bin", "tributary-silver-bin", "tributary-gold-bin", "tributary-maintain-bin"] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--package", package, "--manifest-path"])
            .arg(&manifest);
        let output = cargo.output().expect("cargo tree runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8_lossy(&output.stdout);
        assert!(tree.contains("tributary-lake"), "{package}: {tree}");
        assert!(!tree.contains("tributary-testkit"), "{package} contains the test kit");
    }
}
