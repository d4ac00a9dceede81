//! A feed's declaration proposed from samples.
//!
//! Messages that bring their schema tell their columns; bare JSON and CSV tell less. What they do not tell (the scale of a
//! decimal, the unit of a time, whether text is bytes or a number unsigned) is said beside the column and never guessed:
//! every column is proposed in the type that holds the values as they came.

mod seen;
mod shape;
mod yaml;

use tributary_specs::{DataType, Decode, Encoding};

pub use shape::{Shape, form_of_avro, shape};

use crate::decoder::Decoder;
use crate::json::Cursor;
use crate::propose::seen::Seen;
use crate::record::Record;
use crate::system;
use crate::wire::Wire;

/// What a feed may be declared as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// How bytes become columns.
    pub decode: Decode,
    /// Names of the key columns, from the message keys.
    pub keys: Vec<String>,
    /// The columns, in the order they came.
    pub columns: Vec<Proposed>,
    /// How many samples became rows.
    pub rows: usize,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    /// Its name.
    pub name: String,
    /// Its type; `None` = it was null in every sample.
    pub data_type: Option<DataType>,
    /// How its values are written, where the type alone does not say it.
    pub encoding: Option<Encoding>,
    /// What cannot be known from the samples.
    pub remark: Option<String>,
}

/// Proposes columns for records of one shape. `decoder` is a fresh one of the shape's form without declared columns; it is only
/// used for messages that bring their schema and must know the schemas they name.
pub fn propose(shape: Shape, records: &[Record<'_>], decoder: &mut Decoder) -> Proposal {
    if shape.has_schema {
        return of_schema(shape, records, decoder);
    }
    let mut columns: Vec<(String, Seen)> = Vec::new();
    let mut rows = 0;
    for record in records {
        rows += usize::from(shape::images(shape.decode, record, |image| take_in(&mut columns, image)));
    }
    let from = if shape.decode == Decode::Json { seen::Writer::Any } else { seen::Writer::Debezium };
    Proposal { decode: shape.decode, keys: shape::keys(records), columns: named(columns, from), rows }
}

/// Proposes columns for rows of CSV, each the texts of its fields; `None` = an empty field.
pub fn propose_csv(header: &[String], rows: &[Vec<Option<String>>]) -> Proposal {
    let mut columns: Vec<(String, Seen)> = header.iter().map(|name| (name.clone(), Seen::default())).collect();
    for row in rows {
        for ((_, seen), field) in columns.iter_mut().zip(row) {
            match field {
                Some(text) => seen.text(text.as_bytes()),
                None => seen.null(),
            }
        }
    }
    Proposal { decode: Decode::Csv, keys: Vec::new(), columns: named(columns, seen::Writer::Csv), rows: rows.len() }
}

fn named(columns: Vec<(String, Seen)>, from: seen::Writer) -> Vec<Proposed> {
    let column = |(name, seen): (String, Seen)| {
        let (data_type, encoding, remark) = seen.proposed(from);
        Proposed { name, data_type, encoding, remark }
    };
    columns.into_iter().filter(|(name, _)| !system::is_reserved(name)).map(column).collect()
}

fn of_schema(shape: Shape, records: &[Record<'_>], decoder: &mut Decoder) -> Proposal {
    let decoded = decoder.decode(records, 0);
    let columns = decoder.columns().into_iter().filter(|column| !system::is_ours(&column.name)).map(|column| {
        let is_bigint = shape.from_mysql && wire(decoder, &column.name) == Some(&Wire::Integer(64));
        let remark = "not known: whether it is unsigned; if so, decimal(20,0) with encoding unsigned";
        Proposed { name: column.name, data_type: Some(column.data_type), encoding: None, remark: is_bigint.then(|| remark.to_owned()) }
    });
    let columns = columns.collect();
    let mut keys = shape::keys(records);
    if keys.is_empty() {
        keys = records
            .iter()
            .filter_map(|record| record.key)
            .map(|key| decoder.avro_key_names(key))
            .find(|names| !names.is_empty())
            .unwrap_or_default();
    }
    Proposal { decode: shape.decode, keys, columns, rows: decoded.batch.num_rows() }
}

/// How a column's values are written, by the schema met last.
fn wire<'d>(decoder: &'d Decoder, name: &str) -> Option<&'d Wire> {
    let of_json = || {
        let fields = &decoder.plans.latest()?.layout.fields;
        fields.iter().find(|field| field.name == name).map(|field| &field.wire)
    };
    decoder.avro.wire(name).or_else(of_json)
}

fn take_in(columns: &mut Vec<(String, Seen)>, image: &mut Cursor<'_>) -> Result<(), crate::json::Broken> {
    let mut members = image.object()?;
    let mut scratch = Vec::new();
    while let Some(key) = image.member(&mut members)? {
        let name = String::from_utf8_lossy(key.resolve(&mut scratch)?).into_owned();
        let place = columns.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            columns.push((name, Seen::default()));
            columns.len() - 1
        });
        match columns.get_mut(place) {
            Some((_, seen)) => seen.value(image)?,
            None => image.skip()?,
        }
    }
    Ok(())
}
