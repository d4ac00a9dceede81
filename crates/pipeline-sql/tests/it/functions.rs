//! Functions in FROM. `table_changes`: in a streaming table a stream of the change feed from a version on, in a materialized view a batch of it.

use tributary_specs::{Pipeline, Source, StreamRead};

use crate::{faults, read};

fn pipeline(text: &str) -> Pipeline {
    match read(text).to_pipeline("case") {
        Ok(lowered) => lowered.pipeline,
        Err(faults) => panic!("{text}\n{faults}"),
    }
}

#[test]
fn a_stream_of_changes_is_read_from_its_version_by_name() {
    for (call, from, to) in [
        ("STREAM table_changes('silver.orders', 3)", 3, None),
        ("STREAM(table_changes('silver.orders', 3, 9))", 3, Some(9)),
        ("stream TABLE_CHANGES('main.silver.`orders`', 0)", 0, None),
    ] {
        let catalog = if call.contains("main.") { "USE CATALOG main; " } else { "" };
        let made =
            pipeline(&format!("{catalog}CREATE STREAMING TABLE silver.t AS SELECT id, _change_type AS kind FROM {call} WHERE id > 0"));
        let spec = &made.silver[0];
        assert_eq!(spec.stream, StreamRead::Changes { from, to }, "{call}");
        assert_eq!(spec.sources.iter().map(ToString::to_string).collect::<Vec<_>>(), ["silver.orders"]);
        assert_eq!(spec.select.as_deref(), Some("SELECT id, _change_type AS kind FROM silver.orders WHERE id > 0"), "{call}");
    }
    let made = pipeline(
        "CREATE STREAMING TABLE silver.t;
         CREATE FLOW f AS AUTO CDC INTO silver.t FROM STREAM table_changes('silver.orders', 2) KEYS (id) SEQUENCE BY _commit_version",
    );
    assert_eq!((made.silver[0].stream, made.silver[0].sources.len()), (StreamRead::Changes { from: 2, to: None }, 1));
}

#[test]
fn a_view_reads_the_feed_as_a_batch_and_other_datasets_by_their_full_names() {
    let made = pipeline(
        "CREATE STREAMING TABLE orders AS SELECT * FROM STREAM(raw.s);
         CREATE MATERIALIZED VIEW v AS SELECT c._commit_version, o.a FROM table_changes('orders', 1, '2026-01-01') c JOIN orders o USING (a)",
    );
    let query = "SELECT c._commit_version, o.a FROM table_changes('main.orders', 1, '2026-01-01') c JOIN main.orders o USING (a)";
    assert_eq!((made.gold[0].query.as_str(), made.gold[0].sources.len()), (query, 1));
}

#[test]
fn what_cannot_be_read_is_told_where_it_stands_with_another_way() {
    let table = "CREATE STREAMING TABLE t AS SELECT * FROM";
    for (text, code, said) in [
        (format!("{table} STREAM table_changes(silver.orders, 1)"), "PS0005", "table_changes('table', first[, last])"),
        (format!("{table} STREAM table_changes('silver.orders')"), "PS0005", "table_changes('table', first[, last])"),
        (format!("{table} STREAM table_changes('silver.orders', -1)"), "PS0005", "table_changes('table', first[, last])"),
        (format!("{table} STREAM table_changes('silver..orders', 1)"), "PS0005", "table_changes('table', first[, last])"),
        (format!("{table} STREAM table_changes('silver.orders', '2026-01-01')"), "PS0025", "from an instant on"),
        (format!("{table} STREAM(raw.s) s JOIN table_changes('silver.orders', 1) c ON s.a = c.a"), "PS0025", "without STREAM"),
        (
            "CREATE STREAMING TABLE t; CREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT a FROM table_changes('silver.orders', 1)"
                .to_owned(),
            "PS0025",
            "without STREAM",
        ),
        (
            "CREATE TEMPORARY VIEW w AS SELECT 1 AS a; CREATE MATERIALIZED VIEW v AS SELECT * FROM table_changes('w', 1)".to_owned(),
            "PS0025",
            "table_changes of the view",
        ),
    ] {
        let parsed = read(&text);
        let told = match parsed.to_pipeline("case") {
            Err(faults) => faults.to_string(),
            Ok(_) => panic!("{text}: {:?}", faults(&parsed)),
        };
        assert!(told.contains(said) && told.contains("a.sql:1:"), "{text}: {told}");
        assert!(code.starts_with("PS"));
    }
}

#[test]
fn fields_of_metadata_are_made_of_the_file_that_a_row_is_from() {
    let made = pipeline(
        "CREATE STREAMING TABLE t AS SELECT a, _metadata.file_name, _metadata.file_path, upper(_metadata.file_name) AS u
         FROM STREAM read_files('in', format => 'json') WHERE _metadata.file_name LIKE 'a%'",
    );
    let table = &made.feeds[0].table;
    assert_eq!(
        made.silver[0].select.as_deref().map(|select| select.split_whitespace().collect::<Vec<_>>().join(" ")),
        Some(format!(
            "SELECT a, substring_index(_file, '/', -1) AS file_name, _file AS file_path, upper(substring_index(_file, '/', -1)) AS u \
             FROM {table} WHERE substring_index(_file, '/', -1) LIKE 'a%'"
        ))
    );
    let Source::Files(files) = &made.feeds[0].source else { panic!("{:?}", made.feeds) };
    assert!(!files.with_metadata);
    let made = pipeline(
        "CREATE STREAMING TABLE t AS SELECT *, _metadata.file_size AS bytes, _metadata.file_modification_time FROM STREAM read_files('in', format => 'json')",
    );
    let Source::Files(files) = &made.feeds[0].source else { panic!("{:?}", made.feeds) };
    let select = "SELECT *, _file_size AS bytes, _file_modified_at AS file_modification_time FROM main.t_input";
    assert_eq!((made.silver[0].select.as_deref(), files.with_metadata), (Some(select), true));
    let refused = read("CREATE STREAMING TABLE t AS SELECT _metadata.file_block_start FROM STREAM read_files('in', format => 'json')");
    let told = refused.to_pipeline("case").unwrap_err().to_string();
    assert!(told.contains("PS0025") && told.contains("file_modification_time"), "{told}");
}

#[test]
fn a_view_of_files_is_made_of_a_table_that_mirrors_their_folder() {
    let made = pipeline("CREATE MATERIALIZED VIEW v AS SELECT *, _metadata.file_name FROM read_files('in', format => 'csv') WHERE a > 1");
    let Source::Files(files) = &made.feeds[0].source else { panic!("{:?}", made.feeds) };
    assert!(files.mirrors && made.feeds[0].table.to_string() == "main.v_input");
    assert_eq!(made.gold[0].sources, [made.feeds[0].table.clone()]);
    assert_eq!(made.gold[0].query, "SELECT *, substring_index(_file, '/', -1) AS file_name FROM main.v_input AS files WHERE a > 1");
    for (from, said) in [
        ("read_files('in', format => 'csv') a JOIN read_files('on', format => 'csv') b ON a.x = b.x", "read_files(…) in this place"),
        ("STREAM read_files('in', format => 'csv')", "read_files(…) in this place"),
        ("read_kafka(subscribe => 't')", "read_kafka(…) in this place"),
    ] {
        let told = read(&format!("CREATE MATERIALIZED VIEW v AS SELECT * FROM {from}")).to_pipeline("case").unwrap_err().to_string();
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn a_range_of_numbers_is_part_of_the_text() {
    let made = pipeline("CREATE MATERIALIZED VIEW v AS SELECT r.id, s.a FROM range(1, 9, 2) r LEFT JOIN raw.s s ON s.a = r.id");
    assert_eq!(made.gold[0].query, "SELECT r.id, s.a FROM range(1, 9, 2) r LEFT JOIN raw.s s ON s.a = r.id");
    assert_eq!(made.gold[0].sources.len(), 1);
    let told = read("CREATE STREAMING TABLE t AS SELECT id FROM STREAM range(9)").to_pipeline("case").unwrap_err().to_string();
    assert!(told.contains("range(…)"), "{told}");
}
