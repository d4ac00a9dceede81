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
    /// CL0019. `--pipeline` names SQL and YAML: a pipeline is of one or the other. What both should hold stands together in a bundle,
    /// whose feeds are YAML and whose pipelines are SQL.
    #[error("a pipeline is SQL or YAML, and {} is SQL and {} is not", sql.display(), yaml.display())]
    SqlAndYaml {
        /// A path of SQL.
        sql: PathBuf,
        /// A path of something else.
        yaml: PathBuf,
    },
    /// CL0030. `--plan` names a file that is no plan. `tributary plan --out FILE` writes one.
    #[error("{} is no plan", file.display())]
    PlanFile {
        /// As it was named.
        file: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// CL0031. A plan is for a run that ends: with `--stream` a run goes on after everything planned is done. Leave one of them away.
    #[error("--plan is for a run that ends, and --stream goes on")]
    PlanOfStream,
    /// CL0032. `--openlineage-url` is no address of HTTP.
    #[error("`{url}` is no address that OpenLineage events can be sent to: it begins with http:// or https://")]
    OpenLineageUrl {
        /// Without what it may carry in secret.
        url: String,
    },
    /// CL0033. A file that the command line names, or the standard input, cannot be read as what it should be: it is not there, is a
    /// folder, may not be read, or is not UTF-8.
    #[error("{what} cannot be read")]
    Input {
        /// What was named.
        what: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// CL0020. `--tasks` names a task that the job does not have.
    #[error("job {job} has no task {name:?}{}", nearest.as_ref().map(|near| format!(", nearest is {near:?}")).unwrap_or_default())]
    NoTask {
        /// The job.
        job: String,
        /// As it was given.
        name: String,
        /// The nearest task.
        nearest: Option<String>,
    },
    /// CL0021. A parameter is given that the job does not declare.
    #[error("job {job} has no parameter {name:?}{}", nearest.as_ref().map(|near| format!(", nearest is {near:?}")).unwrap_or_default())]
    NoParameter {
        /// The job.
        job: String,
        /// As it was given.
        name: String,
        /// The nearest parameter.
        nearest: Option<String>,
    },
    /// CL0022. A task of a job cannot be done as it stands: it is of a kind that is not run here, or one of its `{{…}}` is not known.
    #[error("{reason}")]
    Task {
        /// Which, and why.
        reason: String,
    },
    /// CL0040. `tributary test` found no file of tests where it looked: files ending in `.yml` in folders called `tests`.
    #[error("no tests at {}", paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoTests {
        /// Where it looked.
        paths: Vec<PathBuf>,
    },
    /// CL0041. A file of tests is about a dataset that neither the bundle around it nor the SQL beside its folder makes as a silver or
    /// gold table.
    #[error("{} is about {dataset}, which no pipeline around it makes", file.display())]
    NotInPipeline {
        /// The file of tests.
        file: PathBuf,
        /// The dataset.
        dataset: String,
    },
    /// CL0042. A file of rows that a test names cannot be read.
    #[error("the rows of {} cannot be read: {reason}", file.display())]
    TestRows {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// CL0043. `tributary init` writes no file over another. Name another folder, or move these files away.
    #[error("in {} these files are in the way: {}", folder.display(), files.join(", "))]
    InTheWay {
        /// The folder.
        folder: PathBuf,
        /// The files, from the folder on.
        files: Vec<String>,
    },
    /// CL0044. What is portable is asked of SQL and bundles; a pipeline in YAML is a form of this program alone.
    #[error("--portability looks at SQL and bundles, and the pipeline is YAML")]
    NothingPortable,
    /// CL0045. The working folder is of a bundle, and nothing says which of its pipelines is meant. `--pipeline` takes the key of one.
    #[error("{} is a bundle with {}: --pipeline names the one that is meant: {}", folder.display(), count(keys.len(), "pipeline"), keys.join(", "))]
    WhichPipeline {
        /// The bundle.
        folder: PathBuf,
        /// The keys of its pipelines.
        keys: Vec<String>,
        /// The command that was typed, as far as it goes.
        command: String,
    },
    /// CL0046. `--out` names a file by whose ending no form of graphs is known. Name one that is, or say the form by `--format`.
    #[error("{} is of no form that a graph is written in: .txt, .dot, .mmd or .html", file.display())]
    GraphForm {
        /// As it was named.
        file: PathBuf,
    },
    /// CL0047. An argument of the command line is not what it should be.
    #[error("`{value}` is not {expected}")]
    Argument {
        /// As it was typed.
        value: String,
        /// What is understood.
        expected: String,
        /// The command that was typed.
        command: &'static str,
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

/// `1 file`, `2 files`.
pub fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Io { .. } | Self::Demo { .. } => FaultClass::Transient,
            Self::Rows(_) => FaultClass::Bug,
            Self::PipelineFile { .. }
            | Self::PlanFile { .. }
            | Self::PlanOfStream
            | Self::OpenLineageUrl { .. }
            | Self::Input { .. }
            | Self::SqlAndYaml { .. }
            | Self::NoTests { .. }
            | Self::NotInPipeline { .. }
            | Self::TestRows { .. }
            | Self::InTheWay { .. }
            | Self::NothingPortable
            | Self::WhichPipeline { .. }
            | Self::GraphForm { .. }
            | Self::Argument { .. }
            | Self::SameName { .. }
            | Self::NoTask { .. }
            | Self::NoParameter { .. }
            | Self::Task { .. }
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
            Self::PlanFile { .. } => "CL0030",
            Self::PlanOfStream => "CL0031",
            Self::OpenLineageUrl { .. } => "CL0032",
            Self::Input { .. } => "CL0033",
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
            Self::SqlAndYaml { .. } => "CL0019",
            Self::NoTests { .. } => "CL0040",
            Self::NotInPipeline { .. } => "CL0041",
            Self::TestRows { .. } => "CL0042",
            Self::InTheWay { .. } => "CL0043",
            Self::NothingPortable => "CL0044",
            Self::WhichPipeline { .. } => "CL0045",
            Self::GraphForm { .. } => "CL0046",
            Self::Argument { .. } => "CL0047",
            Self::NoTask { .. } => "CL0020",
            Self::NoParameter { .. } => "CL0021",
            Self::Task { .. } => "CL0022",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(match self {
            Self::PipelineFile { .. } => "tributary run --pipeline FILE".to_owned(),
            Self::WhichPipeline { keys, command, .. } => format!("{command} --pipeline {}", keys.first().map_or("KEY", String::as_str)),
            Self::PlanFile { file, .. } => format!("tributary plan --out {}", file.display()),
            Self::PlanOfStream => "tributary run --stream".to_owned(),
            Self::OpenLineageUrl { .. } => "tributary run --openlineage-url http://localhost:5000".to_owned(),
            Self::NoTests { .. } => "tributary test PATH".to_owned(),
            Self::NotInPipeline { .. } | Self::NothingPortable => "tributary validate PATH".to_owned(),
            Self::TestRows { .. } => "tributary help CL0042".to_owned(),
            Self::InTheWay { .. } => "tributary init FOLDER".to_owned(),
            Self::SqlAndYaml { yaml, .. } => format!("tributary run --pipeline {}", yaml.display()),
            Self::SameName { .. }
            | Self::NoDataset { .. }
            | Self::Query { .. }
            | Self::NoTask { .. }
            | Self::NoParameter { .. }
            | Self::Task { .. } => "tributary validate".to_owned(),
            Self::Argument { command, .. } => format!("{command} --help"),
            Self::GraphForm { .. } => "tributary graph --out graph.html".to_owned(),
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
            Self::Input { .. } | Self::Io { .. } | Self::Rows(_) | Self::Demo { .. } => format!("tributary help {}", self.code()),
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
            Error::PlanFile { file: "plan.json".into(), source: serde_json::from_str::<tributary::Plan>("{").unwrap_err() },
            Error::PlanOfStream,
            Error::OpenLineageUrl { url: "marquez".into() },
            Error::Input { what: "shop.sql".into(), source: denied() },
            Error::NoTask { job: "hourly".into(), name: "laod".into(), nearest: Some("load".into()) },
            Error::NoParameter { job: "hourly".into(), name: "dya".into(), nearest: Some("day".into()) },
            Error::Task { reason: "task b of job hourly is not run here: the job is known to its workspace alone".into() },
            Error::SqlAndYaml { sql: "sql".into(), yaml: "feeds.yml".into() },
            Error::NoTests { paths: vec!["sql".into(), "more".into()] },
            Error::NotInPipeline { file: "sql/tests/orders.yml".into(), dataset: "silver.ordres".into() },
            Error::TestRows { file: "rows.jsonl".into(), reason: "line 3: expected value at line 1 column 1".into() },
            Error::InTheWay { folder: "shop".into(), files: vec!["databricks.yml".into(), "bundles/pipelines/retail.yml".into()] },
            Error::NothingPortable,
            Error::GraphForm { file: "graph.png".into() },
            Error::WhichPipeline { folder: ".".into(), keys: vec!["lakeflow".into(), "retail".into()], command: "tributary run".into() },
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
