//! Columns of one name in a select list: the dialect has them, the engine has not.

use std::sync::Arc;

use tributary_lake::datafusion::common::{Column as Planned, TableReference};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use tributary_lake::datafusion::sql::sqlparser::ast::SelectItem;

use crate::ast::quoted;
use crate::scope::Column;

/// Gives what is called like an item before it a name that no text can say; its column still is called so.
pub(crate) fn told_apart(items: &mut [SelectItem], columns: &mut [Column]) {
    for at in 1..items.len().min(columns.len()) {
        let (before, rest) = columns.split_at_mut(at);
        let column = &mut rest[0];
        if !before.iter().any(|other| other.name == column.name) {
            continue;
        }
        let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = &items[at] else { continue };
        let called = format!("\u{1}{at} {}", column.name);
        items[at] = SelectItem::ExprWithAlias { expr: expression.clone(), alias: quoted(&called) };
        column.called = Some(called);
    }
}

/// A query's plan with the names that its text gives the columns, where some are told apart.
pub(crate) fn under_their_names(plan: LogicalPlan, columns: &[Column]) -> Result<LogicalPlan> {
    if columns.iter().all(|column| column.called.is_none()) || plan.schema().fields().len() != columns.len() {
        return Ok(plan);
    }
    let named = plan.schema().iter().zip(columns).enumerate().map(|(at, ((qualifier, field), column))| {
        let own = TableReference::bare(format!("\u{1}{at}"));
        Expr::Column(Planned::from((qualifier, field))).alias_qualified(Some(own), &column.name)
    });
    let named = named.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(named, Arc::new(plan))?))
}
