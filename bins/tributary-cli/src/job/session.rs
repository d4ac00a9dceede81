//! Runs of jobs of one bundle: let in, begun, ended, recorded, told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Datelike as _, SecondsFormat, TimeDelta, Timelike as _, Utc};
use clap::ArgMatches;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Either, select};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tributary::{Clock as _, ExitCode, JobRun, Lake, OpenLineage, RunEnd, SystemClock};
use tributary_bundle::{Admission, Job, JobEnd, Loaded as Read, RunValues, admit};
use tributary_config::Loaded;

use super::live::Live;
use super::record;
use super::runner::{Gone, Tasks, go};
use super::slots::{Begun, Slot, Slots};
use super::tell::{About, Event, Teller};
use crate::bundle::Given;
use crate::failure::{Error, Failure};
use crate::opened;

/// How often a run that waits for others looks whether they have ended.
const LOOK: Duration = Duration::from_millis(500);
/// How long a run waits for others at most.
const QUEUE_MAX: Duration = Duration::from_secs(48 * 3600);

/// What all runs of one command share.
pub struct Session<'a> {
    pub loaded: &'a Loaded,
    pub matches: &'a ArgMatches,
    pub given: &'a Given,
    /// The bundle's folder.
    pub around: PathBuf,
    pub read: Read,
    pub lake: Lake,
    pub teller: Teller,
    /// Who is told of the lineage of what runs.
    pub openlineage: Option<OpenLineage>,
    /// The wall clock when the session began, and a clock that never goes back.
    began: (DateTime<Utc>, Instant),
    last_id: AtomicI64,
}

/// A run that is asked for.
pub struct Asked<'a> {
    pub job: &'a Job,
    /// Values of its parameters, over their defaults.
    pub parameters: BTreeMap<String, String>,
    /// `ONETIME`, or `RUN_JOB_TASK` for one that another run asks for.
    pub trigger_type: &'static str,
    pub cancel: CancellationToken,
}

/// What became of it.
pub struct Done {
    pub run_id: String,
    pub exit_code: ExitCode,
    /// How it ended, in the platform's words.
    pub end: RunEnd,
    pub message: Option<String>,
    /// How its tasks ended, by key.
    pub tasks: Vec<(String, String)>,
    pub millis: i64,
}

impl<'a> Session<'a> {
    pub fn new(
        loaded: &'a Loaded,
        matches: &'a ArgMatches,
        given: &'a Given,
        around: PathBuf,
        read: Read,
        teller: Teller,
    ) -> Result<Self, Failure> {
        let lake = opened::lake(&loaded.settings)?;
        let began = (SystemClock.now(), Instant::now());
        Ok(Self { loaded, matches, given, around, read, lake, teller, openlineage: None, began, last_id: AtomicI64::new(0) })
    }

    /// Milliseconds since 1970; never goes back.
    pub fn now(&self) -> u64 {
        u64::try_from(self.instant().timestamp_millis()).unwrap_or_default()
    }

    fn instant(&self) -> DateTime<Utc> {
        let (wall, since) = self.began;
        wall + TimeDelta::from_std(since.elapsed()).unwrap_or_default()
    }

    /// A number that grows: microseconds and, behind them, three digits of the process' own.
    pub fn new_id(&self) -> String {
        let now = self.instant().timestamp_micros().saturating_mul(1000) + i64::from(std::process::id() % 1000);
        let next = |last: i64| Some(now.max(last + 1000));
        let last = self.last_id.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).unwrap_or_else(|last| last);
        next(last).unwrap_or(now).to_string()
    }

    /// The number of a resource of the bundle.
    pub fn id_of(&self, kind: &str, key: &str) -> String {
        record::stable_id(&[&self.read.bundle.name, &self.read.bundle.target, kind, key])
    }

    /// Runs a job to its end, or says why it did not begin.
    pub fn run<'b>(&'b self, asked: Asked<'b>) -> BoxFuture<'b, Result<Done, Failure>> {
        async move {
            let job_id = self.id_of("jobs", &asked.job.key);
            let run_id = self.new_id();
            let came = self.instant();
            let Some(mut slot) = self.let_in(&asked, &job_id).await? else { return Ok(self.skipped(&asked, job_id, run_id, came).await) };
            if let Some(killed) = slot.killed.take() {
                self.record(&self.killed(&asked, &job_id, killed)).await;
            }
            let started_at = self.instant();
            let trigger_type = asked.trigger_type.to_owned();
            let begun =
                Begun { run_id: run_id.clone(), started_at, trigger_type: trigger_type.clone(), parameters: asked.parameters.clone() };
            slot.begin(&begun).map_err(|source| io("holding the place of a run", source))?;
            let mut run = JobRun {
                job: record::definition(asked.job, &job_id),
                run_id,
                trigger_type,
                started_at,
                queued: (started_at - came).to_std().unwrap_or_default(),
                parameters: asked.parameters.clone(),
                ..JobRun::default()
            };
            let gone = self.tasks(&asked, &mut run).await;
            run.ended_at = self.instant();
            run.end = record::end(&gone);
            self.record(&run).await;
            slot.end().map_err(|source| io("giving back the place of a run", source))?;
            let done = Done {
                run_id: run.run_id.clone(),
                exit_code: gone.exit_code(),
                end: run.end.clone(),
                message: gone.message().filter(|_| gone.exit_code() != ExitCode::Done).map(str::to_owned),
                tasks: gone.ends.iter().map(|(key, end)| (key.clone(), record::word(*end))).collect(),
                millis: (run.ended_at - run.started_at).num_milliseconds(),
            };
            self.tell_end(&asked, &job_id, &done, gone.end);
            Ok(done)
        }
        .boxed()
    }

    /// A place for the run, now or when others have ended; none where it is skipped.
    async fn let_in(&self, asked: &Asked<'_>, job_id: &str) -> Result<Option<Slot>, Failure> {
        let slots = Slots::new(opened::folder(&self.loaded.settings.warehouse), job_id, asked.job.max_concurrent_runs);
        let came = Instant::now();
        let mut said = false;
        loop {
            if let Some(slot) = slots.take().map_err(|source| io("looking for a place for a run", source))? {
                return Ok(Some(slot));
            }
            let waits = admit(asked.job, u64::MAX) == Admission::Queue && came.elapsed() < QUEUE_MAX && !asked.cancel.is_cancelled();
            if !waits {
                return Ok(None);
            }
            if !said {
                said = true;
                self.teller
                    .say(json!({ "event": "job_queued", "job": asked.job.name }), &format!("{}  waits for other runs", asked.job.name));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = asked.cancel.cancelled() => {}
            }
        }
    }

    async fn tasks(&self, asked: &Asked<'_>, run: &mut JobRun) -> Gone {
        let job = asked.job;
        let about = About { job, job_id: &run.job.id, run_id: &run.run_id, task: None, message: None };
        let began =
            json!({ "event": "job_started", "job": job.name, "job_id": run.job.id, "run_id": run.run_id, "parameters": run.parameters });
        self.teller.say(began, &format!("{}  begins, run {}", job.name, run.run_id));
        self.teller.tell(Event::Start, about);
        let live =
            Live { session: self, job, job_id: &run.job.id, run_id: &run.run_id, parameters: &asked.parameters, made: Mutex::default() };
        let values = values(job, run);
        let tasks = Tasks { job, values, each: Vec::new(), at_once: usize::MAX, cancel: asked.cancel.clone() };
        let work = go(&live, tasks).boxed();
        let gone = match job.warn_after_seconds {
            None => work.await,
            Some(seconds) => match select(work, tokio::time::sleep(Duration::from_secs(seconds)).boxed()).await {
                Either::Left((gone, _)) => gone,
                Either::Right(((), work)) => {
                    let message = format!("the run takes longer than {seconds} s");
                    self.teller.tell(Event::Duration, About { message: Some(&message), ..about });
                    work.await
                }
            },
        };
        (run.tasks, run.updates) = live.made();
        gone
    }

    async fn skipped(&self, asked: &Asked<'_>, job_id: String, run_id: String, came: DateTime<Utc>) -> Done {
        let end = RunEnd::new("SKIPPED", "MAX_CONCURRENT_RUNS_EXCEEDED", "CLIENT_ERROR");
        let message = match asked.job.max_concurrent_runs {
            0 => "the job is never run: its max_concurrent_runs is 0".to_owned(),
            most => format!("{most} of the job's runs are active, and no more may be"),
        };
        let run = JobRun {
            job: record::definition(asked.job, &job_id),
            run_id: run_id.clone(),
            trigger_type: asked.trigger_type.to_owned(),
            started_at: came,
            ended_at: self.instant(),
            parameters: asked.parameters.clone(),
            end: end.clone(),
            ..JobRun::default()
        };
        self.record(&run).await;
        let exit_code = if asked.job.max_concurrent_runs == 0 { ExitCode::BadInput } else { ExitCode::Busy };
        let done = Done { run_id, exit_code, end, message: Some(message), tasks: Vec::new(), millis: 0 };
        if !asked.job.notifications.no_alert_for_skipped_runs {
            let message = done.message.as_deref();
            self.teller.tell(Event::Failure, About { job: asked.job, job_id: &job_id, run_id: &done.run_id, task: None, message });
        }
        self.say_end(asked.job, &done);
        done
    }

    /// A run that ended with its process, as its place tells.
    fn killed(&self, asked: &Asked<'_>, job_id: &str, begun: Begun) -> JobRun {
        JobRun {
            job: record::definition(asked.job, job_id),
            run_id: begun.run_id,
            trigger_type: begun.trigger_type,
            started_at: begun.started_at,
            ended_at: self.instant(),
            parameters: begun.parameters,
            end: RunEnd::new("ERROR", "INTERNAL_ERROR", "INTERNAL_ERROR"),
            ..JobRun::default()
        }
    }

    async fn record(&self, run: &JobRun) {
        if let Err(error) = self.lake.record_job_run(run).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "system.lakeflow was not written");
        }
    }

    fn tell_end(&self, asked: &Asked<'_>, job_id: &str, done: &Done, end: JobEnd) {
        let notifications = &asked.job.notifications;
        let event = match end {
            JobEnd::Success | JobEnd::SuccessWithFailures => Some(Event::Success),
            JobEnd::Canceled if notifications.no_alert_for_canceled_runs && done.end.result_state == "CANCELLED" => None,
            JobEnd::Failed | JobEnd::Canceled => Some(Event::Failure),
        };
        if let Some(event) = event {
            let message = done.message.as_deref();
            self.teller.tell(event, About { job: asked.job, job_id, run_id: &done.run_id, task: None, message });
        }
        self.say_end(asked.job, done);
    }

    fn say_end(&self, job: &Job, done: &Done) {
        let object = json!({
            "event": "job_finished",
            "job": job.name,
            "run_id": done.run_id,
            "result_state": done.end.result_state,
            "termination_code": done.end.termination_code,
            "tasks": done.tasks.iter().map(|(key, end)| json!({ "task": key, "end": end })).collect::<Vec<_>>(),
            "message": done.message,
            "millis": done.millis,
            "exit_code": done.exit_code.code(),
        });
        let why = done.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        self.teller.say(object, &format!("{}  {}, run {}, {} ms{why}", job.name, done.end.result_state, done.run_id, done.millis));
    }
}

/// What every task of a run knows.
fn values(job: &Job, run: &JobRun) -> RunValues {
    let at = run.started_at;
    let trigger = match run.trigger_type.as_str() {
        "ONETIME" => "one_time".to_owned(),
        other => other.to_lowercase(),
    };
    let mut values: RunValues = [
        ("job.id", run.job.id.clone()),
        ("job.name", job.name.clone()),
        ("job.run_id", run.run_id.clone()),
        ("job.repair_count", "0".to_owned()),
        ("job.trigger.type", trigger),
        ("job.start_time.iso_date", at.format("%Y-%m-%d").to_string()),
        ("job.start_time.iso_datetime", at.to_rfc3339_opts(SecondsFormat::Secs, true)),
        ("job.start_time.iso_weekday", at.weekday().number_from_monday().to_string()),
        ("job.start_time.is_weekday", (at.weekday().number_from_monday() < 6).to_string()),
        ("job.start_time.timestamp_ms", at.timestamp_millis().to_string()),
        ("job.start_time.year", at.year().to_string()),
        ("job.start_time.month", at.month().to_string()),
        ("job.start_time.day", at.day().to_string()),
        ("job.start_time.hour", at.hour().to_string()),
        ("job.start_time.minute", at.minute().to_string()),
        ("job.start_time.second", at.second().to_string()),
        ("workspace.id", "0".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    values.extend(run.parameters.iter().map(|(name, value)| (format!("job.parameters.{name}"), value.clone())));
    values
}

fn io(action: &str, source: std::io::Error) -> Failure {
    Error::Io { action: action.to_owned(), source }.into()
}
