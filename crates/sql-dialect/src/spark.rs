//! The dialect that queries and expressions are read in: Databricks', with what the parser's own lacks and a bound on its work.
//!
//! - `a div b`, as strong as `*` and `/`.
//! - `a << b`, `a >> b` and `a >>> b`, weaker than `+` and stronger than `&`.
//! - Intervals of several units, and other forms that the parser does not know.
//! - In a string a backslash is one sign with what follows it.
//!
//! The parser tries some readings one after the other; where they nest and the text has a mistake at the bottom, the tries multiply.
//! Every expression begins with a call of [`Dialect::parse_prefix`], so that counting these counts the work.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::Expr;
use sqlparser::dialect::{DatabricksDialect, Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::{forms, interval};

/// What `<<` and `>>` bind with: between `+` and `&`.
const SHIFT: u8 = 25;
/// Expressions begun for each word of a text, at most; a text without mistakes needs two.
const TRIES_A_WORD: usize = 8;
/// Expressions begun in any text.
const TRIES_MIN: usize = 10_000;

/// The dialect, for one text; to all rules of the parser that ask for a dialect by its type it is Databricks'.
///
/// ```
/// use sqlparser::parser::Parser;
/// use tributary_sql_dialect::Spark;
///
/// let dialect = Spark::new(5);
/// let expression = Parser::new(&dialect).try_with_sql("7 div 2 + 1")?.parse_expr()?;
/// assert_eq!(expression.to_string(), "7 DIV 2 + 1");
/// # Ok::<(), sqlparser::parser::ParserError>(())
/// ```
#[derive(Debug)]
pub struct Spark {
    left: Cell<usize>,
}

impl Spark {
    /// For a text of so many words and signs; the parser gives up a text that takes many more tries.
    pub fn new(words: usize) -> Self {
        Self { left: Cell::new(TRIES_MIN + TRIES_A_WORD * words) }
    }
}

impl Dialect for Spark {
    fn dialect(&self) -> TypeId {
        TypeId::of::<DatabricksDialect>()
    }

    /// Gives up by the one error that the parser does not answer with another try.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        match self.left.get().checked_sub(1) {
            Some(left) => {
                self.left.set(left);
                interval::read(parser).or_else(|| forms::prefix(parser))
            }
            None => Some(Err(ParserError::RecursionLimitExceeded)),
        }
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        forms::infix(parser, left, precedence)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::ShiftLeft | Token::ShiftRight => Some(Ok(SHIFT)),
            Token::Word(word) if word.keyword == Keyword::DIV && word.quote_style.is_none() => {
                Some(Ok(self.prec_value(Precedence::MulDivModOp)))
            }
            _ => None,
        }
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }

    fn is_delimited_identifier_start(&self, sign: char) -> bool {
        DatabricksDialect.is_delimited_identifier_start(sign)
    }

    fn is_identifier_start(&self, sign: char) -> bool {
        DatabricksDialect.is_identifier_start(sign)
    }

    fn is_identifier_part(&self, sign: char) -> bool {
        DatabricksDialect.is_identifier_part(sign)
    }

    fn supports_numeric_prefix(&self) -> bool {
        DatabricksDialect.supports_numeric_prefix()
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        DatabricksDialect.supports_filter_during_aggregation()
    }

    fn supports_group_by_expr(&self) -> bool {
        DatabricksDialect.supports_group_by_expr()
    }

    fn supports_table_versioning(&self) -> bool {
        DatabricksDialect.supports_table_versioning()
    }

    fn supports_lambda_functions(&self) -> bool {
        DatabricksDialect.supports_lambda_functions()
    }

    fn supports_select_wildcard_except(&self) -> bool {
        DatabricksDialect.supports_select_wildcard_except()
    }

    fn require_interval_qualifier(&self) -> bool {
        DatabricksDialect.require_interval_qualifier()
    }

    fn supports_struct_literal(&self) -> bool {
        DatabricksDialect.supports_struct_literal()
    }

    fn supports_nested_comments(&self) -> bool {
        DatabricksDialect.supports_nested_comments()
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        DatabricksDialect.supports_group_by_with_modifier()
    }

    fn supports_values_as_table_factor(&self) -> bool {
        DatabricksDialect.supports_values_as_table_factor()
    }

    fn supports_optimize_table(&self) -> bool {
        DatabricksDialect.supports_optimize_table()
    }

    fn supports_bang_not_operator(&self) -> bool {
        DatabricksDialect.supports_bang_not_operator()
    }

    fn supports_cte_without_as(&self) -> bool {
        DatabricksDialect.supports_cte_without_as()
    }

    fn supports_select_item_multi_column_alias(&self) -> bool {
        DatabricksDialect.supports_select_item_multi_column_alias()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dialect: &dyn Dialect, text: &str) -> Result<String, String> {
        Parser::parse_sql(dialect, text).map(|read| format!("{read:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_else_is_read_as_the_parser_reads_it() {
        for text in [
            "SELECT `a b`, 1L, struct(1 AS a), !b, * EXCEPT (c) FROM t VERSION AS OF 3 WHERE exists(x, y -> y > 1)",
            "SELECT stack(1, 2) AS (a, b), count(*) FILTER (WHERE a) FROM VALUES (1), (2) GROUP BY a, b WITH ROLLUP",
            "SELECT a + INTERVAL 1 DAY, date'2024-01-01', x:a.b[0], a.1b FROM t LATERAL VIEW explode(x) y AS z /* a /* b */ */",
            "WITH a (SELECT 1) SELECT CASE WHEN a <=> b THEN a & b | c ^ d ELSE -a || b END FROM a",
            "OPTIMIZE t ZORDER BY (a)",
            "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
            "SELECT (",
        ] {
            assert_eq!(read(&Spark::new(100), text), read(&DatabricksDialect, text), "{text}");
        }
    }

    /// An expression with brackets around every operation.
    fn bracketed(expression: &Expr) -> String {
        match expression {
            Expr::BinaryOp { left, op, right } => format!("({} {op} {})", bracketed(left), bracketed(right)),
            other => other.to_string(),
        }
    }

    #[test]
    fn operators_bind_as_in_the_dialect() {
        for (text, same) in [
            ("5 div 2 + 1", "((5 DIV 2) + 1)"),
            ("1 + 5 DIV 2 * 3", "(1 + ((5 DIV 2) * 3))"),
            ("1 << 2 + 3", "(1 << (2 + 3))"),
            ("7 & 1 >> 2", "(7 & (1 >> 2))"),
            ("1 << 2 = 4", "((1 << 2) = 4)"),
            ("1 + 8 >>> 1", "shiftrightunsigned(1 + 8, 1)"),
            ("5 & 8 >>> 1 + 1", "(5 & shiftrightunsigned(8, 1 + 1))"),
            ("a::map<string, array<int>> = 1", "(a::map<string,array<int>> = 1)"),
        ] {
            assert_eq!(bracketed(&Parser::new(&Spark::new(9)).try_with_sql(text).unwrap().parse_expr().unwrap()), same, "{text}");
        }
    }

    #[test]
    fn intervals_come_to_months_or_to_days_and_seconds() {
        for (text, same) in [
            ("interval 1 day 2 hours", "INTERVAL '1 days 7200 seconds'"),
            ("INTERVAL '1' year '2' MONTHS", "INTERVAL '14 months'"),
            ("interval -1 day", "INTERVAL '-1 days'"),
            ("interval '1 day 2.5 seconds'", "INTERVAL '1 days 2.500000000 seconds'"),
            ("interval '-1 2:03:04.5' day to second", "INTERVAL '-1 days -7384.500000000 seconds'"),
            ("interval '25:00' hour to minute", "INTERVAL '90000 seconds'"),
            ("interval '1-2' year to month", "INTERVAL '14 months'"),
            ("interval 5 milliseconds", "INTERVAL '0.005000000 seconds'"),
            ("interval 1 day", "INTERVAL 1 DAY"),
            ("interval '1' day", "INTERVAL '1' DAY"),
        ] {
            assert_eq!(Parser::new(&Spark::new(9)).try_with_sql(text).unwrap().parse_expr().unwrap().to_string(), same, "{text}");
        }
        for text in [
            "interval 1.5 day",
            "interval 1 year 1 day",
            "interval '1 25:00' day to minute",
            "interval 'x days'",
            "interval '1-12' year to month",
        ] {
            let error = Parser::new(&Spark::new(9)).try_with_sql(text).unwrap().parse_expr().unwrap_err().to_string();
            assert!(error.contains("an interval is whole units of years and months") && error.ends_with("Line: 1, Column: 1"), "{error}");
        }
    }

    #[test]
    fn tries_that_multiply_come_to_an_end() {
        for text in [
            format!("SELECT {}1", "INTERVAL 1 + ".repeat(40)),
            format!("SELECT {}1 x y{}", "CAST(".repeat(40), " AS INT)".repeat(40)),
            format!("SELECT {}1 x y{}", "TRIM(".repeat(40), ")".repeat(40)),
            format!("SELECT {}1", "INTERVAL ".repeat(45)),
        ] {
            assert!(Parser::parse_sql(&Spark::new(200), &text).is_err(), "{text}");
        }
    }
}
