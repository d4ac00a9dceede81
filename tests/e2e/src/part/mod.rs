//! The parts of `e2e`, each with databases, connectors, topics and warehouses of its own.

mod avro;
mod fidelity;
mod gym;
mod hostile;
mod operation;
mod transactions;

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::check::Outcome;
use crate::services::Services;

/// One part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Connectors that lose nothing, every way of running, everything restarted once.
    Fidelity,
    /// Connectors as people run them.
    Hostile,
    /// Records framed by a schema registry, which is away for a while.
    Avro,
    /// A producer whose transactions do not all commit.
    Transactions,
    /// The gym pipeline over its topics.
    Gym,
}

impl Part {
    /// In the order in which they run.
    pub const ALL: [Self; 5] = [Self::Fidelity, Self::Hostile, Self::Avro, Self::Transactions, Self::Gym];

    /// Its name in texts and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fidelity => "fidelity",
            Self::Hostile => "hostile",
            Self::Avro => "avro",
            Self::Transactions => "transactions",
            Self::Gym => "gym",
        }
    }

    /// The part of this name.
    pub fn named(name: &str) -> Result<Self> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|part| part.name() == name).with_context(|| format!("there is no part {name:?}; there are {}", names()))
    }

    /// Runs it; `length` is how long the workloads of the first part last, those of the second last a third of it.
    pub fn run(self, services: &Services, length: Duration, seed: u64) -> Result<Vec<(&'static str, Outcome)>> {
        match self {
            Self::Fidelity => fidelity::run(services, length, seed),
            Self::Hostile => hostile::run(services, length / 3, seed).map(|outcome| vec![("hostile, drained", outcome)]),
            Self::Avro => avro::run(services, seed),
            Self::Transactions => transactions::run(services).map(|outcome| vec![("aborted transactions, drained", outcome)]),
            Self::Gym => gym::run(services, seed).map(|outcome| vec![("gym, drained", outcome)]),
        }
    }
}
