//! The schema as the log holds it: JSON of nested fields, each with metadata.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType as Arrow, Field, Fields, Schema};
use serde_json::{Map, Value, json};
use tributary_specs::{Column, DataType};

const COMMENT: &str = "comment";
const DEFAULT: &str = "CURRENT_DEFAULT";
const GENERATED: &str = "delta.generationExpression";

/// The schema text of a table with these columns.
pub(crate) fn schema_string(columns: &[Column]) -> String {
    json!({ "type": "struct", "fields": columns.iter().map(field_json).collect::<Vec<_>>() }).to_string()
}

/// The schema text `schema` with the columns, and the fields inside columns, that are wanted and not there; what it says of the
/// others stays. None when nothing is to be added.
pub(crate) fn schema_string_with(schema: &str, wanted: &[Column]) -> Result<Option<String>, String> {
    let current: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let mut schema = current.clone();
    grow_fields(schema["fields"].as_array_mut().ok_or("the schema has no fields")?, wanted);
    Ok((schema != current).then(|| schema.to_string()))
}

/// Appends the fields that are wanted and not there, at every depth; what is there stays as it is written.
fn grow_fields(fields: &mut Vec<Value>, wanted: &[Column]) {
    for (field, column) in fields.iter_mut().zip(wanted) {
        let node = &mut field["type"];
        match data_type(&column.name, node) {
            Ok(current) if grows_to(&current, &column.data_type) => grow_type(node, &column.data_type),
            _ => *node = type_json(&column.data_type),
        }
    }
    fields.extend(wanted.iter().skip(fields.len()).map(field_json));
}

fn grow_type(node: &mut Value, wanted: &DataType) {
    match wanted {
        DataType::Struct(wanted) => {
            if let Some(fields) = node.get_mut("fields").and_then(Value::as_array_mut) {
                grow_fields(fields, wanted);
            }
        }
        DataType::Array(wanted) => grow_type(&mut node["elementType"], wanted),
        DataType::Map(_, wanted) => grow_type(&mut node["valueType"], wanted),
        _ => {}
    }
}

fn field_json(column: &Column) -> Value {
    let mut metadata = Map::new();
    for (key, value) in [(COMMENT, &column.comment), (DEFAULT, &column.default), (GENERATED, &column.generated)] {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), Value::String(value.clone()));
        }
    }
    json!({ "name": column.name, "type": type_json(&column.data_type), "nullable": column.nullable, "metadata": metadata })
}

fn type_json(data_type: &DataType) -> Value {
    match data_type {
        DataType::Array(element) => json!({ "type": "array", "elementType": type_json(element), "containsNull": true }),
        DataType::Struct(fields) => json!({ "type": "struct", "fields": fields.iter().map(field_json).collect::<Vec<_>>() }),
        DataType::Map(key, value) => {
            json!({ "type": "map", "keyType": type_json(key), "valueType": type_json(value), "valueContainsNull": true })
        }
        primitive => Value::String(primitive.to_string()),
    }
}

/// The columns of a schema text, as declared and as Arrow. Field metadata of the log goes along in Arrow.
pub(crate) fn parse(schema: &str) -> Result<(Vec<Column>, Schema), String> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| format!("the schema is no JSON: {error}"))?;
    let fields = fields_of(&schema)?;
    let columns = fields.iter().map(column).collect::<Result<_, _>>()?;
    let arrow = fields.iter().map(arrow_field).collect::<Result<Vec<_>, _>>()?;
    Ok((columns, Schema::new(arrow)))
}

fn fields_of(node: &Value) -> Result<&Vec<Value>, String> {
    node["fields"].as_array().ok_or_else(|| "a struct has no fields".to_owned())
}

fn name_of(field: &Value) -> Result<&str, String> {
    field["name"].as_str().ok_or_else(|| "a field has no name".to_owned())
}

fn column(field: &Value) -> Result<Column, String> {
    let name = name_of(field)?;
    let text = |key: &str| field["metadata"].get(key).and_then(Value::as_str).map(str::to_owned);
    let mut column = Column::new(name, data_type(name, &field["type"])?);
    column.nullable = field["nullable"].as_bool().unwrap_or(true);
    column.comment = text(COMMENT);
    column.default = text(DEFAULT);
    column.generated = text(GENERATED);
    Ok(column)
}

fn data_type(name: &str, node: &Value) -> Result<DataType, String> {
    if let Some(text) = node.as_str() {
        return text.parse().map_err(|_| format!("column `{name}` has type `{text}`"));
    }
    match node["type"].as_str() {
        Some("struct") => Ok(DataType::Struct(fields_of(node)?.iter().map(column).collect::<Result<_, _>>()?)),
        Some("array") => Ok(DataType::Array(Box::new(data_type(name, &node["elementType"])?))),
        Some("map") => Ok(DataType::Map(Box::new(data_type(name, &node["keyType"])?), Box::new(data_type(name, &node["valueType"])?))),
        _ => Err(format!("column `{name}` has no type")),
    }
}

fn arrow_field(field: &Value) -> Result<Field, String> {
    let name = name_of(field)?;
    let metadata: HashMap<String, String> = field["metadata"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    Ok(Field::new(name, arrow_type(name, &field["type"])?, field["nullable"].as_bool().unwrap_or(true)).with_metadata(metadata))
}

fn arrow_type(name: &str, node: &Value) -> Result<Arrow, String> {
    if node.is_string() {
        return Ok(data_type(name, node)?.to_arrow());
    }
    let nullable = |key: &str| node[key].as_bool().unwrap_or(true);
    match node["type"].as_str() {
        Some("struct") => Ok(Arrow::Struct(fields_of(node)?.iter().map(arrow_field).collect::<Result<Fields, _>>()?)),
        Some("array") => {
            let element = arrow_type(name, &node["elementType"])?;
            Ok(Arrow::List(Arc::new(Field::new("element", element, nullable("containsNull")))))
        }
        Some("map") => {
            let key = Field::new("key", arrow_type(name, &node["keyType"])?, false);
            let value = Field::new("value", arrow_type(name, &node["valueType"])?, nullable("valueContainsNull"));
            Ok(Arrow::Map(Arc::new(Field::new_struct("key_value", vec![key, value], false)), false))
        }
        _ => Err(format!("column `{name}` has no type")),
    }
}

/// Which columns a change of schema adds. With `retypes` columns may take another type: every file is rewritten in it.
///
/// # Errors
/// What the change would do that no commit of ours carries, naming the column.
pub(crate) fn added<'a>(current: &[Column], wanted: &'a [Column], retypes: bool) -> Result<&'a [Column], String> {
    for (position, column) in current.iter().enumerate() {
        match wanted.get(position) {
            None => return Err(format!("column `{}` would be dropped", column.name)),
            Some(other) if other.name != column.name => {
                return Err(format!("column {} is `{}`, not `{}`", position + 1, column.name, other.name));
            }
            Some(other) if !retypes && !grows_to(&column.data_type, &other.data_type) => {
                return Err(format!("column `{}` is {}, not {}", column.name, column.data_type, other.data_type));
            }
            Some(other) if other.nullable != column.nullable => {
                return Err(format!("column `{}` would change whether it refuses null", column.name));
            }
            Some(_) => {}
        }
    }
    let added = &wanted[current.len()..];
    for (index, column) in added.iter().enumerate() {
        if !column.nullable {
            return Err(format!("new column `{}` refuses null, but the rows there are have none", column.name));
        }
        if column.generated.is_some() {
            return Err(format!("new column `{}` is generated, but the rows there are have no value", column.name));
        }
        let before = current.iter().chain(&added[..index]);
        if let Some(other) = before.into_iter().find(|other| other.name.eq_ignore_ascii_case(&column.name)) {
            return Err(format!("new column `{}` is called like column `{}`", column.name, other.name));
        }
    }
    Ok(added)
}

/// What columns that replace all others may not do: repeat a name, or leave out, or change the type of, one the table is laid out by.
///
/// # Errors
/// What is wrong, naming the column.
pub(crate) fn replaced(current: &[Column], wanted: &[Column], bound: &[String]) -> Result<(), String> {
    for (index, column) in wanted.iter().enumerate() {
        if let Some(other) = wanted[..index].iter().find(|other| other.name.eq_ignore_ascii_case(&column.name)) {
            return Err(format!("column `{}` is called like column `{}`", column.name, other.name));
        }
    }
    for name in bound {
        let of = |columns: &[Column]| columns.iter().find(|column| column.name == *name).map(|column| column.data_type.clone());
        if of(current) != of(wanted) {
            return Err(format!("the table is laid out by column `{name}`, which would go or change its type"));
        }
    }
    Ok(())
}

/// Whether a type can become another in place: the same, or with nullable fields more at the end of a struct in it.
fn grows_to(current: &DataType, wanted: &DataType) -> bool {
    match (current, wanted) {
        (DataType::Struct(current), DataType::Struct(wanted)) => {
            let same = |(one, other): (&Column, &Column)| {
                one.name == other.name && one.nullable == other.nullable && grows_to(&one.data_type, &other.data_type)
            };
            current.len() <= wanted.len()
                && current.iter().zip(wanted).all(same)
                && wanted[current.len()..]
                    .iter()
                    .all(|added| added.nullable && !current.iter().any(|there| there.name.eq_ignore_ascii_case(&added.name)))
        }
        (DataType::Array(current), DataType::Array(wanted)) => grows_to(current, wanted),
        (DataType::Map(key, current), DataType::Map(other_key, wanted)) => same_type(key, other_key) && grows_to(current, wanted),
        (current, wanted) => current == wanted,
    }
}

/// Whether two types hold the same values; comments of nested fields do not matter.
pub(crate) fn same_type(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::Struct(one), DataType::Struct(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| {
                    one.name == other.name && one.nullable == other.nullable && same_type(&one.data_type, &other.data_type)
                })
        }
        (DataType::Array(one), DataType::Array(other)) => same_type(one, other),
        (DataType::Map(key, value), DataType::Map(other_key, other_value)) => same_type(key, other_key) && same_type(value, other_value),
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let mut total = Column::new("total", DataType::Decimal { precision: 12, scale: 2 });
        total.default = Some("0.00".to_owned());
        total.comment = Some("in euro".to_owned());
        let mut day = Column::new("day", DataType::Date);
        day.generated = Some("CAST(at AS DATE)".to_owned());
        vec![
            Column::new("id", DataType::Long).not_null(),
            total,
            Column::new("at", DataType::TimestampNtz),
            day,
            Column::new(
                "who",
                DataType::Struct(vec![
                    Column::new("given", DataType::String).not_null(),
                    Column::new("tags", DataType::Array(Box::new(DataType::String))),
                ]),
            ),
            Column::new("m", DataType::Map(Box::new(DataType::String), Box::new(DataType::Array(Box::new(DataType::Long))))),
        ]
    }

    #[test]
    fn the_text_is_what_the_protocol_says() {
        let text = schema_string(&columns()[..2]);
        let expected = json!({"type":"struct","fields":[
            {"name":"id","type":"long","nullable":false,"metadata":{}},
            {"name":"total","type":"decimal(12,2)","nullable":true,"metadata":{"comment":"in euro","CURRENT_DEFAULT":"0.00"}},
        ]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }

    #[test]
    fn columns_survive_the_log() {
        let (parsed, arrow) = parse(&schema_string(&columns())).unwrap();
        assert_eq!(parsed, columns());
        let types: Vec<_> = arrow.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, columns().iter().map(|column| column.data_type.to_arrow()).collect::<Vec<_>>());
    }

    #[test]
    fn what_the_log_says_of_a_field_goes_along() {
        let (_, arrow) = parse(
            r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"delta.identity.start":5,"x":"y"}}]}"#,
        )
        .unwrap();
        assert_eq!(arrow.field(0).metadata()["delta.identity.start"], "5");
        assert_eq!(arrow.field(0).metadata()["x"], "y");
    }

    #[test]
    fn a_type_we_do_not_have_is_named() {
        let error = parse(r#"{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]}"#).unwrap_err();
        assert_eq!(error, "column `v` has type `variant`");
    }

    #[test]
    fn new_columns_come_last_and_are_nullable() {
        let current = columns();
        let mut wanted = current.clone();
        wanted.push(Column::new("extra", DataType::Long));
        assert_eq!(added(&current, &wanted, false).unwrap(), &wanted[6..]);
        for (change, message) in [
            (wanted[1..].to_vec(), "column 1 is `id`, not `total`"),
            (wanted[..3].to_vec(), "column `day` would be dropped"),
            ([current.clone(), vec![Column::new("ID", DataType::Long)]].concat(), "new column `ID` is called like column `id`"),
            (
                [current.clone(), vec![Column::new("n", DataType::Long).not_null()]].concat(),
                "new column `n` refuses null, but the rows there are have none",
            ),
        ] {
            assert_eq!(added(&current, &change, false).unwrap_err(), message);
        }
    }

    #[test]
    fn a_column_takes_another_type_only_where_every_file_is_rewritten() {
        let current = [Column::new("id", DataType::Integer)];
        let wanted = [Column::new("id", DataType::Long)];
        assert_eq!(added(&current, &wanted, false).unwrap_err(), "column `id` is integer, not long");
        assert_eq!(added(&current, &wanted, true).unwrap(), &[]);
        assert_eq!(parse(&schema_string_with(&schema_string(&current), &wanted).unwrap().unwrap()).unwrap().0, wanted);
    }

    #[test]
    fn a_struct_grows_at_its_end_at_every_depth() {
        let row = |fields: &[&str]| DataType::Struct(fields.iter().map(|name| Column::new(*name, DataType::Long)).collect());
        let current = [Column::new("before", row(&["a"])), Column::new("all", DataType::Array(Box::new(row(&["a"]))))];
        let wanted = [Column::new("before", row(&["a", "b"])), Column::new("all", DataType::Array(Box::new(row(&["a", "b"]))))];
        assert_eq!(added(&current, &wanted, false).unwrap(), &[]);
        let grown = schema_string_with(&schema_string(&current), &wanted).unwrap().unwrap();
        assert_eq!(parse(&grown).unwrap().0, wanted);
        for refused in [row(&["b", "a"]), row(&[]), row(&["a", "A"]), DataType::Long] {
            assert!(added(&current[..1], &[Column::new("before", refused)], false).is_err());
        }
    }

    #[test]
    fn a_schema_grows_without_losing_what_it_said() {
        let text = r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"foreign":"x"}}]}"#;
        assert_eq!(schema_string_with(text, &[Column::new("a", DataType::Long)]).unwrap(), None);
        let grown = schema_string_with(text, &[Column::new("a", DataType::Long), Column::new("b", DataType::String)]).unwrap().unwrap();
        let (columns, arrow) = parse(&grown).unwrap();
        assert_eq!(columns.len(), 2);
        assert_eq!(arrow.field(0).metadata()["foreign"], "x");
    }
}
