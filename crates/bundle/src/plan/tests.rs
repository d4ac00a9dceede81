use super::*;
use crate::job::{Action, Dependency, Notifications, Retries};

/// Tasks as `key: after, after=true | run_if`, one a line.
fn job(lines: &str) -> Job {
    let task = |line: &str| {
        let (line, run_if) = line.split_once('|').unwrap_or((line, ""));
        let (key, after) = line.split_once(':').unwrap_or((line, ""));
        let depends_on = after.split(',').map(str::trim).filter(|name| !name.is_empty()).map(|name| match name.split_once('=') {
            Some((task, outcome)) => Dependency { task: task.to_owned(), outcome: Some(outcome.to_owned()) },
            None => Dependency { task: name.to_owned(), outcome: None },
        });
        Task {
            key: key.trim().to_owned(),
            place: None,
            description: None,
            depends_on: depends_on.collect(),
            run_if: match run_if.trim() {
                "ALL_DONE" => RunIf::AllDone,
                "NONE_FAILED" => RunIf::NoneFailed,
                "AT_LEAST_ONE_SUCCESS" => RunIf::AtLeastOneSuccess,
                "AT_LEAST_ONE_FAILED" => RunIf::AtLeastOneFailed,
                "ALL_FAILED" => RunIf::AllFailed,
                _ => RunIf::AllSuccess,
            },
            retries: Retries { max: Some(0), ..Retries::default() },
            timeout_seconds: 0,
            disabled: false,
            notifications: Notifications::default(),
            action: Action::Other { task_kind: "notebook_task".to_owned(), body: serde_json::Value::Null },
        }
    };
    Job {
        key: "j".to_owned(),
        name: "j".to_owned(),
        description: None,
        parameters: BTreeMap::new(),
        tasks: lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(task).collect(),
        max_concurrent_runs: 1,
        queue: false,
        timeout_seconds: 0,
        schedule: None,
        trigger: None,
        continuous: false,
        notifications: Notifications::default(),
        tags: BTreeMap::new(),
        run_as: None,
        warn_after_seconds: None,
    }
}

/// Runs a job to its end; what is not in `outcomes` succeeds. Gives the ends by key, the order of starts, and what the job comes to.
fn run(job: &Job, outcomes: &[(&str, Outcome)]) -> (BTreeMap<String, End>, Vec<String>, JobEnd) {
    let mut run = Run::new(job);
    let mut order = Vec::new();
    let mut now = 0;
    while run.end().is_none() {
        let ready = run.ready(now);
        assert!(!ready.is_empty() || run.next_ready_at().is_some(), "a run that has not ended goes on");
        now = ready.is_empty().then(|| run.next_ready_at()).flatten().unwrap_or(now);
        for start in ready {
            run.started(start, now);
            let key = &job.tasks[start.task].key;
            order.push(key.clone());
            let outcome = outcomes.iter().find(|(name, _)| name == key).map(|(_, outcome)| outcome.clone());
            now += 1;
            run.ended(start.task, &outcome.unwrap_or(Outcome::Success(None)), now);
        }
    }
    let ends = job.tasks.iter().enumerate().map(|(at, task)| (task.key.clone(), run.end_of(at).unwrap()));
    (ends.collect(), order, run.end().unwrap())
}

#[test]
fn tasks_start_after_what_they_depend_on() {
    let job = job("d: b, c\n c: a\n b: a\n a:");
    let (_, order, end) = run(&job, &[]);
    assert_eq!(order, ["a", "c", "b", "d"]);
    assert_eq!(end, JobEnd::Success);
}

#[test]
fn run_if_decides_by_how_the_direct_dependencies_ended() {
    use End::{Canceled, Excluded, Failed, Success, UpstreamCanceled, UpstreamFailed};
    let outcome = |end: End| match end {
        Failed => Outcome::Failed,
        Canceled => Outcome::Canceled,
        _ => Outcome::Success(None),
    };
    for (run_if, a, b, expected) in [
        ("ALL_SUCCESS", Success, Success, Success),
        ("ALL_SUCCESS", Success, Failed, UpstreamFailed),
        ("ALL_SUCCESS", Success, Canceled, UpstreamCanceled),
        ("ALL_SUCCESS", Failed, Canceled, UpstreamFailed),
        ("ALL_DONE", Failed, Canceled, Success),
        ("ALL_DONE", Success, Success, Success),
        ("NONE_FAILED", Success, Success, Success),
        ("NONE_FAILED", Success, Failed, UpstreamFailed),
        ("NONE_FAILED", Success, Canceled, UpstreamCanceled),
        ("AT_LEAST_ONE_SUCCESS", Success, Failed, Success),
        ("AT_LEAST_ONE_SUCCESS", Failed, Failed, UpstreamFailed),
        ("AT_LEAST_ONE_FAILED", Success, Failed, Success),
        ("AT_LEAST_ONE_FAILED", Success, Success, Excluded),
        ("ALL_FAILED", Failed, Failed, Success),
        ("ALL_FAILED", Success, Failed, Excluded),
    ] {
        let job = job(&format!("a:\n b:\n c: a, b | {run_if}"));
        let (ends, _, _) = run(&job, &[("a", outcome(a)), ("b", outcome(b))]);
        assert_eq!(ends["c"], expected, "{run_if} after {a:?} and {b:?}");
    }
}

#[test]
fn the_job_follows_the_tasks_that_nothing_depends_on() {
    for (lines, failing, expected) in [
        ("a:\n b: a", "", JobEnd::Success),
        ("a:\n b: a", "a", JobEnd::Failed),
        ("a:\n b: a", "b", JobEnd::Failed),
        ("a:\n b: a | ALL_DONE", "a", JobEnd::SuccessWithFailures),
        ("a:\n b: a | AT_LEAST_ONE_FAILED", "", JobEnd::Success),
        ("a:\n b: a | AT_LEAST_ONE_FAILED\n c: a", "a", JobEnd::Failed),
        ("", "", JobEnd::Success),
    ] {
        let job = job(lines);
        let (_, _, end) = run(&job, &[(failing, Outcome::Failed)]);
        assert_eq!(end, expected, "{lines} with {failing:?} failing");
    }
    let job = job("a:\n b: a");
    assert_eq!(run(&job, &[("b", Outcome::Canceled)]).2, JobEnd::Canceled);
}

#[test]
fn a_condition_takes_one_branch_and_excludes_the_other() {
    let job = job("c:\n yes: c=true\n no: c=false\n after: yes\n other: no\n both: yes, no | NONE_FAILED\n all: yes, no");
    let (ends, _, end) = run(&job, &[("c", Outcome::Success(Some(true)))]);
    assert_eq!((ends["yes"], ends["no"]), (End::Success, End::Excluded));
    assert_eq!((ends["after"], ends["other"]), (End::Success, End::Excluded));
    assert_eq!((ends["both"], ends["all"]), (End::Success, End::Success), "what is excluded counts as neither");
    assert_eq!(end, JobEnd::Success);
    let (ends, _, end) = run(&job, &[("c", Outcome::Failed)]);
    assert_eq!((ends["yes"], ends["no"], end), (End::UpstreamFailed, End::UpstreamFailed, JobEnd::Failed));
}

#[test]
fn a_failure_is_tried_again_as_often_as_it_may_and_not_too_soon() {
    let mut job = job("a:");
    job.tasks[0].retries = Retries { max: Some(2), min_interval_millis: 100, on_timeout: false };
    let mut run = Run::new(&job);
    run.started(Start { task: 0, attempt: 0 }, 0);
    run.ended(0, &Outcome::Failed, 30);
    assert_eq!((run.ready(99), run.next_ready_at()), (vec![], Some(100)), "the wait counts from the start of the attempt");
    assert_eq!(run.ready(100), [Start { task: 0, attempt: 1 }]);
    run.started(Start { task: 0, attempt: 1 }, 110);
    run.ended(0, &Outcome::Failed, 500);
    assert_eq!(run.ready(500), [Start { task: 0, attempt: 2 }], "an attempt that took longer than the wait is followed at once");
    run.started(Start { task: 0, attempt: 2 }, 500);
    run.ended(0, &Outcome::Failed, 501);
    assert_eq!((run.end_of(0), run.end()), (Some(End::Failed), Some(JobEnd::Failed)));
}

#[test]
fn what_took_too_long_is_tried_again_only_where_that_is_said() {
    for (on_timeout, expected) in [(false, Some(End::TimedOut)), (true, None)] {
        let mut job = job("a:");
        job.tasks[0].retries = Retries { max: Some(1), min_interval_millis: 0, on_timeout };
        let mut run = Run::new(&job);
        run.started(Start { task: 0, attempt: 0 }, 0);
        run.ended(0, &Outcome::TimedOut, 10);
        assert_eq!(run.end_of(0), expected);
    }
}

#[test]
fn retries_without_end_go_on() {
    let mut job = job("a:");
    job.tasks[0].retries = Retries { max: None, ..Retries::default() };
    let mut run = Run::new(&job);
    for attempt in 0..1_000 {
        assert_eq!(run.ready(attempt), [Start { task: 0, attempt }]);
        run.started(Start { task: 0, attempt }, attempt);
        run.ended(0, &Outcome::Failed, attempt + 1);
    }
    assert_eq!(run.end(), None);
}

#[test]
fn a_disabled_task_is_as_if_it_were_not_there() {
    let mut job = job("a:\n b: a\n c: b | ALL_DONE\n d: a, b");
    job.tasks[1].disabled = true;
    let (ends, order, end) = run(&job, &[]);
    assert_eq!(ends["b"], End::Disabled);
    assert_eq!(order, ["a", "c", "d"]);
    assert_eq!(end, JobEnd::Success);
}

#[test]
fn cancelling_ends_everything_and_names_what_runs() {
    let job = job("a:\n b:\n c: a");
    let mut run = Run::new(&job);
    run.started(Start { task: 0, attempt: 0 }, 0);
    assert_eq!(run.cancel(), [0]);
    assert_eq!(run.end(), Some(JobEnd::Canceled));
    run.ended(0, &Outcome::Success(None), 5);
    assert_eq!(run.end_of(0), Some(End::Canceled), "what ends later changes nothing");
}

#[test]
fn a_run_beyond_the_most_waits_or_is_skipped() {
    let mut job = job("a:");
    for (most, queue, active, expected) in [
        (1, false, 0, Admission::Run),
        (1, false, 1, Admission::Skip),
        (1, true, 1, Admission::Queue),
        (3, false, 2, Admission::Run),
        (3, true, 3, Admission::Queue),
        (0, false, 0, Admission::Skip),
        (0, true, 0, Admission::Skip),
    ] {
        (job.max_concurrent_runs, job.queue) = (most, queue);
        assert_eq!(admit(&job, active), expected, "{most} {queue} {active}");
    }
}

mod laws {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn law_every_run_of_every_graph_ends_and_starts_no_task_early(
            edges in proptest::collection::vec((0usize..8, 0usize..8), 0..16),
            run_ifs in proptest::collection::vec(0usize..6, 8),
            outcomes in proptest::collection::vec(0usize..4, 8),
        ) {
            let words = ["ALL_SUCCESS", "ALL_DONE", "NONE_FAILED", "AT_LEAST_ONE_SUCCESS", "AT_LEAST_ONE_FAILED", "ALL_FAILED"];
            let lines: Vec<String> = (0..8).map(|task| {
                // Only on tasks before it: no circle.
                let after: Vec<String> = edges.iter().filter(|(from, to)| *from == task && to < from).map(|(_, to)| format!("t{to}")).collect();
                format!("t{task}: {} | {}", after.join(", "), words[run_ifs[task]])
            }).collect();
            let job = job(&lines.join("\n"));
            let outcome = |at: usize| [Outcome::Success(None), Outcome::Failed, Outcome::TimedOut, Outcome::Canceled][outcomes[at]].clone();
            let names: Vec<String> = (0..8).map(|at| format!("t{at}")).collect();
            let given: Vec<(&str, Outcome)> = names.iter().enumerate().map(|(at, name)| (name.as_str(), outcome(at))).collect();
            let (ends, order, _) = run(&job, &given);
            prop_assert_eq!(ends.len(), 8);
            for (at, key) in order.iter().enumerate() {
                let task = job.tasks.iter().find(|task| task.key == *key).unwrap();
                for on in &task.depends_on {
                    let started = order.iter().position(|other| *other == on.task);
                    prop_assert!(started.is_none_or(|started| started < at), "{} started before {}", key, on.task);
                }
            }
        }
    }
}
