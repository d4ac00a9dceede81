//! Walks expressions: names spelled, calls looked up in the allow list, meanings made explicit, the rest refused.

use tributary_lake::arrow::datatypes::DataType as ArrowType;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DateTimeField, Expr, ExtractSyntax, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, Interval, JsonPathElem, Spanned, Subscript, TrimWhereField, TypedString, UnaryOperator,
    Value, ValueWithSpan, WindowSpec,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{call, number, text};
use crate::calls::own_cast;
use crate::rewrite::Rewriter;
use crate::scope::{Column, Found, Scope};
use crate::{Error, asked, ddl, functions, likeness, literal, misplaced, quotient, strings, types};

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
            Expr::CompoundFieldAccess { root, access_chain } => *expression = self.access(root, access_chain, scope)?,
            Expr::IsFalse(inside)
            | Expr::IsNotFalse(inside)
            | Expr::IsTrue(inside)
            | Expr::IsNotTrue(inside)
            | Expr::IsNull(inside)
            | Expr::IsNotNull(inside)
            | Expr::IsUnknown(inside)
            | Expr::IsNotUnknown(inside) => self.all([inside.as_mut()], scope)?,
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => self.all([left.as_mut(), right], scope)?,
            Expr::InList { expr, list, negated } if matches!(**expr, Expr::Tuple(_)) => {
                if let Some(said) = asked::of_a_list(expr, list, *negated, span)? {
                    *expression = said;
                    self.all([expression], scope)?;
                }
            }
            Expr::Tuple(values) => {
                let mut arguments = Vec::with_capacity(values.len() * 2);
                for (at, value) in values.iter_mut().enumerate() {
                    let column = self.expression(value, scope)?;
                    arguments.extend([text(&column.map_or_else(|| format!("col{}", at + 1), |column| column.name)), taken(value)]);
                }
                *expression = call("named_struct", arguments);
            }
            Expr::InSubquery { expr, subquery, .. } if matches!(**expr, Expr::Tuple(_)) => {
                let hint = "rows of several values are looked for in a query by a condition of WHERE that is not within another";
                return Err(Error::refused_with_hint("this IN of a query", hint, subquery.span()));
            }
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
                let of = [self.expression(left, scope)?, self.expression(right, scope)?];
                refuse_number_with_boolean(op, [(&**left, &of[0]), (&**right, &of[1])], span)?;
                let (mut left, mut right) = (taken(left), taken(right));
                if *op == BinaryOperator::Spaceship {
                    as_truths([(&mut left, &of[0]), (&mut right, &of[1])]);
                }
                *expression = operation(left, op, right, span)?;
            }
            Expr::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus | UnaryOperator::Not), expr } => {
                match literal::negative(*op, expr)? {
                    Some(number) => {
                        *expression = number;
                        if !literal::is_number(expression) {
                            self.all([expression], scope)?;
                        }
                    }
                    None => {
                        let column = self.expression(expr, scope)?;
                        if *op != UnaryOperator::Not {
                            **expr = call(strings::AS_NUMBER, vec![taken(expr)]);
                        } else if misplaced::is_string(expr, column.as_ref()) {
                            **expr = own_cast(&CastKind::Cast, taken(expr), "boolean");
                        }
                    }
                }
            }
            Expr::UnaryOp { op: op @ UnaryOperator::BangNot, expr } => {
                *op = UnaryOperator::Not;
                self.all([expr.as_mut()], scope)?;
            }
            Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => {
                self.all([expr.as_mut()], scope)?;
                *expression = call("bit_not", vec![taken(expr)]);
            }
            Expr::Like { any, expr, pattern, escape_char, negated } => {
                *expression = self.likeness(expr, pattern, escape_char.as_ref(), (*any, false, *negated), scope, span)?;
            }
            Expr::ILike { any, expr, pattern, escape_char, negated } => {
                *expression = self.likeness(expr, pattern, escape_char.as_ref(), (*any, true, *negated), scope, span)?;
            }
            Expr::RLike { negated, expr, pattern, regexp: _ } => {
                self.all([expr.as_mut(), pattern], scope)?;
                let found = call("regexp_like", vec![expr.as_ref().clone(), pattern.as_ref().clone()]);
                *expression = if *negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) } } else { found };
            }
            Expr::Cast {
                kind: kind @ (CastKind::Cast | CastKind::TryCast | CastKind::DoubleColon),
                expr,
                data_type,
                array: false,
                format: None,
            } => {
                self.all([expr.as_mut()], scope)?;
                let written = data_type.to_string();
                if let Err(refused) = types::rewrite(data_type, span) {
                    if ddl::data_type(&written).is_none() {
                        return Err(refused);
                    }
                    *expression = own_cast(kind, taken(expr), &written);
                }
            }
            Expr::Extract { field, syntax: ExtractSyntax::From, expr } => {
                let Some(field) = functions::field(&field.to_string()) else {
                    return Err(Error::refused(format!("extract({field} from …)"), span));
                };
                self.all([expr.as_mut()], scope)?;
                *expression = call("date_part", vec![text(field), taken(expr)]);
            }
            Expr::Ceil { expr, field } => *expression = self.next_whole("ceil", expr, field, scope, span)?,
            Expr::Floor { expr, field } => *expression = self.next_whole("floor", expr, field, scope, span)?,
            Expr::Position { expr, r#in } => {
                self.all([expr.as_mut(), r#in], scope)?;
                *expression = call("locate", vec![taken(expr), taken(r#in)]);
            }
            Expr::Substring { expr, substring_from: Some(from), substring_for, special: _, shorthand: _ } => {
                let mut arguments = vec![expr.as_ref().clone(), from.as_ref().clone()];
                arguments.extend(substring_for.as_deref().cloned());
                self.all(&mut arguments, scope)?;
                *expression = call("substring", arguments);
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments = vec![expr.as_ref().clone(), overlay_what.as_ref().clone(), overlay_from.as_ref().clone()];
                arguments.extend(overlay_for.as_deref().cloned());
                self.all(&mut arguments, scope)?;
                *expression = call("overlay", arguments);
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                self.all(trim_what.as_deref_mut().into_iter().chain([expr.as_mut()]), scope)?;
                let signs = trim_what.as_deref().cloned();
                let of = taken(expr);
                *expression = match (trim_where, signs) {
                    (Some(TrimWhereField::Leading), signs) => call("ltrim", signs.into_iter().chain([of]).collect()),
                    (Some(TrimWhereField::Trailing), signs) => call("rtrim", signs.into_iter().chain([of]).collect()),
                    (_, signs) => call("btrim", [of].into_iter().chain(signs).collect()),
                };
            }
            Expr::JsonAccess { value, path } => {
                self.expression(value, scope)?;
                let mut arguments = vec![value.as_ref().clone()];
                for step in &path.path {
                    arguments.push(json_step(step, span)?);
                }
                *expression = call("json_at", arguments);
            }
            Expr::Struct { values, fields } if fields.is_empty() => {
                let mut arguments = Vec::with_capacity(values.len() * 2);
                for (at, value) in values.iter_mut().enumerate() {
                    let (name, inside) = match value {
                        Expr::Named { expr, name } => {
                            self.expression(expr, scope)?;
                            (name.value.clone(), taken(expr))
                        }
                        value => {
                            let column = self.expression(value, scope)?;
                            (column.map_or_else(|| format!("col{}", at + 1), |column| column.name), taken(value))
                        }
                    };
                    arguments.extend([text(&name), inside]);
                }
                *expression = call("named_struct", arguments);
            }
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.all(operand.as_deref_mut().into_iter().chain(else_result.as_deref_mut()), scope)?;
                for CaseWhen { condition, result } in conditions {
                    let of_condition = condition.span();
                    let told = self.expression(condition, scope)?;
                    if operand.is_none() {
                        misplaced::is_condition(condition, told.as_ref(), of_condition)?;
                    }
                    self.expression(result, scope)?;
                }
            }
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false }) => {
                let written = data_type.to_string();
                types::rewrite(data_type, span)?;
                if let Some(other) = constant(value)? {
                    *expression = own_cast(&CastKind::Cast, other, &written);
                } else if !is_plain_time(value) {
                    *expression = own_cast(&CastKind::Cast, Expr::Value(value.clone()), &written);
                }
            }
            Expr::Interval(Interval {
                value,
                leading_field,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: None,
            }) => {
                interval(value, leading_field.as_ref(), span)?;
            }
            Expr::Value(value) => {
                if let Some(said) = constant(value)? {
                    *expression = said;
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

    /// `root.a['b'][0]`: fields by name, entries of maps by key, elements of lists by place.
    fn access(&self, root: &mut Expr, chain: &mut [AccessExpr], scope: &Scope<'_>) -> Result<Expr, Error> {
        self.expression(root, scope)?;
        let mut inside = taken(root);
        for access in chain {
            let key = match access {
                AccessExpr::Dot(Expr::Identifier(name)) => text(&name.value),
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    self.expression(index, scope)?;
                    taken(index)
                }
                AccessExpr::Dot(other) => return Err(Error::refused("a field that is no name", other.span())),
                AccessExpr::Subscript(_) => return Err(Error::refused("a slice of an array", inside.span())),
            };
            inside = call("item", vec![inside, key]);
        }
        Ok(inside)
    }

    fn next_whole(&self, name: &str, of: &mut Expr, field: &CeilFloorKind, scope: &Scope<'_>, span: Span) -> Result<Expr, Error> {
        self.expression(of, scope)?;
        let mut arguments = vec![taken(of)];
        match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {}
            CeilFloorKind::Scale(places) => {
                let mut places = Expr::Value(places.clone());
                self.expression(&mut places, scope)?;
                arguments.push(places);
            }
            CeilFloorKind::DateTimeField(_) => return Err(Error::refused(format!("this form of `{name}`"), span)),
        }
        Ok(call(name, arguments))
    }

    /// LIKE, with one pattern or with any of several; `how` says whether any, in any case, and negated.
    fn likeness(
        &self,
        of: &mut Expr,
        pattern: &mut Expr,
        escape: Option<&ValueWithSpan>,
        (any, any_case, negated): (bool, bool, bool),
        scope: &Scope<'_>,
        span: Span,
    ) -> Result<Expr, Error> {
        self.expression(of, scope)?;
        if let Some((all, patterns)) = several(pattern, any) {
            let mut told = Vec::new();
            for mut one in patterns {
                self.expression(&mut one, scope)?;
                told.push(likeness::pattern(one, escape, span)?);
            }
            return likeness::of_several(of, told, any_case, negated, all).ok_or_else(|| Error::refused("LIKE of no pattern", span));
        }
        self.expression(pattern, scope)?;
        Ok(likeness::like(taken(of), likeness::pattern(taken(pattern), escape, span)?, any_case, negated))
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
    let Found { column, fields, end } = scope.resolve(parts)?;
    *expression = fields.iter().fold(column, |inside, field| call("get_field", vec![inside, text(field)]));
    Ok(end)
}

/// Refuses a number compared with a boolean, as far as columns and literals tell.
fn refuse_number_with_boolean(op: &BinaryOperator, sides: [(&Expr, &Option<Column>); 2], span: Span) -> Result<(), Error> {
    use BinaryOperator as B;
    if !matches!(op, B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq | B::Spaceship) {
        return Ok(());
    }
    let is = |(side, column): (&Expr, &Option<Column>), boolean: bool| match (side, column) {
        (_, Some(Column { data_type: Some(data_type), .. })) if boolean => *data_type == ArrowType::Boolean,
        (_, Some(Column { data_type: Some(data_type), .. })) => data_type.is_numeric(),
        (side, _) if boolean => matches!(side, Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. })),
        (side, _) => literal::is_number(side),
    };
    let [left, right] = sides;
    match (is(left, false) && is(right, true)) || (is(left, true) && is(right, false)) {
        true => Err(Error::refused_with_hint("comparing a number with a boolean", "cast one side", span)),
        false => Ok(()),
    }
}

/// A string beside a boolean is one, as far as columns and literals tell.
fn as_truths([(left, of_left), (right, of_right)]: [(&mut Expr, &Option<Column>); 2]) {
    let is_truth = |side: &Expr, column: &Option<Column>| match column {
        Some(column) => column.data_type == Some(ArrowType::Boolean),
        None => matches!(side, Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. })),
    };
    let is_string = |side: &Expr, column: &Option<Column>| misplaced::is_string(side, column.as_ref());
    if is_truth(left, of_left) && is_string(right, of_right) {
        *right = own_cast(&CastKind::Cast, taken(right), "boolean");
    } else if is_string(left, of_left) && is_truth(right, of_right) {
        *left = own_cast(&CastKind::Cast, taken(left), "boolean");
    }
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
        B::Modulo => Ok(call("mod", vec![left, right])),
        B::MyIntegerDivide | B::DuckIntegerDivide => Ok(call("div", vec![left, right])),
        B::StringConcat => Ok(call("concat", vec![left, right])),
        B::PGBitwiseShiftLeft => Ok(call("shiftleft", vec![left, right])),
        B::PGBitwiseShiftRight => Ok(call("shiftright", vec![left, right])),
        B::Spaceship => Ok(Expr::IsNotDistinctFrom(Box::new(left), Box::new(right))),
        B::Plus
        | B::Minus
        | B::Multiply
        | B::BitwiseAnd
        | B::BitwiseOr
        | B::BitwiseXor
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

/// What stands for a literal.
fn constant(value: &ValueWithSpan) -> Result<Option<Expr>, Error> {
    match &value.value {
        Value::Number(..) => literal::number(value, false),
        Value::HexStringLiteral(digits) => Ok(Some(call("unhex", vec![text(digits)]))),
        Value::SingleQuotedString(_) | Value::DoubleQuotedString(_) | Value::Boolean(_) | Value::Null => Ok(None),
        other => Err(Error::refused(format!("the literal {other}"), value.span)),
    }
}

/// Whether the engine reads the text of a date or a timestamp as the dialect does.
fn is_plain_time(value: &ValueWithSpan) -> bool {
    let (Value::SingleQuotedString(text) | Value::DoubleQuotedString(text)) = &value.value else { return false };
    let shape: String = text.chars().map(|sign| if sign.is_ascii_digit() { '0' } else { sign }).collect();
    let (whole, fraction) = shape.split_once('.').unwrap_or((&shape, "0"));
    matches!(whole, "0000-00-00" | "0000-00-00 00:00:00") && (1..=6).contains(&fraction.len()) && fraction.bytes().all(|c| c == b'0')
}

/// The patterns of `LIKE ANY (…)`, and whether all are asked for.
fn several(pattern: &Expr, any: bool) -> Option<(bool, Vec<Expr>)> {
    let inside = |expression: &Expr| match expression {
        Expr::Tuple(patterns) => Some(patterns.clone()),
        Expr::Nested(one) => Some(vec![one.as_ref().clone()]),
        _ => None,
    };
    if any {
        return inside(pattern).map(|patterns| (false, patterns));
    }
    // `all`, `any` and `some` before brackets are read as calls
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = pattern else { return None };
    let all = match name.to_string().to_lowercase().as_str() {
        "all" => true,
        "any" | "some" => false,
        _ => return None,
    };
    let patterns = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(pattern)) => Some(pattern.clone()),
        _ => None,
    });
    patterns.collect::<Option<Vec<_>>>().map(|patterns| (all, patterns))
}

/// A step of a path into a JSON text: names after a dot are found in any case, names in brackets as they are.
fn json_step(step: &JsonPathElem, span: Span) -> Result<Expr, Error> {
    match step {
        JsonPathElem::Dot { key, quoted: false } => Ok(text(key)),
        JsonPathElem::Dot { key, quoted: true } => Ok(text(&format!("={key}"))),
        JsonPathElem::Bracket { key } | JsonPathElem::ColonBracket { key } => match key {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => Ok(number(&digits.to_string())),
            Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(name) | Value::DoubleQuotedString(name), .. }) => {
                Ok(text(&format!("={name}")))
            }
            _ => Err(Error::refused("this step of a path into JSON", span)),
        },
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
