//! LATERAL: what stands beside the tables of a FROM and is made of their rows.
//!
//! A function that gives rows is unfolded (`unfold`). A query without FROM is columns beside the rows. One over tables is a join with
//! them. One that is aggregates alone has one row, whose values are subqueries.

use tributary_lake::datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Join, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, Spanned,
    TableAlias, TableFactor, TableFunctionArgs, TableWithJoins, Value, ValueWithSpan,
};

use crate::alias::renamed;
use crate::ast::{call, quoted};
use crate::rewrite::{Rewriter, refuse_if};
use crate::scope::{Column, Outside, Relation, Scope};
use crate::unfold::{Around, Generator, is_generator, is_rows, wrap, wrap_where};
use crate::{Error, asked, calls, groups, lateral_alias};

/// What stands beside the tables of a FROM.
pub(crate) enum Beside {
    Rows(Box<Generator>),
    Query(Box<Lateral>),
}

/// `LATERAL (query) AS alias`.
pub(crate) struct Lateral {
    query: Query,
    alias: Option<TableAlias>,
    /// Whether a row stays for which it gives none.
    outer: bool,
}

/// Takes what is LATERAL out of a FROM, and a function that gives rows where it stands there alone.
///
/// # Errors
/// [`Error::Refused`] for a table behind it, which a star would bring before it.
pub(crate) fn beside(from: &mut Vec<TableWithJoins>) -> Result<Vec<Beside>, Error> {
    if let [TableWithJoins { relation, joins }] = from.as_mut_slice()
        && joins.is_empty()
        && let Some(generator) = alone(relation)?
    {
        from.clear();
        return Ok(vec![Beside::Rows(Box::new(generator))]);
    }
    let mut found = Vec::new();
    let mut kept: Vec<TableWithJoins> = Vec::with_capacity(from.len());
    for mut item in from.drain(..) {
        if item.joins.is_empty() && !kept.is_empty() && is_lateral(&item.relation) {
            found.push(taken(item.relation, false)?);
            continue;
        }
        if !found.is_empty() {
            let hint = "name what is LATERAL behind all tables";
            return Err(Error::refused_with_hint("a table behind LATERAL", hint, item.relation.span()));
        }
        let mut behind = Vec::new();
        while let Some(outer) = item.joins.last().and_then(joined) {
            if let Some(join) = item.joins.pop() {
                behind.push(taken(join.relation, outer)?);
            }
        }
        found.extend(behind.into_iter().rev());
        kept.push(item);
    }
    *from = kept;
    Ok(found)
}

/// A function that gives rows, in FROM by itself.
fn alone(relation: &TableFactor) -> Result<Option<Generator>, Error> {
    let (name, arguments, alias) = match relation {
        TableFactor::Table { name, args: Some(TableFunctionArgs { args, settings: None }), alias, .. } => (name, args, alias),
        TableFactor::Function { lateral: false, name, args, with_ordinality: false, alias } => (name, args, alias),
        _ => return Ok(None),
    };
    let called = calls::written(name);
    if !is_rows(&called) {
        return Ok(None);
    }
    generator(&called, arguments.clone(), alias.clone(), false).map(Some)
}

fn is_lateral(relation: &TableFactor) -> bool {
    matches!(
        relation,
        TableFactor::Function { lateral: true, with_ordinality: false, .. } | TableFactor::Derived { lateral: true, sample: None, .. }
    )
}

/// Whether a join with what is LATERAL keeps rows without a partner; nothing of another join.
fn joined(join: &Join) -> Option<bool> {
    let is_true = |expression: &Expr| matches!(expression, Expr::Value(ValueWithSpan { value: Value::Boolean(true), .. }));
    let is_loose = |constraint: &JoinConstraint| match constraint {
        JoinConstraint::None => true,
        JoinConstraint::On(condition) => is_true(condition),
        _ => false,
    };
    match &join.join_operator {
        _ if !is_lateral(&join.relation) || join.global => None,
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) | JoinOperator::CrossJoin(constraint) => {
            is_loose(constraint).then_some(false)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => is_loose(constraint).then_some(true),
        _ => None,
    }
}

fn taken(relation: TableFactor, outer: bool) -> Result<Beside, Error> {
    match relation {
        TableFactor::Function { name, args, alias, .. } => {
            generator(&calls::written(&name), args, alias, outer).map(|generator| Beside::Rows(Box::new(generator)))
        }
        TableFactor::Derived { subquery, alias, .. } => Ok(Beside::Query(Box::new(Lateral { query: *subquery, alias, outer }))),
        other => Err(Error::refused("LATERAL", other.span())),
    }
}

fn generator(name: &str, arguments: Vec<FunctionArg>, alias: Option<TableAlias>, outer: bool) -> Result<Generator, Error> {
    let arguments = arguments.into_iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Ok(expression),
        other => Err(Error::refused("this argument of a function in FROM", other.span())),
    });
    let expression = call(name, arguments.collect::<Result<_, _>>()?);
    let columns = alias.iter().flat_map(|alias| alias.columns.iter().map(|column| column.name.value.clone())).collect();
    Ok(Generator { expression, name: alias.map(|alias| alias.name.value), columns, outer })
}

impl Rewriter<'_> {
    /// Puts a FROM into a query that also gives the columns of what is LATERAL; tells what can be named then.
    pub(crate) fn lateral(
        &self,
        from: &mut Vec<TableWithJoins>,
        relations: Vec<Relation>,
        lateral: Lateral,
        outside: Outside<'_>,
    ) -> Result<Vec<Relation>, Error> {
        let Lateral { mut query, alias, outer } = lateral;
        let span = query.span();
        let refused = |what: &str| {
            let hint = "say a plain SELECT, or aggregates alone, or join the tables";
            Error::refused_with_hint(format!("LATERAL of a query {what}"), hint, span)
        };
        if query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
            return Err(refused("with WITH, ORDER BY or LIMIT"));
        }
        let whole = query.clone();
        let SetExpr::Select(select) = query.body.as_mut() else { return Err(refused("that is no SELECT")) };
        refuse_if(select.distinct.is_some(), "LATERAL of a query with DISTINCT", span)?;
        refuse_if(!select.lateral_views.is_empty(), "LATERAL VIEW in a query that is LATERAL", span)?;
        if let ([item], true) = (select.projection.as_slice(), select.from.is_empty() && select.selection.is_none())
            && is_generator(item)
        {
            let generator = of_item(item.clone(), alias, outer);
            return self.unfold(from, relations, generator, outside);
        }
        let is_row = select.from.is_empty() && select.selection.is_none();
        if outer && !is_row && !is_one_row(select) {
            return Err(refused("that may give no row, by LEFT JOIN"));
        }
        let around = Around::of(&relations);
        let columns = if is_one_row(select) {
            self.row_of_aggregates(from, relations, &whole, select, &around, outside)?
        } else if asked::is_plain(select) && !select.projection.iter().any(has_window) {
            self.rows_beside(from, select, &around, outside)?
        } else {
            return Err(refused("with groups, windows or functions that give rows"));
        };
        let called: Vec<Option<String>> = columns.iter().map(|column| column.called.clone()).collect();
        let columns = match &alias {
            Some(alias) => renamed(alias, columns)?.into_iter().zip(called).map(|(column, called)| Column { called, ..column }).collect(),
            None => columns,
        };
        let mut relations = around.relations;
        let names = alias.map(|alias| alias.name.value).into_iter().collect();
        relations.push(Relation { alias: Some(around.alias), names, columns });
        Ok(relations)
    }

    /// The columns of a query whose one row is made of aggregates.
    fn row_of_aggregates(
        &self,
        from: &mut Vec<TableWithJoins>,
        relations: Vec<Relation>,
        whole: &Query,
        select: &Select,
        around: &Around,
        outside: Outside<'_>,
    ) -> Result<Vec<Column>, Error> {
        let scope = Scope { relations, outside, ..Scope::default() };
        let mut items = around.items.clone();
        let mut columns = Vec::new();
        for item in &select.projection {
            let name = match item {
                SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
                other => other.to_string(),
            };
            let mut one = whole.clone();
            if let SetExpr::Select(select) = one.body.as_mut() {
                select.projection = vec![item.clone()];
            }
            let mut expr = Expr::Subquery(Box::new(one));
            self.expression(&mut expr, &scope)?;
            let called = around.column(items.len());
            items.push(SelectItem::ExprWithAlias { expr, alias: quoted(&called) });
            columns.push(Column { called: Some(called), ..Column::new(name, None) });
        }
        wrap(from, items, &around.alias)?;
        Ok(columns)
    }

    /// The columns of a query of as many rows as its tables, joined with those around it, come to.
    fn rows_beside(
        &self,
        from: &mut Vec<TableWithJoins>,
        select: &mut Select,
        around: &Around,
        outside: Outside<'_>,
    ) -> Result<Vec<Column>, Error> {
        wrap(from, around.items.clone(), &around.alias)?;
        let outer = Scope { relations: around.relations.clone(), outside, ..Scope::default() };
        // a query within this one's FROM names nothing of the rows
        let inner = self.from(&mut select.from, outside)?;
        let scope = Scope { relations: inner, outside: Outside { named: outside.named, outer: Some(&outer) }, ..Scope::default() };
        lateral_alias::spell(&mut select.projection, &scope)?;
        let outputs = self.projection(&mut select.projection, &scope)?;
        if let Some(condition) = &mut select.selection {
            asked::in_condition(condition)?;
            self.expression(condition, &scope)?;
        }
        let mut items = around.renamed();
        let mut columns = Vec::new();
        for (item, column) in select.projection.drain(..).zip(outputs) {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
                return Err(Error::refused("this item of LATERAL", item.span()));
            };
            let called = around.column(items.len());
            items.push(SelectItem::ExprWithAlias { expr, alias: quoted(&called) });
            columns.push(Column { called: Some(called), said: None, ..column });
        }
        from.append(&mut select.from);
        wrap_where(from, items, select.selection.take(), &around.alias)?;
        Ok(columns)
    }
}

/// A function that gives rows, alone in the select list of a query that is LATERAL.
fn of_item(item: SelectItem, alias: Option<TableAlias>, outer: bool) -> Generator {
    let (expression, own) = match item {
        SelectItem::ExprWithAlias { expr, alias } => (expr, vec![alias.value]),
        SelectItem::ExprWithAliases { expr, aliases } => (expr, aliases.into_iter().map(|alias| alias.value).collect()),
        SelectItem::UnnamedExpr(expr) => (expr, Vec::new()),
        other => (Expr::Value(Value::SingleQuotedString(other.to_string()).with_empty_span()), Vec::new()),
    };
    let given = alias.iter().flat_map(|alias| alias.columns.iter().map(|column| column.name.value.clone())).collect::<Vec<_>>();
    let columns = if given.is_empty() { own } else { given };
    Generator { expression, name: alias.map(|alias| alias.name.value), columns, outer }
}

/// Whether a query is aggregates and nothing else, which has one row.
fn is_one_row(select: &Select) -> bool {
    let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(expressions, _) if expressions.is_empty());
    let is_aggregate = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => {
            groups::of_all(std::slice::from_ref(item)).is_ok_and(|groups| groups.is_empty())
        }
        _ => false,
    };
    ungrouped && select.having.is_none() && select.qualify.is_none() && select.projection.iter().all(is_aggregate)
}

fn has_window(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => lateral_alias::has_window(expression),
        _ => false,
    }
}
