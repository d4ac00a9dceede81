//! Orders and changes to them, the same for the same seed.
//!
//! The rows of a table have the even keys, so that a new order can lie between any two of them.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Result;
use tributary_lake::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    UInt32Array,
};
use tributary_lake::arrow::compute::take;
use tributary_lake::arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};

/// Everything random begins with it.
pub const SEED: u64 = 20_261_130;
/// Customers who order: their keys are below it.
pub const CUSTOMERS: u64 = 500_000;
/// Where the changes of a snapshot are.
pub const SNAPSHOT_POSITION: &str = "000000/00000000000000000001/00000000000000000001";

const STATUSES: [&str; 6] = ["placed", "paid", "packed", "shipped", "delivered", "returned"];
const WORDS: [&str; 16] = [
    "leave",
    "at",
    "door",
    "ring",
    "twice",
    "gift",
    "wrap",
    "fragile",
    "call",
    "first",
    "after",
    "noon",
    "neighbour",
    "garage",
    "thanks",
    "urgent",
];

/// A generator of numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(mixed(seed ^ SEED))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Any order of the values, each as likely.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The key of the row number `index` in key order.
pub fn key(index: u64) -> i64 {
    2 * index as i64
}

/// The business columns of orders; `generation` counts the changes of an order, 0 as it was made.
pub fn orders(keys: &[i64], generation: u64) -> Result<RecordBatch> {
    let made: Vec<Random> = keys.iter().map(|key| Random::new(*key as u64)).collect();
    let changed = || keys.iter().map(|key| Random::new((*key as u64) ^ (generation << 48)));
    let longs = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let integers = |values: Vec<i32>| Arc::new(Int32Array::from(values)) as ArrayRef;
    let of_made = |salt: u64, end: u64| made.iter().map(move |random| mixed(random.0 ^ salt) % end);
    let quantities: Vec<i32> = changed().map(|mut random| 1 + random.below(20) as i32).collect();
    let prices: Vec<i128> = of_made(3, 50_000).map(|cents| i128::from(cents) + 99).collect();
    let amounts: Vec<i128> = prices.iter().zip(&quantities).map(|(price, quantity)| price * i128::from(*quantity)).collect();
    let placed = |key: &i64| 1_700_000_000_000_000 + key * 1_500_000;
    let instants = |values: Vec<i64>| Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC")) as ArrayRef;
    let decimals = |values: Vec<i128>| -> Result<ArrayRef> { Ok(Arc::new(Decimal128Array::from(values).with_precision_and_scale(12, 2)?)) };
    let updated =
        |(key, mut random): (&i64, Random)| placed(key) + (generation * 3_600_000_000) as i64 + random.below(3_600_000_000) as i64;
    let columns: Vec<ArrayRef> = vec![
        longs(keys.to_vec()),
        longs(of_made(1, CUSTOMERS).map(|customer| customer as i64).collect()),
        integers(of_made(2, 500).map(|store| store as i32).collect()),
        integers(quantities),
        decimals(prices)?,
        decimals(amounts)?,
        instants(keys.iter().map(placed).collect()),
        instants(keys.iter().zip(changed()).map(updated).collect()),
        Arc::new(Date32Array::from_iter_values(keys.iter().map(|key| (placed(key) / 86_400_000_000) as i32 + 2))),
        Arc::new(StringArray::from_iter_values(changed().map(|mut random| STATUSES[random.below(6) as usize]))),
        Arc::new(StringArray::from_iter_values(changed().map(note))),
    ];
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields())), columns)?)
}

fn note(mut random: Random) -> String {
    let words: Vec<&str> = (0..1 + random.below(4)).map(|_| WORDS[random.below(16) as usize]).collect();
    words.join(" ")
}

fn fields() -> Fields {
    let instant = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    [
        ("order_id", DataType::Int64),
        ("customer_id", DataType::Int64),
        ("store_id", DataType::Int32),
        ("quantity", DataType::Int32),
        ("price", DataType::Decimal128(12, 2)),
        ("amount", DataType::Decimal128(12, 2)),
        ("placed_at", instant()),
        ("updated_at", instant()),
        ("ship_day", DataType::Date32),
        ("status", DataType::Utf8),
        ("note", DataType::Utf8),
    ]
    .map(|(name, data_type)| Field::new(name, data_type, true))
    .into_iter()
    .collect()
}

/// Where in the table the changed keys lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Anywhere.
    Scattered,
    /// Among the greatest; new ones above them.
    Recent,
}

/// A batch of changes: each of another key.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    pub spread: Spread,
    pub changes: u64,
    /// The rows of the table they go to.
    pub rows: u64,
    /// Batches of different numbers below ten have no key in common, as long as they are scattered.
    pub number: u64,
    /// Whether an update or delete says what the row was before; a delete that does not has nothing but its key.
    pub before_images: bool,
}

/// How many changes of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds {
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

impl Batch {
    /// 15 of 100 are new, 5 are gone, the others change.
    pub fn kinds(&self) -> Kinds {
        let (inserted, deleted) = (self.changes * 15 / 100, self.changes * 5 / 100);
        Kinds { inserted, deleted, updated: self.changes - inserted - deleted }
    }

    /// The rows of a bronze change table.
    pub fn bronze(&self) -> Result<RecordBatch> {
        let (keys, ops) = self.drawn();
        let after = orders(&keys, 1 + self.number)?;
        let before = StructArray::from(orders(&keys, 0)?);
        let nothing = tributary_lake::arrow::array::new_null_array(&DataType::Struct(fields()), keys.len());
        let places = |null: &dyn Fn(&str) -> bool| -> UInt32Array {
            ops.iter().enumerate().map(|(row, op)| (!null(op)).then_some(row as u32)).collect()
        };
        let shown: ArrayRef = if self.before_images { take(&before, &places(&|op| op == "create"), None)? } else { nothing };
        let mut fields: Vec<Field> = fields().iter().map(|field| field.as_ref().clone()).collect();
        let mut columns = Vec::new();
        for (at, column) in after.columns().iter().enumerate() {
            let is_key = at == 0;
            columns.push(match self.before_images {
                // a deleted row is as it was before
                true => {
                    let rows: Vec<(usize, usize)> = ops.iter().enumerate().map(|(row, op)| (usize::from(*op == "delete"), row)).collect();
                    tributary_lake::arrow::compute::interleave(&[column.as_ref(), before.column(at).as_ref()], &rows)?
                }
                false => take(column, &places(&|op| op == "delete" && !is_key), None)?,
            });
        }
        fields.push(Field::new("_op", DataType::Utf8, false));
        columns.push(Arc::new(StringArray::from(ops)));
        fields.push(Field::new("_position", DataType::Utf8, true));
        columns.push(self.positions(keys.len()));
        fields.push(Field::new("_before", shown.data_type().clone(), true));
        columns.push(shown);
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// The same changes as the rows of a table with `_op` beside them.
    pub fn plain(&self) -> Result<RecordBatch> {
        let (keys, ops) = self.drawn();
        let after = orders(&keys, 1 + self.number)?;
        let mut fields: Vec<Field> = after.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        let mut columns = after.columns().to_vec();
        fields.push(Field::new("__position", DataType::Utf8, true));
        columns.push(self.positions(keys.len()));
        fields.push(Field::new("_op", DataType::Utf8, false));
        columns.push(Arc::new(StringArray::from(ops)));
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    fn positions(&self, count: usize) -> ArrayRef {
        let first = 1_000_000_000 * (1 + self.number);
        Arc::new(StringArray::from_iter_values((0..count as u64).map(|row| format!("000000/{0:020}/{0:020}", first + row))))
    }

    /// Keys and what happens to each, in the order of the source.
    fn drawn(&self) -> (Vec<i64>, Vec<&'static str>) {
        let Kinds { inserted, updated, deleted } = self.kinds();
        let mut random = Random::new(0xC4A6 + self.number + ((self.spread == Spread::Recent) as u64) * 1000);
        let old = self.indexes(&mut random, updated + deleted);
        let mut changes: Vec<(i64, &str)> = old.into_iter().map(|index| (key(index), "update")).collect();
        for change in changes.iter_mut().take(deleted as usize) {
            change.1 = "delete";
        }
        changes.extend(match self.spread {
            Spread::Scattered => {
                self.indexes(&mut random, inserted).into_iter().map(|index| (key(index) + 1, "create")).collect::<Vec<_>>()
            }
            Spread::Recent => (0..inserted).map(|new| (key(self.rows + new), "create")).collect(),
        });
        random.shuffle(&mut changes);
        changes.into_iter().unzip()
    }

    /// Different rows of the table.
    fn indexes(&self, random: &mut Random, count: u64) -> Vec<u64> {
        let mut taken = HashSet::new();
        let mut indexes = Vec::with_capacity(count as usize);
        while (indexes.len() as u64) < count {
            let index = match self.spread {
                Spread::Scattered => random.below(self.rows / 10) * 10 + self.number % 10,
                Spread::Recent => self.rows - 1 - random.below((2 * count).min(self.rows)),
            };
            if taken.insert(index) {
                indexes.push(index);
            }
        }
        indexes
    }
}
