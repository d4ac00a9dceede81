//! JSON messages with a schema block as the Avro that Kafka Connect's converter makes of them: framed by a registry's id.
//!
//! Written from the published formats and independent of the decoder under test.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};

/// A schema registry in memory: schemas by ids counted from 1.
#[derive(Debug, Clone, Default)]
pub struct AvroRegistry {
    texts: Vec<String>,
    ids: BTreeMap<String, u32>,
}

impl AvroRegistry {
    /// The id of a schema, given out when it is met first.
    pub fn id_of(&mut self, schema: &Json) -> u32 {
        let text = schema.to_string();
        if let Some(id) = self.ids.get(&text) {
            return *id;
        }
        self.texts.push(text.clone());
        let id = u32::try_from(self.texts.len()).expect("few schemas");
        self.ids.insert(text, id);
        id
    }

    /// The text of a schema.
    pub fn text(&self, id: u32) -> Option<&str> {
        let place = usize::try_from(id).ok()?.checked_sub(1)?;
        self.texts.get(place).map(String::as_str)
    }

    /// A message with its schema block (`{"schema":…,"payload":…}`) in Avro; a null payload is no message.
    pub fn framed(&mut self, message: &Json) -> Option<Vec<u8>> {
        let (schema, payload) = (&message["schema"], &message["payload"]);
        assert!(schema.is_object(), "a message has its schema");
        if payload.is_null() {
            return None;
        }
        let avro = avro_schema(schema, &mut Names::default());
        let mut bytes = vec![0];
        bytes.extend(self.id_of(&avro).to_be_bytes());
        write_value(schema, payload, &mut bytes);
        Some(bytes)
    }
}

/// Records defined so far, by their full name.
#[derive(Default)]
struct Names {
    defined: BTreeMap<String, Json>,
    unnamed: usize,
}

fn is_optional(schema: &Json) -> bool {
    schema["optional"].as_bool().unwrap_or(false)
}

fn default_of(schema: &Json) -> &Json {
    &schema["default"]
}

/// Null is the first branch unless the default is another value, since a union's default is one of its first branch.
fn null_is_first(schema: &Json) -> bool {
    default_of(schema).is_null()
}

/// The Avro schema of a schema of Connect.
pub fn avro(schema: &Json) -> Json {
    avro_schema(schema, &mut Names::default())
}

fn avro_schema(schema: &Json, names: &mut Names) -> Json {
    let plain = body(schema, names);
    match (is_optional(schema), null_is_first(schema)) {
        (false, _) => plain,
        (true, true) => json!(["null", plain]),
        (true, false) => json!([plain, "null"]),
    }
}

fn body(schema: &Json, names: &mut Names) -> Json {
    let kind = schema["type"].as_str().expect("a schema has a type");
    let mut avro = Map::new();
    let simple = match kind {
        "boolean" | "string" | "bytes" | "double" | "float" => kind,
        "int8" | "int16" => {
            avro.insert("connect.type".to_owned(), kind.into());
            "int"
        }
        "int32" => "int",
        "int64" => "long",
        "float32" => "float",
        "float64" => "double",
        "array" => {
            avro.insert("items".to_owned(), avro_schema(&schema["items"], names));
            "array"
        }
        "map" if has_text_keys(schema) => {
            avro.insert("values".to_owned(), avro_schema(&schema["values"], names));
            "map"
        }
        "map" => {
            names.unnamed += 1;
            let fields = json!([field("key", &schema["keys"], names), field("value", &schema["values"], names)]);
            let entry = json!({"type": "record", "name": format!("MapEntry{}", names.unnamed), "namespace": "io.confluent.connect.avro",
                               "fields": fields, "connect.internal.type": "MapEntry"});
            avro.insert("items".to_owned(), entry);
            "array"
        }
        "struct" => return record(schema, names),
        other => panic!("no type {other}"),
    };
    avro.insert("type".to_owned(), simple.into());
    meaning(schema, &mut avro);
    if avro.len() == 1 { simple.into() } else { avro.into() }
}

fn has_text_keys(schema: &Json) -> bool {
    schema["keys"]["type"] == "string" && !is_optional(&schema["keys"])
}

fn record(schema: &Json, names: &mut Names) -> Json {
    let full = match schema["name"].as_str() {
        Some(name) => name.to_owned(),
        None => {
            names.unnamed += 1;
            format!("io.confluent.connect.avro.ConnectDefault{}", names.unnamed)
        }
    };
    if names.defined.get(&full) == Some(&schema["fields"]) {
        return full.into();
    }
    names.defined.insert(full.clone(), schema["fields"].clone());
    let mut avro = Map::new();
    let (namespace, name) = full.rsplit_once('.').unwrap_or(("", &full));
    avro.insert("type".to_owned(), "record".into());
    avro.insert("name".to_owned(), name.into());
    avro.insert("namespace".to_owned(), namespace.into());
    let fields = schema["fields"].as_array().expect("a struct has fields");
    let fields = fields.iter().map(|schema| field(schema["field"].as_str().expect("a field has a name"), schema, names)).collect();
    avro.insert("fields".to_owned(), Json::Array(fields));
    meaning(schema, &mut avro);
    avro.into()
}

fn field(name: &str, schema: &Json, names: &mut Names) -> Json {
    let mut field = json!({"name": name, "type": avro_schema(schema, names)});
    if !default_of(schema).is_null() {
        field["default"] = default_of(schema).clone();
    } else if is_optional(schema) {
        field["default"] = Json::Null;
    }
    field
}

fn meaning(schema: &Json, avro: &mut Map<String, Json>) {
    let Some(name) = schema["name"].as_str() else { return };
    avro.insert("connect.name".to_owned(), name.into());
    for (from, to) in [("version", "connect.version"), ("parameters", "connect.parameters"), ("default", "connect.default")] {
        if !schema[from].is_null() {
            avro.insert(to.to_owned(), schema[from].clone());
        }
    }
    let logical = match name {
        "org.apache.kafka.connect.data.Decimal" => {
            let parameter = |name: &str| schema["parameters"][name].as_str().and_then(|text| text.parse::<i64>().ok());
            avro.insert("scale".to_owned(), parameter("scale").into());
            // Where the source gives none, the converter writes 64.
            avro.insert("precision".to_owned(), parameter("connect.decimal.precision").unwrap_or(64).into());
            "decimal"
        }
        "org.apache.kafka.connect.data.Date" => "date",
        "org.apache.kafka.connect.data.Time" => "time-millis",
        "org.apache.kafka.connect.data.Timestamp" => "timestamp-millis",
        _ => return,
    };
    avro.insert("logicalType".to_owned(), logical.into());
}

/// Appends a number as Avro writes it.
pub fn write_long(value: i64, out: &mut Vec<u8>) {
    let mut rest = (value << 1 ^ value >> 63).cast_unsigned();
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).expect("seven bits"));
}

/// Appends a length and bytes.
pub fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_long(i64::try_from(bytes.len()).expect("few bytes"), out);
    out.extend_from_slice(bytes);
}

fn write_value(schema: &Json, value: &Json, out: &mut Vec<u8>) {
    if is_optional(schema) {
        write_long(i64::from(value.is_null() != null_is_first(schema)), out);
        if value.is_null() {
            return;
        }
    }
    match schema["type"].as_str().expect("a schema has a type") {
        "boolean" => out.push(u8::from(value.as_bool().expect("a boolean"))),
        "int8" | "int16" | "int32" | "int64" => write_long(value.as_i64().expect("a whole number"), out),
        #[expect(clippy::cast_possible_truncation, reason = "a float's value came from a float")]
        "float" | "float32" => out.extend((number(value) as f32).to_le_bytes()),
        "double" | "float64" => out.extend(number(value).to_le_bytes()),
        "string" => write_bytes(value.as_str().expect("text").as_bytes(), out),
        "bytes" => write_bytes(&STANDARD.decode(value.as_str().expect("base64")).expect("base64"), out),
        "array" => {
            let items = value.as_array().expect("an array");
            blocks(items.len(), out, |at, out| write_value(&schema["items"], &items[at], out));
        }
        "map" => {
            let pairs: Vec<(Json, Json)> = match value {
                Json::Object(members) => members.iter().map(|(key, value)| (key.clone().into(), value.clone())).collect(),
                _ => value.as_array().expect("pairs").iter().map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
            };
            blocks(pairs.len(), out, |at, out| {
                write_value(&schema["keys"], &pairs[at].0, out);
                write_value(&schema["values"], &pairs[at].1, out);
            });
        }
        "struct" => {
            for field in schema["fields"].as_array().expect("a struct has fields") {
                write_value(field, &value[field["field"].as_str().expect("a field has a name")], out);
            }
        }
        other => panic!("no type {other}"),
    }
}

fn number(value: &Json) -> f64 {
    match value.as_str() {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        _ => value.as_f64().expect("a number"),
    }
}

/// Elements in two blocks, the second with its size, as writers that do not know the count beforehand do.
fn blocks(count: usize, out: &mut Vec<u8>, mut write: impl FnMut(usize, &mut Vec<u8>)) {
    let length = |count: usize| i64::try_from(count).expect("few elements");
    let first = count.div_ceil(2);
    if first > 0 {
        write_long(length(first), out);
        (0..first).for_each(|at| write(at, out));
    }
    if count > first {
        let mut block = Vec::new();
        (first..count).for_each(|at| write(at, &mut block));
        write_long(-length(count - first), out);
        write_long(length(block.len()), out);
        out.extend(block);
    }
    write_long(0, out);
}
