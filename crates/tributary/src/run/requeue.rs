//! Records in quarantine once more.

use std::collections::BTreeSet;

use futures::FutureExt;
use tributary_bronze::Requeued;

use super::work::bronze_options;
use crate::{Error, Lake, Pipeline, RunOptions, protection};

impl Lake {
    /// Decodes the records in a feed's quarantine again, with the feed as the pipeline declares it now. Those that decode become rows
    /// of its table at the positions and offsets they came with, each once, and are marked in quarantine; the others stay. `feed` is
    /// the name of a feed or of its table. With `reason` only records that were refused for it; with `dry_run` nothing is written.
    ///
    /// Safe to repeat, to overlap with itself and with runs, and to kill at any point. Silver takes the rows in at its next run.
    ///
    /// # Errors
    /// [`Error::NoDataset`] when there is no such feed; [`Error::Unprotected`] and [`Error::Bronze`] as a run of the feed would fail.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake, pipeline: tributary::Pipeline) -> Result<(), tributary::Error> {
    /// let requeued = lake.requeue(&pipeline, "orders", Some("wrong_type"), false, &Default::default()).await?;
    /// println!("{} became rows, {} stay", requeued.rows, requeued.left.values().sum::<u64>());
    /// # Ok(()) }
    /// ```
    pub async fn requeue(
        &self,
        pipeline: &Pipeline,
        feed: &str,
        reason: Option<&str>,
        dry_run: bool,
        options: &RunOptions,
    ) -> Result<Requeued, Error> {
        let feeds = &pipeline.spec().feeds;
        let is_called = |name: &str| feed.eq_ignore_ascii_case(name);
        let Some(chosen) = feeds.iter().find(|feed| is_called(&feed.name) || is_called(&feed.table.to_string())) else {
            let nearest = tributary_fault::nearest(feed, feeds.iter().map(|feed| feed.name.as_str())).map(str::to_owned);
            return Err(Error::NoDataset { table: feed.to_owned(), nearest });
        };
        if !dry_run {
            protection::accepted(self, pipeline.clone(), &BTreeSet::from([chosen.table.clone()]), options).await?;
        }
        let options = bronze_options(pipeline, options)?;
        Ok(tributary_bronze::requeue(self.inner(), chosen, reason, dry_run, &options).boxed().await?)
    }
}
