//! Our decoder beside `arrow-json`, on the same recorded events.
//!
//! The big capture (orders, customers and inventory of a real PostgreSQL, 20,001 events of about 0.8 KB) is held in memory
//! and gone through until a million events are decoded, once as bare JSON and once with the schema block that Connect's
//! converter would have put around each message. Each contender runs in a process of its own, on one thread, three times in
//! turn. Seconds are wall clock; CPU seconds and peak memory are the process's, the events themselves included. The ratio is of
//! CPU seconds, so that it holds on a busy machine too.
//!
//! * **ours** yields the whole bronze row: typed business columns (decimals, dates and times decoded), before-image,
//!   operation, position, unavailable columns, source, provenance.
//! * **typed** is `arrow-json` reading the envelope into nested structs with the same fields (`before`, `after`, `source`, `op`,
//!   `ts_ms`, `transaction`), and then what it takes to give the columns of `before` and `after` their types: decimals out of
//!   base64, casts of dates and times. There is still no position, no choice between the row images, no policy and no
//!   quarantine. Fields that neither needs are in neither schema. Tombstones, which have no value, are given to ours only.
//! * **arrow-json** is the same without the second step: decimals stay base64 text, dates and times numbers.

mod arrow_json;
mod data;
mod measure;
mod ours;
mod typed;

use anyhow::{Context, Result, bail};
use tributary_bench::{contend, median};

use crate::data::{Form, Workload};
use crate::measure::Measured;

const EVENTS: usize = 1_000_000;
const REPETITIONS: usize = 3;
const CONTENDERS: [&str; 3] = ["ours", "typed", "arrow-json"];

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--contender", name, form, events] => contender(name, form, events.parse()?),
        [] => compare(EVENTS),
        [events] => compare(events.replace('_', "").parse().context("how many events? a whole number")?),
        _ => bail!("usage: decode [EVENTS]"),
    }
}

/// One run of one contender; its measurements on standard output.
fn contender(name: &str, form: &str, events: usize) -> Result<()> {
    let form = Form::named(form).context("unknown form")?;
    let workload = Workload::load(form)?;
    let measured = match name {
        "ours" => ours::run(&workload, events)?,
        "typed" => arrow_json::run(&workload, events, typed::columns)?,
        "arrow-json" => arrow_json::run(&workload, events, |_, batch| Ok(batch))?,
        _ => bail!("unknown contender {name}"),
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

fn compare(events: usize) -> Result<()> {
    for form in [Form::Bare, Form::Wrapped] {
        let mut seconds = [Vec::new(), Vec::new(), Vec::new()];
        for repetition in 1..=REPETITIONS {
            for (name, seconds) in CONTENDERS.iter().zip(&mut seconds) {
                let measured: Measured = contend(name, &[form.name(), &events.to_string()])?;
                println!("{:<8} {name:<11} {repetition}  {measured}", form.name());
                seconds.push(measured.cpu_seconds);
            }
        }
        let [ours, typed, nested] = seconds.map(median);
        let form = form.name();
        println!(
            "{form:<8} cpu-seconds of arrow-json per cpu-second of ours, medians of {REPETITIONS}, same types: ratio {:.2}",
            typed / ours
        );
        println!("{form:<8} the same, arrow-json's decimals, dates and times left as they came: {:.2}", nested / ours);
    }
    Ok(())
}
