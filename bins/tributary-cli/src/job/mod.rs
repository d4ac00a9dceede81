//! `tributary job run NAME`: a job of the bundle, its tasks in order.
//!
//! ```text
//! tributary_bundle::Run ── what may start ──▶ runner ── an attempt ──▶ live ──▶ a pipeline, statements, another job
//!  (pure)                ◀─ how it ended ───  (waits)                   │
//!                                                session: let in, recorded, told
//! ```

mod live;
mod parameters;
mod record;
mod runner;
mod session;
mod slots;
mod statements;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::ArgMatches;
use tokio_util::sync::CancellationToken;
use tributary_bundle::{Action, Job, Loaded as Read, Target, Task, load_with};
use tributary_config::{Loaded, nearest};

use crate::bundle::{self, Given};
use crate::failure::{Error, Failure, Outcome};
use crate::logging::Voice;
use crate::openlineage::Sinks;
use crate::{signals, start};
use session::{Asked, Session};
use tell::Teller;

/// Runs a job of the bundle around the working folder to its end.
pub fn run(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let name = matches.get_one::<String>("name").cloned().unwrap_or_default();
    let around = given.around().cloned().unwrap_or_else(|| PathBuf::from("."));
    let read = load_with(&around, &given.options(&loaded.settings));
    if !read.is_sound() {
        return Err(bundle::faults(&read));
    }
    let words = |name: &str| matches.get_many::<String>(name).into_iter().flatten().cloned().collect::<Vec<_>>();
    let pairs = |name: &str| matches.get_many::<(String, String)>(name).into_iter().flatten().cloned();
    let job = only(read.bundle.job(&name)?, &words("tasks"))?;
    runnable(&read, &job)?;
    let parameters = parameters_of(&job, pairs("param").collect())?;
    if loaded.settings.check {
        let tasks: Vec<&str> = job.tasks.iter().map(|task| task.key.as_str()).collect();
        return start::print(&format!("job `{}` is sound: tasks {}; nothing was run\n", job.name, tasks.join(", ")));
    }
    let cancel = CancellationToken::new();
    let mut session = Session::new(loaded, matches, given, around, read, Teller::new(Voice::of(&loaded.settings)))?;
    signals::end_with(&cancel)?;
    start::block_on(async {
        let sinks = Sinks::of(&loaded.settings)?;
        session.openlineage = sinks.of_run(&loaded.settings);
        let done = session.run(Asked { job: &job, parameters, trigger_type: "ONETIME", cancel }).await;
        session.teller.finish().await;
        session.openlineage = None;
        sinks.finish().await;
        Ok(done?.exit_code.code())
    })
}

/// The job with these tasks alone, which then wait for each other only; no names = all.
fn only(job: &Job, names: &[String]) -> Result<Job, Error> {
    let mut job = job.clone();
    if names.is_empty() {
        return Ok(job);
    }
    let keys: Vec<String> = job.tasks.iter().map(|task| task.key.clone()).collect();
    if let Some(name) = names.iter().find(|name| !keys.contains(name)) {
        let nearest = nearest(name, keys.iter().map(String::as_str)).map(str::to_owned);
        return Err(Error::NoTask { job: job.key, name: name.clone(), nearest });
    }
    job.tasks.retain(|task| names.contains(&task.key));
    job.tasks.iter_mut().for_each(|task| task.depends_on.retain(|on| names.contains(&on.task)));
    Ok(job)
}

/// That every task of a job, and of the jobs that it runs, is one that is run here, before the first begins.
fn runnable(read: &Read, job: &Job) -> Result<(), Failure> {
    let (mut not_run, mut seen) = (Vec::new(), BTreeSet::new());
    let mut jobs = vec![job];
    while let Some(job) = jobs.pop() {
        for task in job.tasks.iter().filter(|task| !task.disabled) {
            not_run.extend(task.action.not_run().map(|reason| Failure::from(Error::Task { reason: refusal(job, task, &reason) })));
            // jobs that run each other in a circle are a mistake of the bundle, and were told
            let inner = job_of(&task.action).filter(|key| seen.insert((*key).to_owned()));
            jobs.extend(inner.and_then(|key| read.bundle.job(key).ok()));
        }
    }
    if not_run.is_empty() { Ok(()) } else { Err(Failure::of_all(not_run)) }
}

/// The job that a task runs, each time or once for each input.
fn job_of(action: &Action) -> Option<&str> {
    match action {
        Action::RunJob { job: Target::Resource(key), .. } => Some(key),
        Action::ForEach { task, .. } => job_of(&task.action),
        _ => None,
    }
}

/// Why a task is not run, with its place.
fn refusal(job: &Job, task: &Task, reason: &str) -> String {
    let place = task.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
    format!("{place}task {} of job {} is not run here: {reason}", task.key, job.key)
}

/// The values of a job's parameters.
fn parameters_of(job: &Job, given: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    if let Some(name) = given.keys().find(|name| !job.parameters.contains_key(*name)) {
        let nearest = nearest(name, job.parameters.keys().map(String::as_str)).map(str::to_owned);
        return Err(Error::NoParameter { job: job.key.clone(), name: name.clone(), nearest });
    }
    let mut parameters = job.parameters.clone();
    parameters.extend(given);
    Ok(parameters)
}
