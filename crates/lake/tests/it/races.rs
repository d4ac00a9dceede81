//! Writers against each other, and against stores that do not answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use chrono::{DateTime, TimeDelta};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tributary_fault::{Fault, FaultClass};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::{Commit, CommitOutcome, Conflict, Error, KeyRange, KeyRanges, LakeOptions, ManualClock, Operation, Progress, Reads};
use tributary_specs::Column;
use tributary_testkit::{Control, Controls, FaultyStore, Rule, ScriptedFault, Verb};

use crate::strict_store::StrictStore;
use crate::toy::{APP, expected, file_of, lake_over, lake_with, numbers_in, open, spec};

fn commit_path(version: u64) -> Path {
    Path::from(format!("lake/main/bronze/numbers/_delta_log/{version:020}.json"))
}

fn position(expected: Option<i64>, version: i64) -> Vec<Progress> {
    vec![Progress { app_id: APP.to_owned(), expected, version }]
}

fn keys(low: i64, high: i64) -> Reads {
    let range = KeyRange { bounds: Some((ScalarValue::Int64(Some(low)), ScalarValue::Int64(Some(high)))), nulls: false };
    Reads::Keys(KeyRanges(BTreeMap::from([("n".to_owned(), range)])))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_writers_of_twenty_five_appends_make_two_hundred_rows_in_two_hundred_versions() -> Result<()> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    lake_over(Arc::clone(&store), Controls::none()).create(&spec()).await?;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let lake = lake_with(Arc::clone(&store), LakeOptions { attempts_max: 200, ..LakeOptions::default() });
            tokio::spawn(async move {
                let mut table = open(&lake).await?;
                for append in 0..25 {
                    let adds = file_of(&table, &[writer * 100 + append], writer).await?;
                    let outcome = table.commit(Commit { adds, ..Commit::default() }).await?;
                    anyhow::ensure!(matches!(outcome, CommitOutcome::Committed { .. }), "{outcome:?}");
                    table = table.refresh().await?;
                }
                Ok(())
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    let table = open(&lake_over(store, Controls::none())).await?;
    assert_eq!(table.version(), 200);
    let all: Vec<i64> = (0..8).flat_map(|writer| (0..25).map(move |append| writer * 100 + append)).collect();
    assert_eq!(numbers_in(&table).await?, all);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_found_in_the_log_and_not_made_again() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let table = lake_over(Arc::new(store.clone()), Controls::none()).create(&spec()).await?;
    let adds = file_of(&table, &[1], 0).await?;
    store.fail(Rule::delta_commit(), 1, ScriptedFault::AnswerLost);
    let outcome = table.commit(Commit { adds, progress: position(None, 1), ..Commit::default() }).await?;
    assert_eq!(outcome, CommitOutcome::Committed { version: 1 });
    let table = table.refresh().await?;
    assert_eq!((table.version(), numbers_in(&table).await?), (1, vec![1]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_and_whose_version_others_built_on_is_found_too() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let inner = store.inner();
    let table = lake_over(Arc::new(store.clone()), Controls::none()).create(&spec()).await?;
    let adds = file_of(&table, &[1], 0).await?;
    store.fail(Rule::delta_commit(), 1, ScriptedFault::AnswerLost);
    // Before the loser looks, another writer puts its commit on top.
    store.before(Rule::verbs([Verb::Get]).on("00000000000000000001.json"), 1, move |_| async move {
        let rival = open(&lake_over(inner, Controls::none())).await.unwrap();
        let adds = file_of(&rival, &[2], 1).await.unwrap();
        assert_eq!(rival.commit(Commit { adds, ..Commit::default() }).await.unwrap(), CommitOutcome::Committed { version: 2 });
    });
    assert_eq!(table.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 1 });
    assert_eq!(numbers_in(&table.refresh().await?).await?, [1, 2]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_not_carried_out_is_sent_again() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let table = lake_over(Arc::new(store.clone()), Controls::none()).create(&spec()).await?;
    let adds = file_of(&table, &[1], 0).await?;
    store.fail(Rule::delta_commit(), 1, ScriptedFault::NotDone);
    assert_eq!(table.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 1 });
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_cannot_be_looked_up_is_unknown_and_known_after_a_restart() -> Result<()> {
    for (fault, landed) in [(ScriptedFault::AnswerLost, true), (ScriptedFault::NotDone, false)] {
        let store = FaultyStore::new(Arc::new(InMemory::new()));
        let table = lake_over(Arc::new(store.clone()), Controls::none()).create(&spec()).await?;
        let adds = file_of(&table, &[1], 0).await?;
        store.fail(Rule::delta_commit(), 1, fault);
        for read in 1..=50 {
            store.fail(Rule::reads().on("00000000000000000001.json"), read, ScriptedFault::NotDone);
        }
        let error = table.commit(Commit { adds, progress: position(None, 1), ..Commit::default() }).await.unwrap_err();
        assert_eq!(error.class(), FaultClass::Unknown, "{error}");
        let table = open(&lake_over(store.inner(), Controls::none())).await?;
        assert_eq!(table.progress(APP).await?, landed.then_some(1));
    }
    Ok(())
}

/// 409 while a rival's write is in flight, then 412 because it is there: what S3 answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_conditional_put_that_meets_a_rival_in_flight_ends_on_the_next_version() -> Result<()> {
    let faulty = FaultyStore::new(Arc::new(InMemory::new()));
    let inner = faulty.inner();
    let lake = lake_over(Arc::new(StrictStore::new(Arc::new(faulty.clone()))), Controls::none());
    let table = lake.create(&spec()).await?;
    let adds = file_of(&table, &[1], 0).await?;
    faulty.fail(Rule::delta_commit(), 1, ScriptedFault::NotDone);
    faulty.before(Rule::delta_commit(), 2, move |_| async move {
        let rival = open(&lake_over(inner, Controls::none())).await.unwrap();
        let adds = file_of(&rival, &[2], 1).await.unwrap();
        assert_eq!(rival.commit(Commit { adds, ..Commit::default() }).await.unwrap(), CommitOutcome::Committed { version: 1 });
    });
    assert_eq!(table.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 2 });
    let table = table.refresh().await?;
    assert_eq!((table.version(), numbers_in(&table).await?), (2, vec![1, 2]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_refuses_writes_is_an_error_of_the_person_and_nothing_is_there() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let lake = lake_over(Arc::new(store.clone()), Controls::none());
    store.fail(Rule::mutating(), 1, ScriptedFault::Denied);
    let error = lake.create(&spec()).await.unwrap_err();
    assert_eq!(error.class(), FaultClass::BadInput, "{error}");
    assert!(lake.table(&spec().name).await?.is_none());

    let table = lake.create(&spec()).await?;
    let adds = file_of(&table, &[1], 0).await?;
    store.fail(Rule::delta_commit(), 1, ScriptedFault::Denied);
    let error = table.commit(Commit { adds, ..Commit::default() }).await.unwrap_err();
    assert_eq!(error.class(), FaultClass::BadInput, "{error}");
    assert_eq!(table.refresh().await?.version(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_made_without_an_answer_or_by_two_at_once_is_one_table() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    store.fail(Rule::delta_commit(), 1, ScriptedFault::AnswerLost);
    assert_eq!(lake_over(Arc::new(store.clone()), Controls::none()).create(&spec()).await?.version(), 0);

    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let inner = store.inner();
    store.before(Rule::delta_commit(), 1, move |_| async move {
        lake_over(inner, Controls::none()).create(&spec()).await.unwrap();
    });
    assert_eq!(lake_over(Arc::new(store.clone()), Controls::none()).create(&spec()).await?.version(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_is_wrong_about_the_position_changes_nothing() -> Result<()> {
    let lake = lake_over(Arc::new(InMemory::new()), Controls::none());
    let table = lake.create(&spec()).await?;
    let adds = file_of(&table, &[1], 0).await?;
    let CommitOutcome::Committed { .. } = table.commit(Commit { adds, progress: position(None, 5), ..Commit::default() }).await? else {
        panic!()
    };
    // From the snapshot it had: the other moved meanwhile.
    let adds = file_of(&table, &[2], 0).await?;
    let stale = table.commit(Commit { adds, progress: position(None, 5), ..Commit::default() }).await?;
    assert_eq!(stale, CommitOutcome::Fenced { app_id: APP.to_owned(), expected: None, found: Some(5) });
    // From a fresh one, with an old belief: equal, lower and higher positions alike.
    let table = table.refresh().await?;
    for version in [4, 5, 6] {
        let adds = file_of(&table, &[3], 0).await?;
        let wrong = table.commit(Commit { adds, progress: position(Some(4), version), ..Commit::default() }).await?;
        assert_eq!(wrong, CommitOutcome::Fenced { app_id: APP.to_owned(), expected: Some(4), found: Some(5) });
    }
    let table = table.refresh().await?;
    assert_eq!((table.version(), numbers_in(&table).await?), (1, vec![1]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_goes_backwards_only_by_a_restore() -> Result<()> {
    let table = lake_over(Arc::new(InMemory::new()), Controls::none()).create(&spec()).await?;
    let CommitOutcome::Committed { .. } = table.commit(Commit { progress: position(None, 5), ..Commit::default() }).await? else {
        panic!()
    };
    let table = table.refresh().await?;
    let back = Commit { progress: position(Some(5), 3), ..Commit::default() };
    assert!(matches!(table.commit(back.clone()).await, Err(Error::Malformed { .. })));
    let restored = table.commit(Commit { operation: Operation::Restore, ..back }).await?;
    assert_eq!(restored, CommitOutcome::Committed { version: 2 });
    assert_eq!(table.refresh().await?.progress(APP).await?, Some(3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_moves_without_rows() -> Result<()> {
    let table = lake_over(Arc::new(InMemory::new()), Controls::none()).create(&spec()).await?;
    assert_eq!(table.commit(Commit { progress: position(None, 9), ..Commit::default() }).await?, CommitOutcome::Committed { version: 1 });
    assert_eq!(table.refresh().await?.progress(APP).await?, Some(9));
    assert!(matches!(table.commit(Commit::default()).await, Err(Error::Malformed { .. })), "a commit of nothing");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn row_level_changes_go_on_top_of_disjoint_appends_and_conflict_with_others() -> Result<()> {
    for (appended, conflicts) in [(500, false), (15, true)] {
        let table = lake_over(Arc::new(InMemory::new()), Controls::none()).create(&spec()).await?;
        let adds = file_of(&table, &[10, 20], 0).await?;
        let CommitOutcome::Committed { .. } = table.commit(Commit { adds, ..Commit::default() }).await? else { panic!() };
        let stale = table.refresh().await?;
        let adds = file_of(&stale, &[appended], 1).await?;
        let CommitOutcome::Committed { .. } = stale.commit(Commit { adds, ..Commit::default() }).await? else { panic!() };
        let merge = Commit {
            operation: Operation::Merge,
            adds: file_of(&stale, &[10, 21], 2).await?,
            removes: stale.files().await?,
            reads: keys(10, 20),
            ..Commit::default()
        };
        let outcome = stale.commit(merge).await?;
        match conflicts {
            false => assert_eq!(outcome, CommitOutcome::Committed { version: 3 }),
            true => assert!(matches!(outcome, CommitOutcome::Conflicted(Conflict::RowsAdded { version: 2, .. })), "{outcome:?}"),
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_changes_of_one_file_the_second_plans_again() -> Result<()> {
    for controls in [Controls::none(), Controls::none().with(Control::NoReplanAfterConflict)] {
        let table = lake_over(Arc::new(InMemory::new()), controls).create(&spec()).await?;
        let adds = file_of(&table, &[10, 20], 0).await?;
        let CommitOutcome::Committed { .. } = table.commit(Commit { adds, ..Commit::default() }).await? else { panic!() };
        let stale = table.refresh().await?;
        let change = async |rows: &[i64], keys: Reads| -> Result<CommitOutcome> {
            let commit = Commit {
                operation: Operation::Merge,
                adds: file_of(&stale, rows, 1).await?,
                removes: stale.files().await?,
                reads: keys,
                ..Commit::default()
            };
            Ok(stale.commit(commit).await?)
        };
        assert_eq!(change(&[11, 20], keys(10, 10)).await?, CommitOutcome::Committed { version: 2 });
        let second = change(&[10, 21], keys(20, 20)).await?;
        let rows = numbers_in(&stale.refresh().await?).await?;
        if controls == Controls::none() {
            assert!(matches!(second, CommitOutcome::Conflicted(Conflict::FileChanged { version: 2, .. })), "{second:?}");
            assert_eq!(rows, [11, 20]);
        } else {
            assert_eq!(rows, [10, 11, 20, 21], "the control must double the rows, or the test proves nothing");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_plan_conflicts_with_new_columns_and_a_fresh_one_has_them() -> Result<()> {
    let table = lake_over(Arc::new(InMemory::new()), Controls::none()).create(&spec()).await?;
    let mut columns = table.columns().to_vec();
    columns.push(Column::new("note", tributary_specs::DataType::String));
    assert_eq!(table.commit(Commit { schema: Some(columns), ..Commit::default() }).await?, CommitOutcome::Committed { version: 1 });
    let adds = file_of(&table, &[1], 0).await?;
    let stale = table.commit(Commit { adds, ..Commit::default() }).await?;
    assert_eq!(stale, CommitOutcome::Conflicted(Conflict::Metadata { version: 1 }));
    let fresh = table.refresh().await?;
    assert_eq!(fresh.columns().len(), 3);
    let adds = file_of(&fresh, &[1], 0).await?;
    assert_eq!(fresh.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 2 });
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_cannot_be_read_stops_the_commit_and_is_named() -> Result<()> {
    for (line, named) in [
        (r#"{"teleport":{"rows":7}}"#, "version 1, where the action `teleport` is not known"),
        (
            r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["quantumRows"],"writerFeatures":["quantumRows"]}}"#,
            "the table feature `quantumRows`",
        ),
    ] {
        let store = Arc::new(InMemory::new());
        let table = lake_over(Arc::clone(&store) as _, Controls::none()).create(&spec()).await?;
        store.put(&commit_path(1), line.into()).await?;
        let adds = file_of(&table, &[1], 0).await?;
        let error = table.commit(Commit { adds, ..Commit::default() }).await.unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains(named), "{error}");
        assert!(store.head(&commit_path(2)).await.is_err());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_of_ours_rides_in_the_commit_and_conflicts_with_another_of_its_name() -> Result<()> {
    let table = lake_over(Arc::new(InMemory::new()), Controls::none()).create(&spec()).await?;
    let ledger =
        |text: &str| Commit { domains: BTreeMap::from([("tributary.ledger".to_owned(), Some(text.to_owned()))]), ..Commit::default() };
    assert_eq!(table.commit(ledger("one")).await?, CommitOutcome::Committed { version: 1 });
    let stale = table.commit(ledger("two")).await?;
    assert!(matches!(stale, CommitOutcome::Conflicted(_)), "{stale:?}");
    let table = table.refresh().await?;
    assert!(table.features().contains(&"domainMetadata".to_owned()));
    assert_eq!(table.domain("tributary.ledger").await?, Some("one".to_owned()));
    // Now that the table has the feature, the domain alone is what conflicts.
    assert_eq!(table.commit(ledger("three")).await?, CommitOutcome::Committed { version: 2 });
    assert_eq!(
        table.commit(ledger("four")).await?,
        CommitOutcome::Conflicted(Conflict::Domain { version: 2, domain: "tributary.ledger".to_owned() })
    );
    let table = table.refresh().await?;
    let gone = Commit { domains: BTreeMap::from([("tributary.ledger".to_owned(), None)]), ..Commit::default() };
    assert_eq!(table.commit(gone).await?, CommitOutcome::Committed { version: 3 });
    assert_eq!(table.refresh().await?.domain("tributary.ledger").await?, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_times_grow_though_the_clock_stands_still_or_goes_back() -> Result<()> {
    let clock = Arc::new(ManualClock::new(DateTime::from_timestamp(1_769_940_000, 0).unwrap()));
    let options = LakeOptions { clock: Arc::clone(&clock) as _, ..LakeOptions::default() };
    let stores = tributary_lake::Stores::memory();
    let lake = tributary_lake::Lake::open(stores, options)?;
    let mut table = lake.create(&spec()).await?;
    for step in [0, -3600, 60, 0] {
        clock.advance(TimeDelta::seconds(step));
        let adds = file_of(&table, &[step], 0).await?;
        let CommitOutcome::Committed { .. } = table.commit(Commit { adds, ..Commit::default() }).await? else { panic!() };
        table = table.refresh().await?;
    }
    let mut times: Vec<_> = table.history(None).await?.into_iter().map(|entry| entry.timestamp).collect();
    times.reverse();
    assert_eq!(times.len(), 5);
    assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blind_append_gives_up_after_its_attempts() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let lake = lake_with(Arc::new(store.clone()), LakeOptions { attempts_max: 3, ..LakeOptions::default() });
    let table = lake.create(&spec()).await?;
    for nth in 1..=3 {
        let inner = store.inner();
        store.before(Rule::delta_commit(), nth, move |_| async move {
            let rival = open(&lake_over(inner, Controls::none())).await.unwrap();
            let adds = file_of(&rival, &[100 + nth as i64], 0).await.unwrap();
            let CommitOutcome::Committed { .. } = rival.commit(Commit { adds, ..Commit::default() }).await.unwrap() else { panic!() };
        });
    }
    let adds = file_of(&table, &[1], 0).await?;
    let outcome = table.commit(Commit { adds: adds.clone(), ..Commit::default() }).await?;
    assert_eq!(outcome, CommitOutcome::Conflicted(Conflict::Attempts { attempts: 3 }));
    // The files are still there: the same commit goes through from a fresh snapshot.
    let table = table.refresh().await?;
    assert_eq!(table.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 4 });
    assert_eq!(numbers_in(&table.refresh().await?).await?, [1, 101, 102, 103]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_fails_once_is_worth_a_retry_whatever_was_read() -> Result<()> {
    for nth in 1.. {
        let store = FaultyStore::new(Arc::new(InMemory::new()));
        store.fail_read_at(nth);
        let lake = lake_over(Arc::new(store.clone()), Controls::none());
        let run = async || -> Result<Vec<i64>> {
            crate::toy::append_until(&lake, 3).await?;
            numbers_in(&open(&lake).await?).await
        };
        if let Err(error) = run().await {
            // A stream's errors are the query engine's; what hid in them comes out again.
            let error = error.downcast::<Error>().or_else(|error| error.downcast::<DataFusionError>().map(Error::from))?;
            assert!(matches!(error.class(), FaultClass::Transient | FaultClass::Unknown), "read {nth}: {error:?}");
            assert_eq!(run().await?, expected(3), "read {nth}");
        }
        if store.counts().reads < nth {
            return Ok(());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mutating_call_may_lose_its_answer() -> Result<()> {
    for nth in 1.. {
        let store = FaultyStore::new(Arc::new(InMemory::new()));
        store.fail(Rule::mutating(), nth, ScriptedFault::AnswerLost);
        let before = store.counts().mutating;
        // Whatever fails is done again, as a run does; what landed is not done twice.
        for _ in 0..3 {
            if crate::toy::append_until(&lake_over(Arc::new(store.clone()), Controls::none()), 4).await.is_ok() {
                break;
            }
        }
        let table = open(&lake_over(store.inner(), Controls::none())).await?;
        assert_eq!(numbers_in(&table).await?, expected(4), "the answer to mutating call {nth} was lost");
        if store.counts().mutating - before < nth {
            return Ok(());
        }
    }
    Ok(())
}
