//! The dialect that queries and expressions are read in, with a bound on the work that a text can cause.
//!
//! The parser tries some readings one after the other; where they nest and the text has a mistake at the bottom, the tries multiply.
//! Every expression begins with a call of [`Dialect::parse_prefix`], so that counting these counts the work.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::Expr;
use sqlparser::dialect::{DatabricksDialect, Dialect};
use sqlparser::parser::{Parser, ParserError};

/// Expressions begun for each word of a text, at most; a text without mistakes needs two.
const TRIES_A_WORD: usize = 8;
/// Expressions begun in any text.
const TRIES_MIN: usize = 10_000;

/// [`DatabricksDialect`] that gives up after so many tries.
#[derive(Debug)]
pub(crate) struct Bounded {
    left: Cell<usize>,
}

impl Bounded {
    /// For a text of so many words.
    pub(crate) fn new(words: usize) -> Self {
        Self { left: Cell::new(TRIES_MIN + TRIES_A_WORD * words) }
    }
}

impl Dialect for Bounded {
    fn dialect(&self) -> TypeId {
        TypeId::of::<DatabricksDialect>()
    }

    /// Gives up by the one error that the parser does not answer with another try.
    fn parse_prefix(&self, _: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match self.left.get().checked_sub(1) {
            Some(left) => {
                self.left.set(left);
                None
            }
            None => Some(Err(ParserError::RecursionLimitExceeded)),
        }
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        DatabricksDialect.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        DatabricksDialect.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        DatabricksDialect.is_identifier_part(ch)
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

    #[test]
    fn it_reads_what_the_platforms_dialect_reads() {
        for text in [
            "SELECT * EXCEPT (a), count(*) FILTER (WHERE b) AS n FROM t VERSION AS OF 3 GROUP BY a + 1 WITH ROLLUP",
            "SELECT transform(a, x -> x + 1), !b, struct(1 AS c), INTERVAL 1 DAY, v:a.b::INT FROM VALUES (1), (2) AS t(a)",
            "WITH a (SELECT 1), b AS (SELECT 2) SELECT stack(1, 2) AS (c, d) FROM `a b`.1c /* x /* y */ */",
            "SELECT a b c",
            "SELECT 5 $ 6",
        ] {
            let bounded = Bounded::new(100);
            let read = |dialect: &dyn Dialect| Parser::parse_sql(dialect, text).map_err(|error| error.to_string());
            assert_eq!(read(&bounded), read(&DatabricksDialect), "{text}");
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
            assert!(Parser::parse_sql(&Bounded::new(200), &text).is_err(), "{text}");
        }
    }
}
