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
//! - G2: work follows the changed groups.
//! - G3: the mode and the reason are reported; `refresh: incremental` refuses to fall back.
//! - G4: a refresh is one commit: no reader sees the view without its rows.
//!
//! [`run`] brings a view up to date by what changed in its inputs (`follow`), where its query follows them; else in full, as when its
//! definition has changed, or when its query asks for the time. Otherwise it writes nothing. [`explain`] says which, and why.

mod audit;
mod declared;
mod definition;
mod error;
mod explain;
mod follow;
mod options;
mod plan;
mod quarantine;
mod query;
mod reached;
mod rules;
mod run;
mod scanned;
mod sources;
mod target;
mod ties;
mod waits;

pub use audit::audit;
pub use declared::table_spec;
pub use error::{Error, Result};
pub use explain::{Explained, InputCost, RefreshMode, explain};
pub use follow::Audit;
pub use options::{Build, Options};
pub use run::{Look, look, run};
pub use sources::sources_of;
