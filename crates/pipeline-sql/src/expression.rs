//! Expressions: how far one goes, its text, and what it may not ask.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, Visit, Visitor};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use tributary_sql_dialect::Spark;

use crate::cursor::Cursor;
use crate::error::Error;
use crate::query::unreadable;
use crate::read::Reader;
use crate::streams;
use crate::woven::Woven;

impl Reader<'_> {
    /// The text of the expression that comes next, as far as it goes; it is passed over. A mistake is told and gives none.
    pub(crate) fn expression(&mut self, cursor: &mut Cursor, of: &str, clause: &str) -> Option<String> {
        let plain = streams::plain(cursor, false, of, self.parameters, self.report);
        let dialect = Spark::new(plain.tokens.len());
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(plain.tokens);
        let tree = match parser.parse_expr() {
            Ok(tree) => tree,
            Err(error) => {
                let (at, error) = unreadable(&error, cursor, of);
                self.report.fault(&cursor.tokens.place(at), &of_clause(error, clause));
                return None;
            }
        };
        let next = parser.peek_token();
        let end = match next.token {
            Token::EOF => cursor.end,
            _ => cursor.tokens.at_location(next.span.start).unwrap_or(cursor.end),
        };
        if asks_tables(&tree) {
            let reason = "it asks other tables, and only the columns of one row are there".to_owned();
            let unreadable = Error::ExpressionUnreadable { of: of.to_owned(), clause: clause.to_owned(), reason };
            self.report.fault(&cursor.place(), &unreadable);
        }
        let (whole, place) = (cursor.within(cursor.at, end), cursor.place());
        cursor.at = end;
        let (written, trail) = (whole.rest(), whole.tokens.trail(whole.at, whole.end));
        let (mut woven, mut at) = (Woven::default(), 0);
        for (words, value) in plain.replaced.iter().filter(|(words, _)| words.end <= end) {
            let range = whole.bytes(words);
            woven.push(written, &trail, at..range.start);
            woven.put(value, &trail, range.start);
            at = range.end;
        }
        woven.push(written, &trail, at..written.len());
        let text = woven.text.clone();
        self.report.expression(place, woven);
        Some(text)
    }

    /// The text of the expression that all of `cursor` is.
    pub(crate) fn whole_expression(&mut self, mut cursor: Cursor, of: &str, clause: &str) -> Option<String> {
        if cursor.is_done() {
            let reason = "it is empty".to_owned();
            self.report.fault(&cursor.place(), &Error::ExpressionUnreadable { of: of.to_owned(), clause: clause.to_owned(), reason });
            return None;
        }
        let text = self.expression(&mut cursor, of, clause)?;
        if cursor.is_done() {
            return Some(text);
        }
        let reason = format!("{} is not expected here", cursor.found());
        self.report.fault(&cursor.place(), &Error::ExpressionUnreadable { of: of.to_owned(), clause: clause.to_owned(), reason });
        None
    }
}

fn of_clause(error: Error, clause: &str) -> Error {
    match error {
        Error::QueryUnreadable { of, reason, .. } => Error::ExpressionUnreadable { of, clause: clause.to_owned(), reason },
        other => other,
    }
}

fn asks_tables(tree: &Expr) -> bool {
    struct Queries;
    impl Visitor for Queries {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    tree.visit(&mut Queries).is_break()
}
