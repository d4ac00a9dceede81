//! Statistics of a data file as the log carries them.
//!
//! What must stay true: a reader that skips files by these numbers never skips a row it was asked for.
//! - Times are kept to the millisecond: the minimum rounded down, the maximum up.
//! - Long texts are cut at [`TEXT_CHARS_MAX`] characters; a cut maximum ends in the greatest character there is.
//! - A column with a NaN has no bounds (readers do not agree where NaN sorts); neither has an infinite bound.
//! - Decimals are JSON numbers with exactly the declared digits after the point, never through a float.
//! - A bound that cannot be written is left out; the null count still says that there are values.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, make_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{max, max_string, min, min_string};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Fields, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Schema, TimeUnit, TimestampMicrosecondType,
};

use crate::Result;
use crate::partition::{date_text, time_of};

/// Characters of a text that bounds keep.
const TEXT_CHARS_MAX: usize = 32;

/// Leaf columns that get statistics when the table says nothing.
const LEAVES_DEFAULT: usize = 32;

/// Which columns of a table get statistics.
#[derive(Debug, Clone)]
pub(crate) enum StatsColumns {
    /// The first leaves in schema order.
    First(usize),
    /// Every leaf at or below these paths.
    Named(Vec<Vec<String>>),
}

impl StatsColumns {
    /// From `delta.dataSkippingStatsColumns`, else `delta.dataSkippingNumIndexedCols` (-1 = all), else the first 32.
    pub(crate) fn of(properties: &BTreeMap<String, String>) -> Self {
        if let Some(list) = properties.get("delta.dataSkippingStatsColumns") {
            return Self::Named(column_paths(list));
        }
        match properties.get("delta.dataSkippingNumIndexedCols").and_then(|count| count.trim().parse::<i64>().ok()) {
            Some(count) => Self::First(usize::try_from(count).unwrap_or(usize::MAX)),
            None => Self::First(LEAVES_DEFAULT),
        }
    }
}

/// `` a, b.c, `d.e`.f `` as paths of names.
fn column_paths(list: &str) -> Vec<Vec<String>> {
    let mut paths = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = list.chars().peekable();
    while let Some(character) = characters.next() {
        let Some(name) = paths.last_mut().and_then(|path| path.last_mut()) else { break };
        match character {
            '`' if quoted && characters.peek() == Some(&'`') => {
                characters.next();
                name.push('`');
            }
            '`' => quoted = !quoted,
            ',' if !quoted => paths.push(vec![String::new()]),
            '.' if !quoted => {
                if let Some(path) = paths.last_mut() {
                    path.push(String::new());
                }
            }
            _ if character.is_whitespace() && !quoted => {}
            _ => name.push(character),
        }
    }
    paths.retain(|path| path.iter().all(|name| !name.is_empty()));
    paths
}

/// Gathers the statistics of one file while its rows are written.
#[derive(Debug)]
pub(crate) struct StatsCollector {
    rows: u64,
    leaves: Vec<Leaf>,
}

#[derive(Debug)]
struct Leaf {
    path: Vec<String>,
    indices: Vec<usize>,
    nulls: u64,
    bounds: Bounds,
}

#[derive(Debug)]
enum Bounds {
    /// The type has none.
    Never,
    Whole(WholeKind, Range<i64>),
    Decimal {
        scale: i8,
        range: Range<i128>,
    },
    Single {
        nan: bool,
        range: Range<f32>,
    },
    Double {
        nan: bool,
        range: Range<f64>,
    },
    Text(Range<String>),
}

#[derive(Debug, Clone, Copy)]
enum WholeKind {
    Number,
    Date,
    Instant,
    WallClock,
}

type Range<T> = Option<(T, T)>;

impl StatsCollector {
    /// For files of this schema (partition columns left out). Columns at or below `always` get statistics in any case.
    pub(crate) fn new(schema: &Schema, columns: &StatsColumns, always: &[String]) -> Self {
        let mut leaves = Vec::new();
        collect_leaves(schema.fields(), &mut Vec::new(), &mut Vec::new(), &mut leaves);
        let mut position = 0;
        leaves.retain(|leaf: &Leaf| {
            position += 1;
            let chosen = match columns {
                StatsColumns::First(count) => position <= *count,
                StatsColumns::Named(paths) => paths.iter().any(|path| is_below(&leaf.path, path)),
            };
            chosen || always.iter().any(|name| is_below(&leaf.path, std::slice::from_ref(name)))
        });
        Self { rows: 0, leaves }
    }

    /// Takes in rows; their schema is the one the collector was made for.
    pub(crate) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        for leaf in &mut self.leaves {
            let array = leaf_array(batch, &leaf.indices)?;
            leaf.nulls += array.null_count() as u64;
            leaf.bounds.update(&array);
        }
        Ok(())
    }

    /// Delta's `stats` text.
    pub(crate) fn json(&self) -> String {
        let mut minimums = Object::default();
        let mut maximums = Object::default();
        let mut nulls = Object::default();
        for leaf in &self.leaves {
            nulls.set(&leaf.path, leaf.nulls.to_string());
            if let Some(minimum) = leaf.bounds.minimum() {
                minimums.set(&leaf.path, minimum);
            }
            if let Some(maximum) = leaf.bounds.maximum() {
                maximums.set(&leaf.path, maximum);
            }
        }
        format!(
            r#"{{"numRecords":{},"minValues":{},"maxValues":{},"nullCount":{},"tightBounds":true}}"#,
            self.rows,
            minimums.json(),
            maximums.json(),
            nulls.json()
        )
    }
}

fn is_below(leaf: &[String], path: &[String]) -> bool {
    leaf.len() >= path.len() && leaf.iter().zip(path).all(|(name, part)| name.eq_ignore_ascii_case(part))
}

fn collect_leaves(fields: &Fields, path: &mut Vec<String>, indices: &mut Vec<usize>, leaves: &mut Vec<Leaf>) {
    for (index, field) in fields.iter().enumerate() {
        path.push(field.name().clone());
        indices.push(index);
        match field.data_type() {
            DataType::Struct(inner) => collect_leaves(inner, path, indices, leaves),
            data_type => leaves.push(Leaf { path: path.clone(), indices: indices.clone(), nulls: 0, bounds: Bounds::of(data_type) }),
        }
        path.pop();
        indices.pop();
    }
}

/// A column or a field below it, null wherever a parent is null.
fn leaf_array(batch: &RecordBatch, indices: &[usize]) -> Result<ArrayRef> {
    let mut indices = indices.iter();
    let mut array = ArrayRef::clone(batch.column(indices.next().copied().unwrap_or_default()));
    for index in indices {
        let parent = array.as_struct();
        let child = ArrayRef::clone(parent.column(*index));
        array = if parent.null_count() == 0 {
            child
        } else {
            let nulls = NullBuffer::union(parent.nulls(), child.nulls());
            make_array(child.to_data().into_builder().nulls(nulls).build()?)
        };
    }
    Ok(array)
}

impl Bounds {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Whole(WholeKind::Number, None),
            DataType::Date32 => Self::Whole(WholeKind::Date, None),
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Self::Whole(WholeKind::Instant, None),
            DataType::Timestamp(TimeUnit::Microsecond, None) => Self::Whole(WholeKind::WallClock, None),
            DataType::Decimal128(_, scale) => Self::Decimal { scale: *scale, range: None },
            DataType::Float32 => Self::Single { nan: false, range: None },
            DataType::Float64 => Self::Double { nan: false, range: None },
            DataType::Utf8 => Self::Text(None),
            _ => Self::Never,
        }
    }

    fn update(&mut self, array: &dyn Array) {
        match self {
            Self::Never => {}
            Self::Whole(_, range) => {
                let seen = match array.data_type() {
                    DataType::Int8 => whole_range::<Int8Type>(array),
                    DataType::Int16 => whole_range::<Int16Type>(array),
                    DataType::Int32 => whole_range::<Int32Type>(array),
                    DataType::Int64 => whole_range::<Int64Type>(array),
                    DataType::Date32 => whole_range::<Date32Type>(array),
                    _ => whole_range::<TimestampMicrosecondType>(array),
                };
                widen(range, seen);
            }
            Self::Decimal { range, .. } => {
                let array = array.as_primitive::<Decimal128Type>();
                widen(range, min(array).zip(max(array)));
            }
            Self::Single { nan, range } => {
                for value in array.as_primitive::<Float32Type>().iter().flatten() {
                    *nan |= value.is_nan();
                    widen(range, Some((value, value)));
                }
            }
            Self::Double { nan, range } => {
                for value in array.as_primitive::<Float64Type>().iter().flatten() {
                    *nan |= value.is_nan();
                    widen(range, Some((value, value)));
                }
            }
            Self::Text(range) => {
                let array = array.as_string::<i32>();
                if let (Some(least), Some(greatest)) = (min_string(array), max_string(array)) {
                    match range {
                        None => *range = Some((least.to_owned(), greatest.to_owned())),
                        Some((low, high)) => {
                            if least < low.as_str() {
                                *low = least.to_owned();
                            }
                            if greatest > high.as_str() {
                                *high = greatest.to_owned();
                            }
                        }
                    }
                }
            }
        }
    }

    /// As JSON, or none when there is none that can be written.
    fn minimum(&self) -> Option<String> {
        match self {
            Self::Never | Self::Single { nan: true, .. } | Self::Double { nan: true, .. } => None,
            Self::Whole(WholeKind::Number, range) => Some(range.as_ref()?.0.to_string()),
            Self::Whole(WholeKind::Date, range) => quoted_date(range.as_ref()?.0),
            Self::Whole(kind, range) => quoted_time(*kind, range.as_ref()?.0.div_euclid(1000)),
            Self::Decimal { scale, range } => decimal_text(range.as_ref()?.0, *scale),
            // Both zeros are equal in SQL but not in every reader's order: the bounds take in both.
            Self::Single { range, .. } => float_text(f64::from(range.as_ref()?.0), format!("{:?}", range.as_ref()?.0), "-0.0"),
            Self::Double { range, .. } => float_text(range.as_ref()?.0, format!("{:?}", range.as_ref()?.0), "-0.0"),
            Self::Text(range) => Some(serde_json::Value::from(cut(&range.as_ref()?.0).0).to_string()),
        }
    }

    /// As [`Self::minimum`].
    fn maximum(&self) -> Option<String> {
        match self {
            Self::Never | Self::Single { nan: true, .. } | Self::Double { nan: true, .. } => None,
            Self::Whole(WholeKind::Number, range) => Some(range.as_ref()?.1.to_string()),
            Self::Whole(WholeKind::Date, range) => quoted_date(range.as_ref()?.1),
            Self::Whole(kind, range) => {
                quoted_time(*kind, range.as_ref()?.1.div_euclid(1000) + i64::from(range.as_ref()?.1.rem_euclid(1000) != 0))
            }
            Self::Decimal { scale, range } => decimal_text(range.as_ref()?.1, *scale),
            Self::Single { range, .. } => float_text(f64::from(range.as_ref()?.1), format!("{:?}", range.as_ref()?.1), "0.0"),
            Self::Double { range, .. } => float_text(range.as_ref()?.1, format!("{:?}", range.as_ref()?.1), "0.0"),
            Self::Text(range) => greatest_cut(&range.as_ref()?.1).map(|text| serde_json::Value::from(text).to_string()),
        }
    }
}

fn whole_range<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array) -> Range<i64>
where
    T::Native: arrow::array::ArrowNativeTypeOp,
{
    let array = array.as_primitive::<T>();
    min(array).zip(max(array)).map(|(least, greatest)| (least.into(), greatest.into()))
}

fn widen<T: PartialOrd>(range: &mut Range<T>, seen: Range<T>) {
    let Some((least, greatest)) = seen else { return };
    match range {
        None => *range = Some((least, greatest)),
        Some((low, high)) => {
            if least < *low {
                *low = least;
            }
            if greatest > *high {
                *high = greatest;
            }
        }
    }
}

fn quoted_date(days: i64) -> Option<String> {
    date_text(i32::try_from(days).ok()?).map(|date| format!("\"{date}\""))
}

fn quoted_time(kind: WholeKind, millis: i64) -> Option<String> {
    let time = time_of(millis.checked_mul(1000)?)?;
    let zone = if matches!(kind, WholeKind::Instant) { "Z" } else { "" };
    Some(format!("\"{}{zone}\"", time.format("%Y-%m-%dT%H:%M:%S%.3f")))
}

fn decimal_text(unscaled: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let sign = if unscaled < 0 { "-" } else { "" };
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

fn float_text(value: f64, text: String, zero: &str) -> Option<String> {
    if value == 0.0 {
        return Some(zero.to_owned());
    }
    value.is_finite().then_some(text)
}

/// The first characters, and whatever is cut off.
fn cut(text: &str) -> (&str, &str) {
    text.char_indices().nth(TEXT_CHARS_MAX).map_or((text, ""), |(end, _)| text.split_at(end))
}

/// A short text that is not less than `text`; none when no character is great enough to end it.
fn greatest_cut(text: &str) -> Option<String> {
    let (kept, rest) = cut(text);
    match rest.chars().next() {
        None => Some(kept.to_owned()),
        Some(char::MAX) => None,
        Some(_) => Some(format!("{kept}{}", char::MAX)),
    }
}

/// A JSON object in the making, in the order of insertion.
#[derive(Debug, Default)]
struct Object(Vec<(String, Node)>);

#[derive(Debug)]
enum Node {
    Value(String),
    Object(Object),
}

impl Object {
    fn set(&mut self, path: &[String], value: String) {
        let Some((name, rest)) = path.split_first() else { return };
        if rest.is_empty() {
            self.0.push((name.clone(), Node::Value(value)));
            return;
        }
        match self.0.last_mut() {
            Some((last, Node::Object(inner))) if last == name => inner.set(rest, value),
            _ => {
                let mut inner = Self::default();
                inner.set(rest, value);
                self.0.push((name.clone(), Node::Object(inner)));
            }
        }
    }

    fn json(&self) -> String {
        let mut text = String::from("{");
        for (index, (name, node)) in self.0.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            let value = match node {
                Node::Value(value) => value.clone(),
                Node::Object(inner) => inner.json(),
            };
            let _ = write!(text, "{}:{value}", serde_json::Value::from(name.as_str()));
        }
        text.push('}');
        text
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use arrow::array::{Decimal128Array, Float64Array, Int32Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray};
    use arrow::datatypes::Field;

    fn stats(columns: Vec<(&str, ArrayRef)>) -> String {
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
        let mut collector = StatsCollector::new(&batch.schema(), &StatsColumns::First(32), &[]);
        collector.update(&batch).unwrap();
        collector.json()
    }

    #[test]
    fn times_round_away_from_the_rows() {
        let times = TimestampMicrosecondArray::from(vec![Some(1_770_336_000_000_613), Some(-1), None]).with_timezone("UTC");
        assert_eq!(
            stats(vec![("t", Arc::new(times))]),
            r#"{"numRecords":3,"minValues":{"t":"1969-12-31T23:59:59.999Z"},"maxValues":{"t":"2026-02-06T00:00:00.001Z"},"nullCount":{"t":1},"tightBounds":true}"#
        );
    }

    #[test]
    fn decimals_have_exactly_the_declared_scale() {
        let full = Decimal128Array::from(vec![1, 9]).with_precision_and_scale(1, 0).unwrap();
        let wide = 99_999_999_999_999_999_999_999_999_999_999_999_999_i128;
        let wide = Decimal128Array::from(vec![wide, -wide]).with_precision_and_scale(38, 6).unwrap();
        let small = Decimal128Array::from(vec![-5, 0]).with_precision_and_scale(4, 3).unwrap();
        assert_eq!(
            stats(vec![("v", Arc::new(full)), ("w", Arc::new(wide)), ("x", Arc::new(small))]),
            concat!(
                r#"{"numRecords":2,"minValues":{"v":1,"w":-99999999999999999999999999999999.999999,"x":-0.005},"#,
                r#""maxValues":{"v":9,"w":99999999999999999999999999999999.999999,"x":0.000},"nullCount":{"v":0,"w":0,"x":0},"tightBounds":true}"#
            )
        );
    }

    #[test]
    fn a_long_text_is_cut_down_for_the_minimum_and_up_for_the_maximum() {
        let long = "z".repeat(4000);
        let text = stats(vec![("s", Arc::new(StringArray::from(vec![long.as_str(), &long])))]);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["minValues"]["s"], "z".repeat(32));
        assert_eq!(value["maxValues"]["s"], format!("{}\u{10FFFF}", "z".repeat(32)));
        assert_eq!(value["nullCount"]["s"], 0);
        let unbounded = stats(vec![("s", Arc::new(StringArray::from(vec!["\u{10FFFF}".repeat(40)])))]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&unbounded).unwrap()["maxValues"], serde_json::json!({}));
    }

    #[test]
    fn a_nan_leaves_a_column_without_bounds_and_infinities_leave_out_theirs() {
        let text = stats(vec![
            ("a", Arc::new(Float64Array::from(vec![f64::NAN, 1.0])) as ArrayRef),
            ("b", Arc::new(Float64Array::from(vec![f64::NEG_INFINITY, 1.5]))),
            ("c", Arc::new(Float64Array::from(vec![0.0, 0.0]))),
        ]);
        assert_eq!(
            text,
            r#"{"numRecords":2,"minValues":{"c":-0.0},"maxValues":{"b":1.5,"c":0.0},"nullCount":{"a":0,"b":0,"c":0},"tightBounds":true}"#
        );
    }

    #[test]
    fn a_field_of_a_null_struct_counts_as_null_and_lends_no_bound() {
        let fields = Fields::from(vec![Field::new("x", DataType::Int32, true)]);
        let inner =
            StructArray::new(fields, vec![Arc::new(Int32Array::from(vec![Some(99), Some(2), None]))], Some(vec![false, true, true].into()));
        let list = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>(vec![Some(vec![Some(1)]), None, None]);
        assert_eq!(
            stats(vec![("s", Arc::new(inner)), ("l", Arc::new(list))]),
            r#"{"numRecords":3,"minValues":{"s":{"x":2}},"maxValues":{"s":{"x":2}},"nullCount":{"s":{"x":2},"l":2},"tightBounds":true}"#
        );
    }

    #[test]
    fn the_table_says_which_columns_get_statistics() {
        let named = StatsColumns::of(&BTreeMap::from([("delta.dataSkippingStatsColumns".into(), " a , `b.c`.d".into())]));
        assert!(matches!(named, StatsColumns::Named(paths) if paths == [vec!["a".to_owned()], vec!["b.c".into(), "d".into()]]));
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int32, true),
            Field::new(
                "s",
                DataType::Struct(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Int32, true)].into()),
                true,
            ),
            Field::new("k", DataType::Int32, true),
        ]);
        let chosen = |columns, always: &[String]| {
            StatsCollector::new(&schema, &columns, always).leaves.iter().map(|leaf| leaf.path.join(".")).collect::<Vec<_>>()
        };
        assert_eq!(chosen(StatsColumns::First(2), &["k".into()]), ["a", "s.x", "k"]);
        assert_eq!(chosen(StatsColumns::Named(vec![vec!["S".into()]]), &[]), ["s.x", "s.y"]);
        assert_eq!(chosen(StatsColumns::First(0), &[]), Vec::<String>::new());
    }
}
