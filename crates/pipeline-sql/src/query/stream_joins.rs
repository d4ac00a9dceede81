//! Joins of streams that keep rows without their partner.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, JoinOperator, ObjectName, TableWithJoins, Visit, Visitor};
use tributary_specs::Place;

use super::{Common, Gathering, common_of};

/// A join of streams that a streaming table is not kept equal to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unkept {
    pub(crate) what: String,
    pub(crate) instead: &'static str,
    /// Where the stream stands that it is about.
    pub(crate) place: Option<Place>,
}

/// What a part of a query reads as a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Streamed {
    pub(super) streams: bool,
    /// Whether one of them has a watermark.
    pub(super) watermark: bool,
    /// The word at which the first one that stands there by itself begins.
    word: Option<usize>,
}

impl Streamed {
    fn and(self, other: Self) -> Self {
        Self { streams: self.streams || other.streams, watermark: self.watermark || other.watermark, word: self.word.or(other.word) }
    }
}

impl Gathering<'_> {
    /// What a part of the query reads as a stream, by itself or by a common table expression.
    pub(super) fn streamed(&self, part: &impl Visit, common: &[Common]) -> Streamed {
        struct Streams<'a, 'b>(&'a Gathering<'b>, &'a [Common], Streamed);
        impl Visitor for Streams<'_, '_> {
            type Break = ();

            fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
                let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
                let begin = self.0.words(&parts).map(|words| words.start);
                let word = begin.filter(|begin| self.0.plain.streamed.contains(begin));
                let watermark = word.is_some_and(|word| self.0.plain.watermarks.contains_key(&word));
                let own = Streamed { streams: word.is_some(), watermark, word };
                let of_common = common_of(self.1, &parts).filter(|common| common.streamed.streams).map(|common| common.streamed);
                self.2 = self.2.and(if own.streams { own } else { of_common.unwrap_or_default() });
                ControlFlow::Continue(())
            }
        }
        let mut streams = Streams(self, common, Streamed::default());
        let _ = part.visit(&mut streams);
        streams.2
    }

    fn unkept(&self, what: String, instead: &'static str, of: Streamed) -> Unkept {
        Unkept { what, instead, place: of.word.map(|word| self.cursor.tokens.place(word)) }
    }

    /// A join of two streams that keeps rows without their partner, and has no watermark to wait for.
    pub(super) fn unkept_join(&self, from: &TableWithJoins) -> Option<Unkept> {
        let mut left = self.streamed(&from.relation, self.common());
        for join in &from.joins {
            let right = self.streamed(&join.relation, self.common());
            let (clause, waits_for): (_, &[Streamed]) = match &join.join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => ("LEFT JOIN", &[right]),
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => ("RIGHT JOIN", &[left]),
                JoinOperator::FullOuter(_) => ("FULL JOIN", &[left, right]),
                JoinOperator::Anti(_) | JoinOperator::LeftAnti(_) | JoinOperator::RightAnti(_) => ("ANTI JOIN", &[]),
                _ => ("", &[]),
            };
            if left.streams && right.streams {
                if clause == "ANTI JOIN" {
                    return Some(self.unkept(format!("{clause} of two streams"), INSTEAD, right));
                }
                if let Some(unwatched) = waits_for.iter().find(|side| !side.watermark) {
                    let what = format!("{clause} of two streams of which this one has no watermark, so that rows would wait for ever,");
                    return Some(self.unkept(what, WATERMARK, *unwatched));
                }
            }
            left = left.and(right);
        }
        None
    }

    /// A condition that keeps rows which have no partner in a stream.
    pub(super) fn unkept_condition(&self, expression: &Expr) -> Option<Unkept> {
        let (clause, subquery) = match expression {
            Expr::Exists { subquery, negated: true } => ("NOT EXISTS", subquery),
            Expr::InSubquery { subquery, negated: true, .. } => ("NOT IN", subquery),
            _ => return None,
        };
        let of = self.streamed(subquery.as_ref(), self.common());
        of.streams.then(|| self.unkept(format!("{clause} over a stream"), "a materialized view", of))
    }
}

const INSTEAD: &str = "an inner join of them, or a materialized view";
const WATERMARK: &str = "WATERMARK column DELAY OF INTERVAL n unit behind it, and in ON a bound in time, as in \
                         b.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES";
