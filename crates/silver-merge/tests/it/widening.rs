//! A table that is written anew for wider columns: killed at any store operation, and with another run of it in between.

use std::sync::Arc;

use anyhow::{Result, ensure};
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{CommitOutcome, Rewrite};
use tributary_specs::{Column, DataType, Expectation, ExpectationAction, GrowthPolicy, MergePolicy, NullKeys, SilverSpec, TableName};
use tributary_testkit::oracle::Row;
use tributary_testkit::{Controls, FaultyStore, Frame, KillPoints, Rule, assert_frames_eq, crash_at, frame};

use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, sorted, source, spec, vectors};

/// A table of readings, its key, its value and its sequence among what grows wider; rows of large values are set aside.
fn readings(policy: MergePolicy, by_sequence: bool, marks: bool) -> SilverSpec {
    SilverSpec {
        sequence_by: by_sequence.then(|| "at".to_owned()).into_iter().collect(),
        schema_policy: GrowthPolicy::Widen,
        null_keys: NullKeys::Quarantine,
        expectations: vec![Expectation {
            name: "small".to_owned(),
            expression: "v < 100 or v is null".to_owned(),
            action: ExpectationAction::Quarantine,
        }],
        properties: vectors(marks),
        ..spec("readings", &["id"], policy)
    }
}

fn narrow() -> [Frame; 3] {
    [
        frame!(
            "id: integer | v: integer | at: integer | _op: string | _position: string
             1 | 10  | 1 | create | 000000/01
             2 | 20  | 1 | create | 000000/02
             3 | 30  | 1 | create | 000000/03
             4 | 500 | 1 | create | 000000/04
             7 | 70  | 1 | create | 000000/041"
        ),
        frame!(
            "id: integer | v: integer | at: integer | _op: string | _position: string
             2 | 21   | 5    | update | 000000/05
             3 | null | null | delete | 000000/06
             5 | 50   | 4    | create | 000000/07
             7 | 70   | 9    | update | 000000/071"
        ),
        frame!(
            "id: integer | v: integer | at: integer | _op: string | _position: string
             1 | 11 | 3 | update | 000000/08
             8 | 80 | 1 | create | 000000/081"
        ),
    ]
}

/// Wider columns, and one that is new.
fn wide() -> Frame {
    frame!(
        "id: long | v: decimal(12,2) | at: long | _op: string | _position: string | note: string
         5000000000 | 60.50  | 9000000000 | create | 000000/09 | new
         1          | 12.25  | 2          | update | 000000/10 | late
         2          | null   | 9000000001 | delete | 000000/11 | null
         6          | 600.00 | 1          | create | 000000/12 | set aside
         7          | 71.75  | 5          | update | 000000/13 | late"
    )
}

/// What only the memory of earlier events can place: an event before a cut, one before a delete, one within a run of equal rows.
fn late() -> Frame {
    frame!(
        "id: long | v: decimal(12,2) | at: long | _op: string | _position: string | note: string
         3 | 30.00 | 1          | create | 000000/03 | null
         2 | 22.00 | 8999999999 | update | 000000/14 | null
         7 | 70.00 | 7          | update | 000000/15 | null
         1 | 13.00 | 4          | update | 000000/16 | null"
    )
}

/// The table has consumed two batches; a third is there, and then a wider one.
async fn prepared(dataset: &SilverSpec) -> Result<InMemory> {
    let store = Arc::new(InMemory::new());
    let world = World::on(Arc::clone(&store) as _, Controls::none());
    for batch in narrow() {
        if world.lake.table(&source("readings")).await?.is_some_and(|table| table.version() == 2) {
            world.run(dataset).await?;
        }
        world.append(&source("readings"), &batch).await?;
    }
    widen_bronze(&world).await?;
    world.append(&source("readings"), &wide()).await?;
    Ok(store.fork())
}

async fn widen_bronze(world: &World) -> Result<()> {
    let bronze = world.table(&source("readings")).await?;
    let types = [("id", DataType::Long), ("v", DataType::Decimal { precision: 12, scale: 2 }), ("at", DataType::Long)];
    let of = |column: &Column| types.iter().find(|(name, _)| *name == column.name).map(|(_, data_type)| data_type.clone());
    let columns =
        bronze.columns().iter().map(|column| Column { data_type: of(column).unwrap_or(column.data_type.clone()), ..column.clone() });
    let outcome = bronze.rewrite(Rewrite { columns: columns.collect(), ..Rewrite::default() }).await?;
    ensure!(matches!(outcome, CommitOutcome::Committed { .. }), "{outcome:?}");
    Ok(())
}

/// What readers see: rows, those set aside, and whether the change feed comes to the table; then the same after late events.
#[derive(Debug, PartialEq)]
struct Seen {
    rows: Vec<Row>,
    aside: Vec<Row>,
    feed: Result<(), String>,
    after_late_events: Vec<Row>,
}

async fn see(store: Arc<dyn ObjectStore>, dataset: &SilverSpec) -> Result<Seen> {
    let world = World::on(store, Controls::none());
    let rows = sorted(&world.all(&dataset.table).await?);
    let aside = sorted(&world.rows(&TableName::new("quarantine", "readings"), &["rule", "row", "position"]).await?);
    let feed = feed_replays_to_the_table(&world, &dataset.table).await.map_err(|why| format!("{why:#}"));
    world.append(&source("readings"), &late()).await?;
    world.run(dataset).await?;
    Ok(Seen { rows, aside, feed, after_late_events: sorted(&world.all(&dataset.table).await?) })
}

fn datasets() -> impl Iterator<Item = (String, SilverSpec)> {
    let policies = [("current", MergePolicy::ScdType1), ("history", SCD2)];
    policies.into_iter().flat_map(|(word, policy)| {
        [(true, true), (true, false), (false, true), (false, false)].map(|(by_sequence, marks)| {
            let order = if by_sequence { "declared sequence" } else { "position" };
            let files = if marks { "rows marked" } else { "files rewritten" };
            (format!("{word} by {order}, {files}"), readings(policy.clone(), by_sequence, marks))
        })
    })
}

#[test]
fn a_kill_anywhere_in_a_run_that_widens_leaves_what_there_would_have_been() {
    block_on(async {
        // three of them: in both orders, with rows marked and with files rewritten, of both policies
        for (what, dataset) in datasets().step_by(3) {
            let prepared = prepared(&dataset).await?;
            let report = crash_at(
                KillPoints::All,
                KillPoints::Sampled { points: 15, seed: 1 },
                async || Arc::new(prepared.fork()) as Arc<dyn ObjectStore>,
                async |store| World::on(store, Controls::none()).run(&dataset).await.map(|_| ()),
                async |store| see(store, &dataset).await.map_err(|why| format!("{why:#}")),
            )
            .await;
            ensure!(report.holds(), "{what}: {}\n{}", report.differences.len(), report.differences.join("\n\n"));
            ensure!(report.mutating_calls > 5, "{what}: {report}");
            println!("widening, {what}: {report}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_a_widened_table_holds_is_what_one_that_was_always_wide_holds() {
    block_on(async {
        for (what, dataset) in datasets() {
            let widened = World::on(Arc::new(prepared(&dataset).await?), Controls::none());
            widened.run(&dataset).await?;
            let world = World::new();
            for batch in narrow() {
                world.append(&source("readings"), &batch).await?;
            }
            widen_bronze(&world).await?;
            world.append(&source("readings"), &wide()).await?;
            world.run(&dataset).await?;
            let more: &[&str] = if dataset.policy == SCD2 { &["__START_AT", "__END_AT"] } else { &[] };
            let columns = [&["id", "v", "at", "note"], more].concat();
            assert_frames_eq!(widened.rows(&dataset.table, &columns).await?, world.rows(&dataset.table, &columns).await?);
            for world in [&widened, &world] {
                world.append(&source("readings"), &late()).await?;
                world.run(&dataset).await?;
            }
            let (widened, always) = (widened.rows(&dataset.table, &columns).await?, world.rows(&dataset.table, &columns).await?);
            ensure!(sorted(&widened) == sorted(&always), "{what}: {widened:?}\n{always:?}");
        }
        Ok(())
    })
    .unwrap();
}

/// Another process does the whole run, on a thread and a runtime of its own.
fn rival(store: Arc<dyn ObjectStore>, dataset: SilverSpec) {
    let work = move || block_on(async { World::on(store, Controls::none()).run(&dataset).await.map(|_| ()).expect("the rival's run") });
    std::thread::spawn(work).join().expect("the rival's thread");
}

#[test]
fn another_run_before_any_commit_of_one_that_widens_changes_nothing() {
    block_on(async {
        let mut met = 0;
        for (what, dataset) in datasets() {
            let prepared = prepared(&dataset).await?;
            let undisturbed = Arc::new(prepared.fork());
            World::on(Arc::clone(&undisturbed) as _, Controls::none()).run(&dataset).await?;
            let expected = see(undisturbed, &dataset).await?;
            for schema in ["silver", "_state", "quarantine"] {
                for nth in 1..=3 {
                    let faulty = FaultyStore::new(Arc::new(prepared.fork()));
                    let (inner, theirs) = (faulty.inner(), dataset.clone());
                    let came = Arc::new(std::sync::atomic::AtomicBool::new(false));
                    let comes = Arc::clone(&came);
                    faulty.before(Rule::delta_commit().on(format!("/{schema}/readings/_delta_log")), nth, move |_| async move {
                        comes.store(true, std::sync::atomic::Ordering::Relaxed);
                        rival(inner, theirs);
                    });
                    World::on(Arc::new(faulty.clone()), Controls::none()).run(&dataset).await?;
                    met += usize::from(came.load(std::sync::atomic::Ordering::Relaxed));
                    let found = see(faulty.inner(), &dataset).await?;
                    ensure!(found == expected, "{what}, before commit {nth} of {schema}:\n{found:?}\n{expected:?}");
                }
            }
        }
        ensure!(met > 20, "only {met} rivals came");
        Ok(())
    })
    .unwrap();
}
