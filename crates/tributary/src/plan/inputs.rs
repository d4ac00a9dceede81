//! Looks at what is new: files that are due, versions of tables that were not taken up.

use std::collections::BTreeMap;

use tributary_bronze::FeedLook;
use tributary_lake::{DataFile, Table};
use tributary_silver_merge::FlowLook;
use tributary_specs::TableName;

use super::{FileAmount, PlannedInput};
use crate::past::{LastRun, last_runs};
use crate::run::bronze_options;
use crate::{Error, Lake, Pipeline, RunOptions};

/// What the feeds that were chosen would find, and what is known of past runs.
pub(super) struct Inputs {
    /// By their index.
    pub feeds: BTreeMap<usize, FeedLook>,
    past: BTreeMap<String, LastRun>,
}

impl Inputs {
    pub async fn look(lake: &Lake, pipeline: &Pipeline, options: &RunOptions) -> Result<Self, Error> {
        let feeds = &pipeline.spec().feeds;
        let mut of_bronze = bronze_options(pipeline, options)?;
        let chosen = feeds.iter().filter(|feed| options.chooses(tributary_specs::Layer::Bronze, &feed.table));
        of_bronze.only = Some(chosen.map(|feed| feed.name.clone()).collect());
        let anew = feeds.iter().filter(|feed| options.builds_feed_anew(pipeline, feed));
        of_bronze.full_refresh = anew.map(|feed| feed.name.clone()).collect();
        let looks = tributary_bronze::look(lake.inner(), feeds, &of_bronze).await?;
        let past = last_runs(lake).await.unwrap_or_default();
        Ok(Self { feeds: looks.into_iter().map(|look| (look.index, look)).collect(), past })
    }

    /// How many records so many bytes will be, going by the last run, where that read any.
    pub fn rows_of_bytes(&self, table: &TableName, bytes: u64) -> Option<u64> {
        let last = self.past.get(&table.to_string())?;
        let (rows, read) = (last.run.rows_in.filter(|rows| *rows > 0)?, last.bytes_read.filter(|read| *read > 0)?);
        u64::try_from(u128::from(bytes) * u128::from(rows) / u128::from(read)).ok()
    }
}

impl PlannedInput {
    /// The same input, of which these files are new.
    pub(super) fn holding(self, files: &[DataFile]) -> Self {
        let FileAmount { files: number, bytes } = FileAmount::of(files);
        Self { files: Some(number), bytes: Some(bytes), rows: files.iter().map(DataFile::live_rows).sum(), ..self }
    }
}

/// What of its source a flow has not taken up; none where the source is not there.
pub(super) async fn of_flow(lake: &Lake, flow: &FlowLook, starting: u64) -> Result<Option<PlannedInput>, Error> {
    let Some(table) = lake.inner().table(&flow.source).await? else { return Ok(None) };
    let from = flow.reached;
    let input =
        PlannedInput { from: flow.source.to_string(), version_from: from, version_to: Some(table.version()), ..PlannedInput::default() };
    if from >= Some(table.version()) {
        return Ok(Some(input));
    }
    // of a table whose rows change, or whose log no longer reaches back, the versions are all that can be told
    Ok(Some(match table.added(from.or(starting.checked_sub(1)), table.version()).await {
        Ok(files) => input.holding(&files),
        Err(_) => input,
    }))
}

/// Rows of a table, where its statistics tell.
pub(super) async fn live_rows(table: Option<&Table>) -> Result<Option<u64>, Error> {
    match table {
        Some(table) => Ok(table.files().await?.iter().map(DataFile::live_rows).sum()),
        None => Ok(None),
    }
}
