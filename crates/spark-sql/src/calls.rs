//! Calls of functions: each is in the allow list as the engine has it, said otherwise, or refused.

use tributary_lake::datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, DateTimeField, Expr, ExtractSyntax, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, Spanned, Value, ValueWithSpan, WindowType,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{call, case, cast, number, object_name};
use crate::functions::{self, Meaning, Rewrite};
use crate::rewrite::Rewriter;
use crate::scope::Scope;
use crate::{Error, rounding, substring};

impl Rewriter<'_> {
    /// Rewrites a call in place, or tells what stands for it.
    pub(crate) fn function(&self, function: &mut Function, scope: &Scope<'_>) -> Result<Option<Expr>, Error> {
        let span = function.span();
        let Function { name, uses_odbc_syntax, parameters, args, filter, null_treatment, over, within_group } = function;
        let written = name.to_string().to_lowercase();
        let refuse = |what: &str| Err(Error::refused(format!("{what} of `{written}`"), span));
        if *uses_odbc_syntax || !matches!(parameters, FunctionArguments::None) {
            return refuse("this form");
        }
        if !within_group.is_empty() {
            return refuse("WITHIN GROUP");
        }
        let meaning = match name.0.as_slice() {
            [part] if part.as_ident().is_some() => self.meaning(&written),
            _ => Meaning::Unknown,
        };
        let ignores_nulls = matches!(written.as_str(), "first_value" | "last_value" | "nth_value" | "lag" | "lead");
        if null_treatment.is_some() && !ignores_nulls {
            return refuse("IGNORE NULLS");
        }
        let (arguments, plain) = match args {
            FunctionArguments::None => (Vec::new(), true),
            FunctionArguments::Subquery(_) => return refuse("a query as argument"),
            FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) => {
                if !clauses.iter().all(|clause| ignores_nulls && matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_))) {
                    return refuse("a clause in the arguments");
                }
                let plain = duplicate_treatment.is_none() && clauses.is_empty();
                (args.iter_mut().map(|argument| self.argument(argument, &written, scope)).collect::<Result<Vec<_>, _>>()?, plain)
            }
        };
        if let Some(condition) = filter {
            self.all([condition.as_mut()], scope)?;
        }
        match over {
            Some(WindowType::WindowSpec(window)) => self.window(window, scope)?,
            Some(WindowType::NamedWindow(_)) | None => {}
        }
        let plain = plain && filter.is_none() && over.is_none() && null_treatment.is_none();
        match meaning {
            Meaning::Same { name: engine, least, most } => {
                if !(least..=most).contains(&arguments.len()) {
                    return refuse(&format!("the form with {} arguments", arguments.len()));
                }
                *name = object_name(engine);
                if matches!(args, FunctionArguments::None) {
                    *args =
                        FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args: Vec::new(), clauses: Vec::new() });
                }
                Ok(None)
            }
            Meaning::Rewritten(rewrite) => match (plain, arguments.into_iter().collect::<Option<Vec<Expr>>>()) {
                (true, Some(arguments)) => rewritten(rewrite, arguments, &written, span).map(Some),
                _ => refuse("this form"),
            },
            Meaning::Refused(hint) => Err(Error::refused_with_hint(format!("the function `{written}`"), hint, span)),
            Meaning::Unknown => {
                let mut known: Vec<&str> = functions::names().collect();
                known.extend(self.own.iter().map(String::as_str));
                let hint =
                    tributary_fault::nearest(&written, known.iter().copied()).map(|name| format!("the nearest known name is `{name}`"));
                Err(Error::Refused { what: format!("the function `{written}`"), hint, span: crate::error::position(span) })
            }
        }
    }

    /// What the function of this name, in lower case, is: one of the program's own, or the dialect's.
    fn meaning<'r>(&'r self, written: &str) -> Meaning<'r> {
        match self.own.iter().find(|own| own.to_lowercase() == written) {
            Some(own) => Meaning::Same { name: own, least: 0, most: usize::MAX },
            None => functions::meaning(written),
        }
    }

    /// Rewrites an argument; `None` stands for the `*` of `count(*)`.
    fn argument(&self, argument: &mut FunctionArg, function: &str, scope: &Scope<'_>) -> Result<Option<Expr>, Error> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => {
                self.expression(expression, scope)?;
                Ok(Some(expression.clone()))
            }
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if function == "count" => Ok(None),
            other => Err(Error::refused(format!("this argument of `{function}`"), other.span())),
        }
    }
}

/// What stands for a call of a function the engine has not, or has with another meaning.
fn rewritten(rewrite: Rewrite, arguments: Vec<Expr>, function: &str, span: Span) -> Result<Expr, Error> {
    let wrong = |count: usize| Error::refused(format!("the form of `{function}` with {count} arguments"), span);
    match rewrite {
        Rewrite::Extract(field) => {
            let [of] = take(arguments).map_err(wrong)?;
            let field = match field {
                "YEAR" => DateTimeField::Year,
                "QUARTER" => DateTimeField::Quarter,
                "MONTH" => DateTimeField::Month,
                "WEEK" => DateTimeField::Week(None),
                "HOUR" => DateTimeField::Hour,
                "MINUTE" => DateTimeField::Minute,
                _ => DateTimeField::Day,
            };
            Ok(Expr::Extract { field, syntax: ExtractSyntax::From, expr: Box::new(of) })
        }
        Rewrite::Remainder => {
            let [left, right] = take(arguments).map_err(wrong)?;
            Ok(Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Modulo, right: Box::new(right) })))
        }
        Rewrite::If => {
            let [condition, yes, no] = take(arguments).map_err(wrong)?;
            Ok(case(condition, yes, Some(no)))
        }
        Rewrite::CountIf => {
            let [condition] = take(arguments).map_err(wrong)?;
            Ok(call("count", vec![case(condition, number("1"), None)]))
        }
        Rewrite::ToDate => {
            let [of] = take(arguments).map_err(wrong)?;
            Ok(cast(of, DataType::Date))
        }
        Rewrite::IsNull => {
            let [of] = take(arguments).map_err(wrong)?;
            Ok(Expr::IsNull(Box::new(of)))
        }
        Rewrite::IsNotNull => {
            let [of] = take(arguments).map_err(wrong)?;
            Ok(Expr::IsNotNull(Box::new(of)))
        }
        Rewrite::Substring => substring(arguments, span),
        Rewrite::Concat => {
            let parts = arguments.into_iter().map(|part| cast(part, DataType::String(None)));
            let joined = parts.reduce(|left, right| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::StringConcat,
                right: Box::new(right),
            });
            joined.map(|joined| Expr::Nested(Box::new(joined))).ok_or_else(|| wrong(0))
        }
        Rewrite::Round => match arguments.as_slice() {
            [of] => Ok(call(rounding::NAME, vec![of.clone(), number("0")])),
            [of, digits] if whole_number(digits).is_some() => Ok(call(rounding::NAME, vec![of.clone(), digits.clone()])),
            [_, _] => Err(Error::refused_with_hint("this form of `round`", "its digits must be a literal that is not negative", span)),
            other => Err(wrong(other.len())),
        },
        Rewrite::Side(side) => {
            let [of, count] = take(arguments).map_err(wrong)?;
            if whole_number(&count).is_none() {
                return Err(Error::refused_with_hint(format!("`{side}`"), "its count must be a literal that is not negative", span));
            }
            Ok(call(side, vec![of, count]))
        }
    }
}

fn take<const N: usize>(arguments: Vec<Expr>) -> Result<[Expr; N], usize> {
    arguments.try_into().map_err(|arguments: Vec<Expr>| arguments.len())
}

/// `substring`, whose length may be left out.
pub(crate) fn substring(mut arguments: Vec<Expr>, span: Span) -> Result<Expr, Error> {
    match arguments.len() {
        2 => arguments.push(number(&i64::MAX.to_string())),
        3 => {}
        other => return Err(Error::refused(format!("the form of `substring` with {other} arguments"), span)),
    }
    Ok(call(substring::NAME, arguments))
}

fn whole_number(expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, false), .. }) => digits.to_string().parse().ok(),
        _ => None,
    }
}
