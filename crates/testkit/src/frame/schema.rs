//! Schemas as trees: plain types, and the paths at which two of them differ.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use super::difference::SchemaDifference;

/// The type with every layout made plain: no dictionaries, runs, views or wide offsets; decimals 128 bits wide; elements and
/// entries under one name.
pub(super) fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => DataType::Decimal128(*precision, *scale),
        DataType::List(element) | DataType::LargeList(element) | DataType::ListView(element) | DataType::LargeListView(element) => {
            DataType::List(renamed(element, "element"))
        }
        DataType::FixedSizeList(element, size) => DataType::FixedSizeList(renamed(element, "element"), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| renamed(field, field.name())).collect()),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let pair = Fields::from(vec![renamed(&pair[0], "key"), renamed(&pair[1], "value")]);
                DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(pair), false)), *sorted)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}

fn renamed(field: &FieldRef, name: &str) -> FieldRef {
    Arc::new(Field::new(name, plain(field.data_type()), field.is_nullable()))
}

/// What about schemas is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaOptions {
    pub(super) physical: bool,
    pub(super) nullability: bool,
    pub(super) column_order: bool,
}

/// The paths at which two schemas differ, in the expected schema's order, then the unexpected ones.
pub(super) fn compare(actual: &Schema, expected: &Schema, options: SchemaOptions) -> Vec<SchemaDifference> {
    let mut found = Vec::new();
    compare_fields("", actual.fields(), expected.fields(), options, &mut found);
    let names = |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    if found.is_empty() && options.column_order && names(actual) != names(expected) {
        found.push(SchemaDifference {
            path: "columns".to_owned(),
            actual: Some(names(actual).join(", ")),
            expected: Some(names(expected).join(", ")),
        });
    }
    found
}

fn compare_fields(parent: &str, actual: &Fields, expected: &Fields, options: SchemaOptions, found: &mut Vec<SchemaDifference>) {
    let find = |fields: &Fields, name: &str| fields.iter().find(|field| field.name() == name).cloned();
    for field in expected {
        let path = join(parent, field.name());
        match find(actual, field.name()) {
            Some(other) => compare_field(&path, &other, field, options, found),
            None => found.push(SchemaDifference { path, actual: None, expected: Some(describe(field, options)) }),
        }
    }
    for field in actual.iter().filter(|field| find(expected, field.name()).is_none()) {
        found.push(SchemaDifference { path: join(parent, field.name()), actual: Some(describe(field, options)), expected: None });
    }
}

fn compare_field(path: &str, actual: &Field, expected: &Field, options: SchemaOptions, found: &mut Vec<SchemaDifference>) {
    let (a, e) = (layout(actual, options), layout(expected, options));
    let same_null = !options.nullability || actual.is_nullable() == expected.is_nullable();
    let before = found.len();
    match (&a, &e) {
        (DataType::Struct(a), DataType::Struct(e)) => compare_fields(path, a, e, options, found),
        (DataType::List(a), DataType::List(e)) => compare_field(&join(path, "element"), a, e, options, found),
        (DataType::Map(a, _), DataType::Map(e, _)) => compare_field(&join(path, "entries"), a, e, options, found),
        (a, e) if a != e => {
            found.push(SchemaDifference {
                path: path.to_owned(),
                actual: Some(describe(actual, options)),
                expected: Some(describe(expected, options)),
            });
        }
        _ => {}
    }
    if !same_null && !found[before..].iter().any(|difference| difference.path == path) {
        found.push(SchemaDifference {
            path: path.to_owned(),
            actual: Some(describe(actual, options)),
            expected: Some(describe(expected, options)),
        });
    }
}

fn layout(field: &Field, options: SchemaOptions) -> DataType {
    if options.physical { field.data_type().clone() } else { plain(field.data_type()) }
}

fn describe(field: &Field, options: SchemaOptions) -> String {
    let data_type = match layout(field, options) {
        DataType::Struct(_) => "Struct".to_owned(),
        DataType::List(_) => "List".to_owned(),
        DataType::Map(..) => "Map".to_owned(),
        other => other.to_string(),
    };
    match (options.nullability, field.is_nullable()) {
        (false, _) => data_type,
        (true, true) => format!("{data_type} nullable"),
        (true, false) => format!("{data_type} not null"),
    }
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}
