//! The three layers under fire, with a broker that is bounced and drains beside the group.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::crew::{Crew, Faults};
use crate::layers::{Layers, Process, SESSION_TIMEOUT};
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

/// Running layers under fire.
pub struct Fire<'a> {
    world: &'a World<'a>,
    layers: &'a Layers,
    /// The continuous processes.
    pub crew: Crew<'a>,
    drains: Vec<Process>,
    survived: Survived,
}

impl<'a> Fire<'a> {
    /// Three bronze processes on one group, one silver, one gold.
    pub fn light(world: &'a World<'a>, layers: &'a Layers, seed: u64) -> Result<Self> {
        let faults = Faults { kills: 45, pauses: 40, pause: PAUSE..PAUSE };
        let mut crew = Crew::new(seed, faults, |layer, name| layers.stream(layer, name));
        for (layer, name) in
            [("bronze", "bronze-0"), ("bronze", "bronze-1"), ("bronze", "bronze-2"), ("silver", "silver"), ("gold", "gold")]
        {
            crew.begin(layer, name)?;
        }
        Ok(Self { world, layers, crew, drains: Vec::new(), survived: Survived::default() })
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
                self.drains.push(self.layers.drain_beside("bronze", "beside-bronze", &[])?);
                drain = Instant::now() + DRAIN_EVERY;
            }
            if Instant::now() >= next {
                self.crew.fault()?;
                next = Instant::now() + self.crew.breath();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn bounce_broker(&mut self) -> Result<()> {
        let verb = if self.survived.broker_restarts.is_multiple_of(2) { "stop" } else { "kill" };
        self.world.services.tell("kafka", &[verb])?;
        self.world.services.tell("kafka", &["start"])?;
        self.survived.broker_restarts += 1;
        Ok(())
    }

    /// Starts again what gave up with a code that says a retry may help.
    fn keep_up(&mut self) -> Result<()> {
        for (process, status) in self.crew.keep_up()? {
            let retry = matches!(status.code(), Some(1 | 4));
            ensure!(retry, "{} ended by itself with {status}\n{}", process.name, process.last_words());
            self.survived.exits += 1;
            self.crew.begin_later(process.role, &process.name);
        }
        let mut kept = Vec::new();
        for mut drain in self.drains.drain(..) {
            match drain.ended()? {
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

    /// No more faults: everything that was stopped goes on, everything that was killed comes back.
    pub fn quench(&mut self) -> Result<()> {
        while !self.crew.is_complete() || !self.drains.is_empty() {
            self.keep_up()?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// What has been survived so far.
    pub fn survived(&self) -> Result<Survived> {
        let Crew { kills, pauses, .. } = self.crew;
        Ok(Survived { kills, pauses, rebalances: self.world.rebalances()?, ..self.survived })
    }
}
