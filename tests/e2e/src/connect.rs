//! Kafka Connect's own interface: pausing connectors, and starting again what failed.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::http;

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
        let status = self.ask(&format!("/connectors/{connector}/status"))?;
        let tasks = status["tasks"].as_array().into_iter().flatten();
        let failed = tasks.chain([&status["connector"]]).find(|part| part["state"] == "FAILED");
        let Some(failed) = failed else { return Ok(None) };
        let why = causes(failed["trace"].as_str().unwrap_or_default());
        self.call("POST", &format!("/connectors/{connector}/restart?includeTasks=true&onlyFailed=true"))?;
        Ok(Some(why))
    }

    /// Whether the connector, killed now, would go on in the stream: it has noted down a place that lies behind its snapshot.
    pub fn is_past_snapshot(&self, connector: &str) -> Result<bool> {
        let noted = self.ask(&format!("/connectors/{connector}/offsets"))?;
        let offsets: Vec<&Value> = noted["offsets"].as_array().into_iter().flatten().map(|partition| &partition["offset"]).collect();
        Ok(!offsets.is_empty() && offsets.iter().all(|offset| offset.is_object() && offset.get("snapshot").is_none()))
    }

    fn ask(&self, path: &str) -> Result<Value> {
        serde_json::from_str(&self.call("GET", path)?).with_context(|| format!("the answer to {path}"))
    }

    /// A busy worker refuses or keeps silent for a while: it is asked again a few times. Every call may be repeated.
    fn call(&self, method: &str, path: &str) -> Result<String> {
        let url = format!("{}{path}", self.url);
        let mut answer = http::call(method, &url);
        for _ in 0..ATTEMPTS {
            if answer.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_secs(2));
            answer = http::call(method, &url);
        }
        answer
    }
}

/// The exceptions of a Java trace, outermost first, the innermost with the place that threw it.
fn causes(trace: &str) -> String {
    let mut causes: Vec<&str> = Vec::new();
    let mut place = None;
    for line in trace.lines().map(str::trim) {
        if let Some(at) = line.strip_prefix("at ") {
            place.get_or_insert(at);
        } else if !line.starts_with("...") {
            causes.push(line.strip_prefix("Caused by: ").unwrap_or(line));
            place = None;
        }
    }
    format!("{} at {}", causes.join(" <- "), place.unwrap_or("an unknown place"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_told_by_its_causes_and_the_innermost_place() {
        let trace = "a.ConnectException: stopped.\n\tat a.B.c(B.java:1)\n\t... 6 more\nCaused by: b.IllegalArgumentException\n\tat d.E.f(E.java:2)\n\tat g.H.i(H.java:3)\n";
        assert_eq!(causes(trace), "a.ConnectException: stopped. <- b.IllegalArgumentException at d.E.f(E.java:2)");
    }
}
