//! The lake of orders: a change table, and a silver table kept from it.

use std::path::Path;

use anyhow::{Context, Result, bail};
use tributary_cdc_decode::Decoder;
use tributary_lake::{Commit, CommitOutcome, Lake, LakeOptions, Stores, WriterOptions};
use tributary_silver_merge::Options;
use tributary_specs::{DatasetReport, Pipeline, SilverSpec, TableName, TableSpec};

use super::data::Batch;

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
    pub fn word(self) -> &'static str {
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
