//! Reads, plans, commits, reports.

use tributary_lake::Lake;
use tributary_specs::{DatasetReport, SilverSpec};

use crate::{Options, Result};

/// Brings a silver dataset up to date with its sources.
///
/// # Errors
/// See [`crate::Error`]; the table is as its last commit left it.
pub async fn run(_lake: &Lake, _spec: &SilverSpec, _options: &Options) -> Result<DatasetReport> {
    todo!()
}
