//! One attempt at an append-only table: every upsert is a row of its own.

use std::collections::BTreeMap;

use tributary_lake::arrow::array::UInt32Array;
use tributary_lake::{Commit, DataWriter, Operation, Reads, Table, WriterOptions};

use crate::error::{Error, Result};
use crate::events::Kind;
use crate::intake::Intake;
use crate::plan::Counts;
use crate::report::Tally;
use crate::run::{Attempt, Ended};
use crate::writes::Changed;

/// Reads and commits; see [`crate::run::run`].
pub(crate) async fn append_rows(attempt: &Attempt<'_>, intake: &Intake<'_>) -> Result<Ended> {
    let name = &attempt.spec.table;
    let write = |source| Error::lake("write to", name, source);
    let mut open: Option<(Table, DataWriter)> = None;
    let mut rows = 0_u64;
    let mut reading = intake.read();
    while let Some(judged) = reading.next().await? {
        let upserts: UInt32Array =
            (0..judged.events.len() as u32).filter(|row| judged.events.kinds[*row as usize] == Kind::Upsert).collect();
        let events = judged.events.take(&upserts).map_err(|error| Error::kernel(name, error))?;
        let (_, writer) = match &mut open {
            Some(open) => open,
            None => {
                let table = attempt.open_or_create(intake.target).await?;
                let columns = intake.target.grows.then(|| intake.target.columns.clone());
                let options = WriterOptions { columns, layout: intake.target.lies.clone(), ..WriterOptions::default() };
                let writer = table.writer(options).map_err(write)?;
                open.insert((table, writer))
            }
        };
        if events.len() > 0 {
            writer.write(&events.rows).await.map_err(write)?;
            rows += events.len() as u64;
        }
    }
    let findings = reading.finish()?;
    if findings.rows == 0 && !attempt.replaces {
        return attempt.no_rows(intake.target).await;
    }
    if let Some(lost) = attempt.set_aside(intake, &findings).await? {
        return Ok(Ended::Lost(lost));
    }
    let (table, adds) = match open {
        Some((table, writer)) => (table, writer.finish().await.map_err(write)?),
        None => (attempt.open_or_create(intake.target).await?, Vec::new()),
    };
    let bytes = adds.iter().map(|file| file.size).sum();
    let commit = Commit {
        operation: Operation::Write,
        adds,
        progress: attempt.source_progress(intake.source).into_iter().chain(findings.late.progress.clone()).collect(),
        schema: intake.target.grows.then(|| intake.target.columns.clone()),
        reads: Reads::BlindAppend,
        ..Commit::default()
    };
    let counts = Counts { applied: rows, ..Counts::default() };
    let changed = Changed { inserted: rows, ..Changed::default() };
    attempt
        .commit(&table, intake, commit, Tally { findings, counts, changed, bytes, unknown: BTreeMap::new(), slices: 1, mode: "append" })
        .await
}
