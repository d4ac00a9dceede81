//! The JSON schema of the YAML form: for editors, and the single definition the YAML reader goes by.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Value as Json, json};

use crate::data_type::DataType;
use crate::pipeline::Pipeline;
use crate::table_name::TableName;

impl JsonSchema for TableName {
    fn schema_name() -> Cow<'static, str> {
        "TableName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "table-name", "description": "schema.table, parts with dots or blanks in back-quotes." })
    }
}

impl JsonSchema for DataType {
    fn schema_name() -> Cow<'static, str> {
        "DataType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "column-type",
            "description": "boolean, byte, short, integer, long, float, double, decimal(p,s), string, binary, date, timestamp, timestamp_ntz, array<…>, map<…,…> or struct<name:type,…>."
        })
    }
}

impl Pipeline {
    /// The schema of a pipeline file, JSON Schema draft 2020-12. A variant whose options all have defaults may be written as
    /// a word.
    pub fn json_schema() -> Json {
        let mut document = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Self>().to_value();
        let definitions = document.get("$defs").cloned().unwrap_or_default();
        if let Some(Json::Object(schemas)) = document.get_mut("$defs") {
            schemas.values_mut().for_each(|schema| allow_words(schema, &definitions));
        }
        document
    }
}

/// Adds the bare word for each variant of an enum that is a mapping without required fields.
fn allow_words(schema: &mut Json, definitions: &Json) {
    let Some(Json::Array(variants)) = schema.get_mut("oneOf") else { return };
    let words = variants.iter().filter_map(|variant| {
        let (name, inner) = variant.get("properties")?.as_object()?.iter().next()?;
        let inner = match inner.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix("#/$defs/")) {
            Some(definition) => definitions.get(definition)?,
            None => inner,
        };
        let all_default = inner.get("type") == Some(&json!("object")) && inner.get("required").is_none();
        all_default.then(|| json!({ "const": name, "type": "string", "description": "The same with its defaults." }))
    });
    let words: Vec<_> = words.collect();
    variants.extend(words);
}
