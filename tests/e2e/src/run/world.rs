//! Databases, connectors and pipeline of one run, with names of their own, so that runs may share a stack.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tributary::Pipeline;

use crate::check::{Outcome, Prediction, Sides, compare};
use crate::connect::Connect;
use crate::delivered;
use crate::layers::Layers;
use crate::records::Records;
use crate::services::Services;
use crate::session::Database;
use crate::workload::{Depot, Profile, Shop};

/// One run's places.
#[derive(Debug)]
pub struct World<'a> {
    /// The stack it runs on.
    pub services: &'a Services,
    /// What its connectors lose.
    pub profile: Profile,
    /// Its folder: warehouses, logs, pipeline.
    pub folder: PathBuf,
    /// The worker.
    pub connect: Connect,
    /// Its connectors, shop first.
    pub connectors: [String; 2],
    /// The database of orders and customers.
    pub shop: Database,
    /// The database of the inventory.
    pub depot: Database,
    /// The pipeline, reading this run's topics.
    pub pipeline: Pipeline,
    /// Its file.
    pub pipeline_file: PathBuf,
    topics: [String; 3],
}

impl<'a> World<'a> {
    /// Makes databases, first rows and connectors; gives the workloads back that go on from there.
    pub fn prepare(services: &'a Services, profile: Profile, seed: u64) -> Result<(Self, Shop, Depot)> {
        let number = std::process::id();
        let tag = format!("{}_{number}", profile.name());
        let folder = services.folder.join("e2e").join(&tag);
        std::fs::create_dir_all(&folder).context("making the run's folder")?;
        let (shop_name, depot_name) = (format!("shop_{tag}"), format!("depot_{tag}"));

        let (postgres, mariadb) = (services.postgres()?, services.mariadb()?);
        postgres.execute_all([format!("create database {shop_name}").as_str()])?;
        mariadb.execute_all([format!("create database {depot_name} character set utf8mb4").as_str()])?;
        let (shop, depot) = (postgres.named(&shop_name), mariadb.named(&depot_name));
        let (mut orders, mut inventory) = (Shop::new(profile, seed), Depot::new(profile, seed));
        shop.execute_all(Shop::schema(profile).iter().chain(&orders.first_rows()).map(String::as_str))?;
        depot.execute_all(Depot::schema().iter().chain(&inventory.first_rows()).map(String::as_str))?;

        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let register = |name: &str, file: &str, database: String, words: &[String]| {
            let path = here.join("connectors").join(profile.name()).join(file).display().to_string();
            let mut arguments = vec!["register".to_owned(), name.to_owned(), path, format!("TOPIC_PREFIX={name}"), database];
            arguments.extend_from_slice(words);
            services.tell("connect", &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        };
        register(&shop_name, "shop.json", format!("PGDATABASE={shop_name}"), &[format!("SLOT=slot_{tag}")])?;
        register(
            &depot_name,
            "depot.json",
            format!("MYSQL_DATABASE={depot_name}"),
            &[format!("SERVER_ID={}", 10_000 + 2 * number + u32::from(profile == Profile::Hostile))],
        )?;

        let text = std::fs::read_to_string(here.join("pipelines").join(format!("{}.yml", profile.name()))).context("the pipeline")?;
        // the consumer group is named after the pipeline
        let text = text.replace("name: retail\n", &format!("name: retail_{tag}\n"));
        let text = text.replace("topics: [shop.", &format!("topics: [{shop_name}."));
        let text = text.replace("topics: [depot.depot.", &format!("topics: [{depot_name}.{depot_name}."));
        let pipeline_file = folder.join("pipeline.yml");
        std::fs::write(&pipeline_file, &text).context("writing the pipeline")?;
        let pipeline = Pipeline::from_yaml(&[("pipeline.yml", &text)])?;
        let topics =
            [format!("{shop_name}.public.orders"), format!("{shop_name}.public.customers"), format!("{depot_name}.{depot_name}.inventory")];
        let connect = Connect::new(services.get("CONNECT_URL")?);
        let connectors = [shop_name, depot_name];
        let world = Self { services, profile, folder, connect, connectors, shop, depot, pipeline, pipeline_file, topics };
        world.wait_for_topics()?;
        Ok((world, orders, inventory))
    }

    /// Topics come into being with the first row of a snapshot.
    fn wait_for_topics(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let mut records = self.records()?;
            let read = records.read_on();
            if read.is_ok() && records.of.values().all(|records| !records.is_empty()) {
                return Ok(());
            }
            if begin.elapsed() > Duration::from_secs(120) {
                return read.and_then(|()| anyhow::bail!("after 120 s there is a topic without rows"));
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// The binaries on a warehouse of this run.
    pub fn layers(&self, name: &str) -> Result<Layers> {
        Layers::new(&self.folder, name, &self.pipeline_file, self.services.get("KAFKA_BOOTSTRAP")?)
    }

    fn records(&self) -> Result<Records> {
        let topics: Vec<&str> = self.topics.iter().map(String::as_str).collect();
        Ok(Records::new(self.services.get("KAFKA_BOOTSTRAP")?, &topics))
    }

    /// All records, once everything has been delivered.
    pub fn delivered(&self) -> Result<Records> {
        let mut records = self.records()?;
        let connectors: Vec<&str> = self.connectors.iter().map(String::as_str).collect();
        delivered::wait(&mut records, &self.connect, &connectors, Duration::from_secs(180))?;
        Ok(records)
    }

    /// Compares a warehouse with topics and databases.
    pub fn compare(&self, warehouse: &Path, records: &Records, predictions: &[Prediction]) -> Result<Outcome> {
        let sides = Sides { pipeline: &self.pipeline, records, shop: &self.shop, depot: &self.depot, predictions };
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
