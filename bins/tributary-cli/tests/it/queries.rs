//! `validate` plans the queries of SQL files: every mistake once, at its place, and nowhere else.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::commands::Shop;

const FEED: &str = "CREATE OR REFRESH STREAMING TABLE bronze.orders (
  id BIGINT, customer_id BIGINT, amount DECIMAL(12,2), status STRING, op STRING, seq BIGINT, placed_at TIMESTAMP
) AS SELECT * FROM STREAM read_files('orders', format => 'json', settleSeconds => 0);
";

/// Twelve mistakes of twelve kinds, and the line and column of each.
const MISTAKES: &str = "CREATE OR REFRESH MATERIALIZED VIEW gold.a AS SELECT amuont FROM bronze.orders;
CREATE OR REFRESH MATERIALIZED VIEW gold.b AS SELECT uper(status) AS s FROM bronze.orders;
CREATE OR REFRESH MATERIALIZED VIEW gold.c AS SELECT status, customer_id, count(*) AS n FROM bronze.orders GROUP BY status;
CREATE OR REFRESH MATERIALIZED VIEW gold.d AS SELECT status + op AS s FROM bronze.orders;
CREATE OR REFRESH MATERIALIZED VIEW gold.e AS SELECT id FROM bronze.orders WHERE amount;
CREATE OR REFRESH MATERIALIZED VIEW gold.f (id BIGINT, status INT) AS SELECT id, status FROM bronze.orders;
CREATE OR REFRESH MATERIALIZED VIEW gold.g (CONSTRAINT ok EXPECT (stauts = 'x')) AS SELECT id, status FROM bronze.orders;
CREATE OR REFRESH MATERIALIZED VIEW gold.h PARTITIONED BY (stauts) AS SELECT id, status FROM bronze.orders;
CREATE OR REFRESH MATERIALIZED VIEW gold.i AS SELECT id FROM bronze.orders UNION ALL SELECT id, status FROM bronze.orders;
CREATE OR REFRESH STREAMING TABLE silver.t;
CREATE FLOW t AS AUTO CDC INTO silver.t FROM STREAM(bronze.orders) KEYS (idd) APPLY AS DELETE WHEN opp = 'd' SEQUENCE BY sec;
CREATE OR REFRESH MATERIALIZED VIEW gold.j AS SELECT no_such_thing FROM gold.a JOIN silver.t USING (nothing);
";
const PLACES: [(u64, u64, &str); 12] = [
    (1, 54, "SQ0004"),
    (2, 54, "SQ0002"),
    (3, 62, "SQ0007"),
    (4, 54, "SQ0007"),
    (5, 82, "SQ0007"),
    (6, 56, "GA0010"),
    (7, 67, "GA0012"),
    (8, 60, "TR0008"),
    (9, 86, "SQ0007"),
    (11, 74, "SM0019"),
    (11, 100, "SQ0004"),
    (11, 122, "SQ0004"),
];

#[test]
fn a_file_of_twelve_mistakes_gives_each_once_with_code_file_line_and_column() {
    let shop = Shop::new();
    std::fs::remove_file(shop.path("pipeline.yml")).unwrap();
    // what is read comes after what reads it
    shop.write("sql/1_mistakes.sql", MISTAKES);
    shop.write("sql/2_feed.sql", FEED);
    shop.write(
        "sql/3_broken.sql",
        "CREATE OR REFRESH MATERIALIZED VEW gold.z AS SELECT 1 AS one;
CREATE OR REFRESH STREAMING TABLE silver.u;
CREATE FLOW u AS AUTO CDC INTO silver.u FROM STREAM(bronze.orders) KEYS (id, ID) SEQUENCE BY seq;
CREATE OR REFRESH MATERIALIZED VIEW gold.y (CONSTRAINT one EXPECT (id > 0)) AS SELECT id FROM silver.u;
",
    );
    let json: Value = serde_json::from_str(&shop.says(2, &["validate", "sql", "--output", "json"])).unwrap();
    let place = |fault: &Value| {
        let number = |name: &str| fault[name].as_u64().unwrap();
        (fault["file"].as_str().unwrap().to_owned(), number("line"), number("column"), fault["code"].as_str().unwrap().to_owned())
    };
    let faults: Vec<_> = json["faults"].as_array().unwrap().iter().filter(|fault| fault["severity"] == "error").map(place).collect();
    let of_queries: Vec<_> = faults.iter().filter(|fault| fault.0 == "sql/1_mistakes.sql").cloned().collect();
    let meant: Vec<_> =
        PLACES.iter().map(|(line, column, code)| ("sql/1_mistakes.sql".to_owned(), *line, *column, (*code).to_owned())).collect();
    assert_eq!(of_queries, meant, "{json:#}");
    let notes: Vec<_> = json["notes"].as_array().unwrap().iter().filter_map(|note| note["message"].as_str()).collect();
    assert!(notes.contains(&"gold.y is not planned before its first run: `silver.u` has a mistake"), "{notes:?}");
    assert_eq!(faults.len(), 14, "a mistake of the form, and one against the rules of specs, are told beside them: {faults:?}");
    assert!(shop.says(2, &["validate", "sql"]).ends_with("14 errors\n"));
}

#[test]
fn tests_and_dry_runs_of_datasets_say_where_a_query_is_wrong() {
    let shop = Shop::new();
    std::fs::remove_file(shop.path("pipeline.yml")).unwrap();
    shop.write("sql/feed.sql", FEED);
    shop.write("sql/view.sql", "CREATE OR REFRESH MATERIALIZED VIEW gold.a AS\nSELECT amuont FROM bronze.orders;\n");
    shop.write("sql/tests/a.yml", "dataset: gold.a\ntests:\n  - name: none\n    given: {bronze.orders: []}\n    expect: []\n");
    let said = shop.says(2, &["plan", "--pipeline", "sql"]);
    assert!(said.contains("sql/view.sql:2:8: "), "{said}");
    let tested = shop.says(1, &["test", "sql"]);
    assert!(tested.contains("sql/view.sql:2:8: "), "{tested}");
}

/// The bundle of the repository in a folder of its own.
fn copied(to: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let from = ["databricks.yml", "bundles", "dlt_pipelines"].map(|name| root.join(name));
    assert!(Command::new("cp").arg("-r").args(from).arg(to).status().unwrap().success());
}

#[test]
fn the_pipelines_of_the_repository_have_no_mistake() {
    let shop = Shop::new();
    copied(&shop.path(""));
    assert!(shop.says(0, &["validate", "."]).ends_with(" 0 errors\n"));
    for pipeline in ["retail", "gym"] {
        assert!(shop.says(0, &["validate", &format!("dlt_pipelines/{pipeline}")]).ends_with(" 0 errors\n"), "{pipeline}");
    }
}

/// A word of a text that names something: where it begins, and what it is.
struct Named {
    at: usize,
    word: String,
}

/// Words that name columns, functions and tables that are read, outside strings and comments.
fn names(text: &str, columns: &BTreeSet<String>) -> Vec<Named> {
    const FUNCTIONS: &[&str] = &["count", "sum", "avg", "min", "max", "date", "floor", "months_between", "from_unixtime", "coalesce"];
    let part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let (mut found, mut at, mut before) = (Vec::new(), 0, String::new());
    while let Some(sign) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match sign {
            '\'' => rest[1..].find('\'').unwrap() + 2,
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ if part(sign) => rest.find(|sign| !part(sign)).unwrap_or(rest.len()),
            _ => sign.len_utf8(),
        };
        let word = &rest[..length];
        if part(sign) {
            let lower = word.to_lowercase();
            let next = rest[length..].chars().next().unwrap_or(' ');
            let names_something = match next {
                '(' => FUNCTIONS.contains(&lower.as_str()),
                '.' | ':' => false,
                _ => columns.contains(&lower) && !text[..at].ends_with([':', '\'']),
            };
            if names_something && before != "as" {
                found.push(Named { at, word: word.to_owned() });
            }
            before = lower;
        } else if !sign.is_whitespace() {
            before = sign.to_string();
        }
        at += length;
    }
    found
}

/// Line and column of a byte, and of the begin of the dotted name that it is in.
fn places(text: &str, at: usize) -> [(u64, u64); 2] {
    let begin = text[..at].rfind(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_' && sign != '.').map_or(0, |before| before + 1);
    [at, begin].map(|at| {
        let before = &text[..at];
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (before.matches('\n').count() as u64 + 1, column as u64)
    })
}

#[test]
fn a_name_misspelt_anywhere_in_the_repositorys_sql_is_told_at_its_very_place() {
    const FILES: &[&str] = &[
        "retail/gold_customer_orders.sql",
        "retail/gold_daily_revenue.sql",
        "retail/silver_customers.sql",
        "retail/silver_customers_current.sql",
        "retail/silver_orders.sql",
        "gym/completed_workouts.sql",
        "gym/gym_logs.sql",
        "gym/user_bins.sql",
        "gym/users.sql",
        "gym/workout_bpm.sql",
        "gym/workout_bpm_summary.sql",
        "gym/gym_summary.sql",
    ];
    const TRIALS: u64 = 36;
    let columns: BTreeSet<String> = [
        "id",
        "name",
        "tier",
        "order_id",
        "amount",
        "placed_at",
        "customer_id",
        "status",
        "qty",
        "user_id",
        "workout_id",
        "session_id",
        "time",
        "action",
        "mac_address",
        "gym",
        "login",
        "logout",
        "age",
        "gender",
        "city",
        "state",
        "dob",
        "device_id",
        "registration_timestamp",
        "heartrate",
    ]
    .map(str::to_owned)
    .into();
    let shop = Shop::new();
    copied(&shop.path(""));
    let mut random = 42_u64;
    let mut next = |below: usize| {
        // a fixed sequence, the same on every machine
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((random >> 33) % below as u64).unwrap()
    };
    let mut wrong = Vec::new();
    for trial in 0..TRIALS {
        let file = format!("dlt_pipelines/{}", FILES[next(FILES.len())]);
        let text = std::fs::read_to_string(shop.path(&file)).unwrap();
        let named = names(&text, &columns);
        let Named { at, word } = &named[next(named.len())];
        let into = 1 + next(word.len());
        let misspelt = format!("{}q{}", &word[..into], &word[into..]);
        shop.write(&file, &format!("{}{misspelt}{}", &text[..*at], &text[at + word.len()..]));
        let json: Value = serde_json::from_str(&shop.says(2, &["validate", ".", "--output", "json"])).unwrap();
        shop.write(&file, &text);
        let faults: Vec<&Value> = json["faults"].as_array().unwrap().iter().filter(|fault| fault["severity"] == "error").collect();
        let there = |fault: &&Value| {
            let place = (fault["line"].as_u64().unwrap(), fault["column"].as_u64().unwrap());
            fault["file"].as_str().unwrap().ends_with(&file) && places(&text, *at).contains(&place)
        };
        if faults.len() != 1 || !faults.iter().all(there) {
            wrong.push(format!("{trial}: {misspelt} at {:?} of {file}: {faults:?}", places(&text, *at)));
        }
    }
    assert!(wrong.is_empty(), "{} of {TRIALS}\n{}", wrong.len(), wrong.join("\n"));
}
