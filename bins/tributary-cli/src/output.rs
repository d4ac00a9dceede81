//! Rows on the standard output, in the form of `--output`.

use std::io::Write;
use std::sync::Arc;

use futures::{Stream, TryStreamExt};
use tributary::arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use tributary::arrow::csv::WriterBuilder;
use tributary::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tributary::arrow::json::writer::{LineDelimited, WriterBuilder as JsonWriterBuilder};
use tributary::arrow::util::display::{ArrayFormatter, FormatOptions};
use tributary::arrow::util::pretty::pretty_format_batches_with_options;
use tributary_config::Output;

use crate::failure::{Error, Failure, Outcome};
use crate::start;

/// Rows that are drawn as a table; more are for a program to read.
const DRAWN_MAX: usize = 10_000;

/// How values are written: null is an empty field in CSV and a word in a table.
fn format(null: &'static str) -> FormatOptions<'static> {
    FormatOptions::new().with_null(null).with_display_error(true)
}

/// Prints rows that are all here.
pub fn rows(output: Output, rows: &RecordBatch) -> Outcome {
    let mut text = Vec::new();
    match output {
        Output::Table => writeln!(text, "{}", drawn(std::slice::from_ref(rows))?).map_err(io)?,
        Output::Json => json(&mut text, rows)?,
        Output::Csv => csv(&mut text, rows, true)?,
    }
    start::print(&String::from_utf8_lossy(&text))
}

/// Prints rows as they come; a table is drawn when they are all there.
pub async fn stream<E>(output: Output, schema: SchemaRef, mut rows: impl Stream<Item = Result<RecordBatch, E>> + Unpin) -> Outcome
where
    Failure: From<E>,
{
    if output == Output::Table {
        let mut batches = vec![RecordBatch::new_empty(schema)];
        let mut left = DRAWN_MAX;
        while let Some(batch) = rows.try_next().await? {
            if batch.num_rows() > left {
                batches.push(batch.slice(0, left));
                eprintln!("the first {DRAWN_MAX} rows are drawn; --output json or csv prints all");
                break;
            }
            left -= batch.num_rows();
            batches.push(batch);
        }
        return start::print(&format!("{}\n", drawn(&batches)?));
    }
    let mut first = true;
    while let Some(batch) = rows.try_next().await? {
        if batch.num_rows() > 0 {
            let mut text = Vec::new();
            match output {
                Output::Csv => csv(&mut text, &batch, first)?,
                Output::Json | Output::Table => json(&mut text, &batch)?,
            }
            start::print(&String::from_utf8_lossy(&text))?;
            first = false;
        }
    }
    if first && output == Output::Csv {
        let mut text = Vec::new();
        csv(&mut text, &RecordBatch::new_empty(schema), true)?;
        start::print(&String::from_utf8_lossy(&text))?;
    }
    Ok(0)
}

fn drawn(batches: &[RecordBatch]) -> Result<String, Error> {
    Ok(pretty_format_batches_with_options(batches, &format("null")).map_err(Error::Rows)?.to_string())
}

/// A JSON object a line, nulls written.
fn json(out: &mut Vec<u8>, batch: &RecordBatch) -> Result<(), Error> {
    let mut writer = JsonWriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(out);
    writer.write(batch).and_then(|()| writer.finish()).map_err(Error::Rows)
}

/// Nested values are written as one text.
fn csv(out: &mut Vec<u8>, batch: &RecordBatch, header: bool) -> Result<(), Error> {
    let flat = flattened(batch)?;
    let mut writer = WriterBuilder::new().with_header(header).build(out);
    writer.write(&flat).map_err(Error::Rows)
}

fn flattened(batch: &RecordBatch) -> Result<RecordBatch, Error> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        if field.data_type().is_nested() || matches!(field.data_type(), DataType::Binary | DataType::LargeBinary | DataType::BinaryView) {
            let texts: ArrayRef = Arc::new(texts(column)?);
            Ok((Field::new(field.name(), DataType::Utf8, true), texts))
        } else {
            Ok((field.as_ref().clone(), Arc::clone(column)))
        }
    });
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.collect::<Result<Vec<_>, Error>>()?.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(Error::Rows)
}

/// Each value as one text.
pub fn texts(column: &ArrayRef) -> Result<StringArray, Error> {
    let options = format("null");
    let formatter = ArrayFormatter::try_new(column, &options).map_err(Error::Rows)?;
    Ok((0..column.len()).map(|row| column.is_valid(row).then(|| formatter.value(row).to_string())).collect())
}

fn io(source: std::io::Error) -> Error {
    Error::Io { action: "writing rows".to_owned(), source }
}

/// A batch of named columns of equal length.
pub fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch, Failure> {
    let fields: Vec<Field> = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(Error::Rows)?)
}

/// A column of texts.
pub fn text<S: Into<String>>(values: impl IntoIterator<Item = Option<S>>) -> ArrayRef {
    Arc::new(values.into_iter().map(|value| value.map(Into::into)).collect::<StringArray>())
}

/// A column of whole numbers.
pub fn whole(values: impl IntoIterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<tributary::arrow::array::UInt64Array>())
}

/// A column of instants.
pub fn instant(values: impl IntoIterator<Item = Option<chrono::DateTime<chrono::Utc>>>) -> ArrayRef {
    let micros = values.into_iter().map(|value| value.map(|instant| instant.timestamp_micros()));
    Arc::new(micros.collect::<tributary::arrow::array::TimestampMicrosecondArray>().with_timezone("UTC"))
}

#[cfg(test)]
mod tests {
    use tributary::arrow::array::{Int64Array, ListArray};
    use tributary::arrow::datatypes::Int32Type;

    use super::*;

    fn sample() -> RecordBatch {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None]), None]);
        batch(vec![
            ("id", Arc::new(Int64Array::from(vec![Some(1), None]))),
            ("note", text([Some("a,\"b\""), None])),
            ("list", Arc::new(lists)),
        ])
        .unwrap()
    }

    #[test]
    fn csv_quotes_writes_nulls_as_nothing_and_nested_values_as_text() {
        let mut out = Vec::new();
        csv(&mut out, &sample(), true).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "id,note,list\n1,\"a,\"\"b\"\"\",\"[1, null]\"\n,,\n");
    }

    #[test]
    fn json_is_an_object_a_line_with_nulls() {
        let mut out = Vec::new();
        json(&mut out, &sample()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], serde_json::json!({"id": 1, "note": "a,\"b\"", "list": [1, null]}));
        assert_eq!(lines[1], serde_json::json!({"id": null, "note": null, "list": null}));
    }

    #[test]
    fn a_table_is_drawn_with_its_header_even_without_rows() {
        let text = drawn(&[sample().slice(0, 0)]).unwrap();
        assert!(text.contains("| id | note | list |"), "{text}");
    }
}
