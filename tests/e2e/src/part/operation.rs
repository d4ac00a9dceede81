//! What people who run it look at: the metrics of a continuous bronze, and `tributary doctor`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::check::Outcome;
use crate::http;
use crate::layers::{Layers, Process};
use crate::run::{World, wait_until};

/// Flags of a process whose metrics are looked at.
pub(super) const METRICS: &[&str] = &["--metrics-listen", "127.0.0.1:0"];

/// All samples that a process shows.
pub(super) fn samples(process: &Process) -> Result<BTreeMap<String, f64>> {
    Ok(http::samples(&http::call("GET", &format!("http://{}/metrics", process.metrics_address()?))?))
}

/// The sample of a metric of a bronze table.
pub(super) fn sample(samples: &BTreeMap<String, f64>, metric: &str, table: &str) -> Result<f64> {
    let series = format!("{metric}{{dataset=\"{table}\",layer=\"bronze\"}}");
    samples.get(&series).copied().with_context(|| format!("/metrics has no {series}"))
}

fn tables(world: &World<'_>) -> Vec<String> {
    world.pipeline.spec().feeds.iter().map(|feed| feed.table.to_string()).collect()
}

/// While the workload runs, every table says how far it is behind, in records and in seconds.
pub(super) fn metrics_at_work(world: &World<'_>, bronze: &Process, outcome: &mut Outcome) -> Result<()> {
    let mut said = Vec::new();
    wait_until("/metrics tells every table's lag", Duration::from_secs(60), || {
        let samples = samples(bronze)?;
        said = tables(world).iter().map(|table| lag(&samples, table)).collect::<Result<_>>()?;
        Ok(true)
    })?;
    outcome.details.push(format!("metrics at work: {}", said.join("; ")));
    Ok(())
}

fn lag(samples: &BTreeMap<String, f64>, table: &str) -> Result<String> {
    let (records, seconds) = (sample(samples, "tributary_lag_records", table)?, sample(samples, "tributary_lag_seconds", table)?);
    ensure!(records >= 0.0 && (0.0..86_400.0).contains(&seconds), "{table} is said to be {records} records and {seconds} s behind");
    Ok(format!("{table} {records} records, {seconds:.1} s behind"))
}

/// When all has been taken up, no table is behind, and the records taken up are those of the topics.
pub(super) fn metrics_at_rest(world: &World<'_>, bronze: &Process, records: usize, outcome: &mut Outcome) -> Result<()> {
    let mut taken = 0.0;
    let at_rest = wait_until("no table is behind by /metrics", Duration::from_secs(30), || {
        let samples = samples(bronze)?;
        let sum = |metric: &str| tables(world).iter().map(|table| sample(&samples, metric, table)).sum::<Result<f64>>();
        taken = sum("tributary_rows_total")?;
        Ok(sum("tributary_lag_records")? == 0.0 && sum("tributary_dataset_failing")? == 0.0)
    });
    let health = http::call("GET", &format!("http://{}/health", bronze.metrics_address()?)).and_then(|text| status(&text));
    outcome
        .lines
        .push(format!("metrics: {taken} of {records} records taken up, nothing behind; health {}", health.as_deref().unwrap_or("?")));
    #[allow(clippy::cast_precision_loss, reason = "a workload's records are few")]
    if taken != records as f64 {
        outcome.fail("the metrics do not add up to the topics' records".to_owned());
    }
    match health {
        Ok(status) if status == "ok" => {}
        other => outcome.fail(format!("/health answers {other:?}")),
    }
    at_rest
}

fn status(health: &str) -> Result<String> {
    let health: Value = serde_json::from_str(health).context("/health is JSON")?;
    Ok(health["status"].as_str().unwrap_or_default().to_owned())
}

/// `tributary doctor` finds all in order, and with a misspelt topic that topic and nothing else.
pub(super) fn doctor(world: &World<'_>, layers: &Layers, outcome: &mut Outcome) -> Result<()> {
    let registry = world.services.get("REGISTRY_URL")?;
    let (code, findings) = layers.doctor(&["--schema-registry", registry])?;
    let feeds = world.pipeline.spec().feeds.iter().map(|feed| format!("feed {}", feed.name));
    let brokers = [format!("broker {}", world.services.get("KAFKA_BOOTSTRAP")?), format!("registry {registry}")];
    let missing: Vec<String> =
        feeds.chain(brokers).filter(|subject| !findings.iter().any(|finding| finding["subject"] == **subject)).collect();
    let failed = |findings: &[Value]| -> Vec<String> {
        findings
            .iter()
            .filter(|finding| finding["outcome"] != "ok")
            .map(|finding| format!("{} {}", finding["code"], finding["detail"]))
            .collect()
    };
    let looked_at_warehouse = findings.iter().any(|finding| finding["check"] == "warehouse");
    if code != 0 || !missing.is_empty() || !failed(&findings).is_empty() || !looked_at_warehouse {
        outcome.fail(format!("doctor exits {code}, passes over {missing:?}, finds wrong {:?}", failed(&findings)));
    }

    let definition = world.definition.clone().replaced("public.orders'", "public.oders'")?;
    let misspelt = Layers { pipeline: definition.write(&world.folder.join("misspelt"))?, ..layers.clone() };
    let (refusal, findings) = misspelt.doctor(&[])?;
    let wrong = failed(&findings);
    if refusal != 2 || wrong.len() != 1 || !wrong[0].contains("public.oders") {
        outcome.fail(format!("doctor exits {refusal} over a topic that is not there and says {wrong:?}"));
    }
    outcome.lines.push(format!(
        "doctor: warehouse, broker, {} topics and registry in order; a missing topic is named: {}",
        world.pipeline.spec().feeds.len(),
        wrong.join("; ")
    ));
    Ok(())
}
