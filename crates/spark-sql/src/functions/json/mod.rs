//! JSON texts.

mod path;
mod text;

use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef, Int32Array, StringArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use self::path::Path;
use self::text::{Json, quoted};
use super::own::Kind::{Any, Text};
use super::own::{Arguments, Gives, Own, column, fault, one, texts};
use super::texts::lists;
use super::{Entry, hidden, own};
use crate::form::Form;
use crate::value::{Value, build, list_type, read};
use crate::{calendar, convert, ddl, shortest, times};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    own(&["get_json_object"], Own::new("get_json_object", &[Text, Text], Gives::Text, get_json_object)),
    // a path after a colon, names without regard to case
    hidden(Own::new("json_at", &[Text], Gives::Text, json_at).and_more(Any)),
    hidden(Own::new("json_fields", &[Text], Gives::By(fields_type), json_fields).and_more(Text)),
    own(
        &["json_array_length"],
        Own::new("json_array_length", &[Text], Gives::Int, |a, _| {
            column::<Int32Array>(one(texts(&a[0]), |text: &str| {
                Ok(match Json::parse(text) {
                    Some(Json::List(inside)) => i32::try_from(inside.len()).ok(),
                    _ => None,
                })
            })?)
        }),
    ),
    own(
        &["json_object_keys"],
        Own::new("json_object_keys", &[Text], Gives::Texts, |a, _| {
            let keys = texts(&a[0]).iter().map(|text| match text.and_then(Json::parse) {
                Some(Json::Object(fields)) => Some(fields.into_iter().map(|(name, _)| name).collect()),
                _ => None,
            });
            Ok(lists::<String>(keys))
        }),
    ),
    own(&["from_json"], Own::new("from_json", &[Text, Text, Any], Gives::By(schema_type), from_json).at_least(2)),
    own(&["to_json"], Own::new("to_json", &[Any, Any], Gives::Text, to_json).at_least(1)),
    own(
        &["schema_of_json"],
        Own::new("schema_of_json", &[Text], Gives::Text, |a, _| {
            column::<StringArray>(one(texts(&a[0]), |text: &str| match Json::parse(text) {
                Some(json) => Ok(Some(schema(&json))),
                None => fault("a string cannot be read as JSON"),
            })?)
        }),
    ),
];

fn get_json_object(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let mut last: Option<(&str, Option<Path>)> = None;
    let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1]));
    let found = rows.map(|row| match row {
        (Some(text), Some(path)) => {
            if last.as_ref().is_none_or(|(known, _)| *known != path) {
                last = Some((path, Path::parse(path)));
            }
            let path = last.as_ref().and_then(|(_, path)| path.as_ref())?;
            path.find(&Json::parse(text)?)
        }
        _ => None,
    });
    column(found.collect::<StringArray>())
}

/// `text:a.b[0]`: names and places one after the other; a name that begins with `=` is taken as it is written.
fn json_at(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let found = |row: usize| {
        let steps = arguments[1..].iter().map(|column| read(column, row)).collect::<Result<Vec<_>>>()?;
        if arguments[0].is_null(row) {
            return Ok(None);
        }
        let Some(mut json) = Json::parse(texts(&arguments[0]).value(row)) else { return Ok(None) };
        for step in steps {
            let next = match (step, json) {
                (Value::Whole(at), Json::List(inside)) => usize::try_from(at).ok().and_then(|at| inside.into_iter().nth(at)),
                (Value::Text(name), Json::Object(fields)) => {
                    let is = |field: &str| match name.strip_prefix('=') {
                        Some(exact) => field == exact,
                        None => crate::scope::same(field, &name),
                    };
                    fields.into_iter().find(|(field, _)| is(field)).map(|(_, value)| value)
                }
                _ => None,
            };
            match next {
                Some(next) => json = next,
                None => return Ok(None),
            }
        }
        Ok(if json == Json::Null { None } else { Some(json.plain()) })
    };
    column((0..arguments[0].len()).map(found).collect::<Result<StringArray>>()?)
}

fn fields_type(arguments: &Arguments<'_>) -> Result<DataType> {
    let names: Vec<String> = (0..arguments.types.len() - 1).map(|at| format!("c{at}")).collect();
    Ok(list_type(crate::value::struct_type(names.iter().map(|name| (name.as_str(), DataType::Utf8)))))
}

/// One struct of the fields that are asked for.
fn json_fields(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let found = |row: usize| {
        let json = if arguments[0].is_valid(row) { Json::parse(texts(&arguments[0]).value(row)) } else { None };
        let field = |column: &ArrayRef| {
            let value = if column.is_valid(row) { json.as_ref().and_then(|json| json.field(texts(column).value(row))) } else { None };
            value.filter(|value| **value != Json::Null).map_or(Value::Null, |value| Value::Text(value.plain()))
        };
        Ok(Value::List(vec![Value::Struct(arguments[1..].iter().map(field).collect())]))
    };
    build((0..arguments[0].len()).map(found).collect::<Result<_>>()?, to)
}

/// What `from_json` and `to_json` are told besides.
#[derive(Debug, Default)]
struct Options {
    date: Option<Form>,
    timestamp: Option<Form>,
    stops: bool,
}

impl Options {
    fn of(column: Option<&ArrayRef>) -> Result<Self> {
        let mut options = Self::default();
        let Some(column) = column.filter(|column| !column.is_empty()) else { return Ok(options) };
        let Value::Map(pairs) = read(column, 0)? else { return Ok(options) };
        for pair in pairs {
            let (Value::Text(name), Value::Text(value)) = pair else { continue };
            match (name.to_lowercase().as_str(), value.to_lowercase().as_str()) {
                ("dateformat", _) => options.date = Some(Form::parse(&value)?),
                ("timestampformat", _) => options.timestamp = Some(Form::parse(&value)?),
                ("mode", "permissive") => {}
                ("mode", "failfast") => options.stops = true,
                _ => return Err(DataFusionError::Plan(format!("the option `{name}` of a JSON function is not executed by this release"))),
            }
        }
        Ok(options)
    }
}

fn schema_type(arguments: &Arguments<'_>) -> Result<DataType> {
    let Some(text) = arguments.text(1) else {
        return Err(DataFusionError::Plan("the schema of `from_json` is written in quotes".to_owned()));
    };
    ddl::schema(text).ok_or_else(|| DataFusionError::Plan("the schema of `from_json` cannot be read".to_owned()))
}

fn from_json(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let options = Options::of(arguments.get(2))?;
    let of = texts(&arguments[0]);
    let one = |row| {
        if of.is_null(row) {
            return Ok(Value::Null);
        }
        let text = of.value(row);
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        let found = Json::parse_whole(text).and_then(|json| match (to, json) {
            // one struct of a list stands for it, several do not
            (DataType::List(field), json @ Json::Object(_)) if matches!(field.data_type(), DataType::Struct(_)) => {
                Some(Value::List(vec![value(&json, field.data_type(), &options)?]))
            }
            (to, json) => value(&json, to, &options),
        });
        match (found, to) {
            (Some(found), _) => Ok(found),
            (None, _) if options.stops => fault("a string cannot be read as JSON of its schema"),
            (None, DataType::Struct(fields)) => Ok(Value::Struct(vec![Value::Null; fields.len()])),
            (None, _) => Ok(Value::Null),
        }
    };
    build((0..of.len()).map(one).collect::<Result<_>>()?, to)
}

/// A JSON value in a type; none where it is not of it. A field of a struct that is not of its type is null.
fn value(json: &Json, to: &DataType, options: &Options) -> Option<Value> {
    let read_as = |text: &str, to: &DataType| {
        let column: ArrayRef = Arc::new(StringArray::from(vec![text]));
        let found = convert::cast(&column, to, true).ok().and_then(|column| read(&column, 0).ok())?;
        (!found.is_null()).then_some(found)
    };
    match (to, json) {
        (_, Json::Null) => Some(Value::Null),
        (DataType::Utf8, json) => Some(Value::Text(json.plain())),
        (DataType::Boolean, Json::Boolean(yes)) => Some(Value::Boolean(*yes)),
        (to, Json::Number(digits)) if to.is_integer() => read_as(digits, to),
        (to, Json::Number(digits)) if to.is_numeric() => read_as(digits, to),
        (DataType::Decimal128(..), Json::Text(text)) => read_as(text, to),
        (DataType::Float32 | DataType::Float64, Json::Text(text)) => match text.as_str() {
            "NaN" | "+INF" | "INF" | "Infinity" | "+Infinity" | "-INF" | "-Infinity" => read_as(&text.replace("INF", "Infinity"), to),
            _ => None,
        },
        (DataType::Date32, Json::Text(text)) => match &options.date {
            Some(form) => form.read(text).and_then(|(local, _)| i32::try_from(calendar::split(local).0).ok()).map(Value::Date),
            None => times::day(text).map(Value::Date).or_else(|| text.parse().ok().map(Value::Date)),
        },
        (DataType::Timestamp(_, zone), Json::Text(text)) => {
            let found = match &options.timestamp {
                Some(form) => form.read(text),
                None => times::local_and_zone(text),
            };
            found.map(|(local, of)| Value::Instant(of.filter(|_| zone.is_some()).map_or(local, |of| of.instant_of(local))))
        }
        (DataType::Timestamp(_, Some(_)), Json::Number(digits)) => {
            digits.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(calendar::SECOND)).map(Value::Instant)
        }
        (DataType::Binary, Json::Text(text)) => super::digests::from_base64(text).map(Value::Bytes),
        (DataType::List(field), Json::List(inside)) => {
            Some(Value::List(inside.iter().map(|json| value(json, field.data_type(), options)).collect::<Option<_>>()?))
        }
        (DataType::Struct(fields), Json::Object(_)) => {
            let field = |field: &Arc<tributary_lake::arrow::datatypes::Field>| {
                json.field(field.name()).and_then(|json| value(json, field.data_type(), options)).unwrap_or(Value::Null)
            };
            Some(Value::Struct(fields.iter().map(field).collect()))
        }
        (DataType::Map(..), Json::Object(fields)) => {
            let (_, of) = super::maps::entry(to);
            let pair = |(name, json): &(String, Json)| Some((Value::Text(name.clone()), value(json, &of, options)?));
            Some(Value::Map(fields.iter().map(pair).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

fn to_json(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let options = Options::of(arguments.get(1))?;
    let of = &arguments[0];
    let one = |row| {
        let found = read(of, row)?;
        match found {
            Value::Null => Ok(None),
            Value::Struct(_) | Value::List(_) | Value::Map(_) => {
                let mut told = String::new();
                write(&found, of.data_type(), &options, &mut told)?;
                Ok(Some(told))
            }
            _ => Err(DataFusionError::Execution("`to_json` takes a struct, an array or a map".to_owned())),
        }
    };
    column((0..of.len()).map(one).collect::<Result<StringArray>>()?)
}

fn write(value: &Value, of: &DataType, options: &Options, told: &mut String) -> Result<()> {
    match (value, of) {
        (Value::Null, _) => told.push_str("null"),
        (Value::Boolean(_) | Value::Whole(_) | Value::Decimal(..), of) => told.push_str(&convert::text(value, of).unwrap_or_default()),
        (Value::Double(number), _) if number.is_finite() => told.push_str(&shortest::double(*number)),
        (Value::Float(number), _) if number.is_finite() => told.push_str(&shortest::float(*number)),
        (Value::Bytes(bytes), _) => quoted(&super::digests::to_base64(bytes), told),
        (Value::Date(day), _) => match &options.date {
            Some(form) => match calendar::micros(i64::from(*day), 0) {
                Some(midnight) => quoted(&form.write(midnight)?, told),
                None => return fault("a date is too far away"),
            },
            None => quoted(&times::day_as_text(i64::from(*day)), told),
        },
        (Value::Instant(at), DataType::Timestamp(_, zone)) => {
            let text = match (&options.timestamp, zone) {
                (Some(form), _) => form.write(*at)?,
                (None, Some(_)) => Form::parse("yyyy-MM-dd'T'HH:mm:ss.SSSXXX")?.write(*at)?,
                (None, None) => Form::parse("yyyy-MM-dd'T'HH:mm:ss.SSS")?.write(*at)?,
            };
            quoted(&text, told);
        }
        (Value::List(inside), DataType::List(field)) => {
            told.push('[');
            for (at, value) in inside.iter().enumerate() {
                if at > 0 {
                    told.push(',');
                }
                write(value, field.data_type(), options, told)?;
            }
            told.push(']');
        }
        (Value::Struct(inside), DataType::Struct(fields)) => {
            told.push('{');
            // a field that is null is left out
            for (at, (value, field)) in inside.iter().zip(fields).filter(|(value, _)| !value.is_null()).enumerate() {
                if at > 0 {
                    told.push(',');
                }
                quoted(field.name(), told);
                told.push(':');
                write(value, field.data_type(), options, told)?;
            }
            told.push('}');
        }
        (Value::Map(inside), of) => {
            let (key_type, value_type) = super::maps::entry(of);
            told.push('{');
            for (at, (key, value)) in inside.iter().enumerate() {
                if at > 0 {
                    told.push(',');
                }
                quoted(&convert::text(key, &key_type).unwrap_or_else(|| "null".to_owned()), told);
                told.push(':');
                write(value, &value_type, options, told)?;
            }
            told.push('}');
        }
        (value, of) => quoted(&convert::text(value, of).unwrap_or_default(), told),
    }
    Ok(())
}

/// The type of a JSON value, as `schema_of_json` writes it.
fn schema(json: &Json) -> String {
    match json {
        Json::Null => "STRING".to_owned(),
        Json::Boolean(_) => "BOOLEAN".to_owned(),
        Json::Number(digits) if digits.contains(['.', 'e', 'E']) => "DOUBLE".to_owned(),
        Json::Number(digits) => match digits.parse::<i64>() {
            Ok(_) => "BIGINT".to_owned(),
            Err(_) => format!("DECIMAL({},0)", digits.trim_start_matches('-').len()),
        },
        Json::Text(_) => "STRING".to_owned(),
        Json::List(inside) => {
            let mut kinds: Vec<String> = inside.iter().filter(|json| **json != Json::Null).map(schema).collect();
            kinds.dedup();
            let one = match kinds.as_slice() {
                [] => "STRING",
                [one] => one,
                several if several.iter().all(|kind| kind == "BIGINT" || kind == "DOUBLE") => "DOUBLE",
                _ => "STRING",
            };
            format!("ARRAY<{one}>")
        }
        Json::Object(fields) => {
            let mut fields: Vec<(&str, String)> = fields.iter().map(|(name, json)| (name.as_str(), schema(json))).collect();
            fields.sort();
            format!("STRUCT<{}>", fields.iter().map(|(name, of)| format!("{name}: {of}")).collect::<Vec<_>>().join(", "))
        }
    }
}
