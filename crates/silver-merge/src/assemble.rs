//! Puts rows together from where their values stand.

use std::sync::Arc;

use crate::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, StructArray, new_null_array};
use crate::arrow::buffer::NullBuffer;
use crate::arrow::compute::interleave;
use crate::arrow::datatypes::{DataType, Field, Fields};
use crate::arrow::error::ArrowError;
use crate::events::{Events, Kind};
use crate::hand_over::KeyOf;
use crate::known::{Id, Known, Place};
use crate::leaves::{LeafSet, leaf_array};
use crate::payload::Payload;
use crate::plan::{RowToWrite, StateRow};

/// Rows to write, sorted by key; columns that are not business columns stand beside them.
#[derive(Debug)]
pub(crate) struct NewRows {
    /// Business columns.
    pub business: RecordBatch,
    /// Which rows are removed ones that stay as a mark.
    pub removed: BooleanArray,
    /// The declared sequence of each row's greatest event (current tables).
    pub sequence: Option<ArrayRef>,
    /// The position of each row's greatest event (current tables).
    pub position: Option<ArrayRef>,
    /// `__START_AT` (history tables).
    pub start: Option<ArrayRef>,
    /// `__END_AT` (history tables).
    pub end: Option<ArrayRef>,
    /// For each leaf that no event wrote, in how many rows.
    pub unknown: Vec<(String, u64)>,
}

/// The rows to write.
pub(crate) fn assemble_rows(known: &Known<'_>, rows: &[RowToWrite]) -> Result<NewRows, ArrowError> {
    let payloads: Vec<&Payload> = rows.iter().map(RowToWrite::payload).collect();
    let business = business(known, &payloads)?;
    let mut assembled = NewRows {
        business,
        removed: rows.iter().map(|row| Some(matches!(row, RowToWrite::Current(row) if row.removed))).collect(),
        sequence: None,
        position: None,
        start: None,
        end: None,
        unknown: unknown(known, &payloads),
    };
    let place = |pick: fn(&RowToWrite) -> Option<Id>| rows.iter().map(|row| pick(row).map(|id| known.place(id))).collect::<Vec<_>>();
    let history = |pick: fn(&RowToWrite) -> Option<Place>| rows.iter().map(pick).collect::<Vec<_>>();
    if matches!(known.shape.form, crate::shape::Form::History { .. }) {
        let starts = history(|row| if let RowToWrite::History(row) = row { Some(row.start) } else { None });
        let ends = history(|row| if let RowToWrite::History(row) = row { row.end } else { None });
        assembled.start = points(known, &starts)?;
        assembled.end = points(known, &ends)?;
        return Ok(assembled);
    }
    if known.shape.sequence {
        let places = place(|row| if let RowToWrite::Current(row) = row { Some(row.sequence_of) } else { None });
        assembled.sequence = points(known, &places)?;
    }
    if known.shape.positions {
        let places = place(|row| if let RowToWrite::Current(row) = row { Some(row.position_of) } else { None });
        assembled.position = gather(&positions(known), &places)?;
    }
    Ok(assembled)
}

/// The rows of `_state` to write, as events.
pub(crate) fn assemble_state(known: &Known<'_>, rows: &[StateRow]) -> Result<Events, ArrowError> {
    let payloads: Vec<Payload> = rows.iter().map(|row| stored_payload(known, row)).collect();
    let mut columns = business(known, &payloads.iter().collect::<Vec<_>>())?.columns().to_vec();
    for (at, key) in known.shape.keys.iter().enumerate() {
        columns[*key] =
            gather_required(&key_columns(known, at), &rows.iter().map(|row| key_place(known, row_key(row))).collect::<Vec<_>>())?;
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let at = |row: &StateRow| match row {
        StateRow::Event { id, .. } | StateRow::Link { at: id, .. } => *id,
    };
    let places: Vec<_> = rows.iter().map(|row| Some(known.place(at(row)))).collect();
    let sequence_places: Vec<_> = rows.iter().map(|row| matches!(row, StateRow::Event { .. }).then(|| known.place(at(row)))).collect();
    let leaves = |pick: &dyn Fn(Id, usize) -> bool| {
        let of_row = |row: &StateRow| match row {
            StateRow::Event { id, .. } => {
                known.unwritten(*id).map(|set| set.iter().filter(|leaf| pick(*id, *leaf)).collect()).unwrap_or_default()
            }
            StateRow::Link { .. } => LeafSet::default(),
        };
        rows.iter().map(of_row).collect::<Vec<_>>()
    };
    Ok(Events {
        rows: RecordBatch::try_new_with_options(Arc::clone(&known.shape.schema), columns, &options)?,
        kinds: rows.iter().map(|row| if let StateRow::Event { id, .. } = row { known.kind(*id) } else { Kind::Link }).collect(),
        sequence: if known.shape.sequence { points(known, &sequence_places)? } else { None },
        position: gather(&positions(known), &places)?.map(|array| array.as_string::<i32>().clone()),
        unwritten: leaves(&|_, _| true),
        carried: leaves(&|id, leaf| known.is_carried(id, leaf)),
        other_key: other_keys(known, rows)?,
        before: None,
        covers_row: rows.iter().map(|row| matches!(row, StateRow::Event { covers: true, .. })).collect(),
        ends: None,
    })
}

fn row_key(row: &StateRow) -> KeyOf {
    match row {
        StateRow::Event { id, .. } => KeyOf::Own(*id),
        StateRow::Link { from, .. } => *from,
    }
}

/// What of an event is stored: upserts as they are with what was carried in, of anything else the key alone.
fn stored_payload(known: &Known<'_>, row: &StateRow) -> Payload {
    let none = || Payload::Parts(vec![None; known.shape.leaves.len()].into_boxed_slice());
    match row {
        StateRow::Event { id, .. } if known.kind(*id) == Kind::Upsert && known.is_whole(*id) => Payload::Whole(*id),
        StateRow::Event { id, .. } if known.kind(*id) == Kind::Upsert => {
            Payload::Parts((0..known.shape.leaves.len()).map(|leaf| known.wrote(*id, leaf).then(|| known.value_place(*id, leaf))).collect())
        }
        StateRow::Event { .. } | StateRow::Link { .. } => none(),
    }
}

/// The other key of upserts (the key before) and of links (the key after).
fn other_keys(known: &Known<'_>, rows: &[StateRow]) -> Result<Option<StructArray>, ArrowError> {
    let other = |row: &StateRow| match row {
        StateRow::Event { id, .. } if known.kind(*id) == Kind::Upsert && known.other_key(*id).is_some() => Some(KeyOf::Other(*id)),
        StateRow::Event { .. } => None,
        StateRow::Link { to, .. } => Some(*to),
    };
    let others: Vec<_> = rows.iter().map(other).collect();
    let valid = NullBuffer::from_iter(others.iter().map(Option::is_some));
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (at, key) in known.shape.keys.iter().enumerate() {
        let places: Vec<_> = others.iter().map(|key| key.and_then(|key| key_place(known, key))).collect();
        let column = gather_required(&key_columns(known, at), &places)?;
        fields.push(Field::new(known.shape.schema.field(*key).name(), column.data_type().clone(), true));
        columns.push(column);
    }
    Ok(Some(StructArray::try_new(Fields::from(fields), columns, Some(valid))?))
}

/// A key column of events by batch, then of the other keys by batch.
fn key_columns(known: &Known<'_>, at: usize) -> Vec<Option<ArrayRef>> {
    let column = known.shape.keys[at];
    let own = (0..3).map(|batch| Some(Arc::clone(known.batch(batch).rows.column(column))));
    let other = (0..3).map(|batch| known.batch(batch).other_key.as_ref().map(|other| Arc::clone(other.column(at))));
    own.chain(other).collect()
}

/// Where a key stands in [`key_columns`].
fn key_place(known: &Known<'_>, key: KeyOf) -> Option<Place> {
    Some(match key {
        KeyOf::Own(id) => known.place(id),
        KeyOf::Other(id) => Place { batch: known.place(id).batch + 3, ..known.place(id) },
    })
}

fn positions(known: &Known<'_>) -> Vec<Option<ArrayRef>> {
    (0..3).map(|batch| known.batch(batch).position.clone().map(|position| Arc::new(position) as ArrayRef)).collect()
}

fn points(known: &Known<'_>, places: &[Option<Place>]) -> Result<Option<ArrayRef>, ArrowError> {
    known.point_arrays().map(|arrays| gather_required(&arrays.map(Some), places)).transpose()
}

fn unknown(known: &Known<'_>, payloads: &[&Payload]) -> Vec<(String, u64)> {
    let mut counts = vec![0_u64; known.shape.leaves.len()];
    payloads.iter().for_each(|payload| payload.unknown().iter().for_each(|leaf| counts[leaf] += 1));
    let named = |(leaf, count): (usize, u64)| (known.shape.leaves.get(leaf).name.clone(), count);
    counts.into_iter().enumerate().filter(|(_, count)| *count > 0).map(named).collect()
}

fn business(known: &Known<'_>, payloads: &[&Payload]) -> Result<RecordBatch, ArrowError> {
    let schema = &known.shape.schema;
    let whole: Option<Vec<(usize, usize)>> =
        payloads.iter().map(|payload| if let Payload::Whole(id) = payload { Some(known.split(*id)) } else { None }).collect();
    let build = |(column, field): (usize, &Arc<Field>)| {
        Column { known, column, payloads, whole: whole.as_deref() }.build(
            field,
            &mut Vec::new(),
            known.shape.leaves.of_column(column).start,
        )
    };
    let columns = schema.fields().iter().enumerate().map(build).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(payloads.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// One top-level column of rows under assembly.
struct Column<'k, 'p> {
    known: &'k Known<'k>,
    column: usize,
    payloads: &'p [&'p Payload],
    /// Where all leaves of each row stand, where each row comes from one event.
    whole: Option<&'p [(usize, usize)]>,
}

impl Column<'_, '_> {
    /// The array at `path`, whose first leaf is `first`.
    fn build(&self, field: &Field, path: &mut Vec<usize>, first: usize) -> Result<ArrayRef, ArrowError> {
        if self.known.shape.leaves.get(first).path.len() > path.len() {
            return self.build_struct(field, path, first);
        }
        if let Some(whole) = self.whole {
            let [visible, state, incoming] = self.known.leaf_arrays(first);
            return interleave(&[visible.as_ref(), state.as_ref(), incoming.as_ref()], whole);
        }
        let places: Vec<_> = self.payloads.iter().map(|payload| payload.place(self.known, first)).collect();
        gather_required(&self.known.leaf_arrays(first).clone().map(Some), &places)
    }

    fn build_struct(&self, field: &Field, path: &mut Vec<usize>, first: usize) -> Result<ArrayRef, ArrowError> {
        let DataType::Struct(fields) = field.data_type() else {
            return Err(ArrowError::SchemaError(format!("{} is not split", field.name())));
        };
        let mut leaf = first;
        let mut children = Vec::with_capacity(fields.len());
        for (at, child) in fields.iter().enumerate() {
            path.push(at);
            let below = self
                .known
                .shape
                .leaves
                .iter()
                .skip(leaf)
                .take_while(|leaf| leaf.column == self.column && leaf.path.starts_with(path))
                .count();
            children.push(self.build(child, path, leaf)?);
            leaf += below;
            path.pop();
        }
        let valid = self.struct_validity(path, first..leaf, &children)?;
        Ok(Arc::new(StructArray::try_new(fields.clone(), children, Some(valid))?))
    }

    /// A struct that comes from one event is as null as it was there; one put together is null where all its fields are.
    fn struct_validity(&self, path: &[usize], leaves: std::ops::Range<usize>, children: &[ArrayRef]) -> Result<NullBuffer, ArrowError> {
        let known = self.known;
        let wholes = (0..3).map(|batch| leaf_array(known.batch(batch).rows.column(self.column), path)).collect::<Result<Vec<_>, _>>()?;
        let valid = |row: usize, payload: &Payload| {
            let first = payload.place(known, leaves.start);
            let one = leaves.clone().all(|leaf| payload.place(known, leaf) == first);
            match first {
                Some(place) if one => wholes[usize::from(place.batch)].is_valid(place.row as usize),
                _ => children.iter().any(|child| child.is_valid(row)),
            }
        };
        Ok(NullBuffer::from_iter(self.payloads.iter().enumerate().map(|(row, payload)| valid(row, payload))))
    }
}

/// Values from several arrays of one type; none = null. None when no array has values.
fn gather(arrays: &[Option<ArrayRef>], places: &[Option<Place>]) -> Result<Option<ArrayRef>, ArrowError> {
    if arrays.iter().all(Option::is_none) {
        return Ok(None);
    }
    gather_required(arrays, places).map(Some)
}

fn gather_required(arrays: &[Option<ArrayRef>], places: &[Option<Place>]) -> Result<ArrayRef, ArrowError> {
    let Some(data_type) = arrays.iter().flatten().map(|array| array.data_type().clone()).next() else {
        return Err(ArrowError::InvalidArgumentError("no array to take values from".to_owned()));
    };
    let null = new_null_array(&data_type, 1);
    let mut sources: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref().unwrap_or(&null).as_ref()).collect();
    sources.push(null.as_ref());
    let nowhere = (sources.len() - 1, 0);
    let indices: Vec<_> =
        places.iter().map(|place| place.map_or(nowhere, |place| (usize::from(place.batch), place.row as usize))).collect();
    interleave(&sources, &indices)
}
