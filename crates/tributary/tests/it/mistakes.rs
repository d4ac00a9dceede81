//! Every kind of mistake that planning finds stands at its place in the SQL files, once, and brings no other.

use tributary::{Lake, Pipeline, QueryCheck, RunOptions, SqlOptions, Status, chain};

const FEEDS: &str = "
CREATE OR REFRESH STREAMING TABLE bronze.orders (
  order_id BIGINT, customer_id BIGINT, amount DECIMAL(12,2), status STRING, op STRING, placed_at TIMESTAMP, updated_at TIMESTAMP
) AS SELECT * FROM STREAM read_files('orders', format => 'json', schemaEvolutionMode => 'none', settleSeconds => 0);
CREATE OR REFRESH STREAMING TABLE bronze.customers (
  customer_id BIGINT, name STRING
) AS SELECT * FROM STREAM read_files('customers', format => 'json', schemaEvolutionMode => 'none', settleSeconds => 0);
";

fn view(query: &str) -> String {
    format!("CREATE OR REFRESH MATERIALIZED VIEW gold.v AS\n{query};\n")
}

fn changes(clauses: &str) -> String {
    format!(
        "CREATE OR REFRESH STREAMING TABLE silver.t;\nCREATE FLOW f AS AUTO CDC INTO silver.t FROM STREAM(bronze.orders)\n  {clauses};\n"
    )
}

/// A text without its marks, and line and column of each `⟦`.
fn marked(text: &str) -> (String, Vec<(usize, usize)>) {
    let (mut clean, mut places, mut line, mut column) = (String::new(), Vec::new(), 1, 1);
    for sign in text.chars() {
        match sign {
            '⟦' => places.push((line, column)),
            '⟧' => {}
            _ => {
                clean.push(sign);
                (line, column) = if sign == '\n' { (line + 1, 1) } else { (line, column + 1) };
            }
        }
    }
    (clean, places)
}

fn options() -> SqlOptions {
    SqlOptions { name: "shop".to_owned(), ..SqlOptions::default() }
}

async fn checked(text: &str) -> QueryCheck {
    let pipeline =
        Pipeline::from_sql(&[("feeds.sql", FEEDS), ("shop.sql", text)], &options()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    pipeline.check_queries().await.unwrap()
}

/// What was found, as place and message.
fn told(check: &QueryCheck) -> Vec<String> {
    let one = |problem: &tributary::QueryProblem| {
        format!("{}: {}", problem.place.as_ref().map(ToString::to_string).unwrap_or_default(), problem.message())
    };
    check.problems.iter().map(one).collect()
}

fn at(places: &[(usize, usize)]) -> Vec<String> {
    let mut places = places.to_vec();
    places.sort_unstable();
    places.into_iter().map(|(line, column)| format!("shop.sql:{line}:{column}")).collect()
}

fn places(check: &QueryCheck) -> Vec<String> {
    let mut places: Vec<_> = check.problems.iter().filter_map(|problem| problem.place.clone()).collect();
    places.sort();
    places.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn each_kind_of_mistake_is_told_once_at_its_line_and_column() {
    let kinds = [
        (view("SELECT order_id,\n  ⟦amuont⟧ FROM bronze.orders"), "did you mean `amount`?"),
        (view("SELECT o.order_id, ⟦o.amuont⟧ AS a FROM bronze.orders AS o"), "`o.amuont` does not exist"),
        (view("SELECT ⟦x.amount⟧ FROM bronze.orders AS o"), "`x.amount` does not exist"),
        (view("SELECT ⟦customer_id⟧ FROM bronze.orders AS o JOIN bronze.customers AS c ON o.customer_id = c.customer_id"), "Ambiguous"),
        (view("SELECT 1 AS one FROM bronze.orders AS o JOIN bronze.customers AS c USING (⟦custmer_id⟧)"), "did you mean `customer_id`?"),
        (view("SELECT 1 AS one FROM bronze.orders AS o JOIN bronze.customers AS c ON o.order_id = ⟦c.nme⟧"), "`c.nme` does not exist"),
        (view("SELECT * EXCEPT (⟦stauts⟧) FROM bronze.orders"), "did you mean `status`?"),
        (view("SELECT count(*) AS n FROM bronze.orders GROUP BY ⟦stauts⟧"), "did you mean `status`?"),
        (view("SELECT status, count(*) AS n FROM bronze.orders GROUP BY status HAVING ⟦cuont⟧(*) > 1"), "the function `cuont`"),
        (view("SELECT order_id FROM bronze.orders ORDER BY ⟦placed_on⟧"), "did you mean `placed_at`?"),
        (view("WITH x AS (SELECT order_id,\n ⟦stauts⟧ FROM bronze.orders) SELECT * FROM x"), "did you mean `status`?"),
        (view("SELECT * FROM (SELECT order_id, ⟦stauts⟧ FROM bronze.orders) AS x"), "did you mean `status`?"),
        (view("SELECT order_id FROM bronze.orders AS o WHERE EXISTS (SELECT 1 FROM bronze.customers AS c WHERE ⟦c.custmer⟧ = o.customer_id)"), "`c.custmer`"),
        (view("SELECT ⟦uper⟧(status) AS s FROM bronze.orders"), "the nearest known name is `upper`"),
        (view("SELECT order_id, substring(⟦status⟧) AS s FROM bronze.orders"), "is not executed by this release"),
        (view("SELECT order_id, 1 + abs(⟦date_trunc(placed_at, 'month', 1)⟧) AS s FROM bronze.orders"), "`date_trunc`"),
        (view("SELECT status, ⟦customer_id⟧, count(*) AS n FROM bronze.orders GROUP BY status"), "neither grouped by nor within an aggregate"),
        (view("SELECT status, count(*) AS n FROM bronze.orders GROUP BY status HAVING ⟦amount⟧ > 1"), "neither grouped by nor"),
        (view("SELECT order_id, abs(⟦status + op⟧) AS s FROM bronze.orders"), "takes numbers"),
        (view("SELECT order_id, 'x' || (⟦placed_at * amount⟧) AS s FROM bronze.orders"), ""),
        (view("SELECT order_id,\n  ⟦CASE WHEN amount > 1 THEN placed_at ELSE amount END⟧ AS mixed FROM bronze.orders"), "do not go together"),
        (view("SELECT order_id FROM bronze.orders WHERE ⟦status⟧"), "non-boolean"),
        (view("SELECT order_id FROM bronze.orders WHERE (⟦amount⟧ > 1) = 5"), "comparing"),
        (view("SELECT order_id, status FROM bronze.orders UNION ALL ⟦SELECT order_id FROM bronze.orders⟧"), "different number of columns"),
        (view("SELECT order_id FROM bronze.orders UNION ALL SELECT ⟦placed_at⟧ FROM bronze.orders"), "a column of"),
        (view("SELECT order_id, amount FROM bronze.orders UNION SELECT customer_id, ⟦placed_at⟧ FROM bronze.orders"), "a column of"),
        (view("SELECT order_id FROM bronze.orders ORDER BY ⟦abs(status + op)⟧"), "takes numbers"),
        (view("SELECT count(*) AS n FROM bronze.orders GROUP BY ⟦map(status, 1)⟧"), "GROUP BY a map"),
        (view("SELECT order_id FROM bronze.orders WHERE order_id > 1 AND ⟦status RLIKE '('⟧"), "regular expression"),
        (view("SELECT order_id, ⟦date_format(placed_at, 'YYYY-MM-dd')⟧ AS d FROM bronze.orders"), "`Y` so many times"),
        (view("SELECT order_id, year(⟦to_date(status, 'YYYY')⟧) AS d FROM bronze.orders"), "`Y` so many times"),
        (view("SELECT order_id, ⟦from_utc_timestamp(placed_at, 'Nowhere/City')⟧ AS d FROM bronze.orders"), "a time zone is not known"),
        (view("SELECT order_id FROM bronze.orders WHERE ⟦timestampdiff(FORTNIGHT, placed_at, updated_at)⟧ > 1"), "a unit of time is not known"),
        (view("SELECT * FROM bronze.orders PIVOT (sum(amount) FOR ⟦stauts⟧ IN ('a' AS a))"), "did you mean `status`?"),
        (view("SELECT * FROM bronze.orders PIVOT (sum(amount) AS s FOR status IN ('a', ⟦op⟧))"), "no constant"),
        (view("SELECT * FROM bronze.orders, LATERAL (SELECT ⟦amuont⟧ + 1 AS more)"), "did you mean `amount`?"),
        (view("SELECT order_id, customer_id IN (SELECT c.customer_id FROM bronze.customers AS c WHERE ⟦c.nmae⟧ = o.status) AS b FROM bronze.orders AS o"), "`c.nmae`"),
        (view("SELECT order_id, cast(⟦placed_at⟧ AS BOOLEAN) AS b FROM bronze.orders"), "the cast from"),
        (
            "CREATE OR REFRESH MATERIALIZED VIEW gold.v (order_id BIGINT, ⟦amount⟧ DECIMAL(12,2) DEFAULT 'x') AS SELECT order_id, amount FROM bronze.orders;"
                .to_owned(),
            "cannot have its default",
        ),
        (
            "CREATE OR REFRESH STREAMING TABLE silver.s (order_id BIGINT, ⟦status⟧ STRING DEFAULT no_such(1)) AS SELECT order_id, status FROM STREAM(bronze.orders);"
                .to_owned(),
            "cannot have its default",
        ),
        (
            "CREATE OR REFRESH MATERIALIZED VIEW gold.v TBLPROPERTIES (⟦'tributary.expect.new' = 'freshness(status) <= 2 hours') AS SELECT status FROM bronze.orders;".to_owned(),
            "asks for a date or a timestamp",
        ),
        (
            "CREATE OR REFRESH MATERIALIZED VIEW gold.v (CONSTRAINT a EXPECT (order_id > 0), CONSTRAINT b EXPECT (order_id > 0 AND ⟦stauts⟧ = 'x'))
             AS SELECT order_id, status FROM bronze.orders;"
                .to_owned(),
            "did you mean `status`?",
        ),
        (
            "CREATE OR REFRESH MATERIALIZED VIEW gold.v (CONSTRAINT a EXPECT (⟦order_id⟧)) AS SELECT order_id FROM bronze.orders;".to_owned(),
            "not true or false",
        ),
        (
            "CREATE OR REFRESH STREAMING TABLE silver.s (CONSTRAINT a EXPECT (⟦uper⟧(status) = 'X')) AS SELECT * FROM STREAM(bronze.orders);"
                .to_owned(),
            "the nearest known name is `upper`",
        ),
        ("CREATE OR REFRESH MATERIALIZED VIEW gold.v (order_id BIGINT, ⟦status⟧ INT) AS SELECT order_id, status FROM bronze.orders;".to_owned(), "is declared integer"),
        ("CREATE OR REFRESH MATERIALIZED VIEW gold.v (order_id BIGINT, ⟦stats⟧ STRING) AS SELECT order_id FROM bronze.orders;".to_owned(), "does not yield it"),
        ("CREATE OR REFRESH MATERIALIZED VIEW gold.v PARTITIONED BY (⟦stauts⟧) AS SELECT order_id, status FROM bronze.orders;".to_owned(), "did you mean `status`?"),
        ("CREATE OR REFRESH MATERIALIZED VIEW gold.v CLUSTER BY (order_id, ⟦stauts⟧) AS SELECT order_id, status FROM bronze.orders;".to_owned(), "did you mean `status`?"),
        (
            "CREATE OR REFRESH MATERIALIZED VIEW gold.v TBLPROPERTIES (⟦'tributary.expect.one' = 'unique(order_di)') AS SELECT order_id FROM bronze.orders;".to_owned(),
            "did you mean `order_id`?",
        ),
        (changes("KEYS (order_id, ⟦custmer_id⟧) SEQUENCE BY updated_at"), "did you mean `customer_id`?"),
        (changes("KEYS (order_id) SEQUENCE BY ⟦update_at⟧"), "did you mean `updated_at`?"),
        (changes("KEYS (order_id) SEQUENCE BY STRUCT(updated_at, ⟦placed_on⟧)"), "did you mean `placed_at`?"),
        (changes("KEYS (order_id) APPLY AS DELETE WHEN status = 'x' AND ⟦opp⟧ = 'd' SEQUENCE BY updated_at"), "did you mean `op`?"),
        (changes("KEYS (order_id) APPLY AS TRUNCATE WHEN ⟦opp⟧ = 't' SEQUENCE BY updated_at"), "did you mean `op`?"),
        (changes("KEYS (order_id) SEQUENCE BY updated_at COLUMNS (order_id, ⟦stauts⟧, updated_at)"), "did you mean `status`?"),
        (changes("KEYS (order_id) SEQUENCE BY updated_at COLUMNS * EXCEPT (⟦oop⟧)"), "did you mean `op`?"),
        (changes("KEYS (order_id) SEQUENCE BY updated_at STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (⟦stauts⟧)"), "did you mean `status`?"),
        (changes("KEYS (order_id) IGNORE NULL UPDATES ON (⟦stauts⟧) SEQUENCE BY updated_at"), "did you mean `status`?"),
        (
            "CREATE TEMPORARY VIEW mine AS SELECT order_id, ⟦stauts⟧ FROM bronze.orders;
             CREATE OR REFRESH MATERIALIZED VIEW gold.v AS SELECT * FROM mine;
             CREATE OR REFRESH MATERIALIZED VIEW gold.w AS SELECT order_id FROM mine;"
                .to_owned(),
            "did you mean `status`?",
        ),
        (
            "CREATE OR REFRESH STREAMING TABLE silver.s;
             CREATE FLOW one AS INSERT INTO silver.s BY NAME SELECT order_id, status FROM STREAM(bronze.orders);
             CREATE FLOW two AS INSERT INTO silver.s BY NAME SELECT order_id, ⟦stauts⟧ AS status FROM STREAM(bronze.orders);"
                .to_owned(),
            "did you mean `status`?",
        ),
    ];
    let mut wrong = Vec::new();
    for (text, says) in &kinds {
        let (text, places_meant) = marked(text);
        let check = checked(&text).await;
        let said = told(&check);
        let as_meant = places(&check) == at(&places_meant)
            && said.iter().all(|one| one.contains(says) || *says == "Ambiguous" && one.contains("ambiguous"));
        if !as_meant {
            wrong.push(format!("{text}\n  meant {:?} {says}\n  said  {said:?} {:?}", at(&places_meant), check.notes));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), kinds.len(), wrong.join("\n"));
}

#[tokio::test]
async fn defaults_and_rules_of_times_that_fit_are_no_mistakes() {
    let check = checked(
        "CREATE OR REFRESH MATERIALIZED VIEW gold.v (order_id BIGINT DEFAULT 1, amount DECIMAL(12,2) DEFAULT 1.5, placed_at TIMESTAMP DEFAULT current_timestamp())
           TBLPROPERTIES ('tributary.expect.new' = 'freshness(placed_at) <= 2 hours')
         AS SELECT order_id, amount, placed_at FROM bronze.orders WHERE date_format(placed_at, 'yyyy') RLIKE '^2[0-9]+$';",
    )
    .await;
    assert!(check.problems.is_empty(), "{:#?}", told(&check));
}

#[tokio::test]
async fn all_mistakes_of_one_dataset_are_told_in_one_go() {
    let (text, meant) = marked(
        "CREATE OR REFRESH MATERIALIZED VIEW gold.v (CONSTRAINT a EXPECT (⟦n⟧), CONSTRAINT b EXPECT (⟦statu⟧ = 'x')) PARTITIONED BY (⟦stauts⟧)
         AS SELECT status, count(*) AS n FROM bronze.orders GROUP BY status;
         CREATE OR REFRESH MATERIALIZED VIEW gold.w AS SELECT ⟦uper⟧(status) AS s, ⟦amuont⟧, ⟦o.custmer_id⟧ + ⟦plced_at⟧ AS m FROM bronze.orders AS o
         WHERE ⟦opp⟧ = 'x' GROUP BY amuont;
         CREATE OR REFRESH STREAMING TABLE silver.t;
         CREATE FLOW f AS AUTO CDC INTO silver.t FROM STREAM(bronze.orders) KEYS (⟦order_di⟧) APPLY AS DELETE WHEN ⟦oop⟧ = 'd'
           SEQUENCE BY ⟦update_at⟧ COLUMNS * EXCEPT (⟦opp⟧) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (⟦amonut⟧);",
    );
    let check = checked(&text).await;
    assert_eq!(places(&check), at(&meant), "{:#?}", told(&check));
}

#[tokio::test]
async fn what_reads_a_mistaken_dataset_is_told_nothing_but_its_own_mistakes() {
    let (text, meant) = marked(
        "CREATE OR REFRESH MATERIALIZED VIEW gold.b AS SELECT anything, ⟦uper⟧(x) AS s FROM gold.a;
         CREATE OR REFRESH MATERIALIZED VIEW gold.c AS SELECT s FROM gold.b;
         CREATE OR REFRESH MATERIALIZED VIEW gold.d AS SELECT whatever, ⟦lowr⟧(x) AS s FROM elsewhere.made;
         CREATE OR REFRESH MATERIALIZED VIEW gold.e AS SELECT main.shop.of_the_lake(order_id) AS s, ⟦amuont⟧ FROM bronze.orders;
         CREATE OR REFRESH MATERIALIZED VIEW gold.f AS SELECT shop.of_the_lake(order_id) AS s FROM bronze.orders;
         CREATE OR REFRESH STREAMING TABLE silver.two;
         CREATE FLOW one AS INSERT INTO silver.two BY NAME SELECT order_id FROM STREAM(bronze.orders);
         CREATE FLOW two AS INSERT INTO silver.two BY NAME SELECT ⟦trmi⟧(x) AS s FROM STREAM(elsewhere.made);
         CREATE OR REFRESH MATERIALIZED VIEW gold.a AS SELECT ⟦amuont⟧ FROM bronze.orders;",
    );
    let check = checked(&text).await;
    assert_eq!(places(&check), at(&meant), "{:#?}", told(&check));
    let notes: Vec<String> = check.notes.iter().map(|note| format!("{}: {}", note.table, note.message)).collect();
    for said in [
        "gold.b: not planned before its first run: `gold.a` has a mistake",
        "gold.d: not planned before its first run: `elsewhere.made` is made elsewhere",
        "gold.f: not planned before its first run: the function `shop.of_the_lake` can only be one that was made in the lake",
    ] {
        assert!(notes.iter().any(|note| note == said), "{notes:?}");
    }
}

#[tokio::test]
async fn places_are_those_of_the_file_whatever_is_put_in_or_left_out_of_it() {
    let texts = [
        "SET pre.fix = gold_of_a_very_long_name;\nCREATE OR REFRESH MATERIALIZED VIEW ${pre.fix}.v AS SELECT '${pre.fix}' AS p, ⟦amuont⟧ FROM bronze.orders;",
        "SET c = amuont;\nCREATE OR REFRESH MATERIALIZED VIEW gold.v AS SELECT order_id, ⟦${c}⟧ FROM bronze.orders;",
        "CREATE OR REFRESH MATERIALIZED VIEW gold.v AS\u{a0}SELECT\u{a0}\u{200b}order_id,\u{3000}⟦amuont⟧ FROM bronze.orders;",
        "-- COMMAND ----------\n%sql CREATE OR REFRESH MATERIALIZED VIEW gold.v AS SELECT ⟦amuont⟧ FROM bronze.orders\n-- COMMAND ----------\nCREATE OR REFRESH MATERIALIZED VIEW gold.w AS SELECT /* é */ \"ü\" AS u, ⟦statsu⟧ FROM bronze.orders;",
        "CREATE OR REFRESH MATERIALIZED VIEW gold.v AS\r\nSELECT order_id,\r\n  ⟦amuont⟧\r\nFROM LIVE.bronze.orders;\r\n",
        "CREATE OR REFRESH STREAMING TABLE silver.t;\r\nCREATE FLOW f AS AUTO CDC INTO silver.t FROM (SELECT order_id, ⟦amuont⟧, updated_at FROM STREAM(bronze.orders)) KEYS (order_id)\r\nSEQUENCE BY updated_at;",
        "CREATE OR REFRESH MATERIALIZED VIEW gold.v (a COMMENT 'renamed', b) AS SELECT order_id, ⟦amuont⟧ FROM bronze.orders;",
    ];
    for text in texts {
        let (text, meant) = marked(text);
        let check = checked(&text).await;
        assert_eq!(places(&check), at(&meant), "{text}\n{:#?}", told(&check));
    }
}

#[tokio::test]
async fn plans_and_runs_say_file_line_and_column_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("orders")).unwrap();
    std::fs::write(
        folder.path().join("orders/1.json"),
        "{\"order_id\": 1, \"status\": \"new\", \"updated_at\": \"2024-05-01T00:00:00Z\"}\n",
    )
    .unwrap();
    let (text, meant) = marked(
        "CREATE OR REFRESH MATERIALIZED VIEW gold.v AS SELECT order_id,\n   ⟦stauts⟧ FROM bronze.orders;
         CREATE OR REFRESH MATERIALIZED VIEW gold.w (CONSTRAINT a EXPECT (⟦n⟧)) AS SELECT count(*) AS n FROM bronze.orders;
         CREATE OR REFRESH STREAMING TABLE silver.t;
         CREATE FLOW f AS AUTO CDC INTO silver.t FROM STREAM(bronze.orders) KEYS (order_id) SEQUENCE BY ⟦update_at⟧;",
    );
    let feed = FEEDS.split("CREATE OR REFRESH STREAMING TABLE bronze.customers").next().unwrap();
    let pipeline = Pipeline::from_sql(&[("feeds.sql", feed), ("shop.sql", &text)], &options()).unwrap();
    let lake = Lake::open("memory://", Default::default()).unwrap();
    let options = || RunOptions { base_data_path: folder.path().to_owned(), ..RunOptions::default() };
    let mut stops: Vec<String> = lake.plan(&pipeline, &options()).await.unwrap().datasets.into_iter().flat_map(|plan| plan.stops).collect();
    let report = lake.run(&pipeline, options()).await.unwrap();
    let failed = report.datasets.iter().filter(|dataset| dataset.status == Status::Failed);
    let mut errors: Vec<String> = failed.filter_map(|dataset| dataset.error.as_ref()).map(|error| error.message.clone()).collect();
    for said in [&mut stops, &mut errors] {
        said.sort();
        assert_eq!(said.len(), meant.len(), "{said:#?}");
        for (said, place) in said.iter().zip(at(&meant)) {
            assert!(said.starts_with(&format!("{place}: ")) && !said.contains("(line "), "{said}");
        }
    }
}

#[tokio::test]
async fn a_pipeline_that_no_file_says_keeps_lines_and_columns_of_its_texts() {
    let yaml = "name: shop\nfeeds:\n  - {name: o, table: bronze.o, decode: json, schema_policy: freeze, source: {files: {path: o, format: jsonl}}, columns: [{name: id, type: long}]}\ngold:\n  - {table: gold.v, query: select idd from bronze.o}\n";
    let check = Pipeline::from_yaml(&[("shop.yml", yaml)]).unwrap().check_queries().await.unwrap();
    let [problem] = check.problems.as_slice() else { panic!("{:?}", check.problems) };
    assert!(
        problem.place.is_none() && problem.message() == chain(&problem.error) && problem.message().contains("(line 1, column 8)"),
        "{}",
        problem.message()
    );
}

#[tokio::test]
async fn texts_that_ask_for_much_are_told_in_bounded_time_and_memory() {
    let deep = (0..35).fold("stauts".to_owned(), |text, _| format!("abs({text})"));
    let wide: String = (0..2000).map(|at| format!("nosuch_{at}, ")).collect();
    let started = std::time::Instant::now();
    for query in [format!("SELECT {deep} AS a FROM bronze.orders"), format!("SELECT {wide} status + op AS a FROM bronze.orders")] {
        let check = checked(&view(&query)).await;
        assert!((1..=20).contains(&check.problems.len()), "{}", check.problems.len());
    }
    let mixed: String = (0..300).map(|at| format!("abs(amount) AS a{at}, ")).collect();
    let check = checked(&view(&format!("SELECT {mixed} status + op AS s FROM bronze.orders"))).await;
    assert_eq!(check.problems.len(), 1);
    let named: String =
        (1..11).map(|at| format!(", x{at} AS (SELECT a.order_id FROM x{0} a JOIN x{0} b ON a.order_id = b.order_id)", at - 1)).collect();
    let many = format!("WITH x0 AS (SELECT order_id FROM bronze.orders){named} SELECT status + op AS s FROM bronze.orders CROSS JOIN x10");
    assert_eq!(checked(&view(&many)).await.problems.len(), 1);
    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
}
