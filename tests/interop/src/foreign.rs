//! Tables that Spark writes: read by us, written to where we claim it, refused by name where we do not.

use anyhow::{Context, Result, bail, ensure};
use tributary_lake::{Commit, CommitOutcome, WriterOptions};
use tributary_specs::TableName;

use crate::compare::Comparison;
use crate::engine::Engine;
use crate::tables;
use crate::world::{Kind, World, pipeline};

/// What we do with a table.
enum Claim {
    /// We read it, and its change feed where it has one.
    Read { feed: bool },
    /// We append the rows of a query, too.
    Appended(&'static str),
    /// Silver, declared with this layout, merges changes into it, too.
    Merged(&'static str),
    /// We read it, and name what keeps us from writing to it.
    ReadOnly(&'static str),
    /// We name what keeps us from reading it.
    Refused(&'static str),
}

const OURS: &str = "select value as id, 'ours' as name from generate_series(1000, 1020)";

const TABLES: [(&str, &str, Claim); 28] = [
    ("deletion vectors", "vectors", Claim::Appended(OURS)),
    ("copy on write", "copied", Claim::Read { feed: true }),
    (
        "clustering",
        "clustered",
        Claim::Appended(
            "select value as id, 'ours' as name, arrow_cast(arrow_cast(20000 + value, 'Int32'), 'Date32') as day from generate_series(1, 20)",
        ),
    ),
    (
        "generated and default columns",
        "generated",
        Claim::Appended(
            "select value as id, arrow_cast(1760000000000000 + value, 'Timestamp(Microsecond, Some(\"UTC\"))') as at from generate_series(100, 120)",
        ),
    ),
    (
        "constraints",
        "constrained",
        Claim::Appended(
            "select value as id, arrow_cast(concat(value, '.5'), 'Decimal128(12, 2)') as amount from generate_series(100, 120)",
        ),
    ),
    ("legacy protocol", "legacy", Claim::Appended(OURS)),
    ("partitions", "partitioned", Claim::Read { feed: true }),
    ("overwritten, replaced in part, restored, truncated", "overwritten", Claim::Read { feed: true }),
    ("shallow clone", "cloned", Claim::Read { feed: true }),
    ("columns and fields added, columns moved", "grown", Claim::Read { feed: true }),
    ("row tracking", "tracked", Claim::ReadOnly("rowTracking")),
    ("v2 checkpoints", "checkpointed", Claim::Read { feed: true }),
    ("in-commit timestamps", "timed", Claim::Appended(OURS)),
    ("types", "types", Claim::Read { feed: false }),
    ("identity columns", "identity", Claim::ReadOnly("identity")),
    ("multi-part checkpoint, log cleaned up", "parted", Claim::Read { feed: true }),
    ("silver merged into it", "merged", Claim::Merged("")),
    ("silver merged into its partitions by copy on write", "merged_copied", Claim::Merged(", partition_by: [tier]")),
    ("silver merged into clustering, constraint, in-commit timestamps", "merged_rich", Claim::Merged(", cluster_by: [id]")),
    ("silver merged into v2 checkpoints", "merged_v2", Claim::Merged("")),
    ("silver merged into checkpoints with statistics as structs", "merged_structs", Claim::Merged("")),
    ("silver merged into generated and default columns", "merged_generated", Claim::Merged("")),
    ("silver merged into columns added and moved", "merged_grown", Claim::Merged("")),
    ("silver merged into a legacy protocol", "merged_legacy", Claim::Merged("")),
    ("column mapping", "mapped", Claim::Refused("column mapping by name")),
    ("column mapping by id", "mapped_by_id", Claim::Refused("column mapping by id")),
    ("type widening", "widened", Claim::Refused("typeWidening")),
    ("variant", "variant", Claim::Refused("variantType")),
];

/// Lets Spark write its tables, writes to those we claim; returns those that both read.
pub async fn write(world: &World, comparison: &mut Comparison) -> Result<Vec<Kind>> {
    let folder = world.path(&TableName::new("foreign", "any")).parent().context("a table without a folder")?.to_owned();
    std::fs::create_dir_all(&folder)?;
    Engine::Spark.run("spark_writer.py", &[&folder])?;
    let mut kinds = Vec::new();
    for (what, name, claim) in TABLES {
        let table = TableName::new("foreign", name);
        // of one the first commits are no longer there
        let feed_from = Some(if name == "parted" { 7 } else { 1 });
        let kind = Kind { name: format!("spark's table, {what}"), table: table.clone(), feed_from, only: Some(Engine::Spark) };
        match claim {
            Claim::Read { feed: true } => kinds.push(kind),
            Claim::Read { feed: false } => kinds.push(Kind { feed_from: None, ..kind }),
            Claim::Appended(query) => {
                append(world, &table, query).await.with_context(|| format!("appending to {table}"))?;
                kinds.push(kind);
            }
            Claim::Merged(layout) => {
                merge(world, &table, layout).await.with_context(|| format!("merging into {table}"))?;
                kinds.push(kind);
            }
            Claim::ReadOnly(feature) => {
                let refused = world.table(&table).await?.ensure_writable().err().map(|error| error.to_string());
                named(comparison, &format!("{}, written to", kind.name), feature, refused);
                kinds.push(Kind { feed_from: None, ..kind });
            }
            Claim::Refused(feature) => {
                let refused = world.lake.table(&table).await.err().map(|error| error.to_string());
                named(comparison, &kind.name, feature, refused);
            }
        }
    }
    Ok(kinds)
}

fn named(comparison: &mut Comparison, what: &str, feature: &str, refused: Option<String>) {
    match refused {
        Some(message) if message.contains(feature) => comparison.says(&format!("{what}: we refuse it and name {feature}")),
        Some(message) => comparison.fail(&format!("{what}: we refuse it without naming {feature}: {message}")),
        None => comparison.fail(&format!("{what}: we do not refuse it for {feature}")),
    }
}

async fn append(world: &World, name: &TableName, query: &str) -> Result<()> {
    let table = world.table(name).await?;
    table.ensure_writable()?;
    let mut writer = table.writer(WriterOptions::default())?;
    for batch in world.lake.session().sql(query).await?.collect().await? {
        writer.write(&batch).await?;
    }
    match table.commit(Commit { adds: writer.finish().await?, ..Commit::default() }).await? {
        CommitOutcome::Committed { .. } => Ok(()),
        other => bail!("{other:?}"),
    }
}

/// Two runs of silver, over what is there and over one more batch. Who asks for checkpoints gets one from us.
async fn merge(world: &World, table: &TableName, layout: &str) -> Result<()> {
    let silver =
        pipeline("changes", &format!("  - {{ table: {table}, sources: [bronze.changes], keys: [id], policy: scd_type1{layout} }}\n"))?;
    let before = world.checkpoints(table)?;
    world.silver(&silver).await?;
    // one more batch, for each table that is merged into
    let next = world.table(&TableName::new("bronze", "changes")).await?.version();
    tables::changes(world, i64::try_from(next)?).await?;
    world.silver(&silver).await?;
    let (asked, checkpoints) = (world.table(table).await?.properties().contains_key("delta.checkpointInterval"), world.checkpoints(table)?);
    ensure!(asked == (checkpoints.len() > before.len()), "checkpoints of versions {before:?}, and then of {checkpoints:?}");
    Ok(())
}
