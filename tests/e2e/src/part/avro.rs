//! Records in Avro, framed by a schema registry that is away while a new version of the schema comes.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::operation::{METRICS, sample, samples};
use crate::check::{Outcome, of_avro};
use crate::layers::{Layers, Process};
use crate::records::Records;
use crate::run::{Compared, Definition, Drains, PATIENCE, World, wait_until};
use crate::services::Services;
use crate::session::Database;
use crate::workload::{Payments, Workload as _, perform};

const PIPELINE: &str = include_str!("../../pipelines/avro.yml");
/// As for the shop, with the Avro converter.
const SETTINGS: [&str; 3] =
    ["docker/debezium/postgres.json", "tests/services/connectors/postgres.json", "tests/services/connectors/avro.json"];
/// Transactions a second: as fast as the database takes them.
const PER_SECOND: u32 = 1000;
/// How long a registry may be away before bronze says so: a drain asks again for half a minute.
const NOTICED: Duration = Duration::from_secs(60);
const TABLE: &str = "bronze.payments";

pub(super) fn run(services: &Services, seed: u64) -> Result<Vec<(&'static str, Outcome)>> {
    let (mut world, mut payments, database) = prepare(services, seed)?;
    let (drained, continuous) = (layers(&world, "drained")?, layers(&world, "continuous")?);
    let bronze = continuous.stream_with("bronze", "continuous-bronze", METRICS)?;
    // so many as are appointed, and no more
    perform(&database, &mut payments, PER_SECOND, &Mutex::new(()), &AtomicBool::new(true))?;
    database.execute_all(payments.markers().iter().map(String::as_str))?;
    let mut records = world.delivered()?;
    wait_until("continuous bronze has all", PATIENCE, || has_all(&bronze, &records))?;

    // a version of the schema that nobody has looked up yet, and then nobody to ask for it
    bronze.signal("STOP")?;
    let changed = later(&database)?;
    wait_for_more(&mut records, changed)?;
    services.tell("registry", &["stop"])?;
    bronze.signal("CONT")?;
    let refused = refusal(&drained)?;
    wait_until("continuous bronze tells that it fails", NOTICED, || {
        Ok(sample(&samples(&bronze)?, "tributary_dataset_failing", TABLE)? == 1.0)
    })?;
    services.tell("registry", &["start"])?;

    let mut outcomes = Vec::new();
    let mut drains = Drains::new(&drained);
    drains.all()?;
    let mut outcome = world.compare(&drained.warehouse, &records, &of_avro())?;
    drains.check(&mut outcome);
    outcome.lines.push(format!("registry away: a drain ended with 1 and {refused}, a continuous run told it and went on by itself"));
    outcomes.push(("avro, drained", outcome));
    wait_until("continuous bronze has all", PATIENCE, || has_all(&bronze, &records))?;
    let mut bronze = bronze;
    bronze.terminate(Duration::from_secs(10))?;
    let (code, report) = continuous.drain("silver")?;
    ensure!(code == 0, "silver ended with {code}: {report:#}");
    outcomes.push(("avro, continuous", world.compare(&continuous.warehouse, &records, &of_avro())?));
    world.remove_connectors()?;
    world.connectors.clear();
    Ok(outcomes)
}

fn prepare(services: &Services, seed: u64) -> Result<(World<'_>, Payments, Database)> {
    let tag = World::tag("avro");
    let name = format!("payments_{tag}");
    let pipeline = PIPELINE.replace("name: payments\nfeeds", &format!("name: {tag}\nfeeds")).replace("[payments.", &format!("[{name}."));
    let mut world = World::new(services, &tag, Definition::Yaml(pipeline))?;
    let database = services.postgres()?.create(&name)?;
    let mut payments = Payments::new(seed);
    database.execute_all(Payments::schema().iter().chain(&payments.first_rows()).map(String::as_str))?;
    let settings = SETTINGS.map(str::to_owned).into_iter();
    let settings: Vec<String> = settings.chain([format!("PGDATABASE={name}"), "table.include.list=public.payments".to_owned()]).collect();
    world.register(&name, &settings)?;
    world.tables.push(Compared { silver: "silver.payments", table: "payments", database: database.clone(), promised: true });
    world.wait_for_topics()?;
    Ok((world, payments, database))
}

fn layers(world: &World<'_>, name: &str) -> Result<Layers> {
    let flags = vec!["--schema-registry".to_owned(), world.services.get("REGISTRY_URL")?.to_owned()];
    Ok(Layers { flags: [("bronze", flags)].into(), ..world.layers(name)? })
}

#[allow(clippy::cast_precision_loss, reason = "a workload's records are few")]
fn has_all(bronze: &Process, records: &Records) -> Result<bool> {
    Ok(sample(&samples(bronze)?, "tributary_rows_total", TABLE)? == records.count() as f64)
}

/// Adds a column and fills it in some rows; how many.
fn later(database: &Database) -> Result<usize> {
    database.execute_all(["alter table payments add column late text", "update payments set late = 'later' where number % 3 = 0"])?;
    let counted = database.rows("select count(*) from payments where late is not null")?;
    let count = counted.into_iter().flatten().flatten().next().context("a count")?;
    count.parse().context("a count is a number")
}

fn wait_for_more(records: &mut Records, more: usize) -> Result<()> {
    let all = records.count() + more;
    wait_until("the changed rows are in the topic", PATIENCE, || {
        records.read_on()?;
        Ok(records.count() >= all)
    })
}

/// A drain with no registry must end with the code that says to try again; what it says.
fn refusal(layers: &Layers) -> Result<String> {
    let (code, report) = layers.drain("bronze")?;
    let error = &report["datasets"][0]["error"];
    ensure!(code == 1 && error["code"] == "BR0027", "without a registry a drain ends with {code}: {report:#}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(text(&error["code"]))
}
