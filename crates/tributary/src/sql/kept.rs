//! Rows of small tables of ours, as texts.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use tributary_lake::arrow::util::display::{ArrayFormatter, FormatOptions};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::{ReadOptions, Result, Table};

/// Each row: its columns by name, null as none.
pub(crate) async fn texts(table: &Table, options: ReadOptions) -> Result<Vec<BTreeMap<String, Option<String>>>> {
    let mut stream = table.read(options).await?;
    let mut rows = Vec::new();
    while let Some(batch) = stream.try_next().await.map_err(tributary_lake::Error::from)? {
        let schema = batch.schema();
        let format = FormatOptions::new();
        let failed = |error| tributary_lake::Error::from(DataFusionError::from(error));
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &format))
            .collect::<std::result::Result<Vec<_>, _>>();
        let columns = columns.map_err(failed)?;
        for row in 0..batch.num_rows() {
            let value = |at: usize| (!batch.column(at).is_null(row)).then(|| columns[at].value(row).to_string());
            rows.push(schema.fields().iter().enumerate().map(|(at, field)| (field.name().clone(), value(at))).collect());
        }
    }
    Ok(rows)
}
