//! Laws of the plan: any delivery of any events, cut into any batches, gives what a plain reading of the rules gives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, StructArray, UInt32Array};
use crate::arrow::buffer::NullBuffer;
use crate::arrow::compute::{concat, concat_batches, take};
use crate::arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, SchemaRef};
use crate::arrow::row::{RowConverter, SortField};
use crate::events::{Events, Kind};
use crate::leaves::{LeafSet, Leaves};
use crate::plan::{Counts, Inputs, plan_merge};
use crate::shape::{Form, Order, Shape};

/// A value of a leaf as an event has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Value {
    Unwritten,
    Null,
    Text(u8),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Event {
    key: i64,
    kind: Kind,
    sequence: i64,
    position: u32,
    values: [Value; 2],
    other: Option<i64>,
}

/// Key, values, start and end (history), removed.
type Row = (i64, [Option<u8>; 2], Option<i64>, Option<i64>, bool);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    sequence: bool,
    positions: bool,
    history: bool,
    soft_delete: bool,
    /// Only the first value opens a version.
    track_first: bool,
    lead: bool,
    earliest: bool,
}

const CURRENT: Mode =
    Mode { sequence: false, positions: true, history: false, soft_delete: false, track_first: false, lead: false, earliest: false };

fn schema() -> SchemaRef {
    let field = |name, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![field("id", DataType::Int64), field("v", DataType::Utf8), field("w", DataType::Utf8)]))
}

fn shape(mode: Mode) -> Shape {
    let schema = schema();
    let leaves = Leaves::new(&schema, false);
    let form = if mode.history {
        Form::History { tracked: if mode.track_first { vec![1] } else { vec![1, 2] } }
    } else {
        let order = Order { lead: if mode.lead { vec![1] } else { Vec::new() }, earliest: mode.earliest };
        Form::Current { order, soft_delete: mode.soft_delete, keep_existing: false }
    };
    Shape { schema, keys: vec![0], leaves, form, sequence: mode.sequence, positions: mode.positions }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(value) => Some(value.to_string()),
        Value::Null | Value::Unwritten => None,
    }
}

fn position(position: u32) -> String {
    format!("{position:04}")
}

fn events(mode: Mode, events: &[Event]) -> Events {
    let key = |event: &Event| (!event.kind.is_global()).then_some(event.key);
    let id = Int64Array::from_iter(events.iter().map(key));
    let value = |at: usize| Arc::new(StringArray::from_iter(events.iter().map(|event| text(event.values[at])))) as ArrayRef;
    let rows = RecordBatch::try_new(schema(), vec![Arc::new(id), value(0), value(1)]).unwrap();
    let unwritten = |event: &Event| (0..2).filter(|at| event.values[*at] == Value::Unwritten).map(|at| at + 1).collect::<LeafSet>();
    let other = Int64Array::from_iter(events.iter().map(|event| event.other));
    let valid = NullBuffer::from_iter(events.iter().map(|event| event.other.is_some()));
    let sequence = |event: &Event| (!matches!(event.kind, Kind::Cut | Kind::TruncateCut)).then_some(event.sequence);
    Events {
        rows,
        kinds: events.iter().map(|event| event.kind).collect(),
        sequence: mode.sequence.then(|| Arc::new(Int64Array::from_iter(events.iter().map(sequence))) as ArrayRef),
        position: mode.positions.then(|| StringArray::from_iter_values(events.iter().map(|event| position(event.position)))),
        unwritten: events.iter().map(unwritten).collect(),
        carried: Vec::new(),
        other_key: Some(StructArray::new(Fields::from(vec![Field::new("id", DataType::Int64, true)]), vec![Arc::new(other)], Some(valid))),
        before: None,
        covers_row: Vec::new(),
        ends: None,
    }
}

/// A table and its retained events, changed only as plans say.
struct Simulation {
    mode: Mode,
    shape: Shape,
    visible: Events,
    removed: BooleanArray,
    state: Events,
    /// The source: every event ever delivered.
    source: Vec<Event>,
}

impl Simulation {
    fn new(mode: Mode) -> Self {
        let mut visible = Events::upserts(
            RecordBatch::new_empty(schema()),
            mode.sequence.then(|| Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef),
            mode.positions.then(|| StringArray::from(Vec::<&str>::new())),
        );
        if mode.history {
            visible.ends = Some(if mode.sequence {
                Arc::new(Int64Array::from(Vec::<i64>::new()))
            } else {
                Arc::new(StringArray::from(Vec::<&str>::new()))
            });
        }
        Self {
            mode,
            shape: shape(mode),
            visible,
            removed: BooleanArray::from(Vec::<bool>::new()),
            state: events(mode, &[]),
            source: Vec::new(),
        }
    }

    /// The rows whose keys the batch reaches.
    fn reached(&self, batch: &[Event], again: &[Event]) -> Option<BTreeSet<i64>> {
        if batch.iter().any(|event| event.kind.is_global()) {
            return None;
        }
        let events = batch.iter().chain(again).filter(|event| !event.kind.is_global());
        let mut keys: BTreeSet<i64> = events.flat_map(|event| [Some(event.key), event.other]).flatten().collect();
        loop {
            let before = keys.len();
            for row in (0..self.state.len()).filter(|row| self.state.kinds[*row] == Kind::Link) {
                let from = self.state.rows.column(0).as_primitive::<Int64Type>().value(row);
                let to = self.state.other_key.as_ref().unwrap().column(0).as_primitive::<Int64Type>().value(row);
                if keys.contains(&from) || keys.contains(&to) {
                    keys.extend([from, to]);
                }
            }
            if keys.len() == before {
                return Some(keys);
            }
        }
    }

    fn apply(&mut self, batch: &[Event]) -> Counts {
        self.source.extend(batch.iter().cloned());
        self.apply_with(batch, &[])
    }

    /// All events of the source of keys, and of those that key changes tie to them; and what concerns every key.
    fn read_again(&self, keys: &[Box<[u8]>]) -> Vec<Event> {
        let converter = RowConverter::new(vec![SortField::new(DataType::Int64)]).unwrap();
        let encoded =
            |key: i64| converter.convert_columns(&[Arc::new(Int64Array::from(vec![key])) as ArrayRef]).unwrap().row(0).as_ref().to_vec();
        let mut wanted: BTreeSet<i64> =
            self.source.iter().map(|event| event.key).filter(|key| keys.iter().any(|wanted| **wanted == *encoded(*key))).collect();
        loop {
            let tied = |event: &&Event| wanted.contains(&event.key) || event.other.is_some_and(|other| wanted.contains(&other));
            let more: BTreeSet<i64> = self
                .source
                .iter()
                .filter(|event| event.other.is_some())
                .filter(tied)
                .flat_map(|event| [Some(event.key), event.other])
                .flatten()
                .collect();
            if more.is_subset(&wanted) {
                return self.source.iter().filter(|event| event.kind.is_global() || wanted.contains(&event.key)).cloned().collect();
            }
            wanted.extend(more);
        }
    }

    fn apply_with(&mut self, batch: &[Event], again: &[Event]) -> Counts {
        let incoming = events(self.mode, &[batch, again].concat());
        let reached = self.reached(batch, again);
        let is_reached = |events: &Events, row: usize| {
            let key = events.rows.column(0).as_primitive::<Int64Type>();
            reached.as_ref().is_none_or(|reached| key.is_null(row) || reached.contains(&key.value(row)))
        };
        let rows_of = |events: &Events, wanted: bool| {
            UInt32Array::from_iter_values((0..events.len() as u32).filter(|row| is_reached(events, *row as usize) == wanted))
        };
        let (visible_in, visible_out) = (rows_of(&self.visible, true), rows_of(&self.visible, false));
        let (state_in, state_out) = (rows_of(&self.state, true), rows_of(&self.state, false));
        let visible = pick(&self.visible, &visible_in);
        let removed = take(&self.removed, &visible_in, None).unwrap().as_boolean().clone();
        let state = pick(&self.state, &state_in);
        let inputs = Inputs {
            shape: &self.shape,
            visible: &visible,
            removed: self.mode.soft_delete.then_some(&removed),
            differing: &[],
            state: &state,
            incoming: &incoming,
            again: again.len(),
            first_slice: true,
            delete_memory: true,
        };
        let plan = plan_merge(&inputs).unwrap();
        if !plan.to_read_again.is_empty() {
            let again = self.read_again(&plan.to_read_again);
            return self.apply_with(batch, &again);
        }

        let gone: BTreeSet<u32> = plan.updated.iter().map(|(old, _)| *old).chain(plan.deleted.iter().copied()).collect();
        assert_eq!(gone.len(), plan.updated.len() + plan.deleted.len(), "a visible row goes once");
        let new: BTreeSet<u32> = plan.updated.iter().map(|(_, new)| *new).chain(plan.inserted.iter().copied()).collect();
        assert_eq!(new.len(), plan.rows.business.num_rows(), "every written row is an insert or an update");
        for (old, new) in plan.updated.iter().filter(|_| !self.mode.history) {
            let same =
                (0..3).all(|at| visible.rows.column(at).slice(*old as usize, 1) == plan.rows.business.column(at).slice(*new as usize, 1));
            assert!(
                !same || removed.value(*old as usize) != plan.rows.removed.value(*new as usize),
                "a row that stays as it is is not written"
            );
        }
        let stay = UInt32Array::from_iter_values((0..visible.len() as u32).filter(|row| !gone.contains(row)));
        let mut added = Events::upserts(
            plan.rows.business.clone(),
            plan.rows.sequence.clone(),
            plan.rows.position.as_ref().map(|array| array.as_string::<i32>().clone()),
        );
        if self.mode.history {
            let start = plan.rows.start.clone().unwrap();
            if self.mode.sequence {
                added.sequence = Some(start);
                added.position = self.mode.positions.then(|| StringArray::new_null(added.len()));
            } else {
                added.position = Some(start.as_string::<i32>().clone());
            }
            added.ends = plan.rows.end.clone();
        }
        let kept_removed = take(&removed, &stay, None).unwrap();
        let out_removed = take(&self.removed, &visible_out, None).unwrap();
        self.removed = concat(&[&out_removed, &kept_removed, &plan.rows.removed]).unwrap().as_boolean().clone();
        self.visible = join(&join(&pick(&self.visible, &visible_out), &pick(&visible, &stay)), &added);

        let state_gone: BTreeSet<u32> = plan.state_removed.iter().copied().collect();
        let state_stay = UInt32Array::from_iter_values((0..state.len() as u32).filter(|row| !state_gone.contains(row)));
        self.state = join(&join(&pick(&self.state, &state_out), &pick(&state, &state_stay)), &plan.state_added);
        let counted = plan.counts.applied + plan.counts.duplicates + plan.counts.superseded + plan.counts.late_earlier;
        assert_eq!(counted, batch.len() as u64, "every event is counted once");
        plan.counts
    }

    fn rows(&self) -> BTreeSet<Row> {
        let number = |array: Option<&ArrayRef>, row: usize| {
            let array = array.filter(|array| array.is_valid(row))?;
            Some(match array.data_type() {
                DataType::Int64 => array.as_primitive::<Int64Type>().value(row),
                _ => array.as_string::<i32>().value(row).parse().unwrap(),
            })
        };
        let position = self.visible.position.clone().map(|array| Arc::new(array) as ArrayRef);
        let start = if self.mode.sequence { self.visible.sequence.as_ref() } else { position.as_ref() };
        let row = |row: usize| {
            let value = |at: usize| {
                let values = self.visible.rows.column(at).as_string::<i32>();
                values.is_valid(row).then(|| values.value(row).parse().unwrap())
            };
            let key = self.visible.rows.column(0).as_primitive::<Int64Type>().value(row);
            let start = start.filter(|_| self.mode.history);
            (key, [value(1), value(2)], number(start, row), number(self.visible.ends.as_ref(), row), self.removed.value(row))
        };
        let rows: Vec<Row> = (0..self.visible.len()).map(row).collect();
        let set: BTreeSet<Row> = rows.iter().cloned().collect();
        assert_eq!(set.len(), rows.len(), "no row twice");
        if !self.mode.history {
            let keys: BTreeSet<i64> = rows.iter().map(|row| row.0).collect();
            assert_eq!(keys.len(), rows.len(), "one row a key");
        }
        set
    }
}

fn pick(events: &Events, rows: &UInt32Array) -> Events {
    events.take(rows).unwrap()
}

fn join(a: &Events, b: &Events) -> Events {
    let arrays = |a: &Option<ArrayRef>, b: &Option<ArrayRef>| Some(concat(&[a.as_ref()?, b.as_ref()?]).unwrap());
    let sets =
        |of: &dyn Fn(&Events, usize) -> LeafSet| (0..a.len()).map(|row| of(a, row)).chain((0..b.len()).map(|row| of(b, row))).collect();
    let covers = |events: &Events| (0..events.len()).map(|row| events.covers_row.get(row).copied().unwrap_or(false)).collect::<Vec<_>>();
    Events {
        rows: concat_batches(&schema(), [&a.rows, &b.rows]).unwrap(),
        kinds: [a.kinds.clone(), b.kinds.clone()].concat(),
        sequence: arrays(&a.sequence, &b.sequence),
        position: a.position.as_ref().zip(b.position.as_ref()).map(|(a, b)| concat(&[a, b]).unwrap().as_string::<i32>().clone()),
        unwritten: sets(&|events, row| events.unwritten(row).cloned().unwrap_or_default()),
        carried: sets(&|events, row| events.carried(row).cloned().unwrap_or_default()),
        other_key: a.other_key.as_ref().zip(b.other_key.as_ref()).map(|(a, b)| concat(&[a, b]).unwrap().as_struct().clone()),
        before: None,
        covers_row: [covers(a), covers(b)].concat(),
        ends: arrays(&a.ends, &b.ends),
    }
}

/// The rules read plainly: all events at once, row by row.
mod plainly {
    use super::*;

    type Order = (Vec<Value>, i64, u32, bool, Vec<Value>);

    fn order(mode: Mode, event: &Event) -> Order {
        let removes = event.kind.removes();
        let sequence = if mode.sequence { event.sequence } else { 0 };
        let position = if mode.positions { event.position } else { 0 };
        (Vec::new(), sequence, position, removes, if removes { Vec::new() } else { event.values.to_vec() })
    }

    fn compare(mode: Mode, a: &Event, b: &Event) -> std::cmp::Ordering {
        let lead = |event: &Event| if mode.lead { event.values[0].max(Value::Null) } else { Value::Null };
        let total = order(mode, a).cmp(&order(mode, b));
        lead(a).cmp(&lead(b)).then(if mode.earliest { total.reverse() } else { total })
    }

    fn of_key(mode: Mode, events: &[Event], key: i64) -> Vec<Event> {
        let mut own: Vec<Event> =
            events.iter().filter(|event| event.key == key && !event.kind.is_global() && event.kind != Kind::Cut).cloned().collect();
        own.extend(events.iter().filter(|event| event.kind == Kind::Truncate).cloned());
        own.sort_by(|a, b| compare(mode, a, b));
        own.dedup_by(|a, b| compare(mode, a, b).is_eq());
        own
    }

    fn cuts(events: &[Event], key: i64) -> BTreeSet<u32> {
        let is_cut = |event: &&Event| event.kind == Kind::TruncateCut || event.kind == Kind::Cut && event.key == key;
        events.iter().filter(is_cut).map(|event| event.position).collect()
    }

    /// Each leaf of the greatest event that wrote it, not looking behind a delete.
    fn leaves(ascending: &[Event]) -> [Value; 2] {
        let mut values = [Value::Unwritten; 2];
        for event in ascending {
            for (known, written) in values.iter_mut().zip(event.values) {
                if event.kind.removes() {
                    *known = Value::Unwritten;
                } else if written != Value::Unwritten {
                    *known = written;
                }
            }
        }
        values
    }

    /// Fills what create halves did not bring, key changes in the order of their positions.
    pub(super) fn carried(mode: Mode, events: &[Event]) -> Vec<Event> {
        let mut events = events.to_vec();
        let mut creates: Vec<usize> =
            (0..events.len()).filter(|at| events[*at].kind == Kind::Upsert && events[*at].other.is_some()).collect();
        creates.sort_by_key(|at| events[*at].position);
        let original = events.clone();
        for at in creates {
            let create = events[at].clone();
            let old = create.other.unwrap();
            let cut = cuts(&original, old).into_iter().filter(|cut| *cut < create.position).max();
            let before: Vec<Event> = of_key(mode, &events, old)
                .into_iter()
                .filter(|event| event.position < create.position && cut.is_none_or(|cut| event.position >= cut))
                .collect();
            let carried = leaves(&before);
            for (value, carried) in events[at].values.iter_mut().zip(carried) {
                if *value == Value::Unwritten {
                    *value = carried;
                }
            }
        }
        events
    }

    fn shown(values: [Value; 2]) -> [Option<u8>; 2] {
        values.map(|value| if let Value::Text(value) = value { Some(value) } else { None })
    }

    pub(super) fn rows(mode: Mode, events: &[Event]) -> BTreeSet<Row> {
        let mut distinct: Vec<Event> = Vec::new();
        for event in events {
            if !distinct.contains(event) {
                distinct.push(event.clone());
            }
        }
        let events = carried(mode, &distinct);
        let keys: BTreeSet<i64> = events.iter().filter(|event| !event.kind.is_global()).map(|event| event.key).collect();
        keys.into_iter().flat_map(|key| if mode.history { history(mode, &events, key) } else { current(mode, &events, key) }).collect()
    }

    /// What the key is after each event that counts, part after part between the cuts.
    fn steps(mode: Mode, events: &[Event], key: i64) -> Vec<(i64, Option<[Value; 2]>)> {
        let own = of_key(mode, events, key);
        let cuts: Vec<u32> = cuts(events, key).into_iter().collect();
        let point = |event: &Event| if mode.sequence { event.sequence } else { i64::from(event.position) };
        let mut steps: Vec<(i64, Option<[Value; 2]>)> = Vec::new();
        for part in 0..=cuts.len() {
            let inside =
                |event: &&Event| (part == 0 || event.position >= cuts[part - 1]) && (part == cuts.len() || event.position < cuts[part]);
            let mut values: Option<[Value; 2]> = None;
            let mut found = Vec::new();
            for event in own.iter().filter(inside) {
                let written = |before: Option<[Value; 2]>| {
                    let mut after = before.unwrap_or([Value::Unwritten; 2]);
                    (0..2).filter(|at| event.values[*at] != Value::Unwritten).for_each(|at| after[at] = event.values[at]);
                    after
                };
                values = (event.kind == Kind::Upsert).then(|| written(values));
                found.push((point(event), values));
            }
            // A removed row that stays shows what it was last, wherever that stood.
            if !mode.soft_delete
                && let Some(first) = found.first()
            {
                steps.retain(|step| step.0 < first.0);
            }
            steps.extend(found);
            if part < cuts.len()
                && let Some(last) = steps.last().copied()
            {
                steps.push((last.0, None));
            }
        }
        steps
    }

    fn current(mode: Mode, events: &[Event], key: i64) -> Vec<Row> {
        let steps = steps(mode, events, key);
        if mode.earliest && !mode.lead {
            return of_key(mode, events, key).last().map(|event| (key, shown(event.values), None, None, false)).into_iter().collect();
        }
        if let Some((_, Some(values))) = steps.last() {
            return vec![(key, shown(*values), None, None, false)];
        }
        let latest = steps.iter().rev().find_map(|step| step.1).filter(|_| mode.soft_delete);
        latest.map(|values| (key, shown(values), None, None, true)).into_iter().collect()
    }

    fn history(mode: Mode, events: &[Event], key: i64) -> Vec<Row> {
        let mut rows: Vec<(i64, Option<i64>, [Value; 2])> = Vec::new();
        let tracked = |values: [Value; 2]| if mode.track_first { shown(values)[..1].to_vec() } else { shown(values).to_vec() };
        for (point, values) in steps(mode, events, key).chunk_by(|a, b| a.0 == b.0).filter_map(|chunk| chunk.last().copied()) {
            let open = rows.last_mut().filter(|row| row.1.is_none());
            match (values, open) {
                (Some(values), Some(open)) if tracked(values) == tracked(open.2) => open.2 = values,
                (values, open) => {
                    if let Some(open) = open {
                        open.1 = Some(point);
                    }
                    rows.extend(values.map(|values| (point, None, values)));
                }
            }
        }
        rows.into_iter().map(|(start, end, values)| (key, shown(values), Some(start), end, false)).collect()
    }
}

/// What kinds of events a history may have.
#[derive(Debug, Clone, Copy)]
struct Palette {
    partial: bool,
    cuts: bool,
    deletes: bool,
    truncates: bool,
    truncate_cuts: bool,
    key_changes: bool,
}

fn value(partial: bool) -> impl Strategy<Value = Value> {
    let unwritten = if partial { 3 } else { 0 };
    prop_oneof![6 => (0..3_u8).prop_map(Value::Text), 1 => Just(Value::Null), unwritten => Just(Value::Unwritten)]
}

fn some_events(palette: Palette) -> impl Strategy<Value = Vec<Event>> {
    let weight = |on: bool, weight: u32| if on { weight } else { 0 };
    let kind = prop_oneof![
        8 => Just(Kind::Upsert),
        weight(palette.deletes, 2) => Just(Kind::Delete),
        weight(palette.cuts, 2) => Just(Kind::Cut),
        weight(palette.truncates, 1) => Just(Kind::Truncate),
        weight(palette.truncate_cuts, 1) => Just(Kind::TruncateCut),
    ];
    let one = (0..3_i64, kind, 0..6_i64, 0..8_u32, value(palette.partial), value(palette.partial)).prop_map(
        move |(key, kind, sequence, position, v, w)| {
            let values = if kind == Kind::Upsert { [v, w] } else { [Value::Null; 2] };
            vec![Event { key, kind, sequence, position, values, other: None }]
        },
    );
    // Both halves of a key change at one position; the delete half has a place in the order or is a cut.
    let pair =
        (0..3_i64, 0..2_i64, 0..6_i64, 0..8_u32, value(true), value(true)).prop_map(move |(from, step, sequence, position, v, w)| {
            let to = (from + 1 + step) % 3;
            let kind = if palette.cuts { Kind::Cut } else { Kind::Delete };
            vec![
                Event { key: from, kind, sequence, position, values: [Value::Null; 2], other: Some(to) },
                Event { key: to, kind: Kind::Upsert, sequence, position, values: [v, w], other: Some(from) },
            ]
        });
    let any = prop_oneof![9 => one, weight(palette.key_changes, 2) => pair];
    prop::collection::vec(any, 1..9).prop_map(|events| one_create_a_position(events.concat()))
}

/// A key is created at a position by one key change and by nothing else, and becomes one other key; nothing is truncated there.
fn one_create_a_position(events: Vec<Event>) -> Vec<Event> {
    let is_create = |event: &&Event| event.kind == Kind::Upsert && event.other.is_some();
    let of_new: BTreeMap<(i64, u32), Event> =
        events.iter().filter(is_create).map(|event| ((event.key, event.position), event.clone())).collect();
    let of_old: BTreeMap<(i64, u32), Event> =
        of_new.values().map(|event| ((event.other.unwrap(), event.position), event.clone())).collect();
    let legal = |event: &Event| match (event.kind, event.other) {
        (Kind::Upsert, Some(old)) => {
            of_new.get(&(event.key, event.position)) == Some(event) && of_old.get(&(old, event.position)) == Some(event)
        }
        (Kind::Upsert, None) => !of_new.contains_key(&(event.key, event.position)),
        (Kind::Truncate | Kind::TruncateCut, _) => !of_new.keys().any(|(_, position)| *position == event.position),
        (_, Some(new)) => of_old
            .get(&(event.key, event.position))
            .is_some_and(|create| create.key == new && of_new.get(&(new, event.position)) == Some(create)),
        (_, None) => true,
    };
    events.into_iter().filter(legal).collect()
}

/// Events in any order, some twice, cut into batches. Where a current table is to resolve key changes, the events of a key come
/// in the order of their positions, as one partition brings them, and only what came before comes again.
fn delivery(palette: Palette, in_partitions: bool) -> impl Strategy<Value = Vec<Vec<Event>>> {
    some_events(palette).prop_flat_map(move |events| {
        let count = events.len().max(1);
        let again = prop::collection::vec(0..count, 0..3);
        (Just(events), again, prop::collection::vec(1..5_usize, 1..12)).prop_flat_map(move |(events, again, sizes)| {
            let mut delivered = events.clone();
            delivered.extend(again.into_iter().filter_map(|at| events.get(at).cloned()));
            (Just(delivered).prop_shuffle(), Just(sizes)).prop_map(move |(events, sizes)| {
                let events = if in_partitions { by_partition(events) } else { events };
                let mut batches = Vec::new();
                let mut rest = events.as_slice();
                for size in sizes.into_iter().cycle() {
                    if rest.is_empty() {
                        break;
                    }
                    let (batch, after) = rest.split_at(size.min(rest.len()));
                    batches.push(batch.to_vec());
                    rest = after;
                }
                batches
            })
        })
    })
}

/// Puts each key's events, and every key's, in the order of their positions, leaving each key the places it had.
fn by_partition(events: Vec<Event>) -> Vec<Event> {
    let partition = |event: &Event| if event.kind.is_global() { -1 } else { event.key };
    let mut queues: BTreeMap<i64, Vec<Event>> = BTreeMap::new();
    events.iter().for_each(|event| queues.entry(partition(event)).or_default().push(event.clone()));
    // A delete half comes before other events of its position: what the key had before it is still known then.
    queues.values_mut().for_each(|queue| {
        queue.sort_by_key(|event| std::cmp::Reverse((event.position, event.other.is_none() || event.kind == Kind::Upsert)));
    });
    let mut taken = |event: &Event| queues.get_mut(&partition(event)).and_then(Vec::pop);
    events.iter().filter_map(&mut taken).collect()
}

fn holds(mode: Mode, batches: &[Vec<Event>]) -> Result<(), TestCaseError> {
    let mut simulation = Simulation::new(mode);
    let mut seen = Vec::new();
    for batch in batches {
        simulation.apply(batch);
        seen.extend(batch.iter().cloned());
        prop_assert_eq!(simulation.rows(), plainly::rows(mode, &seen), "after {:?}", seen);
    }
    // A replay of everything changes nothing.
    let counts = simulation.apply(&seen);
    prop_assert_eq!(simulation.rows(), plainly::rows(mode, &seen), "after a replay of {:?}", seen);
    prop_assert_eq!(counts.late_earlier, 0);
    Ok(())
}

const PLAIN: Palette = Palette { partial: false, cuts: false, deletes: true, truncates: false, truncate_cuts: false, key_changes: false };

macro_rules! law {
    ($name:ident, $mode:expr, $palette:expr) => {
        law!($name, $mode, $palette, false);
    };
    ($name:ident, $mode:expr, $palette:expr, $in_partitions:expr) => {
        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
            #[test]
            fn $name(batches in delivery($palette, $in_partitions)) {
                holds($mode, &batches)?;
            }
        }
    };
}

law!(rows_by_position_are_those_of_all_events, CURRENT, PLAIN);
law!(rows_by_sequence_are_those_of_all_events, Mode { sequence: true, positions: false, ..CURRENT }, Palette { truncates: true, ..PLAIN });
law!(unsent_values_keep_the_greatest_that_was_written, CURRENT, Palette { partial: true, truncates: true, ..PLAIN });
law!(
    unsent_values_keep_the_greatest_by_sequence,
    Mode { sequence: true, positions: false, ..CURRENT },
    Palette { partial: true, truncates: true, ..PLAIN }
);
law!(
    cuts_take_every_event_of_an_earlier_position,
    Mode { sequence: true, ..CURRENT },
    Palette { cuts: true, truncate_cuts: true, partial: true, ..PLAIN }
);
law!(key_changes_carry_what_was_not_sent, CURRENT, Palette { partial: true, key_changes: true, ..PLAIN }, true);
law!(key_changes_carry_in_any_order, CURRENT, Palette { partial: true, key_changes: true, truncates: true, ..PLAIN });
law!(
    key_changes_carry_across_cuts_in_any_order,
    Mode { sequence: true, ..CURRENT },
    Palette { partial: true, key_changes: true, cuts: true, truncate_cuts: true, ..PLAIN }
);
law!(
    removed_rows_stay_as_marks_in_any_order,
    Mode { soft_delete: true, ..CURRENT },
    Palette { partial: true, key_changes: true, truncates: true, ..PLAIN }
);
law!(
    key_changes_carry_across_cuts,
    Mode { sequence: true, ..CURRENT },
    Palette { partial: true, key_changes: true, cuts: true, truncate_cuts: true, ..PLAIN },
    true
);
law!(removed_rows_stay_as_marks, Mode { soft_delete: true, ..CURRENT }, Palette { partial: true, truncates: true, ..PLAIN });
law!(
    removed_rows_stay_as_marks_by_sequence,
    Mode { soft_delete: true, sequence: true, positions: false, ..CURRENT },
    Palette { partial: true, truncates: true, ..PLAIN }
);
law!(
    removed_rows_stay_as_marks_under_cuts,
    Mode { soft_delete: true, sequence: true, ..CURRENT },
    Palette { partial: true, cuts: true, truncate_cuts: true, key_changes: true, ..PLAIN },
    true
);
law!(the_first_fact_stays, Mode { earliest: true, ..CURRENT }, Palette { deletes: false, partial: true, ..PLAIN });
law!(the_greatest_lead_wins, Mode { lead: true, ..CURRENT }, Palette { deletes: false, ..PLAIN });
law!(only_an_advance_is_taken, Mode { lead: true, earliest: true, sequence: true, ..CURRENT }, Palette { deletes: false, ..PLAIN });
law!(
    history_by_sequence_is_that_of_all_events,
    Mode { history: true, sequence: true, positions: false, ..CURRENT },
    Palette { partial: true, ..PLAIN }
);
law!(
    history_of_some_columns_shows_the_last_of_the_others,
    Mode { history: true, sequence: true, positions: false, track_first: true, ..CURRENT },
    Palette { partial: true, ..PLAIN }
);
law!(
    history_by_position_is_that_of_all_events,
    Mode { history: true, ..CURRENT },
    Palette { partial: true, truncates: true, key_changes: true, ..PLAIN }
);
law!(
    history_takes_cuts_as_deletes_behind_what_they_cut,
    Mode { history: true, sequence: true, ..CURRENT },
    Palette { partial: true, truncate_cuts: true, cuts: true, key_changes: true, ..PLAIN }
);
