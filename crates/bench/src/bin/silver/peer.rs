//! The same changes by others, each in an environment of its own.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use tributary_bench::files::bytes_written;
use tributary_bench::orders::{self, Batch, Kinds};
use tributary_bench::process::{self, Measured, services};

/// Who else can MERGE into a Delta table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Its Python package.
    DeltaRs,
    /// On all cores, with deletion vectors.
    Spark,
}

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Self::DeltaRs => "delta-rs",
            Self::Spark => "spark",
        }
    }

    /// The environment's folder; it is an error when it is not installed.
    pub fn environment(self) -> Result<PathBuf> {
        let (name, group) = match self {
            Self::DeltaRs => ("delta_rs", "delta_rs"),
            Self::Spark => ("pyspark", "interop"),
        };
        let folder = services()?.join(name);
        if !folder.join("bin/python").is_file() {
            bail!("no {} at {}: `tests/services/install.sh {group}` installs it", self.name(), folder.display());
        }
        Ok(folder)
    }

    /// What merges the changes of a file into a table.
    pub fn command(self, table: &Path, changes: &Path) -> Result<Command> {
        let environment = self.environment()?;
        let python = environment.join("bin/python");
        let mut command = match self {
            Self::DeltaRs => {
                let mut command = Command::new(python);
                command.arg("-c").arg(include_str!("delta_rs.py"));
                command
            }
            Self::Spark => {
                let script = changes.with_extension("py");
                fs::write(&script, include_str!("spark.py"))?;
                let mut command = Command::new(environment.join("bin/spark-submit"));
                command.env("PYSPARK_PYTHON", python).env_remove("SPARK_HOME");
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                command.args(["--master", &format!("local[{cores}]"), "--driver-memory", "6g"]);
                command.args(["--driver-class-path", &delta_jars(&environment)?, "--driver-java-options", "-XX:+UseParallelGC"]);
                for setting in [
                    "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
                    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
                    "spark.sql.session.timeZone=UTC",
                    "spark.sql.parquet.compression.codec=zstd",
                    &format!("spark.sql.shuffle.partitions={}", 4 * cores),
                    "spark.databricks.delta.snapshotPartitions=1",
                    "spark.driver.bindAddress=127.0.0.1",
                    "spark.driver.host=127.0.0.1",
                    "spark.ui.enabled=false",
                    "spark.ui.showConsoleProgress=false",
                    "spark.log.level=ERROR",
                ] {
                    command.args(["--conf", setting]);
                }
                command.arg(script);
                command
            }
        };
        command.arg(table).arg(changes);
        Ok(command)
    }

    /// From start to exit; it must do what the batch says.
    pub fn measure(self, table: &Path, batch: &Batch) -> Result<Measured> {
        let changes = table.with_extension("changes.parquet");
        write(batch, &changes)?;
        if self == Self::Spark {
            orders::allow_vectors(table)?;
        }
        let bytes_before = bytes_written(table)?;
        let (mut measured, printed) = process::measure(&mut self.command(table, &changes)?)?;
        let outcome: Value = serde_json::from_str(&printed).with_context(|| format!("{} said `{printed}`", self.name()))?;
        let Kinds { inserted, updated, deleted } = batch.kinds();
        let wanted = serde_json::json!({ "inserted": inserted, "updated": updated, "deleted": deleted });
        if outcome != wanted {
            bail!("{} did {outcome}, it should have done {wanted}", self.name());
        }
        measured.bytes_written = bytes_written(table)? - bytes_before;
        fs::remove_file(changes)?;
        Ok(measured)
    }
}

/// The jars of Delta that Spark does not bring, as a class path.
fn delta_jars(environment: &Path) -> Result<String> {
    let (added, lib) = (services()?.join("jars/spark"), environment.join("lib"));
    let python = names(&lib)?.into_iter().find(|name| name.starts_with("python"));
    let own = lib.join(python.context("no packages in Spark's environment")?).join("site-packages/pyspark/jars");
    let artifact = |jar: &str| jar.rsplit_once('-').map(|(name, _)| name.to_owned());
    let own: BTreeSet<_> = names(&own)?.iter().map(|jar| artifact(jar)).collect();
    let jars = names(&added)?.into_iter().filter(|jar| jar.ends_with(".jar") && !own.contains(&artifact(jar)));
    Ok(jars.map(|jar| added.join(jar).display().to_string()).collect::<Vec<_>>().join(":"))
}

/// What lies in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut found = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}

fn write(batch: &Batch, file: &Path) -> Result<()> {
    let rows = batch.plain()?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(File::create(file)?, rows.schema(), Some(properties))?;
    writer.write(&rows)?;
    writer.close()?;
    Ok(())
}
