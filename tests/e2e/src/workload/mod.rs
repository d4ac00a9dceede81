//! What happens in the databases: transactions made from a seed, the same ones in the same order for the same seed.
//!
//! A workload keeps a model of which keys live, so that its statements always find the rows they are about.

mod depot;
mod payments;
mod perform;
mod shop;
mod values;

pub use depot::Depot;
pub use payments::Payments;
pub use perform::{Performed, perform};
pub use shop::Shop;

use crate::random::Random;

/// Whether the connectors lose something, and so whether the workload shall touch what they lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Nothing is lost.
    Fidelity,
    /// Connectors as people run them; the workload touches all that those lose.
    Hostile,
}

impl Profile {
    /// Its name in files and texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fidelity => "fidelity",
            Self::Hostile => "hostile",
        }
    }
}

/// Statements that stand or fall together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// One statement each, without semicolon.
    pub statements: Vec<String>,
    /// How it ends.
    pub ending: Ending,
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its rows stay.
    Commit,
    /// It leaves no trace.
    Rollback,
    /// Every statement is a transaction of its own (DDL).
    Each,
}

/// Transactions without end.
pub trait Workload: Send {
    /// The next transaction.
    fn next(&mut self) -> Transaction;

    /// Rows that show, in every partition, that all before them has been delivered. No later transaction touches them.
    fn markers(&self) -> Vec<String>;

    /// Keys of rows that a truncate took, as `table: key`; no later transaction brings such a key back.
    fn truncated(&self) -> &[String];
}

/// What the transactions of a database are made of; how they follow one another is the same for all, see [`Workload`].
trait Model: Clone + Send {
    fn random(&mut self) -> &mut Random;

    /// Takes one step further; what happens once, at this step.
    fn appointed(&mut self) -> Option<Transaction>;

    /// A transaction on rows, by chance; none when it would need a row that is not there.
    fn statements(&mut self) -> Option<Vec<String>>;

    /// A row, for when chance found none.
    fn plain(&mut self) -> String;

    /// Columns that came later are written too, now and then.
    fn late(&mut self) -> Option<String>;

    fn markers(&self) -> Vec<String>;

    fn truncated(&self) -> &[String];
}

/// How many transactions in a hundred are rolled back. They leave no trace in the model either, but for the random numbers they used.
const ROLLED_BACK: u64 = 4;

impl<M: Model> Workload for M {
    fn next(&mut self) -> Transaction {
        if let Some(appointed) = self.appointed() {
            return appointed;
        }
        let kept = self.clone();
        let Some(mut statements) = self.statements() else {
            return Transaction { statements: vec![self.plain()], ending: Ending::Commit };
        };
        statements.extend(self.late());
        if self.random().chance(ROLLED_BACK) {
            let random = self.random().clone();
            *self = kept;
            *self.random() = random;
            return Transaction { statements, ending: Ending::Rollback };
        }
        Transaction { statements, ending: Ending::Commit }
    }

    fn markers(&self) -> Vec<String> {
        Model::markers(self)
    }

    fn truncated(&self) -> &[String] {
        Model::truncated(self)
    }
}

/// All that is appointed has happened after so many transactions.
pub const LEAST: u64 = 400;
/// How many marker rows a table gets: enough that each of three partitions has some.
const MARKERS: u64 = 24;
/// Numbers of marker rows begin here; no other key is as large.
const MARKER_FIRST: u64 = 900_000_000_000;

/// Whether a record's key, in JSON or in Avro, is that of a marker row.
pub fn is_marker(key: &str) -> bool {
    key.contains(":9000000000") || key.contains("MARKER")
}
