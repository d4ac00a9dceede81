//! Tables whose rows are only added, and what a column may be.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use tributary_specs::{Check, Column, DataType, TableSpec};

use crate::world::{Kind, World, columns, declared, kind};

pub async fn write(world: &World) -> Result<Vec<Kind>> {
    Ok(vec![
        appended(world).await?,
        empty(world).await?,
        types(world).await?,
        decimals(world).await?,
        times(world).await?,
        nested(world).await?,
        nested_in_nested(world).await?,
        odd_names(world).await?,
        ruled(world).await?,
        clustered(world).await?,
        checkpointed(world).await?,
    ])
}

async fn appended(world: &World) -> Result<Kind> {
    let spec = declared("appended", columns("id long not null, name string, größe integer")?);
    for commit in 0..4 {
        let first = commit * 50;
        let query = format!(
            "select value as id, case when value % 9 = 0 then null else concat('name ', value) end as name, cast(value % 7 as int) as \"größe\"
             from generate_series({first}, {})",
            first + 49
        );
        world.append(&spec, &query).await?;
    }
    Ok(kind("append only", &spec.name))
}

async fn empty(world: &World) -> Result<Kind> {
    let spec = declared("empty", columns("id long, name string")?);
    world.lake.create(&spec).await?;
    Ok(Kind { feed_from: None, ..kind("no rows", &spec.name) })
}

async fn types(world: &World) -> Result<Kind> {
    let spec = declared(
        "types",
        columns("id integer, boo boolean, byt byte, sho short, int integer, lon long, flo float, dou double, str string, bin binary")?,
    );
    world
        .append(
            &spec,
            "select cast(i as int) as id, boo, arrow_cast(byt, 'Int8') as byt, arrow_cast(sho, 'Int16') as sho, arrow_cast(inn, 'Int32') as \"int\",
                    lon, arrow_cast(flo, 'Float32') as flo, dou, str, arrow_cast(str, 'Binary') as bin
             from (values
               (1, true, -128, -32768, -2147483648, arrow_cast('-9223372036854775808', 'Int64'), -3.4028235e38, -1.7976931348623157e308, ''),
               (2, false, 127, 32767, 2147483647, 9223372036854775807, 3.4028235e38, 1.7976931348623157e308, 'plain'),
               (3, null, 0, 0, 0, 0, -0.0, -0.0, 'tab\tline\nquote\"back\\slash'),
               (4, true, null, null, null, null, 'NaN'::double, 'NaN'::double, '日本 é \u{1F600} \u{0}'),
               (5, true, 1, 1, 1, 1, 'Infinity'::double, '-Infinity'::double, '  spaces  '),
               (6, true, 1, 1, 1, 1, 1.0e-45, 5.0e-324, null),
               (7, null, null, null, null, null, null, null, null)
             ) as t(i, boo, byt, sho, inn, lon, flo, dou, str)",
        )
        .await?;
    Ok(kind("plain types", &spec.name))
}

async fn decimals(world: &World) -> Result<Kind> {
    let spec =
        declared("decimals", columns("id long, a decimal(5,2), b decimal(18,0), c decimal(20,4), d decimal(38,18), e decimal(38,0)")?);
    let value = |text: &str| {
        let cast = |precision: u8, scale: u8, whole: usize, fraction: usize| {
            let digits = format!("{}.{}", "9".repeat(whole), "9".repeat(fraction.max(1)));
            let digits = if fraction == 0 { "9".repeat(whole) } else { digits };
            format!("arrow_cast('{text}{digits}', 'Decimal128({precision}, {scale})')")
        };
        [cast(5, 2, 3, 2), cast(18, 0, 18, 0), cast(20, 4, 16, 4), cast(38, 18, 20, 18), cast(38, 0, 38, 0)].join(", ")
    };
    let small = |digits: &str| {
        let of = |scale: u8, precision: u8| format!("arrow_cast('{digits}', 'Decimal128({precision}, {scale})')");
        [of(2, 5), of(0, 18), of(4, 20), of(18, 38), of(0, 38)].join(", ")
    };
    let query = format!(
        "select * from (values (1, {}), (2, {}), (3, {}), (4, {}), (5, null, null, null, null, null)) as t(id, a, b, c, d, e)",
        value(""),
        value("-"),
        small("0"),
        small("7")
    );
    world.append(&spec, &query).await?;
    Ok(kind("decimals", &spec.name))
}

async fn times(world: &World) -> Result<Kind> {
    let spec = declared("times", columns("id long, day date, instant timestamp, clock timestamp_ntz")?);
    let row = |id: i64, text: &str| {
        let day = &text[..10];
        format!(
            "({id}, date '{day}', arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"UTC\"))'), arrow_cast('{text}', 'Timestamp(Microsecond, None)'))"
        )
    };
    let rows = [
        row(1, "1970-01-01T00:00:00.000000"),
        row(2, "1969-12-31T23:59:59.999999"),
        row(3, "2024-02-29T12:34:56.789012"),
        row(4, "9999-12-31T23:59:59.999999"),
        row(5, "0001-01-01T00:00:00.000000"),
        // the ten days before it are none in the calendar that Spark's change feed goes through
        row(6, "1582-10-15T08:00:00.000001"),
        row(7, "1899-12-31T23:45:00.500000"),
        row(8, "2026-03-29T02:30:00.000000"),
        "(9, null, null, null)".to_owned(),
    ];
    world.append(&spec, &format!("select * from (values {}) as t(id, day, instant, clock)", rows.join(", "))).await?;
    Ok(kind("times", &spec.name))
}

async fn nested(world: &World) -> Result<Kind> {
    let spec = declared(
        "nested",
        columns(
            "id long, tags array<string>, address struct<street:string,geo:struct<lat:double,lon:double>>, \
             counts map<string,long>, lines array<struct<sku:string,qty:integer,price:decimal(10,2)>>",
        )?,
    );
    let query = "
        select 1 as id, make_array('a', null, 'c') as tags,
               named_struct('street', 'Main', 'geo', named_struct('lat', 1.5, 'lon', -2.5)) as address,
               map(['x', 'y'], [1, 2]) as counts,
               make_array(named_struct('sku', 's1', 'qty', arrow_cast(3, 'Int32'), 'price', arrow_cast('9.90', 'Decimal128(10, 2)'))) as lines
        union all
        select 2, make_array(), named_struct('street', null, 'geo', named_struct('lat', null, 'lon', 0.0)), map(['only'], [null]),
               make_array(named_struct('sku', null, 'qty', null, 'price', null), named_struct('sku', 'é', 'qty', arrow_cast(0, 'Int32'), 'price', arrow_cast('-0.01', 'Decimal128(10, 2)')))
        union all
        select 3, null, null, null, null";
    world.append(&spec, query).await?;
    Ok(kind("nested types", &spec.name))
}

/// Every form in every other.
async fn nested_in_nested(world: &World) -> Result<Kind> {
    let spec = declared(
        "nested_in_nested",
        columns(
            "id long, grid array<array<long>>, named map<string,struct<at:timestamp,tags:array<string>>>, \
             deep struct<days:array<date>,by:map<integer,decimal(38,18)>>, many array<map<string,array<double>>>",
        )?,
    );
    let at = |micros: i64| format!("arrow_cast({micros}, 'Timestamp(Microsecond, Some(\"UTC\"))')");
    let query = format!(
        "select 1 as id, make_array(make_array(1, null), make_array(), null) as grid,
                map(['a'], [named_struct('at', {}, 'tags', make_array('x', null))]) as named,
                named_struct('days', make_array(date '1500-02-28', null), 'by', map([arrow_cast(-1, 'Int32')], [arrow_cast('-12345678901234567890.123456789012345678', 'Decimal128(38, 18)')])) as deep,
                make_array(map(['k'], [make_array(0.5, null)])) as many
         union all
         select 2, null, null, named_struct('days', null, 'by', null), null
         union all
         select 3, make_array(make_array(3)), map(['b', 'c'], [named_struct('at', {}, 'tags', make_array('y')), named_struct('at', null, 'tags', null)]), null, make_array()",
        at(-2_300_000_000_000_001),
        at(1)
    );
    world.append(&spec, &query).await?;
    Ok(kind("nested types in one another", &spec.name))
}

/// Names that need quotes somewhere.
async fn odd_names(world: &World) -> Result<Kind> {
    let names = ["a.b", "größe", "日本", "it's", "back`tick", "x:y/z", "per%20cent", "CamelCase", "two words", "say \"hi\""];
    let mut of = columns("id long")?;
    of.extend(names.iter().map(|name| Column::new(*name, DataType::String)));
    let spec = declared("odd_names", of);
    let selected =
        names.iter().map(|name| format!("concat(value, 'v') as \"{}\"", name.replace('"', "\"\""))).collect::<Vec<_>>().join(", ");
    world.append(&spec, &format!("select value as id, {selected} from generate_series(1, 5)")).await?;
    world.append(&spec, &format!("select value as id, {selected} from generate_series(6, 9)")).await?;
    Ok(kind("columns with dots, spaces, quotes, letters of the world", &spec.name))
}

async fn ruled(world: &World) -> Result<Kind> {
    let mut of = columns("id long not null, price decimal(10,2), quantity integer, total decimal(20,2), state string")?;
    of[3].generated = Some("price * quantity".to_owned());
    of[4].default = Some("'new'".to_owned());
    let mut spec = declared("ruled", of);
    spec.checks = vec![Check { name: "quantity_is_positive".to_owned(), expression: "quantity > 0".to_owned() }];
    spec.comment = Some("Rules that the writer keeps".to_owned());
    let query = "select value as id, arrow_cast(concat(value, '.25'), 'Decimal128(10, 2)') as price, cast(value + 1 as int) as quantity from generate_series(0, 30)";
    world.append(&spec, query).await?;
    Ok(kind("check, default and generated columns", &spec.name))
}

async fn clustered(world: &World) -> Result<Kind> {
    let mut spec = declared("clustered", columns("id long, country string, day date, amount double")?);
    spec.cluster_by = vec!["country".to_owned(), "day".to_owned()];
    for commit in 0..3 {
        world.append(&spec, &clustered_rows(commit)).await?;
    }
    Ok(kind("clustering", &spec.name))
}

fn clustered_rows(commit: i64) -> String {
    format!(
        "select value + {} as id, case value % 3 when 0 then 'de' when 1 then 'fr' end as country,
                arrow_cast(arrow_cast(20000 + value, 'Int32'), 'Date32') as day, value / 3.0 as amount from generate_series(1, 40)",
        commit * 40
    )
}

async fn checkpointed(world: &World) -> Result<Kind> {
    let interval = BTreeMap::from([("delta.checkpointInterval".to_owned(), "3".to_owned())]);
    let spec = TableSpec { properties: interval, ..declared("checkpointed", columns("id long, note string")?) };
    for commit in 0..10 {
        world.append(&spec, &format!("select value as id, concat('c', {commit}) as note from generate_series(1, {})", 5 + commit)).await?;
    }
    let checkpoints = world.checkpoints(&spec.name)?;
    ensure!(checkpoints == [3, 6, 9], "checkpoints of versions {checkpoints:?}");
    Ok(kind("checkpoints", &spec.name))
}
