//! When which piece of work of a continuous run is due. Pure: the time comes in.
//!
//! - Feeds are due every `every`; so is what failed and may go well the next time, each time after a longer wait.
//! - A silver or gold dataset is due when a table it reads has moved, not sooner than `every` after its last start, and without
//!   waiting for anything it does not read. All tables it reads that the pipeline makes must be there.
//! - To be safe against moves that nobody told of (a table restored or made anew), each is due once a [`RECHECK`].
//! - A dataset that only a person can mend is stopped, and so is whatever reads it; the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tributary_fault::ExitCode;
use tributary_specs::{DatasetReport, Status, TableName};

use super::work::{Moved, Work};

/// How long a silver or gold dataset is believed to have nothing to do.
const RECHECK: Duration = Duration::from_secs(60);
/// The shortest and the longest first wait after a failure.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What became of a dataset in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Well,
    /// It failed; trying again may help.
    Retry,
    /// It failed, and only a person can mend it.
    Stop,
}

impl Outcome {
    /// What a dataset's report asks for. What broke off because the run was `told_to_end` is no failure: the next run does it.
    pub(super) fn of(report: &DatasetReport, told_to_end: bool) -> Self {
        let exit_code = report.error.as_ref().and_then(|error| ExitCode::from_code(error.exit_code));
        match (report.status, exit_code) {
            (Status::Failed, Some(ExitCode::BadInput | ExitCode::Expectation | ExitCode::Bug)) => Self::Stop,
            (Status::Failed, None | Some(ExitCode::Done | ExitCode::Failed | ExitCode::Partial | ExitCode::Busy)) if told_to_end => {
                Self::Well
            }
            (Status::Failed, None | Some(ExitCode::Done | ExitCode::Failed | ExitCode::Partial | ExitCode::Busy)) => Self::Retry,
            (Status::NothingNew | Status::Committed | Status::Skipped, _) => Self::Well,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Well,
    Waiting { failures: u32, until: Instant },
    Stopped,
}

#[derive(Debug)]
struct Dataset {
    table: TableName,
    state: State,
}

#[derive(Debug)]
struct Planned {
    work: Work,
    datasets: Vec<Dataset>,
    sources: Vec<TableName>,
    running: bool,
    started: Option<Instant>,
    /// The versions of its sources when it last began.
    seen: BTreeMap<TableName, u64>,
}

/// A piece of work that begins now, with the datasets of it that are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    pub index: usize,
    pub work: Work,
    pub tables: Vec<TableName>,
}

/// What follows from an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Consequence {
    /// The dataset is tried again.
    Wait { table: TableName, failures: u32, after: Duration },
    /// The dataset is not run any more, because of itself or of a table it reads.
    Stop { table: TableName, because_of: TableName },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Schedule {
    begun: Instant,
    every: Duration,
    works: Vec<Planned>,
    /// Tables that datasets of the pipeline make, chosen or not.
    made: BTreeSet<TableName>,
    versions: BTreeMap<TableName, u64>,
}

impl Schedule {
    /// `works` with their tables and what they read, in the order of the phases.
    pub(super) fn new(
        begun: Instant,
        every: Duration,
        works: Vec<(Work, Vec<TableName>, Vec<TableName>)>,
        made: BTreeSet<TableName>,
    ) -> Self {
        let works = works.into_iter().map(|(work, tables, sources)| Planned {
            work,
            datasets: tables.into_iter().map(|table| Dataset { table, state: State::Well }).collect(),
            sources,
            running: false,
            started: None,
            seen: BTreeMap::new(),
        });
        Self { begun, every, works: works.collect(), made, versions: BTreeMap::new() }
    }

    /// Tables that something still going on reads, with the versions known.
    pub(super) fn watched(&self) -> BTreeMap<TableName, Option<u64>> {
        let going = self.works.iter().filter(|work| work.goes_on());
        going.flat_map(|work| &work.sources).map(|table| (table.clone(), self.versions.get(table).copied())).collect()
    }

    /// A table has a version. Whether that was news.
    pub(super) fn moved(&mut self, (table, version): &Moved) -> bool {
        let known = self.versions.get(table).copied();
        if known.is_none_or(|known| known < *version) {
            self.versions.insert(table.clone(), *version);
        }
        known.is_none_or(|known| known < *version)
    }

    /// What begins now; it counts as running from here on.
    pub(super) fn start(&mut self, now: Instant) -> Vec<Start> {
        let due: Vec<usize> =
            (0..self.works.len()).filter(|index| self.due_at(&self.works[*index]).is_some_and(|due| due <= now)).collect();
        let mut starts = Vec::new();
        for index in due {
            let (versions, begun) = (&self.versions, self.begun);
            let planned = &mut self.works[index];
            planned.running = true;
            planned.started = Some(now);
            planned.seen = planned.sources.iter().filter_map(|source| Some((source.clone(), *versions.get(source)?))).collect();
            let tables = planned.datasets.iter().filter(|dataset| dataset.ready_at(begun).is_some_and(|ready| ready <= now));
            let tables = tables.map(|dataset| dataset.table.clone()).collect();
            starts.push(Start { index, work: planned.work.clone(), tables });
        }
        starts
    }

    /// When the next piece of work is due; none while that depends on others.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.works.iter().filter_map(|work| self.due_at(work)).min()
    }

    /// When a piece of work is due: none while it runs, is stopped, or waits for tables.
    fn due_at(&self, work: &Planned) -> Option<Instant> {
        if work.running {
            return None;
        }
        let ready = work.datasets.iter().filter_map(|dataset| dataset.ready_at(self.begun)).min()?;
        let Some(started) = work.started else {
            let there = work.sources.iter().all(|source| self.versions.contains_key(source) || !self.made.contains(source));
            return there.then_some(ready);
        };
        let earliest = started + self.every;
        let failing = work.datasets.iter().any(|dataset| matches!(dataset.state, State::Waiting { .. }));
        let moved = work.sources.iter().any(|source| self.versions.get(source) != work.seen.get(source));
        let wanted = if work.sources.is_empty() || moved || failing { earliest } else { started + self.every.max(RECHECK) };
        Some(wanted.max(ready))
    }

    /// A piece of work has ended with an outcome for each of its datasets that were run.
    pub(super) fn ended(&mut self, index: usize, outcomes: &[(TableName, Outcome)], now: Instant) -> Vec<Consequence> {
        let (shortest, longest) = (self.every.max(WAIT_MIN), self.every.max(WAIT_MAX));
        let mut consequences = Vec::new();
        let mut stopped = Vec::new();
        let planned = &mut self.works[index];
        planned.running = false;
        for dataset in &mut planned.datasets {
            let Some((_, outcome)) = outcomes.iter().find(|(table, _)| *table == dataset.table) else { continue };
            // what it reads may have stopped it while it ran
            if dataset.state == State::Stopped {
                continue;
            }
            dataset.state = match outcome {
                Outcome::Well => State::Well,
                Outcome::Stop => {
                    stopped.push(dataset.table.clone());
                    State::Stopped
                }
                Outcome::Retry => {
                    let failures = dataset.state.failures() + 1;
                    let after = shortest.saturating_mul(1 << (failures - 1).min(16)).min(longest);
                    consequences.push(Consequence::Wait { table: dataset.table.clone(), failures, after });
                    State::Waiting { failures, until: now + after }
                }
            };
        }
        for table in stopped {
            consequences.push(Consequence::Stop { table: table.clone(), because_of: table.clone() });
            self.stop_readers(&table, &mut consequences);
        }
        consequences
    }

    fn stop_readers(&mut self, of: &TableName, consequences: &mut Vec<Consequence>) {
        let mut readers = Vec::new();
        for work in self.works.iter_mut().filter(|work| work.sources.contains(of)) {
            for dataset in work.datasets.iter_mut().filter(|dataset| dataset.state != State::Stopped) {
                dataset.state = State::Stopped;
                readers.push(dataset.table.clone());
            }
        }
        for reader in readers {
            consequences.push(Consequence::Stop { table: reader.clone(), because_of: of.clone() });
            self.stop_readers(&reader, consequences);
        }
    }

    /// Whether nothing will ever be due again.
    pub(super) fn is_over(&self) -> bool {
        self.works.iter().all(|work| !work.running && !work.goes_on())
    }
}

impl Planned {
    fn goes_on(&self) -> bool {
        self.datasets.iter().any(|dataset| dataset.state != State::Stopped)
    }
}

impl Dataset {
    /// When it may be run, as far as its own past goes: none when it is stopped.
    fn ready_at(&self, begun: Instant) -> Option<Instant> {
        match self.state {
            State::Well => Some(begun),
            State::Waiting { until, .. } => Some(until),
            State::Stopped => None,
        }
    }
}

impl State {
    fn failures(self) -> u32 {
        match self {
            Self::Waiting { failures, .. } => failures,
            Self::Well | Self::Stopped => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use tributary_specs::ReportedError;

    use super::*;

    const EVERY: Duration = Duration::from_secs(5);

    fn table(name: &str) -> TableName {
        name.parse().unwrap()
    }

    /// Two feeds, a silver table over each, and a view over both.
    fn shop() -> (Schedule, Instant) {
        let now = Instant::now();
        let names = |names: &[&str]| names.iter().map(|name| table(name)).collect::<Vec<_>>();
        let works = vec![
            (Work::Feeds(vec![0]), names(&["bronze.a"]), vec![]),
            (Work::Feeds(vec![1]), names(&["bronze.b"]), vec![]),
            (Work::Silver(0), names(&["silver.a"]), names(&["bronze.a"])),
            (Work::Silver(1), names(&["silver.b"]), names(&["bronze.b"])),
            (Work::Gold(0), names(&["gold.ab"]), names(&["silver.a", "silver.b"])),
        ];
        let made = works.iter().flat_map(|(_, tables, _)| tables.clone()).collect();
        (Schedule::new(now, EVERY, works, made), now)
    }

    fn started(schedule: &mut Schedule, now: Instant) -> Vec<String> {
        schedule.start(now).iter().flat_map(|start| start.tables.iter().map(ToString::to_string)).collect()
    }

    fn well(schedule: &mut Schedule, index: usize, name: &str, now: Instant) {
        assert!(schedule.ended(index, &[(table(name), Outcome::Well)], now).is_empty());
    }

    #[test]
    fn what_a_retry_may_help_is_tried_again_unless_the_run_was_told_to_end_and_what_a_person_must_mend_stops() {
        let failed = |exit_code: ExitCode| DatasetReport {
            status: Status::Failed,
            error: Some(ReportedError { code: "LK0001".into(), message: "away".into(), exit_code: exit_code.code() }),
            ..DatasetReport::default()
        };
        for (exit_code, while_it_goes_on, at_its_end) in [
            (ExitCode::Failed, Outcome::Retry, Outcome::Well),
            (ExitCode::Busy, Outcome::Retry, Outcome::Well),
            (ExitCode::BadInput, Outcome::Stop, Outcome::Stop),
            (ExitCode::Expectation, Outcome::Stop, Outcome::Stop),
            (ExitCode::Bug, Outcome::Stop, Outcome::Stop),
        ] {
            let report = failed(exit_code);
            assert_eq!((Outcome::of(&report, false), Outcome::of(&report, true)), (while_it_goes_on, at_its_end), "{exit_code:?}");
        }
        assert_eq!(Outcome::of(&DatasetReport::default(), false), Outcome::Well);
    }

    #[test]
    fn each_dataset_begins_as_soon_as_what_it_reads_is_there_and_waits_for_nothing_else() {
        let (mut schedule, now) = shop();
        assert_eq!(started(&mut schedule, now), ["bronze.a", "bronze.b"]);
        schedule.moved(&(table("bronze.a"), 0));
        assert_eq!(started(&mut schedule, now), ["silver.a"], "bronze.b is still at work");
        well(&mut schedule, 2, "silver.a", now);
        schedule.moved(&(table("silver.a"), 0));
        assert_eq!(started(&mut schedule, now), Vec::<String>::new(), "the view reads a table that is not there yet");
        schedule.moved(&(table("silver.b"), 3));
        assert_eq!(started(&mut schedule, now), ["silver.b", "gold.ab"][1..]);
    }

    #[test]
    fn what_has_moved_is_read_again_but_not_sooner_than_the_interval() {
        let (mut schedule, now) = shop();
        schedule.moved(&(table("bronze.a"), 0));
        started(&mut schedule, now);
        for (index, name) in [(0, "bronze.a"), (1, "bronze.b"), (2, "silver.a")] {
            well(&mut schedule, index, name, now);
        }
        assert!(schedule.moved(&(table("bronze.a"), 1)) && !schedule.moved(&(table("bronze.a"), 1)));
        let almost = now + EVERY - Duration::from_millis(1);
        assert_eq!(started(&mut schedule, almost), Vec::<String>::new());
        assert_eq!(schedule.wake_at(), Some(now + EVERY));
        assert_eq!(started(&mut schedule, now + EVERY), ["bronze.a", "bronze.b", "silver.a"]);
    }

    #[test]
    fn an_idle_dataset_is_left_alone_for_a_minute() {
        let (mut schedule, now) = shop();
        schedule.moved(&(table("bronze.a"), 0));
        started(&mut schedule, now);
        well(&mut schedule, 2, "silver.a", now);
        let start = |schedule: &mut Schedule, after| started(schedule, now + Duration::from_secs(after));
        assert_eq!(start(&mut schedule, 59), Vec::<String>::new());
        assert_eq!(start(&mut schedule, 60), ["silver.a"]);
    }

    #[test]
    fn a_failing_dataset_is_tried_after_longer_and_longer_waits_while_the_others_go_on() {
        let (mut schedule, mut now) = shop();
        schedule.moved(&(table("bronze.a"), 0));
        let mut waits = Vec::new();
        for _ in 0..6 {
            let begun = started(&mut schedule, now);
            assert!(begun.contains(&"silver.a".to_owned()), "{begun:?}");
            let consequences = schedule.ended(2, &[(table("silver.a"), Outcome::Retry)], now);
            let Consequence::Wait { after, .. } = consequences[0] else { panic!("{consequences:?}") };
            waits.push(after.as_secs());
            for (index, name) in [(0, "bronze.a"), (1, "bronze.b")] {
                well(&mut schedule, index, name, now);
            }
            now += after;
        }
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
        started(&mut schedule, now);
        well(&mut schedule, 2, "silver.a", now);
        assert_eq!(
            schedule.ended(2, &[(table("silver.a"), Outcome::Retry)], now)[0],
            Consequence::Wait { table: table("silver.a"), failures: 1, after: EVERY }
        );
    }

    #[test]
    fn what_reads_a_stopped_dataset_stops_and_the_rest_goes_on_until_nothing_is_left() {
        let (mut schedule, now) = shop();
        started(&mut schedule, now);
        let stopped = schedule.ended(0, &[(table("bronze.a"), Outcome::Stop)], now);
        let names: Vec<String> = stopped
            .iter()
            .map(|consequence| match consequence {
                Consequence::Stop { table, because_of } => format!("{table} because of {because_of}"),
                Consequence::Wait { .. } => panic!("{consequence:?}"),
            })
            .collect();
        assert_eq!(names, ["bronze.a because of bronze.a", "silver.a because of bronze.a", "gold.ab because of silver.a",]);
        schedule.moved(&(table("bronze.a"), 9));
        well(&mut schedule, 1, "bronze.b", now);
        schedule.moved(&(table("bronze.b"), 0));
        assert_eq!(started(&mut schedule, now + EVERY), ["bronze.b", "silver.b"]);
        assert!(!schedule.is_over());
        schedule.ended(1, &[(table("bronze.b"), Outcome::Stop)], now);
        assert!(!schedule.is_over(), "silver.b still runs");
        well(&mut schedule, 3, "silver.b", now);
        assert!(schedule.is_over());
    }

    #[test]
    fn of_feeds_that_are_read_together_only_those_that_are_not_waiting_are_run() {
        let now = Instant::now();
        let tables = vec![table("bronze.a"), table("bronze.b")];
        let mut schedule = Schedule::new(now, EVERY, vec![(Work::Feeds(vec![0, 1]), tables, vec![])], BTreeSet::new());
        started(&mut schedule, now);
        schedule.ended(0, &[(table("bronze.a"), Outcome::Retry), (table("bronze.b"), Outcome::Well)], now);
        started(&mut schedule, now + EVERY);
        schedule.ended(0, &[(table("bronze.a"), Outcome::Retry), (table("bronze.b"), Outcome::Well)], now + EVERY);
        assert_eq!(started(&mut schedule, now + 2 * EVERY), ["bronze.b"]);
    }
}
