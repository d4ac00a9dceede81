//! A run: what was chosen is brought up to date, once or until it is told to end, and reported.
//!
//! A failing dataset stops only what reads it. Nothing here decides about data: the layers plan and commit, these files call
//! them in order and collect what they say.

mod drain;
mod lag;
mod look;
mod requeue;
mod restored;
mod schedule;
mod stream;
mod totals;
mod way_out;
mod work;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::mpsc;
use tributary_bronze::KafkaFinding;
use tributary_specs::{DatasetRef, DatasetReport, Layer, Status, TableName};

pub(crate) use self::work::bronze_options;
use self::work::{Run, Work};
use crate::{Error, Lake, Mode, Pipeline, RunOptions, RunReport, protection};

/// How long a cancelled run lets what is under way come to its end.
const GRACE: Duration = Duration::from_secs(7);

impl Lake {
    /// Brings every dataset of the pipeline up to date, phase by phase, or keeps them so.
    ///
    /// Safe to repeat, to overlap with itself, to cancel, and to drop at any point: what a run committed stays, what it
    /// did not is done by the next. A cancelled run commits what it has read and returns within some seconds.
    ///
    /// In [`Mode::Continuous`] it returns when cancelled, or when nothing is left that could go on: a dataset that fails is tried
    /// again after longer and longer waits, unless a person must mend it; then it stops, with what reads it, and the others go
    /// on. The report has the sums of the whole run and the last state of each dataset.
    ///
    /// # Errors
    /// [`Error::NoDataset`] when `only` names an unknown one; [`Error::Unprotected`] when a table that is written or read has a recorded
    /// mask or row filter and [`RunOptions::accept_unprotected`] is not set; [`Error::Lake`] when the functions or masks that people recorded
    /// cannot be read. A failing dataset is not an error: it is in the report.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), tributary::Error> {
    /// use tributary::{Lake, Pipeline, RunOptions};
    /// let lake = Lake::open("memory://", Default::default())?;
    /// let report = lake.run(&Pipeline::builder("empty").build()?, RunOptions::default()).await?;
    /// assert!(report.nothing_new());
    /// # Ok(()) }
    /// ```
    pub async fn run(&self, pipeline: &Pipeline, options: RunOptions) -> Result<RunReport, Error> {
        let pipeline = pipeline.with_functions_of(self).await?;
        let chosen = choose(&pipeline, &options)?;
        let pipeline = &protection::accepted(self, pipeline, &chosen, &options).await?;
        let lake = self.for_run(&options)?.leaving_definitions_of(pipeline);
        let phases = phases(pipeline, &chosen)?;
        match options.mode {
            Mode::Drain => drain::drain(&Run::new(lake, pipeline.clone(), options, None), phases).boxed().await,
            Mode::Continuous { every } => {
                let (tell, moved) = mpsc::unbounded_channel();
                let run = Run::new(lake, pipeline.clone(), options, Some(tell));
                Ok(stream::stream(run, phases, every.max(Duration::from_millis(10)), moved).boxed().await)
            }
        }
    }

    /// Looks, before a run, at what its feeds need of Kafka: brokers, topics, the right to read, records that are still there. One
    /// finding a broker and one a feed; none where no feed reads topics. Reads no record and joins no group.
    ///
    /// # Errors
    /// [`Error::Bronze`] when the base data path cannot be used.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// let pipeline = tributary::Pipeline::builder("empty").build()?;
    /// assert!(lake.check_kafka(&pipeline, &Default::default()).await?.is_empty());
    /// # Ok(()) }
    /// ```
    pub async fn check_kafka(&self, pipeline: &Pipeline, options: &RunOptions) -> Result<Vec<KafkaFinding>, Error> {
        let options = work::bronze_options(pipeline, options)?;
        Ok(tributary_bronze::kafka_check(self.inner(), &pipeline.spec().feeds, &options).boxed().await)
    }

    /// Tells the catalogues of a dataset that was committed to.
    fn announce(&self, dataset: &DatasetReport) {
        if dataset.status == Status::Committed
            && let (Ok(table), Some(version)) = (dataset.table.parse::<TableName>(), dataset.version_to)
        {
            self.catalogues().iter().for_each(|catalogue| catalogue.committed(&table, version));
        }
    }
}

/// Tables of the layers asked for, or exactly those that `only` names.
pub(crate) fn choose(pipeline: &Pipeline, options: &RunOptions) -> Result<BTreeSet<TableName>, Error> {
    let all = pipeline.spec().datasets();
    for wanted in options.only.iter().chain(&options.full_refresh) {
        if !all.iter().any(|dataset| dataset.table == *wanted) {
            return Err(Error::no_dataset(&wanted.to_string(), all.iter().map(|dataset| &dataset.table)));
        }
    }
    refuse_refreshes(pipeline, options)?;
    let chosen = all.into_iter().filter(|dataset| options.chooses(dataset.layer, &dataset.table));
    Ok(chosen.map(|dataset| dataset.table).collect())
}

/// A dataset that is not to be built anew is told before anything is touched.
fn refuse_refreshes(pipeline: &Pipeline, options: &RunOptions) -> Result<(), Error> {
    let spec = pipeline.spec();
    for wanted in &options.full_refresh {
        let table = wanted.to_string();
        let feeds = spec.feeds.iter().filter(|feed| feed.table == *wanted).map(|feed| &feed.properties);
        let silver = spec.silver.iter().filter(|silver| silver.table == *wanted).map(|silver| &silver.properties);
        let gold = spec.gold.iter().filter(|gold| gold.table == *wanted).map(|gold| &gold.properties);
        if !feeds.chain(silver).chain(gold).all(tributary_specs::reset_allowed) {
            return Err(Error::ResetNotAllowed { table });
        }
    }
    Ok(())
}

/// The work on what was chosen, in the levels of the graph.
fn phases(pipeline: &Pipeline, chosen: &BTreeSet<TableName>) -> Result<Vec<Vec<Work>>, Error> {
    let mut phases = Vec::new();
    for level in pipeline.spec().phases()? {
        let mut works = Vec::new();
        let mut feeds = Vec::new();
        for DatasetRef { layer, index, .. } in level.into_iter().filter(|dataset| chosen.contains(&dataset.table)) {
            match layer {
                Layer::Bronze => feeds.push(index),
                Layer::Silver => works.push(Work::Silver(index)),
                Layer::Gold => works.push(Work::Gold(index)),
            }
        }
        if !feeds.is_empty() {
            works.insert(0, Work::Feeds(feeds));
        }
        if !works.is_empty() {
            phases.push(works);
        }
    }
    Ok(phases)
}
