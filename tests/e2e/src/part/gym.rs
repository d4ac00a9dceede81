//! The gym pipeline over topics of a real broker, which is restarted between two drains: every table equals, value for value, what the
//! records tell by themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use serde_json::Value;
use tributary::{Lake, OpenOptions};
use tributary_cli::gym::{Gym, GymOptions, compare};

use crate::check::Outcome;
use crate::layers::Layers;
use crate::run::{PATIENCE, World, wait_until};
use crate::services::Services;

/// The topics, by the names that the pipeline's SQL has; a record's own says which of the multiplexed rows it is.
const TOPICS: [&str; 3] = ["user_info", "workout", "bpm"];
const PARTITIONS: i32 = 3;
/// How long the broker may take over one step.
const STEP: Duration = Duration::from_secs(30);
const AS_OF: &str = "2024-01-03";

pub(super) fn run(services: &Services, seed: u64) -> Result<Outcome> {
    let club = Club::new(services, seed)?;
    let mut records = 0;
    for file in 1..=club.gym.options.files {
        records += club.arrive(file)?;
        ensure!(club.drain()? == 0, "a drain failed: {}", club.folder.join("run.log").display());
        if file == 1 {
            services.tell("kafka", &["restart"])?;
        }
    }
    ensure!(club.drain()? == 0, "a drain of nothing new failed");
    let mut outcome = Outcome::holding();
    club.compare(records, &mut outcome)?;
    remake(&club.bootstrap, false)?;
    outcome.lines.push(format!("gym equals what {records} records of {} topics tell, the broker restarted once", TOPICS.len()));
    Ok(outcome)
}

/// The bundle of this repository in a folder of the run, over topics that begin empty.
struct Club {
    folder: PathBuf,
    binaries: PathBuf,
    bootstrap: String,
    gym: Gym,
}

impl Club {
    fn new(services: &Services, seed: u64) -> Result<Self> {
        let folder = services.folder.join("e2e").join(World::tag("gym"));
        fs::create_dir_all(folder.join("data/raw")).context("making the run's folder")?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let bundle = ["databricks.yml", "bundles", "dlt_pipelines"].map(|name| root.join(name));
        let copied = Command::new("cp").arg("-r").args(bundle).arg(&folder).status().context("copying the bundle")?;
        ensure!(copied.success(), "the bundle could not be copied");
        let bootstrap = services.get("KAFKA_BOOTSTRAP")?.to_owned();
        remake(&bootstrap, true)?;
        let gym = Gym::of(GymOptions { seed, users: 20, days: 9, heart_rate_seconds: 40, ..GymOptions::default() });
        gym.write_lookup(&folder.join("data/raw"))?;
        let binaries = Layers::new(&folder, "lake", &folder, None)?.binaries;
        Ok(Self { folder, binaries, bootstrap, gym })
    }

    /// What comes with the files of a number: dumps into their topics, the rest into the folder of files. Gives the number of records.
    fn arrive(&self, file: u32) -> Result<usize> {
        let (dumps, raw) = (self.folder.join(format!("dump_{file}")), self.folder.join("data/raw"));
        let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", &self.bootstrap).create().context("a producer")?;
        let mut records = 0;
        for name in self.gym.write_files(&dumps, file)? {
            match name.starts_with(['2', '3', '4']) {
                true => records += put(&producer, &dumps.join(&name))?,
                false => drop(fs::copy(dumps.join(&name), raw.join(&name))?),
            }
        }
        Ok(records)
    }

    fn drain(&self) -> Result<i32> {
        let log = fs::File::options().create(true).append(true).open(self.folder.join("run.log")).context("a log file")?;
        let mut command = Command::new(self.binaries.join("tributary"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TRIBUTARY_")) {
            command.env_remove(name);
        }
        command.args(["run", "--pipeline", "gym_kafka", "--kafka-bootstrap", &self.bootstrap, "--as-of", AS_OF]);
        command.current_dir(&self.folder).stdout(log.try_clone()?).stderr(log);
        Ok(command.status().context("starting tributary")?.code().unwrap_or(-1))
    }

    /// Every table beside what the records tell, but for the places in topics, which are not those of the dump: each is there once.
    fn compare(&self, records: usize, outcome: &mut Outcome) -> Result<()> {
        let lake = Lake::open(&self.folder.join("data/lake").to_string_lossy(), OpenOptions::default())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")?;
        let beside = |gym: &Gym| {
            let mut expected = gym.expected(AS_OF.parse().context("a day")?);
            expected.remove("bronze.kafka_multiplex_bz");
            runtime.block_on(compare(&lake, &expected)).map_err(anyhow::Error::msg)
        };
        for table in beside(&self.gym)? {
            if table.rows == 0 || !table.differences.is_empty() {
                outcome.fail(format!("{} has {} rows\n{}", table.table, table.rows, table.differences.join("\n")));
            }
        }
        // The control: what other records tell is something else.
        let other = Gym::of(GymOptions { seed: self.gym.options.seed.wrapping_add(1), ..self.gym.options });
        ensure!(beside(&other)?.iter().any(|table| !table.differences.is_empty()), "the comparison finds no difference from other records");
        let query = "select count(*) from bronze.kafka_multiplex_bz union all select count(distinct topic, partition, offset) from bronze.kafka_multiplex_bz";
        let counts = runtime.block_on(crate::check::longs(&self.folder.join("data/lake"), query))?;
        if counts.iter().any(|count| usize::try_from(*count).ok() != Some(records)) || counts.len() != 2 {
            outcome.fail(format!("{records} records, and rows and places of bronze.kafka_multiplex_bz: {counts:?}"));
        }
        Ok(())
    }
}

/// Moves a dump's records into their topics, as who dumped them had taken them out. Gives their number.
fn put(producer: &BaseProducer, dump: &Path) -> Result<usize> {
    let text = fs::read_to_string(dump).with_context(|| dump.display().to_string())?;
    let lines: Vec<Value> = text.lines().filter(|line| !line.is_empty()).map(serde_json::from_str).collect::<Result<_, _>>()?;
    for line in &lines {
        let text = |name: &str| line[name].as_str().with_context(|| format!("a record without its {name}: {line}"));
        let number = |name: &str| line[name].as_i64().with_context(|| format!("a record without its {name}: {line}"));
        let value = text("value")?;
        let told: Value = serde_json::from_str(value)?;
        let key = told.get("user_id").unwrap_or_else(|| &told["device_id"]).to_string();
        let record = BaseRecord::to(text("topic")?).partition(i32::try_from(number("partition")?)?).key(&key).payload(value);
        let mut record = record.timestamp(number("timestamp")? * 1000);
        while let Err((error, again)) = producer.send(record) {
            let full = error.rdkafka_error_code() == Some(rdkafka::types::RDKafkaErrorCode::QueueFull);
            ensure!(full, "writing: {error}");
            producer.poll(Duration::from_millis(10));
            record = again;
        }
    }
    producer.flush(STEP).context("writing")?;
    Ok(lines.len())
}

/// Takes the topics away, which other runs over the stack may have left, and makes them where they are wanted.
fn remake(bootstrap: &str, wanted: bool) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", bootstrap).create().context("an admin client")?;
    let options = AdminOptions::new().operation_timeout(Some(STEP));
    // what is not there is no reason to stop: what is wanted is made below
    let _ = futures::executor::block_on(admin.delete_topics(&TOPICS, &options)).context("taking topics away")?;
    if !wanted {
        return Ok(());
    }
    let mut left = TOPICS.to_vec();
    // what goes is there for a while
    wait_until("the topics are made", PATIENCE, || {
        let topics: Vec<NewTopic<'_>> = left.iter().map(|topic| NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1))).collect();
        let made = futures::executor::block_on(admin.create_topics(&topics, &options)).context("making topics")?;
        left.retain(|topic| !made.iter().any(|answer| answer.as_deref() == Ok(*topic)));
        Ok(left.is_empty())
    })
}
