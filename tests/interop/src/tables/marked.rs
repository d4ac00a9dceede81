//! Marks of deleted rows in the log and in files, over several generations, and logs that have been tidied.

use anyhow::{Result, ensure};
use tributary_specs::TableName;

use crate::world::{Kind, World, columns, declared, kind, pipeline};

/// Rows that are changed far apart: their marks do not fit into the log.
const ROWS: i64 = 12_000;

pub async fn write(world: &World) -> Result<Vec<Kind>> {
    let large = marks_in_files(world).await?;
    Ok(vec![large, tidied(world).await?, old_release(world).await?])
}

/// A batch of changes: `every`-th key from `first` on, its value told apart by `step`; one of seven is a delete after the first.
fn changes(step: i64, first: i64, every: i64) -> String {
    format!(
        "select value as id, concat('v', {step}) as v, case when {step} > 0 and value % 7 = 0 then 'delete' else 'update' end as _op,
                concat('000000/', lpad(cast({step} as varchar), 20, '0'), '/', lpad(cast(value as varchar), 20, '0')) as _position
         from generate_series({first}, {ROWS}, {every})"
    )
}

const EVENTS: &str = "id long, v string, _op string not null, _position string not null";

async fn marks_in_files(world: &World) -> Result<Kind> {
    let source = declared("large", columns(EVENTS)?);
    let silver = pipeline("large", "  - { table: silver.large, sources: [bronze.large], keys: [id], policy: scd_type1 }\n")?;
    let table = TableName::new("silver", "large");
    let (mut inline, mut files) = (0, 0);
    for (step, (first, every)) in [(1, 1), (1, 4000), (2, 5), (3, 7), (4, 11), (5, 3500)].into_iter().enumerate() {
        world.append(&source, &changes(step as i64, first, every)).await?;
        world.silver(&silver).await?;
        for file in world.table(&table).await?.files().await? {
            let storage = file.deletion_vector.map(|vector| vector.storage_type);
            inline += usize::from(storage.as_deref() == Some("i"));
            files += usize::from(storage.as_deref() == Some("u"));
        }
    }
    ensure!(inline > 0 && files > 0, "{inline} marks in the log, {files} in files");
    Ok(kind("scd1, deletion vectors in the log and in files", &table))
}

/// Commits that a checkpoint stands for are removed, as another engine's clean-up does it.
async fn tidied(world: &World) -> Result<Kind> {
    let source = declared("tidied", columns(EVENTS)?);
    let silver = pipeline("tidied", "  - { table: silver.tidied, sources: [bronze.tidied], keys: [id], policy: scd_type1 }\n")?;
    // two checkpoints, and commits after the second
    for step in 0..22 {
        world.append(&source, &changes(step, step + 1, 400 + step)).await?;
        world.silver(&silver).await?;
    }
    let table = TableName::new("silver", "tidied");
    let log = world.path(&table).join("_delta_log");
    let last: serde_json::Value = serde_json::from_slice(&std::fs::read(log.join("_last_checkpoint"))?)?;
    let checkpoint = last["version"].as_u64().unwrap_or_default();
    ensure!(checkpoint > 10, "the last checkpoint is of version {checkpoint}");
    for version in 0..checkpoint {
        std::fs::remove_file(log.join(format!("{version:020}.json")))?;
        let older = log.join(format!("{version:020}.checkpoint.parquet"));
        if older.is_file() {
            std::fs::remove_file(older)?;
        }
    }
    Ok(Kind { feed_from: Some(checkpoint + 1), ..kind("scd1, log cleaned up by another", &table) })
}

/// The first commits are made as a release without deletion vectors made them; the next run upgrades the table where it lies.
async fn old_release(world: &World) -> Result<Kind> {
    let source = declared("upgraded", columns(EVENTS)?);
    let dataset = |properties: &str| {
        pipeline(
            "upgraded",
            &format!("  - {{ table: silver.upgraded, sources: [bronze.upgraded], keys: [id], policy: scd_type1{properties} }}\n"),
        )
    };
    let old = dataset(", properties: { delta.enableDeletionVectors: \"false\" }")?;
    for step in 0..2 {
        world.append(&source, &changes(step, step + 1, 150)).await?;
        world.silver(&old).await?;
    }
    for schema in ["silver", "_state"] {
        let first = world.path(&TableName::new(schema, "upgraded")).join("_delta_log").join(format!("{:020}.json", 0));
        let text = std::fs::read_to_string(&first)?;
        std::fs::write(
            &first,
            text.replace("\"delta.enableDeletionVectors\":\"false\",", "").replace(",\"delta.enableDeletionVectors\":\"false\"", ""),
        )?;
    }
    let (world, new) = (world.reopened()?, dataset("")?);
    for step in 2..5 {
        world.append(&source, &changes(step, 2, 150)).await?;
        world.silver(&new).await?;
    }
    let table = TableName::new("silver", "upgraded");
    ensure!(world.table(&table).await?.marks_rows(), "it was not upgraded");
    Ok(kind("scd1 of an older release, upgraded", &table))
}
