//! The comparison: topics with bronze, databases with silver, silver with gold.

mod bronze;
mod gold;
mod history;
mod predicted;
mod silver;

use std::path::Path;

use anyhow::Result;
use tributary::{Lake, OpenOptions, Pipeline};

pub use bronze::Counts;
pub use predicted::predictions;
pub use silver::Prediction;

use crate::records::Records;
use crate::session::Database;

/// What is compared with what.
#[derive(Debug)]
pub struct Sides<'a> {
    /// The pipeline of the warehouse.
    pub pipeline: &'a Pipeline,
    /// All records of the topics.
    pub records: &'a Records,
    /// The database of orders and customers.
    pub shop: &'a Database,
    /// The database of the inventory.
    pub depot: &'a Database,
    /// Differences that must be there; none where the connectors lose nothing.
    pub predictions: &'a [Prediction],
}

/// What came out, line by line, the promised lines last.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What differs, and what was predicted to.
    pub details: Vec<String>,
    /// The promised lines.
    pub lines: Vec<String>,
    /// Whether all is as promised.
    pub holds: bool,
    /// Records by where they went.
    pub counts: Counts,
}

/// Compares a warehouse with everything it was made of.
pub async fn compare(warehouse: &Path, sides: &Sides<'_>) -> Result<Outcome> {
    let lake = Lake::open(&warehouse.to_string_lossy(), OpenOptions::default())?;
    let mut outcome = Outcome { holds: true, ..Outcome::default() };
    bronze::check(&lake, sides, &mut outcome).await?;
    silver::check(&lake, sides, &mut outcome).await?;
    history::check(&lake, &mut outcome).await?;
    gold::check(&lake, sides, &mut outcome).await?;
    Ok(outcome)
}

impl Outcome {
    fn fail(&mut self, detail: String) {
        self.holds = false;
        self.details.push(detail);
    }
}
