//! Several writers of the same tables, for as long as one likes, on a local lake without any service.
//!
//! ```text
//! changes ──▶ bronze ──▶ silver, silver, silver (continuous) ──▶ five tables ◀── appender (ours), appender (delta-rs)
//!  (seed)                                                            ▲
//!                                                                    └── optimizer, of bronze and `_state` too
//! ```
//!
//! Each is a process of its own, killed and stopped at random. What must hold in the end: every change counts once, every row
//! that others appended is there once, a change feed comes to its table, no run failed but for giving way to another, and none
//! tried longer than it may.

pub mod appender;
pub mod changes;
pub mod check;
pub mod journal;
pub mod optimizer;
pub mod tables;
pub mod tally;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::crew::{Crew, Faults};
use crate::layers::{Layers, Process};
use appender::Appended;
use changes::Changes;
use check::Found;
use journal::Journal;
use tally::Tally;

/// The processes: role and name. `soak` is this program again, which then does what its name says.
const CREW: [(&str, &str); 7] = [
    ("bronze", "bronze"),
    ("silver", "silver-0"),
    ("silver", "silver-1"),
    ("stream", "silver-2"),
    ("soak", "appender"),
    ("soak", "foreign-appender"),
    ("soak", "optimizer"),
];
/// Faults of any process; stopped ones may sleep through several runs of others.
const FAULTS: Faults = Faults { kills: 55, pauses: 45, pause: Duration::from_millis(300)..Duration::from_secs(6) };
/// How often a file of changes is dropped.
const DROP_EVERY: Duration = Duration::from_millis(500);
/// How soon a continuous process ends when it is asked to.
const END_WITHIN: Duration = Duration::from_secs(20);
/// How long the last runs may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What happened.
#[derive(Debug)]
pub struct Soaked {
    /// Different changes made.
    pub changes: i64,
    /// What runs of silver said.
    pub tally: Tally,
    /// Optimizations, those of files with deletion vectors among them, and those that lost a race.
    pub optimized: [usize; 3],
    /// Rows appended for certain, through our `lake` and through delta-rs.
    pub appended: [usize; 2],
    /// Processes killed.
    pub kills: u32,
    /// Processes stopped and continued.
    pub pauses: u32,
    /// The comparison.
    pub found: Found,
}

/// One lake and who writes to it.
#[derive(Debug)]
pub struct Soak {
    layers: Layers,
    folder: PathBuf,
    changes: Changes,
    tally: Tally,
}

impl Soak {
    /// A lake in an empty folder. `without`: the rule that silver breaks.
    pub fn new(folder: &Path, seed: u64, without: Option<&str>) -> Result<Self> {
        std::fs::create_dir_all(folder.join("raw/changes")).context("making the folder")?;
        let pipeline = folder.join("pipeline.yml");
        std::fs::write(&pipeline, tables::PIPELINE).context("writing the pipeline")?;
        let mut layers = Layers::new(folder, "lake", &pipeline, None)?;
        let data = folder.join("raw").display().to_string();
        layers.flags.insert("bronze", vec!["--base-data-path".to_owned(), data]);
        if let Some(rule) = without {
            layers.without("silver", rule);
        }
        Ok(Self { layers, folder: folder.to_owned(), changes: Changes::new(seed), tally: Tally::default() })
    }

    /// Lets them all write for so long, lets them finish, compares.
    pub async fn run(mut self, length: Duration, seed: u64) -> Result<Soaked> {
        appender::create_foreign(&self.layers.warehouse).await?;
        let (layers, folder) = (self.layers.clone(), self.folder.clone());
        let mut crew = Crew::new(seed, FAULTS, move |role, name| start(&layers, &folder, role, name));
        for (role, name) in CREW {
            crew.begin(role, name)?;
        }
        let begin = Instant::now();
        let (mut drop, mut fault) = (begin, begin + Duration::from_secs(5));
        while begin.elapsed() < length || !crew.is_complete() {
            self.keep_up(&mut crew)?;
            if Instant::now() >= drop && begin.elapsed() < length {
                self.changes.drop_file(&self.folder.join("raw/changes"))?;
                drop = Instant::now() + DROP_EVERY;
            }
            if Instant::now() >= fault && begin.elapsed() < length {
                crew.fault()?;
                fault = Instant::now() + crew.breath();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.finish(&mut crew)?;
        let journal = |name| Journal::of(&self.folder, name);
        let appends = Appended::of(["appender", "foreign-appender"].into_iter().flat_map(|name| journal(name).entries()));
        let entries: Vec<optimizer::Entry> = journal("optimizer").entries();
        let done = entries.iter().filter_map(|entry| match entry {
            optimizer::Entry::Optimized { vectors, .. } => Some(*vectors > 0),
            optimizer::Entry::Conflicted => None,
        });
        let done: Vec<bool> = done.collect();
        let optimized = [done.len(), done.iter().filter(|vectors| **vectors).count(), entries.len() - done.len()];
        let drained = begin.elapsed();
        let found = check::check(&self.layers.warehouse, &self.changes.delivered, &appends).await?;
        println!("drained after {} s, compared after {} s", drained.as_secs(), begin.elapsed().as_secs());
        Ok(Soaked {
            changes: self.changes.made(),
            tally: self.tally,
            optimized,
            appended: [false, true].map(|foreign| {
                let tables = tables::SILVER.iter().filter(|silver| silver.foreign == foreign);
                tables.filter_map(|silver| appends.certain.get(silver.name)).map(Vec::len).sum()
            }),
            kills: crew.kills,
            pauses: crew.pauses,
            found,
        })
    }

    /// A run of silver follows on the last; whoever else ends by itself has failed.
    fn keep_up(&mut self, crew: &mut Crew<'_>) -> Result<()> {
        for (process, status) in crew.keep_up()? {
            if process.role == "silver" {
                self.ended(&process.name, status);
            } else {
                self.tally.failed.push(format!("{} ended by itself with {status}\n{}", process.name, process.last_words()));
            }
            crew.begin(process.role, &process.name)?;
        }
        Ok(())
    }

    fn ended(&mut self, name: &str, status: ExitStatus) {
        self.tally.add(name, status, &report(&self.folder, name));
        let _ = std::fs::remove_file(report(&self.folder, name));
    }

    /// Ends everybody, and takes what is left.
    fn finish(&mut self, crew: &mut Crew<'_>) -> Result<()> {
        self.changes.drop_the_rest(&self.folder.join("raw/changes"))?;
        // those that only get in the way first
        let (others, layers): (Vec<Process>, Vec<Process>) = crew.processes.drain(..).partition(|process| process.role == "soak");
        drop(others);
        for mut process in layers {
            match process.role {
                "bronze" | "stream" => {
                    if let Err(error) = process.terminate(END_WITHIN) {
                        self.tally.failed.push(format!("{error:#}"));
                    }
                }
                _ => {
                    let status = process.wait(PATIENCE)?;
                    self.ended(&process.name, status);
                }
            }
        }
        for layer in ["bronze", "silver"] {
            let begin = Instant::now();
            loop {
                let (code, said) = self.layers.drain(layer)?;
                match code {
                    // the program that breaks a rule knows no code for nothing new
                    0 if said["datasets"].as_array().is_some_and(|all| all.iter().any(|dataset| dataset["status"] == "committed")) => {}
                    0 | 99 => break,
                    other => {
                        self.tally.failed.push(format!("the last run of {layer} ended with {other}: {}", said["datasets"]));
                        break;
                    }
                }
                ensure!(begin.elapsed() < PATIENCE, "{layer} still finds something new after {} s", PATIENCE.as_secs());
            }
        }
        Ok(())
    }
}

fn report(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-report.json"))
}

fn start(layers: &Layers, folder: &Path, role: &'static str, name: &str) -> Result<Process> {
    match role {
        "bronze" => layers.stream("bronze", name),
        "stream" => layers.stream("silver", name),
        "silver" => {
            let report = report(folder, name).display().to_string();
            layers.drain_beside("silver", name, &["--report", &report])
        }
        _ => {
            let place = |path: &Path| path.display().to_string();
            layers.other("soak", name, &[name.to_owned(), place(&layers.warehouse), place(folder)])
        }
    }
}
