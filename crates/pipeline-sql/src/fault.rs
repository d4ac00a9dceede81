//! A mistake with its place.

use std::fmt;

use tributary_fault::{Fault as _, FaultClass, FaultCode};
use tributary_specs::Place;

use crate::Error;

/// A mistake with its place; lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind; its page is `docs/runbooks/<code>.md`.
    pub code: FaultCode,
    /// The file's path as it was given.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// What is wrong, naming dataset and clause.
    pub message: String,
    /// What to type instead, where that can be said.
    pub next: Option<String>,
}

impl Fault {
    pub(crate) fn new(place: &Place, error: &Error) -> Self {
        Self {
            code: error.code(),
            file: place.file.clone(),
            line: place.line,
            column: place.column,
            message: error.to_string(),
            next: error.instead(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        if let Some(next) = &self.next {
            write!(f, "; {next}")?;
        }
        write!(f, " ({})", self.code)
    }
}

/// Every mistake of a pipeline's files, in the order of files and lines; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// The mistakes, or none.
    pub fn when_any(mut faults: Vec<Fault>) -> Option<Self> {
        faults.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
        (!faults.is_empty()).then_some(Self(faults))
    }

    /// The mistakes, at least one.
    pub fn faults(&self) -> &[Fault] {
        &self.0
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Faults {}

impl tributary_fault::Fault for Faults {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    /// The code of the first mistake.
    fn code(&self) -> FaultCode {
        self.0.first().map_or(FaultCode("SP0000"), |fault| fault.code)
    }

    fn next_command(&self) -> Option<String> {
        self.0.first().map(|fault| format!("tributary help {}", fault.code))
    }
}
