//! What is asked of the parser for more than one of its readers.

use sqlparser::ast::Ident;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::Spark;

/// The parts of a dotted name that is all of a text; those in back-quotes say so.
pub fn name_parts(text: &str) -> Option<Vec<Ident>> {
    let dialect = Spark::new(0);
    let mut parser = Parser::new(&dialect).try_with_sql(text).ok()?;
    let name = parser.parse_object_name(false).ok()?;
    let is_all = parser.peek_token_ref().token == Token::EOF;
    let is_name = |ident: &&Ident| matches!(ident.quote_style, None | Some('`'));
    is_all.then(|| name.0.iter().map(|part| part.as_ident().filter(is_name).cloned()).collect()).flatten()
}

/// What the parser says of a text that it cannot read, without its names for what is in the text; the place at its end stays.
///
/// ```
/// use tributary_sql_dialect::{Spark, readable};
/// use sqlparser::parser::Parser;
///
/// let error = Parser::parse_sql(&Spark::new(9), "SELECT a # b").unwrap_err();
/// assert_eq!(readable(&error.to_string()), "this sign is not expected here at Line: 1, Column: 10");
/// ```
pub fn readable(message: &str) -> String {
    let message = message.strip_prefix("sql parser error: ").unwrap_or(message);
    let Some(token) = message.strip_prefix("No infix parser for token ") else { return message.to_owned() };
    let (token, place) = token.split_at(token.rfind(" at Line: ").unwrap_or(token.len()));
    let word = token.split_once("value: \"").and_then(|(_, rest)| rest.split_once("\", quote_style"));
    let what = word.map_or("this sign".to_owned(), |(word, _)| format!("`{word}`"));
    format!("{what} is not expected here{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_all_of_its_text() {
        let parts = |text: &str| name_parts(text).map(|parts| parts.into_iter().map(|part| part.value).collect::<Vec<_>>());
        assert_eq!(parts("a.`b.``c`").unwrap(), ["a", "b.`c"]);
        assert_eq!([parts("a.b c"), parts("a."), parts(""), parts("'a'.b"), parts("f(a)")], [const { None }; 5]);
    }

    #[test]
    fn words_of_the_parser_stay_out_of_what_it_says() {
        for (text, said) in [
            ("SELECT a operator (b", "`operator` is not expected here at Line: 1, Column: 10"),
            ("SELECT a b c", "Expected: end of statement, found: c at Line: 1, Column: 12"),
        ] {
            let error = Parser::parse_sql(&Spark::new(9), text).unwrap_err();
            assert_eq!(readable(&error.to_string()), said, "{text}");
        }
    }
}
