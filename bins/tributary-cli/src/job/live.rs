//! Tasks done for real: pipelines run, statements executed, other jobs run.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::DateTime;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tributary::sql::SessionOptions;
use tributary::{ExitCode, Mode, Pipeline, PipelineUpdate, RunReport, TableName, TaskRun, WithinJob};
use tributary_bundle::{Action, Job, Outcome, RunValues, Target, Task, compare, fill_run_values, inputs, load_with};
use tributary_config::Program;

use super::record;
use super::runner::{Attempt, Attempted, Ended, Host, Tasks, go};
use super::session::{Asked, Session};
use super::tell::{About, Event};
use super::{parameters, statements};
use crate::bundle::{self, Opened};
use crate::failure::{Error, Failure};
use crate::logging::Voice;
use crate::next::Places;
use crate::{next, opened, progress, run, typed};

/// One run of a job.
pub struct Live<'a> {
    pub session: &'a Session<'a>,
    pub job: &'a Job,
    pub job_id: &'a str,
    pub run_id: &'a str,
    /// The job's parameters with their values.
    pub parameters: &'a BTreeMap<String, String>,
    pub made: Mutex<Made>,
}

/// What is recorded of a run.
#[derive(Debug, Default)]
pub struct Made {
    tasks: Vec<TaskRun>,
    updates: Vec<PipelineUpdate>,
    /// Values of parameters by attempt.
    parameters: BTreeMap<String, BTreeMap<String, String>>,
}

/// Iterations of a task, which go on as tasks of their own.
struct Iterations<'a> {
    live: &'a Live<'a>,
    /// The attempt that they are of.
    parent: &'a str,
}

impl Host for Live<'_> {
    fn now(&self) -> u64 {
        self.session.now()
    }

    fn sleep_until(&self, at: u64) -> BoxFuture<'_, ()> {
        tokio::time::sleep(Duration::from_millis(at.saturating_sub(self.now()))).boxed()
    }

    fn new_id(&self) -> String {
        self.session.new_id()
    }

    fn attempt<'b>(&'b self, attempt: Attempt<'b>) -> BoxFuture<'b, Ended> {
        let (task, run_id) = (attempt.task, attempt.run_id.clone());
        let failed = move |failure: Failure| Ended::failed(failure.exit_code, next::as_message(&failure, &self.places(task, &run_id)));
        self.act(attempt).map(|done| done.unwrap_or_else(failed)).boxed()
    }

    fn begins(&self, attempt: &Attempt<'_>) {
        self.say_begin(attempt);
        let notifications = &attempt.task.notifications;
        if attempt.number == 0 || !notifications.alert_on_last_attempt {
            self.session.teller.tell(Event::Start, self.about(attempt.task, &attempt.run_id, None));
        }
    }

    fn has_ended(&self, task: &Task, attempted: &Attempted, again: bool) {
        self.take_down(attempted, None);
        self.say_end(attempted, again);
        let event = match attempted.how.outcome {
            Outcome::Success(_) => Some(Event::Success),
            Outcome::Canceled if task.notifications.no_alert_for_canceled_runs => None,
            _ if again && task.notifications.alert_on_last_attempt => None,
            Outcome::Failed | Outcome::TimedOut | Outcome::Canceled => Some(Event::Failure),
        };
        if let Some(event) = event {
            self.session.teller.tell(event, self.about(task, &attempted.run_id, attempted.how.message.as_deref()));
        }
    }
}

impl Host for Iterations<'_> {
    fn now(&self) -> u64 {
        self.live.now()
    }

    fn sleep_until(&self, at: u64) -> BoxFuture<'_, ()> {
        self.live.sleep_until(at)
    }

    fn new_id(&self) -> String {
        self.live.new_id()
    }

    fn attempt<'b>(&'b self, attempt: Attempt<'b>) -> BoxFuture<'b, Ended> {
        self.live.attempt(attempt)
    }

    fn begins(&self, attempt: &Attempt<'_>) {
        self.live.say_begin(attempt);
    }

    fn has_ended(&self, _task: &Task, attempted: &Attempted, again: bool) {
        self.live.take_down(attempted, Some(self.parent));
        self.live.say_end(attempted, again);
    }
}

impl Live<'_> {
    /// What is recorded of the run, once it has ended.
    pub fn made(self) -> (Vec<TaskRun>, Vec<PipelineUpdate>) {
        let made = self.made.into_inner().unwrap_or_else(PoisonError::into_inner);
        (made.tasks, made.updates)
    }

    fn recorded(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn act(&self, attempt: Attempt<'_>) -> Result<Ended, Failure> {
        let values = &attempt.values;
        match &attempt.task.action {
            Action::Pipeline { pipeline: Target::Resource(key), parameters, .. } => {
                let parameters = self.pushed_down(filled_all(parameters, values)?, &attempt);
                self.pipeline(key, parameters, &attempt).await
            }
            Action::SqlFile { path, parameters } | Action::Notebook { path, parameters } => {
                let parameters = self.pushed_down(filled_all(parameters, values)?, &attempt);
                self.statements(path, &parameters, &attempt).await
            }
            Action::Condition { op, left, right } => {
                let (left, right) = (filled(left, values)?, filled(right, values)?);
                match compare(op, &left, &right) {
                    Some(holds) => Ok(Ended { outcome: Outcome::Success(Some(holds)), ..Ended::well() }),
                    None => Err(refused(format!("{op} compares numbers, and one side is none"))),
                }
            }
            Action::ForEach { inputs: list, concurrency, task } => {
                let list = filled(list, values)?;
                let inputs = inputs(&list).ok_or_else(|| refused("the inputs are no JSON list".to_owned()))?;
                Ok(self.each(task, inputs, *concurrency, &attempt).await)
            }
            Action::RunJob { job: Target::Resource(key), parameters } => {
                let parameters = filled_all(parameters, values)?;
                self.other_job(key, parameters, &attempt.cancel).await
            }
            Action::Pipeline { .. } | Action::RunJob { .. } | Action::Other { .. } => {
                let reason = attempt.task.action.not_run().unwrap_or_default();
                Err(refused(format!("task {} is not run here: {reason}", attempt.task.key)))
            }
        }
    }

    /// Where the work of a task looked, for what is to be typed next.
    fn places(&self, task: &Task, run_id: &str) -> Places {
        let Action::Pipeline { pipeline: Target::Resource(key), .. } = &task.action else { return Places::of(self.session.matches) };
        let parameters = self.recorded().parameters.get(run_id).cloned().unwrap_or_default();
        Places::of_task(self.session.matches, key, &parameters)
    }

    /// What the work of an attempt is done for.
    fn within(&self, attempt: &Attempt<'_>) -> WithinJob {
        WithinJob {
            job_id: self.job_id.to_owned(),
            job_name: self.job.name.clone(),
            job_run_id: self.run_id.to_owned(),
            task_key: attempt.task.key.clone(),
            task_run_id: attempt.run_id.clone(),
        }
    }

    /// The task's parameters and over them the job's.
    fn pushed_down(&self, mut parameters: BTreeMap<String, String>, attempt: &Attempt<'_>) -> BTreeMap<String, String> {
        parameters.extend(self.parameters.clone());
        self.recorded().parameters.insert(attempt.run_id.clone(), parameters.clone());
        parameters
    }

    async fn pipeline(&self, key: &str, parameters: BTreeMap<String, String>, attempt: &Attempt<'_>) -> Result<Ended, Failure> {
        let Action::Pipeline { full_refresh, refresh_selection, full_refresh_selection, .. } = &attempt.task.action else {
            return Err(refused(format!("task {} runs no pipeline", attempt.task.key)));
        };
        let session = self.session;
        let mut reading = session.given.options(&session.loaded.settings);
        // what the command line says goes over what jobs and tasks say
        let of_command_line = std::mem::replace(&mut reading.parameters, parameters);
        reading.parameters.extend(of_command_line);
        let read = load_with(&session.around, &reading);
        let Opened { settings, pipeline, .. } = bundle::of_read(&read, key, session.loaded, session.given)?;
        let found = read.bundle.pipeline(key)?;
        let selected = |names: &[String]| -> Result<Vec<TableName>, Failure> {
            let whole = |name: &String| typed::table(&filled(name, &attempt.values)?, settings.catalogue.as_str());
            Ok(run::only(&names.iter().map(whole).collect::<Result<Vec<_>, _>>()?, &pipeline)?)
        };
        let mut options = run::options(Program::Job, &settings, &pipeline)?;
        options.mode = Mode::Drain;
        options.accept_unprotected = session.given.accepts_unprotected();
        options.only = selected(refresh_selection)?;
        options.full_refresh = selected(full_refresh_selection)?;
        options.full_refresh_all = *full_refresh;
        options.cancel = attempt.cancel.clone();
        let places = self.places(attempt.task, &attempt.run_id);
        options.openlineage.clone_from(&session.openlineage);
        options.within_job = Some(self.within(attempt));
        options.progress = next::in_events(progress::sink(lines(Voice::of(&settings)), false), &places);
        let lake = opened::lake(&settings)?;
        let started = self.now();
        let report = tokio::spawn(async move { lake.run(&pipeline, options).await }).await;
        let mut report = report.map_err(|_| bug("the pipeline's run broke off"))??;
        next::in_report(&mut report, &places);
        self.say_not_done(attempt, progress::not_done(&report));
        let ended = of_report(&report);
        self.recorded().updates.push(PipelineUpdate {
            pipeline: record::pipeline(found, &session.id_of("pipelines", &found.key), &found.parameters),
            update_id: report.run_id.clone(),
            task_run_id: attempt.run_id.clone(),
            started_at: instant(started),
            ended_at: instant(self.now()),
            result_state: match ended.outcome {
                Outcome::Success(_) => "COMPLETED",
                Outcome::Canceled => "CANCELED",
                Outcome::Failed | Outcome::TimedOut => "FAILED",
            }
            .to_owned(),
            full_refresh: *full_refresh,
            refresh_selection: refresh_selection.clone(),
            full_refresh_selection: full_refresh_selection.clone(),
        });
        Ok(ended)
    }

    /// Executes the statements of a file, one after the other.
    async fn statements(&self, path: &str, parameters: &BTreeMap<String, String>, attempt: &Attempt<'_>) -> Result<Ended, Failure> {
        let file = self.session.around.join(path);
        let text = std::fs::read_to_string(&file).map_err(|source| Error::PipelineFile { file, source })?;
        let text = parameters::fill(&text, parameters);
        let lake = opened::lake(&self.session.loaded.settings)?;
        let settings = &self.session.loaded.settings;
        let mut run = run::options(Program::Job, settings, &Pipeline::default())?;
        run.openlineage.clone_from(&self.session.openlineage);
        run.within_job = Some(self.within(attempt));
        let options = SessionOptions {
            user: self.session.given.user_of(self.job.run_as.as_deref()),
            accept_unprotected: self.session.given.accepts_unprotected(),
            run,
            ..SessionOptions::default()
        };
        let name = path.to_owned();
        let work = tokio::spawn(async move { statements::run(&lake, &name, &text, options).await });
        let stop = work.abort_handle();
        let done = tokio::select! {
            done = work => done,
            () = attempt.cancel.cancelled() => {
                stop.abort();
                return Ok(Ended::canceled());
            }
        };
        let done = done.map_err(|_| bug("the statements broke off"))??;
        self.say_not_done(attempt, done.not_done);
        let values = done
            .first_row
            .into_iter()
            .flat_map(|(column, value)| [(format!("output.first_row.{column}"), value.clone()), (format!("values.{column}"), value)]);
        Ok(Ended { values: values.collect(), ..Ended::well() })
    }

    /// Runs a task for each input. It fails where one of them does.
    async fn each(&self, task: &Task, inputs: Vec<String>, concurrency: u64, attempt: &Attempt<'_>) -> Ended {
        let iteration = |at: usize| Task { key: format!("{}_{at}", task.key), depends_on: Vec::new(), ..task.clone() };
        let job = Job { tasks: (0..inputs.len()).map(iteration).collect(), timeout_seconds: 0, ..self.job.clone() };
        let tasks = Tasks {
            job: &job,
            values: attempt.values.clone(),
            each: inputs.into_iter().map(|input| RunValues::from([("input".to_owned(), input)])).collect(),
            at_once: usize::try_from(concurrency).unwrap_or(usize::MAX),
            cancel: attempt.cancel.clone(),
        };
        let gone = go(&Iterations { live: self, parent: &attempt.run_id }, tasks).await;
        let failed = gone.ends.iter().filter(|(_, end)| *end != tributary_bundle::End::Success).count();
        match (failed, gone.exit_code()) {
            (0, _) => Ended::well(),
            (_, ExitCode::Partial) => Ended::canceled(),
            (failed, code) => {
                let why = gone.message().map(|message| format!("; the last: {message}")).unwrap_or_default();
                Ended::failed(code, format!("{failed} of {} iterations failed{why}", gone.ends.len()))
            }
        }
    }

    async fn other_job(&self, key: &str, parameters: BTreeMap<String, String>, cancel: &CancellationToken) -> Result<Ended, Failure> {
        let job = self.session.read.bundle.job(key)?;
        let parameters = super::parameters_of(job, parameters)?;
        let asked = Asked { job, parameters, trigger_type: "RUN_JOB_TASK", cancel: cancel.clone() };
        let done = self.session.run(asked).await?;
        Ok(match done.exit_code {
            ExitCode::Done => Ended::well(),
            ExitCode::Partial if cancel.is_cancelled() => Ended::canceled(),
            code => Ended::failed(code, done.message.unwrap_or_else(|| format!("job {} ended {}", job.name, done.end.result_state))),
        })
    }

    fn about<'b>(&'b self, task: &'b Task, run_id: &'b str, message: Option<&'b str>) -> About<'b> {
        About { job: self.job, job_id: self.job_id, run_id: self.run_id, task: Some((task, run_id)), message }
    }

    fn take_down(&self, attempted: &Attempted, parent: Option<&str>) {
        let mut made = self.recorded();
        let parameters = made.parameters.remove(&attempted.run_id).unwrap_or_default();
        made.tasks.push(TaskRun {
            run_id: attempted.run_id.clone(),
            key: attempted.key.clone(),
            parent_run_id: Some(parent.unwrap_or(self.run_id).to_owned()),
            started_at: instant(attempted.started),
            ended_at: instant(attempted.ended),
            parameters,
            end: record::end_of_attempt(&attempted.how),
        });
    }

    fn say_begin(&self, attempt: &Attempt<'_>) {
        let Attempt { task, number, run_id, .. } = attempt;
        let object =
            json!({ "event": "task_started", "task": task.key, "attempt": number, "run_id": run_id, "kind": task.action.task_kind() });
        let again = if *number > 0 { format!(", attempt {}", number + 1) } else { String::new() };
        self.session.teller.say(object, &format!("task {}  begins{again}", task.key));
    }

    /// What the texts of a task say and its run does not do.
    fn say_not_done(&self, attempt: &Attempt<'_>, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            let object = json!({ "event": "not_done", "task": attempt.task.key, "run_id": attempt.run_id, "what": line });
            self.session.teller.say(object, &format!("task {}  {line}", attempt.task.key));
        }
    }

    fn say_end(&self, attempted: &Attempted, again: bool) {
        let state = record::end_of_attempt(&attempted.how).result_state;
        let millis = attempted.ended.saturating_sub(attempted.started);
        let object = json!({
            "event": "task_finished",
            "task": attempted.key,
            "attempt": attempted.number,
            "run_id": attempted.run_id,
            "result_state": state,
            "message": attempted.how.message,
            "exit_code": attempted.how.exit_code.code(),
            "again": again,
            "millis": millis,
        });
        let why = attempted.how.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        let again = if again { ", is tried again" } else { "" };
        self.session.teller.say(object, &format!("task {}  {state}, {millis} ms{again}{why}", attempted.key));
    }
}

/// Several pipelines at once say lines, not bars.
fn lines(voice: Voice) -> Voice {
    if voice == Voice::Bars { Voice::Text } else { voice }
}

fn of_report(report: &RunReport) -> Ended {
    let exit_code = report.exit_code();
    if exit_code == ExitCode::Done {
        return Ended::well();
    }
    if report.cancelled {
        return Ended { outcome: Outcome::Canceled, exit_code, ..Ended::well() };
    }
    let failure = failure_of(report);
    Ended::failed(exit_code, format!("{} {}", failure.code, failure.message))
}

/// Why a run did not end well: its first error.
pub fn failure_of(report: &RunReport) -> Failure {
    let first = report.datasets.iter().find_map(|dataset| Some((&dataset.table, dataset.error.as_ref()?)));
    let (code, message) = match first {
        Some((table, error)) => (error.code.clone(), format!("{table}: {}", error.message)),
        None => ("TR0004".to_owned(), "part of the work is left".to_owned()),
    };
    Failure { exit_code: report.exit_code(), code, message, next: None }
}

fn filled(text: &str, values: &RunValues) -> Result<String, Failure> {
    fill_run_values(text, values).map_err(|unknown| refused(format!("this run knows no {{{{{}}}}}", unknown.join("}} and no {{"))))
}

fn filled_all(texts: &BTreeMap<String, String>, values: &RunValues) -> Result<BTreeMap<String, String>, Failure> {
    texts.iter().map(|(name, text)| Ok((name.clone(), filled(text, values)?))).collect()
}

/// A task as it stands cannot be done.
fn refused(reason: String) -> Failure {
    Error::Task { reason }.into()
}

fn bug(what: &str) -> Failure {
    Failure { exit_code: ExitCode::Bug, code: "TR0005".to_owned(), message: what.to_owned(), next: None }
}

fn instant(millis: u64) -> DateTime<chrono::Utc> {
    i64::try_from(millis).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default()
}
