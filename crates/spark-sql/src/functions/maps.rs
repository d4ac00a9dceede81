//! Maps and structs. A key is in a map once and is not null.

use tributary_lake::arrow::array::{Array, ArrayRef, BooleanArray};
use tributary_lake::arrow::datatypes::{DataType, Field};
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::arrays::element;
use super::conditions::common;
use super::own::Kind::{Any, List, Map, Text};
use super::own::{Arguments, Gives, Own, column, fault, or_literal, texts};
use super::{Entry, own, refused};
use crate::convert;
use crate::value::{Value, build, list_type, map_type, read, struct_type};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    // the engine's planner makes arrays of the arguments of what is called `map`
    own(&["map"], Own::new("map_of", &[], Gives::By(made_type), map).and_more(Any)),
    own(
        &["map_keys"],
        Own::new("map_keys", &[Any], Gives::By(|a| Ok(list_type(entry(map_or_null(a)?).0))), |a, to| {
            maps(a, to, |inside| Ok(Value::List(inside.into_iter().map(|(key, _)| key).collect())))
        }),
    ),
    own(
        &["map_values"],
        Own::new("map_values", &[Any], Gives::By(|a| Ok(list_type(entry(map_or_null(a)?).1))), |a, to| {
            maps(a, to, |inside| Ok(Value::List(inside.into_iter().map(|(_, value)| value).collect())))
        }),
    ),
    own(
        &["map_entries"],
        Own::new(
            "map_entries",
            &[Any],
            Gives::By(|a| {
                let (key, value) = entry(map_or_null(a)?);
                Ok(list_type(struct_type([("key", key), ("value", value)])))
            }),
            |a, to| maps(a, to, |inside| Ok(Value::List(inside.into_iter().map(|(key, value)| Value::Struct(vec![key, value])).collect()))),
        ),
    ),
    own(
        &["map_from_arrays"],
        Own::new("map_from_arrays", &[List, List], Gives::By(|a| Ok(map_type(element(&a.types[0]), element(&a.types[1])))), |a, to| {
            let one = |row| match (read(&a[0], row)?, read(&a[1], row)?) {
                (Value::List(keys), Value::List(values)) if keys.len() == values.len() => made(keys.into_iter().zip(values).collect()),
                (Value::List(_), Value::List(_)) => fault("`map_from_arrays` takes as many keys as values"),
                _ => Ok(Value::Null),
            };
            build((0..a[0].len()).map(one).collect::<Result<_>>()?, to)
        }),
    ),
    own(
        &["map_from_entries"],
        Own::new(
            "map_from_entries",
            &[List],
            Gives::By(|a| match element(&a.types[0]) {
                DataType::Struct(fields) if fields.len() == 2 => Ok(map_type(fields[0].data_type().clone(), fields[1].data_type().clone())),
                _ => Err(DataFusionError::Plan("`map_from_entries` takes an array of structs of two fields".to_owned())),
            }),
            |a, to| {
                let one = |row| {
                    let Value::List(inside) = read(&a[0], row)? else { return Ok(Value::Null) };
                    let mut pairs = Vec::new();
                    for value in inside {
                        match value {
                            Value::Struct(mut inside) => {
                                let value = inside.pop().unwrap_or(Value::Null);
                                pairs.push((inside.pop().unwrap_or(Value::Null), value));
                            }
                            _ => return Ok(Value::Null),
                        }
                    }
                    made(pairs)
                };
                build((0..a[0].len()).map(one).collect::<Result<_>>()?, to)
            },
        ),
    ),
    own(
        &["map_concat"],
        Own::new(
            "map_concat",
            &[],
            Gives::By(|a| {
                if a.types.iter().any(|data_type| !matches!(data_type, DataType::Map(..))) {
                    return Err(DataFusionError::Plan("`map_concat` takes maps".to_owned()));
                }
                if a.types.is_empty() { Ok(map_type(DataType::Utf8, DataType::Utf8)) } else { common(a.types) }
            }),
            |a, to| {
                let columns = a.iter().map(|column| convert::cast(column, to, false)).collect::<Result<Vec<_>>>()?;
                let one = |row| {
                    let mut pairs = Vec::new();
                    for column in &columns {
                        match read(column, row)? {
                            Value::Map(inside) => pairs.extend(inside),
                            _ => return Ok(Value::Null),
                        }
                    }
                    made(pairs)
                };
                build((0..columns.first().map_or(1, |column| column.len())).map(one).collect::<Result<_>>()?, to)
            },
        )
        .and_more(Any),
    ),
    own(
        &["map_contains_key"],
        Own::new("map_contains_key", &[Map, Any], Gives::Boolean, |a, _| {
            let (key, _) = entry(a[0].data_type());
            let wanted = convert::cast(&a[1], &key, false)?;
            let one = |row| match (read(&a[0], row)?, read(&wanted, row)?) {
                (Value::Map(inside), wanted) => Ok(Some(inside.iter().any(|(key, _)| key.is(&wanted)))),
                _ => Ok(None),
            };
            column((0..a[0].len()).map(one).collect::<Result<BooleanArray>>()?)
        }),
    ),
    own(
        &["str_to_map"],
        Own::new("str_to_map", &[Text, Text, Text], Gives::By(|_| Ok(map_type(DataType::Utf8, DataType::Utf8))), str_to_map).at_least(1),
    ),
    own(
        &["named_struct"],
        Own::new("named_struct", &[], Gives::By(named_type), |a, to| {
            let values: Vec<&ArrayRef> = a.iter().skip(1).step_by(2).collect();
            let one = |row| Ok(Value::Struct(values.iter().map(|column| read(column, row)).collect::<Result<_>>()?));
            build((0..a.first().map_or(1, |column| column.len())).map(one).collect::<Result<_>>()?, to)
        })
        .and_more(Any),
    ),
    refused(
        &["map_from_csv", "from_csv", "to_csv", "schema_of_csv", "from_xml", "to_xml", "schema_of_xml", "xpath"],
        "these texts are not read in this release; say split, or from_json",
    ),
    refused(
        &[
            "variant_get",
            "try_variant_get",
            "parse_json",
            "try_parse_json",
            "to_variant_object",
            "is_variant_null",
            "schema_of_variant",
            "variant_explode",
        ],
        "there is no VARIANT in this release; say from_json or a path into a JSON text",
    ),
];

/// The types of a map's keys and values.
pub(super) fn entry(map: &DataType) -> (DataType, DataType) {
    match map {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => (fields[0].data_type().clone(), fields[1].data_type().clone()),
            _ => (DataType::Null, DataType::Null),
        },
        _ => (DataType::Null, DataType::Null),
    }
}

fn map_or_null<'t>(arguments: &Arguments<'t>) -> Result<&'t DataType> {
    match &arguments.types[0] {
        map @ (DataType::Map(..) | DataType::Null) => Ok(map),
        other => Err(DataFusionError::Plan(format!("this takes a map, not {}", convert::word(other)))),
    }
}

/// A map of pairs.
pub(super) fn made(pairs: Vec<(Value, Value)>) -> Result<Value> {
    for (at, (key, _)) in pairs.iter().enumerate() {
        if key.is_null() {
            return fault("a key of a map is null");
        }
        if pairs[..at].iter().any(|(other, _)| other.is(key)) {
            return fault("a key is twice in a map");
        }
    }
    Ok(Value::Map(pairs))
}

fn made_type(arguments: &Arguments<'_>) -> Result<DataType> {
    if arguments.types.len() % 2 == 1 {
        return Err(DataFusionError::Plan("`map` takes keys and values in turns".to_owned()));
    }
    let of = |from: usize| common(&arguments.types.iter().skip(from).step_by(2).cloned().collect::<Vec<_>>());
    Ok(map_type(of(0)?, of(1)?))
}

fn map(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let (key, value) = entry(to);
    let columns = arguments.iter().enumerate().map(|(at, column)| convert::cast(column, if at % 2 == 0 { &key } else { &value }, false));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let one = |row| {
        let pairs = columns.chunks(2).map(|pair| Ok((read(&pair[0], row)?, read(&pair[1], row)?)));
        made(pairs.collect::<Result<_>>()?)
    };
    build((0..columns.first().map_or(1, |column| column.len())).map(one).collect::<Result<_>>()?, to)
}

fn maps(arguments: &[ArrayRef], to: &DataType, f: impl Fn(Vec<(Value, Value)>) -> Result<Value>) -> Result<ArrayRef> {
    let one = |row| match read(&arguments[0], row)? {
        Value::Map(inside) => f(inside),
        _ => Ok(Value::Null),
    };
    build((0..arguments[0].len()).map(one).collect::<Result<_>>()?, to)
}

/// The value of a key; null where the map has it not.
pub(super) fn looked_up(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let (key, _) = entry(arguments[0].data_type());
    let wanted = convert::cast(&arguments[1], &key, false)?;
    let one = |row| match (read(&arguments[0], row)?, read(&wanted, row)?) {
        (Value::Map(inside), wanted) if !wanted.is_null() => {
            Ok(inside.into_iter().find(|(key, _)| key.is(&wanted)).map_or(Value::Null, |(_, value)| value))
        }
        _ => Ok(Value::Null),
    };
    build((0..arguments[0].len()).map(one).collect::<Result<_>>()?, to)
}

fn str_to_map(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let rows = arguments[0].len();
    let pairs: Vec<Option<&str>> = or_literal(arguments.get(1).map(texts), ",", rows);
    let keys: Vec<Option<&str>> = or_literal(arguments.get(2).map(texts), ":", rows);
    let plain = |mark: &str| mark.chars().count() == 1 && !".$|()[{^?*+\\".contains(mark);
    let one = |row: usize| {
        let (true, Some(between), Some(after)) = (arguments[0].is_valid(row), pairs[row], keys[row]) else { return Ok(Value::Null) };
        if !plain(between) || !plain(after) {
            return fault("the marks of `str_to_map` are single signs in this release");
        }
        let pair = |text: &str| match text.split_once(after) {
            Some((key, value)) => (Value::Text(key.to_owned()), Value::Text(value.to_owned())),
            None => (Value::Text(text.to_owned()), Value::Null),
        };
        made(texts(&arguments[0]).value(row).split(between).map(pair).collect())
    };
    build((0..rows).map(one).collect::<Result<_>>()?, to)
}

fn named_type(arguments: &Arguments<'_>) -> Result<DataType> {
    if arguments.types.len() % 2 == 1 {
        return Err(DataFusionError::Plan("`named_struct` takes names and values in turns".to_owned()));
    }
    let field = |at: usize| match arguments.text(at) {
        Some(name) => Ok(Field::new(name, arguments.types[at + 1].clone(), true)),
        None => Err(DataFusionError::Plan("the names of `named_struct` are written in quotes".to_owned())),
    };
    Ok(DataType::Struct((0..arguments.types.len()).step_by(2).map(field).collect::<Result<_>>()?))
}
