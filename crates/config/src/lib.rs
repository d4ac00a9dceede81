//! Every setting of every binary, declared once.
//!
//! ```text
//!            registry.rs (name, type, default, words)
//!                 │
//!    ┌────────────┼───────────┬──────────────┬───────────────┐
//!  flags       variables    .env keys    tributary.toml   reference page,
//!  (clap)                                keys             examples, --help
//!    └────────────┴─────┬─────┴──────────────┘
//!                       ▼
//!        resolve.rs: the first that has a value wins
//!                       ▼
//!        Settings (typed) · origin of each · warnings
//! ```
//!
//! What stays true:
//! - A setting is written down in one place, `registry.rs`; everything else is made from it.
//! - Per setting: command line > environment > `.env` > file > default.
//! - Only what the caller hands over is read: [`Inputs::of_process`] is the single door to the process' own arguments,
//!   environment and working folder, and only binaries go through it.
//! - A name that is not a setting is refused wherever it stands, with the nearest name that is.
//! - All problems are reported in one go.

mod arguments;
mod dotenv;
mod environment;
mod error;
mod file;
mod inputs;
mod login;
mod origin;
mod reference;
mod registry;
mod resolve;
mod setting;
mod show;
mod value;

pub use arguments::{arguments, normalise};
pub use dotenv::{Dotenv, DotenvEntry, DotenvProblem};
pub use error::{Error, Refusal};
pub use inputs::Inputs;
pub use origin::Origin;
pub use reference::{env_example, settings_page, toml_example};
pub use registry::{REGISTRY, Settings};
pub use resolve::{Loaded, Warning, load, load_beside_bundle};
pub use setting::{Group, Program, Reach, Setting};
pub use tributary_fault::nearest;
pub use value::{ByteSize, Kind, Layer, Location, LogFormat, Name, Offsets, OnGap, Output, Properties};
