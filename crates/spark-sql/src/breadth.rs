//! How much a short text asks for: tables that `WITH` multiplies, and sets of groups, which double with every few words; and tables
//! that are joined side by side, each of which is planned with the columns of all before it.

use std::collections::HashMap;
use std::ops::ControlFlow;

use tributary_lake::datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, ObjectName, Query, Select, Spanned, TableFactor, TableWithJoins, Visit, Visitor,
};

use crate::Error;

/// Tables of a query at most, a name of `WITH` counted as all that stands behind it.
const TABLES_MAX: u64 = 4096;
/// Tables of one `FROM` at most.
const JOINED_MAX: usize = 500;
/// Names of one `WITH` at most: each may stand on the one before, and the engine plans them within each other.
const NAMED_MAX: usize = 500;
/// Sets of groups of one `GROUP BY` at most.
const GROUPING_SETS_MAX: u64 = 4096;

/// Looks at all queries of a text; tells how many tables it comes to.
///
/// # Errors
/// [`Error::Refused`] with its place for more than anybody writes.
pub(crate) fn check(tree: &impl Visit) -> Result<u64, Error> {
    let mut breadth = Breadth { around: vec![Around::default()] };
    match tree.visit(&mut breadth) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(breadth.around.first().map_or(0, |statement| statement.tables)),
    }
}

/// The queries around a place, the innermost last; the first is the statement itself.
struct Breadth {
    around: Vec<Around>,
}

/// What is known of a query so far.
#[derive(Default)]
struct Around {
    /// Tables counted.
    tables: u64,
    /// The queries of its `WITH`, by their addresses in the tree, and their names.
    with: Vec<(*const Query, String)>,
    /// Tables behind the names of its `WITH`.
    behind: HashMap<String, u64>,
}

impl Breadth {
    /// Tables behind a name.
    fn behind(&self, name: &ObjectName) -> u64 {
        let [part] = name.0.as_slice() else { return 1 };
        let Some(name) = part.as_ident().map(|ident| ident.value.to_lowercase()) else { return 1 };
        self.around.iter().rev().find_map(|query| query.behind.get(&name).copied()).unwrap_or(1)
    }
}

impl Visitor for Breadth {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        if let Some(one) = query.with.as_ref().and_then(|with| with.cte_tables.get(NAMED_MAX)) {
            let what = format!("a WITH of more than {NAMED_MAX} names");
            return ControlFlow::Break(Error::refused_with_hint(what, "make tables of some of them", one.span()));
        }
        let named = query.with.iter().flat_map(|with| &with.cte_tables);
        let with = named.map(|cte| (std::ptr::from_ref(cte.query.as_ref()), cte.alias.name.value.to_lowercase())).collect();
        self.around.push(Around { with, ..Around::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let tables = self.around.pop().map_or(0, |done| done.tables);
        if let Some(outer) = self.around.last_mut() {
            match outer.with.iter().find(|(named, _)| std::ptr::eq(*named, query)) {
                // one without tables still has a plan
                Some((_, name)) => drop(outer.behind.insert(name.clone(), tables.max(1))),
                None => outer.tables = outer.tables.saturating_add(tables),
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Error> {
        let behind = self.behind(relation);
        let Some(query) = self.around.last_mut() else { return ControlFlow::Continue(()) };
        query.tables = query.tables.saturating_add(behind);
        if query.tables <= TABLES_MAX {
            return ControlFlow::Continue(());
        }
        let what = format!("a query of more than {TABLES_MAX} tables, what stands behind names of WITH counted each time");
        ControlFlow::Break(Error::refused_with_hint(what, "make a table of what is used often", relation.span()))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        if let Some(one) = select.from.first()
            && joined(&select.from) > JOINED_MAX
        {
            let what = format!("a FROM of more than {JOINED_MAX} tables");
            return ControlFlow::Break(Error::refused_with_hint(what, "join them in several steps, each a table", one.span()));
        }
        let GroupByExpr::Expressions(expressions, modifiers) = &select.group_by else { return ControlFlow::Continue(()) };
        let sets = match modifiers.as_slice() {
            [GroupByWithModifier::Cube] => cube(expressions.len()),
            _ => product(expressions),
        };
        if sets <= GROUPING_SETS_MAX {
            return ControlFlow::Continue(());
        }
        let what = format!("a GROUP BY of more than {GROUPING_SETS_MAX} sets of groups");
        ControlFlow::Break(Error::refused_with_hint(what, "name those that are needed in GROUPING SETS", select.group_by.span()))
    }
}

/// Tables of a `FROM`, those in brackets included.
fn joined(from: &[TableWithJoins]) -> usize {
    let factor = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => joined(std::slice::from_ref(table_with_joins)),
        _ => 1,
    };
    from.iter().map(|one| factor(&one.relation) + one.joins.iter().map(|join| factor(&join.relation)).sum::<usize>()).sum()
}

/// Sets of groups that expressions side by side come to: each of one with each of the others.
fn product(expressions: &[Expr]) -> u64 {
    expressions.iter().map(sets).fold(1, u64::saturating_mul)
}

fn sets(expression: &Expr) -> u64 {
    match expression {
        Expr::Cube(columns) => cube(columns.len()),
        Expr::Rollup(columns) => columns.len() as u64 + 1,
        Expr::GroupingSets(sets) => sets.iter().map(|one| product(one)).fold(0, u64::saturating_add),
        _ => 1,
    }
}

fn cube(columns: usize) -> u64 {
    u32::try_from(columns).ok().and_then(|columns| 2_u64.checked_pow(columns)).unwrap_or(u64::MAX)
}
