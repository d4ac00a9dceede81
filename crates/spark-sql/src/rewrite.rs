//! Walks a statement clause by clause. A clause that is not handled here is refused: every part of the tree is taken apart by
//! name, so that a part the parser learns later is a compile error and not a clause that is ignored.

use tributary_lake::datafusion::sql::sqlparser::ast::{
    Cte, Distinct, Expr, GroupByExpr, Ident, LimitClause, NamedWindowDefinition, NamedWindowExpr, OrderBy, OrderByExpr, OrderByKind, Query,
    Select, SelectFlavor, SelectItem, SetExpr, SetOperator, SetQuantifier, Spanned, Statement, Values,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::alias::{name_columns_of_values, renamed};
use crate::lateral::Beside;
use crate::scope::{Column, Named, Outside, Relation, Scope};
use crate::stars::{self, Brought};
use crate::tables::Tables;
use crate::unfold::{self, Generator};
use crate::{Error, asked, groups, lateral, lateral_alias, literal, misplaced, twice};

/// Rewrites a statement for the engine: names spelled, tables as they are registered, meanings made explicit.
/// Tells the columns of a query.
pub(crate) fn statement(statement: &mut Statement, rewriter: &Rewriter<'_>) -> Result<Vec<Column>, Error> {
    match statement {
        Statement::Query(query) => rewriter.query(query, Outside::default()),
        Statement::Explain { statement, .. } => self::statement(statement, rewriter),
        other => Err(Error::refused("this statement", other.span())),
    }
}

/// What a text may name besides its own names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rewriter<'t> {
    /// Its tables.
    pub tables: &'t Tables,
    /// Functions that the program brought, by name.
    pub own: &'t [String],
    /// Whether other versions of a table than the latest may be read, and changes.
    pub travels: bool,
}

/// Refuses a clause that is there.
pub(crate) fn refuse_if(there: bool, what: &str, span: Span) -> Result<(), Error> {
    if there { Err(Error::refused(what, span)) } else { Ok(()) }
}

impl Rewriter<'_> {
    /// Rewrites a query and tells the columns it gives.
    pub(crate) fn query(&self, query: &mut Query, outside: Outside<'_>) -> Result<Vec<Column>, Error> {
        let span = query.span();
        let Query { with, body, order_by, limit_clause, fetch, locks, for_clause, settings, format_clause, pipe_operators } = query;
        refuse_if(fetch.is_some(), "the clause FETCH", span)?;
        refuse_if(!locks.is_empty(), "the clause FOR UPDATE", span)?;
        refuse_if(for_clause.is_some(), "the clause FOR", span)?;
        refuse_if(settings.is_some(), "the clause SETTINGS", span)?;
        refuse_if(format_clause.is_some(), "the clause FORMAT", span)?;
        refuse_if(!pipe_operators.is_empty(), "the pipe |>", span)?;
        let mut named = outside.named.to_vec();
        if let Some(with) = with {
            refuse_if(with.recursive, "WITH RECURSIVE", with.span())?;
            for cte in &mut with.cte_tables {
                let one = self.common_table_expression(cte, Outside { named: &named, ..outside })?;
                named.push(one);
            }
        }
        let outside = Outside { named: &named, ..outside };
        let (relations, outputs) = self.body(body, outside)?;
        if let Some(order_by) = order_by {
            let scope = Scope { relations, outputs: outputs.clone(), outputs_first: true, outside };
            self.order_by(order_by, &scope)?;
        }
        if let Some(limit) = limit_clause {
            self.limit(limit)?;
        }
        Ok(outputs)
    }

    fn common_table_expression(&self, cte: &mut Cte, outside: Outside<'_>) -> Result<Named, Error> {
        let Cte { alias, query, from, materialized, closing_paren_token: _ } = cte;
        let span = alias.name.span;
        refuse_if(from.is_some(), "FROM in WITH", span)?;
        refuse_if(materialized.is_some(), "the hint MATERIALIZED", span)?;
        let columns = self.query(query, outside)?;
        name_columns_of_values(query, alias);
        let name = alias.name.value.clone();
        Ok(Named { name, columns: renamed(alias, columns)? })
    }

    /// The relations a following ORDER BY can still name, and the columns of the body.
    fn body(&self, body: &mut SetExpr, outside: Outside<'_>) -> Result<(Vec<Relation>, Vec<Column>), Error> {
        match body {
            SetExpr::Select(select) => self.select(select, outside),
            SetExpr::Query(query) => Ok((Vec::new(), self.query(query, outside)?)),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let span = left.span();
                if *op == SetOperator::Minus {
                    *op = SetOperator::Except;
                }
                match (&*op, &*set_quantifier) {
                    (SetOperator::Union, SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None)
                    | (SetOperator::Except | SetOperator::Intersect, SetQuantifier::Distinct | SetQuantifier::None) => {}
                    (op @ (SetOperator::Except | SetOperator::Intersect), SetQuantifier::All) => {
                        return Err(Error::refused_with_hint(format!("{op} ALL"), "the engine does not count equal rows", span));
                    }
                    (op, quantifier) => return Err(Error::refused(format!("{op} {quantifier}"), span)),
                }
                let (_, outputs) = self.body(left, outside)?;
                self.body(right, outside)?;
                Ok((Vec::new(), outputs))
            }
            SetExpr::Values(values) => self.values(values, outside),
            other => {
                let text = other.to_string();
                let word = text.split_whitespace().next().unwrap_or_default().to_owned();
                Err(Error::refused(format!("{word} as a query"), other.span()))
            }
        }
    }

    fn values(&self, values: &mut Values, outside: Outside<'_>) -> Result<(Vec<Relation>, Vec<Column>), Error> {
        let Values { explicit_row, value_keyword, rows } = values;
        refuse_if(*explicit_row || *value_keyword, "ROW in VALUES", Span::empty())?;
        let scope = Scope { outside, ..Scope::default() };
        for expression in rows.iter_mut().flat_map(|row| row.content.iter_mut()) {
            self.expression(expression, &scope)?;
        }
        let width = rows.first().map_or(0, |row| row.content.len());
        Ok((Vec::new(), (1..=width).map(|position| Column::new(format!("col{position}"), None)).collect()))
    }

    fn select(&self, select: &mut Select, outside: Outside<'_>) -> Result<(Vec<Relation>, Vec<Column>), Error> {
        let span = select.select_token.0.span;
        let Select {
            select_token: _,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        // hints change nothing of what is answered
        optimizer_hints.clear();
        refuse_if(matches!(distinct, Some(Distinct::On(_))), "DISTINCT ON", span)?;
        refuse_if(select_modifiers.is_some(), "a modifier of SELECT", span)?;
        refuse_if(top.is_some(), "the clause TOP", span)?;
        refuse_if(exclude.is_some(), "the clause EXCLUDE", span)?;
        refuse_if(into.is_some(), "the clause INTO", span)?;
        refuse_if(prewhere.is_some(), "the clause PREWHERE", span)?;
        refuse_if(!connect_by.is_empty(), "the clause CONNECT BY", span)?;
        refuse_if(!cluster_by.is_empty(), "the clause CLUSTER BY", span)?;
        refuse_if(!distribute_by.is_empty(), "the clause DISTRIBUTE BY", span)?;
        refuse_if(!sort_by.is_empty(), "the clause SORT BY", span)?;
        refuse_if(value_table_mode.is_some(), "SELECT AS", span)?;
        refuse_if(!matches!(flavor, SelectFlavor::Standard), "FROM before SELECT", span)?;

        let mut beside = lateral::beside(from)?;
        beside.extend(lateral_views.drain(..).map(|view| Beside::Rows(Box::new(Generator::from(view)))));
        let mut relations = self.from(from, outside)?;
        for one in beside {
            relations = match one {
                Beside::Rows(generator) => self.unfold(from, relations, *generator, outside)?,
                Beside::Query(query) => self.lateral(from, relations, *query, outside)?,
            };
        }
        for generator in unfold::in_projection(projection)? {
            relations = self.unfold(from, relations, generator, outside)?;
        }
        let scope = Scope { relations, outside, ..Scope::default() };
        lateral_alias::spell(projection, &scope)?;
        if matches!(group_by, GroupByExpr::All(_)) {
            *group_by = GroupByExpr::Expressions(groups::of_all(projection)?, Vec::new());
        }
        misplaced::named_windows_are_ordered(projection, named_window)?;
        misplaced::named_windows_are_ordered(qualify, named_window)?;
        let outputs = self.projection(projection, &scope)?;
        if let Some(condition) = selection {
            misplaced::no_window_in("WHERE", condition)?;
            asked::in_condition(condition)?;
            self.expression(condition, &scope)?;
        }
        let scope = Scope { outputs, ..scope };
        self.group_by(group_by, &scope)?;
        if let Some(condition) = &having {
            misplaced::no_window_in("HAVING", condition)?;
        }
        for condition in [having, qualify].into_iter().flatten() {
            self.expression(condition, &scope)?;
        }
        for NamedWindowDefinition(name, window) in named_window {
            match window {
                NamedWindowExpr::WindowSpec(window) => self.window(window, &scope)?,
                NamedWindowExpr::NamedWindow(_) => return Err(Error::refused("a window that is another window", name.span)),
            }
        }
        Ok((scope.relations, scope.outputs))
    }

    pub(crate) fn projection(&self, projection: &mut Vec<SelectItem>, scope: &Scope<'_>) -> Result<Vec<Column>, Error> {
        let mut outputs = Vec::new();
        let mut items = Vec::with_capacity(projection.len());
        for mut item in projection.drain(..) {
            if let Some(Brought { items: brought, columns }) = stars::brought(&item, scope)? {
                items.extend(brought);
                outputs.extend(columns);
                continue;
            }
            let column = self.single_generator(&mut item, scope)?;
            outputs.push(column.map_or_else(|| self.item(&mut item, scope), Ok)?);
            items.push(item);
        }
        twice::told_apart(&mut items, &mut outputs);
        *projection = items;
        Ok(outputs)
    }

    /// An item of a select list that is one column.
    fn item(&self, item: &mut SelectItem, scope: &Scope<'_>) -> Result<Column, Error> {
        match item {
            SelectItem::UnnamedExpr(expression) => {
                let text = expression.to_string();
                asked::as_values(expression, self, scope)?;
                let column = self.expression(expression, scope)?;
                let column = column.map_or_else(|| Column::new(text, None), |column| Column::new(column.name, column.data_type));
                if !is_plain_column(expression, &column) {
                    *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: Ident::new(&column.name) };
                }
                Ok(column)
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                asked::as_values(expr, self, scope)?;
                let data_type = self.expression(expr, scope)?.and_then(|column| column.data_type);
                Ok(Column::new(&alias.value, data_type))
            }
            SelectItem::ExprWithAliases { expr, .. } => Err(Error::refused("several names for one expression", expr.span())),
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => Err(Error::refused("a star here", item.span())),
        }
    }

    fn group_by(&self, group_by: &mut GroupByExpr, scope: &Scope<'_>) -> Result<(), Error> {
        match group_by {
            GroupByExpr::All(_) => Err(Error::refused_with_hint("GROUP BY ALL", "name the columns", group_by.span())),
            GroupByExpr::Expressions(expressions, modifiers) => {
                groups::fold(expressions, modifiers)?;
                for expression in expressions {
                    match expression {
                        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                            let named = sets.iter_mut().flatten().filter(|expression| !literal::is_place(expression));
                            named.into_iter().try_for_each(|expression| self.expression(expression, scope).map(drop))?;
                        }
                        expression if literal::is_place(expression) => {}
                        expression => {
                            misplaced::no_window_in("GROUP BY", expression)?;
                            let span = expression.span();
                            misplaced::is_grouped(self.expression(expression, scope)?.as_ref(), span)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn order_by(&self, order_by: &mut OrderBy, scope: &Scope<'_>) -> Result<(), Error> {
        let span = order_by.span();
        let OrderBy { kind, interpolate } = order_by;
        refuse_if(interpolate.is_some(), "the clause INTERPOLATE", span)?;
        match kind {
            OrderByKind::All(_) => Err(Error::refused_with_hint("ORDER BY ALL", "name the columns", span)),
            OrderByKind::Expressions(expressions) => {
                groups::order_by_all(expressions, scope);
                let named = expressions.iter_mut().filter(|one| !literal::is_place(&one.expr));
                named.into_iter().try_for_each(|expression| self.order_by_one(expression, scope))
            }
        }
    }

    pub(crate) fn order_by_one(&self, order_by: &mut OrderByExpr, scope: &Scope<'_>) -> Result<(), Error> {
        let OrderByExpr { expr, options: _, with_fill } = order_by;
        refuse_if(with_fill.is_some(), "the clause WITH FILL", expr.span())?;
        self.expression(expr, scope).map(drop)
    }

    fn limit(&self, limit: &mut LimitClause) -> Result<(), Error> {
        let scope = Scope::default();
        match limit {
            LimitClause::LimitOffset { limit, offset, limit_by } => {
                refuse_if(!limit_by.is_empty(), "the clause LIMIT BY", Span::empty())?;
                let counts = limit.iter_mut().map(|limit| ("LIMIT", limit));
                for (clause, expression) in counts.chain(offset.as_mut().map(|offset| ("OFFSET", &mut offset.value))) {
                    misplaced::is_count(clause, expression)?;
                    if !literal::is_place(expression) {
                        self.expression(expression, &scope)?;
                    }
                }
                Ok(())
            }
            LimitClause::OffsetCommaLimit { .. } => Err(Error::refused_with_hint("LIMIT a, b", "say LIMIT b OFFSET a", Span::empty())),
        }
    }
}

/// Whether the engine gives the expression the column's own name.
fn is_plain_column(expression: &Expr, column: &Column) -> bool {
    match expression {
        Expr::Identifier(ident) => ident.value == column.name,
        Expr::CompoundIdentifier(parts) => parts.len() == 2 && parts[1].value == column.name,
        _ => false,
    }
}
