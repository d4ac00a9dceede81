//! Lakes as they are before a refresh, made once and kept; each run gets a copy of its own by hard links.
//!
//! ```text
//! <CARGO_TARGET_DIR>/bench-data/gold-<rows>/
//!     made/      silver.orders, silver.customers, silver.events and every view over them
//!     0.1%/      the same, with orders changed and the views as they were
//!     1%/
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tributary_bench::files::{link_all, remove};
use tributary_bench::orders::{self, Batch, Order, Part, Policy, Prepared, Shape, Spread};
use tributary_bench::process::{self, Measured};
use tributary_lake::Lake;
use tributary_specs::TableName;

use crate::views::{self, VIEWS, View};

/// How many orders change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Thousandth,
    Hundredth,
}

impl Changed {
    pub const ALL: [Self; 2] = [Self::Thousandth, Self::Hundredth];

    pub fn words(self) -> &'static str {
        match self {
            Self::Thousandth => "0.1%",
            Self::Hundredth => "1%",
        }
    }
}

/// How a view is refreshed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Auto,
    Full,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Full => "full",
        }
    }

    pub fn of_word(word: &str) -> Result<Self> {
        [Self::Auto, Self::Full].into_iter().find(|mode| mode.word() == word).with_context(|| format!("`{word}` is no mode"))
    }
}

/// What a refresh says at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Of the view.
    pub rows: u64,
    pub bytes_read: u64,
    pub mode: String,
    #[serde(default)]
    pub reason: String,
}

/// The lakes of orders of one size.
pub struct Lakes {
    runtime: Runtime,
    data: PathBuf,
    folder: PathBuf,
    pub rows: u64,
}

impl Lakes {
    /// Makes them, or finds them made.
    pub fn of(runtime: Runtime, data: &Path, rows: u64) -> Result<Self> {
        let lakes = Self { runtime, data: data.to_owned(), folder: data.join(format!("gold-{rows}")), rows };
        let made = lakes.folder.join("made");
        if !made.is_dir() {
            lakes.make(&made)?;
        }
        for changed in Changed::ALL.into_iter().filter(|changed| !lakes.folder.join(changed.words()).is_dir()) {
            lakes.change(&made, changed)?;
        }
        Ok(lakes)
    }

    fn make(&self, into: &Path) -> Result<()> {
        let shape = Shape { rows: self.rows, files: self.rows.div_ceil(1_000_000), order: Order::Key, policy: Policy::Current };
        let scratch = self.scratch()?;
        self.runtime.block_on(async {
            let prepared = Prepared::of(&self.data, shape).await?;
            prepared.copy(Part::Lake { feed: true }, &scratch)?;
            prepared.remove()?; // its files live on in the copy
            eprintln!("making customers, events and views");
            let lake = orders::open(&scratch, usize::MAX)?;
            views::make_others(&lake).await?;
            for view in VIEWS {
                run(&scratch, view, Mode::Auto, 4 << 30).await.with_context(|| format!("making {}", view.name))?;
            }
            anyhow::Ok(())
        })?;
        std::fs::create_dir_all(&self.folder)?;
        Ok(std::fs::rename(scratch, into)?)
    }

    fn change(&self, made: &Path, changed: Changed) -> Result<()> {
        eprintln!("changing {} of the orders", changed.words());
        let scratch = self.scratch()?;
        link_all(made, &scratch)?;
        let (spread, changes) = (Spread::Scattered, self.changes(changed));
        let batch = Batch { spread, changes, rows: self.rows, number: 0, before_images: false };
        self.runtime.block_on(async {
            let lake = orders::open(&scratch, 4 << 30)?;
            orders::append(&lake, &batch).await?;
            orders::merge(&lake, Policy::Current, &tributary_silver_merge::Options::default()).await
        })?;
        Ok(std::fs::rename(scratch, self.folder.join(changed.words()))?)
    }

    fn scratch(&self) -> Result<PathBuf> {
        let scratch = self.data.join("making-gold");
        remove(&scratch)?;
        Ok(scratch)
    }

    pub fn changes(&self, changed: Changed) -> u64 {
        self.rows
            / match changed {
                Changed::Thousandth => 1000,
                Changed::Hundredth => 100,
            }
    }

    /// Where runs have their copies.
    pub fn runs(&self) -> PathBuf {
        self.data.join("run-gold")
    }

    /// The Parquet files of each input before any change.
    pub fn inputs(&self) -> Result<BTreeMap<&'static str, Vec<PathBuf>>> {
        let made = self.folder.join("made");
        self.runtime.block_on(async {
            let lake = orders::open(&made, usize::MAX)?;
            let mut inputs = BTreeMap::new();
            for name in ["orders", "customers", "events"] {
                let files = table(&lake, &TableName::new("silver", name)).await?.files().await?;
                let folder = made.join("main/silver").join(name);
                inputs.insert(name, files.iter().map(|file| folder.join(&file.path)).collect());
            }
            Ok(inputs)
        })
    }

    /// A refresh in a process of its own, from start to exit.
    pub fn measure(&self, view: View, changed: Option<Changed>, mode: Mode, memory_limit: usize) -> Result<(Measured, Outcome)> {
        let folder = self.runs().join("lake");
        remove(&folder)?;
        link_all(&self.folder.join(changed.map_or("made", Changed::words)), &folder)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--run").arg(&folder).args([view.name, mode.word(), &memory_limit.to_string()]);
        let (took, printed) = process::measure(&mut command)?;
        Ok((took, serde_json::from_str(&printed).with_context(|| format!("a run said `{printed}`"))?))
    }

    /// The view that the last run left must be the one that a refresh in full makes of the same inputs.
    pub fn compare(&self, view: View, changed: Changed) -> Result<()> {
        let incremental = self.counted(view)?;
        self.measure(view, Some(changed), Mode::Full, 4 << 30)?;
        let full = self.counted(view)?;
        if incremental != full {
            bail!("{} is not what its query says: {incremental:?} rows and sum, in full {full:?}", view.name);
        }
        println!("{}, {} changed: {} rows as in full", view.name, changed.words(), full.0);
        Ok(())
    }

    fn counted(&self, view: View) -> Result<(u64, u64)> {
        self.runtime.block_on(async {
            let lake = orders::open(&self.runs().join("lake"), usize::MAX)?;
            views::counted(&table(&lake, &view.table()).await?).await
        })
    }
}

async fn table(lake: &Lake, name: &TableName) -> Result<tributary_lake::Table> {
    lake.table(name).await?.with_context(|| format!("there is no {name}"))
}

/// What that process does.
pub async fn run(folder: &Path, view: View, mode: Mode, memory_limit: usize) -> Result<Outcome> {
    // as the program deals its limit: half to the queries, half to the engine
    let lake = orders::open(folder, memory_limit / 2)?;
    let options = tributary_gold_agg::Options { full_refresh: mode == Mode::Full, ..tributary_gold_agg::Options::default() };
    let report = tributary_gold_agg::run(&lake, &view.spec(), &options).await?;
    let files = table(&lake, &view.table()).await?.files().await?;
    let rows = files.iter().filter_map(tributary_lake::DataFile::live_rows).sum();
    Ok(Outcome { rows, bytes_read: process::bytes_read()?, mode: report.mode, reason: format!("{}; {}", report.reason, report.means) })
}
