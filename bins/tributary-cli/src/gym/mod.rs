//! Sample data of the gym pipeline: what doors, devices and a phone application of an invented chain of gyms told, from a seed.
//!
//! ```text
//! GymOptions ─▶ Gym (records, and the file each arrives in) ─▶ write     the files that the pipeline reads
//!                                                            └▶ expected  every table of the pipeline, from the records alone
//!                                                                 └▶ compare   with the tables of a lake, row for row
//! ```
//!
//! The same options give the same bytes. Records hold what goes wrong in such data on purpose: registrations and heart rates that come
//! twice, logouts that are taken back, profiles that tie, arrive late or are deleted, workouts without an end or of three hours, topics'
//! offsets that come again in other files, files that end with blank lines or without a line break.
//!
//! Nothing here knows the engines: `expected` states the rules of the pipeline in the simplest way there is.

mod calendar;
mod compare;
mod expected;
mod lines;
mod making;
mod random;
mod records;
mod write;

pub use calendar::age_group;
pub use compare::{Compared, compare};
pub use expected::{Cell, ExpectedRows, ExpectedTables};
pub use lines::KafkaLine;
pub use records::{Action, Arrived, Gym, GymOptions, Login, Profile, Recording, Registration, UpdateType};
