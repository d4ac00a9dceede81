//! What a batch's notes say of undeclared columns.

use serde_json::{Value, json};
use tributary_cdc_decode::{Decoder, Record, Resume};
use tributary_specs::Decode;
use tributary_testkit::avro::AvroRegistry;

use crate::feeds::feed;

/// A flattened row with its schema.
fn wrapped(id: i64) -> Value {
    let field = |kind: &str, name: &str| json!({"type": kind, "optional": true, "field": name});
    let fields = [field("int64", "id"), field("string", "name"), field("string", "__op")];
    json!({"schema": {"type": "struct", "fields": fields, "optional": false, "name": "shop.public.t.Value"},
           "payload": {"id": id, "name": "x", "__op": "c"}})
}

/// The forms a message may have, by its bytes.
fn forms(registry: &mut AvroRegistry) -> [(&'static str, Vec<u8>); 3] {
    let message = wrapped(1);
    let avro = registry.framed(&message).unwrap();
    [("bare", message["payload"].to_string().into_bytes()), ("wrapped", message.to_string().into_bytes()), ("avro", avro)]
}

/// The columns that the notes of a batch call undeclared, with the number of their values.
fn undeclared(decoder: &mut Decoder, registry: &AvroRegistry, messages: &[&[u8]]) -> Vec<(String, u64)> {
    let record = |value| Record { topic: "shop.public.t", ..Record::line_of_file("f", 1, value) };
    let records: Vec<Record<'_>> = messages.iter().map(|message| record(*message)).collect();
    for id in decoder.missing_schemas(&records) {
        decoder.learn_schema(id, registry.text(id.0).unwrap(), &[]).unwrap();
    }
    let decoded = decoder.decode(&records, 0);
    assert_eq!(decoded.batch.num_rows(), messages.len(), "{:?} {:?}", decoded.rejects, decoded.stop);
    let column = |note: &str| Some(note.strip_prefix("column ")?.split_once(" is not declared")?.0.to_owned());
    decoded.notes.iter().filter_map(|(note, count)| Some((column(note)?, *count))).collect()
}

#[test]
fn a_column_is_noted_as_undeclared_for_the_values_that_came_without_a_schema_before_and_after_a_restart() {
    let mut registry = AvroRegistry::default();
    let forms = forms(&mut registry);
    let noted = |values: u64| [("id".to_owned(), values), ("name".to_owned(), values)];
    for (first, message) in &forms {
        let feed = feed(Decode::DebeziumFlattened, Vec::new());
        let mut fresh = Decoder::new(&feed).unwrap();
        let expected = if *first == "bare" { noted(2).to_vec() } else { Vec::new() };
        assert_eq!(undeclared(&mut fresh, &registry, &[message, message]), expected, "{first}");
        let columns = fresh.columns();
        for (second, message) in &forms {
            let mut resumed = Decoder::new(&feed).unwrap();
            resumed.resume(Resume { columns: columns.clone(), ..Resume::default() });
            let expected = if *second == "bare" { noted(2).to_vec() } else { Vec::new() };
            assert_eq!(undeclared(&mut resumed, &registry, &[message, message]), expected, "{second} after {first}");
        }
        let mut resumed = Decoder::new(&feed).unwrap();
        resumed.resume(Resume { columns, ..Resume::default() });
        let [bare, wrapped, avro] = forms.each_ref().map(|(_, message)| message.as_slice());
        assert_eq!(
            undeclared(&mut resumed, &registry, &[wrapped, bare, bare, avro, bare]),
            noted(3),
            "a batch of every form after {first}"
        );
    }
}
