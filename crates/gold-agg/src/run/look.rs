//! Looks, without writing, at whether a run would refresh a view.

use tributary_lake::{Lake, Table};
use tributary_specs::{GoldSpec, TableName};

use super::Run;
use crate::plan::Decision;
use crate::{Error, Options, Result};

/// What a run would do to a view now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Whether it would be refreshed, all of it.
    pub refreshes: bool,
    /// Why, or why not.
    pub reason: String,
    /// Its inputs: name, the version that the view was made from, the latest version.
    pub inputs: Vec<(TableName, Option<i64>, u64)>,
}

/// Says what a run would do to a view with its inputs as they are; none while a table that it reads is not there.
///
/// # Errors
/// As the run's own before it reads a row: [`Error::NotAView`], [`Error::SourceWentBack`] and the lake's.
pub async fn look(lake: &Lake, spec: &GoldSpec, options: &Options) -> Result<Option<Look>> {
    let run = Run { lake, spec, options };
    let there = run.open(&spec.table).await?;
    let inputs = match run.inputs().await {
        Err(Error::NoSource { .. }) => return Ok(None),
        inputs => inputs?,
    };
    let (states, decision) = run.decide(there.as_ref(), &inputs).await?;
    let (refreshes, reason) = match decision {
        Decision::Nothing(reason) => (false, reason),
        Decision::Make(reason) | Decision::Follow(reason) | Decision::Refresh(reason) => (true, reason),
    };
    let inputs = inputs.iter().zip(&states).map(|(input, state)| (input.name().clone(), state.recorded, Table::version(input)));
    Ok(Some(Look { refreshes, reason, inputs: inputs.collect() }))
}
