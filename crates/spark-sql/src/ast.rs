//! Parts of rewritten texts.

use tributary_lake::datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    Value,
};

/// A name of one part.
pub(crate) fn object_name(name: &str) -> ObjectName {
    ObjectName::from(vec![quoted(name)])
}

/// A name in quotes, so that it stays as it is spelled.
pub(crate) fn quoted(name: &str) -> Ident {
    Ident::with_quote('`', name)
}

/// A call of a function.
pub(crate) fn call(function: &str, arguments: Vec<Expr>) -> Expr {
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

/// A literal text.
pub(crate) fn text(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).with_empty_span())
}

/// A literal number.
pub(crate) fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.into(), false).with_empty_span())
}

/// A literal number of 64 bits, for a text that is yet to be rewritten.
pub(crate) fn long(number: usize) -> Expr {
    Expr::Value(Value::Number(number.to_string(), true).with_empty_span())
}

/// A literal truth.
pub(crate) fn boolean(yes: bool) -> Expr {
    Expr::Value(Value::Boolean(yes).with_empty_span())
}

/// `left AND right`.
pub(crate) fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) }
}

/// `left OR right`, in brackets.
pub(crate) fn or(left: Expr, right: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Or, right: Box::new(right) }))
}

/// `CASE WHEN condition THEN result [ELSE otherwise] END`.
pub(crate) fn case(condition: Expr, result: Expr, otherwise: Option<Expr>) -> Expr {
    cases(vec![CaseWhen { condition, result }], otherwise)
}

/// `CASE WHEN condition THEN result … [ELSE otherwise] END`.
pub(crate) fn cases(conditions: Vec<CaseWhen>, otherwise: Option<Expr>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: otherwise.map(Box::new),
    }
}

/// `count(*)`.
pub(crate) fn count() -> Expr {
    let mut count = call("count", Vec::new());
    if let Expr::Function(function) = &mut count
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)];
    }
    count
}
