//! Delta tables: open, create, read, and one commit path.
//!
//! This is the only crate that names `deltalake` and its kernel. They read (log replay, snapshots, pruning, scans,
//! checkpoints); the writing is ours: Parquet files, change-feed files and the commit itself, which is put-if-absent.
//!
//! ```text
//! Lake ── table ──▶ Table (one immutable snapshot) ── read, changes, appended, files ──▶ Arrow
//!                     │ writer() ──▶ NewFile ─┐
//!                     │ change_writer() ─▶ ChangeFile ─┤
//!                     └ commit(Commit { adds, removes, marks, changes, progress, … }) ──▶ Committed | Conflicted | Fenced
//! ```
//!
//! What must stay true:
//! - Rows, schema and positions of a commit become visible together or not at all.
//! - A commit whose writer is wrong about the table's position is fenced; nothing of it is visible.
//! - A commit that read something another writer changed is never rebased over it.
//! - A commit without an answer is looked up by its own id before anything else is tried.

mod action;
mod align;
mod among;
mod apart;
mod arranged;
mod changes;
mod changes_provider;
mod checkpoint;
mod clock;
mod commit;
mod conflict;
mod constraints;
mod controls;
mod create;
mod deletion_vector;
mod delta_schema;
mod draft;
mod error;
mod expression;
mod file;
mod file_form;
mod file_scan;
mod filters_by_name;
mod folder;
mod generated;
mod history;
mod identity;
mod ids;
mod imprint;
mod kept;
mod key_search;
mod key_set;
mod keyed_scan;
mod lake;
mod limit_above;
mod live_files;
mod log;
mod log_cache;
mod log_folder;
mod marks;
mod open_file;
mod parquet_files;
mod partition;
mod placed_rows;
mod protocol;
mod provider;
mod prune;
mod read_files;
mod restore;
mod rewrite;
mod snapshot;
mod state;
mod stats;
mod stats_read;
mod stored_file;
mod stores;
mod table;
mod take_out;
mod taken_away;
mod time_travel;
mod transact;
mod well_formed;
mod whole;
mod writer;

pub use arrow;
pub use datafusion;
pub use object_store;

pub use protocol::DELETION_VECTORS_ON;

pub use among::Keys;
pub use apart::Apart;
pub use arranged::{Arranged, Cube, Curve};
pub use clock::{Clock, ManualClock, SystemClock};
pub use commit::{Commit, CommitOutcome, Conflict, KeyRange, KeyRanges, Operation, Progress, Reads, RowMarks, TableLayout};
pub use constraints::refused_defaults;
pub use error::Error;
pub use file::{ChangeFile, ChangeRows, ColumnStats, DataFile, DeletionVector, FileStats, NewFile};
pub use file_form::FileForm;
pub use folder::StoredObject;
pub use generated::Generated;
pub use ids::{Ids, RandomIds, SeededIds};
pub use key_search::{Found, KeyProbe, KeySearch};
pub use key_set::KeySet;
pub use keyed_scan::KeyedProvider;
pub use lake::{Difference, Lake, LakeOptions};
pub use log_folder::{LogKind, LogObject};
pub use partition::partition_refusal;
pub use rewrite::Rewrite;
pub use stores::Stores;
pub use table::{Appended, CommitEntry, ReadOptions, Table};
pub use take_out::{TakenOut, Taker};
pub use taken_away::{CommitRemovals, Removed};
pub use whole::{BrokenSet, KEYS_SHOWN, SetFinding, key_text, keys_named};
pub use writer::{ChangeWriter, DataWriter, WriterOptions, file_bytes_target};

/// What fallible functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
