//! The catalogue of our own tables, beside the lake's.

use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::{Commit, CommitOutcome, Lake, LakeOptions, Operation, Reads, Result, WriterOptions};
use tributary_specs::{Column, TableSpec};

use crate::Error;

/// Its name.
pub(crate) const NAME: &str = "system";

/// Races lost against other runs before rows are given up.
const TRIES: u32 = 5;

/// The catalogue `system` under the root of a lake.
pub(crate) fn catalogue(lake: &Lake) -> Result<Lake> {
    Lake::open(lake.stores().clone(), LakeOptions { catalogue: NAME.to_owned(), ..lake.options().clone() })
}

/// Its tables as they are declared, those that nothing was written to yet among them.
pub(crate) fn specs() -> Vec<TableSpec> {
    let mut specs = vec![crate::runs::table_spec(), crate::gaps::table_spec(), crate::expectations::table_spec()];
    specs.extend(crate::sql::system_tables());
    specs.extend(crate::lakeflow::specs());
    specs.extend(crate::lineage::specs());
    specs
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
