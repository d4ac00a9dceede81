//! What was done, or would be.

use std::ops::{AddAssign, SubAssign};

use serde::Serialize;
use tributary_fault::{ExitCode, Fault};
use tributary_specs::TableName;

use crate::Error;

/// Files and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Amount {
    /// Data files.
    pub files: u64,
    /// Their bytes in the store.
    pub bytes: u64,
}

impl Amount {
    /// Of files of these sizes.
    pub(crate) fn of(sizes: impl Iterator<Item = u64>) -> Self {
        sizes.fold(Self::default(), |sum, bytes| Self { files: sum.files + 1, bytes: sum.bytes + bytes })
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        self.files = self.files.saturating_sub(other.files);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// How it ended for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Everything that was planned is done.
    Done,
    /// Nothing needed to be done.
    NothingToDo,
    /// What would be done; nothing was.
    Planned,
    /// Some of it is left: [`TableReport::left`] says why.
    Left,
    /// The table needs something that this program does not know.
    Skipped,
    /// It failed; the table is as it was after the last commit.
    Failed,
}

/// What was done to a table.
#[derive(Debug, Serialize)]
pub struct TableReport {
    /// The table.
    pub table: TableName,
    /// What was asked for.
    pub task: &'static str,
    /// How it ended.
    pub status: Status,
    /// Why something was to be done.
    pub reason: String,
    /// Live files before.
    pub before: Amount,
    /// Live files as they were expected to be afterwards.
    pub predicted: Amount,
    /// Live files afterwards, what others did meanwhile included.
    pub after: Amount,
    /// Files read, and files written in their place.
    pub read: Amount,
    /// Files written.
    pub written: Amount,
    /// Commits made.
    pub commits: u64,
    /// Bins that were written in vain, because somebody else touched an input first.
    pub lost_races: u64,
    /// Whether a checkpoint was written.
    pub checkpoint: bool,
    /// What is left and why.
    pub left: Option<String>,
    /// Why it failed.
    #[serde(serialize_with = "as_text")]
    pub error: Option<Error>,
}

fn as_text<S: serde::Serializer>(error: &Option<Error>, serializer: S) -> Result<S::Ok, S::Error> {
    match error {
        None => serializer.serialize_none(),
        Some(error) => serializer.serialize_some(&format!("{}: {}", error.code(), tributary_fault::chain(error))),
    }
}

impl TableReport {
    pub(crate) fn new(table: &TableName, task: &'static str) -> Self {
        Self {
            table: table.clone(),
            task,
            status: Status::NothingToDo,
            reason: String::new(),
            before: Amount::default(),
            predicted: Amount::default(),
            after: Amount::default(),
            read: Amount::default(),
            written: Amount::default(),
            commits: 0,
            lost_races: 0,
            checkpoint: false,
            left: None,
            error: None,
        }
    }
}

/// What happens.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// It is known what is to be done to a table, and what is expected of it.
    Planned(&'a TableReport),
    /// A table has had its turn.
    Ended(&'a TableReport),
}

/// What was done to some tables.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// In the order in which they had their turn.
    pub tables: Vec<TableReport>,
}

impl Report {
    /// Whether no table had anything to do.
    pub fn nothing_to_do(&self) -> bool {
        self.tables.iter().all(|table| matches!(table.status, Status::NothingToDo | Status::Skipped))
    }

    /// What the shell sees: the worst of what failed and of what is left.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::worst(self.tables.iter().map(|table| match (&table.error, table.status) {
            (_, Status::Left) => ExitCode::Partial,
            (_, Status::Skipped) | (None, _) => ExitCode::Done,
            (Some(error), _) => ExitCode::of(error.class()),
        }))
    }
}
