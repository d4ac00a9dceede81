//! What laws found, each as a case of its own.

use anyhow::{Result, ensure};
use tributary_specs::MergePolicy;
use tributary_testkit::example;
use tributary_testkit::strategy::{ChangeKind, SourceTable, bronze_frame, source_history};

use crate::world::{World, block_on, source, spec};

#[test]
fn a_truncate_is_counted_once_however_many_slices_of_keys_there_are() {
    let table = SourceTable { keys: 100, ..SourceTable::orders() };
    let strategy = source_history(table.clone(), 150);
    let history = (0..1000)
        .map(|seed| example(&strategy, seed))
        .find(|history| history.changes.len() > 60 && history.changes.iter().any(|change| change.kind == ChangeKind::Truncate))
        .expect("a long history with a truncate");
    let result: Result<()> = block_on(async {
        for (memory_limit, sliced) in [(64 << 20, false), (4096, true)] {
            let world = World::new();
            world.append(&source("orders"), &bronze_frame(&table, &history.changes, 0)).await?;
            let report = world.run_in_slices(&spec("orders", &["order_id"], MergePolicy::ScdType1), memory_limit).await?;
            ensure!(report.reason.contains("slices of keys") == sliced, "{report:?}");
            let ignored: u64 = report.rows_ignored.values().sum();
            ensure!(report.rows_in == history.changes.len() as u64 && report.rows_out + ignored == report.rows_in, "{report:?}");
        }
        Ok(())
    });
    result.unwrap();
}
