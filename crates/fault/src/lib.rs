//! What kind of failure something is, and what may be done about it.
//!
//! Every library crate has one error enum; every variant has a [`FaultClass`] and a [`FaultCode`].
//! [`policy`] is the one place that turns a class into a reaction, and [`ExitCode`] the one place that
//! turns the reactions of a whole run into what a shell sees.

mod chain;
mod nearest;

use std::fmt;

pub use chain::chain;
pub use nearest::nearest;

/// What a failure is. The set is closed: a new class must be given a reaction in [`policy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultClass {
    /// The outside is briefly away: wait, then the same plan again.
    Transient,
    /// Another writer was first: fresh snapshot, plan again.
    Conflict,
    /// No answer came; it may have happened: look at the table before anything else.
    Unknown,
    /// This record, not the pipeline: quarantine it and go on.
    BadData,
    /// Settings, spec, schema policy or permission: a person must change something.
    BadInput,
    /// An expectation with the action `fail` stopped the dataset.
    Expectation,
    /// Another run holds this dataset.
    Busy,
    /// An invariant of ours is broken: stop and keep the evidence.
    Bug,
}

/// A stable name of an error kind, `<area><number>`, for example `LK0003`; its page is `docs/runbooks/<code>.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FaultCode(pub &'static str);

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An error that knows what it is and where its page is.
pub trait Fault: std::error::Error {
    /// Decides what happens next; a wrapping variant asks its source.
    fn class(&self) -> FaultClass;
    /// The error's page in `docs/runbooks/`.
    fn code(&self) -> FaultCode;
    /// The next command a person would type, where there is one.
    fn next_command(&self) -> Option<String> {
        None
    }
}

/// What the caller does with a failure of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Try the same plan again after a pause, a bounded number of times.
    Retry,
    /// Take a fresh snapshot and plan again, a bounded number of times.
    Replan,
    /// Read the table to learn whether it happened.
    Probe,
    /// Keep the record in quarantine and go on.
    Quarantine,
    /// Stop this dataset and what reads it.
    Stop,
}

/// The one policy: class to reaction.
pub const fn policy(class: FaultClass) -> Reaction {
    match class {
        FaultClass::Transient => Reaction::Retry,
        FaultClass::Conflict => Reaction::Replan,
        FaultClass::Unknown => Reaction::Probe,
        FaultClass::BadData => Reaction::Quarantine,
        FaultClass::BadInput | FaultClass::Expectation | FaultClass::Busy | FaultClass::Bug => Reaction::Stop,
    }
}

/// What a process says to its shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitCode {
    /// Done, also when nothing was new.
    Done,
    /// Failed; a retry may help.
    Failed,
    /// A person must change something.
    BadInput,
    /// An expectation with the action `fail` stopped it.
    Expectation,
    /// Part of the work is left; the report says which and why.
    Partial,
    /// A bug of ours.
    Bug,
    /// Another run holds this dataset; nothing changed.
    Busy,
}

impl ExitCode {
    /// The number a shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::BadInput => 2,
            Self::Expectation => 3,
            Self::Partial => 4,
            Self::Bug => 70,
            Self::Busy => 75,
        }
    }

    /// The exit code a number stands for.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Done,
            1 => Self::Failed,
            2 => Self::BadInput,
            3 => Self::Expectation,
            4 => Self::Partial,
            70 => Self::Bug,
            75 => Self::Busy,
            _ => return None,
        })
    }

    /// The exit code of one failure that was not recovered from.
    pub const fn of(class: FaultClass) -> Self {
        match class {
            FaultClass::Transient | FaultClass::Conflict | FaultClass::Unknown | FaultClass::BadData => Self::Failed,
            FaultClass::BadInput => Self::BadInput,
            FaultClass::Expectation => Self::Expectation,
            FaultClass::Busy => Self::Busy,
            FaultClass::Bug => Self::Bug,
        }
    }

    /// Of several codes the one that is said: 70, then 2, 3, 4, 1, 75, 0.
    pub fn worst(codes: impl IntoIterator<Item = Self>) -> Self {
        codes.into_iter().max_by_key(|code| code.severity()).unwrap_or(Self::Done)
    }

    const fn severity(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Busy => 1,
            Self::Failed => 2,
            Self::Partial => 3,
            Self::Expectation => 4,
            Self::BadInput => 5,
            Self::Bug => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_code_is_said_when_several_apply() {
        assert_eq!(ExitCode::worst([ExitCode::Failed, ExitCode::Partial, ExitCode::BadInput]), ExitCode::BadInput);
        assert_eq!(ExitCode::worst([ExitCode::BadInput, ExitCode::Bug]), ExitCode::Bug);
        assert_eq!(ExitCode::worst([ExitCode::Expectation, ExitCode::Partial, ExitCode::Failed]), ExitCode::Expectation);
        assert_eq!(ExitCode::worst([]), ExitCode::Done);
    }

    #[test]
    fn an_unknown_outcome_is_probed_never_retried() {
        assert_eq!(policy(FaultClass::Unknown), Reaction::Probe);
    }
}
