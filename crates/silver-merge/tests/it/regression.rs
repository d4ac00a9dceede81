//! What laws found, each with the smallest history that shows it.

use anyhow::{Result, ensure};
use tributary_specs::MergePolicy;
use tributary_testkit::strategy::{SourceTable, bronze_frame, source_history};
use tributary_testkit::{Frame, example};

use crate::world::{World, block_on, source, spec};

/// Changes of the kinds named, in order, from some history that has them so.
fn changes(table: &SourceTable, kinds: &[&str]) -> Frame {
    let strategy = source_history(table.clone(), 6);
    let history = (0..100_000)
        .map(|seed| example(&strategy, seed))
        .find(|history| history.changes.iter().map(|change| change.kind.word()).eq(kinds.iter().copied()))
        .expect("a history of these kinds");
    bronze_frame(table, &history.changes, 0)
}

#[test]
fn a_truncate_is_counted_once_however_many_slices_of_keys_there_are() {
    let result: Result<()> = block_on(async {
        let table = SourceTable { partitions: 1, rereads: false, key_changes: false, ..SourceTable::orders() };
        for memory_limit in [64 << 20, 2048] {
            let world = World::new();
            world.append(&source("orders"), &changes(&table, &["read", "truncate", "create"])).await?;
            let report = world.run_in_slices(&spec("orders", &["order_id"], MergePolicy::ScdType1), memory_limit).await?;
            let ignored: u64 = report.rows_ignored.values().sum();
            ensure!(report.rows_in == 3 && report.rows_out + ignored == 3, "{report:?}");
        }
        Ok(())
    });
    result.unwrap();
}
