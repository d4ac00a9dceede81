//! What the next refresh of a view would do, and what it would read. Reads logs alone, and the newest event times of streams whose rows
//! wait for their watermark.

use tributary_lake::{DataFile, Lake, Table};
use tributary_specs::{GoldSpec, TableName};

use crate::follow::{Places, means_of};
use crate::plan::{self, Decision, InputState};
use crate::query::{Input, Joins, plan_rows};
use crate::run::Run;
use crate::{Error, Options, Result};

/// How a view would be brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshMode {
    /// It is up to date.
    Nothing,
    /// By what changed.
    Incremental,
    /// In full.
    Full,
    /// Not at all: it refuses to be refreshed in full.
    Refused,
}

impl RefreshMode {
    /// The word of reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Incremental => "incremental",
            Self::Full => "full",
            Self::Refused => "refused",
        }
    }
}

/// What a refresh would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// How.
    pub mode: RefreshMode,
    /// Why it is refreshed, or why not.
    pub reason: String,
    /// The single reason why it does not follow its inputs; none where it does.
    pub in_full_for: Option<String>,
    /// What a view that follows is brought up to date by: `signed deltas`, or `changed groups` with the reason why not by the former.
    pub means: Option<String>,
    /// Rows of the view now, where its log tells.
    pub rows: Option<u64>,
    /// What it reads, input by input.
    pub inputs: Vec<InputCost>,
}

/// What a refresh would read of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputCost {
    /// The input.
    pub table: TableName,
    /// The version that the view was made from.
    pub version_from: Option<i64>,
    /// The latest.
    pub version_to: u64,
    /// Bytes of the change feed between them.
    pub changes_bytes: u64,
    /// Rows of it, as many as so many bytes of the table's files have.
    pub changes_rows: u64,
    /// Rows of the whole table, where its log tells.
    pub rows: u64,
    /// Bytes of all its files.
    pub bytes: u64,
}

/// Says how a view would be refreshed with its inputs as they are, and what would be read; none while a table that it reads is not
/// there.
///
/// What changes meet in the inputs is looked up by their keys and is not in the estimate: the report of a run tells it.
///
/// # Errors
/// As [`crate::look`], and when the query cannot be planned.
pub async fn explain(lake: &Lake, spec: &GoldSpec, options: &Options) -> Result<Option<Explained>> {
    let run = Run { lake, spec, options };
    let there = run.open(&spec.table).await?;
    let tables = match run.inputs().await {
        Err(Error::NoSource { .. }) => return Ok(None),
        tables => tables?,
    };
    let (states, decision) = run.decide(there.as_ref(), &tables).await?;
    let inputs = Input::open_all(&tables).await?;
    let rows = plan_rows(lake, spec, there.as_ref(), &inputs, options, Joins::Hash).await?;
    let moved: Places = match &decision {
        Decision::Follow(_) => (0..states.len()).filter(|at| states[*at].rows_changed).collect(),
        Decision::Nothing(_) | Decision::Make(_) | Decision::Refresh(_) => (0..states.len()).collect(),
    };
    let (means, by_query) = match means_of(spec, &rows, &inputs, &moved, &states).await? {
        Ok(means) => (Some(means), None),
        Err(reason) => (None, Some(reason)),
    };
    let mut costs = Vec::new();
    for (input, state) in inputs.iter().zip(&states) {
        costs.push(cost(&input.table, state).await?);
    }
    let lost = costs.iter().find_map(|(_, lost)| lost.clone());
    let means = means.filter(|_| lost.is_none());
    let (mode, reason, in_full_for) = plan::mode(spec.refresh, decision, by_query.or(lost));
    let files = match &there {
        Some(table) => table.files().await.map_err(Error::lake("reading", &spec.table))?,
        None => Vec::new(),
    };
    let rows = files.iter().map(DataFile::live_rows).sum();
    Ok(Some(Explained { mode, reason, in_full_for, means, rows, inputs: costs.into_iter().map(|(cost, _)| cost).collect() }))
}

/// What a refresh would read of an input, and why its changes cannot be read.
pub(crate) async fn cost(table: &Table, state: &InputState) -> Result<(InputCost, Option<String>)> {
    let read = |error| Error::lake("reading the log of", table.name())(error);
    let files = table.files().await.map_err(read)?;
    let rows: u64 = files.iter().filter_map(DataFile::live_rows).sum();
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    let (mut changes_bytes, mut lost) = (0, None);
    if let Some(behind) = state.made_from().filter(|behind| state.rows_changed && *behind < table.version()) {
        match table.changes_bytes(behind + 1, table.version()).await {
            Ok(found) => changes_bytes = found,
            Err(tributary_lake::Error::NoVersion { .. }) => {
                lost = Some(format!("the history of `{}` no longer reaches back to version {behind}", table.name()));
            }
            Err(error) => return Err(read(error)),
        }
        if !table.has_change_feed() {
            lost = Some(format!("`{}` has no change feed", table.name()));
        }
    }
    let changes_rows = changes_bytes.saturating_mul(rows).checked_div(bytes).unwrap_or_default();
    let (version_from, version_to) = (state.recorded, table.version());
    Ok((InputCost { table: table.name().clone(), version_from, version_to, changes_bytes, changes_rows, rows, bytes }, lost))
}
