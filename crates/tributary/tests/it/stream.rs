//! Continuous runs: what fails is tried again, what is read is committed at the end, and it comes to what drains come to.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tributary::object_store::memory::InMemory;
use tributary::{ExitCode, Mode, ProgressEvent, ProgressSink, RunOptions, RunReport, Status};
use tributary_testkit::{FaultyStore, Rule, ScriptedFault};

use crate::shop::{self, Drops};

/// Every table of the retail pipeline.
const DATASETS: usize = 10;

/// What happened, in order.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<ProgressEvent>>);

impl ProgressSink for Heard {
    fn event(&self, event: &ProgressEvent) {
        self.0.lock().expect("not poisoned").push(event.clone());
    }
}

impl Heard {
    fn count(&self, like: impl Fn(&ProgressEvent) -> bool) -> usize {
        self.0.lock().expect("not poisoned").iter().filter(|event| like(event)).count()
    }

    /// How often the dataset was committed to.
    fn commits(&self, table: &str) -> usize {
        self.count(|event| {
            matches!(event, ProgressEvent::DatasetFinished { report, .. } if report.table == table && report.status == Status::Committed)
        })
    }

    async fn until(&self, what: &str, so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !so(self) {
            assert!(Instant::now() < until, "{what} within a minute: {:#?}", self.0);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

const VIEWS: [&str; 3] = ["gold.daily_revenue", "gold.customer_orders", "gold.low_stock"];

/// A stream over a folder of drops, while `meanwhile` goes on, and what it reports when it is told to end.
async fn stream(store: Arc<FaultyStore>, base: &Path, heard: &Arc<Heard>, meanwhile: impl Future<Output = ()>) -> RunReport {
    let lake = shop::open(store);
    let progress: Arc<dyn ProgressSink> = Arc::<Heard>::clone(heard);
    let mode = Mode::Continuous { every: Duration::from_millis(100) };
    let options = RunOptions { mode, base_data_path: base.to_owned(), progress, ..RunOptions::default() };
    let cancel = options.cancel.clone();
    let run = tokio::spawn(async move { lake.run(&shop::retail(), options).await.expect("a report") });
    meanwhile.await;
    cancel.cancel();
    tokio::time::timeout(Duration::from_secs(10), run).await.expect("it ends within ten seconds").expect("no panic")
}

fn faulty() -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(Arc::new(InMemory::new())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_comes_to_what_drains_come_to_and_reports_its_sums() {
    let drops = Drops::new();
    let quiet = shop::open(Arc::new(InMemory::new()));
    shop::run(&quiet, &drops.all()).await;
    let drained = shop::content(&quiet).await;
    let (store, heard) = (faulty(), Arc::new(Heard::default()));
    let folder = tempfile::tempdir().expect("a folder");
    for side in ["shop", "depot"] {
        std::fs::create_dir_all(folder.path().join(side)).expect("a folder");
    }
    let drop_in = |file: &str| {
        for side in ["shop", "depot"] {
            std::fs::copy(drops.all().join(side).join(file), folder.path().join(side).join(file)).expect("a drop");
        }
    };
    drop_in("1.jsonl");
    let report = stream(store.clone(), folder.path(), &heard, async {
        heard.until("every view is there", |heard| VIEWS.iter().all(|view| heard.commits(view) > 0)).await;
        drop_in("2.jsonl");
        heard.until("every view has moved", |heard| VIEWS.iter().all(|view| heard.commits(view) > 1)).await;
        // a view of two tables may have moved with the first of them only
        let until = Instant::now() + Duration::from_secs(60);
        while shop::content(&shop::open(store.inner())).await != drained && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert_eq!(shop::content(&shop::open(store.inner())).await, drained);
    assert_eq!((report.exit_code(), report.cancelled, report.datasets.len()), (ExitCode::Done, false, DATASETS));
    for dataset in &report.datasets {
        assert_eq!(dataset.status, Status::Committed, "{dataset:#?}");
        let ignored: u64 = dataset.rows_ignored.values().sum();
        assert_eq!(dataset.rows_in, dataset.rows_out + dataset.rows_quarantined + ignored, "{dataset:#?}");
        assert!(dataset.commits >= 2 && dataset.lag_seconds == Some(0), "{dataset:#?}");
    }
    let written = store.counts().mutating;
    let again = shop::open(store.clone());
    assert!(shop::run(&again, folder.path()).await.nothing_new(), "what was read was committed");
    assert_eq!(store.counts().mutating, written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_that_fails_is_tried_again_and_the_others_do_not_wait() {
    let drops = Drops::new();
    let (store, heard) = (faulty(), Arc::new(Heard::default()));
    // silver.inventory cannot be made, twice
    for n in 1..=2 {
        store.fail(Rule::mutating().on("silver/inventory/"), n, ScriptedFault::NotDone);
    }
    let waited = |heard: &Heard, of: &str| {
        heard.count(|event| matches!(event, ProgressEvent::DatasetWaits { table, .. } if table.to_string() == of))
    };
    let report = stream(store.clone(), &drops.all(), &heard, async {
        heard.until("the failure is told", |heard| waited(heard, "silver.inventory") > 1).await;
        heard.until("the others are done", |heard| heard.commits("gold.daily_revenue") > 0).await;
        assert_eq!(heard.commits("gold.low_stock"), 0, "what it would read is not there yet");
        heard.until("it is well in the end", |heard| heard.commits("gold.low_stock") > 0).await;
    })
    .await;
    assert_eq!(report.exit_code(), ExitCode::Done, "{report:#?}");
    let quiet = shop::open(Arc::new(InMemory::new()));
    shop::run(&quiet, &drops.all()).await;
    assert_eq!(shop::content(&shop::open(store.inner())).await, shop::content(&quiet).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_must_mend_stops_what_reads_it_and_the_exit_code_says_so() {
    let drops = Drops::new();
    let (store, heard) = (faulty(), Arc::new(Heard::default()));
    store.fail(Rule::mutating().on("silver/inventory/"), 1, ScriptedFault::Denied);
    let report = stream(store, &drops.all(), &heard, async {
        heard.until("the others are done", |heard| heard.commits("gold.daily_revenue") > 0).await;
        let stopped = |event: &ProgressEvent| matches!(event, ProgressEvent::DatasetStopped { .. });
        heard.until("two are stopped", |heard| heard.count(stopped) == 2).await;
    })
    .await;
    let of = |table: &str| report.datasets.iter().find(|dataset| dataset.table == table).expect("a report").status;
    assert_eq!((of("silver.inventory"), of("gold.low_stock")), (Status::Failed, Status::Skipped));
    assert_eq!((of("silver.orders"), of("bronze.inventory")), (Status::Committed, Status::Committed));
    assert_eq!(report.exit_code(), ExitCode::BadInput, "{report:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_cancelled_in_the_middle_of_a_slow_commit_waits_for_it() {
    let drops = Drops::new();
    let (store, heard) = (faulty(), Arc::new(Heard::default()));
    let (begun, slow) = tokio::sync::oneshot::channel();
    // the first commit makes the table, the second has the rows
    store.before(Rule::delta_commit().on("bronze/orders"), 2, move |_| async move {
        let _ = begun.send(());
        tokio::time::sleep(Duration::from_secs(2)).await;
    });
    let report = stream(store.clone(), &drops.all(), &heard, async { slow.await.expect("a commit begins") }).await;
    assert_eq!(report.exit_code(), ExitCode::Done, "{report:#?}");
    let orders = report.datasets.iter().find(|dataset| dataset.table == "bronze.orders").expect("a report");
    assert_eq!(orders.status, Status::Committed, "{orders:#?}");
    let again = shop::open(store.inner());
    let drained = shop::run(&again, &drops.all()).await;
    let orders = drained.datasets.iter().find(|dataset| dataset.table == "bronze.orders").expect("a report");
    assert_eq!(orders.status, Status::NothingNew, "what was read was committed");
}
