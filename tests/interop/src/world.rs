//! A lake on local files, filled by queries.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use futures::TryStreamExt;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::{Commit, CommitOutcome, Lake, LakeOptions, ReadOptions, Stores, Table, WriterOptions};
use tributary_silver_merge::Options;
use tributary_specs::{Column, DataType, Pipeline, TableName, TableSpec};

use crate::canonical;
use crate::engine::Engine;

/// The lake.
pub struct World {
    pub lake: Lake,
    root: PathBuf,
}

/// A table that is compared.
#[derive(Debug, Clone)]
pub struct Kind {
    /// What it is a case of.
    pub name: String,
    pub table: TableName,
    /// The first version of the change feed to compare, to the last one.
    pub feed_from: Option<u64>,
    /// The only engine it is compared with.
    pub only: Option<Engine>,
}

/// A kind whose change feed is compared from its second version on.
pub fn kind(name: &str, table: &TableName) -> Kind {
    Kind { name: name.to_owned(), table: table.clone(), feed_from: Some(1), only: None }
}

/// `name type, name type not null, ..` as columns.
pub fn columns(declared: &str) -> Result<Vec<Column>> {
    match format!("struct<{declared}>").parse::<DataType>().map_err(|error| anyhow!("{declared}: {error}"))? {
        DataType::Struct(columns) => Ok(columns),
        _ => bail!("{declared} are no columns"),
    }
}

/// A declaration of a table in `bronze`.
pub fn declared(name: &str, columns: Vec<Column>) -> TableSpec {
    TableSpec::new(TableName::new("bronze", name), columns)
}

impl World {
    pub fn open(root: &Path) -> Result<Self> {
        let lake = Lake::open(Stores::local(root)?, LakeOptions::default())?;
        Ok(Self { lake, root: root.to_owned() })
    }

    /// The same lake for one who opens it now, without what is kept of its logs.
    pub fn reopened(&self) -> Result<Self> {
        Self::open(&self.root)
    }

    /// Where a table lies.
    pub fn path(&self, table: &TableName) -> PathBuf {
        self.root.join("main").join(&table.schema).join(&table.name)
    }

    /// The versions of which a checkpoint lies in its log, in any form, ascending.
    pub fn checkpoints(&self, table: &TableName) -> Result<Vec<u64>> {
        let mut versions = BTreeSet::new();
        for file in std::fs::read_dir(self.path(table).join("_delta_log"))? {
            let name = file?.file_name().to_string_lossy().into_owned();
            // what begins with a dot is a check sum of Spark's
            if let Some((version, _)) = name.split_once(".checkpoint.").filter(|_| !name.starts_with('.')) {
                versions.insert(version.parse().with_context(|| name.clone())?);
            }
        }
        Ok(versions.into_iter().collect())
    }

    pub async fn table(&self, name: &TableName) -> Result<Table> {
        self.lake.table(name).await?.with_context(|| format!("there is no table {name}"))
    }

    /// The rows of a query as one commit of appends; the table is made, or given the columns it lacks.
    pub async fn append(&self, spec: &TableSpec, query: &str) -> Result<()> {
        let table = self.lake.create(spec).await?;
        let mut all = table.columns().to_vec();
        all.extend(spec.columns.iter().filter(|column| table.columns().iter().all(|known| known.name != column.name)).cloned());
        let grown = (all.len() > table.columns().len()).then_some(all);
        let mut writer = table.writer(WriterOptions { columns: grown.clone(), ..WriterOptions::default() })?;
        let rows = self.lake.session().sql(query).await.with_context(|| query.to_owned())?.collect().await?;
        for batch in rows {
            writer.write(&batch).await.with_context(|| query.to_owned())?;
        }
        match table.commit(Commit { adds: writer.finish().await?, schema: grown, ..Commit::default() }).await? {
            CommitOutcome::Committed { .. } => Ok(()),
            other => bail!("rows were not appended to {}: {other:?}", spec.name),
        }
    }

    /// A batch as one commit of appends; the table is made.
    pub async fn append_rows(&self, spec: &TableSpec, rows: &RecordBatch) -> Result<()> {
        let table = self.lake.create(spec).await?;
        let mut writer = table.writer(WriterOptions::default())?;
        writer.write(rows).await?;
        match table.commit(Commit { adds: writer.finish().await?, ..Commit::default() }).await? {
            CommitOutcome::Committed { .. } => Ok(()),
            other => bail!("rows were not appended to {}: {other:?}", spec.name),
        }
    }

    /// Brings the silver tables of a pipeline up to date.
    pub async fn silver(&self, pipeline: &Pipeline) -> Result<()> {
        for spec in &pipeline.silver {
            tributary_silver_merge::run(&self.lake, spec, &Options::default())
                .await
                .with_context(|| format!("silver of {}", spec.table))?;
        }
        Ok(())
    }

    /// Our own reading, sorted.
    pub async fn rows(&self, table: &TableName) -> Result<Vec<String>> {
        sorted(self.table(table).await?.read(ReadOptions::default()).await?.try_collect().await?)
    }

    /// These columns of our own reading, sorted.
    pub async fn rows_of(&self, table: &TableName, columns: &[String]) -> Result<Vec<String>> {
        let options = ReadOptions { columns: Some(columns.to_vec()), ..ReadOptions::default() };
        sorted(self.table(table).await?.read(options).await?.try_collect().await?)
    }

    /// Our own reading of the changes of these versions, both inclusive, sorted.
    pub async fn changes(&self, table: &TableName, from: u64, to: u64) -> Result<Vec<String>> {
        sorted(self.table(table).await?.changes(from, to).await?.try_collect().await?)
    }
}

fn sorted(batches: Vec<RecordBatch>) -> Result<Vec<String>> {
    let mut lines = batches.iter().map(canonical::lines).collect::<Result<Vec<_>>>()?.concat();
    lines.sort();
    Ok(lines)
}

/// A pipeline of silver tables over a table of `bronze` that this program fills itself.
pub fn pipeline(source: &str, silver: &str) -> Result<Pipeline> {
    let feed = format!("{{ name: {source}_feed, table: bronze.{source}, keys: [id], source: {{ kafka: {{ topics: [{source}] }} }} }}");
    Pipeline::from_yaml("interop.yml", &format!("name: interop\nfeeds:\n  - {feed}\nsilver:\n{silver}")).with_context(|| silver.to_owned())
}
