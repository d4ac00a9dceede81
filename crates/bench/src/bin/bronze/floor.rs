//! The least that a table of a topic costs: every record polled, as many rows written.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tributary_cdc_decode::{Decoder, Record};
use tributary_specs::Pipeline;

use crate::events::{Loaded, PARTITIONS};
use crate::ours;
use crate::process::{self, Measured};

/// Rows of one batch, and how many different batches are written in turn.
pub const BATCH_ROWS: usize = 16_384;
const BATCHES: usize = 8;
/// As our tables have them: rows of a row group, bytes of a file.
const ROW_GROUP_ROWS: usize = 256 * 1024;
const FILE_BYTES: u64 = 32 << 20;

/// In a process of its own.
pub fn measure(bootstrap: &str, topic: &str, loaded: Loaded, folder: &Path) -> Result<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--floor", bootstrap, topic, &loaded.events.to_string()]).arg(folder);
    process::measure(&mut command)
}

/// Polls and writes side by side. Decoding the first batches is in the time, and is less than a tenth of a second.
pub fn run(bootstrap: &str, topic: &str, rows: u64, folder: &Path) -> Result<()> {
    let batches = decoded(bootstrap, topic)?;
    thread::scope(|scope| {
        let polled = scope.spawn(|| poll(bootstrap, topic, u64::MAX, |_| Ok(())));
        let written = scope.spawn(|| write(repeated(&batches, rows), folder));
        written.join().map_err(|_| anyhow!("writing panicked"))??;
        let polled = polled.join().map_err(|_| anyhow!("polling panicked"))??;
        if polled != rows {
            bail!("{polled} records polled of {rows}");
        }
        Ok(())
    })
}

fn decoded(bootstrap: &str, topic: &str) -> Result<Vec<RecordBatch>> {
    let pipeline = Pipeline::from_yaml("bench.yml", &ours::pipeline(bootstrap, topic)).context("the bench's own pipeline")?;
    let mut decoder = Decoder::new(&pipeline.feeds[0])?;
    let mut kept = Vec::new();
    poll(bootstrap, topic, (BATCH_ROWS * BATCHES) as u64, |message| {
        kept.push(message.detach());
        Ok(())
    })?;
    let mut batches = Vec::new();
    for part in kept.chunks(BATCH_ROWS) {
        let records: Vec<Record<'_>> = part
            .iter()
            .map(|message| Record {
                topic,
                partition: message.partition(),
                offset: message.offset(),
                key: message.key(),
                value: message.payload(),
                headers: &[],
                timestamp_ms: Some(0),
                file: None,
                line: None,
            })
            .collect();
        batches.push(decoder.decode(&records, 0).batch);
    }
    Ok(batches)
}

/// Every record of the topic as it is now, at most so many; returns how many there were.
fn poll(
    bootstrap: &str,
    topic: &str,
    most: u64,
    mut each: impl FnMut(&rdkafka::message::BorrowedMessage<'_>) -> Result<()>,
) -> Result<u64> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "bench-floor")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("queued.max.messages.kbytes", "65536")
        .create()?;
    let mut assignment = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        assignment.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&assignment)?;
    let (mut polled, mut ended) = (0, 0);
    while ended < PARTITIONS && polled < most {
        match consumer.poll(Duration::from_secs(30)).context("no record within 30 seconds")? {
            Ok(message) => {
                each(&message)?;
                polled += 1;
            }
            Err(KafkaError::PartitionEOF(_)) => ended += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(polled)
}

/// The batches in turn, so many rows of them.
fn repeated(batches: &[RecordBatch], rows: u64) -> impl Iterator<Item = Result<RecordBatch>> {
    let mut left = rows as usize;
    batches.iter().cycle().map_while(move |batch| {
        let length = left.min(batch.num_rows());
        left -= length;
        (length > 0).then(|| Ok(batch.slice(0, length)))
    })
}

/// Parquet files with the settings of our tables.
pub fn write(batches: impl Iterator<Item = Result<RecordBatch>>, folder: &Path) -> Result<()> {
    let mut batches = batches.peekable();
    for number in 0.. {
        let Some(first) = batches.peek() else { break };
        let schema = first.as_ref().map_err(|error| anyhow!("{error:#}"))?.schema();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .build();
        let mut writer = ArrowWriter::try_new(File::create(folder.join(format!("{number}.parquet")))?, schema, Some(properties))?;
        while (writer.bytes_written() + writer.in_progress_size()) as u64 <= FILE_BYTES {
            let Some(batch) = batches.next() else { break };
            writer.write(&batch?)?;
        }
        writer.close()?;
    }
    Ok(())
}
