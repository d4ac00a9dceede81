//! What histories send decodes to the bronze rows the kit writes by itself: strategies and decoder agree about the contract.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tributary_cdc_decode::{Decoder, Header, IgnoreReason, Record};
use tributary_specs::{Column, DataType, Decode, Encoding, FileFormat, FileSource, SchemaPolicy, Source, SourceFeed, TableName};
use tributary_testkit::strategy::{EnvelopeForm, KafkaRecord, SourceTable, bronze_frame, envelope_forms, envelopes, source_history};
use tributary_testkit::{FrameDiff, Law};

const INGESTED_AT_US: i64 = 1_800_000_000_000_000;

fn feed(table: &SourceTable, form: EnvelopeForm) -> SourceFeed {
    let decimals = if form.precise_decimals { Encoding::Unscaled } else { Encoding::Text };
    let declared = |column: &Column| match column.data_type {
        DataType::Decimal { .. } => Column::new(&column.name, column.data_type.clone()).encoded(decimals),
        _ => Column::new(&column.name, column.data_type.clone()),
    };
    SourceFeed {
        name: table.name.clone(),
        table: TableName::new("bronze", &table.name),
        source: Source::Files(FileSource {
            path: "drop".to_owned(),
            format: FileFormat::KafkaJsonl,
            glob: None,
            topics: Vec::new(),
            csv: tributary_specs::CsvOptions::default(),
            settle_seconds: 0,
            mirrors: false,
            with_metadata: false,
        }),
        decode: Decode::Debezium,
        columns: table.columns.iter().map(|spec| declared(&spec.column)).collect(),
        keys: table.key_names(),
        schema_policy: SchemaPolicy::Rescue,
        replica_identity: table.identity,
        partition_by: Vec::new(),
        cluster_by: Vec::new(),
        quarantine: None,
        comment: None,
        properties: BTreeMap::new(),
    }
}

#[test]
fn law_the_records_of_a_history_decode_to_its_bronze_rows() {
    let table = prop_oneof![Just(SourceTable::orders()), Just(SourceTable::customers())];
    let cases = (table.prop_flat_map(|table| source_history(table, 30)), envelope_forms(), 1..9usize);
    Law::new("decode(encode(history)) = history").holds(&cases, |(history, form, batch), tried| {
        let mut decoder = Decoder::new(&feed(&history.table, form)).expect("a feed");
        let (mut rows, mut ignored) = (Vec::new(), BTreeMap::new());
        for records in envelopes(&history, form).chunks(batch) {
            tried.add("records", records.len());
            let headers: Vec<Vec<Header<'_>>> = records.iter().map(headers).collect();
            let records: Vec<Record<'_>> = records.iter().zip(&headers).map(|(record, headers)| borrowed(record, headers)).collect();
            let decoded = decoder.decode(&records, INGESTED_AT_US);
            prop_assert!(decoded.stop.is_none() && decoded.rejects.is_empty(), "{:?} {:?}", decoded.stop, decoded.rejects);
            let counted: u64 = decoded.ignored.values().sum();
            prop_assert_eq!(decoded.batch.num_rows() as u64 + counted, records.len() as u64);
            for (reason, n) in decoded.ignored {
                *ignored.entry(reason).or_insert(0) += n;
            }
            rows.push(decoded.batch);
        }
        prop_assert!(ignored.keys().all(|reason| matches!(reason, IgnoreReason::Tombstone | IgnoreReason::Heartbeat)), "{:?}", ignored);
        let expected = bronze_frame(&history.table, &history.changes, INGESTED_AT_US);
        // Tombstones take offsets of their own; and what is not known at all may be rescued or not.
        let difference = FrameDiff::between(rows, expected).ignoring(["_offset", "_rescued_data"]).with_column_order().in_order().compute();
        prop_assert!(difference.is_none(), "{difference}");
        Ok(())
    });
}

fn headers(record: &KafkaRecord) -> Vec<Header<'_>> {
    record.headers.iter().map(|(key, value)| Header { key, value: Some(value.as_bytes()) }).collect()
}

fn borrowed<'a>(record: &'a KafkaRecord, headers: &'a [Header<'a>]) -> Record<'a> {
    let [key, value] = [&record.key, &record.value].map(|part| part.as_deref().map(str::as_bytes));
    Record { key, value, headers, timestamp_ms: Some(record.timestamp_ms), ..Record::at(&record.topic, record.partition, record.offset) }
}
