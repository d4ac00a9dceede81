//! What calls of people's functions come to once their expressions are written out in place of them: bodies that call others twice
//! double with each of them, and so do arguments that a body names twice.

use tributary_lake::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::logical_expr::Expr;
use tributary_lake::datafusion::logical_expr::expr::ScalarFunction;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::{Error, sql_function};

/// Operations of one text at most that calls of functions come to.
const PARTS_MAX: u64 = 20_000;
/// Levels of a call at most.
const LEVELS_MAX: u64 = 200;

/// How large an expression is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Growth {
    parts: u64,
    levels: u64,
    /// How often each parameter stands in it.
    uses: Vec<u64>,
}

impl Growth {
    /// Of an expression over these parameters, calls of functions written out.
    pub fn of(expression: &Expr, parameters: &[String]) -> Result<Self> {
        let mut growth = Self { parts: 1, levels: 0, uses: vec![0; parameters.len()] };
        if let Some((body, arguments)) = call(expression) {
            growth.parts = body.parts;
            for (argument, times) in arguments.iter().zip(&body.uses) {
                growth.add(&Self::of(argument, parameters)?, *times);
            }
            // an argument stands in the place of a parameter
            growth.levels = growth.levels.saturating_sub(1).saturating_add(body.levels);
            return Ok(growth);
        }
        if let Expr::Column(column) = expression {
            let used = parameters.iter().position(|parameter| *parameter == column.name);
            used.into_iter().for_each(|at| growth.uses[at] = 1);
        }
        expression.apply_children(|child| {
            growth.add(&Self::of(child, parameters)?, 1);
            Ok(TreeNodeRecursion::Continue)
        })?;
        growth.levels += 1;
        Ok(growth)
    }

    /// Takes another in so many times.
    fn add(&mut self, other: &Self, times: u64) {
        self.parts = self.parts.saturating_add(other.parts.saturating_mul(times));
        self.levels = self.levels.max(other.levels);
        for (mine, others) in self.uses.iter_mut().zip(&other.uses) {
            *mine = mine.saturating_add(others.saturating_mul(times));
        }
    }
}

/// What the calls of a text come to so far.
#[derive(Debug, Default)]
pub(crate) struct Grown {
    parts: u64,
}

impl Grown {
    /// Counts the calls of an expression; tells why they are too many.
    pub fn count(&mut self, expression: &Expr) -> Result<Option<Error>> {
        let mut refused = None;
        expression.apply(|part| {
            let Expr::ScalarFunction(function) = part else { return Ok(TreeNodeRecursion::Continue) };
            if call(part).is_none() {
                return Ok(TreeNodeRecursion::Continue);
            }
            let growth = Growth::of(part, &[])?;
            self.parts = self.parts.saturating_add(growth.parts);
            refused = too_large(function.name(), self.parts, growth.levels);
            if refused.is_some() {
                return Ok(TreeNodeRecursion::Stop);
            }
            // its arguments are counted in it
            Ok(TreeNodeRecursion::Jump)
        })?;
        Ok(refused)
    }
}

/// What a call of a function that people made comes to, and what it is given; none of another expression.
fn call(expression: &Expr) -> Option<(&Growth, &[Expr])> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expression else { return None };
    Some((sql_function::growth(func)?, args))
}

fn too_large(function: &str, parts: u64, levels: u64) -> Option<Error> {
    let what = match (parts > PARTS_MAX, levels > LEVELS_MAX) {
        (true, _) => format!("a text whose calls of `{function}` and others come to more than {PARTS_MAX} operations"),
        (_, true) => format!("a call of `{function}` that comes to more than {LEVELS_MAX} levels"),
        (false, false) => return None,
    };
    Some(Error::refused_with_hint(what, "functions call functions, and each stands for its whole expression", Span::empty()))
}
