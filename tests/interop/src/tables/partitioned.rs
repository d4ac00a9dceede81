//! Tables in partitions, by values that a path does not bear as they are.

use anyhow::Result;

use crate::world::{Kind, World, columns, declared, kind};

const ODD: [&str; 14] = ["a/b", "/", "50%", "50%25", "x:y", "q?", "r&d", "é", "日本", "a b", "#1", "a=b", "..", "__HIVE_DEFAULT_PARTITION"];

pub async fn write(world: &World) -> Result<Vec<Kind>> {
    Ok(vec![texts(world).await?, typed(world).await?])
}

async fn texts(world: &World) -> Result<Kind> {
    let mut spec = declared("partitioned", columns("id long, site string, other string")?);
    spec.partition_by = vec!["site".to_owned(), "other".to_owned()];
    let rows: Vec<String> = ODD.iter().enumerate().map(|(at, site)| format!("({at}, '{site}', 'o{}')", at % 3)).collect();
    world
        .append(&spec, &format!("select * from (values {}, (98, null, 'o'), (99, null, null)) as t(id, site, other)", rows.join(", ")))
        .await?;
    world.append(&spec, &format!("select * from (values {}) as t(id, site, other)", rows.join(", "))).await?;
    Ok(kind("partitions of odd texts", &spec.name))
}

async fn typed(world: &World) -> Result<Kind> {
    let mut spec =
        declared("typed", columns("id long, d date, t timestamp, n timestamp_ntz, m decimal(12,3), b boolean, i integer, f double")?);
    spec.partition_by = ["d", "t", "n", "m", "b", "i", "f"].map(str::to_owned).to_vec();
    let query = "select value as id,
            case value % 4 when 0 then null else arrow_cast(arrow_cast(value * 1000 - 150000, 'Int32'), 'Date32') end as d,
            case value % 5 when 0 then null else arrow_cast(1700000000123456 - value % 2 * 4700000000876544, 'Timestamp(Microsecond, Some(\"UTC\"))') end as t,
            case value % 6 when 0 then null else arrow_cast(value % 3 * 1000000, 'Timestamp(Microsecond, None)') end as n,
            case value % 7 when 0 then null else arrow_cast(concat('-', value % 3, '.125'), 'Decimal128(12, 3)') end as m,
            case value % 3 when 0 then null else value % 2 = 0 end as b,
            arrow_cast(value % 2 - 1, 'Int32') as i,
            case value % 2 when 0 then 0.1 else -1e300 end as f
        from generate_series(1, 24)";
    world.append(&spec, query).await?;
    Ok(kind("partitions of times, decimals, numbers", &spec.name))
}
