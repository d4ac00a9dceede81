//! PIVOT and UNPIVOT: values of rows as columns, and columns as rows.
//!
//! A pivot is one grouping by the columns that neither its aggregates nor FOR name, each aggregate over the rows of one value by FILTER.
//! An unpivot unfolds the numbers of the columns beside each row and chooses by them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use tributary_lake::datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType as Written, Expr, ExprWithAlias, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    NullInclusion, ObjectNamePart, PivotValueSource, Query, SelectItem, Spanned, TableAlias, TableFactor, TableWithJoins, Value,
    ValueWithSpan, Visit, Visitor,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::alias::renamed;
use crate::ast::{and, call, cases, count, number, or, quoted, text};
use crate::rewrite::{Rewriter, refuse_if};
use crate::scope::{Column, Outside, Relation, Scope, same};
use crate::unfold::{numbers, query_of};
use crate::{Error, calls, error, functions, join_keys};

/// Columns that a pivot gives at most.
const COLUMNS_MAX: usize = 5_000;

/// The function that makes the count of no rows null, or keeps it.
pub(crate) const COUNT: &str = "count_of_pivot";

/// Aggregates that tell a number of no rows.
const COUNTS: [&str; 4] = ["approx_count_distinct", "count", "count_if", "regr_count"];

/// Where a column is among relations: the number of its relation, and its own there.
type Spot = (usize, usize);

impl Rewriter<'_> {
    /// `t PIVOT (sum(x) FOR y IN (1 AS a, 2 AS b))`.
    pub(crate) fn pivot(&self, factor: &mut TableFactor, relations: &mut Vec<Relation>, outside: Outside<'_>) -> Result<(), Error> {
        let span = factor.span();
        let TableFactor::Pivot { table, aggregate_functions, value_column, value_source, default_on_null, alias } = factor else {
            return Err(Error::refused("this PIVOT", span));
        };
        refuse_if(default_on_null.is_some(), "DEFAULT ON NULL of PIVOT", span)?;
        let PivotValueSource::List(values) = value_source else {
            return Err(Error::refused_with_hint("PIVOT for values that are not written", "name each of them: IN (a, b, …)", span));
        };
        refuse_if(values.len().saturating_mul(aggregate_functions.len()) > COLUMNS_MAX, "a PIVOT into more than 5000 columns", span)?;
        let mut inside = Vec::new();
        self.factor(table, &mut inside, outside)?;
        let scope = Scope { relations: inside, outside, ..Scope::default() };
        let mut taken = BTreeSet::new();
        for column in value_column.iter() {
            taken.insert(named(column, &scope, "PIVOT FOR")?);
        }
        for ExprWithAlias { expr, .. } in aggregate_functions.iter() {
            is_aggregate(expr)?;
            taken.extend(spots(expr, &scope));
        }

        let mut told: Vec<(String, SelectItem)> = Vec::new();
        for value in values.iter() {
            let of = condition(value_column, &value.expr)?;
            let called = name_of_value(value)?;
            let aggregates = aggregate_functions.iter().map(|one| self.of_value(&one.expr, &of, &scope));
            let aggregates = aggregates.collect::<Result<Vec<Expr>, Error>>()?;
            let seen = self.of_value(&count(), &of, &scope)?;
            for (at, one) in aggregate_functions.iter().enumerate() {
                let name = match (aggregate_functions.len(), &one.alias) {
                    (1, _) => called.clone(),
                    (_, Some(alias)) => format!("{called}_{}", alias.value),
                    (_, None) => format!("{called}_{}", in_words(&one.expr)),
                };
                if told.iter().any(|(other, _)| same(other, &name)) {
                    let what = format!("two columns `{name}` of a PIVOT");
                    return Err(Error::refused_with_hint(what, "give the value another name: AS …", value.expr.span()));
                }
                let expr = match is_count(&one.expr) {
                    true => {
                        let others = aggregates.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other.clone());
                        call(COUNT, [aggregates[at].clone(), seen.clone()].into_iter().chain(others).collect())
                    }
                    false => aggregates[at].clone(),
                };
                told.push((name.clone(), SelectItem::ExprWithAlias { expr, alias: quoted(&name) }));
            }
        }

        let Kept { items, groups, relations: kept } = Kept::of(&scope.relations, &taken, span);
        let columns = told.iter().map(|(name, _)| Column::new(name, None)).collect();
        let items = items.into_iter().chain(told.into_iter().map(|(_, item)| item)).collect();
        let from = vec![TableWithJoins { relation: table.as_ref().clone(), joins: Vec::new() }];
        let query = query_of(items, from, None, groups)?;
        given(factor_of(query, alias.take(), span), kept, columns, factor, relations)
    }

    /// An aggregate over the rows that meet a condition.
    fn of_value(&self, aggregate: &Expr, condition: &Expr, scope: &Scope<'_>) -> Result<Expr, Error> {
        let mut told = aggregate.clone();
        if let Expr::Function(function) = &mut told {
            let filter = match function.filter.take() {
                Some(own) => and(Expr::Nested(own), condition.clone()),
                None => condition.clone(),
            };
            function.filter = Some(Box::new(filter));
        }
        self.expression(&mut told, scope)?;
        Ok(told)
    }

    /// `t UNPIVOT [INCLUDE NULLS] (value FOR name IN (a, b AS c))`.
    pub(crate) fn unpivot(&self, factor: &mut TableFactor, relations: &mut Vec<Relation>, outside: Outside<'_>) -> Result<(), Error> {
        let span = factor.span();
        let TableFactor::Unpivot { table, value, null_inclusion, name, columns, alias } = factor else {
            return Err(Error::refused("this UNPIVOT", span));
        };
        let values = names_of_values(value)?;
        let mut inside = Vec::new();
        self.factor(table, &mut inside, outside)?;
        let scope = Scope { relations: inside, outside, ..Scope::default() };
        let mut sets: Vec<(String, Vec<Spot>)> = Vec::new();
        for ExprWithAlias { expr, alias } in columns.iter() {
            let parts = parts_of(expr);
            if parts.len() != values.len() {
                let what = format!("an UNPIVOT of {} columns for {} names of values", parts.len(), values.len());
                return Err(Error::refused(what, expr.span()));
            }
            let spots = parts.iter().map(|part| named(part, &scope, "UNPIVOT")).collect::<Result<Vec<Spot>, Error>>()?;
            let columns = spots.iter().map(|(relation, column)| scope.relations[*relation].columns[*column].name.as_str());
            let called = alias.as_ref().map_or_else(|| columns.collect::<Vec<_>>().join("_"), |alias| alias.value.clone());
            sets.push((called, spots));
        }
        for place in 0..values.len() {
            let types = sets.iter().map(|(_, spots)| &scope.relations[spots[place].0].columns[spots[place].1]);
            go_together(&types.collect::<Vec<_>>(), span)?;
        }

        // what is there, each column that becomes rows, and the numbers of these
        let taken: BTreeSet<Spot> = sets.iter().flat_map(|(_, spots)| spots.iter().copied()).collect();
        let Kept { mut items, relations: mut kept, .. } = Kept::of(&scope.relations, &taken, span);
        let alias_of_rows = join_keys::unnamed(span);
        let own = |(relation, column): Spot| format!("unpivoted {relation} {column}");
        for spot in &taken {
            let relation = &scope.relations[spot.0];
            let expr = relation.said(&relation.columns[spot.1]);
            items.push(SelectItem::ExprWithAlias { expr, alias: quoted(&own(*spot)) });
        }
        items.push(SelectItem::ExprWithAlias { expr: call("unnest", vec![numbers(sets.len())]), alias: quoted("unpivoted") });
        let from = vec![TableWithJoins { relation: table.as_ref().clone(), joins: Vec::new() }];
        let unfolded = query_of(items, from, None, Vec::new())?;
        let from = vec![TableWithJoins { relation: factor_of(unfolded, None, span), joins: Vec::new() }];

        let of_value = |place: usize| sets.iter().map(move |(_, spots)| Expr::Identifier(quoted(&own(spots[place]))));
        let told: Vec<Expr> = (0..values.len()).map(|place| by_number("unpivoted", of_value(place))).collect();
        let called = by_number("unpivoted", sets.iter().map(|(called, _)| text(called)));
        let mut items: Vec<SelectItem> = Vec::new();
        for relation in &mut kept {
            for column in &mut relation.columns {
                let called = column.called.clone().unwrap_or_else(|| column.name.clone());
                items.push(SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![quoted(&alias_of_rows), quoted(&called)])));
            }
        }
        let there = told.iter().map(|value| Expr::IsNotNull(Box::new(value.clone()))).reduce(or);
        let there = there.filter(|_| !matches!(null_inclusion, Some(NullInclusion::IncludeNulls)));
        items.push(SelectItem::ExprWithAlias { expr: called, alias: name.clone() });
        items.extend(told.into_iter().zip(&values).map(|(expr, alias)| SelectItem::ExprWithAlias { expr, alias: alias.clone() }));
        let columns = std::iter::once(&*name).chain(&values).map(|name| Column::new(&name.value, None)).collect();
        let query = query_of(items, from, there, Vec::new())?;
        given(factor_of(query, alias.take(), span), kept, columns, factor, relations)
    }
}

/// `CASE number WHEN 0 THEN a WHEN 1 THEN b … END`.
pub(crate) fn by_number(number_of: &str, values: impl Iterator<Item = Expr>) -> Expr {
    let branches = values.enumerate().map(|(at, result)| CaseWhen { condition: number(&at.to_string()), result });
    let mut chosen = cases(branches.collect(), None);
    if let Expr::Case { operand, .. } = &mut chosen {
        *operand = Some(Box::new(Expr::Identifier(quoted(number_of))));
    }
    chosen
}

/// The columns of relations that are none of some.
struct Kept {
    items: Vec<SelectItem>,
    /// As the query says them.
    groups: Vec<Expr>,
    /// As they can be named afterwards.
    relations: Vec<Relation>,
}

impl Kept {
    fn of(relations: &[Relation], taken: &BTreeSet<Spot>, span: Span) -> Self {
        let mut kept = Self { items: Vec::new(), groups: Vec::new(), relations: Vec::new() };
        let alias = join_keys::unnamed(span);
        let mut names: Vec<String> = Vec::new();
        for (at, relation) in relations.iter().enumerate() {
            let mut columns = Vec::new();
            for (place, column) in relation.columns.iter().enumerate() {
                if taken.contains(&(at, place)) || !column.starred || !column.bare {
                    continue;
                }
                let said = relation.said(column);
                let twice = names.iter().any(|name| same(name, &column.name));
                let called = twice.then(|| format!("kept {at} {place}"));
                let name = called.clone().unwrap_or_else(|| column.name.clone());
                kept.items.push(SelectItem::ExprWithAlias { expr: said.clone(), alias: quoted(&name) });
                kept.groups.push(said);
                names.push(name);
                columns.push(Column { called, said: None, ..column.clone() });
            }
            kept.relations.push(Relation { alias: Some(alias.clone()), names: relation.names.clone(), columns });
        }
        kept
    }
}

/// Puts a query in the place of a factor; under an alias its columns are of one relation.
fn given(
    made: TableFactor,
    mut kept: Vec<Relation>,
    columns: Vec<Column>,
    factor: &mut TableFactor,
    relations: &mut Vec<Relation>,
) -> Result<(), Error> {
    let TableFactor::Derived { alias: Some(alias), .. } = &made else { return Err(Error::refused("this PIVOT", made.span())) };
    let name = alias.name.value.clone();
    if alias.explicit {
        let all = kept.into_iter().flat_map(|relation| relation.columns).chain(columns).collect();
        let columns = renamed(alias, all)?;
        relations.push(Relation { alias: Some(name.clone()), names: vec![name], columns });
    } else {
        kept.push(Relation { alias: Some(name.clone()), names: Vec::new(), columns });
        relations.append(&mut kept);
    }
    *factor = made;
    Ok(())
}

/// A query as a factor; `explicit` of its alias says whether the text gives it that name.
fn factor_of(query: Query, alias: Option<TableAlias>, span: Span) -> TableFactor {
    let own = TableAlias { explicit: false, name: quoted(&join_keys::unnamed(span)), columns: Vec::new(), at: None };
    let alias = alias.map_or(own, |alias| TableAlias { explicit: true, ..alias });
    TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample: None }
}

/// The column that an expression is.
fn named(expression: &Expr, scope: &Scope<'_>, of: &str) -> Result<Spot, Error> {
    let parts: Vec<Ident> = match expression {
        Expr::Identifier(name) => vec![name.clone()],
        Expr::CompoundIdentifier(parts) => parts.clone(),
        Expr::Nested(inside) => return named(inside, scope, of),
        other => {
            return Err(Error::refused_with_hint(format!("{of} what is no column"), "compute it in a query within FROM", other.span()));
        }
    };
    let found = scope.resolve(&parts)?;
    match scope.spot(&parts) {
        Some(spot) if found.fields.is_empty() => Ok(spot),
        _ => Err(Error::refused_with_hint(format!("{of} what is no column"), "compute it in a query within FROM", expression.span())),
    }
}

/// The columns that an expression names.
fn spots(expression: &Expr, scope: &Scope<'_>) -> BTreeSet<Spot> {
    struct Names<'s>(&'s Scope<'s>, BTreeSet<Spot>);
    impl Visitor for Names<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match expression {
                Expr::Identifier(name) => self.1.extend(self.0.spot(std::slice::from_ref(name))),
                Expr::CompoundIdentifier(parts) => self.1.extend(self.0.spot(parts)),
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(scope, BTreeSet::new());
    let _ = expression.visit(&mut names);
    names.1
}

fn is_aggregate(expression: &Expr) -> Result<(), Error> {
    match expression {
        Expr::Function(Function { name, over: None, .. }) if functions::is_aggregate(&calls::written(name)) => Ok(()),
        other => Err(Error::refused("PIVOT of what is no aggregate", other.span())),
    }
}

fn is_count(expression: &Expr) -> bool {
    matches!(expression, Expr::Function(Function { name, .. }) if COUNTS.contains(&calls::written(name).as_str()))
}

/// What an aggregate without a name is called.
fn in_words(expression: &Expr) -> String {
    let Expr::Function(function) = expression else { return expression.to_string() };
    let mut function = function.clone();
    for part in &mut function.name.0 {
        if let Some(name) = part.as_ident() {
            *part = ObjectNamePart::Identifier(Ident::new(name.value.to_lowercase()));
        }
    }
    if let FunctionArguments::List(list) = &mut function.args {
        for argument in &mut list.args {
            if matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Wildcard)) {
                *argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(number("1")));
            }
        }
    }
    function.to_string()
}

/// Expressions side by side in brackets, or one.
fn parts_of(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Tuple(parts) => parts.iter().collect(),
        Expr::Nested(inside) => parts_of(inside),
        other => vec![other],
    }
}

/// Whether rows are of a value: null is one.
fn condition(columns: &[Expr], value: &Expr) -> Result<Expr, Error> {
    let values = parts_of(value);
    if values.len() != columns.len() {
        let what = format!("a value of PIVOT with {} parts for {} columns", values.len(), columns.len());
        return Err(Error::refused(what, value.span()));
    }
    if !is_constant(value) {
        return Err(Error::refused_with_hint("a value of PIVOT that is no constant", "say a literal", value.span()));
    }
    let equal = columns.iter().zip(values).map(|(column, value)| Expr::BinaryOp {
        left: Box::new(column.clone()),
        op: BinaryOperator::Spaceship,
        right: Box::new(Expr::Nested(Box::new(value.clone()))),
    });
    equal.reduce(and).ok_or_else(|| Error::refused("a PIVOT for no column", value.span()))
}

fn is_constant(expression: &Expr) -> bool {
    struct Names;
    impl Visitor for Names {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match expression {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) | Expr::Exists { .. } => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expression.visit(&mut Names).is_continue()
}

/// What the column of a value is called.
fn name_of_value(value: &ExprWithAlias) -> Result<String, Error> {
    let ExprWithAlias { expr, alias } = value;
    if let Some(alias) = alias {
        return Ok(alias.value.clone());
    }
    let unnamed = || Error::refused_with_hint("a value of PIVOT without a name", "say AS and a name behind it", expr.span());
    match expr {
        Expr::Tuple(parts) => {
            let one = |part: &Expr| name_of_value(&ExprWithAlias { expr: part.clone(), alias: None });
            Ok(format!("{{{}}}", parts.iter().map(one).collect::<Result<Vec<_>, _>>()?.join(", ")))
        }
        Expr::Nested(inside) => name_of_value(&ExprWithAlias { expr: inside.as_ref().clone(), alias: None }),
        Expr::TypedString(typed) if matches!(typed.data_type, Written::Date) => match &typed.value.value {
            Value::SingleQuotedString(day) | Value::DoubleQuotedString(day) if is_plain_day(day) => Ok(day.clone()),
            _ => Err(unnamed()),
        },
        Expr::Value(ValueWithSpan { value, .. }) => match value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Ok(text.clone()),
            Value::Boolean(yes) => Ok(yes.to_string()),
            Value::Null => Ok("null".to_owned()),
            Value::Number(digits, _) => {
                let digits = digits.to_string();
                let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, "0"));
                let is_plain = whole.len() == 1 || !whole.starts_with('0');
                let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
                if is_plain && all_digits(whole) && all_digits(fraction) { Ok(digits) } else { Err(unnamed()) }
            }
            _ => Err(unnamed()),
        },
        _ => Err(unnamed()),
    }
}

fn is_plain_day(day: &str) -> bool {
    day.len() == 10 && day.char_indices().all(|(at, sign)| if at == 4 || at == 7 { sign == '-' } else { sign.is_ascii_digit() })
}

/// The names that an unpivot gives its values.
fn names_of_values(value: &Expr) -> Result<Vec<Ident>, Error> {
    let one = |part: &Expr| match part {
        Expr::Identifier(name) => Ok(name.clone()),
        other => Err(Error::refused("a name of UNPIVOT that is none", other.span())),
    };
    parts_of(value).into_iter().map(one).collect()
}

/// Refuses columns that become one, as far as their types are known: the dialect makes no numbers of texts here.
fn go_together(columns: &[&Column], span: Span) -> Result<(), Error> {
    use tributary_lake::arrow::datatypes::DataType as D;
    let kind = |of: &D| match of {
        D::Utf8 | D::LargeUtf8 | D::Utf8View => "strings",
        of if of.is_numeric() => "numbers",
        D::Date32 | D::Timestamp(..) => "times",
        D::Boolean => "booleans",
        _ => "other values",
    };
    let kinds: BTreeSet<&str> = columns.iter().filter_map(|column| column.data_type.as_ref().map(kind)).collect();
    match kinds.len() {
        0 | 1 => Ok(()),
        _ => {
            let kinds: Vec<&str> = kinds.into_iter().collect();
            let hint = Some("cast some of them in a query within FROM".to_owned());
            Err(Error::Refused { what: format!("UNPIVOT of {}", kinds.join(" and ")), hint, span: error::position(span) })
        }
    }
}
