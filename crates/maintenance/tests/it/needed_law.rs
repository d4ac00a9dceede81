//! M2, the law of what is deleted: after any history, with readers anywhere in it and writers at work, everything that somebody needs is
//! still there. The control forgets the readers, and must be found out.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use tributary_lake::{Commit, Lake, NewFile, Table, WriterOptions};
use tributary_maintenance::{CleanLogOptions, Options, Readers, Task, VacuumMode, VacuumOptions, clean_log, vacuum};
use tributary_testkit::{Control, Controls, Law, Tried};

use crate::house::{House, changes_after, reader, rows_at, update};
use crate::world::{append, committed, done, mark, name, open, rows, spec};

const LONGEST_WRITE_HOURS: i64 = 24;

#[derive(Debug, Clone, Copy)]
enum Step {
    Append,
    Mark,
    Update,
    Optimize,
    /// One of three readers takes up everything.
    Read(u8),
    /// A file is written and not committed yet.
    BeginWrite,
    /// What was written is committed.
    EndWrite,
    Hours(u16),
    Vacuum {
        lite: bool,
        retain_hours: u16,
    },
    CleanLog {
        retain_hours: u16,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Append),
        2 => Just(Step::Mark),
        3 => Just(Step::Update),
        1 => Just(Step::Optimize),
        3 => (0..3_u8).prop_map(Step::Read),
        1 => Just(Step::BeginWrite),
        1 => Just(Step::EndWrite),
        2 => (1..400_u16).prop_map(Step::Hours),
        3 => (any::<bool>(), 0..400_u16).prop_map(|(lite, retain_hours)| Step::Vacuum { lite, retain_hours }),
        2 => (0..400_u16).prop_map(|retain_hours| Step::CleanLog { retain_hours }),
    ]
}

/// A version as it was made.
struct Made {
    rows: Vec<String>,
    changes: Vec<String>,
    at: DateTime<Utc>,
}

/// What should be there.
struct World {
    house: House,
    versions: BTreeMap<u64, Made>,
    readers: BTreeMap<u8, u64>,
    writing: Option<(Table, Vec<NewFile>, DateTime<Utc>)>,
    /// Versions from here on are within every retention that was asked for.
    retained_from: u64,
    next_id: i64,
}

impl World {
    async fn new() -> anyhow::Result<Self> {
        let house = House::new();
        house.lake().create(&spec(&[], &[])).await?;
        let mut world = Self { house, versions: BTreeMap::new(), readers: BTreeMap::new(), writing: None, retained_from: 0, next_id: 0 };
        world.note().await?;
        world.step(Step::Append, Controls::none()).await?;
        Ok(world)
    }

    fn now(&self) -> DateTime<Utc> {
        self.house.lake().clock().now()
    }

    /// What the versions made since are.
    async fn note(&mut self) -> anyhow::Result<()> {
        let lake = self.house.lake();
        let latest = open(&lake).await?.version();
        let known = self.versions.last_key_value().map_or(0, |(version, _)| version + 1);
        for version in known..=latest {
            let changes = if version == 0 { Vec::new() } else { changes_of(&lake, version).await? };
            let made = Made { rows: rows_at(&lake, version).await?, changes, at: self.now() };
            self.versions.insert(version, made);
        }
        Ok(())
    }

    async fn step(&mut self, step: Step, controls: Controls) -> anyhow::Result<()> {
        self.house.clock.advance(TimeDelta::minutes(1));
        let lake = self.house.lake_over(self.house.store.clone(), controls);
        match step {
            Step::Append => {
                // More rows than a deletion vector in the log marks.
                append(&lake, self.next_id..self.next_id + 200).await?;
                self.next_id += 200;
            }
            Step::Mark => {
                let mut files = open(&lake).await?.files().await?;
                files.sort_by(|one, other| one.stats.columns["id"].min.partial_cmp(&other.stats.columns["id"].min).unwrap());
                let rows = files[0].stats.rows.unwrap_or_default();
                if files.iter().all(|file| file.deletion_vector.is_none()) && rows > 10 {
                    mark(&lake, 0, &(0..rows / 2 - 1).map(|at| at * 2).collect::<Vec<_>>()).await?;
                }
            }
            Step::Update => update(&lake).await?,
            Step::Optimize => {
                let options = Options { yield_to: Duration::ZERO, ..Options::default() };
                done(&lake, &Task::Optimize, &options).await?;
            }
            Step::Read(number) => {
                let version = open(&lake).await?.version();
                reader(&lake, &format!("r{number}"), version).await?;
                self.readers.insert(number, version);
            }
            Step::BeginWrite => {
                let table = open(&lake).await?;
                let mut writer = table.writer(WriterOptions::default())?;
                writer.write(&rows(self.next_id..self.next_id + 3)).await?;
                self.next_id += 3;
                self.writing = Some((table, writer.finish().await?, self.now()));
            }
            Step::EndWrite => {
                if let Some((table, adds, began)) = self.writing.take()
                    && self.now() - began < TimeDelta::hours(LONGEST_WRITE_HOURS)
                {
                    committed(&table, Commit { adds, ..Commit::default() }).await?;
                }
            }
            Step::Hours(hours) => self.house.hours_pass(hours.into()),
            Step::Vacuum { lite, retain_hours } => {
                let options = VacuumOptions {
                    mode: if lite { VacuumMode::Lite } else { VacuumMode::Full },
                    retain: Some(hours(retain_hours)),
                    accept_unsafe_retention: true,
                    longest_write: hours(24),
                    ..VacuumOptions::default()
                };
                vacuum(&lake, &Readers::of(&lake).await?, &name(), &options).await?;
                self.retain(retain_hours);
            }
            Step::CleanLog { retain_hours } => {
                let options = CleanLogOptions {
                    retain: Some(hours(retain_hours)),
                    accept_unsafe_retention: true,
                    longest_write: hours(24),
                    ..CleanLogOptions::default()
                };
                clean_log(&lake, &Readers::of(&lake).await?, &name(), &options).await?;
                self.retain(retain_hours);
            }
        }
        self.note().await
    }

    fn retain(&mut self, retain_hours: u16) {
        let horizon = self.now() - TimeDelta::hours(retain_hours.into());
        let current = self.versions.iter().rev().find(|(_, made)| made.at <= horizon).map_or(0, |(version, _)| *version);
        self.retained_from = self.retained_from.max(current);
    }

    /// That everything is there that somebody needs.
    async fn check(&self) -> anyhow::Result<()> {
        let lake = self.house.lake();
        for (number, position) in &self.readers {
            anyhow::ensure!(
                rows_at(&lake, *position).await? == self.versions[position].rows,
                "reader {number} finds other rows at {position}"
            );
            let mut expected: Vec<String> = self.versions.range(position + 1..).flat_map(|(_, made)| made.changes.clone()).collect();
            expected.sort_unstable();
            anyhow::ensure!(changes_after(&lake, *position).await? == expected, "reader {number} finds other changes after {position}");
        }
        for (version, made) in self.versions.range(self.retained_from..) {
            anyhow::ensure!(rows_at(&lake, *version).await? == made.rows, "version {version} has other rows");
        }
        Ok(())
    }
}

async fn changes_of(lake: &Lake, version: u64) -> anyhow::Result<Vec<String>> {
    use futures::TryStreamExt;
    let batches: Vec<_> = open(lake).await?.changes(version, version).await?.try_collect().await?;
    Ok(crate::world::texts(&batches))
}

fn hours(hours: u16) -> Duration {
    Duration::from_secs(u64::from(hours) * 3600)
}

async fn everything_needed_is_there(steps: &[Step], controls: Controls, tried: &mut Tried) -> anyhow::Result<()> {
    let mut world = World::new().await?;
    for step in steps {
        world.step(*step, controls).await?;
        if matches!(step, Step::Vacuum { .. } | Step::CleanLog { .. }) {
            tried.add("deletions", 1);
            world.check().await?;
        }
    }
    tried.add("versions", world.versions.len());
    world.step(Step::EndWrite, controls).await?;
    world.check().await
}

fn tried(steps: &[Step], controls: Controls, tried: &mut Tried) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let outcome = runtime.block_on(everything_needed_is_there(steps, controls, tried));
    outcome.map_err(|error| TestCaseError::fail(format!("{error:#}")))
}

#[test]
fn m2_nothing_goes_that_a_version_a_reader_or_a_writer_needs() {
    let steps = prop::collection::vec(step(), 4..16);
    let counted =
        Law::new("m2").within(Duration::from_secs(20)).at_least(8).holds(&steps, |steps, counted| tried(&steps, Controls::none(), counted));
    assert!(counted.count("deletions") > 0);
}

/// The control of the law.
#[test]
fn a_forgotten_reader_is_found_out() {
    let steps = prop::collection::vec(step(), 8..16);
    let controls = Controls::none().with(Control::ReaderForgotten);
    let failure =
        Law::new("m2_control").within(Duration::from_secs(120)).is_broken(&steps, |steps, counted| tried(&steps, controls, counted));
    assert!(
        failure.contains("reader") || failure.contains("r0") || failure.contains("is no longer") || failure.contains("version"),
        "{failure}"
    );
}
