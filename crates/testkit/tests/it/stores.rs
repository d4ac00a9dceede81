//! The store that fails where a test says.

use std::sync::Arc;

use futures::StreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use tributary_testkit::{FaultyStore, KillPoints, Mode, Rule, ScriptedFault, Verb, crash, crash_at};

fn faulty() -> FaultyStore {
    FaultyStore::new(Arc::new(InMemory::new()))
}

async fn there(store: &dyn ObjectStore, path: &str) -> bool {
    store.get_opts(&Path::from(path), object_store::GetOptions::default()).await.is_ok()
}

async fn put(store: &FaultyStore, path: &str) -> Result<(), Error> {
    store.put(&Path::from(path), "x".into()).await.map(|_| ())
}

#[tokio::test]
async fn a_kill_before_leaves_nothing_and_everything_later_is_refused() {
    let store = faulty();
    store.kill_at(2, Mode::Before);
    put(&store, "a").await.expect("the first put");
    put(&store, "b").await.expect_err("the second is killed");
    assert!(store.killed());
    assert!(matches!(put(&store, "c").await, Err(Error::PermissionDenied { .. })));
    assert!(matches!(store.get(&Path::from("a")).await, Err(Error::PermissionDenied { .. })));
    assert!(store.list(None).next().await.is_some_and(|item| item.is_err()));
    assert!(there(&store.inner(), "a").await && !there(&store.inner(), "b").await);
    assert_eq!((store.counts().mutating, store.counts().refused), (2, 3));
}

#[tokio::test]
async fn a_kill_after_answers_and_a_lost_answer_does_not_but_both_happened() {
    for (mode, answered) in [(Mode::After, true), (Mode::AnswerLost, false)] {
        let store = faulty();
        store.kill_at(1, mode);
        assert_eq!(put(&store, "a").await.is_ok(), answered);
        assert!(there(&store.inner(), "a").await);
        assert!(put(&store, "b").await.is_err());
        assert!(!there(&store.inner(), "b").await);
    }
}

#[tokio::test]
async fn parts_and_completion_of_an_upload_are_calls_of_their_own() {
    for (n, visible) in [(1, false), (2, false), (3, false), (4, true)] {
        let store = faulty();
        store.kill_at(n, Mode::Before);
        let path = Path::from("big");
        let mut upload = store.put_multipart(&path).await.expect("an upload");
        let parts = [upload.put_part("one".into()).await, upload.put_part("two".into()).await];
        let completed = upload.complete().await;
        assert_eq!(parts.iter().filter(|part| part.is_err()).count() as u64, 3u64.saturating_sub(n).min(2));
        assert_eq!(completed.is_ok(), visible);
        assert_eq!(there(&store.inner(), "big").await, visible);
        assert_eq!(store.counts().bytes_put, 6);
    }
}

#[tokio::test]
async fn deletes_copies_and_renames_are_counted_a_path_each() {
    let store = faulty();
    for path in ["a", "b", "c"] {
        put(&store, path).await.expect("a put");
    }
    store.kill_at(2, Mode::Before);
    let paths = futures::stream::iter(["a", "b", "c"].map(|path| Ok(Path::from(path)))).boxed();
    let outcomes: Vec<_> = store.delete_stream(paths).collect().await;
    assert_eq!(outcomes.iter().map(|outcome| outcome.is_ok()).collect::<Vec<_>>(), [true, false, false]);
    let inner = store.inner();
    assert!(!there(&inner, "a").await && there(&inner, "b").await && there(&inner, "c").await);

    let store = FaultyStore::new(inner);
    store.copy(&Path::from("b"), &Path::from("d")).await.expect("a copy");
    store.rename(&Path::from("c"), &Path::from("e")).await.expect("a rename");
    assert_eq!(
        store.calls().iter().map(|call| (call.verb, call.path.as_ref().to_owned())).collect::<Vec<_>>(),
        [(Verb::Copy, "d".to_owned()), (Verb::Rename, "e".to_owned())]
    );
    assert_eq!(store.counts().mutating, 2);
}

#[tokio::test]
async fn reads_fail_once_and_then_go_through() {
    let store = faulty();
    put(&store, "a").await.expect("a put");
    store.fail_read_at(2);
    let path = Path::from("a");
    assert!(store.get(&path).await.is_ok());
    assert!(matches!(store.get(&path).await, Err(Error::Generic { .. })));
    assert!(store.get(&path).await.is_ok());

    store.fail_every_read_once();
    assert!(store.list(None).next().await.is_some_and(|item| item.is_err()));
    assert!(store.list(None).next().await.is_some_and(|item| item.is_ok()));
    assert!(store.get_range(&path, 0..1).await.is_err());
    assert!(store.get_range(&path, 0..1).await.is_ok());
}

#[tokio::test]
async fn a_scripted_fault_hits_the_call_it_is_about_and_the_store_lives_on() {
    let store = faulty();
    store.fail(Rule::delta_commit(), 2, ScriptedFault::AnswerLost);
    store.fail(Rule::verbs([Verb::Put]).on("secret"), 1, ScriptedFault::Denied);
    for (path, answered) in [
        ("t/_delta_log/00000000000000000000.json", true),
        ("t/part-0.parquet", true),
        ("t/_delta_log/00000000000000000001.json", false),
        ("t/_delta_log/00000000000000000002.json", true),
    ] {
        assert_eq!(put(&store, path).await.is_ok(), answered, "{path}");
        assert!(there(&store.inner(), path).await);
    }
    assert!(matches!(put(&store, "secret/x").await, Err(Error::PermissionDenied { .. })));
    assert!(!there(&store.inner(), "secret/x").await);
}

#[tokio::test]
async fn a_hook_runs_just_before_the_call_so_that_races_can_be_staged() {
    let store = faulty();
    let inner = store.inner();
    store.before(Rule::mutating(), 2, move |call| async move {
        assert_eq!(call.path.as_ref(), "mine");
        inner.put(&Path::from("theirs"), "first".into()).await.expect("the winner's put");
    });
    put(&store, "before").await.expect("a put");
    assert!(!there(&store.inner(), "theirs").await);
    put(&store, "mine").await.expect("a put");
    assert!(there(&store.inner(), "theirs").await);
}

/// A work of three puts; with `atomic` the last one names what counts, without it readers see every put.
async fn work(store: Arc<dyn ObjectStore>, atomic: bool) -> Result<(), Error> {
    let mut seen = 0;
    if let Ok(found) = store.get(&Path::from("total")).await {
        seen = found.bytes().await?.len();
    }
    if atomic && seen == 2 {
        return Ok(());
    }
    store.put(&Path::from("parts"), "x".into()).await?;
    let total = if atomic { "xx".to_owned() } else { "x".repeat(seen + 1) };
    store.put(&Path::from("total"), total.into()).await?;
    store.put(&Path::from("done"), "x".into()).await?;
    Ok(())
}

async fn total(store: Arc<dyn ObjectStore>) -> usize {
    store.get(&Path::from("total")).await.expect("a total").bytes().await.expect("bytes").len()
}

#[tokio::test]
async fn a_crash_proof_passes_a_safe_work_and_names_the_kill_points_of_an_unsafe_one() {
    let world = async || Arc::new(InMemory::new()) as Arc<dyn ObjectStore>;
    let safe = crash(KillPoints::All, world, async |store| work(store, true).await, total).await;
    assert_eq!((safe.holds(), safe.points, safe.kills, safe.read_faults), (true, 3, 9, 1));
    assert_eq!(safe.to_string(), "read faults 1 of 1; kill points 3 of 3 in 3 modes, 0 differences");

    let unsafe_work = crash(KillPoints::All, world, async |store| work(store, false).await, total).await;
    assert!(!unsafe_work.holds());
    assert!(unsafe_work.differences.iter().any(|difference| difference.starts_with("killed AnswerLost mutating call 2")));
    let sampled =
        crash_at(KillPoints::Sampled { points: 2, seed: 7 }, KillPoints::All, world, async |store| work(store, true).await, total).await;
    assert_eq!((sampled.points, sampled.kills), (2, 6));
}
