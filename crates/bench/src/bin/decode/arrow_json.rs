//! The peer: `arrow-json` with the envelope's schema.

use std::sync::Arc;

use anyhow::{Result, bail};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use crate::data::{Form, Table, Workload};
use crate::measure::{Measured, measure};

/// Rows a batch, as for ours.
const BATCH: usize = 8192;

/// Decodes the events; each batch goes through `finish`.
pub fn run(workload: &Workload, events: usize, finish: impl Fn(&Table, RecordBatch) -> Result<RecordBatch>) -> Result<Measured> {
    let mut decoders = workload.tables.iter().map(|table| decoder(table, workload.form)).collect::<Result<Vec<_>>>()?;
    measure(|| {
        let (mut rows, mut bytes) = (0, 0);
        let passed = workload.until(events, BATCH, |table, range| {
            let decoder = &mut decoders[table];
            let table = &workload.tables[table];
            for value in table.events[range].iter().filter_map(|event| event.value.as_ref()) {
                let value = table.text(value);
                if decoder.decode(value.as_bytes())? != value.len() {
                    bail!("a batch of arrow-json was full too early");
                }
                bytes += value.len();
            }
            if let Some(batch) = decoder.flush()? {
                let batch = match workload.form {
                    Form::Bare => batch,
                    Form::Wrapped => RecordBatch::from(batch.column(0).as_struct()),
                };
                let batch = finish(table, batch)?;
                rows += u64::try_from(batch.num_rows())?;
            }
            Ok(())
        })?;
        Ok((passed, rows, u64::try_from(bytes)?))
    })
}

fn decoder(table: &Table, form: Form) -> Result<Decoder> {
    let envelope = envelope(table);
    let fields = match form {
        Form::Bare => envelope,
        Form::Wrapped => vec![Field::new("payload", DataType::Struct(envelope.into()), true)],
    };
    // One more than a batch has, so that the decoder never stops in the middle of a slice.
    Ok(ReaderBuilder::new(Arc::new(Schema::new(fields))).with_batch_size(BATCH + 1).build_decoder()?)
}

fn envelope(table: &Table) -> Vec<Field> {
    let row: Fields =
        table.columns.iter().map(|column| Field::new(column.name, data_type(column.data_type, column.encoding), true)).collect();
    let text = |name| Field::new(name, DataType::Utf8, true);
    let long = |name| Field::new(name, DataType::Int64, true);
    let source: Fields = vec![
        text("connector"),
        long("ts_ms"),
        text("snapshot"),
        text("db"),
        text("sequence"),
        long("ts_us"),
        text("schema"),
        text("table"),
        long("txId"),
        long("lsn"),
    ]
    .into();
    vec![
        Field::new("before", DataType::Struct(row.clone()), true),
        Field::new("after", DataType::Struct(row), true),
        Field::new("source", DataType::Struct(source), true),
        Field::new("transaction", DataType::Struct(vec![text("id")].into()), true),
        text("op"),
        long("ts_ms"),
    ]
}

/// The type as the JSON text has it; encoded decimals are text, or a struct where they bring their scale.
fn data_type(name: &str, encoding: Option<&str>) -> DataType {
    match (name, encoding) {
        ("string", Some("unscaled")) => {
            DataType::Struct(vec![Field::new("scale", DataType::Int32, true), Field::new("value", DataType::Utf8, true)].into())
        }
        (_, Some("unscaled")) | ("string", _) => DataType::Utf8,
        ("long", _) => DataType::Int64,
        ("integer" | "date", _) => DataType::Int32,
        ("boolean", _) => DataType::Boolean,
        ("timestamp_ntz", _) => DataType::Int64,
        ("timestamp", _) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ("array<string>", _) => DataType::List(Arc::new(Field::new("element", DataType::Utf8, true))),
        _ => DataType::Utf8,
    }
}
