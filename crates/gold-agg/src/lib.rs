//! Views kept equal to their query.
//!
//! ```text
//!  query ──▶ sources ──▶ inputs, pinned at their versions ──▶ rows ──▶ rules ──▶ files ─┐
//!                              │                                 └▶ quarantine.<table>   ├─▶ one commit
//!                              └────────── positions: tributary:source:<table> ──────────┘
//! ```
//!
//! What must stay true:
//! - G1: after every run the table equals the query over its inputs at the versions that the table records.
//! - G3: the mode and the reason are reported; `refresh: incremental` refuses to fall back.
//! - G4: a refresh is one commit: no reader sees the view without its rows.
//!
//! [`run`] refreshes a view in full when an input has moved, when its definition has changed, or when its query asks for the
//! time; otherwise it writes nothing.

mod declared;
mod definition;
mod error;
mod follow;
mod options;
mod plan;
mod quarantine;
mod query;
mod rules;
mod run;
mod sources;
mod target;

pub use declared::table_spec;
pub use error::{Error, Result};
pub use options::{Build, Options};
pub use run::{Look, look, run};
pub use sources::sources_of;
