//! Rows of some keys, as the query engine is given them.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use datafusion::prelude::{col, lit};
use object_store::memory::InMemory;
use tributary_lake::{Commit, CommitOutcome, DELETION_VECTORS_ON, KeySearch, Keys, Operation, Reads, RowMarks, Table};
use tributary_specs::TableSpec;
use tributary_testkit::Controls;

use crate::toy::{file_of, lake_over, spec};

async fn commit(table: &Table, commit: Commit) -> Result<Table> {
    let CommitOutcome::Committed { .. } = table.commit(commit).await? else { anyhow::bail!("another writer") };
    Ok(table.refresh().await?)
}

fn keys(numbers: &[Option<i64>]) -> Keys {
    Keys::new(vec!["key".to_owned()], vec![Arc::new(numbers.iter().copied().collect::<Int64Array>()) as ArrayRef]).unwrap()
}

/// Some keys of many, most of them, none, null: of files with marked rows and without, the rows are those that a scan would leave.
#[tokio::test]
async fn rows_of_keys_are_those_that_a_scan_would_leave_and_few_others_are_read() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    let properties = std::collections::BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "true".to_owned())]);
    let mut table = lake.create(&TableSpec { row_changes: true, properties, ..spec() }).await?;
    for from in [0, 100, 200] {
        let rows: Vec<i64> = (from..from + 100).collect();
        let adds = file_of(&table, &rows, from).await?;
        table = commit(&table, Commit { adds, ..Commit::default() }).await?;
    }
    let marks = vec![RowMarks { file: table.files().await?[0].clone(), rows: vec![3, 7] }];
    table = commit(&table, Commit { operation: Operation::Merge, marks, reads: Reads::WholeTable, ..Commit::default() }).await?;
    let search = KeySearch::new(&table, table.files().await?);
    let live: Vec<i64> = search.all(0..3).await?.rows.column_by_name("n").unwrap().as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(live.len(), 298);

    let many: Vec<Option<i64>> = (0..250).map(Some).collect();
    for (wanted, read_most) in [(vec![Some(3), Some(8), Some(150)], 3), (many, 298), (vec![None], 0), (vec![], 0), (vec![Some(1_000)], 0)] {
        let provider = table.keyed_provider().await?;
        let rows = lake.session().read_table(Arc::clone(&provider) as _)?;
        let rows = rows.filter(keys(&wanted).condition(&[col("n")])?)?.select_columns(&["batch", "n"])?.collect().await?;
        let mut found: Vec<i64> = rows.iter().flat_map(|rows| rows.column(1).as_primitive::<Int64Type>().values().to_vec()).collect();
        found.sort_unstable();
        let mut expected: Vec<i64> = live.iter().copied().filter(|n| wanted.contains(&Some(*n))).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{wanted:?}");
        assert!(provider.rows_looked_up() <= read_most, "{} rows read for {wanted:?}", provider.rows_looked_up());
    }
    Ok(())
}

/// The engine is not told that conditions on partitions are met, which a lookup does not look at.
#[tokio::test]
async fn rows_of_keys_in_other_partitions_than_those_asked_for_are_left_out() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    let mut table = lake.create(&TableSpec { partition_by: vec!["batch".to_owned()], ..spec() }).await?;
    for batch in [1, 2] {
        let adds = file_of(&table, &[7, 8], batch).await?;
        table = commit(&table, Commit { adds, ..Commit::default() }).await?;
    }
    let rows = lake.session().read_table(table.keyed_provider().await?)?;
    let rows = rows.filter(keys(&[Some(7)]).condition(&[col("n")])?)?.filter(col("batch").eq(lit(2_i64)))?;
    assert_eq!(rows.count().await?, 1);
    Ok(())
}
