//! The page of functions, made of the list.

use std::fmt::Write as _;

use super::{Determinism, Entry, How, SUBJECTS};

/// The page, in Markdown.
pub(crate) fn page() -> String {
    let mut page = String::from(HEAD);
    let executed = |entry: &&Entry| !entry.names.is_empty() && !matches!(entry.how, How::Refused(_));
    let count: usize = SUBJECTS.iter().flat_map(|(_, entries)| *entries).filter(executed).map(|entry| entry.names.len()).sum();
    let _ = writeln!(page, "{count} names are executed.\n");
    for (subject, entries) in SUBJECTS {
        if entries.iter().filter(executed).count() == 0 {
            continue;
        }
        let _ = writeln!(page, "## {subject}\n\n| function | arguments | answers alike |\n|---|---|---|");
        for entry in entries.iter().filter(executed) {
            let names: Vec<String> = entry.names.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "| {} | {} | {} |", names.join(", "), arguments(entry), alike(entry));
        }
        page.push('\n');
    }
    page.push_str("## Refused\n\n| function | why, or what to say instead |\n|---|---|\n");
    for entry in SUBJECTS.iter().flat_map(|(_, entries)| *entries) {
        if let How::Refused(why) = entry.how {
            let names: Vec<String> = entry.names.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "| {} | {why} |", names.join(", "));
        }
    }
    page
}

const HEAD: &str = "# SQL functions

Made of the list in `crates/spark-sql/src/functions`: run the tests of that crate with `TRIBUTARY_BLESS=1` to make it anew.

A name that is not here is an error that tells its line, its column and the nearest name that is. What is executed answers as Spark
does in ANSI mode with UTC as its zone; each name is held to values recorded from Spark
(`crates/spark-sql/tests/values`), and what is answered otherwise or not at all is listed in
`crates/spark-sql/tests/golden/unlike_spark.txt`, types included.

Rows are made of values by `explode`, `posexplode`, `inline`, `json_tuple` and `stack`, alone in a select list, in `LATERAL VIEW [OUTER]`,
as `LATERAL explode(…)` after a comma or a join, or alone in FROM. A path into a JSON text is `text:a.b[0]`: names after a dot are found in any case, names in brackets
as they are written.

";

fn arguments(entry: &Entry) -> String {
    match (entry.how, entry.least, entry.most) {
        (How::Said(_), _, usize::MAX) => "any".to_owned(),
        (How::Said(_), _, most) => most.to_string(),
        (_, least, usize::MAX) => format!("{least} or more"),
        (_, least, most) if least == most => least.to_string(),
        (_, least, most) => format!("{least} to {most}"),
    }
}

fn alike(entry: &Entry) -> &'static str {
    match entry.names.first().and_then(|name| super::determinism(name)) {
        Some(Determinism::Always) | None => "always",
        Some(Determinism::ByOrder) => "by the order of rows",
        Some(Determinism::WithinAQuery) => "within a query",
        Some(Determinism::Never) => "never",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_of_functions_is_made_of_the_list() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/functions.md");
        let page = super::page();
        if std::env::var_os("TRIBUTARY_BLESS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), page, "run with TRIBUTARY_BLESS=1");
    }
}
