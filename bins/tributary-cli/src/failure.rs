//! Why a command did not do its work, as a person reads it.

use std::fmt::Write as _;
use std::path::PathBuf;

use tributary::{ExitCode, Fault, FaultClass, FaultCode};

/// An error of the commands themselves.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// CL0001. A pipeline file cannot be read. `--pipeline` names it, or it is the default `pipeline.yml` of the working
    /// folder. Name the right file, or make it readable.
    #[error("the pipeline file {} cannot be read", file.display())]
    PipelineFile {
        /// As it was named.
        file: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// CL0002. `--db-name` puts every layer into one schema, and two datasets of the pipeline would then have one name.
    /// Rename one of them, or leave `--db-name` away.
    #[error("with --db-name {schema} both `{first}` and `{second}` would be `{schema}.{name}`")]
    SameName {
        /// The schema for all.
        schema: String,
        /// One dataset.
        first: String,
        /// The other.
        second: String,
        /// The name they share.
        name: String,
    },
    /// CL0003. `--only` names a dataset that the pipeline does not have.
    #[error("the pipeline has no dataset `{name}`{}", nearest.as_ref().map(|near| format!(", nearest is `{near}`")).unwrap_or_default())]
    NoDataset {
        /// As it was given.
        name: String,
        /// The nearest dataset.
        nearest: Option<String>,
    },
    /// CL0018. What failed a rule of a silver table is a row, and `quarantine requeue` decodes records.
    #[error("`{table}` sets aside rows that failed its rules; only records of a feed can be decoded again")]
    RowsOfRules {
        /// The silver table.
        table: String,
    },
    /// CL0004. A table is neither in the lake nor can its columns be told from the pipeline before its first run.
    #[error("table `{table}` is neither in the lake nor declared with its columns in the pipeline")]
    NoDefinition {
        /// The table.
        table: String,
    },
    /// CL0005. A SQL text in a pipeline cannot be moved to the schema of `--db-name`, because it cannot be parsed.
    #[error("the query of `{table}` cannot be read: {reason}")]
    Query {
        /// Whose query.
        table: String,
        /// The parser's words.
        reason: String,
    },
    /// CL0006. The run report, the standard output or the standard input failed: a full disk, a closed pipe, a folder that may
    /// not be written. The tables are as the run left them.
    #[error("{action} failed")]
    Io {
        /// What was tried.
        action: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// CL0007. There is no runbook page of this name, and no command.
    #[error("there is no page and no command `{topic}`{}", nearest.as_ref().map(|near| format!(", nearest is `{near}`")).unwrap_or_default())]
    NoPage {
        /// As it was asked for.
        topic: String,
        /// The nearest.
        nearest: Option<String>,
    },
    /// CL0008. `--log-filter` is no list of levels and modules.
    #[error("log_filter {filter:?} is no level (error, warn, info, debug, trace) or list of module=level")]
    LogFilter {
        /// As it was given.
        filter: String,
    },
    /// CL0009. Rows that the lake gave cannot be printed in the form that was asked for.
    #[error("rows cannot be printed")]
    Rows(#[source] tributary::arrow::error::ArrowError),
    /// CL0010. The demo failed before it could compare anything.
    #[error("the demo failed: {reason}")]
    Demo {
        /// Why.
        reason: String,
    },
    /// CL0011. `--base-data-path` is a URL of a store that this release cannot read files from.
    #[error("base_data_path {location} is no folder of this machine: files are read from folders in this release")]
    DataPath {
        /// As it was given, secrets hidden.
        location: String,
    },
    /// CL0012. There is no folder where `--warehouse` says; a command that only reads does not make one.
    #[error("there is no lake at {location}")]
    NoWarehouse {
        /// As it was given, secrets hidden.
        location: String,
    },
    /// CL0014. The warehouse's store does not let us do what every run must do.
    #[error("the store of {location} failed at {action}")]
    Store {
        /// As it was given, secrets hidden.
        location: String,
        /// What was tried.
        action: String,
        /// Why.
        #[source]
        source: tributary::object_store::Error,
    },
    /// CL0015. The warehouse's store lets an object be created a second time. Two runs at once would overwrite each other's commits.
    #[error("the store of {location} creates an object a second time: two runs at once would destroy each other's commits")]
    NotAtomic {
        /// As it was given, secrets hidden.
        location: String,
    },
    /// CL0016. There is less room for what spills than a run may hold in memory.
    #[error("{} has {} MiB free, and {} MiB may be in memory when a run begins to spill", folder.display(), free >> 20, wanted >> 20)]
    Disk {
        /// Where queries spill.
        folder: PathBuf,
        /// Bytes free.
        free: u64,
        /// Bytes wanted.
        wanted: u64,
    },
    /// CL0017. Clocks are apart, so that commit times would not say when things happened.
    #[error("this machine's clock and {other} are {seconds} s apart")]
    Clock {
        /// The other clock.
        other: String,
        /// How far.
        seconds: i64,
    },
    /// CL0013. Nothing can be served at the address of `--metrics-listen`: it is taken, not this machine's, or its port is reserved.
    #[error("metrics cannot be served at {address}")]
    Listen {
        /// As it was given.
        address: std::net::SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Io { .. } | Self::Demo { .. } => FaultClass::Transient,
            Self::Rows(_) => FaultClass::Bug,
            Self::PipelineFile { .. }
            | Self::SameName { .. }
            | Self::NoDataset { .. }
            | Self::RowsOfRules { .. }
            | Self::NoDefinition { .. }
            | Self::Query { .. }
            | Self::NoPage { .. }
            | Self::LogFilter { .. }
            | Self::DataPath { .. }
            | Self::NoWarehouse { .. }
            | Self::Store { .. }
            | Self::NotAtomic { .. }
            | Self::Disk { .. }
            | Self::Clock { .. }
            | Self::Listen { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::PipelineFile { .. } => "CL0001",
            Self::SameName { .. } => "CL0002",
            Self::NoDataset { .. } => "CL0003",
            Self::NoDefinition { .. } => "CL0004",
            Self::Query { .. } => "CL0005",
            Self::Io { .. } => "CL0006",
            Self::NoPage { .. } => "CL0007",
            Self::LogFilter { .. } => "CL0008",
            Self::Rows(_) => "CL0009",
            Self::Demo { .. } => "CL0010",
            Self::DataPath { .. } => "CL0011",
            Self::NoWarehouse { .. } => "CL0012",
            Self::Listen { .. } => "CL0013",
            Self::Store { .. } => "CL0014",
            Self::NotAtomic { .. } => "CL0015",
            Self::Disk { .. } => "CL0016",
            Self::Clock { .. } => "CL0017",
            Self::RowsOfRules { .. } => "CL0018",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(match self {
            Self::PipelineFile { .. } => "tributary run --pipeline FILE".to_owned(),
            Self::SameName { .. } | Self::NoDataset { .. } | Self::Query { .. } => "tributary validate".to_owned(),
            Self::NoDefinition { .. } => "tributary show tables".to_owned(),
            Self::RowsOfRules { table } => {
                format!("tributary quarantine show {}", table.rsplit('.').next().unwrap_or_default())
            }
            Self::NoPage { .. } => "tributary help codes".to_owned(),
            Self::LogFilter { .. } | Self::DataPath { .. } => "tributary run --help".to_owned(),
            Self::NoWarehouse { .. } => "tributary run --warehouse PATH".to_owned(),
            Self::Listen { .. } => "tributary run --stream --metrics-listen 127.0.0.1:9464".to_owned(),
            Self::Disk { .. } => "tributary run --base-checkpoint-path PATH".to_owned(),
            Self::Store { .. } | Self::NotAtomic { .. } | Self::Clock { .. } => "tributary doctor".to_owned(),
            Self::Io { .. } | Self::Rows(_) | Self::Demo { .. } => format!("tributary help {}", self.code()),
        })
    }
}

/// Any error on its way to the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the shell sees.
    pub exit_code: ExitCode,
    /// The runbook page.
    pub code: String,
    /// The chain of messages.
    pub message: String,
    /// What a person would type next.
    pub next: Option<String>,
}

impl<E: Fault + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            exit_code: ExitCode::of(error.class()),
            code: error.code().to_string(),
            message: tributary::chain(&error),
            next: error.next_command(),
        }
    }
}

impl Failure {
    /// Several as one, a line each with its code; the first says what to do next. There is at least one.
    pub fn of_all(failures: impl IntoIterator<Item = Self>) -> Self {
        let mut failures = failures.into_iter();
        let none = || Self { exit_code: ExitCode::BadInput, code: String::new(), message: String::new(), next: None };
        let mut all = failures.next().unwrap_or_else(none);
        for Self { code, message, .. } in failures {
            let _ = write!(all.message, "\nerror[{code}]: {message}");
        }
        all
    }

    /// Lines for a person.
    pub fn text(&self) -> String {
        let mut text = format!("error[{}]: {}\n", self.code, self.message);
        if let Some(next) = &self.next {
            let _ = writeln!(text, "  next: {next}");
        }
        let _ = writeln!(text, "  page: tributary help {}", self.code);
        text
    }

    /// One JSON object.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "event": "error",
            "code": self.code,
            "message": self.message,
            "next": self.next,
            "exit_code": self.exit_code.code(),
        })
    }
}

/// What a command that went through gives to the shell, or why it did not.
pub type Outcome = Result<u8, Failure>;

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn all() -> Vec<Error> {
        let denied = || io::Error::new(io::ErrorKind::PermissionDenied, "permission denied");
        vec![
            Error::PipelineFile { file: "pipeline.yml".into(), source: denied() },
            Error::SameName { schema: "shop".into(), first: "bronze.orders".into(), second: "silver.orders".into(), name: "orders".into() },
            Error::NoDataset { name: "silver.ordres".into(), nearest: Some("silver.orders".into()) },
            Error::NoDataset { name: "x".into(), nearest: None },
            Error::NoDefinition { table: "silver.orders".into() },
            Error::RowsOfRules { table: "silver.orders".into() },
            Error::Query { table: "gold.revenue".into(), reason: "expected an expression at line 1, column 8".into() },
            Error::Io { action: "writing the report report.json".into(), source: denied() },
            Error::NoPage { topic: "LK999".into(), nearest: Some("LK0009".into()) },
            Error::NoPage { topic: "x".into(), nearest: None },
            Error::LogFilter { filter: "loud".into() },
            Error::Rows(tributary::arrow::error::ArrowError::NotYetImplemented("a type".into())),
            Error::Demo { reason: "capture.jsonl cannot be read".into() },
            Error::DataPath { location: "s3://bucket/raw".into() },
            Error::NoWarehouse { location: "data/lake".into() },
            Error::Store {
                location: "data/lake".into(),
                action: "creating an object".into(),
                source: tributary::object_store::Error::Generic { store: "S3", source: "access denied".into() },
            },
            Error::NotAtomic { location: "s3://bucket/lake".into() },
            Error::Disk { folder: "/tmp".into(), free: 100 << 20, wanted: 1 << 30 },
            Error::Clock { other: "the store's clock".into(), seconds: 300 },
            Error::Listen { address: ([127, 0, 0, 1], 9464).into(), source: io::Error::new(io::ErrorKind::AddrInUse, "address in use") },
        ]
    }

    #[test]
    fn golden_texts_of_failures_name_the_thing_a_next_command_and_a_page() {
        let texts: String = all().into_iter().map(|error| Failure::from(error).text() + "\n").collect();
        for text in texts.split("\n\n").filter(|text| !text.is_empty()) {
            let first = text.lines().next().unwrap();
            assert!(!first.ends_with('.') && text.contains("  next: ") && text.contains("  page: "), "{text}");
        }
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/failures.txt");
        if std::env::var_os("TRIBUTARY_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &texts).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), texts, "look at the difference and run with TRIBUTARY_BLESS=1");
    }
}
