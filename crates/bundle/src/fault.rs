//! What was found wrong, all of it together.

use std::collections::HashSet;

use serde::Serialize;
use tributary_fault::{Fault as _, nearest};

use crate::error::Error;
use crate::place::{At, Files};

/// Whether a fault stops what it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing of the bundle runs before it is mended.
    Error,
    /// It is left out or taken otherwise, and the rest runs.
    Warning,
}

/// One mistake in a bundle, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The error's page in `docs/runbooks/`.
    pub code: &'static str,
    /// Whether it stops the bundle.
    pub severity: Severity,
    /// The file, below the path that was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The next command a person would type.
    pub next: Option<String>,
}

impl Fault {
    /// Whether it stops the bundle.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, file, line, column, message, .. } = self;
        let kind = if self.is_error() { "" } else { "warning: " };
        write!(f, "{file}:{line}:{column}: {kind}{message} ({code})")
    }
}

/// A fault whose file is still a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Found {
    at: At,
    severity: Severity,
    code: &'static str,
    message: String,
    next: Option<String>,
}

/// Collects faults.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: Vec<Found>,
    looked_up: usize,
}

/// More than these are not kept: a file of nothing but mistakes says enough.
const FAULTS_MAX: usize = 10_000;
/// More than these are not given the name that was meant, nor is it looked for among more names.
const LOOKED_UP_MAX: usize = 200;
const NAMES_MAX: usize = 1_000;

impl Faults {
    pub fn error(&mut self, at: At, error: Error) {
        self.put(at, Severity::Error, error.code().0, error.to_string(), error.next_command());
    }

    pub fn warning(&mut self, at: At, error: Error) {
        self.put(at, Severity::Warning, error.code().0, error.to_string(), error.next_command());
    }

    /// How many were found so far.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// A mistake that another crate found.
    pub fn foreign(&mut self, at: At, code: &'static str, message: String, next: Option<String>) {
        self.put(at, Severity::Error, code, message, next);
    }

    /// Of the known names the one that was probably meant.
    pub fn near<'n>(&mut self, name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
        self.looked_up += 1;
        if self.looked_up > LOOKED_UP_MAX || name.len() > 100 {
            return None;
        }
        nearest(name, known.into_iter().take(NAMES_MAX).filter(|known| known.len() <= 100)).map(str::to_owned)
    }

    fn put(&mut self, at: At, severity: Severity, code: &'static str, message: String, next: Option<String>) {
        if self.found.len() < FAULTS_MAX {
            self.found.push(Found { at, severity, code, message, next });
        }
    }

    /// Each once, in the order of files, lines and columns.
    pub fn sorted(self, files: &Files) -> Vec<Fault> {
        let mut seen = HashSet::new();
        let mut faults: Vec<Fault> = self
            .found
            .into_iter()
            .filter(|found| seen.insert(found.clone()))
            .map(|found| Fault {
                code: found.code,
                severity: found.severity,
                file: files.shown(found.at.file).to_owned(),
                line: found.at.line as usize,
                column: found.at.column as usize,
                message: found.message,
                next: found.next,
            })
            .collect();
        faults.sort_by(|a, b| {
            let key = |fault: &Fault| (fault.line, fault.column, fault.severity, fault.code);
            a.file.cmp(&b.file).then_with(|| key(a).cmp(&key(b))).then_with(|| a.message.cmp(&b.message))
        });
        faults
    }
}
