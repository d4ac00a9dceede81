//! What is called, how calls are picked out, and how many there were.

use std::fmt;

use object_store::path::Path;

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// A whole object put in one call.
    Put,
    /// One part of a multipart upload.
    PutPart,
    /// The completion of a multipart upload: the object appears.
    CompleteUpload,
    /// A multipart upload given up.
    AbortUpload,
    /// One path deleted.
    Delete,
    /// A copy.
    Copy,
    /// A rename.
    Rename,
    /// An object, its head, or ranges of it read.
    Get,
    /// A listing.
    List,
}

impl Verb {
    /// Whether the call changes the store.
    pub const fn mutates(self) -> bool {
        match self {
            Self::Put | Self::PutPart | Self::CompleteUpload | Self::AbortUpload | Self::Delete | Self::Copy | Self::Rename => true,
            Self::Get | Self::List => false,
        }
    }
}

/// One call as it was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What it does.
    pub verb: Verb,
    /// The path it does it to: the target of a put, delete, get, copy or rename, the prefix of a listing.
    pub path: Path,
    /// Which mutating call or which read this was, counted from 1 since the store was wrapped.
    pub number: u64,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.verb.mutates() { "mutating call" } else { "read" };
        write!(f, "{kind} {} ({:?} {})", self.number, self.verb, self.path)
    }
}

/// Which calls a fault or hook is about.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    verbs: Option<Vec<Verb>>,
    path_contains: Vec<String>,
}

impl Rule {
    /// Every call.
    pub fn any() -> Self {
        Self::default()
    }

    /// Every call that changes the store.
    pub fn mutating() -> Self {
        Self::verbs([Verb::Put, Verb::PutPart, Verb::CompleteUpload, Verb::AbortUpload, Verb::Delete, Verb::Copy, Verb::Rename])
    }

    /// Every call that does not.
    pub fn reads() -> Self {
        Self::verbs([Verb::Get, Verb::List])
    }

    /// Calls with one of these verbs.
    pub fn verbs(verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self { verbs: Some(verbs.into_iter().collect()), path_contains: Vec::new() }
    }

    /// A put of a Delta commit: `_delta_log/<20 digits>.json`, whether put at once or renamed or copied into place.
    pub fn delta_commit() -> Self {
        Self::verbs([Verb::Put, Verb::CompleteUpload, Verb::Copy, Verb::Rename]).on("_delta_log/0")
    }

    /// The same, only where the path contains this text too.
    #[must_use]
    pub fn on(mut self, path_contains: impl Into<String>) -> Self {
        self.path_contains.push(path_contains.into());
        self
    }

    /// Whether the rule is about this call.
    pub fn matches(&self, call: &Call) -> bool {
        self.verbs.as_ref().is_none_or(|verbs| verbs.contains(&call.verb))
            && self.path_contains.iter().all(|text| call.path.as_ref().contains(text.as_str()))
    }
}

/// How many calls there were since the store was wrapped, refused ones not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that change the store.
    pub mutating: u64,
    /// Calls that do not.
    pub reads: u64,
    /// Bytes handed to puts and parts.
    pub bytes_put: u64,
    /// Calls refused after the kill.
    pub refused: u64,
}
