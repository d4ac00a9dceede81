//! `tributary-bronze` on the topic.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::events::Loaded;
use crate::process::{self, Measured};

/// The columns that bare JSON needs said.
pub const COLUMNS: &str = "
      - { name: order_id, type: long }
      - { name: customer_id, type: long }
      - { name: sku, type: string }
      - { name: warehouse, type: integer }
      - { name: qty, type: integer }
      - { name: amount, type: \"decimal(12,2)\", encoding: unscaled }
      - { name: status, type: string }
      - { name: placed_at, type: timestamp, encoding: iso }
      - { name: updated_at, type: timestamp, encoding: iso }
      - { name: ship_day, type: date }
      - { name: notes, type: string }
      - { name: carrier, type: string }";

/// The pipeline, one feed.
pub fn pipeline(bootstrap: &str, topic: &str) -> String {
    format!(
        "name: bench
feeds:
  - name: bench_orders
    table: bronze.orders
    source: {{ kafka: {{ bootstrap: \"{bootstrap}\", topics: [{topic}] }} }}
    columns:{COLUMNS}
"
    )
}

/// From start to exit, into an empty warehouse; every event must have become a row.
pub fn measure(bootstrap: &str, topic: &str, loaded: Loaded, folder: &Path) -> Result<Measured> {
    let file = folder.join("pipeline.yml");
    std::fs::write(&file, pipeline(bootstrap, topic))?;
    bronze(&file, folder, loaded.events)
}

/// `tributary-bronze` with this pipeline and a warehouse in the folder; so many rows must come out.
pub fn bronze(pipeline: &Path, folder: &Path, rows_wanted: u64) -> Result<Measured> {
    let report = folder.join("report.json");
    let mut command = Command::new(process::beside("tributary-bronze")?);
    command.env_clear().arg("--pipeline").arg(pipeline).arg("--warehouse").arg(folder.join("lake")).arg("--report").arg(&report);
    let measured = process::measure(&mut command)?;
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report)?)?;
    let rows: u64 = report["datasets"].as_array().into_iter().flatten().filter_map(|dataset| dataset["rows_out"].as_u64()).sum();
    if rows != rows_wanted {
        bail!("{rows} rows came out, {rows_wanted} should have");
    }
    Ok(measured)
}
