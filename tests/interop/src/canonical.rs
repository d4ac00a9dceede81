//! Rows as text, one line a row, so that no engine's way of printing gets in between. `readers/canonical.py` says the same.
//!
//! `null`, `true`, whole numbers and decimals as digits, floating numbers as their bits, text as JSON, bytes as hex; `day N`
//! since 1970-01-01; `at N` for an instant and `clock N` for a wall clock, in microseconds; `[..]`, `(name=value,..)`, `{key=>value,..}`.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use tributary_lake::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};

/// The lines of a batch.
pub fn lines(batch: &RecordBatch) -> Result<Vec<String>> {
    (0..batch.num_rows())
        .map(|row| {
            let values = batch.columns().iter().map(|column| text(column, row)).collect::<Result<Vec<_>>>()?;
            Ok(values.join("\t"))
        })
        .collect()
}

fn text(array: &dyn Array, row: usize) -> Result<String> {
    if array.is_null(row) {
        return Ok("null".to_owned());
    }
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            if value.is_nan() { "fnan".to_owned() } else { format!("f{:08x}", value.to_bits()) }
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            if value.is_nan() { "dnan".to_owned() } else { format!("d{:016x}", value.to_bits()) }
        }
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Date32 => format!("day {}", array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let word = if zone.is_some() { "at" } else { "clock" };
            format!("{word} {}", array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Utf8 => serde_json::to_string(array.as_string::<i32>().value(row))?,
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            let values = (0..values.len()).map(|at| text(&values, at)).collect::<Result<Vec<_>>>()?;
            format!("[{}]", values.join(","))
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let value = |(field, column): (&Arc<Field>, &ArrayRef)| Ok(format!("{}={}", field.name(), text(column, row)?));
            format!("({})", fields.iter().zip(columns).map(value).collect::<Result<Vec<_>>>()?.join(","))
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let entry = |at| Ok(format!("{}=>{}", text(entries.column(0), at)?, text(entries.column(1), at)?));
            let mut entries = (0..entries.len()).map(entry).collect::<Result<Vec<String>>>().context("in a map")?;
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        other => bail!("no words for {other}"),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}
