//! Types of columns and parameters.

use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;
use tributary_specs::DataType;

use super::cursor::Cursor;
use crate::Error;

/// A type, up to a comma, a closing bracket or one of these words.
pub(super) fn data_type(cursor: &mut Cursor<'_>, until: &[&str]) -> Result<DataType, Error> {
    let span = cursor.place();
    let mark = cursor.mark();
    let (mut angles, mut brackets) = (0usize, 0usize);
    loop {
        match cursor.sign() {
            Token::EOF => break,
            Token::Lt => angles += 1,
            Token::Gt => angles = angles.saturating_sub(1),
            Token::ShiftRight => angles = angles.saturating_sub(2),
            Token::LParen => brackets += 1,
            Token::RParen if brackets == 0 => break,
            Token::RParen => brackets -= 1,
            Token::Comma if angles == 0 && brackets == 0 => break,
            _ if angles == 0 && brackets == 0 && cursor.word(0).is_some_and(|word| until.contains(&word.as_str())) => break,
            _ => {}
        }
        cursor.skip();
    }
    let written = if mark == cursor.mark() { String::new() } else { cursor.text_from(mark) };
    if written.is_empty() {
        return Err(cursor.expected("a type"));
    }
    type_of(&written).map_err(|reason| Error::Refused { what: format!("the type {written}"), hint: Some(reason), span })
}

fn type_of(written: &str) -> Result<DataType, String> {
    let lower = written.to_lowercase();
    let (word, rest) = lower.split_once('(').unwrap_or((&lower, ""));
    match word.trim() {
        "decimal" | "dec" | "numeric" if rest.is_empty() => Ok(DataType::Decimal { precision: 10, scale: 0 }),
        "varchar" | "char" | "character" if rest.ends_with(')') => Err("texts have any length: say STRING".to_owned()),
        _ => written.parse().map_err(|error: tributary_specs::Error| error.to_string()),
    }
}
