//! Generated columns for those who need their values before they write: a merge compares rows, and shows them in the change feed.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast_with_options;
use tributary_specs::{Column, TableName};

use crate::expression::Expression;
use crate::{Error, Result, create};

/// Generated columns of a table, to be computed over batches of all its columns.
#[derive(Debug, Clone)]
pub struct Generated {
    table: TableName,
    /// By place.
    columns: Vec<(usize, String, Expression)>,
}

impl Generated {
    /// Those among `columns` that are generated and that `is_given` does not name.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an expression that cannot be evaluated.
    pub fn new(table: &TableName, columns: &[Column], is_given: impl Fn(&str) -> bool) -> Result<Self> {
        let unsupported = |what: String| Error::Unsupported { table: table.clone(), what };
        let mut generated = Self { table: table.clone(), columns: Vec::new() };
        if columns.iter().all(|column| column.generated.is_none()) {
            return Ok(generated);
        }
        let schema = create::arrow_schema(columns).map_err(unsupported)?;
        for (place, column) in columns.iter().enumerate().filter(|(_, column)| !is_given(&column.name)) {
            let Some(text) = &column.generated else { continue };
            let expression = Expression::new(text, &schema, None)
                .map_err(|reason| unsupported(format!("the generated column `{}`, which cannot be evaluated: {reason}", column.name)))?;
            generated.columns.push((place, column.name.clone(), expression));
        }
        Ok(generated)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Each with the columns that it is computed from.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.columns.iter().map(|(_, name, expression)| (name.as_str(), expression.columns()))
    }

    /// A batch of all the columns, in their order, with the values of these in the place of what it has there.
    ///
    /// # Errors
    /// [`Error::Constraint`] when an expression fails for a row, or its value does not fit the column.
    pub fn fill(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.is_empty() {
            return Ok(batch);
        }
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        for (place, name, expression) in &self.columns {
            let failed = |_| Error::Constraint {
                table: self.table.clone(),
                constraint: format!("generated column `{name}`"),
                reason: "its expression fails for a row of the batch".to_owned(),
            };
            let strict = arrow::compute::CastOptions { safe: false, ..Default::default() };
            let values = expression.evaluate(&batch).map_err(failed)?;
            let values = cast_with_options(&values, columns[*place].data_type(), &strict);
            columns[*place] = values.map_err(|error| failed(error.to_string()))?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(batch.schema_ref()), columns, &options)?)
    }
}
