//! Changed keys into a table, beside peers: `silver [PART..] [--rows N] [--large] [--spark]`, all parts unless said.
//!
//! The table has `--rows` rows (10 million) of 12 columns in 50 files, once in random and once in key order; a batch changes one key
//! in a hundred: 80 % are updates, 15 % new, 5 % deletes. What is measured is a process from start to exit: silver's engine on a
//! change table that the batch was appended to, or a peer's MERGE of the same rows in a Parquet file into the same files. Each
//! of three repetitions works on a table of its own; the lines say the medians.
//!
//! * **peer**: scattered and recent keys, without and with a change feed, beside delta-rs.
//! * **feed**: what the change feed costs, also for a source that sends before-images.
//! * **batches**: one change, a hundredth of a batch, ten batches at once, beside delta-rs.
//! * **memory**: ten batches at once under 256 MiB, SCD 1 and SCD 2.
//! * **sizes**: the same batch into a table of a tenth, five (with `--large` ten) times the rows; one change into the largest.
//! * **history**: SCD 2 beside SCD 1.
//! * **sustained**: ten batches, a run each and all in one run.
//! * **spark**: beside Spark with Delta, whose MERGE of the same rows writes deletion vectors; only with `--spark`, or when it is named.
//!
//! `silver --prepare FOLDER [key] [recent] [feed] [stamped|history] [images] [CHANGES]` leaves a lake ready for one run, to be looked at
//! with a profiler: `silver --run FOLDER current|stamped|history MEMORY_BYTES 0`.

mod ours;
mod peer;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;

use tributary_bench::files;
use tributary_bench::orders::{self, Batch, Order, Part, Policy, Prepared, Shape, Spread};
use tributary_bench::process::Measured;
use tributary_bench::report::{self, Target};

use crate::ours::Run;
use crate::peer::Peer;

type Measure = fn(&Bench) -> Result<()>;

const PARTS: [(&str, Measure); 8] = [
    ("peer", Bench::peer),
    ("feed", Bench::feed),
    ("batches", Bench::batches),
    ("memory", Bench::memory),
    ("sizes", Bench::sizes),
    ("history", Bench::history),
    ("sustained", Bench::sustained),
    ("spark", Bench::spark),
];
const REPETITIONS: usize = 3;
const GIB: usize = 1 << 30;
const MIB: usize = 1 << 20;

struct Options {
    parts: Vec<String>,
    rows: u64,
    large: bool,
    spark: bool,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = Runtime::new()?;
    if let ["--run", folder, policy, memory_limit, batch_by_batch] = args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        let run = Run {
            policy: Policy::of_word(policy)?,
            feed: true,
            memory_limit: memory_limit.parse()?,
            batch_by_batch: *batch_by_batch == "1",
        };
        return runtime.block_on(ours::run(folder.as_ref(), run));
    }
    if let ["--prepare", folder, words @ ..] = args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        let data = files::data_folder()?;
        let bench = Bench { runtime, data, options: Options { parts: Vec::new(), rows: 10_000_000, large: false, spark: false } };
        return bench.prepare(folder.as_ref(), words);
    }
    let options = options(args)?;
    Peer::DeltaRs.environment()?;
    let data = files::data_folder()?;
    let _running = lock(&data)?;
    Bench { runtime, data, options }.all()
}

fn options(args: Vec<String>) -> Result<Options> {
    let mut options = Options { parts: Vec::new(), rows: 10_000_000, large: false, spark: false };
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rows" => options.rows = args.next().context("--rows needs a number")?.replace('_', "").parse()?,
            "--large" => options.large = true,
            "--spark" => options.spark = true,
            part if PARTS.iter().any(|(name, _)| *name == part) => options.parts.push(arg),
            _ => bail!("usage: silver [{}].. [--rows N] [--large] [--spark]", PARTS.map(|(name, _)| name).join("|")),
        }
    }
    if options.rows < 10_000 {
        bail!("a table of less than 10000 rows measures nothing");
    }
    Ok(options)
}

/// Two at once would take each other's tables, and time.
fn lock(folder: &Path) -> Result<std::fs::File> {
    let file = std::fs::File::create(folder.join("lock"))?;
    file.try_lock().context("another benchmark of silver is running")?;
    Ok(file)
}

struct Bench {
    runtime: Runtime,
    data: PathBuf,
    options: Options,
}

/// One measurement of ours.
#[derive(Clone, Copy)]
struct Case {
    shape: Shape,
    batch: Batch,
    feed: bool,
    memory_limit: usize,
}

impl Case {
    fn label(&self) -> String {
        let spread = match self.batch.spread {
            Spread::Scattered => "scattered",
            Spread::Recent => "recent",
        };
        format!("{}{spread}", if self.feed { "feed " } else { "" })
    }

    fn rows_in(&self) -> String {
        format!("{} changes into {}", self.batch.changes, self.shape.words())
    }
}

impl Bench {
    fn all(&self) -> Result<()> {
        let Options { parts, spark, .. } = &self.options;
        let wanted = |part: &str| parts.iter().any(|named| named == part) || (parts.is_empty() && (part != "spark" || *spark));
        for (_, part) in PARTS.iter().filter(|(name, _)| wanted(name)) {
            part(self)?;
        }
        files::remove(&self.runs())
    }

    fn case(&self, order: Order, spread: Spread, feed: bool) -> Case {
        let shape = Shape { rows: self.options.rows, files: 50, order, policy: Policy::Current };
        let batch = Batch { spread, changes: shape.rows / 100, rows: shape.rows, number: 0, before_images: false };
        Case { shape, batch, feed, memory_limit: GIB }
    }

    /// Leaves a lake ready for a run.
    fn prepare(&self, folder: &Path, words: &[&str]) -> Result<()> {
        let is = |word: &str| words.contains(&word);
        let order = if is("key") { Order::Key } else { Order::Random };
        let spread = if is("recent") { Spread::Recent } else { Spread::Scattered };
        let mut case = self.case(order, spread, is("feed"));
        case.shape.policy = words.iter().find_map(|word| Policy::of_word(word).ok()).unwrap_or(Policy::Current);
        case.batch.before_images = is("images");
        if let Some(changes) = words.iter().find_map(|word| word.parse().ok()) {
            case.batch.changes = changes;
        }
        self.prepared(case.shape)?.copy(Part::Lake { feed: case.feed }, folder)?;
        self.append(folder, &[case.batch])
    }

    fn peer(&self) -> Result<()> {
        for feed in [false, true] {
            for (order, spread) in [
                (Order::Random, Spread::Scattered),
                (Order::Key, Spread::Scattered),
                (Order::Key, Spread::Recent),
                (Order::Random, Spread::Recent),
            ] {
                let case = self.case(order, spread, feed);
                let target = match (spread, order) {
                    (Spread::Scattered, _) if !feed => Target::AtLeast(10.0),
                    (Spread::Recent, Order::Key) if !feed => Target::AtLeast(3.0),
                    _ => Target::Free,
                };
                let ours = self.beside(Peer::DeltaRs, &case.label(), &case, target)?;
                if (spread, order, feed) == (Spread::Recent, Order::Key, false) {
                    report::within(&format!("time of recent, {}", case.rows_in()), case.batch.changes, &ours, 0.5);
                }
                if spread == Spread::Scattered {
                    report::in_memory(&format!("memory of {}, {}", case.label(), case.rows_in()), case.batch.changes, &ours, 512);
                }
            }
        }
        Ok(())
    }

    fn spark(&self) -> Result<()> {
        let command = Peer::Spark.command(Path::new("TABLE"), &self.data.join("CHANGES.parquet"))?;
        println!("spark's command: {command:?}");
        for (order, spread, feed) in
            [(Order::Random, Spread::Scattered, false), (Order::Key, Spread::Recent, false), (Order::Random, Spread::Scattered, true)]
        {
            let case = self.case(order, spread, feed);
            let target = if spread == Spread::Scattered && !feed { Target::AtLeast(20.0) } else { Target::Free };
            self.beside(Peer::Spark, &case.label(), &case, target)?;
        }
        Ok(())
    }

    fn feed(&self) -> Result<()> {
        for (order, spread) in [(Order::Random, Spread::Scattered), (Order::Key, Spread::Recent)] {
            for (before_images, policy) in [(false, Policy::Current), (true, Policy::Current), (true, Policy::Stamped)] {
                let mut case = self.case(order, spread, false);
                (case.batch.before_images, case.shape.policy) = (before_images, policy);
                let plain = self.ours(&case)?;
                let with = self.ours(&Case { feed: true, ..case })?;
                let source = match (before_images, policy) {
                    (false, _) => "without before-images",
                    (true, Policy::Stamped) => "with before-images and a unique sequence",
                    (true, _) => "with before-images",
                };
                let label = format!("cost of the feed {}, source {source}, {}", case.label(), case.rows_in());
                let target = Target::AtMost(if spread == Spread::Scattered && !before_images { 3.0 } else { 1.5 });
                report::compared(&label, case.batch.changes, ("without", &plain), ("with", &with), target);
            }
        }
        Ok(())
    }

    fn batches(&self) -> Result<()> {
        for changes in [1, self.options.rows / 10_000, self.options.rows / 10] {
            let mut case = self.case(Order::Random, Spread::Scattered, false);
            case.batch.changes = changes;
            let ours = self.beside(Peer::DeltaRs, &format!("batch of {changes}, scattered"), &case, Target::Free)?;
            if changes == 1 {
                report::within(&format!("one change into {}", case.shape.words()), 1, &ours, 0.25);
            }
        }
        Ok(())
    }

    fn memory(&self) -> Result<()> {
        for policy in [Policy::Current, Policy::History] {
            let mut case = self.case(Order::Random, Spread::Scattered, true);
            case.shape.policy = policy;
            case.batch.changes = self.options.rows / 10;
            case.memory_limit = 256 * MIB;
            let took = self.ours(&case)?;
            let kind = if policy == Policy::History { "scd2" } else { "scd1" };
            report::in_memory(&format!("{kind} under 256 MiB, {}, {}", case.label(), case.rows_in()), case.batch.changes, &took, 256 + 150);
        }
        Ok(())
    }

    fn sizes(&self) -> Result<()> {
        let rows = self.options.rows;
        let mut sizes = vec![rows / 10, rows * 5];
        sizes.extend(self.options.large.then_some(rows * 10));
        for (order, spread) in [(Order::Random, Spread::Scattered), (Order::Key, Spread::Recent)] {
            let bases = [false, true].map(|feed| self.case(order, spread, feed));
            let bases = bases.into_iter().map(|case| Ok((case, self.ours(&case)?))).collect::<Result<Vec<_>>>()?;
            for rows in &sizes {
                let mut last = None;
                for (case, base) in &bases {
                    let mut other = *case;
                    (other.shape.rows, other.batch.rows) = (*rows, *rows);
                    other.shape.files = (rows * 50 / self.options.rows).max(5);
                    let took = self.ours(&other)?;
                    self.grown((case, base), (&other, &took));
                    last = Some(other);
                }
                let Some(other) = last.filter(|other| other.shape.rows > self.options.rows) else { continue };
                if spread == Spread::Scattered {
                    let mut one = Case { feed: false, ..other };
                    one.batch.changes = 1;
                    report::within(&format!("one change into {}", one.shape.words()), 1, &self.ours(&one)?, 1.0);
                }
                // they take gigabytes
                self.prepared(other.shape)?.remove()?;
            }
        }
        Ok(())
    }

    /// The lines of one batch into two tables.
    fn grown(&self, (case, base): (&Case, &Measured), (other, took): (&Case, &Measured)) {
        let label = |what: &str| format!("{what} {}, {} and {}", case.label(), case.shape.words(), other.shape.words());
        let changes = case.batch.changes;
        let more = other.shape.rows > case.shape.rows;
        let (small, large) = if more { (base, took) } else { (took, base) };
        let times = if more { other.shape.rows / case.shape.rows } else { case.shape.rows / other.shape.rows };
        let target = match case.batch.spread {
            Spread::Recent if times == 10 => Target::AtMost(1.5),
            Spread::Scattered if !more => Target::AtMost(if case.feed { 5.0 } else { 3.0 }),
            _ => Target::Free,
        };
        report::compared(&label("growth"), changes, ("fewer rows", small), ("more rows", large), target);
        if more && case.batch.spread == Spread::Scattered {
            let measured = format!("{}; {}", report::words("fewer rows", changes, small), report::words("more rows", changes, large));
            let per_byte = large.seconds / small.seconds / times as f64;
            report::line(&label("time per byte of the key column"), &measured, Target::AtMost(1.0), per_byte);
        }
    }

    fn history(&self) -> Result<()> {
        for (order, spread) in [(Order::Random, Spread::Scattered), (Order::Key, Spread::Recent)] {
            for feed in [false, true] {
                let current = self.case(order, spread, feed);
                let mut history = current;
                history.shape.policy = Policy::History;
                let (one, two) = (self.ours(&current)?, self.ours(&history)?);
                let label = format!("history {}, {}", current.label(), current.rows_in());
                report::compared(&label, current.batch.changes, ("scd1", &one), ("scd2", &two), Target::AtMost(2.0));
            }
        }
        Ok(())
    }

    fn sustained(&self) -> Result<()> {
        for feed in [false, true] {
            let case = self.case(Order::Random, Spread::Scattered, feed);
            let batches: Vec<Batch> = (0..10).map(|number| Batch { number, ..case.batch }).collect();
            let run = Run { policy: Policy::Current, feed, memory_limit: case.memory_limit, batch_by_batch: true };
            let folder = self.runs();
            let prepared = self.prepared(case.shape)?;

            prepared.copy(Part::Lake { feed }, &folder)?;
            let mut took = Vec::new();
            for batch in &batches {
                self.append(&folder, &[*batch])?;
                took.push(ours::measure(&folder, run, &[*batch])?);
                report::repetition(&format!("sustained {}", case.label()), took.len(), "ours", batch.changes, &took[took.len() - 1]);
            }
            let label = format!("sustained {}, ten runs, the last and the first of {}", case.label(), case.rows_in());
            report::compared(&label, case.batch.changes, ("first", &took[0]), ("last", &took[9]), Target::AtMost(1.2));

            prepared.copy(Part::Lake { feed }, &folder)?;
            self.append(&folder, &batches)?;
            let took = ours::measure(&folder, run, &batches)?;
            let changes: u64 = batches.iter().map(|batch| batch.changes).sum();
            let (rate, wanted) = (changes as f64 / took.seconds, if feed { 35_000.0 } else { 60_000.0 });
            let label = format!("sustained {}, ten commits of one run, {}", case.label(), case.rows_in());
            let measured = format!("{}; {rate:.0} changes/s of {wanted:.0}", report::words("ours", changes, &took));
            report::line(&label, &measured, Target::AtLeast(1.0), rate / wanted);
        }
        Ok(())
    }

    fn prepared(&self, shape: Shape) -> Result<Prepared> {
        self.runtime.block_on(Prepared::of(&self.data, shape))
    }

    fn append(&self, folder: &Path, batches: &[Batch]) -> Result<()> {
        self.runtime.block_on(async {
            let lake = orders::open(folder, usize::MAX)?;
            for batch in batches {
                orders::append(&lake, batch).await?;
            }
            Ok(())
        })
    }

    fn runs(&self) -> PathBuf {
        self.data.join("run")
    }

    /// Repetitions of ours.
    fn ours(&self, case: &Case) -> Result<Measured> {
        let prepared = self.prepared(case.shape)?;
        let all = (1..=REPETITIONS).map(|number| self.ours_once(case, &prepared, number)).collect::<Result<Vec<_>>>()?;
        Ok(report::median(&all))
    }

    fn ours_once(&self, case: &Case, prepared: &Prepared, number: usize) -> Result<Measured> {
        let folder = self.runs();
        prepared.copy(Part::Lake { feed: case.feed }, &folder)?;
        self.append(&folder, &[case.batch])?;
        let run = Run { policy: case.shape.policy, feed: case.feed, memory_limit: case.memory_limit, batch_by_batch: false };
        let took = ours::measure(&folder, run, &[case.batch])?;
        let name = if case.shape.policy == Policy::History { "ours, scd2" } else { "ours" };
        report::repetition(&format!("{}, {}", case.label(), case.rows_in()), number, name, case.batch.changes, &took);
        Ok(took)
    }

    /// Repetitions of ours and a peer, in turn.
    fn beside(&self, peer: Peer, name: &str, case: &Case, target: Target) -> Result<Measured> {
        let prepared = self.prepared(case.shape)?;
        let label = format!("{name} {}, {}", peer.name(), case.rows_in());
        let (mut ours, mut peers) = (Vec::new(), Vec::new());
        for number in 1..=REPETITIONS {
            ours.push(self.ours_once(case, &prepared, number)?);
            let folder = self.runs();
            prepared.copy(Part::Peer { feed: case.feed }, &folder)?;
            let took = peer.measure(&folder, &case.batch)?;
            report::repetition(&label, number, peer.name(), case.batch.changes, &took);
            peers.push(took);
        }
        let ours = report::median(&ours);
        report::compared(&label, case.batch.changes, ("ours", &ours), (peer.name(), &report::median(&peers)), target);
        Ok(ours)
    }
}
