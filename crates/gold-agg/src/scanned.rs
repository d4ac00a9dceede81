//! What an executed plan has read of which table.

use std::collections::BTreeMap;

use tributary_lake::Lake;
use tributary_lake::datafusion::datasource::physical_plan::FileScanConfig;
use tributary_lake::datafusion::datasource::source::DataSourceExec;
use tributary_lake::datafusion::physical_plan::ExecutionPlan;

use crate::query::Input;

/// Rows and bytes by place among the inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scanned(pub BTreeMap<usize, (u64, u64)>);

impl Scanned {
    /// Takes in what a plan has read, once it has been executed.
    pub fn take_in(&mut self, lake: &Lake, inputs: &[Input], plan: &dyn ExecutionPlan) {
        if let Some(input) = input_of(lake, inputs, plan)
            && let Some(metrics) = plan.metrics()
        {
            let bytes = metrics.sum_by_name("bytes_scanned").map_or(0, |bytes| bytes.as_usize());
            let (rows_read, bytes_read) = self.0.entry(input).or_default();
            *rows_read += metrics.output_rows().unwrap_or_default() as u64;
            *bytes_read += bytes as u64;
        }
        plan.children().into_iter().for_each(|child| self.take_in(lake, inputs, child.as_ref()));
    }

    /// Takes in what was looked up by keys.
    pub fn take_in_lookups(&mut self, inputs: &[Input]) {
        for (at, input) in inputs.iter().enumerate() {
            let (rows_read, bytes_read) = self.0.entry(at).or_default();
            *rows_read += input.rows_looked_up();
            *bytes_read += input.bytes_looked_up();
        }
    }
}

/// The input whose files a step reads.
fn input_of(lake: &Lake, inputs: &[Input], plan: &dyn ExecutionPlan) -> Option<usize> {
    let config = plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    let file = config.file_groups.iter().flat_map(|group| group.iter()).next()?;
    let path = format!("/{}", file.object_meta.location);
    let is_below = |input: &Input| {
        let name = input.table.name();
        path.contains(&format!("/{}/{}/{}/", lake.options().catalogue, name.schema, name.name))
    };
    inputs.iter().position(is_below)
}
