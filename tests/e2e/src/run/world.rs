//! Topics, connectors and pipeline of one run, with names of their own, so that runs may share a stack.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tributary::{Pipeline, Source};

use super::definition::Definition;
use crate::check::{Outcome, Prediction, Sides, compare};
use crate::connect::Connect;
use crate::delivered;
use crate::layers::Layers;
use crate::records::Records;
use crate::services::Services;
use crate::session::Database;

/// A silver table and the table of a database that it must equal.
#[derive(Debug, Clone)]
pub struct Compared {
    /// As `schema.table`.
    pub silver: &'static str,
    /// In the database.
    pub table: &'static str,
    /// Where that is.
    pub database: Database,
    /// Whether its line is one of the promised ones.
    pub promised: bool,
}

/// One run's places.
#[derive(Debug)]
pub struct World<'a> {
    /// The stack it runs on.
    pub services: &'a Services,
    /// Its folder: warehouses, logs, pipeline.
    pub folder: PathBuf,
    /// The worker.
    pub connect: Connect,
    /// Its connectors.
    pub connectors: Vec<String>,
    /// What is compared in the end.
    pub tables: Vec<Compared>,
    /// The pipeline, reading this run's topics.
    pub pipeline: Pipeline,
    /// Its texts.
    pub definition: Definition,
    /// Its file or folder.
    pub pipeline_path: PathBuf,
}

impl<'a> World<'a> {
    /// What names of a run's own end with.
    pub fn tag(name: &str) -> String {
        format!("{name}_{}", std::process::id())
    }

    /// A folder with a pipeline; no connector yet.
    pub fn new(services: &'a Services, tag: &str, definition: Definition) -> Result<Self> {
        let folder = services.folder.join("e2e").join(tag);
        std::fs::create_dir_all(&folder).context("making the run's folder")?;
        let (pipeline_path, pipeline) = (definition.write(&folder)?, definition.pipeline()?);
        let connect = Connect::new(services.get("CONNECT_URL")?);
        Ok(Self { services, folder, connect, connectors: Vec::new(), tables: Vec::new(), pipeline, definition, pipeline_path })
    }

    /// Makes a connector of files of this repository and `NAME=VALUE`s, see `tests/services/connector_config.py`.
    pub fn register(&mut self, name: &str, settings: &[String]) -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let is_file = |setting: &str| !setting.contains('=');
        let settings = settings.iter().map(|text| if is_file(text) { root.join(text).display().to_string() } else { text.clone() });
        let arguments: Vec<String> = ["register".to_owned(), name.to_owned()].into_iter().chain(settings).collect();
        self.services.tell("connect", &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        self.connectors.push(name.to_owned());
        Ok(())
    }

    /// Topics come into being with the first row of a snapshot.
    pub fn wait_for_topics(&self) -> Result<()> {
        wait_until("every topic has rows", Duration::from_secs(120), || {
            let mut records = self.records()?;
            records.read_on()?;
            Ok(records.of.values().all(|records| !records.is_empty()))
        })
    }

    /// Waits until a worker that is killed goes on in the stream. Before, it would take the snapshots again.
    pub fn wait_for_stream(&self) -> Result<()> {
        wait_until("connectors have noted down a place behind their snapshots", Duration::from_secs(120), || {
            self.connectors.iter().try_fold(true, |all, connector| Ok(all && self.connect.is_past_snapshot(connector)?))
        })
    }

    /// The binaries on a warehouse of this run.
    pub fn layers(&self, name: &str) -> Result<Layers> {
        Layers::new(&self.folder, name, &self.pipeline_path, Some(self.services.get("KAFKA_BOOTSTRAP")?))
    }

    /// The topics of this run, not read yet.
    pub fn records(&self) -> Result<Records> {
        let topics = self.pipeline.spec().feeds.iter().flat_map(|feed| match &feed.source {
            Source::Kafka(kafka) => kafka.topics.as_slice(),
            Source::Files(_) | Source::Custom(_) => &[],
        });
        Ok(Records::new(self.services.get("KAFKA_BOOTSTRAP")?, topics))
    }

    /// All records, once everything has been delivered.
    pub fn delivered(&self) -> Result<Records> {
        let mut records = self.records()?;
        let restarts = delivered::wait(&mut records, &self.connect, &self.connectors, Duration::from_secs(180))?;
        println!("{} records delivered, {restarts} restarts of failed connectors", records.count());
        Ok(records)
    }

    /// Compares a warehouse with topics and databases.
    pub fn compare(&self, warehouse: &Path, records: &Records, predictions: &[Prediction]) -> Result<Outcome> {
        let sides = Sides { pipeline: &self.pipeline, records, tables: &self.tables, predictions };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("a runtime")?;
        runtime.block_on(compare(warehouse, &sides))
    }

    /// How often the broker has seen this run's consumer group settle on a new assignment.
    pub fn rebalances(&self) -> Result<u32> {
        let log = std::fs::read(self.services.folder.join("kafka/log")).context("reading the broker's log")?;
        let settled = format!("Stabilized group tributary-{} ", self.pipeline.spec().name);
        let count = String::from_utf8_lossy(&log).lines().filter(|line| line.contains(&settled)).count();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Takes the connectors away.
    pub fn remove_connectors(&self) -> Result<()> {
        self.connectors.iter().try_for_each(|connector| self.connect.remove(connector))
    }
}

/// Asks twice a second until it is so; what could not be asked is asked again.
pub fn wait_until(what: &str, limit: Duration, mut so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    loop {
        let answer = so();
        if matches!(answer, Ok(true)) {
            return Ok(());
        }
        if begin.elapsed() > limit {
            let why = answer.err().map(|error| format!(": {error:#}")).unwrap_or_default();
            bail!("after {} s it is not so that {what}{why}", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}
