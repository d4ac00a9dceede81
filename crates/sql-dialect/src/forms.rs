//! Expressions of the dialect that the parser does not read.
//!
//! - `struct(*)`, `struct(t.*)`: a call as others are.
//! - `CAST(x AS map<string, int>)`: the parser knows maps of another dialect alone.
//! - `extract(mon FROM x)`: units that are no words of the parser's.
//! - `trim(LEADING FROM x)`.
//! - `a >>> b`, and `x::struct<a: int>.a`.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, TrimWhereField, Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Units of a time that the parser has no words for.
const UNITS: &[&str] =
    &["y", "yr", "yrs", "mon", "mons", "w", "d", "h", "hr", "hrs", "m", "min", "mins", "s", "sec", "secs", "dayofweek_iso", "yearofweek"];

/// The expression that stands next, where it is one of these.
pub(crate) fn prefix(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return None };
    if word.quote_style.is_some() || parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    match word.value.to_ascii_lowercase().as_str() {
        "struct" if has_star(parser) => {
            let name = ObjectName::from(vec![Ident::new("struct")]);
            parser.advance_token();
            Some(parser.parse_function(name))
        }
        kind @ ("cast" | "try_cast") if is_cast_to_map(parser) => {
            let kind = if kind == "cast" { CastKind::Cast } else { CastKind::TryCast };
            Some(cast(parser, kind))
        }
        "extract" => extract(parser),
        "trim" => trim(parser),
        _ => None,
    }
}

/// Whether a star stands among the arguments of the call that stands next.
fn has_star(parser: &Parser<'_>) -> bool {
    let (mut at, mut depth) = (2, 1);
    let mut before = &Token::LParen;
    loop {
        let token = &parser.peek_nth_token_ref(at).token;
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Mul if depth == 1 && matches!(before, Token::LParen | Token::Comma | Token::Period) => return true,
            Token::EOF | Token::SemiColon => return false,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
        before = token;
        at += 1;
    }
}

/// Whether the cast that stands next is to a type that holds a map.
fn is_cast_to_map(parser: &Parser<'_>) -> bool {
    let (mut at, mut depth, mut behind_as) = (2, 1, false);
    loop {
        match &parser.peek_nth_token_ref(at).token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Word(word) if depth == 1 && word.keyword == Keyword::AS => behind_as = true,
            Token::Word(word) if behind_as && depth == 1 && word.value.eq_ignore_ascii_case("map") => return true,
            Token::EOF | Token::SemiColon => return false,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
        at += 1;
    }
}

fn cast(parser: &mut Parser<'_>, kind: CastKind) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword_is(Keyword::AS)?;
    let data_type = written_type(parser, &|token, depth| depth == 0 && *token == Token::RParen)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Cast { kind, expr, data_type, array: false, format: None })
}

/// A type as it is written, up to where it ends.
fn written_type(parser: &mut Parser<'_>, ends: &dyn Fn(&Token, i32) -> bool) -> Result<DataType, ParserError> {
    let (mut text, mut depth) = (String::new(), 0);
    loop {
        let token = parser.peek_token_ref().token.clone();
        if ends(&token, depth) {
            break;
        }
        match &token {
            Token::Lt | Token::LParen => depth += 1,
            Token::Gt | Token::RParen => depth -= 1,
            Token::ShiftRight => depth -= 2,
            Token::EOF | Token::SemiColon => return parser.expected("the end of a type", parser.peek_token()),
            _ => {}
        }
        if matches!(token, Token::Word(_)) && text.ends_with(|sign: char| sign.is_alphanumeric() || sign == '_') {
            text.push(' ');
        }
        text.push_str(&token.to_string());
        parser.advance_token();
        if depth == 0 && matches!(token, Token::Gt | Token::ShiftRight) {
            break;
        }
    }
    Ok(DataType::Custom(ObjectName::from(vec![Ident::new(text)]), Vec::new()))
}

/// `extract(unit FROM x)` of a unit that the parser has no word for.
fn extract(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let Token::Word(unit) = &parser.peek_nth_token_ref(2).token else { return None };
    let unit = unit.value.to_ascii_lowercase();
    let from = matches!(&parser.peek_nth_token_ref(3).token, Token::Word(word) if word.keyword == Keyword::FROM);
    if !from || !UNITS.contains(&unit.as_str()) {
        return None;
    }
    (0..4).for_each(|_| parser.advance_token());
    let of = parser.parse_expr().and_then(|of| parser.expect_token(&Token::RParen).map(|_| of));
    Some(of.map(|of| call("date_part", vec![Expr::Value(Value::SingleQuotedString(unit).with_empty_span()), of])))
}

/// `trim(LEADING FROM x)`, of blanks.
fn trim(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let word = |at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) => Some(word.keyword),
        _ => None,
    };
    let side = match word(2) {
        Some(Keyword::LEADING) => TrimWhereField::Leading,
        Some(Keyword::TRAILING) => TrimWhereField::Trailing,
        Some(Keyword::BOTH) => TrimWhereField::Both,
        _ => return None,
    };
    if word(3) != Some(Keyword::FROM) {
        return None;
    }
    (0..4).for_each(|_| parser.advance_token());
    let of = parser.parse_expr().and_then(|of| parser.expect_token(&Token::RParen).map(|_| of));
    Some(of.map(|of| Expr::Trim { trim_where: Some(side), trim_what: None, expr: Box::new(of), trim_characters: None }))
}

/// What stands behind an expression, where it is one of these.
pub(crate) fn infix(parser: &mut Parser<'_>, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
    let second = &parser.peek_nth_token_ref(1).token;
    match &parser.peek_token_ref().token {
        Token::Word(word) if word.keyword == Keyword::DIV && word.quote_style.is_none() => {
            parser.advance_token();
            let of = |right| Expr::BinaryOp { left: Box::new(left.clone()), op: BinaryOperator::MyIntegerDivide, right: Box::new(right) };
            Some(parser.parse_subexpr(precedence).map(of))
        }
        Token::ShiftRight if *second == Token::Gt => {
            (0..2).for_each(|_| parser.advance_token());
            Some(parser.parse_subexpr(precedence).map(|right| call("shiftrightunsigned", vec![left.clone(), right])))
        }
        Token::DoubleColon if matches!(second, Token::Word(word) if word.value.eq_ignore_ascii_case("map")) => {
            parser.advance_token();
            let to = written_type(parser, &|_, _| false);
            Some(to.map(|data_type| Expr::Cast {
                kind: CastKind::DoubleColon,
                expr: Box::new(left.clone()),
                data_type,
                array: false,
                format: None,
            }))
        }
        Token::Period if matches!(left, Expr::Cast { kind: CastKind::DoubleColon, .. }) => {
            parser.advance_token();
            Some(parser.parse_identifier().map(|field| Expr::CompoundFieldAccess {
                root: Box::new(left.clone()),
                access_chain: vec![AccessExpr::Dot(Expr::Identifier(field))],
            }))
        }
        Token::Period if matches!(left, Expr::CompoundFieldAccess { root, .. } if matches!(**root, Expr::Cast { .. })) => {
            let Expr::CompoundFieldAccess { root, access_chain } = left.clone() else { return None };
            parser.advance_token();
            Some(parser.parse_identifier().map(|field| {
                let access_chain = access_chain.into_iter().chain([AccessExpr::Dot(Expr::Identifier(field))]).collect();
                Expr::CompoundFieldAccess { root, access_chain }
            }))
        }
        _ => None,
    }
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
