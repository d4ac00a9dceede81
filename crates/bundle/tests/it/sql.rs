//! SQL of pipelines and SQL alone.

use std::collections::BTreeMap;

use tributary_bundle::load_sql;

use crate::folder::Folder;

const ORDERS: &str = "CREATE OR REFRESH STREAMING TABLE silver.orders (
  CONSTRAINT known EXPECT (qty > 0) ON VIOLATION DROP ROW
);
APPLY CHANGES INTO silver.orders FROM STREAM(bronze.orders) KEYS (order_id) SEQUENCE BY updated_at STORED AS SCD TYPE 1;
";
const REVENUE: &str =
    "CREATE OR REFRESH MATERIALIZED VIEW gold.revenue AS SELECT count(*) AS orders FROM silver.orders WHERE '${day}' <> '';\n";
const FEEDS: &str = "feeds:
  - name: orders
    table: bronze.orders
    source: {files: {path: shop, format: kafka_jsonl}}
    columns: [{name: order_id, type: long}, {name: qty, type: integer}, {name: updated_at, type: timestamp, encoding: iso}]
";

fn bundle(parameters: &str) -> Folder {
    let root = format!(
        "bundle: {{name: t}}\ninclude: [feeds.yml]\nresources:\n  pipelines:\n    retail:\n      catalog: main\n      configuration: {parameters}\n      libraries: [{{glob: {{include: sql/**}}}}]\n"
    );
    Folder::with(&[("databricks.yml", &root), ("feeds.yml", FEEDS), ("sql/silver/orders.sql", ORDERS), ("sql/gold/revenue.sql", REVENUE)])
}

#[test]
fn a_pipelines_sql_becomes_datasets_and_specs_with_the_feeds_it_reads() {
    let folder = bundle("{day: \"2026-11-30\"}");
    let loaded = folder.load(None);
    assert_eq!(folder.faults(&loaded), Vec::<String>::new());
    let datasets: Vec<_> = loaded.bundle.datasets.iter().map(|set| (set.name.as_str(), set.kind.as_str(), set.reads.join(","))).collect();
    assert_eq!(
        datasets,
        [
            ("main.gold.revenue", "materialized view", "main.silver.orders".to_owned()),
            ("main.silver.orders", "streaming table", "main.bronze.orders".to_owned()),
            ("bronze.orders", "feed", "orders".to_owned()),
        ]
    );
    let orders = &loaded.bundle.datasets[1];
    assert_eq!((orders.keys.clone(), orders.expectations.clone()), (vec!["order_id".to_owned()], vec!["known".to_owned()]));
    assert!(orders.clauses.contains(&"SCD TYPE 1".to_owned()), "{:?}", orders.clauses);
    assert!(orders.file.ends_with("/sql/silver/orders.sql") && orders.line == 1, "{orders:?}");
    let spec = loaded.bundle.pipelines["retail"].spec.as_ref().unwrap();
    assert_eq!((spec.feeds.len(), spec.silver.len(), spec.gold.len(), spec.external.len()), (1, 1, 1, 0));
    assert_eq!(loaded.files.len(), 4);
}

#[test]
fn mistakes_of_sql_stand_beside_those_of_yaml() {
    let folder = bundle("{dya: \"2026-11-30\"}");
    folder.write("sql/silver/broken.sql", "CREATE OR REFRESH STREAMING TABEL silver.x;\n");
    folder.write("sql/silver/twice.sql", ORDERS);
    let loaded = folder.load(None);
    let found: Vec<(String, usize)> = loaded
        .faults
        .iter()
        .filter(|fault| fault.is_error())
        .map(|fault| (fault.file.rsplit('/').next().unwrap().to_owned(), fault.line))
        .collect();
    assert!(found.contains(&("broken.sql".to_owned(), 1)), "{:?}", folder.faults(&loaded));
    assert!(found.iter().any(|(file, _)| file == "revenue.sql"), "{:?}", folder.faults(&loaded));
    assert!(found.iter().any(|(file, _)| file == "twice.sql" || file == "orders.sql"), "{:?}", folder.faults(&loaded));
    assert!(loaded.bundle.pipelines["retail"].spec.is_none());
}

#[test]
fn sql_is_checked_without_a_bundle() {
    let folder = Folder::with(&[("a/orders.sql", ORDERS), ("b.sql", "SELEC 1;\n"), ("a/readme.md", ""), ("c.sql", "\u{0}")]);
    let sound = load_sql(&[folder.path().join("a")], &BTreeMap::new());
    assert_eq!(folder.faults(&sound), Vec::<String>::new());
    assert_eq!((sound.bundle.datasets.len(), sound.files.len()), (1, 1));
    let paths = ["b.sql", "c.sql", "gone.sql"].map(|name| folder.path().join(name));
    let broken = load_sql(&paths, &BTreeMap::new());
    let files: Vec<String> = broken.faults.iter().map(|fault| fault.file.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(files, ["b.sql", "c.sql", "gone.sql"], "{:?}", broken.faults);
}

#[test]
fn sql_files_alone_are_a_pipeline_called_after_the_first_path() {
    let folder = Folder::with(&[("retail/orders.sql", ORDERS), ("retail/revenue.sql", REVENUE)]);
    let load = |parameters: &[(&str, &str)]| {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        load_sql(&[folder.path().join("retail")], &parameters)
    };
    let loaded = load(&[("day", "2026-11-30")]);
    let spec = loaded.bundle.pipelines["retail"].spec.as_ref().unwrap();
    assert_eq!((spec.name.as_str(), spec.silver.len(), spec.gold.len()), ("retail", 1, 1));
    assert_eq!(spec.external.iter().map(ToString::to_string).collect::<Vec<_>>(), ["bronze.orders"]);
    let unset = load(&[]);
    assert!(!unset.is_sound() && unset.bundle.pipelines.is_empty(), "a name that nobody sets is a mistake");
}

#[test]
fn what_is_not_the_same_elsewhere_is_told_with_its_file_and_line() {
    let folder = bundle("{day: \"2026-11-30\"}");
    let loaded = folder.load(None);
    let root = format!("{}/", folder.path().display());
    let told: Vec<_> =
        loaded.constructs.iter().map(|told| (told.rule.name, told.place.file.trim_start_matches(&root), told.place.line)).collect();
    for expected in [
        ("bundle", "databricks.yml", 5),
        ("our_feed", "feeds.yml", 2),
        ("implicit_deletes", "sql/silver/orders.sql", 4),
        ("apply_changes", "sql/silver/orders.sql", 4),
        ("or_refresh", "sql/gold/revenue.sql", 1),
    ] {
        assert!(told.contains(&expected), "{expected:?} is not among {told:?}");
    }
    let files =
        load_sql(&[std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dlt_pipelines/lakeflow/lakeflow.sql")], &BTreeMap::new());
    assert!(files.constructs.iter().all(|told| told.place.file.ends_with("lakeflow/lakeflow.sql")), "{:?}", files.constructs);
}
