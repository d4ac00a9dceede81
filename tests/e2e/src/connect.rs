//! Kafka Connect's own interface: pausing connectors, and starting again what failed.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// A Connect worker.
#[derive(Debug, Clone)]
pub struct Connect {
    url: String,
}

/// How often a worker that does not answer is asked again.
const ATTEMPTS: u32 = 10;

impl Connect {
    /// The worker at an address.
    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned() }
    }

    /// `pause` or `resume`.
    pub fn tell(&self, connector: &str, verb: &str) -> Result<()> {
        self.call("PUT", &format!("/connectors/{connector}/{verb}")).map(|_| ())
    }

    /// Takes a connector away.
    pub fn remove(&self, connector: &str) -> Result<()> {
        self.call("DELETE", &format!("/connectors/{connector}")).map(|_| ())
    }

    /// Starts the connector's task again if it has failed; says whether it had, and why.
    pub fn revive(&self, connector: &str) -> Result<Option<String>> {
        let status: Value = serde_json::from_str(&self.call("GET", &format!("/connectors/{connector}/status"))?).context("a status")?;
        let tasks = status["tasks"].as_array().into_iter().flatten();
        let failed = tasks.chain([&status["connector"]]).find(|part| part["state"] == "FAILED");
        let Some(failed) = failed else { return Ok(None) };
        let why = failed["trace"].as_str().and_then(|trace| trace.lines().next()).unwrap_or_default().to_owned();
        self.call("POST", &format!("/connectors/{connector}/restart?includeTasks=true&onlyFailed=true"))?;
        Ok(Some(why))
    }

    /// A busy worker refuses or keeps silent for a while: it is asked again a few times. Every call may be repeated.
    fn call(&self, method: &str, path: &str) -> Result<String> {
        let mut answer = self.call_once(method, path);
        for _ in 0..ATTEMPTS {
            if answer.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_secs(2));
            answer = self.call_once(method, path);
        }
        answer
    }

    fn call_once(&self, method: &str, path: &str) -> Result<String> {
        let output =
            Command::new("curl").args(["-sS", "-m", "20", "--fail-with-body", "-X", method, &format!("{}{path}", self.url)]).output();
        let output = output.context("starting curl")?;
        let (answer, problem) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{method} {path}: {problem} {answer}");
        Ok(answer.into_owned())
    }
}
