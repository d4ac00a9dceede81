//! Records a source no longer has: passed over by choice, and written down.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use tributary::{
    Column, DataType, Decode, Lake, OnGap, PartitionBounds, Pipeline, RecordSource, RunOptions, Source, SourceError, SourceFeed,
    SourceRecord, TableName,
};

/// Ten records, of which the first are gone.
#[derive(Debug, Default)]
struct Forgetful(AtomicI64);

#[async_trait]
impl RecordSource for Forgetful {
    fn name(&self) -> &str {
        "forgetful"
    }

    async fn partitions(&self) -> Result<Vec<PartitionBounds>, SourceError> {
        let earliest = self.0.load(Ordering::SeqCst);
        Ok(vec![PartitionBounds { partition: 3, earliest, end: if earliest == 0 { 2 } else { 10 } }])
    }

    async fn read(&self, _: i32, from: i64, until: i64, max: usize) -> Result<Vec<SourceRecord>, SourceError> {
        let record = |position| SourceRecord { topic: "t".into(), position, value: Some(b"{\"id\": 1}".to_vec()), ..Default::default() };
        Ok((from..until).take(max).map(record).collect())
    }
}

#[tokio::test]
async fn a_gap_that_is_passed_over_by_choice_is_a_row_of_the_gaps_table() {
    let source = Arc::new(Forgetful::default());
    let mut feed = SourceFeed::new("f", TableName::new("bronze", "f"), Source::Custom("forgetful".into()));
    feed.decode = Decode::Json;
    feed.columns = vec![Column::new("id", DataType::Long)];
    let pipeline = Pipeline::builder("p").feed(feed).source(source.clone()).build().expect("a pipeline");
    let lake = Lake::open("memory://", tributary::OpenOptions::default()).expect("a lake");
    let run = async |on_gap| lake.run(&pipeline, RunOptions { on_gap, ..RunOptions::default() }).await.expect("a report");
    assert!(run(OnGap::Stop).await.datasets[0].error.is_none());
    source.0.store(5, Ordering::SeqCst);
    assert_eq!(run(OnGap::Stop).await.datasets[0].error.as_ref().map(|error| error.code.as_str()), Some("BR0012"));
    assert_eq!(run(OnGap::Earliest).await.datasets[0].gaps.len(), 1);
    let options = tributary::OpenOptions { catalogue: "system".into(), ..Default::default() };
    let system = Lake::open_stores(lake.stores().clone(), options).expect("the system catalogue");
    let rows = system.session().await.expect("a session");
    let rows = rows
        .sql("select feed, partition, \"from\", until, choice, \"table\", catalogue from tributary.gaps")
        .await
        .expect("a query")
        .collect()
        .await
        .expect("rows");
    let text = tributary::arrow::util::pretty::pretty_format_batches(&rows).expect("a table").to_string();
    assert!(text.contains("| f    | 3         | 2    | 5     | earliest | bronze.f | main      |"), "{text}");
}
