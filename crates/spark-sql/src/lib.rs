//! Spark's meaning of SQL, for every text that people write: queries over the lake, views, selects, rules and conditions.
//!
//! DataFusion executes them, but it reads that dialect with other meanings: it parses `VERSION AS OF` and ignores it, folds or does
//! not fold names, sorts nulls the other way, divides whole numbers to whole numbers. So a text goes through these steps, and what
//! none of them knows is refused by name, with its place and the nearest known name, instead of answered wrongly:
//!
//! ```text
//! text ──▶ parse      one query, or one expression
//!            ▼
//!          uses       which tables, at which version, or which changes        (whoever opens them does so here)
//!            ▼
//!          rewrite    names found without regard to case and spelled as they are; every clause, operator and
//!                     function either known to mean the same here, or given the dialect's meaning, or refused
//!            ▼
//!          meaning    what only types can tell: operations that mean something else here
//!            ▼
//!          DataFusion
//! ```
//!
//! - `catalogue.schema.table`, `schema.table`, or `table` where only one schema has it.
//! - `FROM t VERSION AS OF n`, `FROM t TIMESTAMP AS OF '…'` (UTC), `FROM table_changes('schema.table', from[, to])`.
//! - A star is the columns of the rows: those that the lake keeps beside them (`_position`, `_file`, `__sequence`, …) are named.
//! - A string beside a number, a day, a time or a boolean is read as one, and is an error of its row where it cannot be.
//! - A whole number in a text is an INT, a BIGINT or a DECIMAL, the first of them that it fits. `+`, `-`, `*` and `sum` of whole
//!   numbers stop where the result is too large for its type.

mod alias;
mod asked;
mod ast;
mod breadth;
mod calendar;
mod calls;
mod change;
mod coalesce;
mod convert;
mod ddl;
mod decimal;
mod depth;
mod error;
mod expression;
mod form;
mod from;
mod functions;
mod groups;
mod growth;
mod join_keys;
mod join_order;
mod lateral;
mod lateral_alias;
mod lex;
mod likeness;
mod literal;
mod locate;
mod meaning;
mod misplaced;
mod open;
mod parse;
mod pivot;
mod quotient;
mod range;
#[cfg(test)]
mod recorded;
mod rewrite;
mod rounding;
mod scope;
mod script;
mod session;
mod shortest;
mod sql_function;
mod stars;
mod statement;
mod strings;
mod substring;
mod sum;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod times;
mod together;
mod travel;
mod twice;
mod type_name;
mod types;
mod unfold;
mod uses;
mod value;
mod values;
mod words;

pub use change::{CLAUSE, Change, FILE, Insert, PlannedChange, ROW, RowAction, RowChange, Target, after, before};
pub use error::Error;
pub use functions::{Determinism, determinism};
pub use open::open;
pub use parse::statements;
pub use script::{Piece, pieces};
pub use session::{current_user, prepare, run_as, run_in_groups};
pub use sql_function::{SqlFunction, names};
pub use statement::{
    Alteration, CreateFunction, CreateTable, Described, Grant, Key, Kind, Mask, Name, Parameter, Privilege, Securable, Shown, Statement,
    only_statement,
};
pub use tables::{Missing, Source, Tables, choose};
pub use text::{Text, expression, unknown_functions};
pub use type_name::{quoted_name, type_name};
pub use uses::{Point, Read, TableUse, instant};
pub use words::{without_values, words, words_without_values};

/// Names what texts mean to this release. It changes when a text comes to mean something else, so that what was made of it is made
/// anew.
pub const MEANING: &str = "spark 4, second reading";
