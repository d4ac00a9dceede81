//! `interop [ENGINE..] [--histories N] [--control]`: tables of every kind that we write are read by other engines, and tables that Spark writes by
//! us; a line for each table and engine, and at last how many. Without arguments all engines: delta-rs, duckdb, spark, and `auto_cdc`,
//! which is Spark's AUTO CDC beside silver.
//!
//! With `--control` a row of ours is altered before the comparison, which must then fail.

mod auto_cdc;
mod canonical;
mod compare;
mod engine;
mod foreign;
mod tables;
mod world;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::compare::Comparison;
use crate::engine::{Engine, Entry, Feed};
use crate::world::{Kind, World};

#[tokio::main]
async fn main() -> Result<()> {
    let (mut engines, mut auto_cdc, mut control) = (Vec::new(), false, false);
    let mut histories = auto_cdc::HISTORIES;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match Engine::ALL.into_iter().find(|engine| engine.name() == argument) {
            Some(engine) => engines.push(engine),
            None if argument == auto_cdc::NAME => auto_cdc = true,
            None if argument == "--control" => control = true,
            None if argument == "--histories" => histories = arguments.next().context("--histories N")?.parse()?,
            None => bail!("usage: interop [delta-rs|duckdb|spark|auto_cdc].. [--histories N] [--control]"),
        }
    }
    if engines.is_empty() && !auto_cdc {
        (engines, auto_cdc) = (Engine::ALL.to_vec(), true);
    }
    let scratch = tempfile::tempdir()?;
    let world = World::open(&scratch.path().join("lake"))?;
    let mut comparison = Comparison::default();
    if !engines.is_empty() {
        compared(&world, scratch.path(), &engines, control, &mut comparison).await?;
    }
    let summary = match auto_cdc {
        true => Some(auto_cdc::compare(&world, scratch.path(), histories, control, &mut comparison).await?),
        false => None,
    };
    println!("lines {}", comparison.lines);
    summary.into_iter().for_each(|line| println!("{line}"));
    if comparison.failed > 0 {
        bail!("{} of them not as they should be", comparison.failed);
    }
    Ok(())
}

/// What we say of a table.
struct Ours {
    kind: Kind,
    rows: Vec<String>,
    /// Its lines and what they are of.
    changes: Option<(String, Vec<String>)>,
    entry: Entry,
}

async fn compared(world: &World, scratch: &Path, engines: &[Engine], control: bool, comparison: &mut Comparison) -> Result<()> {
    let mut kinds = tables::write(world).await?;
    if engines.contains(&Engine::Spark) {
        kinds.extend(foreign::write(world, comparison).await?);
    }
    let mut all = Vec::new();
    for kind in kinds {
        all.push(ours(world, kind).await?);
    }
    if control {
        let altered = all.iter_mut().find_map(|table| table.rows.last_mut());
        altered.into_iter().for_each(|row| row.push('!'));
    }
    for engine in engines {
        let is_compared = |table: &&Ours| table.kind.only.is_none_or(|only| only == *engine);
        let plan: Vec<&Entry> = all.iter().filter(is_compared).map(|table| &table.entry).collect();
        let read = engine.read(&plan, scratch)?;
        for table in all.iter().filter(is_compared) {
            let name = &table.entry.name;
            comparison.of(&table.kind.name, engine.name(), &table.rows, read.get(name));
            if let Some((what, changes)) = table.changes.as_ref().filter(|_| engine.has_change_feed()) {
                comparison.of(&format!("{}, {what}", table.kind.name), engine.name(), changes, read.get(&format!("{name} feed")));
            }
        }
    }
    Ok(())
}

async fn ours(world: &World, kind: Kind) -> Result<Ours> {
    let table = world.table(&kind.table).await?;
    let names = |schema: tributary_lake::arrow::datatypes::SchemaRef| schema.fields().iter().map(|field| field.name().clone()).collect();
    let to = table.version();
    let feed = kind.feed_from.map(|from| Feed { from, to, columns: names(table.change_schema()) });
    let changes = match &feed {
        Some(feed) => Some((format!("changes of versions {} to {to}", feed.from), world.changes(&kind.table, feed.from, to).await?)),
        None => None,
    };
    let entry = Entry { name: kind.table.to_string(), path: world.path(&kind.table), version: to, columns: names(table.schema()), feed };
    Ok(Ours { rows: world.rows(&kind.table).await?, kind, changes, entry })
}
