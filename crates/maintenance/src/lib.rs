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
mod controls;
mod curve;
mod error;
mod group;
mod inputs;
mod options;
mod plan;
mod report;
mod rewrite;
mod run;

pub use error::Error;
pub use options::{Options, Task};
pub use report::{Amount, Report, Status, TableReport};
pub use run::{maintain, maintain_table};

/// What fallible functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
