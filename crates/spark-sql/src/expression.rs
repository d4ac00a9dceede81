//! Walks expressions: names spelled, calls looked up in the allow list, meanings made explicit, the rest refused.

use tributary_lake::datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, DateTimeField, ExactNumberInfo, Expr, ExtractSyntax, Ident,
    Interval, Spanned, Subscript, TypedString, UnaryOperator, Value, ValueWithSpan, WindowSpec,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{call, cast, text, whole};
use crate::calls::substring;
use crate::rewrite::Rewriter;
use crate::scope::{Column, Found, Scope};
use crate::{Error, quotient, types};

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
                self.query(subquery, scope.of_subquery())?;
            }
            Expr::Exists { subquery, negated: _ } | Expr::Subquery(subquery) => drop(self.query(subquery, scope.of_subquery())?),
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

    /// Rewrites several.
    pub(crate) fn all<'e>(&self, expressions: impl IntoIterator<Item = &'e mut Expr>, scope: &Scope<'_>) -> Result<(), Error> {
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
            Ok(written.contains(['e', 'E']).then(|| cast(text(&written), DataType::Double(ExactNumberInfo::None))))
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
