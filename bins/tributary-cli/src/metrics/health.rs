//! Whether every dataset of a continuous run is well.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use tributary::ReportedError;

/// How a dataset is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Not run yet, for what it reads is not there.
    #[default]
    Waiting,
    /// Its last run went well.
    Well,
    /// Its last run failed; it is tried again.
    Failing,
    /// It is not run any more.
    Stopped,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Well => "ok",
            Self::Failing => "failing",
            Self::Stopped => "stopped",
        }
    }
}

/// What is known of a dataset.
#[derive(Debug, Default)]
pub struct Dataset {
    pub layer: String,
    pub state: State,
    pub version: Option<u64>,
    pub last_success: Option<DateTime<Utc>>,
    pub last_error: Option<(DateTime<Utc>, ReportedError)>,
    pub lag_records: Option<u64>,
    pub lag_seconds: Option<u64>,
}

/// Of every dataset of the run.
#[derive(Debug, Default)]
pub struct Health {
    pub datasets: BTreeMap<String, Dataset>,
}

impl Health {
    /// Whether every dataset is well, or waits.
    pub fn is_well(&self) -> bool {
        self.datasets.values().all(|dataset| matches!(dataset.state, State::Waiting | State::Well))
    }

    /// The document that is served.
    pub fn document(&self) -> Value {
        let datasets: Vec<Value> = self.datasets.iter().map(|(name, dataset)| object(name, dataset)).collect();
        json!({ "status": if self.is_well() { "ok" } else { "failing" }, "datasets": datasets })
    }
}

fn object(name: &str, dataset: &Dataset) -> Value {
    let text = |instant: &DateTime<Utc>| instant.to_rfc3339_opts(SecondsFormat::Secs, true);
    let error = dataset.last_error.as_ref();
    json!({
        "dataset": name,
        "layer": dataset.layer,
        "state": dataset.state.word(),
        "version": dataset.version,
        "last_success": dataset.last_success.as_ref().map(text),
        "last_error": error.map(|(at, error)| json!({ "code": error.code, "message": error.message, "at": text(at) })),
        "lag_records": dataset.lag_records,
        "lag_seconds": dataset.lag_seconds,
    })
}
