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

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ArgMatches;
use tokio_util::sync::CancellationToken;
use tributary_bundle::{Job, load_with};
use tributary_config::{Loaded, nearest};

use crate::bundle::{self, Given};
use crate::failure::{Error, Failure, Outcome};
use crate::logging::Voice;
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
    runnable(&job)?;
    let parameters = parameters_of(&job, pairs("param").collect())?;
    if loaded.settings.check {
        let tasks: Vec<&str> = job.tasks.iter().map(|task| task.key.as_str()).collect();
        return start::print(&format!("job `{}` is sound: tasks {}; nothing was run\n", job.name, tasks.join(", ")));
    }
    let cancel = CancellationToken::new();
    let session = Session::new(loaded, matches, given, around, read, Teller::new(Voice::of(&loaded.settings)))?;
    signals::end_with(&cancel)?;
    start::block_on(async {
        let done = session.run(Asked { job: &job, parameters, trigger_type: "ONETIME", cancel }).await;
        session.teller.finish().await;
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

/// That every task of a job is one that is run here, before the first begins.
fn runnable(job: &Job) -> Result<(), Failure> {
    let not_run: Vec<Failure> = job
        .tasks
        .iter()
        .filter(|task| !task.disabled)
        .filter_map(|task| {
            let reason = task.action.not_run()?;
            Some(Error::Task { reason: format!("task {} of job {} is not run here: {reason}", task.key, job.key) }.into())
        })
        .collect();
    if not_run.is_empty() { Ok(()) } else { Err(Failure::of_all(not_run)) }
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
