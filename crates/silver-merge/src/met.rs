//! The rows of the table that the events of a slice meet, read as far as they decide something.
//!
//! Of a row that one whole, later upsert replaces, nothing is needed but that it differs (S7): its columns are read one after the
//! other, those that tell most for their size first, until each row differs in one. Of a row that a later delete takes, nothing is
//! needed at all. Every other row is read whole, and every one where its values go into the change feed or into the rows to write,
//! unless the event itself says what the row was ([`crate::before_images`]).
//!
//! What must stay true: a row that is not whole is one whose values the plan does not look at.

use std::collections::HashMap;
use std::sync::Arc;

use tributary_lake::arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StringArray, UInt32Array, make_comparator, new_null_array,
};
use tributary_lake::arrow::compute::{SortOptions, concat_batches, interleave, take_record_batch};
use tributary_lake::arrow::datatypes::{Field, Schema, SchemaRef};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::row::{Row, RowConverter, Rows, SortField};
use tributary_lake::{Found, KeyProbe, KeySearch, Result as LakeResult};

use crate::before_images::{self, Comparison, MADE_OF};
use crate::conform::conform;
use crate::events::{Events, Kind};
use crate::keys::KeyCodec;
use crate::leaves::leaf_array;
use crate::search::Place;
use crate::shape::Form;
use crate::target::Target;

/// Rows from which is told how often each column differs; few in tests, whose batches are small.
const SAMPLE: usize = if cfg!(any(test, feature = "controls")) { 2 } else { 256 };

/// A column in which fewer of the rows differ is not read by itself.
const DIFFERING_MIN: f64 = 0.1;

/// See the module.
pub(crate) struct Met {
    pub found: Found,
    pub visible: Events,
    /// Where removed rows stay: which of the visible ones are removed.
    pub removed: Option<BooleanArray>,
    /// For each visible row whether it is known to differ from what its key comes to; such a row may have null for what it holds
    /// where no change feed asks for it.
    pub differing: Vec<bool>,
}

/// Reads rows of a table.
pub(crate) struct Meeting<'a> {
    pub search: &'a KeySearch,
    pub target: &'a Target,
    pub codec: &'a KeyCodec,
    pub probe: &'a Arc<dyn KeyProbe>,
    /// Whether the old rows go into a change feed.
    pub feed: bool,
    /// What a file says whose rows are as the source has them, where before-images may stand for rows.
    pub made_of: Option<&'a str>,
    /// Whether before-images are compared with the rows; only a control says no.
    pub checks: bool,
}

/// What a visible row meets.
#[derive(Debug, Clone, Copy)]
enum Meets {
    /// This event, a whole upsert, alone and later.
    Upsert(usize),
    /// This event, a delete, alone and later.
    Delete(usize),
    /// Anything else.
    More,
}

impl Meeting<'_> {
    /// The rows that have the keys of the events.
    ///
    /// # Errors
    /// Store errors.
    pub async fn rows(&self, events: &Events, retained: &Events) -> LakeResult<Met> {
        let all = 0..self.search.files().len();
        let schema = self.search.table().schema();
        if !self.may_be_parts(events, retained) {
            let found = self.search.find(all, self.probe).await?;
            return self.met(found, Vec::new());
        }
        let narrow = projected(&schema, &self.target.order_columns());
        let found = self.search.find_columns(all, self.probe, &narrow).await?;
        let (visible, _) = self.target.visible(&found.rows)?;
        let meets = self.meets(&visible, events, retained)?;
        let stood_for = self.stood_for(&found, &visible, &meets, events)?;
        let mut whole = Whole { search: self.search, places: &found.places, schema: &schema, rows: Vec::new(), at: Vec::new() };
        if self.feed {
            whole.read((0..stood_for.len()).filter(|row| stood_for[*row].is_none()).collect()).await?;
            return self.beside(&whole, &found, &stood_for, events);
        }
        let light: Vec<(usize, usize)> = meets
            .iter()
            .enumerate()
            .filter(|(row, _)| stood_for[*row].is_none())
            .filter_map(|(row, meets)| meets.upsert().map(|event| (row, event)))
            .collect();
        let (sample, rest) = light.split_at(light.len().min(SAMPLE));
        let mut first: Vec<usize> =
            meets.iter().enumerate().filter(|(_, meets)| matches!(meets, Meets::More)).map(|(row, _)| row).collect();
        first.extend(sample.iter().map(|(row, _)| *row));
        first.sort_unstable();
        whole.read(first).await?;
        let mut open = rest.to_vec();
        for column in self.telling(&whole, sample, events)? {
            if open.is_empty() {
                break;
            }
            let places: Vec<Place> = open.iter().map(|(row, _)| found.places[*row]).collect();
            let name = self.target.shape.schema.field(column).name();
            let read = self.search.rows_at(&places, &projected(&schema, &[name])).await?;
            let differs = self.differs(column, &read, open.iter().map(|(_, event)| *event), events)?;
            let mut differs = differs.into_iter();
            open.retain(|_| differs.next() == Some(false));
        }
        whole.read(open.iter().map(|(row, _)| *row).collect()).await?;
        self.beside(&whole, &found, &stood_for, events)
    }

    /// What was read whole, what events say, and what was found of every row.
    fn beside(&self, whole: &Whole<'_>, found: &Found, stood_for: &[Option<usize>], events: &Events) -> LakeResult<Met> {
        let rows = whole.beside(&found.rows, stood_for, events)?;
        let mut differing = vec![true; rows.num_rows()];
        whole.at.iter().for_each(|row| differing[*row] = false);
        self.met(Found { rows, places: found.places.clone() }, differing)
    }

    /// For each visible row the event whose before-image stands for it, if any.
    fn stood_for(&self, found: &Found, visible: &Events, meets: &[Meets], events: &Events) -> Result<Vec<Option<usize>>, ArrowError> {
        let none = || vec![None; meets.len()];
        let Some(made_of) = self.made_of else { return Ok(none()) };
        let Some(comparison) = Comparison::new(&self.target.shape, self.codec, visible, events, self.checks)? else { return Ok(none()) };
        let mut says_so: HashMap<usize, bool> = HashMap::new();
        let stands = |(row, meets): (usize, &Meets)| {
            let event = meets.event()?;
            let (file, _) = found.places[row];
            let says_so = *says_so.entry(file).or_insert_with(|| self.search.says(file, MADE_OF, made_of));
            comparison.stands_for(event, row, says_so).then_some(event)
        };
        Ok(meets.iter().enumerate().map(stands).collect())
    }

    fn met(&self, found: Found, differing: Vec<bool>) -> LakeResult<Met> {
        let (visible, removed) = self.target.visible(&found.rows)?;
        Ok(Met { found, visible, removed, differing })
    }

    /// Whether there can be rows of which a part is enough.
    fn may_be_parts(&self, events: &Events, retained: &Events) -> bool {
        let Form::Current { order, soft_delete: false, keep_existing: false } = &self.target.shape.form else { return false };
        let concerns_all = |events: &Events| events.kinds.iter().any(|kind| kind.is_global());
        let has_order = self.target.shape.sequence || self.target.shape.positions;
        let is_plain =
            order.lead.is_empty() && !order.earliest && has_order && !self.target.grows && (!self.feed || self.made_of.is_some());
        is_plain && events.len() > SAMPLE && !concerns_all(events) && !concerns_all(retained)
    }

    /// What each visible row meets.
    fn meets(&self, visible: &Events, events: &Events, retained: &Events) -> Result<Vec<Meets>, ArrowError> {
        let shape = &self.target.shape;
        let encode = |events: &Events| self.codec.encode(&self.codec.columns_of(shape, &events.rows));
        let (of_visible, of_events, of_retained) = (encode(visible)?, encode(events)?, encode(retained)?);
        let other_keys = |of: &Events| of.other_key_columns().map(|columns| self.codec.encode(&columns)).transpose();
        let others = [(events, other_keys(events)?), (retained, other_keys(retained)?)];
        let mut keys: HashMap<Row<'_>, OfKey> = HashMap::with_capacity(events.len());
        for row in 0..events.len() {
            keys.entry(of_events.row(row)).and_modify(|key| key.event = None).or_insert(OfKey { event: Some(row), rows: 0 });
        }
        // The values of the other key of a key change may be handed over.
        let changed = others.iter().flat_map(|(of, others)| {
            let has_other = |row: &usize| of.has_other_key(*row);
            others.iter().flat_map(move |others| (0..of.len()).filter(has_other).map(|row| others.row(row)))
        });
        for key in (0..retained.len()).map(|row| of_retained.row(row)).chain(changed) {
            keys.entry(key).and_modify(|key| key.event = None);
        }
        (0..visible.len()).for_each(|row| _ = keys.get_mut(&of_visible.row(row)).map(|key| key.rows += 1));
        let later = Later::new(visible, events, shape.sequence)?;
        let meets = |row: usize| {
            let Some(OfKey { event: Some(event), rows: 1 }) = keys.get(&of_visible.row(row)).copied() else { return Meets::More };
            match events.kinds[event] {
                _ if events.has_other_key(event) => Meets::More,
                Kind::Upsert if later.is_later(event, row) && events.unwritten(event).is_none() => Meets::Upsert(event),
                Kind::Delete if later.is_later(event, row) || later.is_later_at_once(event, row) => Meets::Delete(event),
                _ => Meets::More,
            }
        };
        Ok((0..visible.len()).map(meets).collect())
    }

    /// Columns by how much they tell of the rows that are sampled for what they take, most first.
    fn telling(&self, whole: &Whole<'_>, sample: &[(usize, usize)], events: &Events) -> Result<Vec<usize>, ArrowError> {
        let shape = &self.target.shape;
        let [rows] = whole.rows.as_slice() else { return Ok(Vec::new()) };
        let of_sample: UInt32Array = sample.iter().filter_map(|(row, _)| whole.at.binary_search(row).ok()).map(|at| at as u32).collect();
        let rows = take_record_batch(rows, &of_sample)?;
        let mut telling = Vec::new();
        for column in (0..shape.schema.fields().len()).filter(|column| !shape.keys.contains(column)) {
            let differs = self.differs(column, &rows, sample.iter().map(|(_, event)| *event), events)?;
            let share = differs.iter().filter(|differs| **differs).count() as f64 / differs.len().max(1) as f64;
            if share >= DIFFERING_MIN {
                telling.push((self.search.column_bytes(shape.schema.field(column).name()) as f64 / share, column));
            }
        }
        telling.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(telling.into_iter().map(|(_, column)| column).collect())
    }

    /// Which of the rows differ in a column from an event each.
    fn differs(
        &self,
        column: usize,
        rows: &RecordBatch,
        of: impl Iterator<Item = usize>,
        events: &Events,
    ) -> Result<Vec<bool>, ArrowError> {
        let shape = &self.target.shape;
        let (visible, _) = self.target.visible(rows)?;
        let mut compare = Vec::new();
        for leaf in shape.leaves.of_column(column) {
            let value = |events: &Events| leaf_array(events.rows.column(column), &shape.leaves.get(leaf).path);
            compare.push(make_comparator(&value(&visible)?, &value(events)?, SortOptions::default())?);
        }
        Ok(of.enumerate().map(|(row, event)| compare.iter().any(|compare| compare(row, event).is_ne())).collect())
    }
}

impl Meets {
    fn upsert(self) -> Option<usize> {
        match self {
            Self::Upsert(event) => Some(event),
            Self::Delete(_) | Self::More => None,
        }
    }

    fn event(self) -> Option<usize> {
        match self {
            Self::Upsert(event) | Self::Delete(event) => Some(event),
            Self::More => None,
        }
    }
}

/// What is known of a key.
#[derive(Debug, Clone, Copy)]
struct OfKey {
    /// Its event, if there is nothing else of it.
    event: Option<usize>,
    /// How many visible rows it has.
    rows: usize,
}

/// Tells whether an event is later than a visible row in every order there is.
struct Later<'a> {
    /// Of the visible rows and of the events.
    sequences: Option<(Rows, Rows)>,
    positions: Option<(&'a StringArray, &'a StringArray)>,
}

impl<'a> Later<'a> {
    fn new(visible: &'a Events, events: &'a Events, sequence: bool) -> Result<Self, ArrowError> {
        let sequences = match (&visible.sequence, &events.sequence) {
            (Some(of_rows), Some(of_events)) if sequence => {
                let converter = RowConverter::new(vec![SortField::new(of_events.data_type().clone())])?;
                let encode = |array: &ArrayRef| converter.convert_columns(&[Arc::clone(array)]);
                Some((encode(of_rows)?, encode(of_events)?))
            }
            _ => None,
        };
        Ok(Self { sequences, positions: visible.position.as_ref().zip(events.position.as_ref()) })
    }

    fn is_later(&self, event: usize, row: usize) -> bool {
        let value = |array: &'a StringArray, at: usize| array.is_valid(at).then(|| array.value(at));
        let by_sequence = self.sequences.as_ref().is_none_or(|(of_rows, of_events)| of_events.row(event) > of_rows.row(row));
        let by_position = self.positions.is_none_or(|(of_rows, of_events)| value(of_events, event) > value(of_rows, row));
        by_sequence && by_position && (self.sequences.is_some() || self.positions.is_some())
    }

    /// Whether an event has the sequence of a visible row and a later position: a delete that carries the row it takes.
    fn is_later_at_once(&self, event: usize, row: usize) -> bool {
        let (Some((of_rows, of_events)), Some((row_positions, event_positions))) = (&self.sequences, self.positions) else { return false };
        let value = |array: &'a StringArray, at: usize| array.is_valid(at).then(|| array.value(at));
        of_events.row(event) == of_rows.row(row) && value(event_positions, event) > value(row_positions, row)
    }
}

/// Rows that are read whole.
struct Whole<'a> {
    search: &'a KeySearch,
    places: &'a [Place],
    schema: &'a SchemaRef,
    rows: Vec<RecordBatch>,
    /// Which of the rows found they are, in the order they were read.
    at: Vec<usize>,
}

impl Whole<'_> {
    /// Reads rows by their numbers, ascending.
    async fn read(&mut self, at: Vec<usize>) -> LakeResult<()> {
        if at.is_empty() && !self.rows.is_empty() {
            return Ok(());
        }
        let places: Vec<Place> = at.iter().map(|row| self.places[*row]).collect();
        self.rows.push(self.search.rows_at(&places, self.schema).await?);
        self.at.extend(at);
        Ok(())
    }

    /// All rows that were found: what was read of them is in `narrow`; where a row was not read whole the rest is as the before-image
    /// of its event has it, else null.
    fn beside(&self, narrow: &RecordBatch, stood_for: &[Option<usize>], events: &Events) -> Result<RecordBatch, ArrowError> {
        const NOWHERE: (usize, usize) = (2, 0);
        let rows = concat_batches(self.schema, &self.rows)?;
        let mut from: Vec<(usize, usize)> = stood_for.iter().map(|event| event.map_or(NOWHERE, |event| (1, event))).collect();
        self.at.iter().enumerate().for_each(|(at, row)| from[*row] = (0, at));
        let column = |(field, whole): (&Arc<Field>, &ArrayRef)| {
            if let Some(column) = narrow.column_by_name(field.name()) {
                return Ok(Arc::clone(column));
            }
            let null = new_null_array(field.data_type(), 1);
            let of_images = before_images::column(events, field.name()).map(|column| conform(column, field.data_type())).transpose()?;
            interleave(&[whole.as_ref(), of_images.as_ref().unwrap_or(&null).as_ref(), null.as_ref()], &from)
        };
        let columns = self.schema.fields().iter().zip(rows.columns()).map(column).collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<Field> = self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(narrow.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
    }
}

/// Columns of a table, those it has of these names.
fn projected<N: AsRef<str>>(schema: &SchemaRef, names: &[N]) -> SchemaRef {
    let named = |field: &&Arc<Field>| names.iter().any(|name| name.as_ref() == field.name());
    Arc::new(Schema::new(schema.fields().iter().filter(named).cloned().collect::<Vec<_>>()))
}
