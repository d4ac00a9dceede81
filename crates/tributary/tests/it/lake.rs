//! The library door: two lakes side by side, cancelled runs, reading back.

use std::sync::Arc;

use tributary::object_store::memory::InMemory;
use tributary::{Layer, RunOptions, Status};
use tributary_testkit::{FaultyStore, Rule};

use crate::shop::{self, Drops};

/// B5
#[tokio::test]
async fn a_second_run_finds_nothing_new_and_writes_no_version() {
    let drops = Drops::new();
    let store = Arc::new(FaultyStore::new(Arc::new(InMemory::new())));
    let lake = shop::open(store.clone());
    let first = shop::run(&lake, &drops.all()).await;
    assert!(first.datasets.iter().all(|dataset| dataset.status == Status::Committed), "{first:#?}");
    let written = store.counts().mutating;
    let second = shop::run(&lake, &drops.all()).await;
    assert!(second.nothing_new(), "{second:#?}");
    assert_eq!(store.counts().mutating, written, "a run with nothing new wrote something");
}

/// B3
#[tokio::test]
async fn counts_of_every_dataset_add_up() {
    let drops = Drops::new();
    let lake = shop::open(Arc::new(InMemory::new()));
    for base in [drops.first(), drops.all()] {
        for dataset in shop::run(&lake, &base).await.datasets {
            let ignored: u64 = dataset.rows_ignored.values().sum();
            assert_eq!(dataset.rows_in, dataset.rows_out + dataset.rows_quarantined + ignored, "{dataset:#?}");
        }
    }
}

#[tokio::test]
async fn layers_run_alone_and_meet_in_tables() {
    let drops = Drops::new();
    let lake = shop::open(Arc::new(InMemory::new()));
    for layer in Layer::ALL {
        let options = RunOptions { layers: vec![layer], base_data_path: drops.all(), ..RunOptions::default() };
        let report = lake.run(&shop::retail(), options).await.expect("a report");
        assert!(report.datasets.iter().all(|dataset| dataset.table.starts_with(&layer.to_string())), "{report:#?}");
        assert!(!report.datasets.is_empty());
    }
    let whole = shop::open(Arc::new(InMemory::new()));
    shop::run(&whole, &drops.all()).await;
    assert_eq!(shop::content(&lake).await, shop::content(&whole).await);
}

#[test]
fn queries_that_cannot_be_read_are_told_with_every_other_mistake_and_its_place() {
    let text = "
name: shop
gold:
  - {table: gold.a, query: select 1 frm x}
  - {table: gold.b, query: delete from gold.a}
  - {table: gold.c, query: select 1 as one, pase: 1}
  - {table: gold.d, query: select * from silver.none}
";
    let told = tributary::Pipeline::from_yaml(&[("shop.yml", text)]).expect_err("four mistakes").to_string();
    for part in ["shop.yml:4:28: gold[0].query", "shop.yml:5:28: gold[1].query", "gold[2].pase", "silver.none"] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let view = tributary::GoldSpec::new("gold.a".parse().expect("a name"), "select 1 frm x");
    let told = tributary::Pipeline::builder("shop").gold(view).build().expect_err("no query").to_string();
    assert!(told.contains("gold.a"), "{told}");
}

#[tokio::test]
async fn an_unknown_dataset_in_only_is_refused_with_the_nearest_name() {
    let lake = shop::open(Arc::new(InMemory::new()));
    let only = vec!["silver.order".parse().expect("a name")];
    let error = lake.run(&shop::retail(), RunOptions { only, ..RunOptions::default() }).await.expect_err("it is unknown");
    assert_eq!(error.to_string(), "the pipeline has no dataset `silver.order` (did you mean `silver.orders`?)");
}

/// One of two pipelines in a process is cancelled between a put and its answer; both tables sets are right in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_lakes_side_by_side_and_one_cancelled_between_a_put_and_its_answer() {
    let drops = Drops::new();
    let quiet = shop::open(Arc::new(InMemory::new()));
    shop::run(&quiet, &drops.all()).await;
    let expected = shop::content(&quiet).await;
    let mut cancelled = 0;
    for commit in 1..=12 {
        let store = Arc::new(FaultyStore::new(Arc::new(InMemory::new())));
        let (started, reached) = tokio::sync::oneshot::channel::<()>();
        let started = std::sync::Mutex::new(Some(started));
        store.before(Rule::delta_commit(), commit, move |_| {
            let started = started.lock().expect("not poisoned").take();
            async move {
                if let Some(started) = started {
                    let _ = started.send(());
                    std::future::pending::<()>().await;
                }
            }
        });
        let lake = shop::open(store.clone());
        let other = shop::open(Arc::new(InMemory::new()));
        let base = drops.all();
        let doomed = tokio::spawn({
            let base = base.clone();
            async move { shop::run(&lake, &base).await }
        });
        let beside = tokio::spawn(async move {
            shop::run(&other, &base).await;
            shop::content(&other).await
        });
        if reached.await.is_ok() {
            doomed.abort();
            cancelled += 1;
        }
        let _ = doomed.await;
        assert_eq!(beside.await.expect("the other lake's run"), expected);
        let again = shop::open(store.inner());
        shop::run(&again, &drops.all()).await;
        shop::run(&again, &drops.all()).await;
        assert_eq!(shop::content(&again).await, expected, "dropped at commit {commit}");
    }
    assert!(cancelled >= 10, "only {cancelled} runs were cancelled");
}

/// A service spawns runs and reads on a multi-thread runtime.
#[test]
fn futures_of_the_facade_can_be_spawned() {
    fn spawnable<T: Send + 'static>(_: impl FnOnce() -> T) {}
    let lake = shop::open(Arc::new(InMemory::new()));
    spawnable(|| async move { lake.run(&shop::retail(), RunOptions::default()).await.map(|report| report.nothing_new()) });
    let lake = shop::open(Arc::new(InMemory::new()));
    spawnable(|| async move { shop::content(&lake).await });
}
