//! What the outside gives: arguments, environment, working folder.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::login;

/// Everything settings are made from, handed over as values so that a test can bring its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The command line, the program's own name first.
    pub arguments: Vec<OsString>,
    /// Names and values of environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// The name, or else the number, of the user that the system runs the process as.
    pub login: Option<String>,
    /// Where `.env`, `tributary.toml` and relative names of either are looked for.
    pub folder: PathBuf,
}

impl Inputs {
    /// The running process' own arguments, environment and working folder; for binaries alone.
    pub fn of_process() -> Self {
        Self {
            arguments: std::env::args_os().collect(),
            environment: std::env::vars_os().collect(),
            login: login::of_process(),
            folder: PathBuf::from("."),
        }
    }

    /// The value of an environment variable.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_os_str())
    }

    /// Who started the process, as its environment says, else as whom the system runs it.
    pub fn user(&self) -> Option<&str> {
        let said = |name| self.variable(name)?.to_str().filter(|user| !user.is_empty());
        ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(said).or(self.login.as_deref())
    }
}
