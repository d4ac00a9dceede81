//! Many topics, many tables, large transactions: what one process takes.

use std::collections::BTreeMap;

use serde_json::json;
use tributary_specs::{SourceFeed, Status};

use crate::kafka::{Broker, ids, topics};
use crate::world::World;

const TOPICS: i64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_topics_become_two_hundred_tables_in_one_run() {
    let names: Vec<String> = (0..TOPICS).map(|number| format!("shop.t{number:03}")).collect();
    let (world, broker) = (World::new(), Broker::new(&names.iter().map(|name| (name.as_str(), 1)).collect::<Vec<_>>()));
    names.iter().zip(0..).for_each(|(name, number)| broker.send(name, 0, number..number + 1 + number % 3));
    let feeds: Vec<SourceFeed> =
        (0..TOPICS).map(|number| topics(&format!("t{number:03}"), json!({"topics": [names[number as usize]]}))).collect();
    let options = broker.options(&world);
    let reports = world.run_with(&feeds, &options).await;
    let failed: Vec<_> = reports.iter().filter(|report| report.status != Status::Committed || report.commits != 1).collect();
    assert_eq!(failed, Vec::<&tributary_specs::DatasetReport>::new());
    assert_eq!(reports.iter().map(|report| report.rows_out).sum::<u64>(), (0..TOPICS).map(|number| 1 + number as u64 % 3).sum::<u64>());
    for number in [0, 1, 99, 199] {
        assert_eq!(ids(&world, &format!("bronze.t{number:03}")).await, (number..number + 1 + number % 3).collect::<Vec<_>>());
    }
    let again = world.run_with(&feeds, &options).await;
    assert!(again.iter().all(|report| report.status == Status::NothingNew && report.error.is_none()), "{again:?}");
}

/// KAFKA-13: a transaction of the source is as many records as any; it is read, decoded and written in slices, and no more than some
/// slices are ever held. It may be seen in parts while it is on its way (invariants), never twice and never short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_many_updates_is_taken_in_slices_and_whole_in_the_end() {
    const UPDATES: i64 = 50_000;
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    for from in (0..UPDATES).step_by(10_000) {
        broker.send("t", 0, from..from + 10_000);
    }
    let mut options = broker.options(&world);
    options.slice_records = 1_000;
    options.max_records_per_trigger = Some(8_000);
    let feeds = [topics("a", json!({"topics": ["t"]}))];
    let report = world.run_with(&feeds, &options).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out, report.lag_records), (None, UPDATES as u64, Some(0)));
    assert!(report.commits >= UPDATES as u64 / 10_000, "{} commits", report.commits);
    assert_eq!(report.positions, BTreeMap::from([("t/0".to_owned(), UPDATES)]));
    assert_eq!(ids(&world, "bronze.a").await, (0..UPDATES).collect::<Vec<_>>());
}
