//! Where OpenLineage events go: lines of a file, or requests of a server. Neither ever fails or holds up a run: what cannot be
//! delivered is given up, and said once.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, Url};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tributary::{LineageSink, OpenLineage};
use tributary_config::Settings;

use crate::failure::{Error, Failure};

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(5);
/// How long the end of a run waits for events that are on their way.
const LAST: Duration = Duration::from_secs(5);
/// Events that wait for a server at most.
const WAITING_MAX: usize = 10_000;
/// Requests that fail in a row before the server is left alone for a while.
const FAILURES_MAX: u32 = 3;
const ALONE: Duration = Duration::from_secs(60);
/// Where servers take events.
const ENDPOINT: &str = "/api/v1/lineage";

/// The sinks of a run.
#[derive(Default)]
pub struct Sinks {
    sinks: Vec<Arc<dyn LineageSink>>,
    sending: Option<Sending>,
}

/// Requests under way.
struct Sending {
    server: Arc<Server>,
    task: JoinHandle<()>,
}

impl Sinks {
    /// The sinks that settings name; those of servers begin to send, so a runtime must be there.
    ///
    /// # Errors
    /// A URL that is none of HTTP.
    pub fn of(settings: &Settings) -> Result<Self, Failure> {
        let mut sinks = Self::default();
        if let Some(file) = &settings.openlineage_file {
            match Lines::open(file) {
                Ok(opened) => sinks.sinks.push(Arc::new(opened)),
                Err(error) => unwritten(&file.display(), &error),
            }
        }
        if let Some(url) = &settings.openlineage_url {
            let no_url = || Error::OpenLineageUrl { url: url.to_string() };
            let address = endpoint(url.as_str()).ok_or_else(no_url)?;
            let client = Client::builder().timeout(REQUEST).connect_timeout(REQUEST).no_proxy().build().map_err(|_| no_url())?;
            let (sender, events) = mpsc::channel(WAITING_MAX);
            let server = Arc::new(Server { shown: url.to_string(), sender: Mutex::new(Some(sender)), warned: AtomicBool::new(false) });
            let task = tokio::spawn(send(client, address, settings.openlineage_api_key.clone(), events, Arc::clone(&server)));
            sinks.sinks.push(Arc::clone(&server) as Arc<dyn LineageSink>);
            sinks.sending = Some(Sending { server, task });
        }
        Ok(sinks)
    }

    /// As a run takes them.
    pub fn of_run(&self, settings: &Settings) -> Option<OpenLineage> {
        let sink: Arc<dyn LineageSink> = match self.sinks.as_slice() {
            [] => return None,
            [one] => Arc::clone(one),
            several => Arc::new(All(several.to_vec())),
        };
        Some(OpenLineage { sink, namespace: settings.openlineage_namespace.clone() })
    }

    /// Waits for what is on its way, some seconds at most.
    pub async fn finish(self) {
        let Some(Sending { server, task }) = self.sending else { return };
        server.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        let abort = task.abort_handle();
        if tokio::time::timeout(LAST, task).await.is_err() {
            abort.abort();
            server.warn("some events were not delivered before the run ended");
        }
    }
}

/// The address of a server with the path at which it takes events.
fn endpoint(url: &str) -> Option<Url> {
    let mut url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    if matches!(url.path(), "" | "/") {
        url.set_path(ENDPOINT);
    }
    Some(url)
}

/// Several sinks.
#[derive(Debug)]
struct All(Vec<Arc<dyn LineageSink>>);

impl LineageSink for All {
    fn event(&self, event: &Value) {
        self.0.iter().for_each(|sink| sink.event(event));
    }
}

/// A JSON object a line, behind what the file has.
#[derive(Debug)]
struct Lines {
    file: Mutex<File>,
    shown: String,
    warned: AtomicBool,
}

impl Lines {
    fn open(file: &Path) -> std::io::Result<Self> {
        if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let opened = File::options().create(true).append(true).open(file)?;
        Ok(Self { file: Mutex::new(opened), shown: file.display().to_string(), warned: AtomicBool::new(false) })
    }
}

fn unwritten(file: &dyn std::fmt::Display, error: &std::io::Error) {
    tracing::warn!(%file, %error, "OpenLineage events cannot be written; the run goes on");
}

impl LineageSink for Lines {
    fn event(&self, event: &Value) {
        let written = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(format!("{event}\n").as_bytes());
        if let Err(error) = written
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            unwritten(&self.shown, &error);
        }
    }
}

/// A server that takes events by HTTP.
#[derive(Debug)]
struct Server {
    /// Its address without secrets.
    shown: String,
    sender: Mutex<Option<mpsc::Sender<Value>>>,
    warned: AtomicBool,
}

impl Server {
    fn warn(&self, why: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = %self.shown, %why, "OpenLineage events are not delivered; the run goes on");
        }
    }
}

impl LineageSink for Server {
    fn event(&self, event: &Value) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(sender) = sender
            && sender.try_send(event.clone()).is_err()
        {
            self.warn("too many wait for the server");
        }
    }
}

/// Sends events one after the other, as they came.
async fn send(client: Client, address: Url, api_key: Option<String>, mut events: mpsc::Receiver<Value>, server: Arc<Server>) {
    let mut failures = 0;
    let mut alone_until: Option<Instant> = None;
    while let Some(event) = events.recv().await {
        if alone_until.is_some_and(|until| Instant::now() < until) {
            continue;
        }
        let mut request = client.post(address.clone()).header("content-type", "application/json").body(event.to_string());
        if let Some(key) = &api_key {
            request = request.bearer_auth(key);
        }
        let failed = match request.send().await {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answered {}", answer.status())),
            // the words of the error may hold the address and its secrets
            Err(error) if error.is_timeout() => Some("it did not answer in time".to_owned()),
            Err(error) if error.is_connect() => Some("it cannot be reached".to_owned()),
            Err(_) => Some("the request failed".to_owned()),
        };
        match failed {
            None => (failures, alone_until) = (0, None),
            Some(why) => {
                server.warn(&why);
                failures += 1;
                alone_until = (failures >= FAILURES_MAX).then(|| Instant::now() + ALONE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_the_path_of_events_where_it_has_none() {
        let of = |url: &str| endpoint(url).map(|url| url.to_string());
        assert_eq!(of("http://localhost:5000").as_deref(), Some("http://localhost:5000/api/v1/lineage"));
        assert_eq!(of("https://host/own/path?key=1").as_deref(), Some("https://host/own/path?key=1"));
        assert_eq!(of("ftp://host"), None);
        assert_eq!(of("marquez"), None);
    }
}
