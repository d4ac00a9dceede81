//! Our decoder.

use anyhow::{Result, bail};
use serde_json::json;
use tributary_cdc_decode::{Decoder, Header, Record};
use tributary_specs::{Column, ReplicaIdentity, SourceFeed};

use crate::data::{Form, Table, Workload};
use crate::measure::{Measured, measure};

/// Records a batch.
const BATCH: usize = 8192;

pub fn run(workload: &Workload, events: usize) -> Result<Measured> {
    let mut decoders = workload.tables.iter().map(|table| Ok(Decoder::new(&feed(table, workload.form)?)?)).collect::<Result<Vec<_>>>()?;
    // Lending the events to the decoder is the reader's work and no part of decoding.
    let headers: Vec<Vec<Header<'_>>> = workload.tables.iter().map(headers).collect();
    let records: Vec<Vec<Record<'_>>> = workload.tables.iter().zip(&headers).map(|(table, headers)| records(table, headers)).collect();
    measure(|| {
        let (mut rows, mut bytes) = (0, 0);
        let passed = workload.until(events, BATCH, |table, range| {
            let records = &records[table][range];
            let decoded = decoders[table].decode(records, 0);
            if let Some(stop) = decoded.stop {
                bail!("{stop}");
            }
            if let Some(reject) = decoded.rejects.first() {
                bail!("{}", reject.message);
            }
            rows += u64::try_from(decoded.batch.num_rows())?;
            bytes += records.iter().filter_map(|record| record.value).map(<[u8]>::len).sum::<usize>();
            Ok(())
        })?;
        Ok((passed, rows, u64::try_from(bytes)?))
    })
}

fn feed(table: &Table, form: Form) -> Result<SourceFeed> {
    let mut feed: SourceFeed = serde_json::from_value(json!({
        "name": table.name,
        "table": format!("bronze.{}", table.name),
        "source": {"files": {"path": "events", "format": "kafka_jsonl"}},
        "decode": "debezium",
    }))?;
    if table.full_before_images {
        feed.replica_identity = ReplicaIdentity::Full;
    }
    if form == Form::Bare {
        feed.columns = table
            .columns
            .iter()
            .map(|column| {
                let mut spec = json!({"name": column.name, "type": column.data_type});
                if let Some(encoding) = column.encoding {
                    spec["encoding"] = encoding.into();
                }
                Ok(serde_json::from_value::<Column>(spec)?)
            })
            .collect::<Result<Vec<_>>>()?;
    }
    Ok(feed)
}

/// The headers of all events, one after the other.
fn headers(table: &Table) -> Vec<Header<'_>> {
    let of = |(key, value): &(std::ops::Range<usize>, Option<std::ops::Range<usize>>)| Header {
        key: table.text(key),
        value: value.as_ref().map(|value| table.text(value).as_bytes()),
    };
    table.events.iter().flat_map(|event| &event.headers).map(of).collect()
}

fn records<'a>(table: &'a Table, headers: &'a [Header<'a>]) -> Vec<Record<'a>> {
    let mut rest = headers;
    table
        .events
        .iter()
        .map(|event| {
            let (own, others) = rest.split_at(event.headers.len());
            rest = others;
            Record {
                topic: &table.topic,
                partition: event.partition,
                offset: event.offset,
                key: event.key.as_ref().map(|key| table.text(key).as_bytes()),
                value: event.value.as_ref().map(|value| table.text(value).as_bytes()),
                headers: own,
                timestamp_ms: event.timestamp,
                file: None,
                line: None,
            }
        })
        .collect()
}
