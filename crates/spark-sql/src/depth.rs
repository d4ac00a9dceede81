//! How deep a text nests, or how long it chains operators: bounded, and given the room on the stack that it needs.

use std::ops::ControlFlow;

use tributary_lake::datafusion::sql::sqlparser::ast::{Expr, Visit, Visitor};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::Error;

/// Levels of an expression at most: each operator of `a + b + c` is one.
const LEVELS_MAX: usize = 200;
/// Levels that a thread's own stack has room for.
const LEVELS_SMALL: usize = 20;
/// Bytes of stack that so few levels need.
const ROOM_SMALL: usize = 768 << 10;
/// Bytes of stack for a text that needs more; they are only taken where they are used.
const ROOM: usize = 128 << 20;

/// A tree and the levels of its deepest expression; a tree of too many is let go of.
///
/// # Errors
/// [`Error::Refused`] for more than anybody writes.
pub(crate) fn measured<T: Visit>(tree: T) -> Result<(T, usize), Error> {
    match levels(&tree) {
        Ok(levels) => Ok((tree, levels)),
        Err(error) => {
            stacker::grow(ROOM, || drop(tree));
            Err(error)
        }
    }
}

fn levels(tree: &impl Visit) -> Result<usize, Error> {
    struct Depth {
        now: usize,
        most: usize,
    }
    impl Visitor for Depth {
        type Break = Error;

        fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<Error> {
            self.now += 1;
            self.most = self.most.max(self.now);
            if self.now <= LEVELS_MAX {
                return ControlFlow::Continue(());
            }
            let what = format!("an expression of more than {LEVELS_MAX} levels");
            ControlFlow::Break(Error::refused_with_hint(what, "say x in (…) for a chain of x = … or …", Span::empty()))
        }

        fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<Error> {
            self.now -= 1;
            ControlFlow::Continue(())
        }
    }
    let mut depth = Depth { now: 0, most: 0 };
    match tree.visit(&mut depth) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(depth.most),
    }
}

/// Does work on an expression of so many levels; a thread that is deep in other work gets room for few, too.
pub(crate) fn with_room<T>(levels: usize, work: impl FnOnce() -> T) -> T {
    if levels <= LEVELS_SMALL { stacker::maybe_grow(ROOM_SMALL, ROOM, work) } else { stacker::grow(ROOM, work) }
}
