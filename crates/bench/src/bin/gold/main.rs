//! Views brought up to date, in full and by what changed: `gold [VIEW..] [--rows N]`, all views unless said.
//!
//! The inputs are `silver.orders` (50 million rows of 12 columns in files of a million, in key order), `silver.customers` with the
//! history of 500 thousand customers, and `silver.events`. One order in a thousand changes, or one in a hundred, anywhere in the table:
//! 80 % are updates, 15 % new, 5 % deletes, merged in by silver. What is measured is a process from start to exit, three times,
//! each on a lake of its own. Bytes read are what the process asked of its files.
//!
//! * **full** is a refresh in full, before the changes, beside DuckDB's same query over the same Parquet files into one of the same codec.
//! * **incremental** is the refresh after them; the view must then be the one that a refresh in full makes.
//! * **small** is the refresh in full where the limit of memory is a quarter.

mod duckdb;
mod lakes;
mod views;

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;
use tributary_bench::files;
use tributary_bench::process::Measured;
use tributary_bench::report::{self, Target};

use crate::lakes::{Changed, Lakes, Mode, Outcome};
use crate::views::{VIEWS, View};

const REPETITIONS: usize = 3;
const MIB: usize = 1 << 20;

struct Options {
    views: Vec<View>,
    rows: u64,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = Runtime::new()?;
    if let ["--run", folder, view, mode, memory_limit] = args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        let outcome = runtime.block_on(lakes::run(folder.as_ref(), View::named(view)?, Mode::of_word(mode)?, memory_limit.parse()?))?;
        println!("{}", serde_json::to_string(&outcome)?);
        return Ok(());
    }
    let Options { views, rows } = options(args)?;
    duckdb::environment()?;
    let lakes = Lakes::of(runtime, &files::data_folder()?, rows)?;
    println!("duckdb's command: {:?}", duckdb::command(&lakes, VIEWS[0])?);
    for view in views {
        Bench { lakes: &lakes, view }.all()?;
    }
    files::remove(&lakes.runs())
}

fn options(args: Vec<String>) -> Result<Options> {
    let mut options = Options { views: Vec::new(), rows: 50_000_000 };
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rows" => options.rows = args.next().context("--rows needs a number")?.replace('_', "").parse()?,
            name => match View::named(name) {
                Ok(view) => options.views.push(view),
                Err(_) => bail!("usage: gold [{}].. [--rows N]", VIEWS.map(|view| view.name).join("|")),
            },
        }
    }
    if options.views.is_empty() {
        options.views = VIEWS.to_vec();
    }
    if options.rows < 100_000 {
        bail!("orders of less than 100000 rows measure nothing");
    }
    Ok(options)
}

struct Bench<'a> {
    lakes: &'a Lakes,
    view: View,
}

impl Bench<'_> {
    fn all(&self) -> Result<()> {
        let name = self.view.name;
        let (mut fulls, mut ducks) = (Vec::new(), Vec::new());
        for number in 1..=REPETITIONS {
            fulls.push(self.ours(number, "full", None, Mode::Full, 1024)?);
            let duck = duckdb::measure(self.lakes, self.view)?;
            self.say(number, "duckdb, full", &duck);
            ducks.push(duck);
        }
        let rows = fulls[0].1.rows;
        if let Some((_, other)) = ducks.iter().find(|(_, outcome)| outcome.rows != rows) {
            bail!("{name} has {rows} rows, duckdb's {}", other.rows);
        }
        let (full, duck) = (middle(&fulls), middle(&ducks));
        let label = format!("{name}, full, {} orders", self.lakes.rows);
        // ours in duckdb's seconds: 1.5 times as long is allowed
        report::compared(&label, rows, ("duckdb", &duck), ("ours", &full), Target::AtMost(1.5));
        for changed in Changed::ALL {
            self.incremental(changed, &full, fulls[0].1.bytes_read)?;
        }
        let small = self.ours(1, "full under 256 MiB", None, Mode::Full, 256)?;
        report::in_memory(&format!("{name}, full under 256 MiB"), rows, &small.0, 256 + 150);
        Ok(())
    }

    fn incremental(&self, changed: Changed, full: &Measured, full_bytes: u64) -> Result<()> {
        let name = self.view.name;
        let what = format!("incremental, {}", changed.words());
        let runs = (1..=REPETITIONS).map(|number| self.ours(number, &what, Some(changed), Mode::Auto, 1024)).collect::<Result<Vec<_>>>()?;
        let outcome = &runs[0].1;
        if outcome.mode != "incremental" {
            bail!("{name} was refreshed in full: {}", outcome.reason);
        }
        self.lakes.compare(self.view, changed)?;
        let took = middle(&runs);
        let label = |of: &str| format!("{name}, {} changed, {of} of the full refresh in the incremental one's", changed.words());
        let least = |ratio: f64| if changed == Changed::Thousandth { Target::AtLeast(ratio) } else { Target::Free };
        let measured = format!("incremental {:.2} cpu-s, full {:.2} cpu-s", took.cpu_seconds, full.cpu_seconds);
        report::line(&label("cpu"), &measured, least(20.0), full.cpu_seconds / took.cpu_seconds);
        let measured = format!("incremental {} bytes read, full {full_bytes}", outcome.bytes_read);
        report::line(&label("bytes"), &measured, least(20.0), full_bytes as f64 / outcome.bytes_read as f64);
        if full.seconds > 5.0 {
            report::compared(&label("time"), self.lakes.changes(changed), ("incremental", &took), ("full", full), least(20.0));
        } else {
            report::within(&format!("{name}, {} changed", changed.words()), self.lakes.changes(changed), &took, 0.25);
        }
        Ok(())
    }

    fn ours(&self, number: usize, what: &str, changed: Option<Changed>, mode: Mode, mebibytes: usize) -> Result<(Measured, Outcome)> {
        let took = self.lakes.measure(self.view, changed, mode, mebibytes * MIB)?;
        self.say(number, what, &took);
        Ok(took)
    }

    fn say(&self, number: usize, what: &str, (took, outcome): &(Measured, Outcome)) {
        let of = format!("{} bytes read, {}", outcome.bytes_read, outcome.mode);
        report::repetition(&format!("{}, {what}", self.view.name), number, &of, outcome.rows, took);
    }
}

fn middle(runs: &[(Measured, Outcome)]) -> Measured {
    report::median(&runs.iter().map(|(took, _)| *took).collect::<Vec<_>>())
}
