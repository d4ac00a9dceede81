//! Every metric: the only place where its name, type, words and labels stand. The reference page is generated from here.

/// How a metric's value moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only up, from 0 when the process starts.
    Counter,
    /// Up and down.
    Gauge,
}

impl Kind {
    /// As the text format has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// What a metric tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A dataset of the run.
    Dataset,
    /// The process.
    Process,
}

impl Subject {
    /// Names of the labels that tell which.
    const fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Dataset => &["dataset", "layer"],
            Self::Process => &[],
        }
    }
}

/// What is written down about one metric.
#[derive(Debug)]
pub struct Metric {
    /// As Prometheus knows it: the unit last, `_total` behind counters.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it tells of.
    subject: Subject,
    /// Names of the labels behind the subject's.
    further: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
}

impl Metric {
    /// Names of its labels, in their order.
    pub fn labels(&self) -> impl Iterator<Item = &'static str> {
        self.subject.labels().iter().chain(self.further).copied()
    }
}

/// Declares metrics: a constant for each, and the list of all.
macro_rules! metrics {
    ($( $kind:ident of $subject:ident { $( $constant:ident = $name:literal [$($label:literal),*] $help:literal; )+ } )+) => {
        $( $( pub const $constant: &Metric =
            &Metric { name: $name, kind: Kind::$kind, subject: Subject::$subject, further: &[$($label),*], help: $help }; )+ )+

        /// Every metric, in the order of the page and of what is served.
        pub const ALL: &[&Metric] = &[$( $( $constant ),+ ),+];
    };
}

metrics! {
    Counter of Dataset {
        ROWS = "tributary_rows_total" []
            "Records or source rows taken up: those written, those that decided what is written, those in quarantine and those ignored.";
        WRITTEN_ROWS = "tributary_written_rows_total" ["change"]
            "Rows of the table that were inserted, updated or deleted.";
        QUARANTINED = "tributary_quarantined_rows_total" ["reason"]
            "Records and rows set aside in quarantine, by reason code or, in silver and gold, as a rule's.";
        IGNORED = "tributary_ignored_rows_total" ["reason"]
            "Records and rows left out, by reason.";
        EXPECTATIONS = "tributary_expectation_failures_total" ["expectation"]
            "Rows that failed an expectation, whatever its action.";
        READ_BYTES = "tributary_read_bytes_total" []
            "Bytes of the records taken up from sources; tables read from tables count none.";
        WRITTEN_BYTES = "tributary_written_bytes_total" []
            "Bytes of the files written.";
        COMMITS = "tributary_commits_total" []
            "Versions of the table written.";
        CONFLICTS = "tributary_conflicts_total" []
            "Races lost against another writer and planned again.";
        RUNS = "tributary_dataset_runs_total" ["status"]
            "How often the dataset was run, by how that ended: committed, nothing_new, failed, skipped.";
        ERRORS = "tributary_errors_total" ["code"]
            "Errors by the code of their page.";
    }
    Gauge of Dataset {
        LAG_RECORDS = "tributary_lag_records" []
            "Records that the source holds and the table does not yet, where the source can tell.";
        LAG_SECONDS = "tributary_lag_seconds" []
            "How far the table is behind what it reads, in seconds of the source's time.";
        SOURCE_TIME = "tributary_source_time_seconds" []
            "The newest time, at its source, of a record the table has taken up, in seconds since 1970.";
        VERSION = "tributary_table_version" []
            "Version of the table.";
        RUN_SECONDS = "tributary_last_run_seconds" []
            "How long the last run of the dataset took.";
        LAST_SUCCESS = "tributary_last_success_time_seconds" []
            "When the dataset was last found or brought up to date, in seconds since 1970.";
        FAILING = "tributary_dataset_failing" []
            "1 while the last run of the dataset failed and it is tried again, or a person must mend it; else 0.";
        STOPPED = "tributary_dataset_stopped" []
            "1 when the dataset is not run any more, because it or a table it reads failed and a person must mend that; else 0.";
    }
    Gauge of Process {
        MEMORY = "process_resident_memory_bytes" []
            "Memory that the process holds.";
        STARTED = "process_start_time_seconds" []
            "When the process began to serve metrics, in seconds since 1970.";
        BUILD = "tributary_build_info" ["version"]
            "1, with the version of the program.";
    }
}

/// The reference page.
#[cfg(test)]
pub fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         A continuous run serves these at `/metrics` when `--metrics-listen` gives it an address, in the text format of Prometheus.\n\
         `dataset` is `schema.table`, `layer` is `bronze`, `silver` or `gold`. Counters begin at 0 with the process. A value that is\n\
         not known (the lag of a feed without event times) is left out.\n\n\
         | metric | type | labels | what |\n|---|---|---|---|\n",
    );
    for metric in ALL {
        let labels: Vec<String> = metric.labels().map(|label| format!("`{label}`")).collect();
        page.push_str(&format!("| `{}` | {} | {} | {} |\n", metric.name, metric.kind.word(), labels.join(", "), metric.help));
    }
    page.push_str(
        "\n`/health` answers 200 while every dataset is well, else 503, with a JSON document either way:\n\n\
         ```json\n\
         {\"status\": \"ok\", \"datasets\": [{\"dataset\": \"silver.orders\", \"layer\": \"silver\", \"state\": \"ok\", \"version\": 12,\n \
         \"last_success\": \"2026-03-01T12:00:00Z\", \"last_error\": null, \"lag_records\": null, \"lag_seconds\": 0}]}\n\
         ```\n\n\
         `state` is `waiting` (not run yet, for what it reads is not there), `ok`, `failing` (it is tried again) or `stopped` (a person\n\
         must mend it, or what it reads; `last_error` has the code).\n\n\
         An alert on staleness and one on what a person must mend:\n\n\
         ```yaml\n\
         - alert: TributaryBehind\n  expr: tributary_lag_seconds > 300\n  for: 10m\n\
         - alert: TributaryStopped\n  expr: tributary_dataset_stopped == 1\n\
         ```\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn generated_metrics_page_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
        if std::env::var_os("TRIBUTARY_BLESS").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), page(), "run `just generate` and read the difference");
    }

    #[test]
    fn names_follow_the_conventions() {
        let mut names = BTreeSet::new();
        for metric in ALL {
            assert!(names.insert(metric.name), "{} is declared twice", metric.name);
            assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
            assert!(metric.name.starts_with("tributary_") || metric.name.starts_with("process_"), "{}", metric.name);
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.name);
        }
    }
}
