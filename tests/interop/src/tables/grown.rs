//! Tables whose schema has changed since their first rows.

use anyhow::Result;
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
    Ok(vec![
        kind("columns added and no longer sent, append", &first.name),
        kind("columns added and no longer sent, scd1", &TableName::new("silver", "grown")),
    ])
}

fn without(from: i64, to: i64) -> String {
    format!(
        "select value as id, named_struct('x', -value) as at, make_array(value) as c, 'update' as _op,
                concat('000000/', lpad(cast(3000 + value as varchar), 20, '0'), '/', lpad('1', 20, '0')) as _position
         from generate_series({from}, {to})"
    )
}
