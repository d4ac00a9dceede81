//! Processes that are killed, stopped for a while, ended and started again: which, how and when follows from the seed.

use std::ops::Range;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::layers::Process;
use crate::random::Random;

/// What happens to processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// Of a hundred faults, those that kill without a word.
    pub kills: u64,
    /// Of a hundred faults, those that stop a process for a while. The others ask it to end, which it must do well.
    pub pauses: u64,
    /// For how long one stays stopped.
    pub pause: Range<Duration>,
}

/// What comes due later.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Later {
    Start(&'static str, String),
    Continue(String),
}

/// Starts a process of a role under a name.
type Start<'a> = Box<dyn Fn(&'static str, &str) -> Result<Process> + 'a>;

/// Processes under fire.
pub struct Crew<'a> {
    start: Start<'a>,
    faults: Faults,
    random: Random,
    /// Those that run.
    pub processes: Vec<Process>,
    paused: Vec<String>,
    due: Vec<(Instant, Later)>,
    /// Processes killed so far.
    pub kills: u32,
    /// Processes stopped and continued so far.
    pub pauses: u32,
}

/// A process that is to come back does so within this time.
const BACK_WITHIN_MS: u64 = 3000;
/// A process that is asked to end does so within this time.
const END_WITHIN: Duration = Duration::from_secs(10);

impl<'a> Crew<'a> {
    /// Nobody yet.
    pub fn new(seed: u64, faults: Faults, start: impl Fn(&'static str, &str) -> Result<Process> + 'a) -> Self {
        Self {
            start: Box::new(start),
            faults,
            random: Random::new(seed ^ 0xf13e),
            processes: Vec::new(),
            paused: Vec::new(),
            due: Vec::new(),
            kills: 0,
            pauses: 0,
        }
    }

    /// Starts a process.
    pub fn begin(&mut self, role: &'static str, name: &str) -> Result<()> {
        // under which it comes back, too
        let mut process = (self.start)(role, name)?;
        process.role = role;
        self.processes.push(process);
        Ok(())
    }

    /// Starts a process within some seconds.
    pub fn begin_later(&mut self, role: &'static str, name: &str) {
        let after = Duration::from_millis(self.random.below(BACK_WITHIN_MS));
        self.due.push((Instant::now() + after, Later::Start(role, name.to_owned())));
    }

    /// How long nothing happens before the next fault.
    pub fn breath(&mut self) -> Duration {
        Duration::from_millis(1500 + self.random.below(2500))
    }

    /// Something happens to one of the processes that are not stopped.
    pub fn fault(&mut self) -> Result<()> {
        let running: Vec<usize> = (0..self.processes.len()).filter(|index| !self.paused.contains(&self.processes[*index].name)).collect();
        if running.is_empty() {
            return Ok(());
        }
        let victim = running[self.random.index(running.len())];
        let (role, name) = (self.processes[victim].role, self.processes[victim].name.clone());
        let what = self.random.below(100);
        if what < self.faults.kills {
            self.processes.remove(victim).kill()?;
            self.kills += 1;
            self.begin_later(role, &name);
        } else if what < self.faults.kills + self.faults.pauses {
            self.processes[victim].signal("STOP")?;
            let Range { start, end } = self.faults.pause.clone();
            let longer = self.random.below(u64::try_from((end - start).as_millis())?.max(1));
            self.due.push((Instant::now() + start + Duration::from_millis(longer), Later::Continue(name.clone())));
            self.paused.push(name);
        } else {
            self.processes.remove(victim).terminate(END_WITHIN)?;
            self.begin_later(role, &name);
        }
        Ok(())
    }

    /// Does what is due; gives the processes that have ended by themselves since the last time, and how.
    pub fn keep_up(&mut self) -> Result<Vec<(Process, ExitStatus)>> {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) = self.due.drain(..).partition(|(at, _)| *at <= now);
        self.due = later;
        for (_, what) in due {
            match what {
                Later::Start(role, name) => self.begin(role, &name)?,
                Later::Continue(name) => self.go_on(&name)?,
            }
        }
        let mut ended = Vec::new();
        let mut index = 0;
        while index < self.processes.len() {
            match self.processes[index].ended()? {
                None => index += 1,
                Some(status) => ended.push((self.processes.remove(index), status)),
            }
        }
        Ok(ended)
    }

    /// Whether nobody is stopped and nobody is missing.
    pub fn is_complete(&self) -> bool {
        self.due.is_empty()
    }

    fn go_on(&mut self, name: &str) -> Result<()> {
        if let Some(process) = self.processes.iter().find(|process| process.name == name) {
            process.signal("CONT")?;
            self.pauses += 1;
        }
        self.paused.retain(|paused| paused != name);
        Ok(())
    }
}
