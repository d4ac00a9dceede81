//! A dropped CSV file beside its floor: `arrow`'s own reader into the same types, and the rows written as our tables have them.
//!
//! Two files, one four times as large: what a file takes in memory must not grow with it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use crate::process::{self, Measured, median};
use crate::{REPETITIONS, floor, ours};

const FILE_ROWS: [u64; 2] = [1_500_000, 6_000_000];

/// Both files, each repetition of ours beside one of the floor.
pub fn compare(scratch: &Path) -> Result<()> {
    let mut peaks = Vec::new();
    for rows in FILE_ROWS {
        let drop = scratch.join(format!("drop-{rows}"));
        std::fs::create_dir(&drop)?;
        let bytes = write(&drop.join("sales.csv"), rows)?;
        let (mut floors, mut all) = (Vec::new(), Vec::new());
        for repetition in 1..=REPETITIONS {
            let floor = floor_of(&drop.join("sales.csv"), &scratch.join(format!("csv-floor-{rows}-{repetition}")))?;
            println!("csv      {repetition}  floor  {}", floor.over(rows, bytes));
            floors.push(floor);
            let folder = scratch.join(format!("csv-ours-{rows}-{repetition}"));
            std::fs::create_dir(&folder)?;
            let pipeline = folder.join("pipeline.yml");
            std::fs::write(&pipeline, pipeline_of(&drop))?;
            let ours = ours::bronze(&pipeline, &folder, rows)?;
            println!("csv      {repetition}  ours   {}", ours.over(rows, bytes));
            all.push(ours);
            std::fs::remove_dir_all(&folder)?;
        }
        let seconds = median(&all, |measured| measured.seconds);
        println!("csv      {:.0} MB/s of a file of {} MB (80 wanted)", bytes as f64 / 1e6 / seconds, bytes / 1_000_000);
        println!("csv      seconds of the floor per second of ours: ratio {:.2}", median(&floors, |measured| measured.seconds) / seconds);
        peaks.push(median(&all, |measured| measured.peak_bytes as f64));
        std::fs::remove_dir_all(&drop)?;
    }
    println!("csv      peak memory of a file four times as large: ratio {:.2}", peaks[1] / peaks[0]);
    Ok(())
}

fn floor_of(file: &Path, folder: &Path) -> Result<Measured> {
    std::fs::create_dir(folder)?;
    let measured = process::measure(Command::new(std::env::current_exe()?).arg("--csv-floor").arg(file).arg(folder))?;
    std::fs::remove_dir_all(folder)?;
    Ok(measured)
}

/// The floor, in a process of its own.
pub fn run_floor(file: &Path, folder: &Path) -> Result<()> {
    let reader = arrow::csv::ReaderBuilder::new(Arc::new(schema())).with_header(true).with_batch_size(floor::BATCH_ROWS);
    let batches = reader.build(File::open(file).with_context(|| file.display().to_string())?)?;
    floor::write(batches.map(|batch| Ok(batch?)), folder)
}

fn schema() -> Schema {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    Schema::new(vec![
        field("sale_id", DataType::Int64),
        field("customer_id", DataType::Int64),
        field("sku", DataType::Utf8),
        field("qty", DataType::Int32),
        field("price", DataType::Decimal128(12, 2)),
        field("discount", DataType::Float64),
        field("paid", DataType::Boolean),
        field("day", DataType::Date32),
        field("sold_at", DataType::Timestamp(TimeUnit::Microsecond, None)),
        field("note", DataType::Utf8),
    ])
}

fn pipeline_of(drop: &Path) -> String {
    format!(
        "name: bench
feeds:
  - name: sales
    table: bronze.sales
    decode: csv
    source: {{ files: {{ path: \"{}\", format: csv }} }}
    columns:
      - {{ name: sale_id, type: long }}
      - {{ name: customer_id, type: long }}
      - {{ name: sku, type: string }}
      - {{ name: qty, type: integer }}
      - {{ name: price, type: \"decimal(12,2)\" }}
      - {{ name: discount, type: double }}
      - {{ name: paid, type: boolean }}
      - {{ name: day, type: date }}
      - {{ name: sold_at, type: timestamp_ntz }}
      - {{ name: note, type: string }}
",
        drop.display()
    )
}

/// The file; returns its bytes.
fn write(path: &Path, rows: u64) -> Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "sale_id,customer_id,sku,qty,price,discount,paid,day,sold_at,note")?;
    for row in 0..rows {
        // spread without a pattern that compression or a dictionary would love: a multiplicative hash of the row
        let mixed = (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (day, second) = (1 + mixed % 28, mixed >> 8 & 0xffff);
        writeln!(
            file,
            "{row},{},SKU-{:05},{},{}.{:02},0.{},{},2026-{:02}-{day:02},2026-03-{day:02} {:02}:{:02}:{:02}.{:06},\"note {mixed:x}, of the till\"",
            mixed >> 44,
            mixed >> 20 & 0x3fff,
            1 + mixed % 9,
            mixed >> 30 & 0x1fff,
            mixed % 100,
            mixed >> 50 & 0xff,
            mixed & 1 == 0,
            1 + mixed % 12,
            second / 3600 % 24,
            second / 60 % 60,
            second % 60,
            mixed >> 12 & 0x7ffff,
        )?;
    }
    file.flush()?;
    Ok(std::fs::metadata(path)?.len())
}
