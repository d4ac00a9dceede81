//! Functions that give rows: LATERAL VIEW, `LATERAL explode(…)` after a comma or a join, alone in FROM, and alone in a select list.
//!
//! The engine unfolds a list in a select list only. So what stands in FROM becomes a query of its own, whose columns have names of
//! their own, with the list unfolded beside them; the names of the text stand for those.

use tributary_lake::datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, LateralView, Query, Select, SelectItem, SetExpr,
    Spanned, TableAlias, TableFactor, TableWithJoins, Value, ValueWithSpan,
};
use tributary_lake::datafusion::sql::sqlparser::dialect::DatabricksDialect;
use tributary_lake::datafusion::sql::sqlparser::parser::Parser;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{call, quoted, text};
use crate::pivot::by_number;
use crate::rewrite::{Rewriter, refuse_if};
use crate::scope::{Column, Outside, Relation, Scope};
use crate::{Error, literal};

/// The name of what a select list unfolds; no text can name it.
pub(crate) const IN_PROJECTION: &str = "\u{1}of the select list";

/// A function that gives rows, and what its rows are called.
pub(crate) struct Generator {
    pub expression: Expr,
    pub name: Option<String>,
    pub columns: Vec<String>,
    /// Whether a row stays for which it gives none.
    pub outer: bool,
}

impl From<LateralView> for Generator {
    fn from(view: LateralView) -> Self {
        let LateralView { lateral_view, lateral_view_name, lateral_col_alias, outer } = view;
        let name = lateral_view_name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone());
        Self { expression: lateral_view, name, columns: lateral_col_alias.into_iter().map(|alias| alias.value).collect(), outer }
    }
}

/// The function of an expression that is nothing but a call of one that gives rows.
fn generator_of(expression: &Expr) -> Option<(&Function, String)> {
    let Expr::Function(function) = expression else { return None };
    let name = crate::calls::written(&function.name);
    is_rows(&name).then_some((function, name))
}

/// Whether the function of a name, in lower case, gives rows.
pub(crate) fn is_rows(name: &str) -> bool {
    matches!(name.trim_end_matches("_outer"), "explode" | "posexplode" | "inline" | "json_tuple") || name == "stack"
}

/// Whether an item of a select list is a function that gives rows.
pub(crate) fn is_generator(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } | SelectItem::ExprWithAliases { expr, .. } => {
            generator_of(expr).is_some()
        }
        _ => false,
    }
}

/// Functions of a select list that give several columns, their names put in their place.
pub(crate) fn in_projection(projection: &mut Vec<SelectItem>) -> Result<Vec<Generator>, Error> {
    let mut generators = Vec::new();
    let mut items = Vec::with_capacity(projection.len());
    for item in projection.drain(..) {
        let (expression, given) = match &item {
            SelectItem::UnnamedExpr(expression) => (expression, Vec::new()),
            SelectItem::ExprWithAlias { expr, alias } => (expr, vec![alias.value.clone()]),
            SelectItem::ExprWithAliases { expr, aliases } => (expr, aliases.iter().map(|alias| alias.value.clone()).collect()),
            _ => {
                items.push(item);
                continue;
            }
        };
        let Some((function, name)) = generator_of(expression) else {
            if let SelectItem::ExprWithAliases { expr, .. } = &item {
                return Err(Error::refused("several names for one expression", expr.span()));
            }
            items.push(item);
            continue;
        };
        let is_single = matches!(name.as_str(), "explode" | "explode_outer") && given.len() <= 1;
        if is_single {
            items.push(item);
            continue;
        }
        let columns = columns(&name, function, given)?;
        refuse_if(!generators.is_empty(), "several functions that give rows in one select list", expression.span())?;
        items.extend(columns.iter().map(|column| {
            let parts = vec![Ident::with_quote('`', IN_PROJECTION), Ident::with_quote('`', column)];
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
        }));
        generators.push(Generator { expression: expression.clone(), name: Some(IN_PROJECTION.to_owned()), columns, outer: false });
    }
    *projection = items;
    Ok(generators)
}

/// What the columns are called that a function gives.
fn columns(name: &str, function: &Function, given: Vec<String>) -> Result<Vec<String>, Error> {
    let arguments = match &function.args {
        FunctionArguments::List(list) => list.args.len(),
        _ => 0,
    };
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let span = function.span();
    let fits = match name.trim_end_matches("_outer") {
        "explode" => (1..=2).contains(&given.len()),
        "posexplode" => (2..=3).contains(&given.len()),
        "json_tuple" => given.len() + 1 == arguments,
        "stack" => given.len() == width(function)?,
        _ => !given.is_empty(),
    };
    match (name.trim_end_matches("_outer"), given.is_empty()) {
        (_, false) if fits => Ok(given),
        (_, false) => Err(Error::refused(format!("so many names for what `{name}` gives"), span)),
        ("explode", true) => Ok(named(&["col"])),
        ("posexplode", true) => Ok(named(&["pos", "col"])),
        ("stack", true) => Ok((0..width(function)?).map(|at| format!("col{at}")).collect()),
        ("json_tuple", true) => Ok((0..arguments.saturating_sub(1)).map(|at| format!("c{at}")).collect()),
        _ => Err(Error::refused_with_hint(format!("`{name}` without names"), "say AS (a, b, …)", span)),
    }
}

/// How many columns `stack` gives.
fn width(function: &Function) -> Result<usize, Error> {
    let FunctionArguments::List(list) = &function.args else { return Err(Error::refused("this form of `stack`", function.span())) };
    let rows = match list.args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))) => literal::whole(value, false),
        _ => None,
    };
    match (rows.and_then(|rows| usize::try_from(rows).ok()).filter(|rows| *rows > 0), list.args.len()) {
        (Some(rows), 2..) => Ok((list.args.len() - 1).div_ceil(rows)),
        (Some(_), _) => Err(Error::refused("`stack` of no values", function.span())),
        (None, _) => Err(Error::refused_with_hint("this number of rows of `stack`", "say a whole number above 0", function.span())),
    }
}

/// What relations are called within a query that also gives other columns: all under names of their own.
pub(crate) struct Around {
    /// The query's name.
    pub alias: String,
    /// What selects the columns.
    pub items: Vec<SelectItem>,
    /// The relations afterwards.
    pub relations: Vec<Relation>,
    depth: usize,
}

impl Around {
    pub(crate) fn of(relations: &[Relation]) -> Self {
        let depth = relations.iter().flat_map(|relation| &relation.columns).filter(|column| column.called.is_some()).count();
        let mut around = Self { alias: format!("unfolded {depth}"), items: Vec::new(), relations: Vec::new(), depth };
        for relation in relations {
            let mut renamed = Vec::new();
            for column in &relation.columns {
                let new = around.column(around.items.len());
                around.items.push(SelectItem::ExprWithAlias { expr: relation.said(column), alias: quoted(&new) });
                renamed.push(Column { called: Some(new), said: None, ..column.clone() });
            }
            around.relations.push(Relation { alias: Some(around.alias.clone()), names: relation.names.clone(), columns: renamed });
        }
        around
    }

    /// The name of a column of the query, by its number.
    pub(crate) fn column(&self, at: usize) -> String {
        format!("unfolded {} {at}", self.depth)
    }

    /// The columns of the relations by their new names.
    pub(crate) fn renamed(&self) -> Vec<SelectItem> {
        (0..self.items.len()).map(|at| SelectItem::UnnamedExpr(Expr::Identifier(quoted(&self.column(at))))).collect()
    }
}

impl Rewriter<'_> {
    /// `explode(list)` with one name or none, alone in a select list: the engine unfolds it there.
    pub(crate) fn single_generator(&self, item: &mut SelectItem, scope: &Scope<'_>) -> Result<Option<Column>, Error> {
        let (expression, name) = match item {
            SelectItem::UnnamedExpr(expression) => (expression, "col".to_owned()),
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value.clone()),
            _ => return Ok(None),
        };
        let Some((function, called)) = generator_of(expression) else { return Ok(None) };
        let [list] =
            self.arguments(function, scope)?.try_into().map_err(|_| Error::refused(format!("this form of `{called}`"), function.span()))?;
        let list = if called.ends_with("_outer") { call("or_nothing", vec![list]) } else { list };
        *item = SelectItem::ExprWithAlias { expr: call("unnest", vec![list]), alias: Ident::new(&name) };
        Ok(Some(Column::new(name, None)))
    }

    fn arguments(&self, function: &Function, scope: &Scope<'_>) -> Result<Vec<Expr>, Error> {
        let FunctionArguments::List(list) = &function.args else {
            return Err(Error::refused(format!("this form of `{}`", function.name), function.span()));
        };
        let one = |argument: &FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => {
                let mut expression = expression.clone();
                self.expression(&mut expression, scope)?;
                Ok(expression)
            }
            other => Err(Error::refused(format!("this argument of `{}`", function.name), other.span())),
        };
        list.args.iter().map(one).collect()
    }

    /// Puts FROM into a query that also unfolds; tells what can be named then.
    pub(crate) fn unfold(
        &self,
        from: &mut Vec<TableWithJoins>,
        relations: Vec<Relation>,
        generator: Generator,
        outside: Outside<'_>,
    ) -> Result<Vec<Relation>, Error> {
        let Generator { expression, name, columns: given, outer } = generator;
        let span = expression.span();
        let Some((function, called)) = generator_of(&expression) else {
            return Err(Error::refused(format!("`{expression}` as rows"), span));
        };
        let outer = outer || called.ends_with("_outer");
        let scope = Scope { relations, outside, ..Scope::default() };
        let mut arguments = self.arguments(function, &scope)?;
        let columns = columns(&called, function, given)?;
        let relations = scope.relations;
        let around = Around::of(&relations);
        let alias = around.alias.clone();
        let first = around.items.len();
        let told: Vec<Column> = columns
            .iter()
            .enumerate()
            .map(|(at, name)| Column { called: Some(around.column(first + at)), ..Column::new(name, None) })
            .collect();
        let mut items = around.items.clone();
        let kind = called.trim_end_matches("_outer");
        if kind == "json_tuple" {
            let of = arguments.remove(0);
            for (field, column) in arguments.iter().zip(&told) {
                let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(field) | Value::DoubleQuotedString(field), .. }) = field
                else {
                    return Err(Error::refused("a name of `json_tuple` that is no literal", span));
                };
                let expr = call("json_at", vec![of.clone(), text(&format!("={field}"))]);
                items.push(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('`', column.called.as_deref().unwrap_or_default()) });
            }
            wrap(from, items, &alias)?;
        } else if kind == "stack" {
            let values = arguments.split_off(1);
            let rows = values.len().div_ceil(told.len().max(1));
            let value = |at: usize| quoted(&format!("{alias} value {at}"));
            let number_of = format!("{alias} number");
            let said = values.into_iter().enumerate().map(|(at, expr)| SelectItem::ExprWithAlias { expr, alias: value(at) });
            let said: Vec<SelectItem> = said.collect();
            let count = said.len();
            items.extend(said);
            items.push(SelectItem::ExprWithAlias { expr: call("unnest", vec![numbers(rows)]), alias: quoted(&number_of) });
            wrap(from, items, &alias)?;
            let mut items = around.renamed();
            for (at, column) in told.iter().enumerate() {
                let values = (0..rows).map(|row| row * told.len() + at).filter(|at| *at < count).map(|at| Expr::Identifier(value(at)));
                let alias = quoted(column.called.as_deref().unwrap_or_default());
                items.push(SelectItem::ExprWithAlias { expr: by_number(&number_of, values), alias });
            }
            wrap(from, items, &alias)?;
        } else {
            let [list] = arguments.try_into().map_err(|_| Error::refused(format!("this form of `{called}`"), span))?;
            let (list, fields): (Expr, Vec<Vec<usize>>) = match (kind, told.len()) {
                ("explode", 1) => (list, vec![Vec::new()]),
                ("explode", _) => (call("map_entries", vec![list]), vec![vec![0], vec![1]]),
                ("posexplode", 2) => (call("positions", vec![list]), vec![vec![0], vec![1]]),
                ("posexplode", _) => (call("positions", vec![call("map_entries", vec![list])]), vec![vec![0], vec![1, 0], vec![1, 1]]),
                (_, several) => (list, (0..several).map(|at| vec![at]).collect()),
            };
            let list = if outer { call("or_nothing", vec![list]) } else { list };
            let whole = format!("{alias} whole");
            items.push(SelectItem::ExprWithAlias { expr: call("unnest", vec![list]), alias: Ident::with_quote('`', &whole) });
            wrap(from, items, &alias)?;
            let mut items = around.renamed();
            for (path, column) in fields.iter().zip(&told) {
                let whole = Expr::Identifier(Ident::with_quote('`', &whole));
                let expr = path.iter().fold(whole, |of, at| call("field_at", vec![of, crate::ast::number(&at.to_string())]));
                items.push(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('`', column.called.as_deref().unwrap_or_default()) });
            }
            wrap(from, items, &alias)?;
        }
        let mut kept = around.relations;
        kept.push(Relation { alias: Some(alias), names: name.into_iter().collect(), columns: told });
        Ok(kept)
    }
}

/// FROM as `(SELECT items FROM …) AS alias`.
pub(crate) fn wrap(from: &mut Vec<TableWithJoins>, items: Vec<SelectItem>, alias: &str) -> Result<(), Error> {
    wrap_where(from, items, None, alias)
}

/// FROM as `(SELECT items FROM … WHERE condition) AS alias`.
pub(crate) fn wrap_where(
    from: &mut Vec<TableWithJoins>,
    items: Vec<SelectItem>,
    condition: Option<Expr>,
    alias: &str,
) -> Result<(), Error> {
    let query = query_of(items, std::mem::take(from), condition, Vec::new())?;
    let alias = TableAlias { explicit: true, name: quoted(alias), columns: Vec::new(), at: None };
    let relation = TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample: None };
    *from = vec![TableWithJoins { relation, joins: Vec::new() }];
    Ok(())
}

/// `SELECT items FROM from WHERE condition GROUP BY groups`.
pub(crate) fn query_of(
    items: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    condition: Option<Expr>,
    groups: Vec<Expr>,
) -> Result<Query, Error> {
    let Some(mut query) = template() else { return Err(Error::refused("this query", Span::empty())) };
    if let SetExpr::Select(select) = query.body.as_mut() {
        let select: &mut Select = select;
        select.projection = items;
        select.from = from;
        select.selection = condition;
        select.group_by = GroupByExpr::Expressions(groups, Vec::new());
    }
    Ok(query)
}

/// A list of the numbers from 0 on, so many.
pub(crate) fn numbers(count: usize) -> Expr {
    call("array", (0..count).map(|at| crate::ast::number(&at.to_string())).collect())
}

/// A query to put clauses into.
pub(crate) fn template() -> Option<Query> {
    let query = Parser::new(&DatabricksDialect).try_with_sql("SELECT 1").ok()?.parse_query().ok()?;
    Some(*query)
}
