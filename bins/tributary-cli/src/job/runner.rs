//! One run of a job's tasks: starts what `tributary_bundle::Run` says is ready, waits, and tells it how attempts ended. Time, ids
//! and the work itself come from a [`Host`].
//!
//! - An attempt that takes longer than it may is asked to end, and given up [`GRACE_MILLIS`] later.
//! - A run that is cancelled, or takes longer than it may, ends within the same time.

use std::collections::BTreeMap;

use futures::future::{BoxFuture, Either, select};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio_util::sync::CancellationToken;
use tributary::ExitCode;
use tributary_bundle::{End, Job, JobEnd, Outcome, Run, RunValues, Task};

/// How long what was asked to end may take for it.
pub const GRACE_MILLIS: u64 = 10_000;

/// What a run needs of the world.
pub trait Host: Sync {
    /// Milliseconds from any beginning; never goes back.
    fn now(&self) -> u64;
    /// Returns at this instant.
    fn sleep_until(&self, at: u64) -> BoxFuture<'_, ()>;
    /// A number that none before it was.
    fn new_id(&self) -> String;
    /// Does what a task says, once.
    fn attempt<'a>(&'a self, attempt: Attempt<'a>) -> BoxFuture<'a, Ended>;
    /// An attempt begins.
    fn begins(&self, _attempt: &Attempt<'_>) {}
    /// An attempt has ended; whether the task is tried again.
    fn has_ended(&self, _task: &Task, _attempt: &Attempted, _again: bool) {}
}

/// An attempt to make.
#[derive(Debug)]
pub struct Attempt<'a> {
    pub task: &'a Task,
    /// From 0.
    pub number: u64,
    /// Its own.
    pub run_id: String,
    /// What `{{…}}` in the task's texts stands for.
    pub values: RunValues,
    /// Asks it to end.
    pub cancel: CancellationToken,
}

/// How an attempt ended, as the host tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub outcome: Outcome,
    /// What a process that did this alone would exit with.
    pub exit_code: ExitCode,
    /// Why it failed.
    pub message: Option<String>,
    /// What those after it know as `tasks.<key>.<name>`.
    pub values: BTreeMap<String, String>,
}

impl Ended {
    pub fn well() -> Self {
        Self { outcome: Outcome::Success(None), exit_code: ExitCode::Done, message: None, values: BTreeMap::new() }
    }

    pub fn canceled() -> Self {
        Self { outcome: Outcome::Canceled, exit_code: ExitCode::Partial, ..Self::well() }
    }

    pub fn failed(exit_code: ExitCode, message: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, exit_code, message: Some(message.into()), values: BTreeMap::new() }
    }
}

/// An attempt that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    pub key: String,
    pub number: u64,
    pub run_id: String,
    /// Milliseconds, by the host.
    pub started: u64,
    pub ended: u64,
    pub how: Ended,
}

/// What a run came to.
#[derive(Debug)]
pub struct Gone {
    pub end: JobEnd,
    /// Whether it took longer than it may.
    pub timed_out: bool,
    /// In the order they ended.
    pub attempts: Vec<Attempted>,
    /// Of each task that ended, in the order of the job.
    pub ends: Vec<(String, End)>,
}

impl Gone {
    /// What the shell sees.
    pub fn exit_code(&self) -> ExitCode {
        if self.timed_out {
            return ExitCode::Failed;
        }
        match self.end {
            JobEnd::Success | JobEnd::SuccessWithFailures => ExitCode::Done,
            JobEnd::Canceled => ExitCode::Partial,
            JobEnd::Failed => {
                let failed = |key: &str| self.ends.iter().any(|(task, end)| task == key && matches!(end, End::Failed | End::TimedOut));
                let last = self.attempts.iter().filter(|attempt| failed(&attempt.key)).map(|attempt| (&attempt.key, attempt.how.exit_code));
                // of several attempts of a task the last one counts
                let last: BTreeMap<&String, ExitCode> = last.collect();
                ExitCode::worst(last.into_values().chain([ExitCode::Failed]))
            }
        }
    }

    /// What the last attempt that failed says.
    pub fn message(&self) -> Option<&str> {
        self.attempts.iter().rev().find_map(|attempt| attempt.how.message.as_deref())
    }
}

/// Tasks to run, and how.
pub struct Tasks<'a> {
    pub job: &'a Job,
    /// What all of them know.
    pub values: RunValues,
    /// What each of them knows besides, by its place; may be shorter.
    pub each: Vec<RunValues>,
    /// How many run at once.
    pub at_once: usize,
    /// Asks all of them to end.
    pub cancel: CancellationToken,
}

/// Runs the tasks of a job to their end.
pub async fn go(host: &impl Host, tasks: Tasks<'_>) -> Gone {
    let Tasks { job, mut values, each, at_once, cancel } = tasks;
    let cancel = cancel.child_token();
    let mut run = Run::new(job);
    let mut attempts = Vec::new();
    let mut running: FuturesUnordered<BoxFuture<'_, (usize, Attempted)>> = FuturesUnordered::new();
    let deadline = (job.timeout_seconds > 0).then(|| host.now().saturating_add(job.timeout_seconds.saturating_mul(1000)));
    let mut timed_out = false;
    let mut given_up_at = None;
    loop {
        let now = host.now();
        for start in run.ready(now) {
            if running.len() >= at_once {
                break;
            }
            run.started(start, now);
            let task = &job.tasks[start.task];
            let run_id = host.new_id();
            let mut known = values.clone();
            known.extend(each.get(start.task).cloned().unwrap_or_default());
            known.insert("task.name".to_owned(), task.key.clone());
            known.insert("task.run_id".to_owned(), run_id.clone());
            known.insert("task.execution_count".to_owned(), (start.attempt + 1).to_string());
            let attempt = Attempt { task, number: start.attempt, run_id, values: known, cancel: cancel.child_token() };
            host.begins(&attempt);
            running.push(async move { (start.task, make(host, attempt).await) }.boxed());
        }
        if running.is_empty() && run.end().is_some() {
            break;
        }
        let has_room = running.len() < at_once;
        let next_ready = run.next_ready_at().filter(|at| has_room && *at > now);
        let wake = [next_ready, deadline.filter(|_| !timed_out), given_up_at].into_iter().flatten().min();
        let next = async {
            match wake {
                Some(at) => host.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            Some(ended) = running.next() => Some(ended),
            () = cancel.cancelled(), if given_up_at.is_none() => None,
            () = next => None,
        };
        let now = host.now();
        if let Some((task, attempted)) = ended {
            run.ended(task, &attempted.how.outcome, now);
            let again = run.end_of(task).is_none();
            host.has_ended(&job.tasks[task], &attempted, again);
            known_of(&mut values, &attempted, run.end_of(task));
            attempts.push(attempted);
        }
        if deadline.is_some_and(|deadline| now >= deadline) && !timed_out && run.end().is_none() {
            timed_out = true;
            cancel.cancel();
        }
        if cancel.is_cancelled() && given_up_at.is_none() {
            run.cancel();
            given_up_at = Some(now.saturating_add(GRACE_MILLIS));
        }
        if given_up_at.is_some_and(|at| now >= at) {
            break;
        }
    }
    let ends = job.tasks.iter().enumerate().filter_map(|(at, task)| Some((task.key.clone(), run.end_of(at)?)));
    Gone { end: run.end().unwrap_or(JobEnd::Canceled), timed_out, attempts, ends: ends.collect() }
}

/// Makes an attempt, within the time it has.
async fn make(host: &impl Host, attempt: Attempt<'_>) -> Attempted {
    let (task, number, run_id, cancel) = (attempt.task, attempt.number, attempt.run_id.clone(), attempt.cancel.clone());
    let started = host.now();
    let work = host.attempt(attempt);
    let how = match task.timeout_seconds {
        0 => work.await,
        seconds => match select(work, host.sleep_until(started.saturating_add(seconds.saturating_mul(1000)))).await {
            Either::Left((ended, _)) => ended,
            Either::Right(((), work)) => {
                cancel.cancel();
                let _ = select(work, host.sleep_until(host.now().saturating_add(GRACE_MILLIS))).await;
                Ended { outcome: Outcome::TimedOut, ..Ended::failed(ExitCode::Failed, format!("it took longer than {seconds} s")) }
            }
        },
    };
    Attempted { key: task.key.clone(), number, run_id, started, ended: host.now(), how }
}

/// What tasks after an attempt know of it.
fn known_of(values: &mut RunValues, attempted: &Attempted, end: Option<End>) {
    let mut put = |name: &str, value: String| values.insert(format!("tasks.{}.{name}", attempted.key), value);
    if let Some(end) = end {
        put("result_state", word(end).to_owned());
    }
    put("run_id", attempted.run_id.clone());
    put("execution_count", (attempted.number + 1).to_string());
    for (name, value) in &attempted.how.values {
        put(name, value.clone());
    }
}

/// How a task ended, as `{{tasks.t.result_state}}` has it.
fn word(end: End) -> &'static str {
    match end {
        End::Success => "success",
        End::Failed => "failed",
        End::TimedOut => "timedout",
        End::Canceled => "canceled",
        End::Excluded => "excluded",
        End::UpstreamFailed => "upstream_failed",
        End::UpstreamCanceled => "upstream_canceled",
        End::Disabled => "disabled",
    }
}

#[cfg(test)]
mod tests;
