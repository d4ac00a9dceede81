//! Which tables a query reads.

use std::collections::HashSet;
use std::ops::ControlFlow;

use tributary_lake::datafusion::common::JoinType;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    Ident, JoinOperator, ObjectName, Query, Select, SetExpr, Statement, TableFactor, Visit, Visitor,
};
use tributary_spark_sql::TableUse;
use tributary_specs::TableName;

use crate::waits::Unbounded;
use crate::{Error, Result};

/// The tables a query reads, each once, in the order they are first named, spelled as they are there. A third part in front is
/// the catalogue and left out. Names of `WITH` are no tables where they are in scope.
///
/// ```
/// use tributary_gold_agg::sources_of;
///
/// let query = "WITH big AS (SELECT * FROM silver.orders WHERE total > 9) SELECT * FROM big JOIN silver.`my customers` c USING (id)";
/// let sources: Vec<String> = sources_of(query)?.iter().map(ToString::to_string).collect();
/// assert_eq!(sources, ["silver.orders", "silver.`my customers`"]);
/// assert!(sources_of("DELETE FROM silver.orders").is_err());
/// # Ok::<(), tributary_gold_agg::Error>(())
/// ```
///
/// # Errors
/// [`Error::Query`] when the text is not one query, names a table without its schema, or reads a table in a way that would be
/// ignored (time travel, samples).
pub fn sources_of(query: &str) -> Result<Vec<TableName>> {
    let statement = parse(query).map_err(|reason| Error::Query { table: None, reason })?;
    tables(&statement).map_err(|reason| Error::Query { table: None, reason })
}

/// One query, or why the text is none.
pub(crate) fn parse(query: &str) -> Result<Statement, String> {
    let statements = tributary_spark_sql::statements(query).map_err(|error| error.to_string())?;
    match <[Statement; 1]>::try_from(statements) {
        Ok([statement @ Statement::Query(_)]) => Ok(statement),
        Ok([other]) => Err(format!("it is {}, and a view is one SELECT", first_words(&other))),
        Err(statements) if statements.is_empty() => Err("it is empty".to_owned()),
        Err(statements) => Err(format!("it has {} statements, and a view is one SELECT", statements.len())),
    }
}

fn first_words(statement: &Statement) -> String {
    statement.to_string().split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// Why a join of a query is not executed, with its place where the text tells it.
pub(crate) fn refused(query: &str, join: &Unbounded) -> tributary_spark_sql::Error {
    let word = match join.join_type {
        JoinType::Right => "RIGHT JOIN",
        JoinType::Full => "FULL JOIN",
        _ => "LEFT JOIN",
    };
    let mut walk = Joined { join, place: None };
    if let Ok(statement) = parse(query) {
        // it ends where the join is found
        let _ = statement.visit(&mut walk);
    }
    tributary_spark_sql::Error::Refused { what: format!("this {word} of two streams"), hint: Some(join.reason.clone()), span: walk.place }
}

/// Looks for a join by its kind and by what its right side is called.
struct Joined<'a> {
    join: &'a Unbounded,
    place: Option<(u64, u64)>,
}

impl Visitor for Joined<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for join in select.from.iter().flat_map(|from| &from.joins) {
            let join_type = match &join.join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => JoinType::Left,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => JoinType::Right,
                JoinOperator::FullOuter(_) => JoinType::Full,
                _ => continue,
            };
            let alias = match &join.relation {
                TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| &alias.name),
                _ => None,
            };
            let (first, last) = match &join.relation {
                TableFactor::Table { name, .. } => (name.0.first(), name.0.last()),
                _ => (None, None),
            };
            let [first, last] = [first, last].map(|part| part.and_then(|part| part.as_ident()));
            let called = alias.or(last);
            let is_it = match (called, &self.join.joined) {
                (Some(called), Some(joined)) => called.value.eq_ignore_ascii_case(joined),
                _ => true,
            };
            if join_type == self.join.join_type && is_it {
                let start = first.or(called).map(|name| name.span.start);
                self.place = start.filter(|start| start.line > 0).map(|start| (start.line, start.column));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

/// The tables a parsed query reads.
pub(crate) fn tables(statement: &Statement) -> Result<Vec<TableName>, String> {
    let mut walk = Tables { found: Vec::new(), seen: HashSet::new(), in_scope: Vec::new() };
    match statement.visit(&mut walk) {
        ControlFlow::Continue(()) => Ok(walk.found),
        ControlFlow::Break(reason) => Err(reason),
    }
}

/// Whether a function is one of those that views may read.
fn is_called(name: &ObjectName, functions: &[&str]) -> bool {
    matches!(parts(name).as_deref(), Some([one]) if functions.iter().any(|function| one.value.eq_ignore_ascii_case(function)))
}

/// The parts of a dotted name.
fn parts(name: &ObjectName) -> Option<Vec<&Ident>> {
    name.0.iter().map(|part| part.as_ident()).collect()
}

struct Tables {
    found: Vec<TableName>,
    seen: HashSet<TableName>,
    /// Names of `WITH` around the place, in lower case, innermost last.
    in_scope: Vec<String>,
}

impl Visitor for Tables {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            // A name is in scope after its own query, except where it is recursive.
            if query.with.as_ref().is_some_and(|with| !with.recursive) {
                cte.query.visit(self)?;
            }
            self.in_scope.push(cte.alias.name.value.to_lowercase());
        }
        match query.body.as_ref() {
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                ControlFlow::Break("it changes a table, and a view is one SELECT".to_owned())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let named = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        self.in_scope.truncate(self.in_scope.len().saturating_sub(named));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        if select.into.is_some() {
            return ControlFlow::Break("it has SELECT … INTO, and a view is its own table".to_owned());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        let refuse = |reason: String| ControlFlow::Break(reason);
        match factor {
            TableFactor::Table { name, args: Some(_), .. } if is_called(name, &["table_changes", "range"]) => match TableUse::of(factor) {
                Ok(Some(used)) => self.named(&used.parts.iter().map(String::as_str).collect::<Vec<_>>(), &used.parts.join(".")),
                Ok(None) => ControlFlow::Continue(()),
                Err(error) => refuse(error.to_string()),
            },
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                let function = name.to_string().to_lowercase();
                refuse(format!("the table function {function} is not available in a view"))
            }
            TableFactor::Table { name, version: Some(_), .. } => {
                refuse(format!("{name} is read as of a version or time, which a view cannot be kept equal to"))
            }
            TableFactor::Table { name, sample: Some(_), .. } => refuse(format!("{name} is sampled, which gives another answer each time")),
            TableFactor::Derived { sample: Some(_), .. } => {
                refuse("a subquery is sampled, which gives another answer each time".to_owned())
            }
            TableFactor::Table { name, .. } => self.table(name),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Tables {
    fn table(&mut self, name: &ObjectName) -> ControlFlow<String> {
        let Some(parts) = parts(name) else {
            return ControlFlow::Break(format!("{name} is not the name of a table"));
        };
        match parts.as_slice() {
            [one] if self.in_scope.contains(&one.value.to_lowercase()) => ControlFlow::Continue(()),
            parts => self.named(&parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>(), &name.to_string()),
        }
    }

    fn named(&mut self, parts: &[&str], name: &str) -> ControlFlow<String> {
        let table = match parts {
            [one] => return ControlFlow::Break(format!("{one} names no schema; write schema.{one}")),
            [schema, table] | [_, schema, table] => TableName::new(*schema, *table),
            _ => return ControlFlow::Break(format!("{name} has too many parts for the name of a table")),
        };
        if self.seen.insert(table.folded()) {
            self.found.push(table);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(query: &str) -> Vec<String> {
        sources_of(query).unwrap_or_else(|error| panic!("{query}: {error}")).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_place_a_table_can_be_named_is_found() {
        for (query, expected) in [
            ("SELECT 1", vec![]),
            ("SELECT * FROM silver.orders o, silver.customers", vec!["silver.orders", "silver.customers"]),
            ("SELECT * FROM main.silver.orders", vec!["silver.orders"]),
            (r"SELECT a div 2, b << 1 FROM s.a WHERE c RLIKE r'\d\' AND d = 'it\'s' AND e > 1.5BD", vec!["s.a"]),
            ("SELECT * FROM `silver`.`or ders`", vec!["silver.`or ders`"]),
            (
                "SELECT * FROM silver.a WHERE id IN (SELECT id FROM silver.b) AND EXISTS (SELECT 1 FROM silver.c)",
                vec!["silver.a", "silver.b", "silver.c"],
            ),
            ("SELECT (SELECT max(x) FROM silver.a) AS m FROM (SELECT * FROM silver.b) d", vec!["silver.a", "silver.b"]),
            ("SELECT * FROM silver.a UNION ALL SELECT * FROM Silver.A EXCEPT SELECT * FROM silver.b", vec!["silver.a", "silver.b"]),
            ("SELECT * FROM silver.a LEFT JOIN silver.b USING (id) JOIN silver.c ON a.x = c.x", vec!["silver.a", "silver.b", "silver.c"]),
            ("SELECT * FROM silver.a -- , silver.b\n/* silver.c */", vec!["silver.a"]),
            ("SELECT 'FROM silver.b' AS t FROM silver.a", vec!["silver.a"]),
            ("SELECT * FROM table_changes('main.silver.a', 1, 4) c JOIN silver.b USING (id)", vec!["silver.a", "silver.b"]),
            ("SELECT * FROM range(5) r JOIN silver.b USING (id)", vec!["silver.b"]),
        ] {
            assert_eq!(names(query), expected, "{query}");
        }
    }

    #[test]
    fn a_name_of_with_is_no_table_only_where_it_is_in_scope() {
        assert_eq!(names("WITH a AS (SELECT * FROM silver.a) SELECT * FROM A"), ["silver.a"]);
        assert_eq!(names("WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a JOIN silver.c USING (x)) SELECT * FROM b"), ["silver.c"]);
        assert_eq!(
            names("WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT * FROM n"),
            Vec::<String>::new()
        );
        assert!(sources_of("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) d, a").is_err());
        assert!(sources_of("WITH a AS (SELECT * FROM a) SELECT * FROM a").is_err());
    }

    #[test]
    fn what_is_no_view_is_refused_with_the_reason() {
        for (query, reason) in [
            ("", "it is empty"),
            ("SELECT 1; SELECT 2", "2 statements"),
            ("DROP TABLE silver.a", "it is DROP TABLE"),
            ("INSERT INTO silver.a SELECT 1", "it is INSERT INTO"),
            ("SELECT * FROM orders", "write schema.orders"),
            ("SELECT * FROM a.b.c.d", "too many parts"),
            ("SELECT * FROM silver.a VERSION AS OF 3", "as of a version"),
            ("SELECT * FROM silver.a TABLESAMPLE (10 ROWS)", "sampled"),
            ("SELECT * FROM read_files('x')", "table function read_files"),
            ("SELECT * FROM table_changes('orders', 1)", "write schema.orders"),
            ("SELECT * FROM table_changes(silver.orders, 1)", "table_changes"),
            ("SELECT FROM WHERE", "Expected"),
        ] {
            let error = sources_of(query).expect_err(query).to_string();
            assert!(error.contains(reason), "{query}: {error}");
        }
    }
}
