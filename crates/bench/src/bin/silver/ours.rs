//! Silver's engine on a lake of its own, in a process of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tributary_cdc_decode::Decoder;
use tributary_lake::{Commit, CommitOutcome, Lake, LakeOptions, Stores, WriterOptions};
use tributary_silver_merge::Options;
use tributary_specs::{DatasetReport, Pipeline, SilverSpec, TableName, TableSpec};

use crate::data::{Batch, Kinds};
use crate::process::{self, Measured};
use crate::target;

/// The change table.
pub const BRONZE: &str = "bronze.orders";

/// Which table is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Current,
    /// By a column that no two images of a row share.
    Stamped,
    History,
}

impl Policy {
    const ALL: [Self; 3] = [Self::Current, Self::Stamped, Self::History];

    fn clauses(self) -> &'static str {
        match self {
            Self::Current => "policy: scd_type1",
            Self::Stamped => "policy: scd_type1, sequence_by: [updated_at], properties: { tributary.sequence.unique: \"true\" }",
            Self::History => "policy: { scd_type2: {} }",
        }
    }

    /// As it is said to a process.
    fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Stamped => "stamped",
            Self::History => "history",
        }
    }

    /// The policy that is said by a word.
    pub fn of_word(word: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|policy| policy.word() == word).with_context(|| format!("`{word}` is no policy"))
    }
}

/// What a run is given beside its lake.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub policy: Policy,
    /// Whether the table has a change feed.
    pub feed: bool,
    /// As of `tributary --memory-limit`.
    pub memory_limit: usize,
    /// One commit for each batch, in one process.
    pub batch_by_batch: bool,
}

/// What a run says at its end.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    inserted: u64,
    updated: u64,
    deleted: u64,
}

fn pipeline(policy: Policy) -> Result<Pipeline> {
    let text = format!(
        "name: bench
feeds:
  - name: shop_orders
    table: {BRONZE}
    source: {{ kafka: {{ topics: [shop.public.orders] }} }}
    keys: [order_id]
    columns:
      - {{ name: order_id, type: long }}
      - {{ name: customer_id, type: long }}
      - {{ name: store_id, type: integer }}
      - {{ name: quantity, type: integer }}
      - {{ name: price, type: \"decimal(12,2)\" }}
      - {{ name: amount, type: \"decimal(12,2)\" }}
      - {{ name: placed_at, type: timestamp }}
      - {{ name: updated_at, type: timestamp }}
      - {{ name: ship_day, type: date }}
      - {{ name: status, type: string }}
      - {{ name: note, type: string }}
silver:
  - {{ table: silver.orders, sources: [{BRONZE}], keys: [order_id], {} }}
",
        policy.clauses()
    );
    Pipeline::from_yaml("bench.yml", &text).context("the bench's own pipeline")
}

fn spec(policy: Policy) -> Result<SilverSpec> {
    pipeline(policy)?.silver.pop().context("the bench's pipeline has no silver table")
}

/// The lake in a folder.
pub fn open(folder: &Path, memory_limit: usize) -> Result<Lake> {
    Ok(Lake::open(Stores::local(folder)?, LakeOptions { memory_limit, ..LakeOptions::default() })?)
}

/// Makes the change table, empty; returns what the dataset's table is made with.
pub async fn declared(lake: &Lake, policy: Policy) -> Result<TableSpec> {
    let pipeline = pipeline(policy)?;
    let columns = Decoder::new(&pipeline.feeds[0])?.columns();
    lake.create(&TableSpec::new(pipeline.feeds[0].table.clone(), columns)).await?;
    let declared = tributary_silver_merge::table_spec(lake, &spec(policy)?, &Options::default()).await?;
    declared.context("silver declares no table")
}

/// Appends a batch to the change table.
pub async fn append(lake: &Lake, batch: &Batch) -> Result<()> {
    let table = lake.table(&BRONZE.parse::<TableName>()?).await?.context("the change table is not there")?;
    let mut writer = table.writer(WriterOptions::default())?;
    writer.write(&batch.bronze()?).await?;
    match table.commit(Commit { adds: writer.finish().await?, ..Commit::default() }).await? {
        CommitOutcome::Committed { .. } => Ok(()),
        other => bail!("the changes were not appended: {other:?}"),
    }
}

/// A run of silver.
pub async fn merge(lake: &Lake, policy: Policy, options: &Options) -> Result<DatasetReport> {
    Ok(tributary_silver_merge::run(lake, &spec(policy)?, options).await?)
}

/// A run in a process of its own, from start to exit; it must do what the batches say.
pub fn measure(folder: &Path, run: Run, batches: &[Batch]) -> Result<Measured> {
    let bytes_before = bytes_written(folder)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--run").arg(folder).arg(run.policy.word());
    command.arg(run.memory_limit.to_string()).arg(if run.batch_by_batch { "1" } else { "0" });
    let (mut measured, printed) = process::measure(&mut command)?;
    let outcome: Outcome = serde_json::from_str(&printed).with_context(|| format!("a run said `{printed}`"))?;
    let sum = |of: fn(&Kinds) -> u64| batches.iter().map(|batch| of(&batch.kinds())).sum::<u64>();
    let wanted = match run.policy {
        Policy::Current | Policy::Stamped => [sum(|kinds| kinds.inserted), sum(|kinds| kinds.updated), sum(|kinds| kinds.deleted)],
        // an update ends a version and begins one, a delete ends one
        Policy::History => [sum(|kinds| kinds.inserted + kinds.updated), sum(|kinds| kinds.updated + kinds.deleted), 0],
    };
    if [outcome.inserted, outcome.updated, outcome.deleted] != wanted {
        bail!("a run did {outcome:?}; inserted, updated, deleted should be {wanted:?}");
    }
    measured.bytes_written = bytes_written(folder)? - bytes_before;
    if fs::exists(folder.join(target::SILVER).join("_change_data"))? != run.feed {
        bail!("a change feed was written to a table without, or none to a table with one");
    }
    Ok(measured)
}

/// Of the dataset's table and what silver keeps beside it.
fn bytes_written(lake: &Path) -> Result<u64> {
    let state = lake.join("main/_state");
    let kept = if fs::exists(&state)? { target::bytes_written(&state)? } else { 0 };
    Ok(target::bytes_written(&lake.join("main/silver"))? + kept)
}

/// What that process does.
pub async fn run(folder: &Path, run: Run) -> Result<()> {
    let lake = open(folder, run.memory_limit)?;
    let source_versions_max = run.batch_by_batch.then_some(1);
    // as the program deals its limit: half to the queries, half to the engine
    let options = Options { memory_limit: run.memory_limit / 2, source_versions_max, ..Options::default() };
    let report = merge(&lake, run.policy, &options).await?;
    let outcome = Outcome { inserted: report.rows_inserted, updated: report.rows_updated, deleted: report.rows_deleted };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}
