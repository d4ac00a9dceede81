//! The catalogue of our own tables, beside the lake's.
//!
//! Rows that a run leaves are JSON objects, a value a column, whatever table they are for.

use std::sync::Arc;

use serde_json::{Map, Value};
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::json::ReaderBuilder;
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::{Commit, CommitOutcome, Lake, LakeOptions, Operation, Reads, Result, WriterOptions};
use tributary_specs::{Column, TableName, TableSpec};

use crate::Error;

/// Its name.
pub(crate) const NAME: &str = "system";

/// Races lost against other runs before rows are given up.
const TRIES: u32 = 5;

/// A row: its values by column; what is left out is null. Instants are texts, or numbers of microseconds since 1970.
pub(crate) type Row = Map<String, Value>;

/// A table of ours.
pub(crate) struct SystemTable {
    pub schema: &'static str,
    pub name: &'static str,
    pub comment: &'static str,
    /// Names and types, as DDL has them.
    pub columns: &'static [(&'static str, &'static str)],
}

impl SystemTable {
    pub(crate) fn table_name(&self) -> TableName {
        TableName::new(self.schema, self.name)
    }

    /// As it is made.
    #[allow(clippy::expect_used, reason = "types are constants, and a test reads each")]
    pub(crate) fn spec(&self) -> TableSpec {
        let column = |(name, data_type): &(&str, &str)| Column::new(*name, data_type.parse().expect("a type"));
        let mut spec = TableSpec::new(self.table_name(), self.columns.iter().map(column).collect());
        spec.comment = Some(self.comment.to_owned());
        spec
    }
}

/// The catalogue `system` under the root of a lake.
pub(crate) fn catalogue(lake: &Lake) -> Result<Lake> {
    Lake::open(lake.stores().clone(), LakeOptions { catalogue: NAME.to_owned(), ..lake.options().clone() })
}

/// Its tables as they are declared, those that nothing was written to yet among them.
pub(crate) fn specs() -> Vec<TableSpec> {
    let mut specs = [crate::runs::TABLE, crate::gaps::TABLE, crate::expectations::TABLE].map(|table| table.spec()).to_vec();
    specs.extend(crate::sql::system_tables());
    specs.extend(crate::lakeflow::specs());
    specs.extend(crate::lineage::specs());
    specs
}

/// An object as a row.
pub(crate) fn row(object: Value) -> Row {
    match object {
        Value::Object(row) => row,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Row::new(),
    }
}

/// Rows under these columns.
///
/// # Errors
/// [`Error::Lake`] for a value that is not of its column, or whose column is not there.
pub(crate) fn batch(columns: &[Column], rows: &[Row]) -> std::result::Result<RecordBatch, Error> {
    let schema = Arc::new(Column::all_to_arrow(columns));
    let decoded = ReaderBuilder::new(Arc::clone(&schema)).with_strict_mode(true).build_decoder().and_then(|mut decoder| {
        decoder.serialize(rows)?;
        decoder.flush()
    });
    Ok(decoded.map_err(of_arrow)?.unwrap_or_else(|| RecordBatch::new_empty(schema)))
}

pub(crate) fn of_arrow(error: ArrowError) -> Error {
    Error::Lake(tributary_lake::Error::from(DataFusionError::from(error)))
}

/// Appends rows, where there are any, as [`append`] does.
pub(crate) async fn append_rows(system: &Lake, spec: &TableSpec, rows: &[Row]) -> std::result::Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    append(system, spec, batch(&spec.columns, rows)?).await
}

/// Appends rows to one of its tables, which is made where it is not there. One that an older release made gets the columns it lacks.
pub(crate) async fn append(system: &Lake, spec: &TableSpec, rows: RecordBatch) -> std::result::Result<(), Error> {
    for _ in 0..TRIES {
        let table = system.create(spec).await?;
        let lacking = |column: &&Column| !table.columns().iter().any(|found| found.name == column.name);
        let new: Vec<Column> = spec.columns.iter().filter(lacking).cloned().collect();
        let schema = (!new.is_empty()).then(|| table.columns().iter().cloned().chain(new).collect::<Vec<_>>());
        let mut writer = table.writer(WriterOptions { columns: schema.clone(), ..WriterOptions::default() })?;
        writer.write(&rows).await?;
        let adds = writer.finish().await?;
        let commit = Commit { operation: Operation::Write, adds, schema, reads: Reads::BlindAppend, ..Commit::default() };
        if let CommitOutcome::Committed { .. } = table.commit(commit).await? {
            return Ok(());
        }
    }
    tracing::warn!(table = %spec.name, "other runs were always first: the rows were not written");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_declaration_that_can_be_read_and_no_column_twice() {
        for spec in specs() {
            let names: std::collections::BTreeSet<&String> = spec.columns.iter().map(|column| &column.name).collect();
            assert_eq!(names.len(), spec.columns.len(), "{}", spec.name);
        }
    }
}
