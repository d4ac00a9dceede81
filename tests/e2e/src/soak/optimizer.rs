//! Somebody who writes files anew without changing a row: small ones as one, and those with deletion vectors without.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use tributary_lake::{Commit, CommitOutcome, Operation, Reads, Table, WriterOptions};

use super::journal::Journal;
use super::tables::{BRONZE, SILVER, lake, table};
use crate::random::Random;

/// An entry of the optimizer's journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// So many files became fewer.
    Optimized {
        /// Files read.
        files: usize,
        /// Of those, with deletion vectors.
        vectors: usize,
    },
    /// Another writer was first.
    Conflicted,
}

/// At most so many files become one.
const FILES_MAX: u64 = 12;

/// Optimizes until it is killed.
pub async fn run(warehouse: &Path, journal: &Journal) -> Result<()> {
    let mut random = Random::new(journal.entries::<Entry>().len() as u64 ^ 0x0971);
    let silver = SILVER.iter().map(|silver| silver.name.to_owned());
    let state = SILVER.iter().map(|silver| silver.name.replacen("silver", "_state", 1));
    let names: Vec<String> = std::iter::once(BRONZE.to_owned()).chain(silver).chain(state).collect();
    loop {
        // most often where the others are at work
        let name = if random.chance(60) { SILVER[random.index(SILVER.len())].name } else { &names[random.index(names.len())] };
        if let Some(table) = table(&lake(warehouse)?, name).await?
            && let Some(entry) = optimize(&table, &mut random).await.with_context(|| format!("optimizing {name}"))?
        {
            journal.add(&entry)?;
        }
        tokio::time::sleep(Duration::from_millis(random.below(200))).await;
    }
}

async fn optimize(table: &Table, random: &mut Random) -> Result<Option<Entry>> {
    let mut files = table.files().await?;
    for _ in 0..files.len().saturating_sub(2 + random.index(FILES_MAX as usize)) {
        files.swap_remove(random.index(files.len()));
    }
    let vectors = files.iter().filter(|file| file.deletion_vector.is_some()).count();
    if files.len() < 2 && vectors == 0 {
        return Ok(None);
    }
    let mut writer = table.writer(WriterOptions::default())?;
    for file in &files {
        let mut rows = table.read_file(file, None).await?;
        while let Some(batch) = rows.try_next().await? {
            writer.write(&batch).await?;
        }
    }
    let read = files.len();
    let commit =
        Commit { operation: Operation::Optimize, adds: writer.finish().await?, removes: files, reads: Reads::Files, ..Commit::default() };
    Ok(Some(match table.commit(commit).await? {
        CommitOutcome::Committed { .. } => Entry::Optimized { files: read, vectors },
        CommitOutcome::Conflicted(_) | CommitOutcome::Fenced { .. } => Entry::Conflicted,
    }))
}
