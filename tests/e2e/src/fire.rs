//! Faults at random: what is killed, paused, ended and restarted, and when, follows from the seed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::layers::{Layers, Process, SESSION_TIMEOUT};
use crate::random::Random;
use crate::run::World;

/// How often what was survived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survived {
    /// Processes killed.
    pub kills: u32,
    /// Processes stopped for longer than the session timeout, and continued.
    pub pauses: u32,
    /// New assignments of the bronze processes' group, by the broker's own log.
    pub rebalances: u32,
    /// Restarts of the broker, half of them without warning.
    pub broker_restarts: u32,
    /// Drains that ran beside the continuous processes.
    pub overlaps: u32,
    /// Processes that ended by themselves with a code that says to try again.
    pub exits: u32,
}

/// A process that is stopped stays so for longer than the group waits for it.
const PAUSE: Duration = SESSION_TIMEOUT.saturating_add(Duration::from_secs(3));
/// How often somebody drains the topics beside the group.
const DRAIN_EVERY: Duration = Duration::from_secs(8);

/// What comes due later.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Later {
    Start(&'static str, String),
    Continue(String),
}

/// Running layers under fire.
#[derive(Debug)]
pub struct Fire<'a> {
    world: &'a World<'a>,
    layers: &'a Layers,
    random: Random,
    /// The processes that run.
    pub processes: Vec<Process>,
    paused: Vec<String>,
    due: Vec<(Instant, Later)>,
    drains: Vec<std::process::Child>,
    survived: Survived,
}

impl<'a> Fire<'a> {
    /// Three bronze processes on one group, one silver, one gold.
    pub fn light(world: &'a World<'a>, layers: &'a Layers, seed: u64) -> Result<Self> {
        let names = [("bronze", "bronze-0"), ("bronze", "bronze-1"), ("bronze", "bronze-2"), ("silver", "silver"), ("gold", "gold")];
        let processes = names.iter().map(|(layer, name)| layers.stream(layer, name)).collect::<Result<_>>()?;
        Ok(Self {
            world,
            layers,
            random: Random::new(seed ^ 0xf13e),
            processes,
            paused: Vec::new(),
            due: Vec::new(),
            drains: Vec::new(),
            survived: Survived::default(),
        })
    }

    /// One fault after the other for so long.
    pub fn burn(&mut self, length: Duration) -> Result<()> {
        let begin = Instant::now();
        let mut bounce = begin + length / 3;
        let mut next = begin + Duration::from_secs(10);
        let mut drain = next;
        while begin.elapsed() < length {
            self.keep_up()?;
            if Instant::now() >= bounce {
                self.bounce_broker()?;
                bounce = Instant::now() + length / 3;
            }
            if Instant::now() >= drain {
                self.drains.push(self.layers.drain_beside("bronze")?);
                drain = Instant::now() + DRAIN_EVERY;
            }
            if Instant::now() >= next {
                self.fault()?;
                next = Instant::now() + Duration::from_millis(1500 + self.random.below(2500));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn fault(&mut self) -> Result<()> {
        let running: Vec<usize> = (0..self.processes.len()).filter(|index| !self.paused.contains(&self.processes[*index].name)).collect();
        if running.is_empty() {
            return Ok(());
        }
        let victim = running[self.random.index(running.len())];
        let (layer, name) = (self.processes[victim].layer, self.processes[victim].name.clone());
        match self.random.below(100) {
            0..45 => {
                self.processes.remove(victim).kill()?;
                self.survived.kills += 1;
                self.start_later(layer, name);
            }
            45..85 => {
                self.processes[victim].signal("STOP")?;
                self.paused.push(name.clone());
                self.due.push((Instant::now() + PAUSE, Later::Continue(name)));
            }
            _ => {
                self.processes.remove(victim).terminate(Duration::from_secs(10))?;
                self.start_later(layer, name);
            }
        }
        Ok(())
    }

    fn start_later(&mut self, layer: &'static str, name: String) {
        let after = Duration::from_millis(self.random.below(3000));
        self.due.push((Instant::now() + after, Later::Start(layer, name)));
    }

    fn bounce_broker(&mut self) -> Result<()> {
        let verb = if self.survived.broker_restarts.is_multiple_of(2) { "stop" } else { "kill" };
        self.world.services.tell("kafka", &[verb])?;
        self.world.services.tell("kafka", &["start"])?;
        self.survived.broker_restarts += 1;
        Ok(())
    }

    /// Does what is due, and starts again what gave up with a code that says a retry may help.
    fn keep_up(&mut self) -> Result<()> {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) = self.due.drain(..).partition(|(at, _)| *at <= now);
        self.due = later;
        for (_, what) in due {
            match what {
                Later::Start(layer, name) => self.processes.push(self.layers.stream(layer, &name)?),
                Later::Continue(name) => self.go_on(&name)?,
            }
        }
        let mut index = 0;
        while index < self.processes.len() {
            let process = &mut self.processes[index];
            match process.ended()? {
                None => index += 1,
                Some(status) => {
                    let retry = matches!(status.code(), Some(1 | 4));
                    ensure!(retry, "{} ended by itself with {status}\n{}", process.name, process.last_words());
                    let process = self.processes.remove(index);
                    self.survived.exits += 1;
                    self.start_later(process.layer, process.name.clone());
                }
            }
        }
        let mut kept = Vec::new();
        for mut drain in self.drains.drain(..) {
            match drain.try_wait()? {
                None => kept.push(drain),
                Some(status) => {
                    let retry = matches!(status.code(), Some(0 | 1 | 4 | 75 | 99));
                    ensure!(retry, "a drain beside the group ended with {status}");
                    self.survived.overlaps += 1;
                }
            }
        }
        self.drains = kept;
        Ok(())
    }

    fn go_on(&mut self, name: &str) -> Result<()> {
        if let Some(process) = self.processes.iter().find(|process| process.name == name) {
            process.signal("CONT")?;
            self.survived.pauses += 1;
        }
        self.paused.retain(|paused| paused != name);
        Ok(())
    }

    /// No more faults: everything that was stopped goes on, everything that was killed comes back.
    pub fn quench(&mut self) -> Result<()> {
        while !self.due.is_empty() || !self.drains.is_empty() {
            self.keep_up()?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// What has been survived so far.
    pub fn survived(&self) -> Result<Survived> {
        Ok(Survived { rebalances: self.world.rebalances()?, ..self.survived })
    }
}
