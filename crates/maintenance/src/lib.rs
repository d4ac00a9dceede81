//! Files of tables written anew, so that reading stays cheap, without changing a row.
//!
//! ```text
//! snapshot ─▶ plan (pure): bins of files ─▶ groups ─▶ rewrite: read, sort where asked, write ─▶ one commit a group
//!                 ▲                                                                              │ inputs that a rival touched
//!                 └──────────────────────── fresh snapshot, until nothing is left ◀──────────────┘ drop their bin, keep the rest
//! ```
//!
//! What must stay true:
//! - **M1** No writer fails because of it, and no row, position or domain of a table changes: every action says `dataChange: false`.
//! - **M3** What has been written anew is known by what the log says of the file, so a second run finds nothing to do.
//! - A kill loses the group that was under way, and nothing else; its files are in no commit.

mod busy;
mod clean_log;
mod controls;
mod curve;
mod error;
mod fsck;
mod group;
mod inputs;
mod interval;
mod options;
mod plan;
mod readers;
mod report;
mod restore;
mod retention;
mod rewrite;
mod run;
mod vacuum;

pub use clean_log::{CleanLogOptions, CleanLogReport, LOG_RETENTION_DEFAULT, clean_log};
pub use error::Error;
pub use fsck::{Defect, Finding, FsckOptions, FsckReport, fsck};
pub use options::{Options, Task};
pub use readers::{Needs, READER_PROPERTY, Reader, Readers};
pub use report::{Amount, Event, Report, Status, TableReport};
pub use restore::{PositionMove, Positions, RestoreOptions, RestoreReport, RestoreTo, restore};
pub use run::maintain;
pub use vacuum::{HeldBy, LONGEST_WRITE_DEFAULT, OldFile, RETENTION_DEFAULT, VacuumMode, VacuumOptions, VacuumReport, vacuum};

/// What fallible functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A table that is there.
async fn open(lake: &tributary_lake::Lake, name: &tributary_specs::TableName) -> Result<tributary_lake::Table> {
    let opened = lake.table(name).await.map_err(Error::lake("opening", name))?;
    opened.ok_or_else(|| Error::lake("opening", name)(tributary_lake::Error::NoTable { table: name.clone() }))
}
