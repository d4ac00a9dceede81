//! Rows that are made here: what SHOW, DESCRIBE and `information_schema` give.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tributary_lake::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, ListBuilder, RecordBatch, RecordBatchOptions, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use tributary_lake::arrow::datatypes::{Field, Schema};
use tributary_lake::datafusion::error::DataFusionError;

use super::Error;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Text(Option<String>),
    Whole(Option<i64>),
    Truth(bool),
    Instant(Option<DateTime<Utc>>),
    Texts(Vec<String>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Text,
    Whole,
    Truth,
    Instant,
    Texts,
}

/// Rows under named columns.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    columns: Vec<(&'static str, Of)>,
    rows: Vec<Vec<Cell>>,
}

impl Listing {
    pub(crate) fn new(columns: &[(&'static str, Of)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// All columns are text.
    pub(crate) fn texts(columns: &[&'static str]) -> Self {
        Self { columns: columns.iter().map(|name| (*name, Of::Text)).collect(), rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        self.rows.push(row.into_iter().collect());
    }

    pub(crate) fn batch(&self) -> Result<RecordBatch, Error> {
        let arrays: Vec<(&str, ArrayRef)> = self.columns.iter().enumerate().map(|(at, (name, of))| (*name, self.array(at, *of))).collect();
        let fields: Vec<Field> = arrays.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let arrays = arrays.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        Ok(batch.map_err(DataFusionError::from).map_err(tributary_lake::Error::from)?)
    }

    fn array(&self, at: usize, of: Of) -> ArrayRef {
        let cells = self.rows.iter().map(|row| row.get(at));
        match of {
            Of::Text => {
                Arc::new(cells.map(|cell| if let Some(Cell::Text(text)) = cell { text.clone() } else { None }).collect::<StringArray>())
            }
            Of::Whole => {
                Arc::new(cells.map(|cell| if let Some(Cell::Whole(whole)) = cell { *whole } else { None }).collect::<Int64Array>())
            }
            Of::Truth => {
                Arc::new(cells.map(|cell| if let Some(Cell::Truth(truth)) = cell { Some(*truth) } else { None }).collect::<BooleanArray>())
            }
            Of::Instant => {
                let micros = cells.map(|cell| match cell {
                    Some(Cell::Instant(instant)) => instant.map(|instant| instant.timestamp_micros()),
                    _ => None,
                });
                Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
            }
            Of::Texts => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                for cell in cells {
                    if let Some(Cell::Texts(texts)) = cell {
                        texts.iter().for_each(|text| lists.values().append_value(text));
                    }
                    lists.append(true);
                }
                Arc::new(lists.finish())
            }
        }
    }
}

/// Whether a name is like a pattern of SHOW: `*` stands for anything, `|` between patterns for either, in any case.
pub(crate) fn is_like(name: &str, pattern: Option<&str>) -> bool {
    let Some(pattern) = pattern else { return true };
    let name = name.to_lowercase();
    pattern.to_lowercase().split('|').any(|pattern| {
        let parts: Vec<&str> = pattern.trim().split('*').collect();
        let [first, middle @ .., last] = parts.as_slice() else { return name == pattern.trim() };
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        for part in middle {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    })
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_anything_and_a_bar_for_either() {
        for (name, pattern, yes) in [
            ("orders", "ord*", true),
            ("orders", "*DER*", true),
            ("orders", "order", false),
            ("orders", "customers | o*s", true),
            ("orders", "*x*", false),
            ("a", "a*a", false),
        ] {
            assert_eq!(is_like(name, Some(pattern)), yes, "{name} {pattern}");
        }
        assert!(is_like("anything", None));
    }
}
