//! The types of a table's columns for what `arrow-json` has read.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::builder::{Decimal128Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::data::{Column, Table};

/// The batch with the columns of `before` and `after` typed as ours are.
pub fn columns(table: &Table, batch: RecordBatch) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let array: ArrayRef = match field.name().as_str() {
            "before" | "after" => Arc::new(row(table, array.as_struct())?),
            _ => array.clone(),
        };
        fields.push(Field::new(field.name(), array.data_type().clone(), true));
        arrays.push(array);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

fn row(table: &Table, images: &StructArray) -> Result<StructArray> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (column, array) in table.columns.iter().zip(images.columns()) {
        let array = typed(column, array)?;
        fields.push(Field::new(column.name, array.data_type().clone(), true));
        arrays.push(array);
    }
    Ok(StructArray::try_new(fields.into(), arrays, images.nulls().cloned())?)
}

fn typed(column: &Column, array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match (column.data_type, column.encoding) {
        ("decimal(12,2)", _) => Arc::new(decimals(array.as_string(), 2)?),
        ("decimal(12,4)", _) => Arc::new(decimals(array.as_string(), 4)?),
        ("string", Some("unscaled")) => Arc::new(texts(array.as_struct())?),
        ("date", _) => cast(array, &DataType::Date32)?,
        ("timestamp_ntz", _) => cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?,
        _ => array.clone(),
    })
}

fn decimals(encoded: &StringArray, scale: i8) -> Result<arrow_array::Decimal128Array> {
    let mut decimals = Decimal128Builder::with_capacity(encoded.len());
    for text in encoded {
        decimals.append_option(text.map(unscaled).transpose()?);
    }
    Ok(decimals.finish().with_precision_and_scale(12, scale)?)
}

/// Decimals that bring their scale, as text.
fn texts(encoded: &StructArray) -> Result<StringArray> {
    let scales = encoded.column_by_name("scale").context("no scale")?.as_primitive::<Int32Type>();
    let values: &StringArray = encoded.column_by_name("value").context("no value")?.as_string();
    let mut texts = StringBuilder::with_capacity(encoded.len(), 8 * encoded.len());
    for row in 0..encoded.len() {
        if encoded.is_null(row) {
            texts.append_null();
            continue;
        }
        let (unscaled, scale) = (unscaled(values.value(row))?, usize::try_from(scales.value(row))?);
        let (sign, digits) = (if unscaled < 0 { "-" } else { "" }, format!("{:01$}", unscaled.unsigned_abs(), scale + 1));
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        texts.append_value(format!("{sign}{whole}{}{fraction}", if scale > 0 { "." } else { "" }));
    }
    Ok(texts.finish())
}

/// A big-endian two's complement number.
fn unscaled(text: &str) -> Result<i128> {
    let mut bytes = [0; 18];
    let length = STANDARD.decode_slice(text, &mut bytes)?;
    if length == 0 || length > 16 {
        bail!("a decimal of {length} bytes");
    }
    let shift = 8 * (16 - length);
    let mut wide = [0; 16];
    wide[..length].copy_from_slice(&bytes[..length]);
    Ok(i128::from_be_bytes(wide) >> shift)
}
