//! Whom a run tells of what: lines of the log, and webhooks. What cannot be told is never a reason for a run to fail.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tributary_bundle::{Job, Notifications, Task};

use crate::logging::Voice;
use crate::progress;

/// How long a webhook may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Something that people asked to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Start,
    Success,
    Failure,
    /// It goes on for longer than its health rule says.
    Duration,
}

impl Event {
    /// The key of the notifications.
    const fn key(self) -> &'static str {
        match self {
            Self::Start => "on_start",
            Self::Success => "on_success",
            Self::Failure => "on_failure",
            Self::Duration => "on_duration_warning_threshold_exceeded",
        }
    }
}

/// What it is about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    pub job: &'a Job,
    pub job_id: &'a str,
    pub run_id: &'a str,
    /// A task and the id of its attempt.
    pub task: Option<(&'a Task, &'a str)>,
    /// In words.
    pub message: Option<&'a str>,
}

/// Says what goes on, and tells whom it concerns.
#[derive(Debug)]
pub struct Teller {
    voice: Voice,
    sending: Mutex<JoinSet<()>>,
}

impl Teller {
    pub fn new(voice: Voice) -> Self {
        Self { voice, sending: Mutex::new(JoinSet::new()) }
    }

    /// A line: the object for programs, the text for people.
    pub fn say(&self, object: Value, text: &str) {
        progress::say(self.voice, object, text);
    }

    /// Tells those who asked for it.
    pub fn tell(&self, event: Event, about: About<'_>) {
        let of_job = &about.job.notifications;
        let notifications = about.task.map_or(of_job, |(task, _)| &task.notifications);
        for message in messages(event, notifications, about) {
            self.say(message.line(), &message.text());
            if let Some(url) = message.url() {
                let body = message.body.clone();
                self.sending.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move { send(&url, &body).await });
            }
        }
    }

    /// Waits until everything is sent, or has had its time.
    pub async fn finish(&self) {
        let mut sending = std::mem::take(&mut *self.sending.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while sending.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(2 * ANSWER, all).await;
    }
}

/// One message to one door.
#[derive(Debug, PartialEq)]
struct Message {
    event: &'static str,
    kind: &'static str,
    to: Vec<String>,
    body: Value,
}

impl Message {
    fn line(&self) -> Value {
        json!({ "event": "notification", "on": self.event, "kind": self.kind, "to": self.to, "about": self.body })
    }

    fn text(&self) -> String {
        format!("{} to {} {}", self.event, self.kind, self.to.join(", "))
    }

    /// Where it is sent; an id that only a workspace knows is said in the log alone.
    fn url(&self) -> Option<String> {
        let to = self.to.first().filter(|to| self.kind == "webhook" && (to.starts_with("http://") || to.starts_with("https://")));
        to.cloned()
    }
}

/// Everything that an event sends. Addresses of one event are one line, each webhook is one of its own.
fn messages(event: Event, notifications: &Notifications, about: About<'_>) -> Vec<Message> {
    let event = event.key();
    let mut body = json!({
        "event_type": format!("{}.{event}", if about.task.is_some() { "tasks" } else { "jobs" }),
        "workspace_id": "0",
        "job": { "job_id": about.job_id, "name": about.job.name },
        "run": { "run_id": about.run_id },
    });
    if let Some((task, run_id)) = about.task {
        body["task"] = json!({ "task_key": task.key, "run_id": run_id });
    }
    if let Some(message) = about.message {
        body["message"] = message.into();
    }
    let email = notifications.email.get(event).filter(|to| !to.is_empty());
    let email = email.map(|to| Message { event, kind: "email", to: to.clone(), body: body.clone() });
    let webhooks = notifications.webhook.get(event).into_iter().flatten();
    email.into_iter().chain(webhooks.map(|to| Message { event, kind: "webhook", to: vec![to.clone()], body: body.clone() })).collect()
}

async fn send(url: &str, body: &Value) {
    let answer = async {
        let client = reqwest::Client::builder().timeout(ANSWER).build()?;
        let request = client.post(url).header("content-type", "application/json").body(body.to_string());
        request.send().await?.error_for_status().map(drop)
    };
    if let Err(error) = answer.await {
        // the address may hold a secret
        tracing::warn!(error = %error.without_url(), "a webhook was not told");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_door_gets_what_happened_to_which_run() {
        let folder = tempfile::tempdir().unwrap();
        let text = "bundle: {name: t}\nresources:\n  jobs:\n    j:\n      name: hourly\n      email_notifications: {on_failure: [a@example.com, b@example.com]}\n      webhook_notifications: {on_failure: [{id: \"http://127.0.0.1:1/x\"}, {id: abc}], on_start: [{id: abc}]}\n      tasks:\n        - {task_key: a, condition_task: {op: EQUAL_TO, left: a, right: a}}\n";
        std::fs::write(folder.path().join("databricks.yml"), text).unwrap();
        let loaded = tributary_bundle::load(folder.path(), None, &Default::default());
        let job = &loaded.bundle.jobs["j"];
        let about = About { job, job_id: "7", run_id: "12", task: None, message: Some("a rule") };
        let sent = messages(Event::Failure, &job.notifications, about);
        let doors: Vec<(&str, usize, bool)> =
            sent.iter().map(|message| (message.kind, message.to.len(), message.url().is_some())).collect();
        assert_eq!(doors, [("email", 2, false), ("webhook", 1, true), ("webhook", 1, false)]);
        assert_eq!(sent[1].body["event_type"], "jobs.on_failure");
        assert_eq!((&sent[1].body["job"]["name"], &sent[1].body["run"]["run_id"]), (&json!("hourly"), &json!("12")));
        assert_eq!(messages(Event::Success, &job.notifications, about), []);
        let of_task = messages(Event::Start, &job.notifications, About { task: Some((&job.tasks[0], "13")), ..about });
        assert_eq!((&of_task[0].body["event_type"], &of_task[0].body["task"]["task_key"]), (&json!("tasks.on_start"), &json!("a")));
    }
}
