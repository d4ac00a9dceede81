//! Mistakes with their places, all of a run together.

use std::fmt;

use tributary_fault::{Fault, FaultClass, FaultCode};

use crate::error::Error;

/// Where in a file something stands; lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file's name as it was given.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One step from a spec to a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// A field of a mapping.
    Field(String),
    /// An element of a list, counted from 0.
    Index(usize),
}

/// The way from the pipeline to a part of it, written `silver[1].keys[0]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Path(Vec<Step>);

impl Path {
    /// The pipeline itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// One field further.
    #[must_use]
    pub fn field(&self, name: impl Into<String>) -> Self {
        self.with(Step::Field(name.into()))
    }

    /// One list element further.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    /// The steps from the pipeline on.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    fn with(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Field(name) => {
                    let dot = if at > 0 { "." } else { "" };
                    if name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                        write!(f, "{dot}{name}")?;
                    } else {
                        write!(f, "{dot}{name:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A part of the pipeline, and where it stands if it came from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The part; in a pipeline of several files counted within its file.
    pub path: Path,
    /// The place in the file; none for a pipeline built in Rust.
    pub place: Option<Place>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        match &self.place {
            Some(place) => write!(f, " in {place}"),
            None => Ok(()),
        }
    }
}

impl From<Path> for Location {
    fn from(path: Path) -> Self {
        Self { path, place: None }
    }
}

/// One mistake: what, in which part of the pipeline, and where in a file if it came from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub error: Error,
    /// The part of the pipeline; in a pipeline of several files counted within its file.
    pub path: Path,
    /// The place in the file; none for a pipeline built in Rust.
    pub place: Option<Place>,
}

impl Problem {
    pub(crate) fn new(path: Path, error: Error) -> Self {
        Self { error, path, place: None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if !self.path.steps().is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{} ({})", self.error, self.error.code())
    }
}

/// Every mistake found in a pipeline, in the order of files and lines; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors(Vec<Problem>);

impl Errors {
    /// The mistakes, or none.
    pub fn when_any(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// The mistakes, at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

impl Fault for Errors {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    /// The code of the first mistake.
    fn code(&self) -> FaultCode {
        self.0.first().map_or(FaultCode("SP0000"), |problem| problem.error.code())
    }

    fn next_command(&self) -> Option<String> {
        self.0.first().and_then(|problem| problem.error.next_command())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_the_file() {
        let path = Path::root().field("silver").index(1).field("properties").field("delta.appendOnly");
        assert_eq!(path.to_string(), r#"silver[1].properties."delta.appendOnly""#);
    }
}
