//! Tables whose schema has changed since their first rows.

use anyhow::{Context, Result, ensure};
use tributary_lake::{CommitOutcome, Rewrite};
use tributary_specs::TableName;

use crate::world::{Kind, World, columns, declared, kind, pipeline};

const CHANGE: &str = "_op string not null, _position string not null";

pub async fn write(world: &World) -> Result<Vec<Kind>> {
    let silver = pipeline("grown", "  - { table: silver.grown, sources: [bronze.grown], keys: [id], policy: scd_type1 }\n")?;
    let first = declared("grown", columns(&format!("id long, a string, at struct<x:long>, {CHANGE}"))?);
    let query = |from: i64, to: i64, rest: &str, step: i64| {
        format!(
            "select value as id, concat('a', value) as a, {rest}, case when {step} > 0 and value % 5 = 0 then 'delete' else 'update' end as _op,
                    concat('000000/', lpad(cast({step} * 1000 + value as varchar), 20, '0'), '/', lpad('1', 20, '0')) as _position
             from generate_series({from}, {to})"
        )
    };
    world.append(&first, &query(1, 40, "named_struct('x', value) as at", 0)).await?;
    world.silver(&silver).await?;
    let second = declared("grown", columns(&format!("id long, a string, at struct<x:long>, {CHANGE}, b double, c array<long>"))?);
    let rest = "named_struct('x', value) as at, value / 4.0 as b, make_array(value, null) as c";
    world.append(&second, &query(30, 60, rest, 1)).await?;
    world.silver(&silver).await?;
    world.append(&second, &query(1, 45, rest, 2)).await?;
    world.silver(&silver).await?;
    // the source no longer sends two of them
    world.append(&declared("grown", columns(&format!("id long, at struct<x:long>, c array<long>, {CHANGE}"))?), &without(10, 30)).await?;
    world.silver(&silver).await?;
    let mut kinds = widened(world).await?;
    kinds.push(kind("columns added and no longer sent, append", &first.name));
    kinds.push(kind("columns added and no longer sent, scd1", &TableName::new("silver", "grown")));
    Ok(kinds)
}

fn without(from: i64, to: i64) -> String {
    format!(
        "select value as id, named_struct('x', -value) as at, make_array(value) as c, 'update' as _op,
                concat('000000/', lpad(cast(3000 + value as varchar), 20, '0'), '/', lpad('1', 20, '0')) as _position
         from generate_series({from}, {to})"
    )
}

/// Tables that are written anew for wider columns, once bronze has them.
async fn widened(world: &World) -> Result<Vec<Kind>> {
    let silver = pipeline(
        "widened",
        "  - { table: silver.widened, sources: [bronze.widened], keys: [id], policy: scd_type1, schema_policy: widen }
  - { table: silver.widened_history, sources: [bronze.widened], keys: [id], policy: { scd_type2: {} }, schema_policy: widen }
  - { table: silver.widened_parts, sources: [bronze.widened], keys: [id], policy: scd_type1, schema_policy: widen, partition_by: [part],
      properties: { delta.enableDeletionVectors: \"false\" } }
",
    )?;
    let narrow = declared("widened", columns(&format!("id integer, amount decimal(5,2), ratio float, part integer, {CHANGE}"))?);
    let wide = declared("widened", columns(&format!("id long, amount decimal(12,4), ratio double, part long, {CHANGE}"))?);
    let rows = |types: [&str; 3], step: i64, from: i64, to: i64| {
        let [whole, amount, ratio] = types;
        format!(
            "select arrow_cast(value, '{whole}') as id, arrow_cast(concat((value + {step}) % 100, '.25'), '{amount}') as amount,
                    arrow_cast(value / 4.0, '{ratio}') as ratio, arrow_cast(value % 3, '{whole}') as part,
                    case when {step} > 0 and value % 5 = 0 then 'delete' else 'update' end as _op,
                    concat('000000/', lpad(cast({step} as varchar), 20, '0'), '/', lpad(cast(value as varchar), 20, '0')) as _position
             from generate_series({from}, {to})"
        )
    };
    let (narrow_types, wide_types) = (["Int32", "Decimal128(5, 2)", "Float32"], ["Int64", "Decimal128(12, 4)", "Float64"]);
    for (step, from, to) in [(0, 1, 80), (1, 40, 90)] {
        world.append(&narrow, &rows(narrow_types, step, from, to)).await?;
        world.silver(&silver).await?;
    }
    let rewritten = world.table(&wide.name).await?.rewrite(Rewrite { columns: wide.columns.clone(), ..Rewrite::default() }).await?;
    ensure!(matches!(rewritten, CommitOutcome::Committed { .. }), "not widened: {rewritten:?}");
    for (step, from, to) in [(2, 5_000_000_000, 5_000_000_030), (3, 70, 110)] {
        world.append(&wide, &rows(wide_types, step, from, to)).await?;
        world.silver(&silver).await?;
    }
    let mut kinds = Vec::new();
    let of_silver = |name: &str| TableName::new("silver", name);
    for (what, table) in [
        ("columns widened, append", wide.name.clone()),
        ("columns widened, scd1", of_silver("widened")),
        ("columns widened, scd2", of_silver("widened_history")),
        ("columns widened, partitions among them, scd1", of_silver("widened_parts")),
    ] {
        kinds.push(Kind { feed_from: Some(rewritten_in(world, &table).await?), ..kind(what, &table) });
    }
    Ok(kinds)
}

/// The version that wrote a table anew: changes of before are in files of narrower columns.
async fn rewritten_in(world: &World, table: &TableName) -> Result<u64> {
    let history = world.table(table).await?.history(None).await?;
    let rewrite = history.iter().find(|entry| entry.operation.as_deref() == Some("OPTIMIZE"));
    Ok(rewrite.with_context(|| format!("{table} was not written anew"))?.version)
}
