//! The comparison: topics with bronze, databases with silver, silver with gold.

mod bronze;
mod gold;
mod history;
mod predicted;
mod silver;

use std::path::Path;

use anyhow::{Context as _, Result};
use tributary::arrow::array::AsArray as _;
use tributary::arrow::datatypes::Int64Type;
use tributary::{Lake, OpenOptions, Pipeline};

pub use bronze::Counts;
pub use predicted::{of_avro, of_hostile};
pub use silver::Prediction;

use crate::records::Records;
use crate::run::Compared;

/// What is compared with what.
#[derive(Debug)]
pub struct Sides<'a> {
    /// The pipeline of the warehouse.
    pub pipeline: &'a Pipeline,
    /// All records of the topics.
    pub records: &'a Records,
    /// Silver tables and what they must equal.
    pub tables: &'a [Compared],
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
    let mut outcome = Outcome::holding();
    bronze::check(&lake, sides, &mut outcome).await?;
    silver::check(&lake, sides, &mut outcome).await?;
    history::check(&lake, sides, &mut outcome).await?;
    gold::check(&lake, sides, &mut outcome).await?;
    Ok(outcome)
}

impl Outcome {
    /// Holds until something fails.
    pub fn holding() -> Self {
        Self { holds: true, ..Self::default() }
    }

    /// Something is not as promised.
    pub fn fail(&mut self, detail: String) {
        self.holds = false;
        self.details.push(detail);
    }
}

/// The longs that a query over a warehouse gives.
pub async fn longs(warehouse: &Path, query: &str) -> Result<Vec<i64>> {
    let lake = Lake::open(&warehouse.to_string_lossy(), OpenOptions::default())?;
    let mut longs = Vec::new();
    for batch in tributary::sql::query(&lake, query).await?.collect().await? {
        longs.extend(batch.column(0).as_primitive_opt::<Int64Type>().context("they are longs")?.iter().flatten());
    }
    Ok(longs)
}
