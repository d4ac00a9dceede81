use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::poll_fn;

use super::*;

/// A world in which time stands still until everybody waits, and then goes on to the next instant that somebody waits for.
#[derive(Default)]
struct Still {
    now: AtomicU64,
    ids: AtomicU64,
    waiting: Mutex<BTreeMap<u64, Vec<Waker>>>,
    /// For each task how long its attempts take and how they end, in turn; the last goes on.
    script: BTreeMap<String, Vec<(u64, Outcome)>>,
    /// Tasks that take no notice of being asked to end.
    deaf: bool,
    /// When which attempt began.
    begun: Mutex<Vec<(u64, String, u64)>>,
    seen: Mutex<Vec<RunValues>>,
}

impl Host for Still {
    fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    fn sleep_until(&self, at: u64) -> BoxFuture<'_, ()> {
        poll_fn(move |context| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            self.waiting.lock().unwrap().entry(at).or_default().push(context.waker().clone());
            Poll::Pending
        })
        .boxed()
    }

    fn new_id(&self) -> String {
        self.ids.fetch_add(1, Ordering::SeqCst).to_string()
    }

    fn attempt<'a>(&'a self, attempt: Attempt<'a>) -> BoxFuture<'a, Ended> {
        async move {
            self.begun.lock().unwrap().push((self.now(), attempt.task.key.clone(), attempt.number));
            self.seen.lock().unwrap().push(attempt.values.clone());
            let script = self.script.get(&attempt.task.key).cloned().unwrap_or_default();
            let at = usize::try_from(attempt.number).unwrap().min(script.len().saturating_sub(1));
            let (takes, outcome) = script.get(at).cloned().unwrap_or((1, Outcome::Success(None)));
            let done = self.sleep_until(self.now() + takes);
            if self.deaf {
                done.await;
            } else {
                tokio::select! {
                    () = done => {}
                    () = attempt.cancel.cancelled() => return Ended { outcome: Outcome::Canceled, ..Ended::well() },
                }
            }
            match outcome {
                Outcome::Failed => Ended::failed(ExitCode::Expectation, "a rule"),
                outcome => Ended { outcome, values: [("values.n".to_owned(), takes.to_string())].into(), ..Ended::well() },
            }
        }
        .boxed()
    }
}

/// Whether somebody has something to do before time goes on.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Still {
    fn with(script: &[(&str, &[(u64, Outcome)])]) -> Self {
        Self { script: script.iter().map(|(key, turns)| ((*key).to_owned(), turns.to_vec())).collect(), ..Self::default() }
    }

    /// Runs a future to its end; panics where it waits for nothing.
    fn drive<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        loop {
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return done;
            }
            if woken.0.swap(false, Ordering::SeqCst) {
                continue;
            }
            let next = self.waiting.lock().unwrap().pop_first();
            let (at, wakers) = next.expect("somebody waits for an instant");
            self.now.fetch_max(at, Ordering::SeqCst);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    fn begun(&self) -> Vec<(u64, String, u64)> {
        self.begun.lock().unwrap().clone()
    }
}

/// The job of a bundle with these tasks.
fn job(settings: &str, tasks: &str) -> Job {
    let folder = tempfile::tempdir().unwrap();
    let tasks: String =
        tasks.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("        - {{{line}}}\n")).collect();
    let text = format!("bundle: {{name: t}}\nresources:\n  jobs:\n    j:\n      name: j\n{settings}      tasks:\n{tasks}");
    std::fs::write(folder.path().join("databricks.yml"), text).unwrap();
    let loaded = tributary_bundle::load(folder.path(), None, &BTreeMap::new());
    assert!(loaded.is_sound(), "{:?}", loaded.faults);
    loaded.bundle.jobs["j"].clone()
}

const NOTHING: &str = "condition_task: {op: EQUAL_TO, left: a, right: a}";

fn tasks(job: &Job) -> Tasks<'_> {
    Tasks { job, values: RunValues::new(), each: Vec::new(), at_once: 100, cancel: CancellationToken::new() }
}

#[test]
fn a_failed_attempt_is_tried_again_after_the_interval_counted_from_its_start() {
    let job = job("", &format!("task_key: a, max_retries: 2, min_retry_interval_millis: 1000, {NOTHING}"));
    let still = Still::with(&[("a", &[(300, Outcome::Failed), (1500, Outcome::Failed), (10, Outcome::Success(None))])]);
    let gone = still.drive(go(&still, tasks(&job)));
    let begun: Vec<(u64, u64)> = still.begun().into_iter().map(|(at, _, number)| (at, number)).collect();
    assert_eq!(begun, [(0, 0), (1000, 1), (2500, 2)]);
    assert_eq!((gone.end, gone.exit_code()), (JobEnd::Success, ExitCode::Done));
    assert_eq!(gone.attempts.iter().map(|attempt| attempt.run_id.as_str()).collect::<Vec<_>>(), ["0", "1", "2"]);
}

#[test]
fn retries_end_and_the_jobs_exit_code_is_that_of_the_last_failure() {
    let job = job("", &format!("task_key: a, max_retries: 1, {NOTHING}"));
    let still = Still::with(&[("a", &[(5, Outcome::Failed)])]);
    let gone = still.drive(go(&still, tasks(&job)));
    assert_eq!((gone.attempts.len(), gone.end, gone.exit_code()), (2, JobEnd::Failed, ExitCode::Expectation));
    assert_eq!(gone.message(), Some("a rule"));
}

#[test]
fn an_attempt_that_takes_too_long_is_ended_and_tried_again_only_where_that_is_said() {
    for (retry, attempts) in [("", 1), (", retry_on_timeout: true", 3)] {
        let job = job("", &format!("task_key: a, max_retries: 2, timeout_seconds: 2{retry}, {NOTHING}"));
        let still = Still::with(&[("a", &[(60_000, Outcome::Success(None))])]);
        let gone = still.drive(go(&still, tasks(&job)));
        assert_eq!(gone.attempts.len(), attempts, "{retry}");
        assert!(gone.attempts.iter().all(|attempt| attempt.how.outcome == Outcome::TimedOut && attempt.ended - attempt.started == 2000));
        assert_eq!((gone.end, gone.exit_code()), (JobEnd::Failed, ExitCode::Failed));
    }
}

#[test]
fn an_attempt_that_does_not_end_when_asked_is_given_up() {
    let job = job("", &format!("task_key: a, timeout_seconds: 2, {NOTHING}"));
    let still = Still { deaf: true, ..Still::with(&[("a", &[(600_000, Outcome::Success(None))])]) };
    let gone = still.drive(go(&still, tasks(&job)));
    assert_eq!(gone.attempts[0].ended, 2000 + GRACE_MILLIS);
}

#[test]
fn a_job_that_takes_too_long_ends_what_runs_and_starts_nothing_more() {
    let job = job("      timeout_seconds: 3\n", &format!("task_key: a, {NOTHING}\ntask_key: b, depends_on: [{{task_key: a}}], {NOTHING}"));
    for deaf in [false, true] {
        let still = Still { deaf, ..Still::with(&[("a", &[(600_000, Outcome::Success(None))])]) };
        let gone = still.drive(go(&still, tasks(&job)));
        assert!(gone.timed_out && gone.end == JobEnd::Canceled && gone.exit_code() == ExitCode::Failed);
        assert_eq!(still.begun().len(), 1);
        assert_eq!(still.now(), if deaf { 3000 + GRACE_MILLIS } else { 3000 });
    }
}

#[test]
fn a_cancelled_run_ends_with_part_of_the_work_left() {
    let job = job("", &format!("task_key: a, max_retries: 5, {NOTHING}"));
    let still = Still::with(&[("a", &[(600_000, Outcome::Success(None))])]);
    let tasks = tasks(&job);
    let cancel = tasks.cancel.clone();
    let stop = async {
        still.sleep_until(50).await;
        cancel.cancel();
    };
    let (gone, ()) = still.drive(futures::future::join(go(&still, tasks), stop));
    assert_eq!((gone.end, gone.exit_code(), gone.attempts.len()), (JobEnd::Canceled, ExitCode::Partial, 1));
}

#[test]
fn each_run_if_starts_a_task_or_leaves_it_out() {
    for (run_if, fails, runs, end) in [
        ("ALL_SUCCESS", "", true, JobEnd::Success),
        ("ALL_SUCCESS", "a", false, JobEnd::Failed),
        ("ALL_DONE", "ab", true, JobEnd::SuccessWithFailures),
        ("NONE_FAILED", "", true, JobEnd::Success),
        ("NONE_FAILED", "b", false, JobEnd::Failed),
        ("AT_LEAST_ONE_SUCCESS", "a", true, JobEnd::SuccessWithFailures),
        ("AT_LEAST_ONE_SUCCESS", "ab", false, JobEnd::Failed),
        ("AT_LEAST_ONE_FAILED", "a", true, JobEnd::SuccessWithFailures),
        ("AT_LEAST_ONE_FAILED", "", false, JobEnd::Success),
        ("ALL_FAILED", "ab", true, JobEnd::SuccessWithFailures),
        ("ALL_FAILED", "a", false, JobEnd::SuccessWithFailures),
    ] {
        let after = "depends_on: [{task_key: a}, {task_key: b}]";
        let job = job("", &format!("task_key: a, {NOTHING}\ntask_key: b, {NOTHING}\ntask_key: c, {after}, run_if: {run_if}, {NOTHING}"));
        let outcome = |key: &str| if fails.contains(key) { Outcome::Failed } else { Outcome::Success(None) };
        let still = Still::with(&[("a", &[(1, outcome("a"))]), ("b", &[(2, outcome("b"))])]);
        let gone = still.drive(go(&still, tasks(&job)));
        let ran = still.begun().iter().any(|(_, key, _)| key == "c");
        assert_eq!((ran, gone.end), (runs, end), "{run_if} after failures of {fails:?}");
    }
}

#[test]
fn a_branch_that_is_not_taken_is_left_out() {
    let branch =
        |key: &str, outcome: &str| format!("task_key: {key}, depends_on: [{{task_key: check, outcome: \"{outcome}\"}}], {NOTHING}\n");
    let job = job("", &format!("task_key: check, {NOTHING}\n{}{}", branch("no", "false"), branch("yes", "true")));
    let still = Still::with(&[("check", &[(1, Outcome::Success(Some(true)))])]);
    let gone = still.drive(go(&still, tasks(&job)));
    assert_eq!(gone.ends, [("check".to_owned(), End::Success), ("no".to_owned(), End::Excluded), ("yes".to_owned(), End::Success)]);
    assert_eq!(gone.end, JobEnd::Success);
}

#[test]
fn a_task_knows_its_own_values_those_of_the_job_and_of_tasks_before_it() {
    let job = job("", &format!("task_key: a, {NOTHING}\ntask_key: b, depends_on: [{{task_key: a}}], {NOTHING}"));
    let still = Still::with(&[("a", &[(7, Outcome::Success(None))])]);
    let values = RunValues::from([("job.parameters.day".to_owned(), "monday".to_owned())]);
    let each = vec![RunValues::new(), RunValues::from([("input".to_owned(), "eu".to_owned())])];
    still.drive(go(&still, Tasks { values, each, ..tasks(&job) }));
    let seen = still.seen.lock().unwrap()[1].clone();
    for (name, value) in [
        ("job.parameters.day", "monday"),
        ("input", "eu"),
        ("task.name", "b"),
        ("task.run_id", "1"),
        ("tasks.a.result_state", "success"),
        ("tasks.a.run_id", "0"),
        ("tasks.a.values.n", "7"),
    ] {
        assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn no_more_tasks_run_at_once_than_may() {
    let job = job("", &(0..5).map(|at| format!("task_key: t{at}, {NOTHING}\n")).collect::<String>());
    let script: Vec<(String, Vec<(u64, Outcome)>)> = (0..5).map(|at| (format!("t{at}"), vec![(10, Outcome::Success(None))])).collect();
    let still = Still { script: script.into_iter().collect(), ..Still::default() };
    still.drive(go(&still, Tasks { at_once: 2, ..tasks(&job) }));
    assert_eq!(still.begun().into_iter().map(|(at, _, _)| at).collect::<Vec<_>>(), [0, 0, 10, 10, 20]);
}
