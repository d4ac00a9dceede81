//! Tables of a lake beside what they must be, row for row.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use futures::TryStreamExt as _;
use tributary::Lake;
use tributary::arrow::array::{Array, AsArray as _, RecordBatch};
use tributary::arrow::datatypes::{DataType, Date32Type, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType};

use super::expected::{Cell, ExpectedRows, ExpectedTables};

/// The column that only the run knows: when a record was taken up.
const LOAD_TIME: &str = "load_time";
/// Rows that are shown of those that only one side has.
const SHOWN: usize = 3;

/// One table beside what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// `schema.table`.
    pub table: String,
    /// Rows it has.
    pub rows: usize,
    /// What differs, a line each; empty where nothing does.
    pub differences: Vec<String>,
}

/// Compares every table: names and order of columns, types, and values bit for bit, as bags of rows.
///
/// # Errors
/// When a table cannot be read.
pub async fn compare(lake: &Lake, expected: &ExpectedTables) -> Result<Vec<Compared>, String> {
    let mut compared = Vec::new();
    for (name, rows) in expected {
        compared.push(one(lake, name, rows).await?);
    }
    Ok(compared)
}

async fn one(lake: &Lake, name: &str, expected: &ExpectedRows) -> Result<Compared, String> {
    let said = |error: tributary::Error| format!("{name}: {error}");
    let batches: Vec<RecordBatch> = lake
        .table(name)
        .await
        .map_err(said)?
        .scan()
        .await
        .map_err(said)?
        .try_collect()
        .await
        .map_err(|error| format!("{name}: {error}"))?;
    let mut differences = Vec::new();
    let mut bag: BTreeMap<String, i64> = BTreeMap::new();
    let mut rows = 0;
    for batch in &batches {
        let schema = batch.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).filter(|name| *name != LOAD_TIME).collect();
        if columns != expected.columns {
            differences.push(format!("columns {columns:?}, expected {:?}", expected.columns));
            break;
        }
        if let Some(times) = batch.column_by_name(LOAD_TIME)
            && (times.null_count() > 0 || !matches!(times.data_type(), DataType::Timestamp(TimeUnit::Microsecond, Some(_))))
        {
            differences.push(format!("{LOAD_TIME} is no timestamp, or not always there"));
        }
        rows += batch.num_rows();
        for row in 0..batch.num_rows() {
            *bag.entry(as_text(batch, row)?).or_default() += 1;
        }
    }
    for row in &expected.rows {
        let cells: Vec<String> = row.iter().map(|cell| format!("{cell:?}")).collect();
        *bag.entry(cells.join(" ")).or_default() -= 1;
    }
    for (what, more) in [("not expected", true), ("missing", false)] {
        let found: Vec<&String> =
            bag.iter().filter(|(_, count)| if more { **count > 0 } else { **count < 0 }).map(|(row, _)| row).collect();
        let shown = found.iter().take(SHOWN).map(|row| format!("{what}: {row}"));
        differences.extend(shown);
        if found.len() > SHOWN {
            let mut line = String::new();
            let _ = write!(line, "{what}: and {} more", found.len() - SHOWN);
            differences.push(line);
        }
    }
    Ok(Compared { table: name.to_owned(), rows, differences })
}

/// A row with the types of its values.
fn as_text(batch: &RecordBatch, row: usize) -> Result<String, String> {
    let mut cells = Vec::with_capacity(batch.num_columns());
    let schema = batch.schema();
    for (field, column) in schema.fields().iter().zip(batch.columns()).filter(|(field, _)| field.name() != LOAD_TIME) {
        cells.push(match cell(column, row) {
            Some(cell) => format!("{cell:?}"),
            None if column.is_null(row) => "NULL".to_owned(),
            None => return Err(format!("column {} is a {}", field.name(), column.data_type())),
        });
    }
    Ok(cells.join(" "))
}

fn cell(column: &dyn Array, row: usize) -> Option<Cell> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Int32 => Cell::Int(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => Cell::Long(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Cell::Double(column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Cell::Bool(column.as_boolean().value(row)),
        DataType::Utf8 => Cell::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Cell::Text(column.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Cell::Text(column.as_string_view().value(row).to_owned()),
        DataType::Date32 => Cell::Day(column.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Cell::Instant(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        _ => return None,
    })
}
