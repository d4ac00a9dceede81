//! `window.start` beside a GROUP BY of a window is the start of that window, as if it were written there.

use std::ops::ControlFlow;

use tributary_lake::datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, GroupByExpr, Ident, Select, SelectItem, Statement, Visit, VisitMut, Visitor, VisitorMut,
};

use super::{SESSION, WINDOW};

/// Puts windows of GROUP BY where their names stand.
pub(crate) fn spell(statement: &mut Statement) {
    let _ = statement.visit(&mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut first = First(None);
        if let GroupByExpr::Expressions(expressions, _) = &select.group_by {
            let _ = expressions.iter().try_for_each(|expression| expression.visit(&mut first));
        }
        let grouped = first.0.as_ref().map(|call| (call, name_of(call)));
        if let Some((call, Some(name))) = grouped {
            let mut names = Names { call, name };
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                    let _ = expr.visit(&mut names);
                }
            }
            for condition in [&mut select.having, &mut select.qualify].into_iter().flatten() {
                let _ = condition.visit(&mut names);
            }
        }
        // the dialect calls a window by its function, and a field of it by its own name
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(alias) = column_name(expr)
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
        ControlFlow::Continue(())
    }
}

/// The first window that is called.
struct First(Option<Expr>);

impl Visitor for First {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if name_of(expression).is_some() {
            self.0 = Some(expression.clone());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

struct Names<'a> {
    call: &'a Expr,
    name: &'static str,
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let is_it = |name: &Ident| name.value.eq_ignore_ascii_case(self.name);
        match expression {
            Expr::Identifier(name) if is_it(name) => *expression = self.call.clone(),
            Expr::CompoundIdentifier(parts) => {
                if let [name, field] = parts.as_slice()
                    && is_it(name)
                {
                    let access_chain = vec![AccessExpr::Dot(Expr::Identifier(field.clone()))];
                    *expression = Expr::CompoundFieldAccess { root: Box::new(self.call.clone()), access_chain };
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Which window a call is.
fn name_of(expression: &Expr) -> Option<&'static str> {
    let Expr::Function(function) = expression else { return None };
    let [part] = function.name.0.as_slice() else { return None };
    let name = &part.as_ident()?.value;
    [WINDOW, SESSION].into_iter().find(|known| name.eq_ignore_ascii_case(known))
}

fn column_name(expression: &Expr) -> Option<Ident> {
    match expression {
        Expr::CompoundFieldAccess { root, access_chain } => match access_chain.as_slice() {
            [AccessExpr::Dot(Expr::Identifier(field))] if name_of(root).is_some() => Some(field.clone()),
            _ => None,
        },
        expression => name_of(expression).map(Ident::new),
    }
}
