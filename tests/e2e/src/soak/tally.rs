//! What runs of silver said of themselves.

use std::path::Path;
use std::process::ExitStatus;

use serde_json::Value;

/// Lost races after which a run gives up, and says that a retry may help.
const ATTEMPTS_MAX: u64 = 20;
/// Another run holds the dataset, or others were always first: nothing is wrong, and the next run goes on.
const GAVE_WAY: [&str; 2] = ["SM0015", "SM0016"];

/// Runs that ended by themselves, added up.
#[derive(Debug, Default)]
pub struct Tally {
    /// All of them.
    pub runs: u64,
    /// Those that gave way to others.
    pub gave_way: u64,
    /// Races lost and planned again.
    pub conflicts: u64,
    /// The most of them in one run of one table.
    pub conflicts_max: u64,
    /// What failed otherwise: a run and what it said.
    pub failed: Vec<String>,
}

impl Tally {
    /// Adds a run that has ended.
    pub fn add(&mut self, name: &str, status: ExitStatus, report: &Path) {
        self.runs += 1;
        let report: Value =
            std::fs::read(report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_else(|| serde_json::json!({}));
        let datasets = report["datasets"].as_array().cloned().unwrap_or_default();
        for dataset in &datasets {
            let conflicts = dataset["conflicts"].as_u64().unwrap_or_default();
            self.conflicts += conflicts;
            self.conflicts_max = self.conflicts_max.max(conflicts);
        }
        let errors: Vec<&Value> = datasets.iter().map(|dataset| &dataset["error"]).filter(|error| !error.is_null()).collect();
        let gave_way = errors.iter().all(|error| error["code"].as_str().is_some_and(|code| GAVE_WAY.contains(&code)));
        match status.code() {
            Some(0 | 99) => {}
            Some(1 | 4 | 75) if gave_way && !errors.is_empty() => self.gave_way += 1,
            _ => {
                let said: Vec<String> = errors.iter().map(|error| error["message"].to_string()).collect();
                self.failed.push(format!("{name} ended with {status}: {}{}", said.join("; "), report["error"]));
            }
        }
    }

    /// Whether no run tried longer than it may.
    pub const fn retries_are_bounded(&self) -> bool {
        self.conflicts_max <= ATTEMPTS_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_run_that_gave_way_has_not_failed_and_any_other_has() {
        let report = std::env::temp_dir().join(format!("tributary-tally-{}.json", std::process::id()));
        let mut tally = Tally::default();
        let mut ended = |code: i32, text: &str| {
            std::fs::write(&report, text).unwrap();
            tally.add("silver-0", ExitStatus::from_raw(code << 8), &report);
        };
        ended(0, r#"{"datasets":[{"conflicts":3,"error":null},{"conflicts":1,"error":null}]}"#);
        ended(75, r#"{"datasets":[{"conflicts":20,"error":{"code":"SM0016","message":"busy"}}]}"#);
        ended(1, r#"{"datasets":[{"conflicts":0,"error":{"code":"LK0002","message":"no file"}}]}"#);
        ended(1, "");
        std::fs::remove_file(&report).unwrap();
        assert_eq!((tally.runs, tally.gave_way, tally.conflicts, tally.conflicts_max), (4, 1, 24, 20));
        assert_eq!(tally.failed.len(), 2, "{:?}", tally.failed);
        assert!(tally.retries_are_bounded());
    }
}
