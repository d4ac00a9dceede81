//! The settings from outside: inputs in, values, origins, warnings and errors out.

mod cases;
mod generated;
mod golden;
mod golden_errors;
mod golden_output;
mod priority;
mod setup;
