//! Where a value came from.

use std::fmt;

/// Where the value of a setting came from; the order of the variants is the order of priority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A flag.
    CommandLine,
    /// A variable of the environment.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A line of `.env` or of the file named by `--env-file`.
    Dotenv {
        /// The file as it was named.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// A line of `tributary.toml` or of the file named by `--config`.
    File {
        /// The file as it was named.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The `[targets.NAME]` table it stands in, if any.
        target: Option<String>,
    },
    /// Nobody gave it.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Environment { variable } => write!(f, "environment {variable}"),
            Self::Dotenv { file, line } => write!(f, "{file} line {line}"),
            Self::File { file, line, target: None } => write!(f, "{file} line {line}"),
            Self::File { file, line, target: Some(target) } => write!(f, "{file} line {line}, target {target}"),
            Self::Default => f.write_str("default"),
        }
    }
}
