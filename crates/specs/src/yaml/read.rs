//! A node against the JSON schema: every mistake with its place, and the JSON value that is left.

use serde_json::{Map, Value as Json};
use tributary_fault::nearest;

use crate::data_type::DataType;
use crate::error::Error;
use crate::problem::Path;
use crate::table_name::TableName;
use crate::yaml::node::{At, Entry, Node, Value};

/// Reads nodes of one file by one schema document.
pub(crate) struct Reader<'a> {
    pub document: &'a Json,
    pub mistakes: Vec<(At, Path, Error)>,
}

impl<'a> Reader<'a> {
    /// The value of `node` as `schema` has it, where the node can be used at all.
    pub fn value(&mut self, node: &Node, schema: &'a Json, path: &Path) -> Option<Json> {
        let schema = self.resolved(schema);
        if let Some(inner) = self.inner_of_option(schema) {
            return if matches!(node.value, Value::Null) { Some(Json::Null) } else { self.value(node, inner, path) };
        }
        if let Some(variants) = schema.get("oneOf").and_then(Json::as_array) {
            return self.choice(node, variants, path);
        }
        match type_of(schema) {
            "object" => self.object(node, schema, path),
            "array" => self.list(node, schema, path),
            "boolean" => match &node.value {
                Value::Boolean(value, _) => Some(Json::Bool(*value)),
                _ => self.wrong_type(node, "true or false", path),
            },
            "integer" => match &node.value {
                Value::Number(number, _) if number.is_u64() => Some(Json::Number(number.clone())),
                _ => self.wrong_type(node, "a whole number of 0 or more", path),
            },
            _ => self.text(node, schema, path),
        }
    }

    /// The schema of a property of the pipeline itself.
    pub fn property(&self, name: &str) -> Option<&'a Json> {
        self.document.get("properties").and_then(|properties| properties.get(name))
    }

    fn resolved(&self, schema: &'a Json) -> &'a Json {
        let target = schema.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
        target.and_then(|pointer| self.document.pointer(pointer)).unwrap_or(schema)
    }

    /// What an optional field holds when it is there.
    fn inner_of_option(&self, schema: &'a Json) -> Option<&'a Json> {
        let [inner, null] = schema.get("anyOf")?.as_array()?.as_slice() else { return None };
        (type_of(null) == "null").then_some(inner)
    }

    fn object(&mut self, node: &Node, schema: &'a Json, path: &Path) -> Option<Json> {
        let Value::Map(entries) = &node.value else {
            return self.wrong_type(node, "a mapping", path);
        };
        let properties = schema.get("properties").and_then(Json::as_object);
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        let mut object = Map::new();
        for entry in entries {
            let field_path = path.field(&entry.key);
            match properties.and_then(|properties| properties.get(&entry.key)) {
                Some(property) => {
                    let value = self.value(&entry.node, property, &field_path);
                    object.extend(value.map(|value| (entry.key.clone(), value)));
                }
                None if others.is_some() => {
                    let value = self.as_written(&entry.node, &field_path);
                    object.extend(value.map(|value| (entry.key.clone(), value)));
                }
                None => self.unknown_field(entry, properties, field_path),
            }
        }
        self.missing_fields(node, schema, entries, path).then_some(Json::Object(object))
    }

    /// Whether every required field stands among the entries.
    fn missing_fields(&mut self, node: &Node, schema: &Json, entries: &[Entry], path: &Path) -> bool {
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        let before = self.mistakes.len();
        for field in required.filter(|field| !entries.iter().any(|entry| entry.key == *field)) {
            self.mistakes.push((node.at, path.clone(), Error::MissingField { field: field.to_owned() }));
        }
        self.mistakes.len() == before
    }

    pub fn unknown_field(&mut self, entry: &Entry, properties: Option<&Map<String, Json>>, path: Path) {
        let known = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
        let near = nearest(&entry.key, known).map(str::to_owned);
        self.mistakes.push((entry.key_at, path, Error::UnknownField { field: entry.key.clone(), nearest: near }));
    }

    fn list(&mut self, node: &Node, schema: &'a Json, path: &Path) -> Option<Json> {
        let Value::List(items) = &node.value else {
            return self.wrong_type(node, "a list", path);
        };
        let item_schema = schema.get("items")?;
        let values = items.iter().enumerate().map(|(index, item)| self.value(item, item_schema, &path.index(index)));
        values.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>().map(Json::Array)
    }

    /// A table property: any scalar, as it is written.
    fn as_written(&mut self, node: &Node, path: &Path) -> Option<Json> {
        match &node.value {
            Value::Text(text) | Value::Boolean(_, text) | Value::Number(_, text) => Some(Json::String(text.clone())),
            Value::Null | Value::List(_) | Value::Map(_) => self.wrong_type(node, "a text", path),
        }
    }

    fn text(&mut self, node: &Node, schema: &Json, path: &Path) -> Option<Json> {
        let Value::Text(text) = &node.value else {
            return self.wrong_type(node, "a text", path);
        };
        let mistake = match schema.get("format").and_then(Json::as_str) {
            Some("table-name") => text.parse::<TableName>().err(),
            Some("column-type") => text.parse::<DataType>().err(),
            _ if schema.get("maxLength") == Some(&Json::from(1)) && text.chars().count() != 1 => {
                Some(Error::WrongType { expected: "a single character".to_owned(), found: format!("the text {text:?}") })
            }
            _ => None,
        };
        match mistake {
            Some(mistake) => {
                self.mistakes.push((node.at, path.clone(), mistake));
                None
            }
            None => Some(Json::String(text.clone())),
        }
    }

    /// One of several variants: a word, or a mapping with the variant as its only field.
    fn choice(&mut self, node: &Node, variants: &'a [Json], path: &Path) -> Option<Json> {
        match &node.value {
            Value::Text(word) if word_variant(variants, word).is_some() => Some(match object_variant(variants, word) {
                Some(_) => Json::Object([(word.clone(), Json::Object(Map::new()))].into_iter().collect()),
                None => Json::String(word.clone()),
            }),
            Value::Text(word) if object_variant(variants, word).is_some() => {
                self.wrong_type(node, &format!("a mapping with the one field {word}"), path)
            }
            Value::Text(word) => self.unknown_choice(node.at, word, variants, path),
            Value::Map(entries) => match entries.as_slice() {
                [entry] => match object_variant(variants, &entry.key) {
                    Some(inner) => {
                        let value = self.value(&entry.node, inner, &path.field(&entry.key))?;
                        Some(Json::Object([(entry.key.clone(), value)].into_iter().collect()))
                    }
                    None if word_variant(variants, &entry.key).is_some() => self.option_of_another(entry, variants, path),
                    None => self.unknown_choice(entry.key_at, &entry.key, variants, path),
                },
                _ => self.wrong_type(node, &format!("one of {}", choices(variants)), path),
            },
            _ => self.wrong_type(node, &format!("one of {}", choices(variants)), path),
        }
    }

    /// A variant without options was given some: says which variant has them.
    fn option_of_another(&mut self, entry: &Entry, variants: &[Json], path: &Path) -> Option<Json> {
        let Value::Map(options) = &entry.node.value else {
            return self.wrong_type(&entry.node, &format!("the word {} alone", entry.key), path);
        };
        for option in options {
            let has_it = |name: &&str| object_variant(variants, name).is_some_and(|inner| inner["properties"].get(&option.key).is_some());
            let error = Error::OptionOfAnother {
                option: option.key.clone(),
                choice: entry.key.clone(),
                other: names(variants).into_iter().find(has_it).map(str::to_owned),
            };
            self.mistakes.push((option.key_at, path.field(&entry.key).field(&option.key), error));
        }
        None
    }

    fn unknown_choice(&mut self, at: At, found: &str, variants: &[Json], path: &Path) -> Option<Json> {
        let near = nearest(found, names(variants)).map(str::to_owned);
        let error = Error::UnknownChoice { found: found.to_owned(), choices: choices(variants), nearest: near };
        self.mistakes.push((at, path.clone(), error));
        None
    }

    fn wrong_type(&mut self, node: &Node, expected: &str, path: &Path) -> Option<Json> {
        let found = match &node.value {
            Value::Null => "nothing".to_owned(),
            Value::Boolean(_, text) => format!("{text} without quotes"),
            Value::Number(_, text) => format!("the number {text} without quotes"),
            Value::Text(text) if text.chars().count() <= 60 => format!("the text {text:?}"),
            Value::Text(_) => "a text".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        };
        self.mistakes.push((node.at, path.clone(), Error::WrongType { expected: expected.to_owned(), found }));
        None
    }
}

fn type_of(schema: &Json) -> &str {
    match schema.get("type") {
        Some(Json::String(one)) => one,
        Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).find(|one| *one != "null").unwrap_or_default(),
        _ => "",
    }
}

fn word_variant<'a>(variants: &'a [Json], word: &str) -> Option<&'a Json> {
    variants.iter().find(|variant| variant.get("const").and_then(Json::as_str) == Some(word))
}

/// The schema of what stands under a variant that is a mapping.
fn object_variant<'a>(variants: &'a [Json], name: &str) -> Option<&'a Json> {
    variants.iter().find_map(|variant| variant.get("properties")?.get(name))
}

/// Each variant's name once, in the order of the schema.
fn names(variants: &[Json]) -> Vec<&str> {
    let mut names = Vec::new();
    for variant in variants {
        let word = variant.get("const").and_then(Json::as_str);
        let field = variant.get("properties").and_then(Json::as_object).and_then(|fields| fields.keys().next()).map(String::as_str);
        names.extend(word.or(field).filter(|name| !names.contains(name)));
    }
    names
}

fn choices(variants: &[Json]) -> String {
    names(variants).join(", ")
}
