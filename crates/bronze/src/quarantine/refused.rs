//! Records on their way into quarantine.

use std::sync::Arc;

use tributary_cdc_decode::Header;
use tributary_lake::arrow::array::{
    ArrayRef, BinaryBuilder, Int32Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder, StructBuilder,
    TimestampMicrosecondArray,
};
use tributary_lake::arrow::datatypes::{DataType as Arrow, Fields, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_specs::Column;

/// The program whose decoder refused a record.
const DECODER_VERSION: &str = concat!("tributary ", env!("CARGO_PKG_VERSION"));

/// One record on its way into quarantine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refused<'a> {
    pub reason: &'a str,
    pub message: &'a str,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// Its headers; of a CSV record the names in its file's header, without values.
    pub headers: &'a [Header<'a>],
    pub topic: Option<&'a str>,
    pub partition: Option<i32>,
    pub offset: Option<i64>,
    pub timestamp_ms: Option<i64>,
    pub file: Option<&'a str>,
    pub line: Option<i64>,
    pub content: Option<&'a str>,
}

/// The rows of refused records.
pub(crate) fn rows(refused: &[Refused<'_>], now_us: i64) -> Result<RecordBatch, ArrowError> {
    let schema = Arc::new(Column::all_to_arrow(&super::columns()));
    let text = |of: fn(&Refused<'_>) -> Option<String>| Arc::new(refused.iter().map(of).collect::<StringArray>()) as ArrayRef;
    let bytes = |of: for<'a> fn(&Refused<'a>) -> Option<&'a [u8]>| {
        let mut builder = BinaryBuilder::new();
        refused.iter().for_each(|record| builder.append_option(of(record)));
        Arc::new(builder.finish()) as ArrayRef
    };
    let time = |values: Vec<Option<i64>>| Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC")) as ArrayRef;
    let arrays: Vec<ArrayRef> = vec![
        text(|record| Some(record.reason.to_owned())),
        text(|record| Some(record.message.to_owned())),
        bytes(|record| record.key),
        bytes(|record| record.value),
        headers(refused, &schema),
        text(|record| record.topic.map(str::to_owned)),
        Arc::new(refused.iter().map(|record| record.partition).collect::<Int32Array>()),
        Arc::new(refused.iter().map(|record| record.offset).collect::<Int64Array>()),
        time(refused.iter().map(|record| record.timestamp_ms.and_then(|ms| ms.checked_mul(1000))).collect()),
        text(|record| record.file.map(str::to_owned)),
        Arc::new(refused.iter().map(|record| record.line).collect::<Int64Array>()),
        text(|record| record.content.map(str::to_owned)),
        text(|_| Some(DECODER_VERSION.to_owned())),
        time(vec![Some(now_us); refused.len()]),
        time(vec![None; refused.len()]),
    ];
    RecordBatch::try_new(schema, arrays)
}

fn headers(refused: &[Refused<'_>], schema: &Schema) -> ArrayRef {
    let (element, fields) = match schema.field(4).data_type() {
        Arrow::List(element) => match element.data_type() {
            Arrow::Struct(fields) => (Arc::clone(element), fields.clone()),
            _ => (Arc::clone(element), Fields::empty()),
        },
        _ => return Arc::new(StringArray::new_null(refused.len())),
    };
    let mut list = ListBuilder::new(StructBuilder::from_fields(fields, refused.len())).with_field(element);
    for record in refused {
        for Header { key, value } in record.headers {
            let header = list.values();
            if let Some(keys) = header.field_builder::<StringBuilder>(0) {
                keys.append_value(key);
            }
            if let Some(values) = header.field_builder::<BinaryBuilder>(1) {
                values.append_option(*value);
            }
            header.append(true);
        }
        list.append(!record.headers.is_empty());
    }
    Arc::new(list.finish())
}
