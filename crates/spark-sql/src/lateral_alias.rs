//! Names that a select list gives and uses further on: `a + 1 AS b, b * 2 AS c`. A name that no relation has stands for what was
//! called so before it.

use std::ops::ControlFlow;

use tributary_lake::datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, Ident, LambdaFunction, OneOrManyWithParens, Query, SelectItem, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::ast::quoted;
use crate::functions::{Determinism, determinism};
use crate::scope::{Scope, same};
use crate::{Error, error};

/// Signs of what a name may come to, so that names of names of names stay within reason.
const SIGNS_MAX: usize = 20_000;

/// Puts what was called so in the place of names that no relation has.
///
/// # Errors
/// [`Error::Ambiguous`] for a name that was given twice, [`Error::Refused`] for one that stands for something that is different each
/// time it is asked, and for one that is used by a window.
pub(crate) fn spell(projection: &mut [SelectItem], scope: &Scope<'_>) -> Result<(), Error> {
    let mut given: Vec<(Ident, Expr)> = Vec::new();
    for item in projection {
        let mut names = Names { given: &given, scope, hidden: Vec::new(), in_queries: 0, in_windows: 0, found: false };
        match item {
            SelectItem::UnnamedExpr(expression) if !given.is_empty() => {
                // it is called as it is written, but for a name that is there: the engine has no two columns of one
                let alias = called(expression);
                names.put(expression)?;
                if names.found && !given.iter().any(|(name, _)| same(&name.value, &alias.value)) {
                    *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
                }
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                names.put(expr)?;
                given.push((alias.clone(), expr.clone()));
            }
            _ => {}
        }
    }
    Ok(())
}

struct Names<'a> {
    given: &'a [(Ident, Expr)],
    scope: &'a Scope<'a>,
    /// Parameters of the functions around the place.
    hidden: Vec<String>,
    in_queries: usize,
    in_windows: usize,
    /// Whether something was put in the place of a name.
    found: bool,
}

/// What an expression without a name is called.
fn called(expression: &Expr) -> Ident {
    match expression {
        Expr::Identifier(name) => name.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().cloned().unwrap_or_else(|| quoted("")),
        other => quoted(&other.to_string()),
    }
}

impl Names<'_> {
    fn put(&mut self, expression: &mut Expr) -> Result<(), Error> {
        match expression.visit(self) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// What stands for a chain of names, where its first is one that was given.
    fn stands_for(&self, parts: &[Ident]) -> Result<Option<Expr>, Error> {
        let Some((first, fields)) = parts.split_first() else { return Ok(None) };
        if self.in_queries > 0 || self.hidden.iter().any(|name| same(name, &first.value)) || self.scope.knows(parts) {
            return Ok(None);
        }
        let mut called = self.given.iter().filter(|(name, _)| same(&name.value, &first.value));
        let Some((_, expression)) = called.next() else { return Ok(None) };
        if called.next().is_some() {
            let candidates = "several columns of the select list".to_owned();
            return Err(Error::Ambiguous { name: first.value.clone(), candidates, span: error::position(first.span) });
        }
        let what = || format!("the name `{}` of the select list", first.value);
        if self.in_windows > 0 || has_window(expression) {
            return Err(Error::refused_with_hint(what(), "a window takes no such name: say it in a subquery", first.span));
        }
        if differs(expression) {
            let hint = "what it stands for is different each time: say it in a subquery";
            return Err(Error::refused_with_hint(what(), hint, first.span));
        }
        if expression.to_string().len() > SIGNS_MAX {
            return Err(Error::refused_with_hint(what(), "it comes to a very long expression: say it in a subquery", first.span));
        }
        let inside = Expr::Nested(Box::new(expression.clone()));
        if fields.is_empty() {
            return Ok(Some(inside));
        }
        let access_chain = fields.iter().map(|field| AccessExpr::Dot(Expr::Identifier(field.clone()))).collect();
        Ok(Some(Expr::CompoundFieldAccess { root: Box::new(inside), access_chain }))
    }
}

fn parameters(lambda: &LambdaFunction) -> Vec<String> {
    match &lambda.params {
        OneOrManyWithParens::One(parameter) => vec![parameter.name.value.clone()],
        OneOrManyWithParens::Many(parameters) => parameters.iter().map(|parameter| parameter.name.value.clone()).collect(),
    }
}

impl VisitorMut for Names<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.in_queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.in_queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        match expression {
            Expr::Lambda(lambda) => self.hidden.extend(parameters(lambda)),
            Expr::Function(Function { over: Some(_), .. }) => self.in_windows += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        let found = match &*expression {
            Expr::Lambda(lambda) => {
                self.hidden.truncate(self.hidden.len() - parameters(lambda).len());
                return ControlFlow::Continue(());
            }
            Expr::Function(Function { over: Some(_), .. }) => {
                self.in_windows -= 1;
                return ControlFlow::Continue(());
            }
            Expr::Identifier(name) => self.stands_for(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(parts) => self.stands_for(parts),
            _ => return ControlFlow::Continue(()),
        };
        match found {
            Ok(Some(inside)) => {
                *expression = inside;
                self.found = true;
            }
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

/// Whether an expression holds a call that answers differently each time.
fn differs(expression: &Expr) -> bool {
    holds(expression, &|function| matches!(determinism(&function.name.to_string()), Some(Determinism::Never)))
}

/// Whether an expression holds a window.
pub(crate) fn has_window(expression: &Expr) -> bool {
    holds(expression, &|function| function.over.is_some())
}

fn holds(expression: &Expr, is: &dyn Fn(&Function) -> bool) -> bool {
    struct Calls<'f>(&'f dyn Fn(&Function) -> bool);
    impl Visitor for Calls<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match expression {
                Expr::Function(function) if (self.0)(function) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    Visit::visit(expression, &mut Calls(is)).is_break()
}
