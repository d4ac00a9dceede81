//! What events say their rows were before, and when that stands for the table's row.
//!
//! The change feed shows a row before it changes. Where the source sends the whole old row, the values are in the event already, if
//! only the table's row is that one. It need not be: an event between the two may be late, lost, in quarantine or filtered out; the
//! row may be of another query, of fewer columns, or changed by another engine. What must stay true:
//!
//! - The declaration says that no two images of a row have one sequence (`tributary.sequence.unique`), and the sequence of the before-image
//!   is that of the table's row. So the two are of one moment.
//! - The row stands for one event that wrote all of it: nothing is retained of its key.
//! - Every column of the table is a column of the source as it is, and the row's file says that it was made of this very source by
//!   these very columns; a file that anybody else wrote, maintenance included, does not say so.
//! - The before-image has the event's key, and the event leaves the row different (S7).
//!
//! A row of which one of these does not hold is read.

use std::sync::Arc;

use crate::arrow::array::{Array, ArrayRef, AsArray, StructArray, make_comparator};
use crate::arrow::buffer::NullBuffer;
use crate::arrow::compute::SortOptions;
use crate::arrow::datatypes::{DataType, Field, Fields};
use crate::arrow::error::ArrowError;
use crate::arrow::row::{RowConverter, SortField};
use crate::carry::RIDER;
use crate::conform::conform;
use crate::events::{Events, Kind};
use crate::keys::KeyCodec;
use crate::leaves::leaf_array;
use crate::select::{Compiled, Selection};
use crate::shape::Shape;
use crate::source::{Delivery, Source};
use tributary_specs::{IgnoreNullUpdates, MergePolicy, SilverSpec};

/// The column of a change table that holds the old row.
pub(crate) const BEFORE: &str = "_before";

/// What a data file says about where its rows come from, in its footer.
pub(crate) const MADE_OF: &str = "tributary.made_of";

/// The name of the sequence among the columns of a before-image.
const SEQUENCE: &str = "__sequence";

/// How the columns of a table are found in the old rows that its source sends.
#[derive(Debug)]
pub(crate) struct BeforeImages {
    /// Column of the query → column of the source.
    same_as: Vec<(String, String)>,
    /// The columns of the source that are the sequence.
    sequence: Vec<String>,
    source: String,
}

/// Whether a dataset declares what before-images need to stand for rows.
pub(crate) fn are_declared(spec: &SilverSpec) -> bool {
    spec.has_unique_sequence()
        && matches!(spec.policy, MergePolicy::ScdType1 | MergePolicy::LastWriterWins)
        && spec.deletes.soft_delete_column.is_none()
        && spec.ignore_null_updates == IgnoreNullUpdates::Off
}

impl BeforeImages {
    /// None where the old rows that the source sends cannot stand for rows of the table.
    pub fn of(spec: &SilverSpec, source: &Source, selection: &Selection, sequence: &[Compiled]) -> Option<Self> {
        if !are_declared(spec) || source.delivery != Delivery::Changes || sequence.is_empty() {
            return None;
        }
        let schema = source.table.schema();
        let DataType::Struct(fields) = schema.field_with_name(BEFORE).ok()?.data_type() else { return None };
        let of_source = |name: &str| {
            let name = name.strip_prefix(RIDER).unwrap_or(name);
            fields.iter().any(|field| field.name() == name).then(|| name.to_owned())
        };
        let columns = selection.columns.iter().zip(&selection.origins);
        let same_as = columns.map(|(column, origin)| Some((column.name.clone(), of_source(origin.same_as.as_deref()?)?)));
        let of_sequence = |compiled: &Compiled| {
            let name = compiled.column.as_deref()?;
            match selection.position(name) {
                Some(at) => of_source(selection.origins[at].same_as.as_deref()?),
                None => of_source(name),
            }
        };
        Some(Self {
            same_as: same_as.collect::<Option<_>>()?,
            sequence: sequence.iter().map(of_sequence).collect::<Option<_>>()?,
            source: format!("{} {}", source.name(), source.table.identity()),
        })
    }

    /// What a file of rows made of the source by these columns says of itself.
    pub fn made_of(&self, shape: &Shape) -> String {
        let column = |field: &Arc<Field>| {
            let of = self.source_column(field.name()).unwrap_or_default();
            format!("{}={of} {}", field.name(), field.data_type())
        };
        let columns: Vec<String> = shape.schema.fields().iter().map(column).collect();
        format!("{}: {}; sequence {}", self.source, columns.join(", "), self.sequence.join(", "))
    }

    fn source_column(&self, column: &str) -> Option<&str> {
        self.same_as.iter().find(|(name, _)| name.eq_ignore_ascii_case(column)).map(|(_, source)| source.as_str())
    }

    /// Old rows as the table has rows, the sequence behind them; none where the table has a column that the query does not yield.
    ///
    /// # Errors
    /// When a value does not have the table's type.
    pub fn of_rows(&self, before: &StructArray, shape: &Shape, sequence: &DataType) -> Result<Option<StructArray>, ArrowError> {
        let of_source = |name: &str| before.column_by_name(name).cloned();
        let mut fields: Vec<Field> = Vec::new();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for field in shape.schema.fields() {
            let Some(column) = self.source_column(field.name()).and_then(of_source) else { return Ok(None) };
            fields.push(field.as_ref().clone().with_nullable(true));
            columns.push(conform(&column, field.data_type())?);
        }
        let Some(parts) = self.sequence.iter().map(|name| of_source(name)).collect::<Option<Vec<_>>>() else { return Ok(None) };
        columns.push(match (parts.as_slice(), sequence) {
            ([one], _) => conform(one, sequence)?,
            (parts, DataType::Struct(fields)) => {
                let cast = |(array, field): (&ArrayRef, &Arc<Field>)| conform(array, field.data_type());
                let parts = parts.iter().zip(fields).map(cast).collect::<Result<Vec<_>, _>>()?;
                let nulls = parts.iter().fold(None, |nulls, part| NullBuffer::union(nulls.as_ref(), part.logical_nulls().as_ref()));
                Arc::new(StructArray::try_new(fields.clone(), parts, nulls)?)
            }
            _ => return Ok(None),
        });
        fields.push(Field::new(SEQUENCE, sequence.clone(), true));
        StructArray::try_new(Fields::from(fields), columns, before.nulls().cloned()).map(Some)
    }
}

/// Compares what events say their rows were with rows of the table.
pub(crate) struct Comparison<'a> {
    before: &'a StructArray,
    events: &'a Events,
    /// For each event whether the before-image has its key.
    has_key: Vec<bool>,
    /// Sequences of the before-images and of the table's rows, encoded.
    sequences: (crate::arrow::row::Rows, crate::arrow::row::Rows),
    /// Sequences that are null.
    visible_sequence: &'a ArrayRef,
    leaves: Vec<crate::arrow::array::DynComparator>,
    /// Only a control says no.
    checks: bool,
}

impl<'a> Comparison<'a> {
    /// None where no event has a before-image.
    ///
    /// # Errors
    /// When a column has a type without an order.
    pub fn new(shape: &Shape, codec: &KeyCodec, visible: &'a Events, events: &'a Events, checks: bool) -> Result<Option<Self>, ArrowError> {
        let (Some(before), Some(visible_sequence)) = (&events.before, &visible.sequence) else { return Ok(None) };
        let Some(sequence) = before.columns().last().filter(|_| before.null_count() < before.len()) else { return Ok(None) };
        let encode = |columns: Vec<ArrayRef>| codec.encode(&columns);
        let of_images = encode(shape.keys.iter().map(|key| Arc::clone(before.column(*key))).collect())?;
        let of_events = encode(codec.columns_of(shape, &events.rows))?;
        let converter = RowConverter::new(vec![SortField::new(sequence.data_type().clone())])?;
        let sequences = |array: &ArrayRef| converter.convert_columns(&[Arc::clone(array)]);
        let mut leaves = Vec::new();
        for leaf in (0..shape.leaves.len()).map(|leaf| shape.leaves.get(leaf)).filter(|leaf| !shape.keys.contains(&leaf.column)) {
            let (old, new) =
                (leaf_array(before.column(leaf.column), &leaf.path)?, leaf_array(events.rows.column(leaf.column), &leaf.path)?);
            leaves.push(make_comparator(&old, &new, SortOptions::default())?);
        }
        Ok(Some(Self {
            before,
            events,
            has_key: (0..events.len()).map(|row| of_images.row(row) == of_events.row(row)).collect(),
            sequences: (sequences(sequence)?, sequences(visible_sequence)?),
            visible_sequence,
            leaves,
            checks,
        }))
    }

    /// Whether the before-image of an event stands for a visible row, whose file says what it is made of or not.
    pub fn stands_for(&self, event: usize, row: usize, says_so: bool) -> bool {
        let (of_images, of_rows) = &self.sequences;
        let one_moment = self.visible_sequence.is_valid(row) && of_images.row(event) == of_rows.row(row);
        let changes = || self.events.kinds[event] == Kind::Delete || self.leaves.iter().any(|compare| compare(event, event).is_ne());
        self.before.is_valid(event) && self.has_key[event] && (!self.checks || (says_so && one_moment)) && changes()
    }
}

/// A column of the before-images; none where they have no such column.
pub(crate) fn column<'a>(events: &'a Events, name: &str) -> Option<&'a ArrayRef> {
    events.before.as_ref()?.column_by_name(name)
}

/// What change events of a batch say their rows were, as they stand in the source.
pub(crate) fn riding(rider: Option<&ArrayRef>) -> Option<&StructArray> {
    rider.and_then(|array| array.as_struct_opt()).filter(|before| before.null_count() < before.len())
}
