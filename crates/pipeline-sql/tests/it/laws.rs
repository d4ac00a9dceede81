//! Laws: no text makes the parser panic, every mistake has a place in its file, and what is written is what is read.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tributary_pipeline_sql::{Parsed, SqlFile, parse};
use tributary_specs::{ColumnSelection, Deletes, IgnoreNullUpdates, MergePolicy, NullKeys, SilverSpec, TableName};
use tributary_testkit::Law;

use crate::{folder, read};

/// Every mistake stands in the text.
fn places_are_in(text: &str, parsed: &Parsed) -> Result<(), TestCaseError> {
    let lines: Vec<usize> = text.split('\n').map(|line| line.chars().count()).collect();
    let inside = |line: usize, column: usize| line >= 1 && line <= lines.len() && column >= 1 && column <= lines[line - 1] + 1;
    for fault in &parsed.faults {
        prop_assert!(inside(fault.line, fault.column), "{fault}");
        prop_assert!(!fault.message.is_empty() && fault.file == "a.sql");
    }
    for clause in &parsed.not_applied {
        prop_assert!(inside(clause.place.line, clause.place.column), "{clause:?}");
    }
    prop_assert_eq!(parsed.to_pipeline("law").is_err(), !parsed.faults.is_empty());
    Ok(())
}

#[test]
fn law_no_text_makes_it_panic_and_every_mistake_has_a_place() {
    let words = [
        "CREATE",
        "OR",
        "REFRESH",
        "STREAMING",
        "TABLE",
        "MATERIALIZED",
        "VIEW",
        "FLOW",
        "AS",
        "SELECT",
        "*",
        "FROM",
        "STREAM",
        "(",
        ")",
        ",",
        ";",
        "'",
        "\"",
        "`",
        "--",
        "/*",
        "*/",
        "APPLY",
        "CHANGES",
        "INTO",
        "AUTO",
        "CDC",
        "KEYS",
        "SEQUENCE",
        "BY",
        "COLUMNS",
        "EXCEPT",
        "CONSTRAINT",
        "EXPECT",
        "ON",
        "VIOLATION",
        "DROP",
        "ROW",
        "LIVE",
        ".",
        "a",
        "b",
        "1",
        "=",
        ">",
        "${a}",
        "${",
        "}",
        ":a",
        "SET",
        "USE",
        "\n",
        "\r\n",
        "\t",
        "\u{a0}",
        "’",
        "–",
        "é",
        "𝄞",
        "WATERMARK",
        "WITH",
        "=>",
        "read_files",
        "COMMENT",
        "CLUSTER",
        "\\",
        "r'",
        "IDENTIFIER",
        "\n-- COMMAND ----------\n",
        "<",
        "STRUCT<",
        "CASE",
        "END",
        "TBLPROPERTIES",
        "PARTITIONED",
        "MASK",
        "PRIMARY",
        "KEY",
        "BIGINT",
        "NOT",
        "NULL",
        "DEFAULT",
        "/*+ x */",
    ];
    let soup = vec(select(words.to_vec()), 0..60).prop_map(|words| words.join(" "));
    let joined = vec(select(words.to_vec()), 0..40).prop_map(|words| words.concat());
    let texts = prop_oneof![soup, joined, any::<String>(), "\\PC{0,80}"];
    let tried = Law::new("pipeline sql of any text").holds(&texts, |text, tried| {
        let parsed = read(&text);
        tried.add("texts", 1);
        tried.add("mistakes", parsed.faults.len());
        places_are_in(&text, &parsed)
    });
    assert!(tried.count("texts") > 50, "{tried}");
}

#[test]
fn law_a_damaged_file_is_read_or_its_mistake_told() {
    let files: Vec<String> =
        ["retail", "lakeflow", "gym"].iter().flat_map(|name| folder(&format!("dlt_pipelines/{name}"))).map(|file| file.text).collect();
    let damage = (select(files), vec((any::<prop::sample::Index>(), 0..5usize, any::<char>()), 1..4));
    let tried = Law::new("damaged pipeline sql").holds(&damage, |(text, damage), tried| {
        let mut letters: Vec<char> = text.chars().collect();
        for (at, how, letter) in damage {
            if letters.is_empty() {
                break;
            }
            let at = at.index(letters.len());
            match how {
                0 => drop(letters.remove(at)),
                1 => letters.insert(at, letter),
                2 => letters[at] = letter,
                3 => letters.truncate(at.max(1)),
                _ => {
                    let end = (at + 30).min(letters.len());
                    letters.drain(at..end);
                    letters.push(' ');
                }
            }
        }
        let damaged: String = letters.into_iter().collect();
        let parsed = read(&damaged);
        tried.add("files", 1);
        tried.add("mistakes", parsed.faults.len());
        places_are_in(&damaged, &parsed)
    });
    assert!(tried.count("mistakes") > 20, "{tried}");
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}x", "[a-z]{1,4} [a-z]{1,4}", "[a-z]{1,3}`[a-z]{1,3}", "(select|from|keys|columns|stream|as|live)"]
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

fn selection(names: Vec<String>) -> impl Strategy<Value = ColumnSelection> {
    let keep = names.clone();
    prop_oneof![
        Just(ColumnSelection::All),
        Just(ColumnSelection::Only(keep)),
        Just(ColumnSelection::Except(vec![format!("{} out", names[0])]))
    ]
}

fn shown(selection: &ColumnSelection) -> String {
    match selection {
        ColumnSelection::All => "*".to_owned(),
        ColumnSelection::Only(names) => format!("({})", list(names)),
        ColumnSelection::Except(names) => format!("* EXCEPT ({})", list(names)),
    }
}

fn spec() -> impl Strategy<Value = SilverSpec> {
    let names = prop::collection::btree_set(name(), 2..6).prop_map(|names| names.into_iter().collect::<Vec<_>>());
    names
        .prop_flat_map(|names| {
            let condition = prop::option::of(
                select(vec!["op = 'D'", "a > 1 AND b IN ('x', ';')", "`sequence by` IS NULL OR c"]).prop_map(str::to_owned),
            );
            let policy = selection(names.clone()).prop_map(|track_history| MergePolicy::ScdType2 { track_history });
            let nulls = select(vec![IgnoreNullUpdates::Off, IgnoreNullUpdates::All, IgnoreNullUpdates::Columns(names[1..].to_vec())]);
            (
                Just(names.clone()),
                name(),
                name(),
                condition.clone(),
                condition,
                prop_oneof![Just(MergePolicy::ScdType1), policy],
                selection(names),
                nulls,
            )
        })
        .prop_map(|(names, schema, table, delete, truncate, policy, columns, nulls)| {
            let mut spec = SilverSpec::new(TableName::new(schema, table), [TableName::new("raw", "so urce")]).with_keys([names[0].clone()]);
            spec.sequence_by = names[1..].iter().map(|name| quoted(name)).collect();
            let truncate = truncate.filter(|_| policy == MergePolicy::ScdType1);
            spec.deletes = Deletes { apply_as_delete_when: delete, apply_as_truncate_when: truncate, ..Deletes::default() };
            spec.flow = Some("f".to_owned()).filter(|name| !name.eq_ignore_ascii_case(&spec.table.name));
            (spec.policy, spec.columns, spec.ignore_null_updates, spec.null_keys) = (policy, columns, nulls, NullKeys::Refuse);
            spec
        })
}

/// A spec as a person would write it.
fn written(spec: &SilverSpec) -> String {
    let table = format!("{}.{}", quoted(&spec.table.schema), quoted(&spec.table.name));
    let mut text = format!(
        "CREATE STREAMING TABLE {table};\nCREATE FLOW f AS AUTO CDC INTO {table} FROM STREAM(raw.`so urce`) KEYS ({})",
        list(&spec.keys)
    );
    match &spec.ignore_null_updates {
        IgnoreNullUpdates::Off => {}
        IgnoreNullUpdates::All => text.push_str(" IGNORE NULL UPDATES"),
        IgnoreNullUpdates::Columns(names) => text.push_str(&format!(" IGNORE NULL UPDATES ON ({})", list(names))),
    }
    for (clause, condition) in [("DELETE", &spec.deletes.apply_as_delete_when), ("TRUNCATE", &spec.deletes.apply_as_truncate_when)] {
        if let Some(condition) = condition {
            text.push_str(&format!(" APPLY AS {clause} WHEN {condition}"));
        }
    }
    match spec.sequence_by.as_slice() {
        [one] => text.push_str(&format!(" SEQUENCE BY {one}")),
        several => text.push_str(&format!(" SEQUENCE BY STRUCT({})", several.join(", "))),
    }
    text.push_str(&format!(" COLUMNS {}", shown(&spec.columns)));
    match &spec.policy {
        MergePolicy::ScdType2 { track_history } => {
            text.push_str(&format!(" STORED AS SCD TYPE 2 TRACK HISTORY ON {}", shown(track_history)))
        }
        _ => text.push_str(" STORED AS SCD TYPE 1"),
    }
    text
}

#[test]
fn law_a_written_spec_is_read_as_it_was() {
    let tried = Law::new("silver specs through sql").holds(&spec(), |spec, tried| {
        let text = written(&spec);
        let file = SqlFile { path: "a.sql".to_owned(), text: text.clone() };
        let parsed = parse(&[file], &Default::default(), &Default::default());
        // A drawn name may be one that specs refuse.
        let own_rules = parsed.faults.iter().all(|fault| fault.code.0.starts_with("SP"));
        prop_assert!(own_rules, "{}\n{:#?}", text, parsed.faults);
        if let Ok(lowered) = parsed.to_pipeline("law") {
            prop_assert_eq!(&lowered.pipeline.silver[0], &spec, "{}", text);
            tried.add("specs", 1);
        }
        Ok(())
    });
    assert!(tried.count("specs") > 20, "{tried}");
}
