//! Looks, without writing, at how far each flow of a dataset has read.

use tributary_lake::{Lake, Table};
use tributary_specs::{SilverSpec, TableName};

use crate::error::{Error, Result};
use crate::flow::{Positions, Whereabouts, take_over};

/// How far one flow of a dataset has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowLook {
    /// The flow's name.
    pub flow: String,
    /// The table it reads as a stream.
    pub source: TableName,
    /// The version of it that the dataset has taken up, or that it begins behind; none where the flow is to begin at the start.
    pub reached: Option<u64>,
    /// Whether the flow reads once and has done so.
    pub done: bool,
}

/// Says how far the flows of a dataset have read, as the table has it; `table` is none before the first run.
///
/// # Errors
/// Store errors; [`Error::FlowUnknown`].
pub async fn look(lake: &Lake, spec: &SilverSpec, table: Option<&Table>) -> Result<Vec<FlowLook>> {
    let positions = Positions::of(table).await.map_err(|source| Error::lake("read positions of", &spec.table, source))?;
    let flows = spec.each_flow();
    let taken_over = take_over(&flows, &positions)?;
    let positions = positions.after(&taken_over);
    let mut looks: Vec<FlowLook> = Vec::new();
    for flow in flows {
        let Some(source) = flow.sources.first() else { continue };
        let whereabouts = Whereabouts::of(&flow, source, &positions, lake.options());
        let position = whereabouts.position().and_then(|position| u64::try_from(position).ok());
        let before_first = flow.stream.first().and_then(|first| first.checked_sub(1));
        let (flow, done) = (flow.flow_name().to_owned(), flow.once && position.is_some());
        looks.push(FlowLook { flow, source: source.clone(), reached: position.or(before_first), done });
    }
    Ok(looks)
}
