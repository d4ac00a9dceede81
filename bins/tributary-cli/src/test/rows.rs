//! Rows of a test, as they stand in it or in a file.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use tributary::GivenRow;
use tributary::arrow::array::{Array, AsArray};
use tributary::arrow::csv::ReaderBuilder;
use tributary::arrow::csv::reader::Format;
use tributary::arrow::datatypes::{DataType, Field, Schema};
use tributary_bundle::TestRows;

use crate::failure::{Error, Failure};

/// Larger files are no samples.
const BYTES_MAX: u64 = 64 << 20;

/// The rows.
pub fn read(rows: &TestRows) -> Result<Vec<GivenRow>, Failure> {
    match rows {
        TestRows::Here(rows) => Ok(rows.clone()),
        TestRows::File(path) if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")) => csv(path),
        TestRows::File(path) => json(path),
    }
}

fn unfit(path: &Path, reason: String) -> Failure {
    Error::TestRows { file: path.to_owned(), reason }.into()
}

fn json(path: &Path) -> Result<Vec<GivenRow>, Failure> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| unfit(path, error.to_string()))?;
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(|error| unfit(path, error.to_string()))?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines.map(|(line, number)| serde_json::from_str(line).map_err(|error| unfit(path, format!("line {number}: {error}")))).collect()
}

/// Every value as a text; an empty field is null.
fn csv(path: &Path) -> Result<Vec<GivenRow>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| unfit(path, error.to_string());
    let mut file = BufReader::new(File::open(path).map_err(|error| wrong(&error))?);
    let (header, _) = Format::default().with_header(true).infer_schema(&mut file, Some(0)).map_err(|error| wrong(&error))?;
    file.rewind().map_err(|error| wrong(&error))?;
    let texts: Vec<Field> = header.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true)).collect();
    let reader = ReaderBuilder::new(Arc::new(Schema::new(texts))).with_header(true).build(file).map_err(|error| wrong(&error))?;
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| wrong(&error))?;
        for row in 0..batch.num_rows() {
            let columns = batch.schema_ref().fields().iter().zip(batch.columns());
            let values = columns.map(|(field, column)| {
                let texts = column.as_string::<i32>();
                let value = match texts.is_valid(row).then(|| texts.value(row)) {
                    None | Some("") => Json::Null,
                    Some("true") => Json::Bool(true),
                    Some("false") => Json::Bool(false),
                    Some(text) => Json::from(text),
                };
                (field.name().clone(), value)
            });
            rows.push(values.collect());
        }
    }
    Ok(rows)
}
