//! Leaves: the smallest parts of a row that one event may write and another may not.
//!
//! A leaf is a top-level column, or, where nulls may mean "not written", a field of a struct. Arrays and maps are one leaf.

use std::ops::Range;
use std::sync::Arc;

use crate::arrow::array::{Array, ArrayRef, AsArray, make_array};
use crate::arrow::buffer::NullBuffer;
use crate::arrow::datatypes::{DataType, Schema};
use crate::arrow::error::ArrowError;

/// One leaf: a column and the way down into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Index of the top-level column.
    pub column: usize,
    /// Field indexes below it; empty for the column itself.
    pub path: Vec<usize>,
    /// `column` or `column.field.field`.
    pub name: String,
}

/// All leaves of a row, in the order of its columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaves {
    all: Vec<Leaf>,
    of_column: Vec<Range<usize>>,
}

impl Leaves {
    /// The leaves of `schema`; structs are split into their fields where `split` says so.
    pub fn new(schema: &Schema, split: bool) -> Self {
        let mut leaves = Self::default();
        for (column, field) in schema.fields().iter().enumerate() {
            let first = leaves.all.len();
            leaves.add(column, Vec::new(), field.name().clone(), field.data_type(), split);
            leaves.of_column.push(first..leaves.all.len());
        }
        leaves
    }

    fn add(&mut self, column: usize, path: Vec<usize>, name: String, data_type: &DataType, split: bool) {
        match data_type {
            DataType::Struct(fields) if split && !fields.is_empty() => {
                for (at, field) in fields.iter().enumerate() {
                    let path = path.iter().copied().chain([at]).collect();
                    self.add(column, path, format!("{name}.{}", field.name()), field.data_type(), split);
                }
            }
            _ => self.all.push(Leaf { column, path, name }),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Every leaf.
    pub fn iter(&self) -> impl Iterator<Item = &Leaf> {
        self.all.iter()
    }

    /// One leaf.
    pub fn get(&self, leaf: usize) -> &Leaf {
        &self.all[leaf]
    }

    /// The leaves of a top-level column.
    pub fn of_column(&self, column: usize) -> Range<usize> {
        self.of_column[column].clone()
    }
}

/// The values of a leaf in a column: null where the leaf or anything above it is null.
pub(crate) fn leaf_array(column: &ArrayRef, path: &[usize]) -> Result<ArrayRef, ArrowError> {
    let Some((&field, rest)) = path.split_first() else { return Ok(Arc::clone(column)) };
    let parent = column.as_struct();
    let child = parent.column(field);
    let nulls = NullBuffer::union(parent.nulls(), child.nulls());
    let masked = make_array(child.to_data().into_builder().nulls(nulls).build()?);
    leaf_array(&masked, rest)
}

/// A set of leaves. The empty set allocates nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LeafSet(Vec<u64>);

impl LeafSet {
    /// Every leaf below `count`.
    pub fn all(count: usize) -> Self {
        let mut set = Self::default();
        (0..count).for_each(|leaf| set.insert(leaf));
        set
    }

    /// Adds a leaf.
    pub fn insert(&mut self, leaf: usize) {
        let word = leaf / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (leaf % 64);
    }

    /// Takes a leaf out.
    pub fn remove(&mut self, leaf: usize) {
        if let Some(word) = self.0.get_mut(leaf / 64) {
            *word &= !(1 << (leaf % 64));
        }
    }

    /// Whether it has the leaf.
    pub fn contains(&self, leaf: usize) -> bool {
        self.0.get(leaf / 64).is_some_and(|word| word & (1 << (leaf % 64)) != 0)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// As bytes, for [`Self::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The set that [`Self::to_bytes`] gave the bytes of.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Its leaves, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| at * 64 + bit))
    }
}

impl FromIterator<usize> for LeafSet {
    fn from_iter<I: IntoIterator<Item = usize>>(leaves: I) -> Self {
        let mut set = Self::default();
        leaves.into_iter().for_each(|leaf| set.insert(leaf));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::array::{Int32Array, StructArray};
    use crate::arrow::datatypes::Field;

    fn schema() -> Schema {
        let inner = DataType::Struct(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Int32, true)].into());
        Schema::new(vec![
            Field::new("id", DataType::Int32, true),
            Field::new("point", inner, true),
            Field::new_list("tags", Field::new_list_field(DataType::Utf8, true), true),
        ])
    }

    #[test]
    fn structs_are_split_into_fields_and_arrays_stay_whole() {
        let names: Vec<_> = Leaves::new(&schema(), true).iter().map(|leaf| leaf.name.clone()).collect();
        assert_eq!(names, ["id", "point.x", "point.y", "tags"]);
        assert_eq!(Leaves::new(&schema(), true).of_column(1), 1..3);
        assert_eq!(Leaves::new(&schema(), false).len(), 3);
    }

    #[test]
    fn a_leaf_below_a_null_struct_is_null() {
        let x = Arc::new(Int32Array::from(vec![Some(1), Some(2)])) as ArrayRef;
        let points =
            StructArray::new(vec![Field::new("x", DataType::Int32, true)].into(), vec![x], Some(NullBuffer::from(vec![true, false])));
        let leaf = leaf_array(&(Arc::new(points) as ArrayRef), &[0]).unwrap();
        assert!(leaf.is_valid(0) && leaf.is_null(1));
    }

    #[test]
    fn sets_hold_leaves_beyond_the_first_word() {
        let mut set: LeafSet = [3, 70].into_iter().collect();
        assert!(set.contains(70) && set.contains(3) && !set.contains(4) && !set.contains(1000));
        set.remove(70);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3]);
        set.remove(3);
        assert!(set.is_empty());
        assert_eq!(LeafSet::all(66).iter().count(), 66);
    }
}
