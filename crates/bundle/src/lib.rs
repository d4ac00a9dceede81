//! `databricks.yml` and what it includes: read, joined, filled in and checked, offline and all at once.
//!
//! ```text
//!  databricks.yml ─ include ─┐
//!  bundles/**/*.yml ─────────┼─▶ one tree ─▶ target ─▶ variables ─▶ references ─▶ mode ─▶ Bundle { pipelines, jobs, feeds }
//!  variable-overrides.json ──┘       │ every part knows its file, line and column │
//!                                    └───────────────▶ faults ◀──────────────────┘
//! ```
//!
//! What stays true:
//! - Nothing but files below the bundle's folder is read; a path that leads out of it, by `..` or by a link, is a fault.
//! - Every mistake of a bundle is found in one run, once, at its place; the order is that of files and lines.
//! - What a bundle is read with comes in as [`Options`]: neither environment nor network is asked.
//! - Time and memory are bounded by the limits on bytes, values and levels, whatever the files hold.

mod bundle;
mod check;
mod circle;
mod error;
mod fault;
mod feeds;
mod folder;
mod include;
mod job;
mod jobs;
mod load;
mod merge;
mod mode;
mod model;
mod pipelines;
mod place;
mod plan;
mod quartz;
mod reference;
mod resolve;
mod resources;
mod run_reference;
mod source;
mod sql;
mod target;
mod trials;
mod variables;
mod workspace;
mod yaml;

pub use bundle::{Bundle, Dataset};
pub use error::Error;
pub use fault::{Fault, Severity};
pub use job::{Action, Dependency, Job, Notifications, Retries, RunIf, Schedule, Target, Task};
pub use load::{Loaded, Note, Options, ToPlan, find, load, load_with};
pub use pipelines::Pipeline;
pub use plan::{Admission, End, JobEnd, Outcome, Run, Start, admit, compare, inputs};
pub use run_reference::{RunValues, fill_run_values};
pub use sql::load_sql;
pub use trials::{Test, TestFile, TestRows, TestRun, find_tests, load_tests};
pub use tributary_pipeline_sql::{Construct, Elsewhere, Platform, PortabilityRule, portability_rules};
