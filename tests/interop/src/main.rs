//! `interop [ENGINE..] [--control]`: tables of every kind that we write are read by other engines, and tables that Spark writes by
//! us; a line for each table and engine, and at last how many. Without arguments all engines: delta-rs, duckdb, spark.
//!
//! With `--control` a row of ours is altered before the comparison, which must then fail.

mod canonical;
mod compare;
mod engine;
mod foreign;
mod tables;
mod world;

use std::path::Path;

use anyhow::{Result, bail};

use crate::compare::Comparison;
use crate::engine::{Engine, Entry, Feed};
use crate::world::{Kind, World};

#[tokio::main]
async fn main() -> Result<()> {
    let (mut engines, mut control) = (Vec::new(), false);
    for argument in std::env::args().skip(1) {
        match Engine::ALL.into_iter().find(|engine| engine.name() == argument) {
            Some(engine) => engines.push(engine),
            None if argument == "--control" => control = true,
            None => bail!("usage: interop [delta-rs|duckdb|spark].. [--control]"),
        }
    }
    if engines.is_empty() {
        engines = Engine::ALL.to_vec();
    }
    let scratch = tempfile::tempdir()?;
    let comparison = compared(scratch.path(), &engines, control).await?;
    println!("lines {}", comparison.lines);
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

async fn compared(scratch: &Path, engines: &[Engine], control: bool) -> Result<Comparison> {
    let world = World::open(&scratch.join("lake"))?;
    let mut comparison = Comparison::default();
    let mut kinds = tables::write(&world).await?;
    if engines.contains(&Engine::Spark) {
        kinds.extend(foreign::write(&world, &mut comparison).await?);
    }
    let mut all = Vec::new();
    for kind in kinds {
        all.push(ours(&world, kind).await?);
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
            comparison.of(&table.kind.name, engine.name(), &table.rows, read.get(name), None);
            // delta-rs looks for the files of a change feed by the encoded name
            let limit = (*engine == Engine::DeltaRs && table.kind.encoded_paths).then_some("No such file or directory");
            if let Some((what, changes)) = table.changes.as_ref().filter(|_| engine.has_change_feed()) {
                comparison.of(&format!("{}, {what}", table.kind.name), engine.name(), changes, read.get(&format!("{name} feed")), limit);
            }
        }
    }
    Ok(comparison)
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
