//! The settings from outside: inputs in, values, origins, warnings and errors out.

mod cases;
mod error_texts;
mod faces;
mod golden;
mod priority;
mod setup;
