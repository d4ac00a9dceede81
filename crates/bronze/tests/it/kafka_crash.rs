//! B1 and B2 with a broker: a kill at every mutating call, and any cuts with kills between them.

use std::sync::Arc;

use proptest::prelude::*;
use rdkafka::producer::BaseRecord;
use serde_json::{Value, json};
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_specs::SourceFeed;
use tributary_testkit::{KillPoints, Mode, crash};

use crate::kafka::{Broker, topics};
use crate::world::World;

fn feeds() -> [SourceFeed; 2] {
    [topics("a", json!({"topics": ["t*"]})), topics("b", json!({"topics": ["u"]}))]
}

/// Two topics of one feed with the same bad offset, and a topic of another.
fn broker() -> Broker {
    let broker = Broker::new(&[("t1", 2), ("t2", 1), ("u", 1)]);
    broker.send("t1", 0, 0..4);
    broker.send("t1", 1, 4..6);
    broker.send("t2", 0, 6..9);
    broker.send("u", 0, 9..12);
    for topic in ["t1", "t2", "u"] {
        broker.put(BaseRecord::<str, str>::to(topic).partition(0).payload("{\"id\":"));
    }
    broker.flush();
    broker.send("t1", 0, 12..15);
    broker
}

async fn run(world: &World, broker: &Broker, batch: u64) -> Result<(), String> {
    let mut options = broker.options(world);
    options.max_records_per_trigger = Some(batch);
    options.slice_records = 2;
    let reports = world.run_with(&feeds(), &options).await;
    let error = reports.into_iter().filter_map(|report| report.error).next();
    error.map_or(Ok(()), |error| Err(format!("{}: {}", error.code, error.message)))
}

/// What readers see: rows of both tables, and the open rows of both quarantines.
async fn see(world: &World) -> Vec<Vec<Value>> {
    let mut seen = Vec::new();
    for table in ["bronze.a", "bronze.b"] {
        seen.push(world.columns(table, &["id", "_topic", "_partition", "_offset"]).await);
    }
    for table in ["quarantine.a", "quarantine.b"] {
        let open = |row: &Value| row.get("superseded_at").is_none_or(Value::is_null);
        let rows = world.rows(table).await.into_iter().filter(open);
        seen.push(rows.map(|row| json!([row["topic"], row["partition"], row["offset"], row["reason"]])).collect());
    }
    seen
}

#[tokio::test]
async fn each_record_lands_once_whatever_call_a_drain_is_killed_at() {
    let broker = broker();
    let world = World::new();
    run(&world, &broker, 4).await.unwrap();
    assert_eq!(see(&world).await.iter().map(Vec::len).collect::<Vec<_>>(), [12, 3, 2, 1], "the run that is never killed");
    let report = crash(
        KillPoints::All,
        async || Arc::new(InMemory::new()) as Arc<dyn ObjectStore>,
        async |store| run(&World::over(store, Arc::new(InMemory::new())), &broker, 4).await,
        async |store| see(&World::over(store, Arc::new(InMemory::new()))).await,
    )
    .await;
    println!("{report}");
    assert!(report.holds(), "{report}\n{}", report.differences.join("\n"));
}

#[derive(Debug, Clone)]
struct Step {
    sent: i64,
    partition: i32,
    batch: u64,
    kill: Option<(u64, Mode)>,
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop::sample::select(vec![Mode::Before, Mode::After, Mode::AnswerLost]);
    (0..8_i64, 0..2_i32, 1..6_u64, prop::option::of((1..8_u64, mode))).prop_map(|(sent, partition, batch, kill)| Step {
        sent,
        partition,
        batch,
        kill,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_cuts_with_kills_between_them_give_each_record_once(steps in prop::collection::vec(step(), 1..5)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (world, broker) = (World::new(), Broker::new(&[("t1", 2), ("u", 1)]));
            let mut sent = 0;
            for step in &steps {
                broker.send("t1", step.partition, sent..sent + step.sent);
                sent += step.sent;
                let process = World::over(world.lake_store.inner(), world.data_store.inner());
                if let Some((call, mode)) = step.kill {
                    process.lake_store.kill_at(call, mode);
                }
                let ended = run(&process, &broker, step.batch).await;
                assert!(ended.is_ok() || step.kill.is_some(), "{ended:?}");
            }
            run(&World::over(world.lake_store.inner(), world.data_store.inner()), &broker, 100).await.unwrap();
            let ids = crate::kafka::ids(&world, "bronze.a").await;
            assert_eq!(ids, (0..sent).collect::<Vec<_>>());
        });
    }
}
