//! GROUP BY ALL, ORDER BY ALL, and groups of groups.

use std::ops::ControlFlow;

use tributary_lake::datafusion::sql::sqlparser::ast::{Expr, GroupByWithModifier, OrderByExpr, SelectItem, Spanned, Visit, Visitor};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::number;
use crate::scope::Scope;
use crate::{Error, functions};

/// What GROUP BY ALL stands for: every expression of the select list that holds no aggregate.
///
/// # Errors
/// [`Error::Refused`] for a wildcard, and for an expression that holds an aggregate beside a column.
pub(crate) fn of_all(projection: &[SelectItem]) -> Result<Vec<Expr>, Error> {
    let mut groups = Vec::new();
    for item in projection {
        let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = item else {
            return Err(Error::refused_with_hint("GROUP BY ALL with *", "name the columns", item.span()));
        };
        let mut found = Found::default();
        let _: ControlFlow<()> = expression.visit(&mut found);
        match (found.aggregates, found.columns_outside) {
            (false, _) => groups.push(expression.clone()),
            (true, false) => {}
            (true, true) => {
                return Err(Error::refused_with_hint(
                    "GROUP BY ALL with an aggregate beside a column",
                    "name the columns",
                    expression.span(),
                ));
            }
        }
    }
    Ok(groups)
}

/// What an expression holds.
#[derive(Default)]
struct Found {
    aggregates: bool,
    columns_outside: bool,
    inside: usize,
}

fn is_aggregate(expression: &Expr) -> bool {
    matches!(expression, Expr::Function(function) if function.over.is_none() && functions::is_aggregate(&function.name.to_string().to_lowercase()))
}

impl Visitor for Found {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if is_aggregate(expression) {
            self.aggregates = true;
            self.inside += 1;
        }
        if self.inside == 0 && matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            self.columns_outside = true;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if is_aggregate(expression) {
            self.inside -= 1;
        }
        ControlFlow::Continue(())
    }
}

/// `GROUP BY a, b WITH ROLLUP` as `GROUP BY ROLLUP (a, b)`.
pub(crate) fn fold(expressions: &mut Vec<Expr>, modifiers: &mut Vec<GroupByWithModifier>) -> Result<(), Error> {
    let folded = |expressions: &mut Vec<Expr>| expressions.drain(..).map(|one| vec![one]).collect();
    match modifiers.as_slice() {
        [] => {}
        [GroupByWithModifier::Rollup] => *expressions = vec![Expr::Rollup(folded(expressions))],
        [GroupByWithModifier::Cube] => *expressions = vec![Expr::Cube(folded(expressions))],
        _ => return Err(Error::refused("this clause after GROUP BY", Span::empty())),
    }
    modifiers.clear();
    Ok(())
}

/// What ORDER BY ALL stands for, where no column is called so: every column of the select list.
pub(crate) fn order_by_all(expressions: &mut Vec<OrderByExpr>, scope: &Scope<'_>) {
    let [OrderByExpr { expr: Expr::Identifier(name), options, with_fill: None }] = expressions.as_slice() else { return };
    if !name.value.eq_ignore_ascii_case("all") || name.quote_style.is_some() || scope.resolve(std::slice::from_ref(name)).is_ok() {
        return;
    }
    let options = *options;
    *expressions = (1..=scope.outputs.len()).map(|at| OrderByExpr { expr: number(&at.to_string()), options, with_fill: None }).collect();
}
