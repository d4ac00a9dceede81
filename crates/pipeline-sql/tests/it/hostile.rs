//! Text that nobody means: refused in less than a second, without a panic, without much memory.

use tributary_pipeline_sql::SqlFile;

use crate::{faults, read};

const HEAD: &str = "CREATE STREAMING TABLE t AS SELECT ";
const TAIL: &str = " AS x FROM STREAM(raw.s)";

#[test]
fn deep_nesting_is_refused() {
    let deep = |open: &str, close: &str, count: usize| format!("{HEAD}{}1{}{TAIL}", open.repeat(count), close.repeat(count));
    for count in [10, 39, 100, 100_000] {
        for (open, close) in [
            ("(", ")"),
            ("-", ""),
            ("NOT ", ""),
            ("CASE WHEN 1 THEN ", " END"),
            ("f(", ")"),
            ("[", "]"),
            ("{", "}"),
            ("CAST(", " AS INT)"),
            ("(SELECT ", ")"),
            ("a -> ", ""),
            ("ARRAY(", ")"),
            ("STRUCT(", ")"),
            ("(1, ", ")"),
            ("x IN (", ")"),
            ("EXISTS (SELECT ", ")"),
            ("INTERVAL ", ""),
            ("1 + ", ""),
            ("a.", ""),
            ("a:", ""),
        ] {
            let parsed = read(&deep(open, close, count));
            assert!(count < 100_000 || !parsed.faults.is_empty(), "{open} × {count}");
        }
        for (open, close) in [("(", ")"), ("(SELECT * FROM ", ")"), ("STREAM(", ")"), ("a JOIN (", ")"), ("((", "))"), ("LATERAL (", ")")] {
            let text = format!("CREATE MATERIALIZED VIEW t AS SELECT * FROM {}raw.s{}", open.repeat(count), close.repeat(count));
            let parsed = read(&text);
            assert!(count < 100_000 || !parsed.faults.is_empty(), "{open} × {count}");
        }
        for (open, close) in [("ARRAY<", ">"), ("STRUCT<a: ", ">"), ("MAP<STRING, ", ">"), ("DECIMAL(", ")")] {
            let text =
                format!("CREATE STREAMING TABLE t (a {}INT{}) AS SELECT * FROM STREAM(raw.s)", open.repeat(count), close.repeat(count));
            let parsed = read(&text);
            assert!(count < 100 || !parsed.faults.is_empty(), "{open} × {count}");
        }
    }
}

#[test]
fn a_megabyte_is_read_or_refused() {
    let million = 1 << 20;
    for unit in [
        "'",
        "\"",
        "`",
        "/*",
        "--\n",
        ";",
        "(",
        ")",
        "${",
        "${a}",
        "a ",
        "a,",
        "\n",
        "\u{a0}",
        "“",
        "'a' ",
        "CREATE ",
        "CREATE STREAMING TABLE t;",
        ";\n",
        "é",
        "AS ",
        "STREAM ",
        "KEYS (a) ",
        "-- COMMAND ----------\n",
        ":a ",
        "\\",
        "'\\'",
        "r'",
        "%sql\n",
        "1+",
        "FROM ",
        "SELECT ",
        "CONSTRAINT a EXPECT (b), ",
    ] {
        read(&unit.repeat(million / unit.len()));
    }
    let comma = format!("{HEAD}{}{TAIL}", "a + b AS c, ".repeat(million / 12));
    let parsed = read(&comma);
    assert!(faults(&parsed)[0].contains("words and signs"), "{:?}", faults(&parsed));
    let columns = format!("CREATE STREAMING TABLE t ({}) AS SELECT * FROM STREAM(raw.s)", "c INT, ".repeat(7000));
    read(&columns);
    let clauses = format!("CREATE STREAMING TABLE t; AUTO CDC INTO t FROM STREAM(raw.s) KEYS (a) {}", "SEQUENCE BY a ".repeat(10_000));
    read(&clauses);
}

#[test]
fn values_that_double_each_other_are_refused_where_they_become_too_much() {
    for (open, close) in [("", ""), ("'", "'"), ("\"", "\"")] {
        let doubled = |n: usize| format!("SET k{} = {open}${{k{n}}}${{k{n}}}{close};\n", n + 1);
        let sets: String = (0..60).map(doubled).collect();
        let text = format!("SET k0 = aaaaaaaaaa;\n{sets}CREATE MATERIALIZED VIEW m AS SELECT '${{k60}}' AS a");
        let parsed = read(&text);
        let first = &faults(&parsed)[0];
        assert!(first.contains("PS0002") && first.contains("bytes of values"), "{first}");
        let line: usize = first.split(':').next().unwrap().parse().unwrap();
        assert!((12..25).contains(&line), "{first}");
    }
}

#[test]
fn many_datasets_that_read_each_other_are_put_in_order() {
    let chain: String =
        (0..1000).map(|n| format!("CREATE MATERIALIZED VIEW m{n} AS SELECT * FROM m{} JOIN m{};\n", n + 1, n + 2)).collect();
    read(&chain);
    let ring = format!("{chain}CREATE MATERIALIZED VIEW m1000 AS SELECT * FROM m0;");
    let parsed = read(&ring);
    assert!(faults(&parsed).iter().any(|fault| fault.contains("PS0020")));
    let doubling: String =
        (0..200).map(|n| format!("CREATE TEMPORARY VIEW v{} AS SELECT * FROM v{n} JOIN v{n} AS other;\n", n + 1)).collect();
    let text = format!("{doubling}CREATE TEMPORARY VIEW v0 AS SELECT * FROM raw.s; CREATE MATERIALIZED VIEW m AS SELECT * FROM v200");
    let parsed = read(&text);
    assert!(faults(&parsed).iter().any(|fault| fault.contains("PS0002")), "{:?}", faults(&parsed));
}

#[test]
fn binary_bytes_are_refused() {
    let parsed = read("CREATE\0STREAMING TABLE");
    assert_eq!(faults(&parsed), ["1:7 PS0001 the file is not text: the character U+0000 stands in it"]);
    let parsed = read(&String::from_utf8_lossy(b"PAR1\xff\xfe"));
    assert!(faults(&parsed)[0].starts_with("1:5 PS0001"), "{:?}", faults(&parsed));
    let file = SqlFile::from_bytes("x.sql", b"SELECT \xff");
    assert_eq!(file.map_err(|fault| (fault.line, fault.column, fault.code.0)), Err((1, 8, "PS0001")));
}
