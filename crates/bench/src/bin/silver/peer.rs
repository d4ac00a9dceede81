//! The same changes by delta-rs's Python package, in an environment of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use crate::data::{Batch, Kinds};
use crate::process::{self, Measured};
use crate::target;

const MERGE: &str = include_str!("peer.py");

/// The interpreter; it is an error when it is not installed.
pub fn interpreter() -> Result<PathBuf> {
    let services = match std::env::var_os("SERVICES_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache/tributary-services"),
    };
    let python = services.join("delta_rs/bin/python");
    if !python.is_file() {
        bail!("no delta-rs at {}: `tests/services/install.sh delta_rs` installs it", python.display());
    }
    Ok(python)
}

/// From start to exit; it must do what the batch says.
pub fn measure(table: &Path, batch: &Batch) -> Result<Measured> {
    let changes = table.with_extension("changes.parquet");
    write(batch, &changes)?;
    let mut command = Command::new(interpreter()?);
    command.arg("-c").arg(MERGE).arg(table).arg(&changes);
    let (mut measured, printed) = process::measure(&mut command)?;
    let outcome: Value = serde_json::from_str(&printed).with_context(|| format!("delta-rs said `{printed}`"))?;
    let Kinds { inserted, updated, deleted } = batch.kinds();
    let wanted = serde_json::json!({ "inserted": inserted, "updated": updated, "deleted": deleted });
    if outcome != wanted {
        bail!("delta-rs did {outcome}, it should have done {wanted}");
    }
    measured.bytes_written = target::bytes_written(table)?;
    std::fs::remove_file(changes)?;
    Ok(measured)
}

fn write(batch: &Batch, file: &Path) -> Result<()> {
    let rows = batch.plain()?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(File::create(file)?, rows.schema(), Some(properties))?;
    writer.write(&rows)?;
    writer.close()?;
    Ok(())
}
