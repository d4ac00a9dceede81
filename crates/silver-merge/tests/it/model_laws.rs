//! Any delivery of any history, cut anywhere, gives what the oracle says of all its events.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tributary_specs::{Column, ColumnSelection, Deletes, IgnoreNullUpdates, MergePolicy, NullKeys, ReplicaIdentity, SilverSpec, TableName};
use tributary_testkit::oracle::{Event, IgnoreNulls, Kind, Model, Row};
use tributary_testkit::strategy::{ChangeKind, DeliveryPlan, History, SourceTable, bronze_frame, delivery, shuffle, source_history};
use tributary_testkit::{Controls, Frame, Law, Tried, Value};

use crate::world::{SCD2, World, block_on, feed, feed_replays_to_the_table, sorted, source, spec, target, vectors};

const BUDGET: Duration = Duration::from_secs(12);

/// What a case declares beyond its policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By source position.
    Position,
    /// By the column the source's clock stamps.
    Stamp,
}

impl Order {
    fn column(self) -> Option<&'static str> {
        match self {
            Self::Position => None,
            Self::Stamp => Some("updated_at"),
        }
    }
}

/// A delivered history and the dataset that takes it.
#[derive(Debug, Clone)]
pub struct Delivered {
    pub history: History,
    pub plan: DeliveryPlan,
    pub order: Order,
    /// Bytes of a slice of keys; with few of them a batch goes in many slices.
    pub memory_limit: usize,
    /// Whether rows that go are marked where they stand, or left out of new files.
    pub vectors: bool,
    /// Whether the table has a change feed; without one, of most rows only a part is read.
    pub feed: bool,
}

impl Delivered {
    pub fn dataset(&self, policy: MergePolicy) -> SilverSpec {
        let keys = self.history.table.key_names();
        SilverSpec {
            properties: vectors(self.vectors).into_iter().chain(feed(self.feed)).collect(),
            sequence_by: self.order.column().map(str::to_owned).into_iter().collect(),
            ..spec(&self.history.table.name, &keys.iter().map(String::as_str).collect::<Vec<_>>(), policy)
        }
    }

    pub fn model(&self) -> Model {
        Model::new(&self.history.table.key_names(), &self.history.table.column_names())
    }

    pub fn batches(&self) -> Vec<Frame> {
        let batches = self.plan.batches(&self.history.partitions());
        let frame = |batch: &Vec<usize>| bronze_frame(&self.history.table, batch.iter().map(|at| &self.history.changes[*at]), 0);
        batches.iter().map(frame).collect()
    }

    pub fn events(&self) -> Vec<Event> {
        self.history.changes.iter().map(|change| change.event(&self.history.table, self.order.column())).collect()
    }

    /// The events in the order and as often as they are delivered.
    pub fn stream(&self) -> Vec<Event> {
        let events = self.events();
        self.plan.batches(&self.history.partitions()).concat().into_iter().map(|at| events[at].clone()).collect()
    }
}

pub fn tables() -> impl Strategy<Value = SourceTable> {
    (any::<bool>(), 1..4i32, any::<bool>()).prop_map(|(full, partitions, clock_steps_back)| {
        let table = if full { SourceTable::customers() } else { SourceTable::orders() };
        SourceTable { partitions, clock_steps_back, ..table }
    })
}

pub fn delivered(
    tables: impl Strategy<Value = SourceTable>,
    plans: impl Strategy<Value = DeliveryPlan>,
) -> impl Strategy<Value = Delivered> {
    let order = prop_oneof![Just(Order::Position), Just(Order::Stamp)];
    let history = tables.prop_flat_map(|table| source_history(table, 25));
    let memory_limit = prop_oneof![Just(64 << 20), Just(2048usize)];
    let table = (any::<bool>(), any::<bool>());
    (history, plans, order, memory_limit, table).prop_map(|(history, plan, order, memory_limit, (vectors, feed))| Delivered {
        history,
        plan,
        order,
        memory_limit,
        vectors,
        feed,
    })
}

fn plans() -> BoxedStrategy<DeliveryPlan> {
    prop_oneof![2 => delivery(), 1 => shuffle()].boxed()
}

/// Delivers batch by batch, running silver after each, and compares the end with what the oracle says.
pub async fn compare(controls: Controls, dataset: &SilverSpec, case: &Delivered, columns: &[String], mut expected: Vec<Row>) -> Result<()> {
    let world = World::with(controls);
    for batch in case.batches() {
        world.append(&dataset.sources[0], &batch).await?;
        let report = world.run_in_slices(dataset, case.memory_limit).await?;
        let ignored: u64 = report.rows_ignored.values().sum();
        ensure!(report.rows_in == report.rows_out + report.rows_quarantined + ignored, "the counts do not add up: {report:?}");
    }
    let found = sorted(&world.rows(&dataset.table, &columns.iter().map(String::as_str).collect::<Vec<_>>()).await?);
    expected.sort();
    ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
    let version = world.version(&dataset.table).await?;
    world.run(dataset).await?;
    ensure!(world.version(&dataset.table).await? == version, "a run with nothing new writes no version");
    feed_replays_to_the_table(&world, &dataset.table).await
}

pub fn columns(model: &Model, more: &[&str]) -> Vec<String> {
    model.columns.iter().cloned().chain(more.iter().map(|name| (*name).to_owned())).collect()
}

fn count(case: &Delivered, batches: &[Frame], tried: &mut Tried) {
    tried.add("batches", batches.len());
    tried.add("changes delivered", batches.iter().map(Frame::len).sum());
    tried.add("changes made", case.history.changes.len());
    tried.add("cases with deletion vectors", usize::from(case.vectors));
    tried.add("cases with a change feed", usize::from(case.feed));
}

fn as_case(outcome: Result<()>) -> Result<(), TestCaseError> {
    outcome.map_err(|why| TestCaseError::fail(format!("{why:#}")))
}

#[test]
fn law_current_rows_are_those_of_all_events() {
    Law::new("S1, S2, S4, S5, S6: current rows of any delivery").within(BUDGET).holds(&delivered(tables(), plans()), |case, tried| {
        let batches = case.batches();
        count(&case, &batches, tried);
        let model = case.model();
        let expected = model.scd1(&case.events());
        as_case(block_on(compare(Controls::none(), &case.dataset(MergePolicy::ScdType1), &case, &columns(&model, &[]), expected)))
    });
}

/// Histories whose before-images are whole, stamped by a clock that no two changes of a row share; some updates are lost on the way.
pub fn with_before_images(plans: impl Strategy<Value = DeliveryPlan>) -> impl Strategy<Value = Delivered> {
    let tables = (1..4i32, any::<bool>(), proptest::bool::weighted(0.2)).prop_map(|(partitions, key_changes, truncates)| {
        let clock = SourceTable { clock_counts: true, clock_steps_back: false, ..SourceTable::customers() };
        SourceTable { partitions, key_changes, truncates, ..clock }
    });
    let history = tables.prop_flat_map(|table| source_history(table, 60));
    let lost = vec(proptest::bool::weighted(0.15), 1..20);
    let table = (any::<bool>(), proptest::bool::weighted(0.8));
    (history, lost, plans, table).prop_map(|(mut history, lost, plan, (vectors, feed))| {
        let mut is_lost = lost.into_iter().cycle();
        history.changes.retain(|change| change.kind != ChangeKind::Update || is_lost.next() == Some(false));
        Delivered { history, plan, order: Order::Stamp, memory_limit: 64 << 20, vectors, feed }
    })
}

pub fn with_unique_sequence(mut dataset: SilverSpec) -> SilverSpec {
    dataset.properties.insert(tributary_specs::SEQUENCE_UNIQUE.to_owned(), "true".to_owned());
    dataset
}

#[test]
fn law_the_feed_is_the_difference_of_versions_also_where_events_say_what_rows_were() {
    Law::new("before-images").within(BUDGET).holds(&with_before_images(plans()), |case, tried| {
        let batches = case.batches();
        count(&case, &batches, tried);
        let model = case.model();
        let expected = model.scd1(&case.events());
        let dataset = with_unique_sequence(case.dataset(MergePolicy::ScdType1));
        as_case(block_on(compare(Controls::none(), &dataset, &case, &columns(&model, &[]), expected)))
    });
}

#[test]
fn law_a_good_clock_and_the_position_both_end_where_the_source_does() {
    let tables = tables().prop_map(|table| SourceTable { clock_steps_back: false, ..table });
    Law::new("current rows equal the source").within(BUDGET).holds(&delivered(tables, plans()), |case, tried| {
        let batches = case.batches();
        count(&case, &batches, tried);
        let expected = case.history.final_rows();
        as_case(block_on(compare(Controls::none(), &case.dataset(MergePolicy::ScdType1), &case, &columns(&case.model(), &[]), expected)))
    });
}

#[test]
fn law_history_is_that_of_all_events() {
    Law::new("S1, S3: history of any delivery").within(BUDGET).holds(&delivered(tables(), plans()), |case, tried| {
        let batches = case.batches();
        count(&case, &batches, tried);
        let model = case.model();
        let expected = model.scd2(&case.events());
        as_case(block_on(compare(Controls::none(), &case.dataset(SCD2), &case, &columns(&model, &["__START_AT", "__END_AT"]), expected)))
    });
}

#[test]
fn law_history_of_some_columns_is_that_of_all_events() {
    Law::new("history of tracked columns of any delivery").within(BUDGET).holds(&delivered(tables(), plans()), |case, tried| {
        let batches = case.batches();
        count(&case, &batches, tried);
        let mut model = case.model();
        let untracked =
            model.columns.iter().filter(|column| ["note", "vip", "updated_at"].contains(&column.as_str())).cloned().collect::<Vec<_>>();
        model.tracked.retain(|column| !untracked.contains(column));
        let policy = MergePolicy::ScdType2 { track_history: ColumnSelection::Except(untracked) };
        let expected = model.scd2(&case.events());
        as_case(block_on(compare(Controls::none(), &case.dataset(policy), &case, &columns(&model, &["__START_AT", "__END_AT"]), expected)))
    });
}

#[test]
fn law_rows_marked_as_deleted_are_those_of_all_events() {
    Law::new("soft deletes of any delivery").within(BUDGET).holds(&delivered(tables(), plans()), |case, tried| {
        let batches = case.batches();
        count(&case, &batches, tried);
        let mut dataset = case.dataset(MergePolicy::ScdType1);
        dataset.deletes.soft_delete_column = Some("_deleted".to_owned());
        let model = case.model();
        let expected = model.soft_deleted(&case.events());
        as_case(block_on(compare(Controls::none(), &dataset, &case, &columns(&model, &["_deleted"]), expected)))
    });
}

#[test]
fn law_every_policy_is_a_function_of_all_events() {
    let policies = proptest::sample::select(vec![
        MergePolicy::Append,
        MergePolicy::InsertOnly { exact: true },
        MergePolicy::LastWriterWins,
        MergePolicy::MonotonicAdvance { columns: vec!["updated_at".to_owned()] },
    ]);
    // What a policy does about values the source did not send is the law of current rows; here every value is sent.
    let tables = tables().prop_map(|table| SourceTable { identity: ReplicaIdentity::Full, ..table });
    Law::new("merge policies of any delivery").within(BUDGET).holds(&(delivered(tables, plans()), policies), |(case, policy), tried| {
        let batches = case.batches();
        count(&case, &batches, tried);
        let model = case.model();
        let events = case.events();
        let expected = match &policy {
            MergePolicy::Append => model.append(&case.stream()),
            MergePolicy::InsertOnly { .. } => model.insert_only(&events),
            MergePolicy::LastWriterWins => model.last_writer_wins(&events),
            MergePolicy::MonotonicAdvance { columns } => model.monotonic_advance(&events, columns),
            MergePolicy::ScdType1 | MergePolicy::ScdType2 { .. } => unreachable!("laws of their own"),
        };
        let mut dataset = case.dataset(policy.clone());
        if policy == MergePolicy::Append {
            dataset.keys = Vec::new();
            dataset.sequence_by = Vec::new();
        }
        as_case(block_on(compare(Controls::none(), &dataset, &case, &columns(&model, &[]), expected)))
    });
}

#[test]
fn law_a_dataset_that_reads_the_change_feed_of_another_follows_it() {
    Law::new("a dataset of a dataset").within(BUDGET).holds(&(delivered(tables(), plans()), 1..3usize), |(case, every), tried| {
        let batches = case.batches();
        count(&case, &batches, tried);
        let first = Delivered { feed: true, ..case.clone() }.dataset(MergePolicy::ScdType1);
        let second = SilverSpec { table: target("copy"), sources: vec![first.table.clone()], sequence_by: Vec::new(), ..first.clone() };
        let names = columns(&case.model(), &[]);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        as_case(block_on(async {
            let world = World::new();
            for (at, batch) in batches.iter().enumerate() {
                world.append(&first.sources[0], batch).await?;
                world.run(&first).await?;
                // The second now and then sees several versions of the first at once.
                if at % every == 0 || at + 1 == batches.len() {
                    world.run(&second).await?;
                    let original = world.rows(&first.table, &names).await?;
                    // Where the first never changed there is nothing to make a table of.
                    let copy = if world.count(&second.table).await?.is_some() {
                        world.rows(&second.table, &names).await?.rows()
                    } else {
                        Vec::new()
                    };
                    let mut copy = copy;
                    copy.sort();
                    ensure!(sorted(&original) == copy, "the first is\n{original}\nthe second\n{copy:?}");
                }
            }
            Ok(())
        }))
    });
}

/// Key, sequence, kind (`u`, `d`, `t`), two values.
type DeclaredRow = (Option<i64>, Option<i64>, char, Option<u8>, Option<u8>);

/// Events of a declared feed without positions: any set of them is legal, ties and null values included. Rows without a key or
/// a sequence go to quarantine.
#[derive(Debug, Clone)]
struct DeclaredFeed {
    rows: Vec<DeclaredRow>,
    batches: Vec<usize>,
    ignore_nulls: bool,
    track_name: bool,
    truncates: bool,
}

fn declared_feeds() -> impl Strategy<Value = DeclaredFeed> {
    let value = || proptest::option::of(0..3u8);
    let kind = prop_oneof![6 => Just('u'), 2 => Just('d'), 1 => Just('t')];
    let mostly = |values: std::ops::Range<i64>| proptest::option::weighted(0.95, values);
    let rows = vec((mostly(1..4), mostly(1..9), kind, value(), value()), 1..16);
    (rows, vec(1..5usize, 1..4), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(rows, batches, ignore_nulls, track_name, truncates)| DeclaredFeed { rows, batches, ignore_nulls, track_name, truncates },
    )
}

impl DeclaredFeed {
    fn columns() -> Vec<Column> {
        let text = |name: &str| Column::new(name, tributary_specs::DataType::String);
        let whole = |name: &str| Column::new(name, tributary_specs::DataType::Long);
        vec![
            whole("id"),
            whole("seq"),
            text("op"),
            text("name"),
            "struct<x:string,y:string>".parse().map(|place| Column::new("place", place)).expect("a type"),
        ]
    }

    fn kept(&self) -> Vec<DeclaredRow> {
        self.rows.iter().filter(|row| row.2 != 't' || self.truncates).copied().collect()
    }

    fn frames(&self) -> Vec<Frame> {
        let text = |value: Option<u8>| value.map(|n| format!("v{n}"));
        let rows: Vec<serde_json::Value> = self
            .kept()
            .iter()
            .map(|(id, seq, op, name, y)| {
                let id = id.filter(|_| *op != 't');
                // A struct of nulls, a null struct, and a struct with one field of two.
                let n = seq.unwrap_or_default();
                let place = match (n % 3, y) {
                    (0, None) => serde_json::Value::Null,
                    _ => json!({ "x": if n % 2 == 0 { Some(format!("x{n}")) } else { None }, "y": text(*y) }),
                };
                json!({ "id": id, "seq": seq, "op": op.to_string(), "name": text(*name), "place": place })
            })
            .collect();
        let mut rest = rows.as_slice();
        let mut frames = Vec::new();
        for size in self.batches.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (batch, after) = rest.split_at((*size).min(rest.len()));
            frames.push(Frame::from_json(&Self::columns(), batch));
            rest = after;
        }
        frames
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for frame in self.frames() {
            for row in frame.rows() {
                let Value::Text(op) = &row[2] else { panic!("an op") };
                let kind = match op.as_str() {
                    "d" => Kind::Delete,
                    "t" => Kind::Truncate,
                    _ => Kind::Upsert,
                };
                let values =
                    ["id", "name", "place"].map(str::to_owned).into_iter().zip([row[0].clone(), row[3].clone(), row[4].clone()]).collect();
                let key = if kind == Kind::Truncate { Vec::new() } else { vec![row[0].clone()] };
                events.push(Event { kind, ..Event::upsert(key, row[1].clone(), values) });
            }
        }
        events
    }

    /// The events that are taken, and how many rows are not.
    fn judged(&self) -> (Vec<Event>, u64) {
        let model = self.model();
        let (taken, refused): (Vec<Event>, Vec<Event>) =
            self.events().into_iter().partition(|event| model.check(std::slice::from_ref(event)).is_ok());
        (taken, refused.len() as u64)
    }

    fn model(&self) -> Model {
        let mut model = Model::new(&["id"], &["id", "name", "place"]);
        model.ignore_nulls = if self.ignore_nulls { IgnoreNulls::All } else { IgnoreNulls::Off };
        if self.track_name {
            model.tracked = vec!["name".to_owned()];
        }
        model
    }

    fn dataset(&self, scd2: bool) -> SilverSpec {
        let tracked = if self.track_name { ColumnSelection::Only(vec!["name".to_owned()]) } else { ColumnSelection::All };
        let policy = if scd2 { MergePolicy::ScdType2 { track_history: tracked } } else { MergePolicy::ScdType1 };
        SilverSpec {
            sequence_by: vec!["seq".to_owned()],
            deletes: Deletes {
                apply_as_delete_when: Some("op = 'd'".to_owned()),
                apply_as_truncate_when: self.truncates.then(|| "op = 't'".to_owned()),
                ..Deletes::default()
            },
            columns: ColumnSelection::Except(vec!["op".to_owned(), "seq".to_owned()]),
            ignore_null_updates: if self.ignore_nulls { IgnoreNullUpdates::All } else { IgnoreNullUpdates::Off },
            null_keys: NullKeys::Quarantine,
            ..spec("declared", &["id"], policy)
        }
    }

    /// A null struct equals a struct of nulls, where nulls are not written.
    fn normal(&self, mut rows: Vec<Row>) -> Vec<Row> {
        let all_null = |value: &Value| matches!(value, Value::Struct(fields) if fields.iter().all(|(_, value)| value.is_null()));
        if self.ignore_nulls {
            rows.iter_mut().flatten().filter(|value| all_null(value)).for_each(|value| *value = Value::Null);
        }
        // A leaf nobody wrote is a null field of a struct that is there.
        for value in rows.iter_mut().flatten() {
            if let Value::Struct(fields) = value {
                let of = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone()).unwrap_or_default();
                *value = Value::Struct(["x", "y"].map(|name| (name.to_owned(), of(name))).to_vec());
            }
        }
        rows
    }

    async fn check(&self, scd2: bool) -> Result<()> {
        let world = World::new();
        let dataset = self.dataset(scd2);
        let mut quarantined = 0;
        for frame in self.frames() {
            world.append(&source("declared"), &frame).await?;
            quarantined += world.run(&dataset).await?.rows_quarantined;
        }
        let (events, refused) = self.judged();
        let in_quarantine = world.count(&TableName::new("quarantine", "declared")).await?.unwrap_or_default() as u64;
        ensure!(
            quarantined == refused && in_quarantine == refused,
            "{refused} refused, {quarantined} reported, {in_quarantine} in quarantine"
        );
        let (model, more): (Model, &[&str]) = (self.model(), if scd2 { &["__START_AT", "__END_AT"] } else { &[] });
        let mut expected = self.normal(if scd2 { model.scd2(&events) } else { model.scd1(&events) });
        let names = columns(&model, more);
        let mut found = self.normal(world.rows(&target("declared"), &names.iter().map(String::as_str).collect::<Vec<_>>()).await?.rows());
        expected.sort();
        found.sort();
        ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
        feed_replays_to_the_table(&world, &target("declared")).await
    }
}

#[test]
fn law_declared_feeds_with_ties_nulls_and_truncates() {
    Law::new("AUTO CDC of any events").within(BUDGET).holds(&(declared_feeds(), any::<bool>()), |(mut feed, scd2), tried| {
        feed.truncates &= !scd2;
        if feed.kept().is_empty() {
            return Ok(());
        }
        tried.add("events", feed.kept().len());
        tried.add("batches", feed.frames().len());
        tried.add("rows without key or sequence", feed.judged().1 as usize);
        let ties: BTreeSet<(Option<i64>, Option<i64>)> = feed.kept().iter().map(|row| (row.0, row.1)).collect();
        tried.add("ties", feed.kept().len() - ties.len());
        as_case(block_on(feed.check(scd2)))
    });
}
