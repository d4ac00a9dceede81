//! The inputs of a view: which tables they are, where the view is in them, what was read of them.

use std::collections::BTreeMap;

use tributary_fault::nearest;
use tributary_lake::Table;
use tributary_specs::{InputRead, TableName};

use super::{Run, app_id, id_app_id, version_of};
use crate::explain::cost;
use crate::plan::{self, InputState};
use crate::query::Input;
use crate::scanned::Scanned;
use crate::{Error, Result, sources};

/// Commits of an input read back to see whether any changed rows; more than these are taken for changed.
const HISTORY_MAX: u64 = 200;

impl Run<'_> {
    pub(crate) async fn open(&self, name: &TableName) -> Result<Option<Table>> {
        self.lake.table(name).await.map_err(Error::lake("opening", name))
    }

    /// The inputs at their latest versions, in the order of the sources.
    pub(crate) async fn inputs(&self) -> Result<Vec<Table>> {
        let mut inputs = Vec::new();
        for source in self.sources()? {
            if source.same_without_case(&self.spec.table) {
                return Err(Error::ReadsItself { table: self.spec.table.clone() });
            }
            inputs.push(match self.open(&source).await? {
                Some(table) => table,
                None => self.find(&source).await?,
            });
        }
        Ok(inputs)
    }

    fn sources(&self) -> Result<Vec<TableName>> {
        if !self.spec.sources.is_empty() {
            return Ok(self.spec.sources.clone());
        }
        if self.options.build.is_some() {
            return Err(Error::NoSources { table: self.spec.table.clone() });
        }
        let read = sources::parse(&self.spec.query).and_then(|statement| sources::tables(&statement));
        read.map_err(|reason| Error::Query { table: Some(self.spec.table.clone()), reason })
    }

    /// A table by its name in another case.
    async fn find(&self, source: &TableName) -> Result<Table> {
        let names = self.lake.tables().await.map_err(Error::lake("looking for", source))?;
        if let Some(found) = names.iter().find(|name| name.same_without_case(source))
            && let Some(table) = self.open(found).await?
        {
            return Ok(table);
        }
        let texts: Vec<String> = names.iter().map(ToString::to_string).collect();
        let nearest = nearest(&source.to_string(), texts.iter().map(String::as_str)).map(str::to_owned);
        Err(Error::NoSource { table: self.spec.table.clone(), source_table: source.clone(), nearest })
    }

    pub(super) async fn states(&self, there: Option<&Table>, inputs: &[Table]) -> Result<Vec<InputState>> {
        let mut states = Vec::new();
        for input in inputs {
            let mut state = InputState {
                table: input.name().clone(),
                version: input.version(),
                recorded: self.recorded(there, &app_id(input.name())).await?,
                identity: input.identity(),
                recorded_identity: self.recorded(there, &id_app_id(input.name())).await?,
                rows_changed: false,
            };
            state.rows_changed = rows_changed(input, state.made_from()).await?;
            states.push(state);
        }
        Ok(states)
    }

    async fn recorded(&self, there: Option<&Table>, app_id: &str) -> Result<Option<i64>> {
        match there {
            Some(table) => table.progress(app_id).await.map_err(Error::lake("reading", &self.spec.table)),
            None => Ok(None),
        }
    }

    /// What was read of each input, beside what its log let expect.
    pub(super) async fn reads(
        &self,
        inputs: &[Input],
        states: &[InputState],
        changes_read: &BTreeMap<usize, u64>,
        scanned: &Scanned,
    ) -> Result<Vec<InputRead>> {
        let mut reads = Vec::new();
        for (at, (input, state)) in inputs.iter().zip(states).enumerate() {
            let (rows_read, bytes_read) = scanned.0.get(&at).copied().unwrap_or_default();
            let changes_estimated = match changes_read.contains_key(&at) {
                true => cost(&input.table, state).await?.0.changes_rows,
                false => 0,
            };
            reads.push(InputRead {
                table: state.table.to_string(),
                version_from: state.recorded,
                version_to: version_of(state),
                changes_estimated,
                changes_read: changes_read.get(&at).copied().unwrap_or_default(),
                rows_read,
                bytes_read,
            });
        }
        Ok(reads)
    }
}

/// Whether a commit of the input after the version that the view was made from may have changed rows.
async fn rows_changed(input: &Table, made_from: Option<u64>) -> Result<bool> {
    let Some(made_from) = made_from else { return Ok(true) };
    let behind = input.version().saturating_sub(made_from);
    if behind == 0 || behind > HISTORY_MAX {
        return Ok(behind > 0);
    }
    let limit = usize::try_from(behind).unwrap_or(usize::MAX);
    let history = input.history(Some(limit)).await.map_err(Error::lake("reading the history of", input.name()))?;
    let since: Vec<_> = history.iter().filter(|entry| entry.version > made_from).collect();
    let all_there = since.len() as u64 == behind;
    let changed = since.iter().any(|entry| plan::changes_rows(entry.operation.as_deref(), entry.files_added, entry.files_removed));
    Ok(!all_there || changed)
}
