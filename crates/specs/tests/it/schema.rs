use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tributary_specs::Pipeline;
use tributary_testkit::golden;

#[test]
fn the_generated_json_schema_is_the_one_in_the_reference() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/pipeline.schema.json");
    let text = serde_json::to_string_pretty(&Pipeline::json_schema()).unwrap();
    golden::compare(&file, &format!("{text}\n"));
}

/// The YAML reader goes by the schema; a word it does not know would be a rule it does not hold.
#[test]
fn the_json_schema_uses_no_word_the_reader_does_not_know() {
    let known = [
        "$schema",
        "$defs",
        "$ref",
        "title",
        "description",
        "default",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "oneOf",
        "anyOf",
        "const",
        "format",
        "minimum",
        "minLength",
        "maxLength",
    ];
    let mut words = BTreeSet::new();
    collect(&Pipeline::json_schema(), &mut words);
    let unknown: Vec<_> = words.into_iter().filter(|word| !known.contains(&word.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

fn collect(schema: &Value, words: &mut BTreeSet<String>) {
    let Value::Object(fields) = schema else { return };
    for (word, value) in fields {
        words.insert(word.clone());
        match (word.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => named.values().for_each(|schema| collect(schema, words)),
            ("oneOf" | "anyOf", Value::Array(schemas)) => schemas.iter().for_each(|schema| collect(schema, words)),
            ("items" | "additionalProperties", schema) => collect(schema, words),
            _ => {}
        }
    }
}

#[test]
fn every_field_of_the_schema_is_described() {
    let schema = Pipeline::json_schema();
    let mut bare = Vec::new();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        for (field, property) in definition["properties"].as_object().into_iter().flatten() {
            if property.get("description").is_none() {
                bare.push(format!("{name}.{field}"));
            }
        }
    }
    assert!(bare.is_empty(), "{bare:?}");
}
