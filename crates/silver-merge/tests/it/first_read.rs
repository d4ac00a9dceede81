//! What a stream is read for the first time is the table as it is; from then on it is what the commits bring.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::{Commit, CommitOutcome, Operation, Reads, WriterOptions};
use tributary_silver_merge::{Error, Options};
use tributary_specs::{Column, DataType, MergePolicy, SilverSpec, Status, StreamRead};
use tributary_testkit::oracle::Row;
use tributary_testkit::{Control, Controls, Frame, Law, Tried};

use crate::world::{SCD2, World, block_on, json_frame, sorted, source, spec, target};

/// The live rows of the source: what stands at each id.
type There = BTreeMap<i64, i64>;

fn frame_of(rows: impl IntoIterator<Item = (i64, i64)>) -> Frame {
    let columns = [Column::new("id", DataType::Long), Column::new("at", DataType::Long)];
    json_frame(&columns, &rows.into_iter().map(|(id, at)| json!({ "id": id, "at": at })).collect::<Vec<_>>())
}

/// One commit that takes every row away and brings these, as statements of any engine may.
async fn rewrite(world: &World, there: &There) -> Result<()> {
    let table = world.table(&source("a")).await?;
    let mut writer = table.writer(WriterOptions::default())?;
    if !there.is_empty() {
        writer.write(frame_of(there.clone()).batch()).await?;
    }
    let commit = Commit {
        operation: Operation::Overwrite,
        adds: writer.finish().await?,
        removes: table.files().await?,
        reads: Reads::WholeTable,
        ..Commit::default()
    };
    match table.commit(commit).await? {
        CommitOutcome::Committed { .. } => Ok(()),
        other => anyhow::bail!("{other:?}"),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add(i64),
    Update,
    Delete,
    Run { most: Option<u64> },
    RefreshInFull,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1..3_i64).prop_map(Step::Add),
        2 => Just(Step::Update),
        1 => Just(Step::Delete),
        2 => prop::option::of(1..3_u64).prop_map(|most| Step::Run { most }),
        1 => Just(Step::RefreshInFull),
    ];
    vec(step, 2..12)
}

/// What the stream has brought, as it should.
#[derive(Debug, Default)]
struct Model {
    next: i64,
    there: There,
    /// Rows added by commits that the stream has not seen, and whether other commits came.
    new: Vec<(i64, i64)>,
    changed: bool,
    brought: Option<Vec<(i64, i64)>>,
}

impl Model {
    fn begin(&mut self) {
        self.brought = Some(self.there.clone().into_iter().collect());
        (self.new, self.changed) = (Vec::new(), false);
    }

    fn rows(&self) -> Vec<Row> {
        sorted(&frame_of(self.brought.clone().unwrap_or_default()))
    }
}

async fn play(steps: &[Step], skips: bool, controls: Controls, tried: &mut Tried) -> Result<()> {
    let world = World::with(controls);
    let stream = if skips { StreamRead::SkipChangeCommits } else { StreamRead::Auto };
    let dataset = SilverSpec { stream, ..spec("a", &[], MergePolicy::Append) };
    let mut model = Model::default();
    let (first, last) = ([Step::Add(2)], [Step::Run { most: None }]);
    for (at, step) in first.iter().chain(steps).chain(&last).enumerate() {
        match step {
            Step::Add(count) => {
                let rows: Vec<_> = (model.next..model.next + count).map(|id| (id, at as i64)).collect();
                world.append(&source("a"), &frame_of(rows.clone())).await?;
                model.next += count;
                model.there.extend(rows.clone());
                model.new.extend(rows);
            }
            Step::Update | Step::Delete => {
                let Some(mut row) = model.there.first_entry() else { continue };
                match step {
                    Step::Update => *row.get_mut() = at as i64,
                    _ => drop(row.remove()),
                }
                rewrite(&world, &model.there).await?;
                model.changed = true;
            }
            Step::Run { most } => {
                let options = Options { source_versions_max: *most, ..Options::default() };
                let run = tributary_silver_merge::run(&world.lake, &dataset, &options).await;
                match &mut model.brought {
                    None => {
                        run?;
                        // Of a table without rows nothing is read, so that the next reading is the first.
                        if !model.there.is_empty() {
                            tried.add("changed before the first read", usize::from(model.changed));
                            model.begin();
                        }
                    }
                    Some(_) if model.changed && !skips => {
                        let stopped = matches!(run, Err(Error::SourceChanged { .. }));
                        ensure!(stopped, "the stream stops: {run:?}");
                        tried.add("stops", 1);
                        // What came before that commit may be there or not: it begins anew.
                        refresh(&world, &dataset).await?;
                        model.begin();
                    }
                    Some(brought) => {
                        run?;
                        brought.append(&mut model.new);
                        tried.add("passed over", usize::from(model.changed));
                        model.changed = false;
                    }
                }
            }
            Step::RefreshInFull if model.brought.is_some() => {
                refresh(&world, &dataset).await?;
                model.begin();
                tried.add("full refreshes", 1);
            }
            Step::RefreshInFull => continue,
        }
        if model.brought.is_some() && !matches!(step, Step::Add(_) | Step::Update | Step::Delete) {
            let (found, expected) = (sorted(&world.rows(&target("a"), &["id", "at"]).await?), model.rows());
            ensure!(found == expected, "after {step:?}: found {found:?}, expected {expected:?}");
        }
    }
    Ok(())
}

async fn refresh(world: &World, dataset: &SilverSpec) -> Result<()> {
    let options = Options { full_refresh: true, accept_shorter_history: true, ..Options::default() };
    tributary_silver_merge::run(&world.lake, dataset, &options).await?;
    Ok(())
}

#[test]
fn law_a_first_read_is_the_table_as_it_is_and_later_ones_are_what_commits_add() {
    let tried =
        Law::new("first reads of a stream").within(Duration::from_secs(6)).holds(&(steps(), any::<bool>()), |(steps, skips), tried| {
            block_on(play(&steps, skips, Controls::none(), tried)).map_err(|why| TestCaseError::fail(format!("{why:#}")))
        });
    for what in ["changed before the first read", "stops", "passed over", "full refreshes"] {
        assert!(tried.count(what) > 2, "{what}: {tried}");
    }
}

#[test]
fn law_of_first_reads_fails_when_they_come_in_parts() {
    let law = Law::new("first reads in parts").within(Duration::from_secs(120));
    let broken = Controls::none().with(Control::FirstReadInParts);
    law.is_broken(&(steps(), any::<bool>()), |(steps, skips), tried| {
        block_on(play(&steps, skips, broken, tried)).map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
}

/// A table with keys whose rows have hidden columns, fed by `bronze.a`.
fn people(policy: MergePolicy) -> SilverSpec {
    let columns = tributary_specs::ColumnSelection::Except(vec!["seq".to_owned()]);
    SilverSpec { sequence_by: vec!["seq".to_owned()], columns, ..spec("a", &["id"], policy) }
}

async fn grow(world: &World, ids: &[i64], seq: i64, policy: &MergePolicy) -> Result<()> {
    let columns = [Column::new("id", DataType::Long), Column::new("name", DataType::String), Column::new("seq", DataType::Long)];
    let rows: Vec<_> = ids.iter().map(|id| json!({ "id": id, "name": format!("{id} at {seq}"), "seq": seq })).collect();
    world.append(&source("a"), &json_frame(&columns, &rows)).await?;
    world.run(&people(policy.clone())).await?;
    Ok(())
}

/// Rows of `silver.a`, added to a table.
fn copy(stream: StreamRead, select: Option<&str>) -> SilverSpec {
    SilverSpec { sources: vec![target("a")], select: select.map(str::to_owned), stream, ..spec("copy", &[], MergePolicy::Append) }
}

async fn names(world: &World, name: &str) -> Result<Vec<Row>> {
    Ok(sorted(&world.rows(&target(name), &["id", "name"]).await?))
}

#[test]
fn a_plain_stream_of_a_keyed_table_is_its_rows_at_first_and_stops_where_they_change() {
    for policy in [MergePolicy::ScdType1, SCD2] {
        for (most, stream) in [(None, StreamRead::Auto), (Some(1), StreamRead::Auto), (Some(1), StreamRead::SkipChangeCommits)] {
            block_on(async {
                let world = World::new();
                for seq in 1..4 {
                    grow(&world, &[1, 1 + seq], seq, &policy).await?;
                }
                let dataset = copy(stream, None);
                let options = Options { source_versions_max: most, ..Options::default() };
                tributary_silver_merge::run(&world.lake, &dataset, &options).await?;
                ensure!(names(&world, "copy").await? == names(&world, "a").await?, "as it is");
                grow(&world, &[9], 4, &policy).await?;
                ensure!(world.run(&dataset).await?.rows_in == 1, "a row that is added");
                grow(&world, &[1], 5, &policy).await?;
                let run = world.run(&dataset).await;
                match stream {
                    StreamRead::Auto => {
                        let error = run.expect_err("a row changed");
                        ensure!(matches!(error, Error::SourceChanged { .. }), "{error:?}");
                        ensure!(error.to_string().contains("readChangeFeed"), "what to do: {error}");
                    }
                    _ => ensure!(run?.rows_in == 0, "passed over"),
                }
                refresh(&world, &dataset).await?;
                ensure!(names(&world, "copy").await? == names(&world, "a").await?, "as it is once more");
                Ok::<_, anyhow::Error>(())
            })
            .unwrap();
        }
    }
}

/// What the change feed says of a range of versions.
async fn changes(world: &World, from: u64) -> Result<Vec<Row>> {
    let table = world.table(&target("a")).await?;
    if from > table.version() {
        return Ok(Vec::new());
    }
    let batches: Vec<RecordBatch> = table.changes(from, table.version()).await?.try_collect().await?;
    let frame = Frame::new(Arc::clone(&table.change_schema()), &batches);
    Ok(sorted(&frame.select(&["id", "name", "_change_type", "_commit_version"])))
}

#[test]
fn a_change_feed_without_a_version_to_start_from_is_the_rows_as_inserts_and_then_every_change() {
    const SELECT: &str = "SELECT *, _change_type AS kind, _commit_version AS version FROM silver.a";
    for most in [None, Some(1)] {
        block_on(async {
            let world = World::new();
            for seq in 1..4 {
                grow(&world, &[1, 1 + seq], seq, &MergePolicy::ScdType1).await?;
            }
            let dataset = copy(StreamRead::ChangeFeed, Some(SELECT));
            let logged = async || Ok::<_, anyhow::Error>(sorted(&world.rows(&target("copy"), &["id", "name", "kind", "version"]).await?));
            let options = Options { source_versions_max: most, ..Options::default() };
            let run = async || tributary_silver_merge::run(&world.lake, &dataset, &options).await;
            let as_inserts = async |version: u64| {
                let rows = names(&world, "a").await?.into_iter();
                let told = rows.map(|row| row.into_iter().chain(["insert".into(), (version as i64).into()]).collect::<Row>());
                Ok::<_, anyhow::Error>(told.collect::<Vec<_>>())
            };
            run().await?;
            let begun = world.version(&target("a")).await?;
            let mut expected = as_inserts(begun).await?;
            ensure!(logged().await? == expected, "the rows that are there");
            for seq in 4..6 {
                grow(&world, &[1, 9], seq, &MergePolicy::ScdType1).await?;
            }
            run().await?;
            let later = changes(&world, begun + 1).await?;
            ensure!(later.len() == 7, "an insert, and three updates with the rows before them: {later:?}");
            expected.extend(later);
            expected.sort();
            ensure!(logged().await? == expected, "and then every change");
            ensure!(run().await?.status == Status::NothingNew);
            refresh(&world, &dataset).await?;
            ensure!(logged().await? == as_inserts(world.version(&target("a")).await?).await?, "a full refresh begins with the rows again");

            let from_the_first = copy(StreamRead::Changes { from: 0, to: None }, Some(SELECT));
            refresh(&world, &from_the_first).await?;
            ensure!(logged().await? == changes(&world, 0).await?, "a version to start from is one");
            Ok::<_, anyhow::Error>(())
        })
        .unwrap();
    }
}

#[test]
fn a_stream_of_a_keyed_table_into_keys_still_goes_through_its_change_feed() {
    block_on(async {
        let world = World::new();
        for seq in 1..4 {
            grow(&world, &[1, 1 + seq], seq, &MergePolicy::ScdType1).await?;
        }
        let sequence_by = vec!["_commit_version".to_owned()];
        let history = SilverSpec { sources: vec![target("a")], sequence_by, ..spec("history", &["id"], SCD2) };
        world.run(&history).await?;
        let versions = names(&world, "history").await?.iter().filter(|row| row[0] == 1.into()).count();
        ensure!(versions == 3, "each state of the row that changed");
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

/// A star stands for the columns of people, however the table is read and whatever stands beside it.
#[test]
fn a_star_leaves_hidden_columns_out() {
    let feed = StreamRead::Changes { from: 0, to: None };
    let cases = [
        (feed, "SELECT *, _change_type AS kind FROM silver.a", "id name kind"),
        (feed, "SELECT a.*, _commit_version AS version FROM silver.a AS a WHERE id > 0", "id name version"),
        (StreamRead::ChangeFeed, "SELECT * FROM silver.a WHERE _change_type = 'insert'", "id name"),
        (StreamRead::Auto, "SELECT *, id + 1 AS more FROM silver.a", "id name more"),
        (StreamRead::SkipChangeCommits, "SELECT * EXCEPT (name) FROM silver.a", "id"),
    ];
    for policy in [MergePolicy::ScdType1, SCD2] {
        for (stream, select, expected) in cases {
            block_on(async {
                let world = World::new();
                grow(&world, &[1, 2], 1, &policy).await?;
                let hidden = world.table(&target("a")).await?.columns().iter().filter(|column| column.name.starts_with("__")).count();
                ensure!(hidden > 0, "there is something to hide");
                world.run(&copy(stream, Some(select))).await?;
                let table = world.table(&target("copy")).await?;
                let found: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
                ensure!(found.join(" ") == expected, "{select}: {found:?}");
                Ok::<_, anyhow::Error>(())
            })
            .unwrap();
        }
    }
    block_on(async {
        let world = World::new();
        grow(&world, &[1, 2], 1, &MergePolicy::ScdType1).await?;
        for select in [
            "SELECT id, __sequence FROM silver.a",
            "SELECT id * 2 AS twice, a.__SEQUENCE FROM silver.a",
            "SELECT *, id AS __sequence FROM (SELECT id FROM silver.a) AS a",
        ] {
            let error = world.run(&copy(StreamRead::Auto, Some(select))).await;
            let error = error.expect_err("it was named").to_string();
            ensure!(error.contains("column `__sequence` begins with two underscores"), "{select}: {error}");
        }
        let joined = SilverSpec {
            sources: vec![source("a"), target("a")],
            select: Some("SELECT o.id AS other, p.* FROM bronze.a AS o JOIN silver.a AS p ON o.id = p.id".to_owned()),
            ..spec("joined", &[], MergePolicy::Append)
        };
        world.run(&joined).await?;
        let table = world.table(&target("joined")).await?;
        ensure!(table.columns().iter().map(|column| column.name.as_str()).eq(["other", "id", "name"]), "{:?}", table.columns());
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}
