//! Mistakes, each told once at its place.

use crate::{faults, read};

#[test]
fn ten_mistakes_of_one_file_are_ten_errors_at_their_places() {
    let text = "\
CREATE OR REFRESH STREAMING TABEL a AS SELECT * FROM STREAM(raw.a);
CREATE OR REFRESH STREAMING TABLE b CLUSTERED BY (x) AS SELECT * FROM STREAM(raw.b);
CREATE OR REFRESH STREAMING TABLE c AS SELECT * FORM STREAM(raw.c);
\tCREATE OR REFRESH STREAMING TABLE d (x BIGINTT) AS SELECT * FROM STREAM(raw.d);
CREATE OR REFRESH STREAMING TABLE e AS SELECT * FROM raw.e;
CREATE OR REFRESH STREAMING TABLE f (CONSTRAINT k EXPECT (x >) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(raw.f);
CREATE OR REFRESH MATERIALIZED VIEW g;
/* é */ CREATE FLOW h AS AUTO CDC INTO i FROM STREAM(raw.h) KEYS (id) SEQUENCE BY ts;
CREATE OR REFRESH STREAMING TABLE j AS SELECT 'x FROM STREAM(raw.j);
CREATE OR REFRESH STREAMING TABLE k AS SELECT * FROM STREAM(raw.k) WHERE x = ‘y’;
CREATE OR REFRESH STREAMING TABLE ok AS SELECT * FROM STREAM(raw.ok);
";
    let parsed = read(text);
    let found = faults(&parsed);
    let expected = [
        "1:29 PS0008",
        "2:37 PS0009",
        "3:49 PS0013",
        "4:41 PS0015",
        "5:54 PS0022",
        "6:62 PS0014",
        "7:37 PS0011",
        "8:40 PS0018",
        "9:47 PS0003",
        "10:78 PS0004",
    ];
    let places: Vec<String> = found.iter().map(|fault| fault.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(places, expected, "{found:#?}");
    let same_with_crlf = read(&text.replace('\n', "\r\n"));
    assert_eq!(faults(&same_with_crlf), found);
}

#[test]
fn an_option_whose_value_is_no_number_or_no_boolean_is_a_mistake_and_not_the_default() {
    let table = |option: &str| {
        let call = format!("read_files('/raw/orders', format => 'csv', {option})");
        faults(&read(&format!("CREATE OR REFRESH STREAMING TABLE shop.orders AS SELECT * FROM STREAM {call};")))
    };
    for (option, told) in [
        ("settleSeconds => 'soon'", "the option settleSeconds is a whole number of seconds"),
        ("settleSeconds => -1", "the option settleSeconds is a whole number of seconds"),
        ("header => 'perhaps'", "the option header is true or false"),
    ] {
        let found = table(option);
        assert!(matches!(found.as_slice(), [one] if one.starts_with("1:114 PS0023") && one.contains(told)), "{option}: {found:#?}");
    }
    assert_eq!(table("settleSeconds => 30, header => 'False'"), Vec::<String>::new());
}

#[test]
fn what_follows_from_a_mistake_is_not_told_again() {
    let flow = |target: &str| format!("CREATE FLOW f AS AUTO CDC INTO {target} FROM STREAM(raw.h) KEYS (id) SEQUENCE BY ts;");
    let table = |name: &str| format!("CREATE STREAMING TABLE {name};");
    for (text, told) in [
        // a flow that misses its table by a letter, and the table that so gets none
        ([table("s.orders"), flow("s.ordesr")].join("\n"), vec!["2:32 PS0018"]),
        // a view without a query, and a flow into it
        (["CREATE MATERIALIZED VIEW s.m;".to_owned(), flow("s.m")].join("\n"), vec!["1:26 PS0011"]),
        // and what does not follow
        ([table("s.orders"), table("s.visits"), flow("s.ordesr")].join("\n"), vec!["2:24 PS0011", "3:32 PS0018"]),
        (["CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS a;".to_owned(), flow("s.m")].join("\n"), vec!["2:32 PS0018"]),
    ] {
        let found = faults(&read(&text));
        let places: Vec<String> = found.iter().map(|fault| fault.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(places, told, "{text}\n{found:#?}");
    }
}
