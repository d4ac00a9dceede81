//! How a run of a job goes: which tasks start, end, are tried again or left out, and what the job comes to. Pure: it acts on
//! nothing and asks no clock.
//!
//! ```text
//!            ┌────────── tried again ──────────┐
//!            ▼                                 │
//!  waiting ─▶ ready ─▶ running ─▶ ended: success, failed, timed out, cancelled
//!     │
//!     └─▶ ended without having run: excluded, upstream failed, upstream cancelled, disabled
//! ```
//!
//! What stays true:
//! - A task starts only after every task it depends on has ended, and only if its `run_if` is met.
//! - A task that is excluded counts as neither success nor failure for those that depend on it.
//! - Every run ends: each step of a run ends a task or uses up one of its attempts.

mod condition;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::job::{Job, RunIf, Task};

pub use condition::{compare, inputs};

/// How an attempt of a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it should; a condition task says `true` or `false`.
    Success(Option<bool>),
    /// It failed.
    Failed,
    /// It took longer than it may.
    TimedOut,
    /// It was cancelled.
    Canceled,
}

/// How a task ended, in the platform's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum End {
    /// It did what it should.
    Success,
    /// Its last attempt failed.
    Failed,
    /// Its last attempt took longer than it may.
    TimedOut,
    /// It was cancelled.
    Canceled,
    /// Its `run_if` was not met, or a branch was not taken.
    Excluded,
    /// It did not run because something before it failed.
    UpstreamFailed,
    /// It did not run because something before it was cancelled.
    UpstreamCanceled,
    /// It is disabled.
    Disabled,
}

impl End {
    /// Whether it counts as a failure for what depends on it and for the job.
    const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::UpstreamFailed)
    }

    const fn is_canceled(self) -> bool {
        matches!(self, Self::Canceled | Self::UpstreamCanceled)
    }
}

/// What a job comes to, in the platform's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobEnd {
    /// Every task that nothing depends on succeeded or was excluded, and nothing failed.
    Success,
    /// As success, but a task inside failed and another took care of it.
    SuccessWithFailures,
    /// A task that nothing depends on failed.
    Failed,
    /// A task that nothing depends on was cancelled, and none failed.
    Canceled,
}

/// What may be done about a run that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It starts.
    Run,
    /// It waits for another to end.
    Queue,
    /// It is skipped; the platform's code is `MAX_CONCURRENT_RUNS_EXCEEDED`.
    Skip,
}

/// Whether a run may start beside those that are active.
pub fn admit(job: &Job, active_runs: u64) -> Admission {
    match job.max_concurrent_runs {
        0 => Admission::Skip,
        most if active_runs < most => Admission::Run,
        _ if job.queue => Admission::Queue,
        _ => Admission::Skip,
    }
}

/// An attempt that should start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The task's place in the job.
    pub task: usize,
    /// The attempt, from 0.
    pub attempt: u64,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// Its next attempt may start at this instant, in milliseconds.
    Ready {
        attempt: u64,
        at: u64,
    },
    Running {
        attempt: u64,
        started: u64,
    },
    Ended {
        end: End,
        outcome: Option<bool>,
    },
}

/// One run of a job. Instants are milliseconds from any beginning, and never go back.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    tasks: &'a [Task],
    /// For each task the places of those it depends on, with the outcome that is waited for.
    depends_on: Vec<Vec<(usize, Option<bool>)>>,
    states: Vec<State>,
}

impl<'a> Run<'a> {
    /// Of a job whose tasks are sound: each dependency is a task of the job, and none wait for each other in a circle.
    pub fn new(job: &'a Job) -> Self {
        let place: BTreeMap<&str, usize> = job.tasks.iter().enumerate().map(|(at, task)| (task.key.as_str(), at)).collect();
        let of = |task: &Task| {
            let dependencies = task.depends_on.iter();
            let outcome = |word: &String| word == "true";
            dependencies.filter_map(|on| Some((*place.get(on.task.as_str())?, on.outcome.as_ref().map(outcome)))).collect()
        };
        let mut run =
            Self { tasks: &job.tasks, depends_on: job.tasks.iter().map(of).collect(), states: vec![State::Waiting; job.tasks.len()] };
        run.settle(0);
        run
    }

    /// Attempts that may start at this instant. Each is given until [`Run::started`] is called for it.
    pub fn ready(&self, now: u64) -> Vec<Start> {
        let ready = |(task, state): (usize, &State)| match state {
            State::Ready { attempt, at } if *at <= now => Some(Start { task, attempt: *attempt }),
            _ => None,
        };
        self.states.iter().enumerate().filter_map(ready).collect()
    }

    /// The next instant at which an attempt becomes ready by waiting alone.
    pub fn next_ready_at(&self) -> Option<u64> {
        let at = |state: &State| if let State::Ready { at, .. } = state { Some(*at) } else { None };
        self.states.iter().filter_map(at).min()
    }

    /// Takes down that an attempt started.
    pub fn started(&mut self, start: Start, now: u64) {
        if let Some(state @ State::Ready { .. }) = self.states.get_mut(start.task) {
            *state = State::Running { attempt: start.attempt, started: now };
        }
    }

    /// Takes down how the attempt of a task ended. It is tried again where it may be; else what depends on it goes on.
    pub fn ended(&mut self, task: usize, outcome: &Outcome, now: u64) {
        let Some(State::Running { attempt, started }) = self.states.get(task).copied() else { return };
        let retries = self.tasks[task].retries;
        let may_retry = match outcome {
            Outcome::Failed => true,
            Outcome::TimedOut => retries.on_timeout,
            Outcome::Success(_) | Outcome::Canceled => false,
        };
        self.states[task] = if may_retry && retries.max.is_none_or(|most| attempt < most) {
            State::Ready { attempt: attempt + 1, at: now.max(started.saturating_add(retries.min_interval_millis)) }
        } else {
            let (end, outcome) = match outcome {
                Outcome::Success(outcome) => (End::Success, *outcome),
                Outcome::Failed => (End::Failed, None),
                Outcome::TimedOut => (End::TimedOut, None),
                Outcome::Canceled => (End::Canceled, None),
            };
            State::Ended { end, outcome }
        };
        self.settle(now);
    }

    /// Cancels everything that has not ended; gives the tasks that are running, whose attempts must be stopped.
    pub fn cancel(&mut self) -> Vec<usize> {
        let mut running = Vec::new();
        for (task, state) in self.states.iter_mut().enumerate() {
            match state {
                State::Running { .. } => running.push(task),
                State::Waiting | State::Ready { .. } => {}
                State::Ended { .. } => continue,
            }
            *state = State::Ended { end: End::Canceled, outcome: None };
        }
        running
    }

    /// How a task ended, if it has.
    pub fn end_of(&self, task: usize) -> Option<End> {
        match self.states.get(task)? {
            State::Ended { end, .. } => Some(*end),
            _ => None,
        }
    }

    /// What the job comes to, once every task has ended.
    pub fn end(&self) -> Option<JobEnd> {
        let ends: Vec<End> = (0..self.states.len()).map(|task| self.end_of(task)).collect::<Option<_>>()?;
        let is_leaf = |task: usize| !self.depends_on.iter().flatten().any(|(on, _)| *on == task);
        let leaves: Vec<End> = ends.iter().enumerate().filter(|(task, _)| is_leaf(*task)).map(|(_, end)| *end).collect();
        Some(if leaves.iter().any(|end| end.is_failure()) {
            JobEnd::Failed
        } else if leaves.iter().any(|end| end.is_canceled()) {
            JobEnd::Canceled
        } else if ends.iter().any(|end| end.is_failure()) {
            JobEnd::SuccessWithFailures
        } else {
            JobEnd::Success
        })
    }

    /// Ends or readies every task whose dependencies have all ended, until none is left.
    fn settle(&mut self, now: u64) {
        let mut changed = true;
        while changed {
            changed = false;
            for task in 0..self.tasks.len() {
                if self.states[task] == State::Waiting
                    && let Some(next) = self.decide(task, now)
                {
                    self.states[task] = next;
                    changed = true;
                }
            }
        }
    }

    fn decide(&self, task: usize, now: u64) -> Option<State> {
        let ended = |end| Some(State::Ended { end, outcome: None });
        let mut ends = Vec::new();
        let mut branch_not_taken = false;
        for (on, wanted) in &self.depends_on[task] {
            let State::Ended { end, outcome } = self.states[*on] else { return None };
            branch_not_taken |= end == End::Success && wanted.is_some() && *wanted != outcome;
            ends.push(end);
        }
        if self.tasks[task].disabled {
            return ended(End::Disabled);
        }
        if branch_not_taken {
            return ended(End::Excluded);
        }
        match verdict(self.tasks[task].run_if, &ends) {
            None => Some(State::Ready { attempt: 0, at: now }),
            Some(end) => ended(end),
        }
    }
}

/// How a task ends that its dependencies do not let run; none = it runs.
fn verdict(run_if: RunIf, ends: &[End]) -> Option<End> {
    // What is excluded or disabled is neither: it is as if it were not there.
    let counted: Vec<End> = ends.iter().copied().filter(|end| !matches!(end, End::Excluded | End::Disabled)).collect();
    let succeeded = counted.iter().filter(|end| **end == End::Success).count();
    let failed = counted.iter().filter(|end| end.is_failure()).count();
    let canceled = counted.iter().any(|end| end.is_canceled());
    let met = match run_if {
        RunIf::AllSuccess => succeeded == counted.len() && (succeeded > 0 || ends.is_empty()),
        RunIf::AllDone => true,
        RunIf::NoneFailed => failed == 0 && !canceled && (succeeded > 0 || ends.is_empty()),
        RunIf::AtLeastOneSuccess => succeeded > 0 || ends.is_empty(),
        RunIf::AtLeastOneFailed => failed > 0,
        RunIf::AllFailed => failed > 0 && failed == counted.len(),
    };
    if met {
        return None;
    }
    let wants_failures = matches!(run_if, RunIf::AtLeastOneFailed | RunIf::AllFailed);
    Some(if failed > 0 && !wants_failures {
        End::UpstreamFailed
    } else if canceled {
        End::UpstreamCanceled
    } else {
        End::Excluded
    })
}

#[cfg(test)]
mod tests;
