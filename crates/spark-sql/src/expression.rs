//! Walks expressions: names spelled, functions looked up in the allow list, meanings made explicit, the rest refused.

use tributary_lake::datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, DateTimeField, Expr, ExtractSyntax, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, Interval, Spanned, Subscript, TypedString,
    UnaryOperator, Value, ValueWithSpan, WindowSpec, WindowType,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::functions::{self, Meaning, Rewrite};
use crate::rewrite::{Rewriter, object_name};
use crate::scope::{Column, Found, Scope};
use crate::{Error, quotient, rounding, substring, types};

impl Rewriter<'_> {
    /// Rewrites an expression; tells the column where it is nothing but one.
    pub(crate) fn expression(&self, expression: &mut Expr, scope: &Scope<'_>) -> Result<Option<Column>, Error> {
        let span = expression.span();
        match expression {
            Expr::Identifier(ident) => {
                let parts = [ident.clone()];
                return name(expression, &parts, scope).map(Some);
            }
            Expr::CompoundIdentifier(parts) => {
                let parts = parts.clone();
                return name(expression, &parts, scope).map(Some);
            }
            Expr::Nested(inside) => return self.expression(inside, scope),
            Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain, scope)?,
            Expr::IsFalse(inside)
            | Expr::IsNotFalse(inside)
            | Expr::IsTrue(inside)
            | Expr::IsNotTrue(inside)
            | Expr::IsNull(inside)
            | Expr::IsNotNull(inside)
            | Expr::IsUnknown(inside)
            | Expr::IsNotUnknown(inside) => self.all([inside.as_mut()], scope)?,
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => self.all([left.as_mut(), right], scope)?,
            Expr::InList { expr, list, negated: _ } => {
                self.all([expr.as_mut()], scope)?;
                self.all(list, scope)?;
            }
            Expr::Between { expr, negated: _, low, high } => self.all([expr.as_mut(), low, high], scope)?,
            Expr::InSubquery { expr, subquery, negated: _ } => {
                self.all([expr.as_mut()], scope)?;
                self.query(subquery, scope.named, Some(scope))?;
            }
            Expr::Exists { subquery, negated: _ } | Expr::Subquery(subquery) => drop(self.query(subquery, scope.named, Some(scope))?),
            Expr::BinaryOp { left, op, right } => {
                self.all([left.as_mut(), right], scope)?;
                let (left, right) = (taken(left), taken(right));
                *expression = operation(left, op, right, span)?;
            }
            Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus | UnaryOperator::Not, expr } => {
                self.all([expr.as_mut()], scope)?
            }
            Expr::UnaryOp { op: op @ UnaryOperator::BangNot, expr } => {
                *op = UnaryOperator::Not;
                self.all([expr.as_mut()], scope)?;
            }
            Expr::Like { any: false, expr, pattern, escape_char: None, negated: _ }
            | Expr::ILike { any: false, expr, pattern, escape_char: None, negated: _ } => self.all([expr.as_mut(), pattern], scope)?,
            Expr::RLike { negated, expr, pattern, regexp: _ } => {
                self.all([expr.as_mut(), pattern], scope)?;
                let found = call("regexp_like", vec![expr.as_ref().clone(), pattern.as_ref().clone()]);
                *expression = if *negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) } } else { found };
            }
            Expr::Cast {
                kind: CastKind::Cast | CastKind::TryCast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => {
                types::rewrite(data_type, span)?;
                self.all([expr.as_mut()], scope)?;
            }
            Expr::Extract { field, syntax: ExtractSyntax::From, expr } => {
                extracted(field, span)?;
                self.all([expr.as_mut()], scope)?;
            }
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.all([expr.as_mut()], scope)?;
                *expression = whole(call("ceil", vec![expr.as_ref().clone()]));
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.all([expr.as_mut()], scope)?;
                *expression = whole(call("floor", vec![expr.as_ref().clone()]));
            }
            Expr::Position { expr, r#in } => self.all([expr.as_mut(), r#in], scope)?,
            Expr::Substring { expr, substring_from: Some(from), substring_for, special: _, shorthand: _ } => {
                let mut arguments = vec![expr.as_ref().clone(), from.as_ref().clone()];
                arguments.extend(substring_for.as_deref().cloned());
                self.all(&mut arguments, scope)?;
                *expression = substring(arguments, span)?;
            }
            Expr::Trim { trim_where: _, trim_what, expr, trim_characters: None } => {
                self.all(trim_what.as_deref_mut().into_iter().chain([expr.as_mut()]), scope)?;
            }
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.all(operand.as_deref_mut().into_iter().chain(else_result.as_deref_mut()), scope)?;
                for CaseWhen { condition, result } in conditions {
                    self.all([condition, result], scope)?;
                }
            }
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false }) => {
                types::rewrite(data_type, span)?;
                literal(value)?;
            }
            Expr::Interval(Interval {
                value,
                leading_field,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: None,
            }) => {
                interval(value, leading_field.as_ref(), span)?;
                self.all([value.as_mut()], scope)?;
            }
            Expr::Value(value) => {
                if let Some(double) = literal(value)? {
                    *expression = double;
                }
            }
            Expr::Function(function) => {
                if let Some(other) = self.function(function, scope)? {
                    *expression = other;
                }
            }
            other => {
                let text = other.to_string();
                let short: String = text.chars().take(60).collect();
                let more = if short.len() < text.len() { "…" } else { "" };
                return Err(Error::refused(format!("the expression `{short}{more}`"), span));
            }
        }
        Ok(None)
    }

    fn all<'e>(&self, expressions: impl IntoIterator<Item = &'e mut Expr>, scope: &Scope<'_>) -> Result<(), Error> {
        expressions.into_iter().try_for_each(|expression| self.expression(expression, scope).map(drop))
    }

    /// `root.a['b']`: fields by name, entries of maps by text.
    fn access(&self, root: &mut Expr, chain: &mut [AccessExpr], scope: &Scope<'_>) -> Result<(), Error> {
        self.expression(root, scope)?;
        chain.iter().try_for_each(|access| match access {
            AccessExpr::Dot(Expr::Identifier(_)) => Ok(()),
            AccessExpr::Subscript(Subscript::Index { index: Expr::Value(value) })
                if matches!(value.value, Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)) =>
            {
                Ok(())
            }
            AccessExpr::Dot(other) => Err(Error::refused("a field that is no name", other.span())),
            AccessExpr::Subscript(_) => {
                Err(Error::refused_with_hint("an element by number", "the engine counts from 1, the dialect from 0", root.span()))
            }
        })
    }

    pub(crate) fn window(&self, window: &mut WindowSpec, scope: &Scope<'_>) -> Result<(), Error> {
        let WindowSpec { window_name, partition_by, order_by, window_frame: _ } = window;
        if let Some(name) = window_name {
            return Err(Error::refused("a window that builds on another", name.span));
        }
        self.all(partition_by, scope)?;
        order_by.iter_mut().try_for_each(|expression| self.order_by_one(expression, scope))
    }

    /// Rewrites a call in place, or tells what stands for it.
    fn function(&self, function: &mut Function, scope: &Scope<'_>) -> Result<Option<Expr>, Error> {
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

/// A chain of names, spelled; fields below a column are read by function.
fn name(expression: &mut Expr, parts: &[Ident], scope: &Scope<'_>) -> Result<Column, Error> {
    let Found { mut column, fields, end } = scope.resolve(parts)?;
    let base = match column.len() {
        1 => Expr::Identifier(column.remove(0)),
        _ => Expr::CompoundIdentifier(column),
    };
    *expression = fields.iter().fold(base, |inside, field| call("get_field", vec![inside, text(field)]));
    Ok(end)
}

/// The expression, moved out of a place that is written anew.
fn taken(expression: &mut Expr) -> Expr {
    std::mem::replace(expression, Expr::Value(Value::Null.with_empty_span()))
}

/// A binary operation that means the same for the engine.
fn operation(left: Expr, op: &BinaryOperator, right: Expr, span: Span) -> Result<Expr, Error> {
    use BinaryOperator as B;
    match op {
        B::Divide => Ok(call(quotient::NAME, vec![left, right])),
        B::Spaceship => Ok(Expr::IsNotDistinctFrom(Box::new(left), Box::new(right))),
        B::Plus
        | B::Minus
        | B::Multiply
        | B::Modulo
        | B::StringConcat
        | B::Gt
        | B::Lt
        | B::GtEq
        | B::LtEq
        | B::Eq
        | B::NotEq
        | B::And
        | B::Or => Ok(Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }),
        other => Err(Error::refused(format!("the operator {other}"), span)),
    }
}

/// Checks a literal; a number with an exponent is a double, which the engine would read as a decimal.
fn literal(value: &ValueWithSpan) -> Result<Option<Expr>, Error> {
    match &value.value {
        Value::Number(digits, false) => {
            let written = digits.to_string();
            Ok(written
                .contains(['e', 'E'])
                .then(|| cast(text(&written), DataType::Double(tributary_lake::datafusion::sql::sqlparser::ast::ExactNumberInfo::None))))
        }
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) if text.contains('\\') => {
            let hint = "the dialect reads \\n and its kin as one sign, the engine as two";
            Err(Error::refused_with_hint("a backslash in a text", hint, value.span))
        }
        Value::SingleQuotedString(_) | Value::DoubleQuotedString(_) | Value::Boolean(_) | Value::Null => Ok(None),
        other => Err(Error::refused(format!("the literal {other}"), value.span)),
    }
}

fn extracted(field: &DateTimeField, span: Span) -> Result<(), Error> {
    match field {
        DateTimeField::Year
        | DateTimeField::Quarter
        | DateTimeField::Month
        | DateTimeField::Week(None)
        | DateTimeField::Day
        | DateTimeField::Hour
        | DateTimeField::Minute => Ok(()),
        other => Err(Error::refused(format!("extract({other} from …)"), span)),
    }
}

fn interval(value: &Expr, field: Option<&DateTimeField>, span: Span) -> Result<(), Error> {
    let plain = matches!(value, Expr::Value(ValueWithSpan { value: Value::Number(_, false) | Value::SingleQuotedString(_), .. }));
    let known = field.is_none_or(|field| {
        matches!(
            field,
            DateTimeField::Year
                | DateTimeField::Years
                | DateTimeField::Month
                | DateTimeField::Months
                | DateTimeField::Week(None)
                | DateTimeField::Weeks
                | DateTimeField::Day
                | DateTimeField::Days
                | DateTimeField::Hour
                | DateTimeField::Hours
                | DateTimeField::Minute
                | DateTimeField::Minutes
                | DateTimeField::Second
                | DateTimeField::Seconds
        )
    });
    if plain && known { Ok(()) } else { Err(Error::refused("this form of INTERVAL", span)) }
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

fn substring(mut arguments: Vec<Expr>, span: Span) -> Result<Expr, Error> {
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

fn call(function: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: object_name(function),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn text(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).with_empty_span())
}

fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.into(), false).with_empty_span())
}

fn cast(expression: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expression), data_type, array: false, format: None }
}

fn whole(expression: Expr) -> Expr {
    cast(expression, DataType::BigInt(None))
}

fn case(condition: Expr, result: Expr, otherwise: Option<Expr>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: otherwise.map(Box::new),
    }
}
