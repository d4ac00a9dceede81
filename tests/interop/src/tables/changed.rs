//! Silver tables after several generations of changes, and what silver keeps beside them.

use anyhow::{Result, ensure};
use tributary_specs::{TableName, TableSpec};

use crate::world::{Kind, World, columns, declared, kind, pipeline};

/// Batches of changes, each of which marks rows of files that the ones before wrote and marked.
const GENERATIONS: i64 = 6;

pub async fn write(world: &World) -> Result<Vec<Kind>> {
    let silver = pipeline(
        "changes",
        "  - { table: silver.current, sources: [bronze.changes], keys: [id], policy: scd_type1,
             expectations: [{ name: amount_is_small, expression: amount < 200, action: quarantine }] }
  - { table: silver.copied, sources: [bronze.changes], keys: [id], policy: scd_type1, properties: { delta.enableDeletionVectors: \"false\" } }
  - { table: silver.history, sources: [bronze.changes], keys: [id], policy: { scd_type2: {} } }
  - { table: silver.sequenced, sources: [bronze.changes], keys: [id], sequence_by: [at], policy: { scd_type2: {} } }
  - { table: silver.sites, sources: [bronze.changes], keys: [id], policy: scd_type1, partition_by: [site] }
  - { table: silver.tiers, sources: [bronze.changes], keys: [id], policy: scd_type1, partition_by: [tier] }
  - { table: silver.near, sources: [bronze.changes], keys: [id], policy: scd_type1, cluster_by: [id, at] }
  - { table: silver.every, sources: [bronze.changes], policy: append }
  - { table: silver.checkpointed, sources: [bronze.changes], keys: [id], policy: scd_type1, properties: { delta.checkpointInterval: \"3\" } }
",
    )?;
    for generation in 0..GENERATIONS {
        changes(world, generation).await?;
        world.silver(&silver).await?;
    }
    let silver = |name: &str| TableName::new("silver", name);
    let checkpoints = world.checkpoints(&silver("checkpointed"))?;
    ensure!(checkpoints == [3, 6], "checkpoints of versions {checkpoints:?}");
    Ok(vec![
        kind("bronze changes", &source()?.name),
        kind("scd1, deletion vectors of several generations", &silver("current")),
        kind("scd1, copy on write", &silver("copied")),
        kind("scd2 by position", &silver("history")),
        kind("scd2 by declared sequence", &silver("sequenced")),
        kind("scd1 in partitions of odd texts", &silver("sites")),
        kind("scd1 in partitions", &silver("tiers")),
        kind("scd1 with clustering", &silver("near")),
        kind("silver append", &silver("every")),
        kind("scd1 after checkpoints", &silver("checkpointed")),
        kind("quarantine", &TableName::new("quarantine", "current")),
        Kind { feed_from: None, ..kind("state of scd1", &TableName::new("_state", "current")) },
        Kind { feed_from: None, ..kind("state of scd2", &TableName::new("_state", "history")) },
    ])
}

fn source() -> Result<TableSpec> {
    Ok(declared(
        "changes",
        columns(
            "id long, name string, amount decimal(12,2), at timestamp, site string, tier string, _op string not null, _position string not null",
        )?,
    ))
}

/// A batch of changes: generation 0 makes 200 rows, the others update, delete and make some.
pub async fn changes(world: &World, generation: i64) -> Result<()> {
    let (first, last, every) = if generation == 0 { (1, 200, 1) } else { (1 + generation * 11, 150 + generation * 15, 3) };
    let query = format!(
        "select value as id, case when op = 'delete' then null else concat('n', value, ' g', {generation}) end as name,
                arrow_cast(concat(value + {generation}, '.50'), 'Decimal128(12, 2)') as amount,
                arrow_cast(1700000000000000 + ({generation} * 1000 + value) * 1000000, 'Timestamp(Microsecond, Some(\"UTC\"))') as at,
                case value % 4 when 0 then null when 1 then 'a/b 50%' when 2 then 'é' else 'plain' end as site, case value % 3 when 0 then 'gold' when 1 then 'silver' end as tier,
                op as _op, concat('000000/', lpad(cast({generation} * 1000 + value as varchar), 20, '0'), '/', lpad('1', 20, '0')) as _position
         from (select value, case when {generation} = 0 then 'read' when (value + {generation}) % 13 = 0 then 'delete' else 'update' end as op
               from generate_series({first}, {last}) where value % {every} = {generation} % {every})"
    );
    world.append(&source()?, &query).await
}
