//! Metrics and health of a continuous run: what its events say, served over HTTP.
//!
//! ```text
//! ProgressEvent ─▶ Observer (a sink) ─▶ values, health ─▶ server ─▶ /metrics, /health
//! ```

mod catalogue;
mod health;
mod server;
mod values;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tributary::{Clock as _, DatasetReport, Layer, ProgressEvent, ProgressSink, Status, SystemClock};

use self::catalogue as metric;
use self::health::{Dataset, Health, State};
use self::values::Values;

pub use server::Server;

/// Keeps count of what happens in a run.
#[derive(Debug)]
pub struct Observer {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    values: Values,
    health: Health,
}

impl Observer {
    /// Of a run of these datasets.
    pub fn new(datasets: impl IntoIterator<Item = (String, Layer)>) -> Self {
        let mut seen = Seen::default();
        for (name, layer) in datasets {
            let layer = layer.to_string();
            seen.count(&name, &layer, &DatasetReport::default());
            seen.values.set(metric::FAILING, &[&name, &layer], 0.0);
            seen.values.set(metric::STOPPED, &[&name, &layer], 0.0);
            seen.health.datasets.insert(name, Dataset { layer, ..Dataset::default() });
        }
        seen.values.set(metric::STARTED, &[], SystemClock.now().timestamp_millis() as f64 / 1000.0);
        seen.values.set(metric::BUILD, &[env!("CARGO_PKG_VERSION")], 1.0);
        Self { seen: Mutex::new(seen) }
    }

    /// The metrics' text.
    pub fn metrics(&self) -> String {
        let mut seen = self.seen();
        seen.values.set(metric::MEMORY, &[], resident_bytes().map(|bytes| bytes as f64));
        seen.values.text()
    }

    /// Whether every dataset is well, and the document that says how each is.
    pub fn health(&self) -> (bool, String) {
        let seen = self.seen();
        (seen.health.is_well(), format!("{}\n", seen.health.document()))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressSink for Observer {
    fn event(&self, event: &ProgressEvent) {
        let mut seen = self.seen();
        match event {
            ProgressEvent::PhaseStarted { .. } | ProgressEvent::DatasetStarted { .. } => {}
            ProgressEvent::DatasetAdvanced { table, layer, source_time_ms, lag_records, .. } => {
                seen.advanced(&table.to_string(), &layer.to_string(), *source_time_ms, *lag_records);
            }
            ProgressEvent::DatasetFinished { layer, report } => seen.finished(&layer.to_string(), report),
            ProgressEvent::DatasetWaits { table, layer, .. } => seen.is_now(&table.to_string(), &layer.to_string(), State::Failing),
            ProgressEvent::DatasetStopped { table, layer, .. } => seen.is_now(&table.to_string(), &layer.to_string(), State::Stopped),
            ProgressEvent::LagChanged { table, layer, seconds } => seen.lags(&table.to_string(), &layer.to_string(), *seconds),
        }
    }
}

impl Seen {
    fn advanced(&mut self, table: &str, layer: &str, source_time_ms: Option<i64>, lag_records: Option<u64>) {
        let labels = [table, layer];
        if let Some(time) = source_time_ms {
            self.values.set(metric::SOURCE_TIME, &labels, time as f64 / 1000.0);
        }
        if let Some(records) = lag_records {
            self.values.set(metric::LAG_RECORDS, &labels, records as f64);
            self.dataset(table, layer).lag_records = Some(records);
        }
    }

    fn finished(&mut self, layer: &str, report: &DatasetReport) {
        let table = report.table.as_str();
        let labels = [table, layer];
        self.count(table, layer, report);
        self.values.add(metric::RUNS, &[table, layer, &report.status.to_string()], 1);
        self.values.set(metric::RUN_SECONDS, &labels, report.millis as f64 / 1000.0);
        if let Some(version) = report.version_to {
            self.values.set(metric::VERSION, &labels, version as f64);
        }
        if let Some(time) = report.source_time_ms {
            self.values.set(metric::SOURCE_TIME, &labels, time as f64 / 1000.0);
        }
        if let Some(error) = &report.error {
            self.values.add(metric::ERRORS, &[table, layer, &error.code], 1);
        }
        let now = SystemClock.now();
        let well = matches!(report.status, Status::Committed | Status::NothingNew);
        if well {
            self.values.set(metric::LAST_SUCCESS, &labels, now.timestamp_millis() as f64 / 1000.0);
            self.values.set(metric::LAG_RECORDS, &labels, report.lag_records.map(|records| records as f64));
            self.lags(table, layer, report.lag_seconds);
            self.is_now(table, layer, State::Well);
        } else {
            self.is_now(table, layer, State::Failing);
        }
        let dataset = self.dataset(table, layer);
        dataset.version = report.version_to.or(dataset.version);
        if well {
            dataset.last_success = Some(now);
            dataset.lag_records = report.lag_records;
        }
        if let Some(error) = &report.error {
            dataset.last_error = Some((now, error.clone()));
        }
    }

    fn count(&mut self, table: &str, layer: &str, report: &DatasetReport) {
        let labels = [table, layer];
        for (metric, count) in [
            (metric::ROWS, report.rows_in),
            (metric::READ_BYTES, report.bytes_read),
            (metric::WRITTEN_BYTES, report.bytes_written),
            (metric::COMMITS, report.commits),
            (metric::CONFLICTS, report.conflicts),
        ] {
            self.values.add(metric, &labels, count);
        }
        for (change, rows) in [("inserted", report.rows_inserted), ("updated", report.rows_updated), ("deleted", report.rows_deleted)] {
            self.values.add(metric::WRITTEN_ROWS, &[table, layer, change], rows);
        }
        let named: u64 = report.quarantined.values().sum();
        let rule = BTreeMap::from([("rule".to_owned(), report.rows_quarantined.saturating_sub(named))]);
        for (metric, by_reason) in [
            (metric::QUARANTINED, &report.quarantined),
            (metric::QUARANTINED, &rule),
            (metric::IGNORED, &report.rows_ignored),
            (metric::EXPECTATIONS, &report.expectations),
        ] {
            for (reason, rows) in by_reason.iter().filter(|(_, rows)| **rows > 0) {
                self.values.add(metric, &[table, layer, reason], *rows);
            }
        }
    }

    fn lags(&mut self, table: &str, layer: &str, seconds: Option<u64>) {
        self.values.set(metric::LAG_SECONDS, &[table, layer], seconds.map(|seconds| seconds as f64));
        self.dataset(table, layer).lag_seconds = seconds;
    }

    fn is_now(&mut self, table: &str, layer: &str, state: State) {
        let failing = matches!(state, State::Failing | State::Stopped);
        self.values.set(metric::FAILING, &[table, layer], f64::from(u8::from(failing)));
        self.values.set(metric::STOPPED, &[table, layer], f64::from(u8::from(state == State::Stopped)));
        self.dataset(table, layer).state = state;
    }

    fn dataset(&mut self, table: &str, layer: &str) -> &mut Dataset {
        let new = || Dataset { layer: layer.to_owned(), ..Dataset::default() };
        self.health.datasets.entry(table.to_owned()).or_insert_with(new)
    }
}

/// Memory that the process holds now, where the operating system tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;
    use tributary::ReportedError;

    use super::*;

    fn observer() -> Observer {
        Observer::new([("bronze.orders".to_owned(), Layer::Bronze), ("silver.orders".to_owned(), Layer::Silver)])
    }

    fn finished(layer: Layer, report: DatasetReport) -> ProgressEvent {
        ProgressEvent::DatasetFinished { layer, report: Box::new(report) }
    }

    fn health(observer: &Observer) -> (bool, Value) {
        let (well, text) = observer.health();
        (well, serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn reports_add_up_and_reasons_are_told_apart() {
        let observer = observer();
        assert!(
            observer.metrics().contains("tributary_rows_total{dataset=\"silver.orders\",layer=\"silver\"} 0\n"),
            "known from the start"
        );
        for _ in 0..2 {
            observer.event(&finished(
                Layer::Bronze,
                DatasetReport {
                    table: "bronze.orders".into(),
                    status: Status::Committed,
                    rows_in: 10,
                    rows_quarantined: 3,
                    quarantined: BTreeMap::from([("bad_json".to_owned(), 2)]),
                    rows_ignored: BTreeMap::from([("tombstone".to_owned(), 1)]),
                    commits: 1,
                    lag_records: Some(5),
                    lag_seconds: Some(2),
                    version_to: Some(7),
                    ..DatasetReport::default()
                },
            ));
        }
        let text = observer.metrics();
        for line in [
            "tributary_rows_total{dataset=\"bronze.orders\",layer=\"bronze\"} 20",
            "tributary_quarantined_rows_total{dataset=\"bronze.orders\",layer=\"bronze\",reason=\"bad_json\"} 4",
            "tributary_quarantined_rows_total{dataset=\"bronze.orders\",layer=\"bronze\",reason=\"rule\"} 2",
            "tributary_ignored_rows_total{dataset=\"bronze.orders\",layer=\"bronze\",reason=\"tombstone\"} 2",
            "tributary_commits_total{dataset=\"bronze.orders\",layer=\"bronze\"} 2",
            "tributary_lag_records{dataset=\"bronze.orders\",layer=\"bronze\"} 5",
            "tributary_lag_seconds{dataset=\"bronze.orders\",layer=\"bronze\"} 2",
            "tributary_table_version{dataset=\"bronze.orders\",layer=\"bronze\"} 7",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
    }

    #[test]
    fn health_says_which_dataset_fails_why_and_when_it_is_well_again() {
        let observer = observer();
        assert!(health(&observer).0, "nothing has failed yet");
        let error = ReportedError { code: "LK0001".into(), message: "the store is away".into(), exit_code: 1 };
        let failed =
            DatasetReport { table: "silver.orders".into(), status: Status::Failed, error: Some(error), ..DatasetReport::default() };
        observer.event(&finished(Layer::Silver, failed));
        let table = "silver.orders".parse().unwrap();
        observer.event(&ProgressEvent::DatasetWaits { table, layer: Layer::Silver, failures: 1, after: Duration::from_secs(1) });
        let (well, document) = health(&observer);
        assert!(!well && document["status"] == "failing");
        let silver = &document["datasets"][1];
        assert_eq!((&silver["state"], &silver["last_error"]["code"]), (&Value::from("failing"), &Value::from("LK0001")));
        assert!(observer.metrics().contains("tributary_errors_total{dataset=\"silver.orders\",layer=\"silver\",code=\"LK0001\"} 1\n"));

        let well = DatasetReport { table: "silver.orders".into(), lag_seconds: Some(0), ..DatasetReport::default() };
        observer.event(&finished(Layer::Silver, well));
        let (well, document) = health(&observer);
        assert!(well && document["datasets"][1]["state"] == "ok" && document["datasets"][1]["last_success"].is_string(), "{document}");
    }

    #[test]
    fn a_stopped_dataset_keeps_health_bad() {
        let observer = observer();
        let table: tributary::TableName = "bronze.orders".parse().unwrap();
        observer.event(&ProgressEvent::DatasetStopped { table: table.clone(), layer: Layer::Bronze, because_of: table });
        let (well, document) = health(&observer);
        assert!(!well && document["datasets"][0]["state"] == "stopped", "{document}");
        assert!(observer.metrics().contains("tributary_dataset_stopped{dataset=\"bronze.orders\",layer=\"bronze\"} 1\n"));
    }
}
