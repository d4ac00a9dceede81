//! Holds a view to its query by some of its groups.

use tributary_lake::Lake;
use tributary_specs::GoldSpec;

use crate::definition::Definition;
use crate::follow::{Audit, Follower};
use crate::query::Input;
use crate::run::Run;
use crate::{Error, Options, Result};

/// Computes `groups` groups of a view again, chosen at random, from its inputs at the versions that it records, and compares; none
/// where the view was not made yet, from another definition, or from an input that was made again since. Writes nothing.
///
/// # Errors
/// [`Error::Differs`] where a row differs; [`Error::IncrementalUnavailable`] where nothing names groups of the view.
pub async fn audit(lake: &Lake, spec: &GoldSpec, options: &Options, groups: usize) -> Result<Option<Audit>> {
    let run = Run { lake, spec, options };
    let Some(view) = run.open(&spec.table).await? else { return Ok(None) };
    let tables = run.inputs().await?;
    let (states, _) = run.decide(Some(&view), &tables).await?;
    let made = Definition::of_table(&view).await.map_err(Error::lake("reading", &spec.table))?;
    if made.is_none_or(|made| made.digest != Definition::of(spec, &options.called, false).digest) {
        return Ok(None);
    }
    let mut inputs = Vec::new();
    for (table, state) in tables.iter().zip(&states) {
        let Some(version) = state.made_from() else { return Ok(None) };
        let then = table.at_version(version).await.map_err(Error::lake("opening", table.name()))?;
        inputs.push(Input::open(then).await?);
    }
    let follower = Follower { lake, spec, options, view: &view, inputs: &inputs, states: &states };
    let (seed, _) = lake.new_id().as_u64_pair();
    match follower.audit(groups, seed).await {
        Ok(Audit { differing, groups, .. }) if differing > 0 => Err(Error::Differs { table: spec.table.clone(), differing, groups }),
        Ok(audit) => Ok(Some(audit)),
        Err(stop) => Err(Error::IncrementalUnavailable { table: spec.table.clone(), reason: stop.reason(&spec.table)? }),
    }
}
