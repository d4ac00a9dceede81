//! What can be wrong with a bundle.

use tributary_fault::{Fault, FaultClass, FaultCode};

/// A mistake in a bundle; its place stands in the [`Fault`](crate::Fault) that carries it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no bundle where one was looked for.
    ///
    /// Name the folder that holds `databricks.yml`, or go there.
    #[error("no bundle at {path}: {reason}")]
    NoBundle {
        /// What was named.
        path: String,
        /// Why it is none.
        reason: String,
    },
    /// Several files could be the root of the bundle.
    ///
    /// Keep one of them.
    #[error("the folder holds more than one root file: {}", files.join(", "))]
    SeveralRoots {
        /// Their names.
        files: Vec<String>,
    },
    /// The text is not YAML, or uses of YAML what has no meaning in a bundle.
    ///
    /// The place is where reading stopped.
    #[error("not readable as YAML: {reason}")]
    Yaml {
        /// What the reader says.
        reason: String,
    },
    /// A file, or what its aliases and references stand for, is larger or deeper than any bundle needs to be.
    ///
    /// Split the file, or take the repetition away.
    #[error("{what} is too large: {limit}")]
    TooLarge {
        /// What it is.
        what: String,
        /// The limit that it passes.
        limit: String,
    },
    /// A key stands twice in one mapping.
    ///
    /// Keep one of them.
    #[error("the key {key:?} stands twice in one mapping, first in line {first_line}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it stands first.
        first_line: u32,
    },
    /// A list, mapping or word stands where another kind of value belongs.
    ///
    /// Write it as the message says.
    #[error("`{path}` is {found}, not {expected}")]
    WrongKind {
        /// The way from the root to it.
        path: String,
        /// What belongs there.
        expected: String,
        /// What stands there.
        found: &'static str,
    },
    /// Two files, or the bundle and its target, give one key values that cannot be joined.
    ///
    /// Make both a mapping, both a list or both a word.
    #[error("`{path}` is {found} here and {other} in {other_place}: they cannot be joined")]
    KindsDiffer {
        /// The way from the root to it.
        path: String,
        /// The kind here.
        found: &'static str,
        /// The kind there.
        other: &'static str,
        /// File and line of the other.
        other_place: String,
    },
    /// A key that has no meaning where it stands. It is left out.
    ///
    /// Correct the spelling, or take the key away.
    #[error("there is no key {key:?} in {parent}{}", hint(nearest))]
    UnknownKey {
        /// The key.
        key: String,
        /// The part of the bundle it stands in.
        parent: String,
        /// The nearest key that exists.
        nearest: Option<String>,
    },
    /// A word that cannot be read as what belongs there, or a number in quotes. What cannot be read is left out.
    ///
    /// Write the value as the message says.
    #[error("`{path}` is {found}; {expected} belongs there")]
    WrongScalar {
        /// The way from the root to it.
        path: String,
        /// What belongs there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A key without a value.
    ///
    /// Give it a value, or take the key away.
    #[error("`{path}` is null; {expected} belongs there")]
    Null {
        /// The way from the root to it.
        path: String,
        /// What belongs there.
        expected: String,
    },
    /// A compulsory key is not there.
    ///
    /// Add the key.
    #[error("{parent} needs the key {key:?}")]
    Missing {
        /// The part of the bundle it belongs in.
        parent: String,
        /// The key.
        key: &'static str,
    },
    /// A word that is none of those that can stand there.
    ///
    /// Use one of those the message lists.
    #[error("`{path}` is {found:?}; it can be {choices}{}", hint(nearest))]
    UnknownChoice {
        /// The way from the root to it.
        path: String,
        /// What stands there.
        found: String,
        /// What can stand there.
        choices: String,
        /// The nearest of them.
        nearest: Option<String>,
    },
    /// A key names two resources.
    ///
    /// Rename one of them: keys of all kinds of resources share one space.
    #[error("the key {key} is used twice: for one of the {kind} here and for one of the {other_kind} in {other_place}")]
    ResourceTwice {
        /// The key.
        key: String,
        /// The kind here.
        kind: String,
        /// The kind there.
        other_kind: String,
        /// File and line of the other.
        other_place: String,
    },
    /// The key of a resource holds a reference.
    ///
    /// Write the key out; a name may hold references.
    #[error("the resource key {key:?} holds a reference")]
    ReferenceInKey {
        /// The key.
        key: String,
    },
    /// A resource without anything in it.
    ///
    /// Give it its settings, or take it away.
    #[error("{resource} is empty")]
    EmptyResource {
        /// Kind and key.
        resource: String,
    },
    /// A reference to something the bundle does not have.
    ///
    /// Correct the reference, or declare what it names.
    #[error("reference does not exist: ${{{reference}}}{}", hint(nearest))]
    UnknownReference {
        /// What stands between the braces.
        reference: String,
        /// The nearest that exists.
        nearest: Option<String>,
    },
    /// References lead back to where they began.
    ///
    /// Give one of them a value of its own.
    #[error("references in a circle: {circle}")]
    ReferenceCircle {
        /// The way round, with arrows.
        circle: String,
    },
    /// A variable has no value.
    ///
    /// Give it a default, a value in the target, `BUNDLE_VAR_<name>` or `--var <name>=<value>`.
    #[error("no value assigned to required variable {variable}")]
    Unassigned {
        /// The variable.
        variable: String,
    },
    /// A value for a variable that is not declared.
    ///
    /// Declare it below `variables`, or correct its name.
    #[error("the variable {variable} is not declared{}", hint(nearest))]
    UndeclaredVariable {
        /// The variable.
        variable: String,
        /// The nearest that is declared.
        nearest: Option<String>,
    },
    /// A value that a variable cannot take.
    ///
    /// Set variables of lists and mappings in the target or in `variable-overrides.json`.
    #[error("the variable {variable} cannot take this value: {reason}")]
    VariableValue {
        /// The variable.
        variable: String,
        /// Why not.
        reason: String,
    },
    /// A variable that is looked up in a workspace. Offline there is none.
    ///
    /// Give the variable a value.
    #[error("the variable {variable} is looked up in a workspace ({lookup}), which is not asked offline")]
    Lookup {
        /// The variable.
        variable: String,
        /// Kind and name of what is looked up.
        lookup: String,
    },
    /// A list or mapping inside a text.
    ///
    /// Let the reference stand alone, or refer to one value in it.
    #[error("${{{reference}}} is {found}: it cannot stand inside a text")]
    NotScalar {
        /// The reference.
        reference: String,
        /// What it is.
        found: &'static str,
    },
    /// A reference where the value must be known before anything else.
    ///
    /// Write the value out.
    #[error("`{path}` cannot hold a reference")]
    ReferenceRefused {
        /// The way from the root to it.
        path: String,
    },
    /// No target, or no single one, could be chosen.
    ///
    /// Name one with `--target`, or set `default: true` in one.
    #[error("{problem}{}", hint(nearest))]
    Target {
        /// What is wrong.
        problem: String,
        /// The nearest target.
        nearest: Option<String>,
    },
    /// What the mode of the target asks for is not so.
    ///
    /// Do as the message says, or choose another mode.
    #[error("{mode} mode: {problem}")]
    Mode {
        /// `development` or `production`.
        mode: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// An entry of `include` that cannot be followed, or has no effect.
    ///
    /// Name files of the bundle that end in .yml, .yaml or .json, from the root file's folder on.
    #[error("include {pattern:?}: {problem}")]
    Include {
        /// As written.
        pattern: String,
        /// What is wrong.
        problem: String,
    },
    /// A path leads out of the bundle.
    ///
    /// Keep what the bundle uses below its root file's folder.
    #[error("the path {path:?} leads out of the bundle{}", if *by_link { " through a symbolic link" } else { "" })]
    OutsideBundle {
        /// As written.
        path: String,
        /// Whether by a symbolic link.
        by_link: bool,
    },
    /// A file that the bundle names is not there.
    ///
    /// Correct the path: it counts from the folder of the file it stands in.
    #[error("the file {path} is not there{}", hint(nearest))]
    NoFile {
        /// From the bundle's folder on.
        path: String,
        /// The nearest file of that folder.
        nearest: Option<String>,
    },
    /// A file that cannot be read as text.
    ///
    /// Name a text file in UTF-8 that you may read.
    #[error("{path} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A notebook stands where a file belongs, or the reverse. A source notebook begins with the line `-- Databricks notebook source`.
    ///
    /// Name it under the other key, or add or take away that line.
    #[error("{path} is {found}, not {expected}")]
    NotebookOrFile {
        /// The file.
        path: String,
        /// What it is.
        found: &'static str,
        /// What belongs there.
        expected: &'static str,
    },
    /// A cluster or environment that the job does not declare.
    ///
    /// Declare it below the job, or correct the key.
    #[error("{kind} {key:?} is not declared in the job{}", hint(nearest))]
    UndeclaredCompute {
        /// `job_cluster_key` or `environment_key`.
        kind: &'static str,
        /// The key.
        key: String,
        /// The nearest that is declared.
        nearest: Option<String>,
    },
    /// A task of a kind that runs on a cluster has none.
    ///
    /// Add `environment_key`, `job_cluster_key`, `existing_cluster_id` or `new_cluster`.
    #[error("task {task} is a {kind} and has neither a cluster nor an environment")]
    NoCompute {
        /// The task.
        task: String,
        /// Its kind.
        kind: String,
    },
    /// Two tasks of a job, or two of its parameters or clusters, have one key.
    ///
    /// Rename one of them.
    #[error("{what} {key:?} stands twice, first in {first_place}")]
    KeyTwice {
        /// What kind of key.
        what: &'static str,
        /// The key.
        key: String,
        /// File and line of the first.
        first_place: String,
    },
    /// A task depends on one that the job does not have.
    ///
    /// Correct the name.
    #[error("task {task} depends on {dependency:?}, which the job does not have{}", hint(nearest))]
    UnknownTask {
        /// The task.
        task: String,
        /// What it depends on.
        dependency: String,
        /// The nearest task.
        nearest: Option<String>,
    },
    /// Tasks, or jobs that run jobs, wait for each other in a circle.
    ///
    /// Break the circle at one of its edges.
    #[error("{what} wait for each other in a circle: {circle}")]
    WaitCircle {
        /// `tasks` or `jobs`.
        what: &'static str,
        /// The way round, with arrows.
        circle: String,
    },
    /// A task does not say what it does, or says several things.
    ///
    /// Keep exactly one.
    #[error("{parent} has {found}; exactly one belongs there: {choices}")]
    NotOne {
        /// The part of the bundle.
        parent: String,
        /// What is there.
        found: String,
        /// What can be there.
        choices: String,
    },
    /// A dependency waits for an outcome of a task that has none.
    ///
    /// Take `outcome` away, or depend on a task with `condition_task`.
    #[error("task {task} waits for an outcome of {dependency}, which is no condition_task")]
    OutcomeWithoutCondition {
        /// The task.
        task: String,
        /// What it depends on.
        dependency: String,
    },
    /// A schedule that names no times, or a time zone that does not exist.
    ///
    /// A Quartz expression has six or seven fields: second, minute, hour, day of month, month, day of week, year; one of the two days is `?`.
    #[error("{what} {text:?}: {reason}")]
    Schedule {
        /// `quartz_cron_expression` or `timezone_id`.
        what: &'static str,
        /// As written.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// Two settings that exclude each other.
    ///
    /// Keep one of them.
    #[error("{parent} has {one} with {other}: they exclude each other")]
    Exclusive {
        /// The part of the bundle.
        parent: String,
        /// One setting.
        one: &'static str,
        /// The other.
        other: String,
    },
    /// A number outside what it can be, or a name with characters it cannot have.
    ///
    /// Use a value as the message says.
    #[error("`{path}` is {found}; it must be {expected}")]
    OutOfRange {
        /// The way from the root to it.
        path: String,
        /// What stands there.
        found: String,
        /// What it can be.
        expected: &'static str,
    },
    /// A for_each_task inside a for_each_task.
    ///
    /// Run a job of its own inside, with `run_job_task`.
    #[error("the task inside {task} is a for_each_task again")]
    NestedForEach {
        /// The outer task.
        task: String,
    },
    /// A pipeline's library that no source file belongs to, or in a form that is not known.
    ///
    /// Name one file, or a folder as `folder/**`.
    #[error("library {library:?}: {problem}")]
    Library {
        /// As written.
        library: String,
        /// What is wrong.
        problem: String,
    },
    /// Something of the bundle that is kept, but not run here.
    ///
    /// It runs where the bundle is deployed.
    #[error("{what} is not run here: {reason}")]
    NotRun {
        /// What it is.
        what: String,
        /// Why.
        reason: String,
    },
    /// A form that is still read, but has another name by now.
    ///
    /// Use the name that the message gives.
    #[error("{old} is called {new} by now")]
    OldName {
        /// As written.
        old: &'static str,
        /// Its name.
        new: &'static str,
    },
    /// The bundle has no such pipeline or job.
    ///
    /// Correct the name; `tributary validate` lists what there is.
    #[error("the bundle has no {kind} {name}{}", hint(nearest))]
    NoResource {
        /// `pipeline` or `job`.
        kind: &'static str,
        /// As asked for.
        name: String,
        /// The nearest that exists.
        nearest: Option<String>,
    },
    /// A text in doubled braces that is filled in when a job runs names nothing.
    ///
    /// Correct the reference.
    #[error("the run-time reference {{{{{reference}}}}} does not exist{}", hint(nearest))]
    UnknownRunReference {
        /// What stands between the braces.
        reference: String,
        /// The nearest that exists.
        nearest: Option<String>,
    },
}

pub(crate) fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::NoBundle { .. } => "BU0001",
            Self::SeveralRoots { .. } => "BU0002",
            Self::Yaml { .. } => "BU0003",
            Self::TooLarge { .. } => "BU0004",
            Self::DuplicateKey { .. } => "BU0005",
            Self::WrongKind { .. } => "BU0006",
            Self::KindsDiffer { .. } => "BU0007",
            Self::UnknownKey { .. } => "BU0008",
            Self::WrongScalar { .. } => "BU0009",
            Self::Null { .. } => "BU0010",
            Self::Missing { .. } => "BU0011",
            Self::UnknownChoice { .. } => "BU0012",
            Self::ResourceTwice { .. } => "BU0013",
            Self::ReferenceInKey { .. } => "BU0014",
            Self::EmptyResource { .. } => "BU0015",
            Self::UnknownReference { .. } => "BU0016",
            Self::ReferenceCircle { .. } => "BU0017",
            Self::Unassigned { .. } => "BU0018",
            Self::UndeclaredVariable { .. } => "BU0019",
            Self::VariableValue { .. } => "BU0020",
            Self::Lookup { .. } => "BU0021",
            Self::NotScalar { .. } => "BU0022",
            Self::ReferenceRefused { .. } => "BU0023",
            Self::Target { .. } => "BU0024",
            Self::Mode { .. } => "BU0025",
            Self::Include { .. } => "BU0026",
            Self::OutsideBundle { .. } => "BU0027",
            Self::NoFile { .. } => "BU0028",
            Self::Unreadable { .. } => "BU0029",
            Self::NotebookOrFile { .. } => "BU0030",
            Self::UndeclaredCompute { .. } => "BU0031",
            Self::NoCompute { .. } => "BU0032",
            Self::KeyTwice { .. } => "BU0033",
            Self::UnknownTask { .. } => "BU0034",
            Self::WaitCircle { .. } => "BU0035",
            Self::NotOne { .. } => "BU0036",
            Self::OutcomeWithoutCondition { .. } => "BU0037",
            Self::Schedule { .. } => "BU0038",
            Self::Exclusive { .. } => "BU0039",
            Self::OutOfRange { .. } => "BU0040",
            Self::NestedForEach { .. } => "BU0041",
            Self::Library { .. } => "BU0042",
            Self::NotRun { .. } => "BU0043",
            Self::OldName { .. } => "BU0044",
            Self::NoResource { .. } => "BU0045",
            Self::UnknownRunReference { .. } => "BU0046",
        })
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Unassigned { variable } | Self::Lookup { variable, .. } => Some(format!("tributary validate --var {variable}=VALUE")),
            _ => Some(format!("tributary help {}", self.code())),
        }
    }
}
