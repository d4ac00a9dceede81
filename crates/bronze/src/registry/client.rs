//! The Confluent-compatible API: a schema by its id, and what it refers to by subject and version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use tributary_cdc_decode::SchemaId;

use crate::{Error, Result, events};

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(10);
/// The first wait before a request is made again; each is twice the one before.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(5);
/// No answer is longer.
const BYTES_MAX: usize = 16 << 20;
/// A schema builds on no more others than these.
const REFERENCES_MAX: usize = 1000;

/// A schema registry.
pub struct Registry {
    url: Url,
    client: Client,
    /// How long an answer is waited for, over all attempts.
    patience: Duration,
    known: Mutex<BTreeMap<SchemaId, Arc<Answer>>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// What a registry has under an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A schema's text, and the texts it builds on, each after those it builds on itself.
    Avro { text: String, references: Vec<String> },
    /// A schema of another language.
    Foreign(String),
    /// Nothing.
    Absent,
}

/// A schema as the API tells it.
#[derive(Debug, Deserialize)]
struct Told {
    schema: String,
    #[serde(default, rename = "schemaType")]
    kind: Option<String>,
    #[serde(default)]
    references: Option<Vec<Reference>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Reference {
    subject: String,
    version: u64,
}

/// What the API says of a request it cannot fulfil.
#[derive(Debug, Deserialize)]
struct Refusal {
    error_code: u32,
    #[serde(default)]
    message: String,
}

/// How one request ended.
enum Reply {
    Told(Told),
    /// There is no such schema.
    Absent,
    /// It may be asked again.
    Away(String),
}

impl Registry {
    /// A registry at an address. `auth` is `USER:PASSWORD` or `Bearer TOKEN`; `patience` how long an answer is waited for.
    ///
    /// # Errors
    /// [`Error::RegistrySettings`] for an address or credentials that cannot be used.
    pub fn new(url: &str, auth: Option<&str>, patience: Duration) -> Result<Self> {
        let refused = |reason: &str| Error::RegistrySettings { reason: reason.to_owned() };
        let url = Url::parse(url).map_err(|error| refused(&format!("the schema registry's address is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("the schema registry's address must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("credentials do not belong in the schema registry's address: set `schema_registry_auth`"));
        }
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/vnd.schemaregistry.v1+json, application/json"));
        if let Some(auth) = auth {
            headers.insert(
                AUTHORIZATION,
                authorization(auth).ok_or_else(|| refused("`schema_registry_auth` must be USER:PASSWORD or Bearer TOKEN"))?,
            );
        }
        let client = Client::builder()
            .default_headers(headers)
            .timeout(REQUEST)
            .connect_timeout(REQUEST / 2)
            // What a library does must not depend on the environment.
            .no_proxy()
            .build()
            .map_err(|error| refused(&format!("no client for the schema registry can be made: {error}")))?;
        Ok(Self { url, client, patience, known: Mutex::default() })
    }

    /// What the registry has under an id. What it has is remembered; that it has nothing is not, since it may come.
    pub(crate) async fn look_up(&self, id: SchemaId) -> Result<Arc<Answer>> {
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(Arc::clone(known));
        }
        let answer = Arc::new(self.fetch(id).await?);
        if *answer != Answer::Absent {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::clone(&answer));
        }
        Ok(answer)
    }

    /// Asks whether a registry answers here, for a check before a run.
    ///
    /// # Errors
    /// As [`super::teach`].
    pub async fn check(&self) -> Result<()> {
        // No registry gives out this id; one that says so is there and lets us in.
        self.ask(&["schemas", "ids", "2147483647"]).await.map(drop)
    }

    async fn fetch(&self, id: SchemaId) -> Result<Answer> {
        let Some(told) = self.ask(&["schemas", "ids", &id.to_string()]).await? else { return Ok(Answer::Absent) };
        if let Some(kind) = told.kind.filter(|kind| !kind.eq_ignore_ascii_case("AVRO")) {
            return Ok(Answer::Foreign(kind));
        }
        let mut texts = Vec::new();
        let mut seen = Vec::new();
        // Depth first: what a schema builds on comes before it.
        let mut stack: Vec<Step> = open(told.references);
        while let Some(step) = stack.pop() {
            let reference = match step {
                Step::Done(text) => {
                    texts.push(text);
                    continue;
                }
                Step::Open(reference) => reference,
            };
            if seen.contains(&reference) {
                continue;
            }
            if seen.len() >= REFERENCES_MAX {
                return Ok(Answer::Foreign(format!("AVRO with more than {REFERENCES_MAX} references")));
            }
            let version = reference.version.to_string();
            let Some(part) = self.ask(&["subjects", &reference.subject, "versions", &version]).await? else {
                return Ok(Answer::Foreign(format!(
                    "AVRO with a reference to {} version {version}, which is not there",
                    reference.subject
                )));
            };
            seen.push(reference);
            stack.push(Step::Done(part.schema));
            stack.extend(open(part.references));
        }
        Ok(Answer::Avro { text: told.schema, references: texts })
    }

    /// Asks until there is an answer or patience has run out.
    async fn ask(&self, path: &[&str]) -> Result<Option<Told>> {
        let mut url = self.url.clone();
        // An http address has a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let until = Instant::now() + self.patience;
        let mut wait = WAIT_MIN;
        loop {
            let reason = match self.ask_once(&url).await? {
                Reply::Told(told) => return Ok(Some(told)),
                Reply::Absent => return Ok(None),
                Reply::Away(reason) => reason,
            };
            if Instant::now() + wait >= until {
                return Err(Error::RegistryAway { url: self.url.to_string(), reason });
            }
            events::registry_away(&reason);
            sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    async fn ask_once(&self, url: &Url) -> Result<Reply> {
        let away = |error: reqwest::Error| Reply::Away(deepest(&error.without_url()));
        let mut response = match self.client.get(url.clone()).send().await {
            Ok(response) => response,
            Err(error) => return Ok(away(error)),
        };
        let status = response.status();
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Ok(away(error)),
            }
            if bytes.len() > BYTES_MAX {
                return Err(self.refused(format!("its answer is longer than {} MiB", BYTES_MAX >> 20)));
            }
        }
        if status.is_success() {
            let told = serde_json::from_slice(&bytes);
            return told.map(Reply::Told).map_err(|_| self.refused("its answer is none of a schema registry".to_owned()));
        }
        let refusal: Option<Refusal> = serde_json::from_slice(&bytes).ok();
        match (status, refusal) {
            // No such subject, version, schema.
            (StatusCode::NOT_FOUND, Some(Refusal { error_code: 40401..=40403, .. })) => Ok(Reply::Absent),
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT, _) => Ok(Reply::Away(status.to_string())),
            (status, _) if status.is_server_error() => Ok(Reply::Away(status.to_string())),
            (status, Some(refusal)) => Err(self.refused(format!("{status}: {}", refusal.message))),
            (status, None) => Err(self.refused(status.to_string())),
        }
    }

    fn refused(&self, reason: String) -> Error {
        Error::RegistryRefused { url: self.url.to_string(), reason }
    }
}

/// What is left to do for a schema.
enum Step {
    /// To be asked for.
    Open(Reference),
    /// Known, with all it builds on before it.
    Done(String),
}

fn open(references: Option<Vec<Reference>>) -> Vec<Step> {
    references.unwrap_or_default().into_iter().rev().map(Step::Open).collect()
}

/// The value of the header; marked so that no log shows it.
fn authorization(auth: &str) -> Option<HeaderValue> {
    let text = match auth.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => format!("Bearer {}", token.trim()),
        _ => {
            auth.split_once(':').filter(|(user, _)| !user.is_empty())?;
            format!("Basic {}", STANDARD.encode(auth))
        }
    };
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The cause below all others: what the network said.
fn deepest(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
