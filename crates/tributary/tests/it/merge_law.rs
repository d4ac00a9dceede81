//! MERGE, UPDATE and DELETE against a model of a few lines: any table, any source, any clauses.

use proptest::prelude::*;

use crate::statements::Sql;

type Row = (Option<i64>, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matched {
    Update,
    UpdateWhenGreater,
    DeleteWhenEven,
    Delete,
}

#[derive(Debug, Clone)]
struct Merge {
    matched: Vec<Matched>,
    insert: Option<bool>,
    by_source: Option<bool>,
}

impl Merge {
    fn text(&self) -> String {
        let mut text = "MERGE INTO s.t t USING s.u u ON t.k = u.k".to_owned();
        for matched in &self.matched {
            text.push_str(match matched {
                Matched::Update => " WHEN MATCHED THEN UPDATE SET t.v = u.v",
                Matched::UpdateWhenGreater => " WHEN MATCHED AND u.v > t.v THEN UPDATE SET *",
                Matched::DeleteWhenEven => " WHEN MATCHED AND u.v % 2 = 0 THEN DELETE",
                Matched::Delete => " WHEN MATCHED THEN DELETE",
            });
        }
        match self.insert {
            Some(true) => text.push_str(" WHEN NOT MATCHED AND u.v > 0 THEN INSERT (k, v) VALUES (u.k, u.v + 1000)"),
            Some(false) => text.push_str(" WHEN NOT MATCHED THEN INSERT *"),
            None => {}
        }
        match self.by_source {
            Some(true) => text.push_str(" WHEN NOT MATCHED BY SOURCE AND t.v < 0 THEN DELETE"),
            Some(false) => text.push_str(" WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = t.v + 100"),
            None => {}
        }
        text
    }

    /// The rows afterwards; none where several rows of the source match one.
    fn expected(&self, table: &[Row], source: &[Row]) -> Option<Vec<Row>> {
        let equal = |a: Option<i64>, b: Option<i64>| a.is_some() && a == b;
        let mut rows = Vec::new();
        for (k, v) in table {
            let matches: Vec<i64> = source.iter().filter(|(key, _)| equal(*k, *key)).map(|(_, value)| *value).collect();
            if matches.is_empty() {
                match self.by_source {
                    Some(true) if *v < 0 => {}
                    Some(false) => rows.push((*k, v + 100)),
                    _ => rows.push((*k, *v)),
                }
                continue;
            }
            let taken: Vec<Option<i64>> = matches.iter().filter_map(|new| self.take(*v, *new)).collect();
            if taken.len() > 1 && self.matched != [Matched::Delete] {
                return None;
            }
            match taken.first() {
                None => rows.push((*k, *v)),
                Some(Some(new)) => rows.push((*k, *new)),
                Some(None) => {}
            }
        }
        for (k, v) in source {
            if table.iter().any(|(key, _)| equal(*key, *k)) {
                continue;
            }
            match self.insert {
                Some(true) if *v > 0 => rows.push((*k, v + 1000)),
                Some(false) => rows.push((*k, *v)),
                _ => {}
            }
        }
        rows.sort_unstable();
        Some(rows)
    }

    /// What the first clause that takes a matched row makes of it: another value, or none where it goes.
    fn take(&self, old: i64, new: i64) -> Option<Option<i64>> {
        self.matched.iter().find_map(|matched| match matched {
            Matched::Update => Some(Some(new)),
            Matched::UpdateWhenGreater if new > old => Some(Some(new)),
            Matched::DeleteWhenEven if new % 2 == 0 => Some(None),
            Matched::Delete => Some(None),
            _ => None,
        })
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    proptest::collection::vec((proptest::option::weighted(0.9, 0..6i64), -5..6i64), 0..8)
}

fn merges() -> impl Strategy<Value = Merge> {
    use Matched as M;
    let matched = prop::sample::select(vec![
        vec![],
        vec![M::Update],
        vec![M::Delete],
        vec![M::UpdateWhenGreater],
        vec![M::DeleteWhenEven, M::Update],
        vec![M::UpdateWhenGreater, M::DeleteWhenEven],
        vec![M::UpdateWhenGreater, M::Delete],
    ]);
    let merge = (matched, proptest::option::of(any::<bool>()), proptest::option::of(any::<bool>()));
    merge
        .prop_map(|(matched, insert, by_source)| Merge { matched, insert, by_source })
        .prop_filter("a merge has a clause", |merge| !merge.matched.is_empty() || merge.insert.is_some() || merge.by_source.is_some())
}

fn values(rows: &[Row]) -> String {
    let row = |(k, v): &Row| format!("({}, {v})", k.map_or_else(|| "CAST(NULL AS BIGINT)".to_owned(), |k| k.to_string()));
    rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

fn printed(rows: &[Row]) -> String {
    let mut lines: Vec<String> =
        rows.iter().map(|(k, v)| format!("{}|{v}", k.map_or_else(|| "null".to_owned(), |k| k.to_string()))).collect();
    lines.sort();
    lines.join("\n")
}

fn sorted(said: &str) -> String {
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// A lake with both tables, the table in two files.
async fn lake(table: &[Row], source: &[Row], vectors: bool) -> Sql {
    let mut sql = Sql::new();
    let properties = if vectors { "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')" } else { "" };
    let made = sql
        .says(&format!("CREATE SCHEMA s; CREATE TABLE s.t (k BIGINT, v BIGINT) {properties}; CREATE TABLE s.u (k BIGINT, v BIGINT)"))
        .await;
    assert!(!made.contains("error"), "{made}");
    let (first, second) = table.split_at(table.len() / 2);
    for (name, rows) in [("t", first), ("t", second), ("u", source)] {
        if !rows.is_empty() {
            let said = sql.says(&format!("INSERT INTO s.{name} VALUES {}", values(rows))).await;
            assert!(said.ends_with("inserted"), "{said}");
        }
    }
    sql
}

/// What the merge makes of the table; none where it says that several rows match.
async fn merged(sql: &mut Sql, merge: &Merge) -> Option<String> {
    let said = sql.says(&merge.text()).await;
    if said.starts_with("error[TR0113]") {
        return None;
    }
    assert!(said.ends_with("inserted"), "{}: {said}", merge.text());
    Some(sorted(&sql.says("SELECT k, v FROM s.t").await))
}

/// The rows before, with every change of the last commit applied.
async fn replayed(sql: &mut Sql, before: &[Row], version: u64) -> String {
    let mut rows: Vec<String> = printed(before).lines().map(str::to_owned).collect();
    let changes = sql.says(&format!("SELECT _change_type, k, v FROM table_changes('s.t', {version})")).await;
    for change in changes.lines() {
        let (kind, row) = change.split_once('|').expect("a change");
        match kind {
            "delete" | "update_preimage" => {
                let at = rows.iter().position(|known| known == row).unwrap_or_else(|| panic!("{row} was not there: {changes}"));
                rows.remove(at);
            }
            _ => rows.push(row.to_owned()),
        }
    }
    rows.sort();
    rows.join("\n")
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_makes_of_a_table_what_its_clauses_say(table in rows(), source in rows(), merge in merges(), vectors: bool) {
        block_on(async {
            let mut sql = lake(&table, &source, vectors).await;
            let version: u64 = sql.says("DESCRIBE HISTORY s.t").await.lines().count() as u64;
            let expected = merge.expected(&table, &source);
            let found = merged(&mut sql, &merge).await;
            prop_assert_eq!(&found, &expected.as_deref().map(printed), "{}", merge.text());
            let commits = sql.says("DESCRIBE HISTORY s.t").await.lines().count() as u64;
            match found {
                Some(found) if commits > version => prop_assert_eq!(replayed(&mut sql, &table, version).await, found),
                Some(found) => prop_assert_eq!(printed(&table), found),
                None => prop_assert_eq!(commits, version),
            }
            Ok(())
        })?;
    }
}

/// The model notices an engine that leaves a rule out: here the clause for rows that no source matches.
#[test]
fn a_merge_without_one_of_its_clauses_is_told_from_a_whole_one() {
    let whole = Merge { matched: vec![Matched::Update], insert: Some(false), by_source: Some(false) };
    let broken = Merge { by_source: None, ..whole.clone() };
    let (table, source) = ([(Some(1), 1), (Some(2), 2)], [(Some(1), 7)]);
    let found = block_on(async { merged(&mut lake(&table, &source, false).await, &broken).await });
    assert_ne!(found, whole.expected(&table, &source).as_deref().map(printed));
    assert_eq!(found, broken.expected(&table, &source).as_deref().map(printed));
}
