//! A program that brings its own records: a queue in memory, two partitions, JSON values.
//!
//! The table remembers how far it has read; the source only has to be able to give records again.

use std::error::Error;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tributary::{
    Decode, Lake, OpenOptions, PartitionBounds, Pipeline, RecordSource, RunOptions, Source, SourceError, SourceFeed, SourceRecord, Status,
};

/// What was said in each partition, in order.
#[derive(Debug, Default)]
struct Queue(Mutex<[Vec<String>; 2]>);

impl Queue {
    fn push(&self, partition: usize, value: &str) {
        self.0.lock().expect("not poisoned")[partition].push(value.to_owned());
    }
}

#[async_trait]
impl RecordSource for Queue {
    fn name(&self) -> &str {
        "visits"
    }

    async fn partitions(&self) -> Result<Vec<PartitionBounds>, SourceError> {
        let partitions = self.0.lock().expect("not poisoned");
        let bounds = (0_i32..).zip(partitions.iter()).map(|(partition, values)| PartitionBounds {
            partition,
            earliest: 0,
            end: values.len() as i64,
        });
        Ok(bounds.collect())
    }

    async fn read(&self, partition: i32, from: i64, until: i64, max: usize) -> Result<Vec<SourceRecord>, SourceError> {
        let partitions = self.0.lock().expect("not poisoned");
        let records = (from..until).take(max).map(|position| SourceRecord {
            topic: "visits".to_owned(),
            position,
            value: Some(partitions[partition as usize][position as usize].clone().into_bytes()),
            ..SourceRecord::default()
        });
        Ok(records.collect())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let queue = Arc::new(Queue::default());
    queue.push(0, r#"{"page": "/", "seconds": 3}"#);
    queue.push(1, r#"{"page": "/price", "seconds": 12}"#);

    let feed = SourceFeed::new("visits", "bronze.visits".parse()?, Source::Custom("visits".to_owned())).with_decode(Decode::Json);
    let pipeline = Pipeline::builder("web").feed(feed).source(queue.clone()).build()?;
    let lake = Lake::open("memory://", OpenOptions::default())?;

    let first = lake.run(&pipeline, RunOptions::default()).await?;
    assert_eq!((first.datasets[0].status, first.datasets[0].rows_out), (Status::Committed, 2), "{first:#?}");
    queue.push(0, r#"{"page": "/help", "seconds": 40}"#);
    let second = lake.run(&pipeline, RunOptions::default()).await?;
    assert_eq!(second.datasets[0].rows_out, 1, "only what is new is read: {second:#?}");

    let pages = lake.session().await?.sql("select page, seconds from bronze.visits order by page").await?;
    println!("{}", pages.to_string().await?);
    Ok(())
}
