//! LIKE and its kin.

use tributary_lake::datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::Error;
use crate::ast::{and, call, or, text};
use crate::strings::AS_TEXT;

/// A pattern with a backslash before signs that are meant.
///
/// # Errors
/// [`Error::Refused`] for a sign that nothing follows, or that stands before another than `_`, `%` and itself, and for an ESCAPE
/// with a pattern that is not written.
pub(crate) fn pattern(pattern: Expr, escape: Option<&ValueWithSpan>, span: Span) -> Result<Expr, Error> {
    let escape = match escape.map(|escape| &escape.value) {
        None => '\\',
        Some(Value::SingleQuotedString(sign) | Value::DoubleQuotedString(sign)) if sign.chars().count() == 1 => {
            sign.chars().next().unwrap_or('\\')
        }
        Some(_) => return Err(Error::refused("this ESCAPE", span)),
    };
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(written) | Value::DoubleQuotedString(written), .. }) = &pattern else {
        return if escape == '\\' { Ok(pattern) } else { Err(Error::refused("ESCAPE with a pattern that is no literal", span)) };
    };
    let mut told = String::new();
    let mut signs = written.chars();
    while let Some(sign) = signs.next() {
        if sign == escape {
            match signs.next() {
                Some(meant) if meant == '_' || meant == '%' || meant == escape => {
                    if matches!(meant, '_' | '%' | '\\') {
                        told.push('\\');
                    }
                    told.push(meant);
                }
                _ => return Err(Error::refused("a pattern of LIKE with an escape before another sign than _, % and itself", span)),
            }
        } else {
            if sign == '\\' {
                told.push('\\');
            }
            told.push(sign);
        }
    }
    Ok(text(&told))
}

/// `of [NOT] LIKE pattern`.
pub(crate) fn like(of: Expr, pattern: Expr, any_case: bool, negated: bool) -> Expr {
    let is_text = |of: &Expr| matches!(of, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }));
    let text = |of: Expr| Box::new(if is_text(&of) { of } else { call(AS_TEXT, vec![of]) });
    let (expr, pattern) = (text(of), text(pattern));
    if any_case {
        Expr::ILike { negated, any: false, expr, pattern, escape_char: None }
    } else {
        Expr::Like { negated, any: false, expr, pattern, escape_char: None }
    }
}

/// One of several patterns, or all of them.
pub(crate) fn of_several(of: &Expr, patterns: Vec<Expr>, any_case: bool, negated: bool, all: bool) -> Option<Expr> {
    let each = patterns.into_iter().map(|pattern| like(of.clone(), pattern, any_case, negated));
    each.reduce(if all { and } else { or }).map(|joined| Expr::Nested(Box::new(joined)))
}
