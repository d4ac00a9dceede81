//! EXISTS and IN of a query where the engine has them not: as values of a select list, and of rows of several values.
//!
//! The engine answers them where they are conditions on rows. As values they are counted: a count of the rows that fit says whether
//! there are any, and a count of nulls whether there might be. Rows of several values are compared as the dialect does, in a list as
//! structs, whose nulls are equal, and with a query value by value, where a null is not known.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use tributary_lake::datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Function, GroupByExpr, Ident, Query, Select, SelectItem, SetExpr, Spanned, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, UnaryOperator, Visit, VisitMut, Visitor, VisitorMut,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{and, boolean, number, or, quoted};
use crate::lateral_alias::has_window;
use crate::rewrite::Rewriter;
use crate::scope::{Outside, Scope};
use crate::unfold::template;
use crate::{Error, ast, functions, groups, unfold};

/// The name of the rows of a query that IN looks into; no text can name it.
pub(crate) const ROWS: &str = "\u{1}rows of IN";

/// Says EXISTS and IN of a select list otherwise.
///
/// # Errors
/// [`Error::Refused`] for a query whose rows cannot be counted.
pub(crate) fn as_values(expression: &mut Expr, rewriter: &Rewriter<'_>, scope: &Scope<'_>) -> Result<(), Error> {
    struct Values<'a> {
        rewriter: &'a Rewriter<'a>,
        scope: &'a Scope<'a>,
        queries: usize,
        /// Calls around the place that are computed of groups or windows.
        gathering: usize,
    }
    impl VisitorMut for Values<'_> {
        type Break = Error;

        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
            match expression {
                Expr::UnaryOp { op: UnaryOperator::Not, expr } if self.queries == 0 && looks_into(expr) => {
                    *expression = Expr::Nested(Box::new(opposite(expr)));
                }
                Expr::Function(function) => self.gathering += usize::from(gathers(function)),
                _ => {}
            }
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
            if let Expr::Function(function) = &*expression {
                self.gathering -= usize::from(gathers(function));
            }
            if self.queries > 0 {
                return ControlFlow::Continue(());
            }
            let said = match &*expression {
                Expr::Exists { subquery, .. } | Expr::InSubquery { subquery, .. } if self.gathering > 0 => {
                    let hint = "compute it in a query within FROM";
                    Err(Error::refused_with_hint("EXISTS or IN of a query in an aggregate or a window", hint, subquery.span()))
                }
                Expr::Exists { subquery, negated } => exists(subquery, *negated),
                Expr::InSubquery { expr, subquery, negated } => within(expr, subquery, *negated, self.rewriter, self.scope),
                _ => return ControlFlow::Continue(()),
            };
            match said {
                Ok(said) => *expression = said,
                Err(error) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        }
    }
    match expression.visit(&mut Values { rewriter, scope, queries: 0, gathering: 0 }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn gathers(function: &Function) -> bool {
    function.over.is_some() || functions::is_aggregate(&function.name.to_string().to_lowercase())
}

/// Whether a condition comes to IN of a query by nothing but AND, OR and NOT.
fn looks_into(condition: &Expr) -> bool {
    match condition {
        Expr::InSubquery { .. } => true,
        Expr::Nested(inside) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inside } => looks_into(inside),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => looks_into(left) || looks_into(right),
        _ => false,
    }
}

/// The opposite of a condition, NOT being said of its parts: as the dialect has it, NOT of IN is NOT IN, which null does not make true.
fn opposite(condition: &Expr) -> Expr {
    match condition {
        Expr::InSubquery { expr, subquery, negated } => {
            Expr::InSubquery { expr: expr.clone(), subquery: subquery.clone(), negated: !negated }
        }
        Expr::Nested(inside) => opposite(inside),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Expr::Nested(expr.clone()),
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } if looks_into(condition) => {
            let op = if *op == BinaryOperator::And { BinaryOperator::Or } else { BinaryOperator::And };
            let [left, right] = [left, right].map(|side| Box::new(Expr::Nested(Box::new(opposite(side)))));
            Expr::BinaryOp { left, op, right }
        }
        other => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(other.clone()))) },
    }
}

/// Says IN of rows of several values otherwise, in a condition on rows: also with a query, where it must hold by itself.
///
/// # Errors
/// As [`of_a_list`].
pub(crate) fn in_condition(condition: &mut Expr) -> Result<(), Error> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            in_condition(left)?;
            in_condition(right)
        }
        Expr::Nested(inside) => in_condition(inside),
        Expr::InSubquery { expr, subquery, negated } => match row(expr) {
            Some(values) => {
                *condition = among(values, subquery, *negated)?;
                Ok(())
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The values of a row of several.
fn row(expression: &Expr) -> Option<&[Expr]> {
    match expression {
        Expr::Tuple(values) => Some(values),
        _ => None,
    }
}

/// `(a, b) [NOT] IN ((1, 2), (3, 4))`; nothing of one value.
///
/// # Errors
/// [`Error::Refused`] for rows of other numbers of values.
pub(crate) fn of_a_list(of: &Expr, list: &[Expr], negated: bool, span: Span) -> Result<Option<Expr>, Error> {
    let Some(values) = row(of) else { return Ok(None) };
    let one = |other: &Expr| match row(other) {
        Some(others) if others.len() == values.len() => {
            let equal = values.iter().zip(others).map(|(a, b)| Expr::IsNotDistinctFrom(Box::new(a.clone()), Box::new(b.clone())));
            Ok(equal.reduce(and).unwrap_or_else(|| boolean(true)))
        }
        _ => Err(Error::refused_with_hint("IN of rows of different widths", format!("say {} values in each", values.len()), span)),
    };
    let any = list.iter().map(one).collect::<Result<Vec<_>, _>>()?.into_iter().reduce(or).unwrap_or_else(|| boolean(false));
    let any = Expr::Nested(Box::new(any));
    Ok(Some(if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) } } else { any }))
}

/// A condition that some row of a query is this one, or that none is or might be.
fn among(values: &[Expr], subquery: &Query, negated: bool) -> Result<Expr, Error> {
    let names: Vec<String> = (1..=values.len()).map(|at| format!("\u{1}{at}")).collect();
    let equal = values.iter().zip(&names).map(|(value, name)| equals(value, name)).reduce(and).unwrap_or_else(|| boolean(true));
    let condition = if negated { Expr::IsNotFalse(Box::new(Expr::Nested(Box::new(equal)))) } else { equal };
    let rows = rows(subquery, &names, vec![SelectItem::UnnamedExpr(number("1"))], Some(condition))?;
    Ok(Expr::Exists { subquery: Box::new(rows), negated })
}

fn equals(value: &Expr, name: &str) -> Expr {
    let value = Expr::Nested(Box::new(value.clone()));
    Expr::BinaryOp { left: Box::new(value), op: BinaryOperator::Eq, right: Box::new(Expr::Identifier(quoted(name))) }
}

/// `SELECT items FROM (query) AS rows (names) WHERE condition`.
fn rows(query: &Query, names: &[String], items: Vec<SelectItem>, condition: Option<Expr>) -> Result<Query, Error> {
    let Some(mut outside) = template() else { return Err(Error::refused("IN of a query", query.span())) };
    if let SetExpr::Select(select) = outside.body.as_mut() {
        let select: &mut Select = select;
        let columns = names.iter().map(|name| TableAliasColumnDef { name: quoted(name), data_type: None }).collect();
        let alias = TableAlias { explicit: true, name: Ident::with_quote('`', ROWS), columns, at: None };
        let relation = TableFactor::Derived { lateral: false, subquery: Box::new(query.clone()), alias: Some(alias), sample: None };
        select.projection = items;
        select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
        select.selection = condition;
    }
    Ok(outside)
}

fn count() -> SelectItem {
    SelectItem::ExprWithAlias { expr: ast::count(), alias: quoted("n") }
}

fn some(query: Query) -> Expr {
    Expr::BinaryOp { left: Box::new(Expr::Subquery(Box::new(query))), op: BinaryOperator::Gt, right: Box::new(number("0")) }
}

/// EXISTS as a value: whether the query has rows that count.
fn exists(subquery: &Query, negated: bool) -> Result<Expr, Error> {
    let mut counted = subquery.clone();
    counted.order_by = None;
    let plain = counted.limit_clause.is_none();
    match counted.body.as_mut() {
        SetExpr::Select(select) if plain && is_plain(select) => {
            let select: &mut Select = select;
            select.projection = vec![count()];
        }
        _ => {
            let hint = "its rows cannot be counted as they are: join it, or say EXISTS in WHERE";
            return Err(Error::refused_with_hint("EXISTS of this query in a select list", hint, subquery.span()));
        }
    }
    let some = Expr::Nested(Box::new(some(counted)));
    Ok(if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(some) } } else { some })
}

/// Whether as many rows come of a query as go in.
pub(crate) fn is_plain(select: &Select) -> bool {
    let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(expressions, _) if expressions.is_empty());
    let all = !matches!(select.distinct, Some(Distinct::On(_)));
    ungrouped && all && select.having.is_none() && select.qualify.is_none() && !select.projection.iter().any(changes_rows)
}

/// Whether an item of a select list makes one row of many, or many of one.
fn changes_rows(item: &SelectItem) -> bool {
    let of_many = || groups::of_all(std::slice::from_ref(item)).map_or(true, |groups| groups.is_empty());
    unfold::is_generator(item) || (!is_star(item) && of_many())
}

fn is_star(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Queries of IN and EXISTS within each other in a select list at most: each is looked into several times.
const WITHIN_MAX: usize = 4;

/// `a [NOT] IN (query)` as a value, which is never null: as the dialect has it, what might be in is not told to be in, nor not to be in.
fn within(of: &Expr, subquery: &Query, negated: bool, rewriter: &Rewriter<'_>, scope: &Scope<'_>) -> Result<Expr, Error> {
    let refuse = |what: &str, hint: &str| Err(Error::refused_with_hint(what, hint, subquery.span()));
    if row(of).is_some() {
        return refuse("IN of this query in a select list", "rows of several values are looked for in WHERE");
    }
    if has_window(of) {
        return refuse("IN of a query for a window's value", "say the window in a subquery");
    }
    if depth(subquery) > WITHIN_MAX {
        return refuse("IN of a query within so many others in a select list", "say some of them in a query within FROM");
    }
    let (equal, null_there, there) = match names_rows(subquery, rewriter, scope)? {
        false => {
            let names = ["\u{1}1".to_owned()];
            let counted = |condition| rows(subquery, &names, vec![count()], condition).map(some);
            let null_there = Expr::IsNull(Box::new(Expr::Identifier(quoted(&names[0]))));
            (counted(Some(equals(of, &names[0])))?, counted(Some(null_there))?, counted(None)?)
        }
        true => {
            let Some((counted, value)) = flat(subquery) else {
                let hint = "say it of a plain SELECT of one column, or in WHERE";
                return refuse("IN of a query that names columns of the query around it, in a select list", hint);
            };
            let of = qualified(of, subquery, scope)?;
            let equal = Expr::BinaryOp { left: Box::new(value.clone()), op: BinaryOperator::Eq, right: Box::new(of) };
            (some(counted(Some(equal))), some(counted(Some(Expr::IsNull(Box::new(value))))), some(counted(None)))
        }
    };
    if !negated {
        return Ok(Expr::Nested(Box::new(equal)));
    }
    // a null, here or there, might be the other
    let of_null = Expr::IsNull(Box::new(Expr::Nested(Box::new(of.clone()))));
    let might_be = or(or(equal, null_there), and(of_null, there));
    Ok(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(might_be) })
}

/// How many queries stand within each other.
fn depth(query: &Query) -> usize {
    struct Depth(usize, usize);
    impl Visitor for Depth {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 += 1;
            self.1 = self.1.max(self.0);
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
    }
    let mut depth = Depth(0, 0);
    let _ = query.visit(&mut depth);
    depth.1
}

/// Whether a subquery names columns of the query around it.
fn names_rows(subquery: &Query, rewriter: &Rewriter<'_>, scope: &Scope<'_>) -> Result<bool, Error> {
    let alone = Outside { named: scope.outside.named, outer: None };
    if rewriter.query(&mut subquery.clone(), alone).is_ok() {
        return Ok(false);
    }
    rewriter.query(&mut subquery.clone(), scope.of_subquery()).map(|_| true)
}

/// A plain select of one column as the count of its rows that also meet a condition, and that column; none of another query.
fn flat(subquery: &Query) -> Option<(impl Fn(Option<Expr>) -> Query + '_, Expr)> {
    let SetExpr::Select(select) = subquery.body.as_ref() else { return None };
    let is_flat = subquery.with.is_none() && subquery.limit_clause.is_none() && subquery.fetch.is_none() && is_plain(select);
    let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] = select.projection.as_slice() else {
        return None;
    };
    let counted = move |condition: Option<Expr>| {
        let mut query = subquery.clone();
        query.order_by = None;
        if let SetExpr::Select(select) = query.body.as_mut() {
            let select: &mut Select = select;
            select.distinct = None;
            select.projection = vec![count()];
            let own = select.selection.take().map(|own| Expr::Nested(Box::new(own)));
            let condition = condition.map(|condition| Expr::Nested(Box::new(condition)));
            select.selection = own.into_iter().chain(condition).reduce(and);
        }
        query
    };
    is_flat.then(|| (counted, Expr::Nested(Box::new(value.clone()))))
}

/// A value with the names of its relations, so that it means the same within a query.
fn qualified(of: &Expr, subquery: &Query, scope: &Scope<'_>) -> Result<Expr, Error> {
    struct Names<'a> {
        scope: &'a Scope<'a>,
        inner: BTreeSet<String>,
    }
    impl VisitorMut for Names<'_> {
        type Break = Error;

        fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
            let parts = match &*expression {
                Expr::Identifier(name) => vec![name.clone()],
                Expr::CompoundIdentifier(parts) => parts.clone(),
                _ => return ControlFlow::Continue(()),
            };
            let relation = self.scope.spot(&parts).map(|(relation, _)| &self.scope.relations[relation]);
            match relation.and_then(|relation| relation.names.last()) {
                Some(name) if !self.inner.contains(&name.to_lowercase()) => {
                    if !parts.iter().rev().skip(1).any(|part| part.value.eq_ignore_ascii_case(name)) {
                        *expression = Expr::CompoundIdentifier([quoted(name)].into_iter().chain(parts).collect());
                    }
                    ControlFlow::Continue(())
                }
                _ => {
                    let hint = "give each table a name of its own";
                    let what = "IN of a query that names columns of the query around it, for a value of this name";
                    ControlFlow::Break(Error::refused_with_hint(what, hint, expression.span()))
                }
            }
        }
    }
    let mut told = of.clone();
    let inner = tables_of(subquery);
    match VisitMut::visit(&mut told, &mut Names { scope, inner }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(Expr::Nested(Box::new(told))),
    }
}

/// What the tables of a query are called, in lower case.
fn tables_of(query: &Query) -> BTreeSet<String> {
    struct Tables(BTreeSet<String>);
    impl Visitor for Tables {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            let name = match factor {
                TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
                    Some(alias.name.value.clone())
                }
                TableFactor::Table { name, .. } => name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone()),
                _ => None,
            };
            self.0.extend(name.map(|name| name.to_lowercase()));
            ControlFlow::Continue(())
        }
    }
    let mut tables = Tables(BTreeSet::new());
    let _ = query.visit(&mut tables);
    tables.0
}
