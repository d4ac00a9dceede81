//! Commits a batch: what it takes out of the quarantine, what it puts there, and the rows with their positions.

use std::collections::BTreeMap;

use tributary_lake::{Commit, CommitOutcome, DataFile, Lake, NewFile, Operation, Progress, Reads, Table};
use tributary_specs::Column;

use super::{Ended, LaneBatch, Spoiled};
use crate::lane::{Lane, Race};
use crate::ledger::Writes;
use crate::{Error, Result, anew, events, quarantine};

impl LaneBatch {
    /// Commits: what superseded quarantine rows, then the rejects, then the rows with the positions.
    pub(crate) async fn commit(mut self, lane: &mut Lane, lake: &Lake) -> Result<Ended> {
        if let Some(spoiled) = self.spoiled.take() {
            self.abandon().await;
            return Ok(match spoiled {
                Spoiled::Widened => Ended::Widened,
                Spoiled::Lost(race) => Ended::Lost(race),
            });
        }
        if anew::must_wait(lane, &self) {
            self.abandon().await;
            lane.wait();
            return Ok(Ended::Nothing);
        }
        self.counts.check(&lane.feed.table)?;
        anew::ensure_no_file_is_lost(lane, &mut self)?;
        if let Some(race) = self.commit_superseded(lane).await? {
            return Ok(Ended::Lost(race));
        }
        if let Some(race) = self.commit_refused(lane).await? {
            return Ok(Ended::Lost(race));
        }
        self.commit_rows(lane, lake).await
    }

    async fn commit_superseded(&mut self, lane: &mut Lane) -> Result<Option<Race>> {
        let mut spots = std::mem::take(&mut self.completed);
        spots.extend(std::mem::take(&mut self.parked).superseded());
        let Some(table) = lane.quarantine.clone().filter(|_| !spots.is_empty()) else { return Ok(None) };
        let Some(outcome) = quarantine::supersede(&table, &spots, self.now_us).await? else { return Ok(None) };
        self.settle_quarantine(lane, &table, outcome).await
    }

    async fn commit_refused(&mut self, lane: &mut Lane) -> Result<Option<Race>> {
        let (Some(writer), Some(table)) = (self.refused.take(), lane.quarantine.clone()) else { return Ok(None) };
        let failed = |source| Error::lake(table.name(), "committing quarantine rows", source);
        let mut writes = lane.parked.writes(&self.entries);
        writes.progress.extend(self.positions.iter().filter_map(|position| {
            let version = position.quarantine.map_or(position.next, |parked| parked.max(position.next));
            (position.quarantine != Some(version)).then(|| Progress {
                app_id: position.app_id.clone(),
                expected: position.quarantine,
                version,
            })
        }));
        let adds = writer.finish().await.map_err(failed)?;
        let outcome = table.commit(append(adds, &writes, None, None)).await.map_err(failed)?;
        if let CommitOutcome::Committed { version } = outcome {
            events::quarantined(table.name(), version, self.refused_rows);
            lane.parked.apply(&self.entries, &writes);
            lane.tally.committed = true;
        }
        self.settle_quarantine(lane, &table, outcome).await
    }

    async fn settle_quarantine(&mut self, lane: &mut Lane, table: &Table, outcome: CommitOutcome) -> Result<Option<Race>> {
        if let Some(race) = race(table, outcome) {
            return Ok(Some(race));
        }
        let fresh = table.refresh().await.map_err(|source| Error::lake(table.name(), "opening", source))?;
        lane.quarantine = Some(fresh);
        Ok(None)
    }

    async fn commit_rows(mut self, lane: &mut Lane, lake: &Lake) -> Result<Ended> {
        if !lane.knows_columns() {
            // No record of this feed has shown a column yet: there is no table to hold the positions, so the files stay due.
            self.report(lane);
            return Ok(Ended::Nothing);
        }
        let recorded = anew::recorded(lane).await?;
        let writes = self.writes(lane, recorded);
        if lane.anew.is_none() && self.writer.is_none() && self.files.is_empty() && writes == Writes::default() {
            self.report(lane);
            return Ok(Ended::Nothing);
        }
        let table = lane.ensure_bronze(lake).await?;
        self.close().await?;
        let bytes_written: u64 = self.files.iter().map(|file| file.size).sum();
        let remarks = (!self.remarks.is_empty()).then(|| self.remarks.iter().cloned().collect::<Vec<_>>().join("; "));
        let failed = |source| Error::lake(table.name(), "committing rows", source);
        let mut commit = append(std::mem::take(&mut self.files), &writes, self.columns.take(), remarks);
        let mut replaced = None;
        if let Some(before) = &lane.anew {
            let files = table.files().await.map_err(failed)?;
            replaced = Some(files.iter().filter_map(DataFile::live_rows).sum());
            commit = anew::replacing(before, files, commit);
        }
        let outcome = table.commit(commit).await.map_err(failed)?;
        if let CommitOutcome::Committed { version } = outcome {
            events::committed(table.name(), version, &self.counts);
            lane.bronze = Some(table.refresh().await.map_err(|source| Error::lake(table.name(), "opening", source))?);
            lane.taken.apply(&self.entries, &writes);
            lane.anew = lane.anew.take().filter(|_| replaced.is_none());
            lane.tally.replaced = lane.tally.replaced.or(replaced);
            lane.attempts = 0;
            lane.tally.committed = true;
            lane.tally.commits += 1;
            lane.tally.version_to = Some(version);
            lane.tally.bytes_written += bytes_written;
            lane.tally.files_taken += self.entries.len() as u64;
            lane.tally.gaps.append(&mut self.gaps);
            self.report(lane);
            return Ok(Ended::Committed);
        }
        Ok(race(&table, outcome).map_or(Ended::Committed, Ended::Lost))
    }

    /// What the commit of the rows writes of positions; `recorded` are those of a table that is built anew.
    fn writes(&self, lane: &Lane, recorded: BTreeMap<String, i64>) -> Writes {
        if let Some(anew) = &lane.anew {
            return anew::writes(anew, recorded, &self.entries, &self.positions);
        }
        let mut writes = lane.taken.writes(&self.entries);
        writes.progress.extend(self.positions.iter().filter(|position| position.bronze != Some(position.next)).map(|position| Progress {
            app_id: position.app_id.clone(),
            expected: position.bronze,
            version: position.next,
        }));
        writes
    }

    fn report(&mut self, lane: &mut Lane) {
        lane.tally.remarks.append(&mut self.remarks);
        lane.tally.counts.add(std::mem::take(&mut self.counts));
        std::mem::take(&mut self.unrouted)
            .into_iter()
            .for_each(|(topic, records)| *lane.tally.unrouted.entry(topic).or_default() += records);
    }
}

fn append(adds: Vec<NewFile>, writes: &Writes, schema: Option<Vec<Column>>, user_metadata: Option<String>) -> Commit {
    Commit {
        operation: Operation::Write,
        adds,
        progress: writes.progress.clone(),
        domains: writes.domains.clone(),
        schema,
        reads: Reads::BlindAppend,
        // A source that went back behind the table was passed over by choice; files never go back.
        rewinds: writes.progress.iter().any(|progress| progress.expected.is_some_and(|expected| progress.version < expected)),
        user_metadata,
        ..Commit::default()
    }
}

/// The lost race that an outcome is.
pub(crate) fn race(table: &Table, outcome: CommitOutcome) -> Option<Race> {
    let table = table.name().clone();
    match outcome {
        CommitOutcome::Committed { .. } => None,
        CommitOutcome::Conflicted(conflict) => Some(Race::Conflicted { table, conflict }),
        CommitOutcome::Fenced { app_id, .. } => Some(Race::Fenced { table, app_id }),
    }
}
