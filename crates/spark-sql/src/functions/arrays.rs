//! Lists.

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, StringArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::conditions::common;
use super::own::Kind::{Any, Boolean, Int, List, Text};
use super::own::{Arguments, Gives, Own, column, fault, ints, texts};
use super::{Entry, hidden, own};
use crate::calendar;
use crate::convert::{self, word};
use crate::value::{Value, build, canonical, list_type, read, struct_type};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    own(&["array"], Own::new("array", &[], Gives::By(|a| Ok(list_type(common(a.types)?))), array).and_more(Any)),
    own(&["size", "cardinality"], Own::new("size", &[Any], Gives::By(size_type), size)),
    own(&["array_size"], Own::new("array_size", &[List], Gives::Int, size)),
    hidden(Own::new("item", &[Any, Any], Gives::By(item_type), |a, to| item(a, to, Missing::Fails))),
    own(&["get"], Own::new("get", &[Any, Int], Gives::By(item_type), |a, to| item(a, to, Missing::IsNull))),
    own(&["element_at"], Own::new("element_at", &[Any, Any], Gives::By(element_type), |a, to| element_at(a, to, false))),
    own(&["try_element_at"], Own::new("try_element_at", &[Any, Any], Gives::By(element_type), |a, to| element_at(a, to, true))),
    own(
        &["array_contains"],
        Own::new("array_contains", &[List, Any], Gives::By(|a| sought(a).map(|_| DataType::Boolean)), |a, _| {
            let found = with_sought(a, |inside, wanted| {
                if inside.iter().any(|value| !value.is_null() && value.is(wanted)) {
                    Some(true)
                } else if inside.iter().any(Value::is_null) {
                    None
                } else {
                    Some(false)
                }
            })?;
            column(found.into_iter().collect::<BooleanArray>())
        }),
    ),
    own(
        &["array_position"],
        Own::new("array_position", &[List, Any], Gives::By(|a| sought_or_null(a).map(|_| DataType::Int64)), |a, to| {
            let found = with_sought(a, |inside, wanted| {
                let at = inside.iter().position(|value| !value.is_null() && value.is(wanted));
                Some(Value::Whole(at.map_or(0, |at| at as i64 + 1)))
            })?;
            build(found.into_iter().map(|value| value.unwrap_or(Value::Null)).collect(), to)
        }),
    ),
    own(
        &["array_remove"],
        Own::new("array_remove", &[List, Any], Gives::By(|a| sought_or_null(a).map(list_type)), |a, to| {
            let found = with_sought(a, |inside, wanted| {
                Some(Value::List(inside.iter().filter(|value| value.is_null() || !value.is(wanted)).cloned().collect()))
            })?;
            build(found.into_iter().map(|value| value.unwrap_or(Value::Null)).collect(), to)
        }),
    ),
    own(
        &["array_append"],
        Own::new(
            "array_append",
            &[List, Any],
            Gives::By(|a| Ok(list_type(common(&[element(&a.types[0]), a.types[1].clone()])?))),
            |a, to| {
                with_one_more(a, to, |mut inside, one| {
                    inside.push(one);
                    inside
                })
            },
        ),
    ),
    own(
        &["array_prepend"],
        Own::new(
            "array_prepend",
            &[List, Any],
            Gives::By(|a| Ok(list_type(common(&[element(&a.types[0]), a.types[1].clone()])?))),
            |a, to| {
                with_one_more(a, to, |mut inside, one| {
                    inside.insert(0, one);
                    inside
                })
            },
        ),
    ),
    own(
        &["array_insert"],
        Own::new(
            "array_insert",
            &[List, Int, Any],
            Gives::By(|a| Ok(list_type(common(&[element(&a.types[0]), a.types[2].clone()])?))),
            array_insert,
        ),
    ),
    own(&["array_distinct"], Own::new("array_distinct", &[List], Gives::First, |a, to| each(a, to, |inside| Ok(distinct(inside))))),
    own(
        &["array_compact"],
        Own::new("array_compact", &[List], Gives::First, |a, to| {
            each(a, to, |inside| Ok(inside.into_iter().filter(|value| !value.is_null()).collect()))
        }),
    ),
    own(
        &["sort_array"],
        Own::new("sort_array", &[List, Boolean], Gives::First, |a, to| {
            let ascending: Vec<Option<bool>> = super::own::or_literal(a.get(1).map(|column| column.as_boolean()), true, a[0].len());
            lists(a, to, |row, mut inside| {
                let ascending = ascending[row].unwrap_or(true);
                inside.sort_by(|a, b| if ascending { a.order(b) } else { b.order(a) });
                Ok(Value::List(inside))
            })
        })
        .at_least(1),
    ),
    own(
        &["array_sort"],
        Own::new("array_sort", &[List], Gives::First, |a, to| {
            each(a, to, |mut inside| {
                inside.sort_by(|a, b| a.is_null().cmp(&b.is_null()).then(a.order(b)));
                Ok(inside)
            })
        }),
    ),
    own(
        &["array_max"],
        Own::new("array_max", &[List], Gives::By(|a| Ok(element(&a.types[0]))), |a, to| {
            lists(a, to, |_, inside| Ok(inside.into_iter().max_by(Value::order).unwrap_or(Value::Null)))
        }),
    ),
    own(
        &["array_min"],
        Own::new("array_min", &[List], Gives::By(|a| Ok(element(&a.types[0]))), |a, to| {
            lists(a, to, |_, inside| Ok(inside.into_iter().filter(|value| !value.is_null()).min_by(Value::order).unwrap_or(Value::Null)))
        }),
    ),
    own(&["array_join"], Own::new("array_join", &[List, Text, Text], Gives::Text, array_join).at_least(2)),
    own(
        &["array_union"],
        Own::new("array_union", &[List, List], Gives::By(|a| common_list(a.types)), |a, to| {
            both(a, to, |mut left, right| {
                left.extend(right);
                distinct(left)
            })
        }),
    ),
    own(
        &["array_intersect"],
        Own::new("array_intersect", &[List, List], Gives::By(|a| common_list(a.types)), |a, to| {
            both(a, to, |left, right| distinct(left).into_iter().filter(|value| right.iter().any(|other| other.is(value))).collect())
        }),
    ),
    own(
        &["array_except"],
        Own::new("array_except", &[List, List], Gives::By(|a| common_list(a.types)), |a, to| {
            both(a, to, |left, right| distinct(left).into_iter().filter(|value| !right.iter().any(|other| other.is(value))).collect())
        }),
    ),
    own(
        &["arrays_overlap"],
        Own::new("arrays_overlap", &[List, List], Gives::By(|a| common_list(a.types).map(|_| DataType::Boolean)), arrays_overlap),
    ),
    own(&["arrays_zip"], Own::new("arrays_zip", &[], Gives::By(zip_type), arrays_zip).and_more(List)),
    own(
        &["array_repeat"],
        Own::new("array_repeat", &[Any, Int], Gives::By(|a| Ok(list_type(a.types[0].clone()))), |a, to| {
            let one = |row| {
                let times = ints(&a[1]);
                if times.is_null(row) {
                    return Ok(Value::Null);
                }
                Ok(Value::List(vec![read(&a[0], row)?; usize::try_from(times.value(row)).unwrap_or(0)]))
            };
            build((0..a[0].len()).map(one).collect::<Result<_>>()?, to)
        }),
    ),
    own(&["slice"], Own::new("slice", &[List, Int, Int], Gives::First, slice)),
    own(
        &["flatten"],
        Own::new(
            "flatten",
            &[List],
            Gives::By(|a| match element(&a.types[0]) {
                inside @ DataType::List(_) => Ok(inside),
                _ => Err(DataFusionError::Plan("`flatten` takes an array of arrays".to_owned())),
            }),
            |a, to| {
                lists(a, to, |_, inside| {
                    let mut all = Vec::new();
                    for value in inside {
                        match value {
                            Value::List(inside) => all.extend(inside),
                            _ => return Ok(Value::Null),
                        }
                    }
                    Ok(Value::List(all))
                })
            },
        ),
    ),
    own(&["sequence"], Own::new("sequence", &[Any, Any, Any], Gives::By(sequence_type), sequence).at_least(2)),
    hidden(Own::new(
        "positions",
        &[List],
        Gives::By(|a| Ok(list_type(struct_type([("pos", DataType::Int32), ("col", element(&a.types[0]))])))),
        |a, to| {
            lists(a, to, |_, inside| {
                Ok(Value::List(
                    inside.into_iter().enumerate().map(|(at, value)| Value::Struct(vec![Value::Whole(at as i64), value])).collect(),
                ))
            })
        },
    )),
    hidden(Own::new(
        "field_at",
        &[Any, Int],
        Gives::By(|a| match (&a.types[0], a.number(1)) {
            (DataType::Struct(fields), Some(at)) if (0..fields.len() as i64).contains(&at) => Ok(fields[at as usize].data_type().clone()),
            (DataType::Struct(fields), _) => Err(DataFusionError::Plan(format!("there are {} fields, not as many as names", fields.len()))),
            _ => Err(DataFusionError::Plan("`inline` takes an array of structs".to_owned())),
        }),
        |a, to| {
            let places = ints(&a[1]);
            let one = |row: usize| match read(&a[0], row)? {
                Value::Struct(inside) => Ok(inside.into_iter().nth(places.value(row) as usize).unwrap_or(Value::Null)),
                _ => Ok(Value::Null),
            };
            build((0..a[0].len()).map(one).collect::<Result<_>>()?, to)
        },
    )),
    hidden(Own::new("or_nothing", &[List], Gives::First, |a, to| {
        let one = |row| {
            Ok(match read(&a[0], row)? {
                Value::List(inside) if !inside.is_empty() => Value::List(inside),
                _ => Value::List(vec![Value::Null]),
            })
        };
        build((0..a[0].len()).map(one).collect::<Result<_>>()?, to)
    })),
];

/// What a list is of.
pub(super) fn element(list: &DataType) -> DataType {
    match list {
        DataType::List(field) => field.data_type().clone(),
        _ => DataType::Null,
    }
}

/// The type of lists that go together.
pub(super) fn common_list(types: &[DataType]) -> Result<DataType> {
    if types.iter().any(|data_type| !matches!(data_type, DataType::List(_) | DataType::Null)) {
        return Err(DataFusionError::Plan("arrays go together with arrays only".to_owned()));
    }
    common(types)
}

fn array(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let of = element(to);
    let columns = arguments.iter().map(|column| convert::cast(column, &of, false)).collect::<Result<Vec<_>>>()?;
    let rows = columns.first().map_or(1, |column| column.len());
    let one = |row| Ok(Value::List(columns.iter().map(|column| read(column, row)).collect::<Result<_>>()?));
    build((0..rows).map(one).collect::<Result<_>>()?, to)
}

fn size_type(arguments: &Arguments<'_>) -> Result<DataType> {
    match &arguments.types[0] {
        DataType::List(_) | DataType::Map(..) | DataType::Null => Ok(DataType::Int32),
        other => Err(DataFusionError::Plan(format!("`size` takes an array or a map, not {}", word(other)))),
    }
}

fn size(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let sizes = (0..arguments[0].len()).map(|row| match read(&arguments[0], row)? {
        Value::List(inside) => Ok(i32::try_from(inside.len()).ok()),
        Value::Map(inside) => Ok(i32::try_from(inside.len()).ok()),
        Value::Null => Ok(None),
        _ => Err(DataFusionError::Execution("`size` takes an array or a map".to_owned())),
    });
    column(sizes.collect::<Result<Int32Array>>()?)
}

/// A result a row of a list; null where it is.
fn lists(arguments: &[ArrayRef], to: &DataType, f: impl Fn(usize, Vec<Value>) -> Result<Value>) -> Result<ArrayRef> {
    let one = |row| match read(&arguments[0], row)? {
        Value::List(inside) => f(row, inside),
        _ => Ok(Value::Null),
    };
    build((0..arguments[0].len()).map(one).collect::<Result<_>>()?, to)
}

fn each(arguments: &[ArrayRef], to: &DataType, f: impl Fn(Vec<Value>) -> Result<Vec<Value>>) -> Result<ArrayRef> {
    lists(arguments, to, |_, inside| f(inside).map(Value::List))
}

fn distinct(values: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(values.len());
    for value in values {
        if !kept.iter().any(|other| other.is(&value)) {
            kept.push(value);
        }
    }
    kept
}

/// What happens where a place is outside a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fails,
    IsNull,
}

/// `value[key]` and `value.name`.
fn item_type(arguments: &Arguments<'_>) -> Result<DataType> {
    match &arguments.types[0] {
        DataType::List(field) => match (field.data_type(), arguments.text(1)) {
            // a field of each
            (DataType::Struct(fields), Some(name)) => named(fields, name).map(|at| list_type(fields[at].data_type().clone())),
            (of, _) => Ok(of.clone()),
        },
        map @ DataType::Map(..) => Ok(super::maps::entry(map).1),
        DataType::Struct(fields) => match arguments.text(1) {
            Some(name) => named(fields, name).map(|at| fields[at].data_type().clone()),
            None => Err(DataFusionError::Plan("a field of a struct is asked for by its name".to_owned())),
        },
        other => Err(DataFusionError::Plan(format!("there is nothing inside {}", word(other)))),
    }
}

/// The place of a field, without regard to case.
fn named(fields: &tributary_lake::arrow::datatypes::Fields, name: &str) -> Result<usize> {
    fields.iter().position(|field| crate::scope::same(field.name(), name)).ok_or_else(|| {
        DataFusionError::Plan(format!(
            "there is no field `{name}`; the struct has {}",
            fields.iter().map(|field| format!("`{}`", field.name())).collect::<Vec<_>>().join(", ")
        ))
    })
}

fn item(arguments: &[ArrayRef], to: &DataType, missing: Missing) -> Result<ArrayRef> {
    let of = &arguments[0];
    let name = |row: usize| if arguments[1].is_valid(row) { texts(&arguments[1]).value(row) } else { "" };
    let is_field = *arguments[1].data_type() == DataType::Utf8;
    match of.data_type() {
        DataType::Map(..) => super::maps::looked_up(arguments, to),
        DataType::Struct(fields) => {
            let one = |row| match read(of, row)? {
                Value::Struct(mut inside) => Ok(inside.swap_remove(named(fields, name(row))?)),
                _ => Ok(Value::Null),
            };
            build((0..of.len()).map(one).collect::<Result<_>>()?, to)
        }
        DataType::List(field) if is_field && matches!(field.data_type(), DataType::Struct(_)) => {
            let DataType::Struct(fields) = field.data_type() else { return fault("a list of structs") };
            lists(arguments, to, |row, inside| {
                let at = named(fields, name(row))?;
                Ok(Value::List(
                    inside
                        .into_iter()
                        .map(|value| if let Value::Struct(mut inside) = value { inside.swap_remove(at) } else { Value::Null })
                        .collect(),
                ))
            })
        }
        _ => {
            let places = convert::cast(&arguments[1], &DataType::Int32, false)?;
            let places = ints(&places);
            lists(arguments, to, |row, inside| {
                if places.is_null(row) {
                    return Ok(Value::Null);
                }
                match usize::try_from(places.value(row)).ok().and_then(|at| inside.into_iter().nth(at)) {
                    Some(value) => Ok(value),
                    None if missing == Missing::IsNull => Ok(Value::Null),
                    None => fault("a place is outside its array"),
                }
            })
        }
    }
}

fn element_type(arguments: &Arguments<'_>) -> Result<DataType> {
    match &arguments.types[0] {
        DataType::List(_) if arguments.types[1].is_null() => Err(DataFusionError::Plan("a place in an array is a whole number".to_owned())),
        DataType::List(field) => Ok(field.data_type().clone()),
        map @ DataType::Map(..) => Ok(super::maps::entry(map).1),
        other => Err(DataFusionError::Plan(format!("`element_at` takes an array or a map, not {}", word(other)))),
    }
}

/// Counted from 1, or from the end where negative.
fn element_at(arguments: &[ArrayRef], to: &DataType, lenient: bool) -> Result<ArrayRef> {
    if let DataType::Map(..) = arguments[0].data_type() {
        return super::maps::looked_up(arguments, to);
    }
    let places = convert::cast(&arguments[1], &DataType::Int32, false)?;
    let places = ints(&places);
    lists(arguments, to, |row, inside| {
        if places.is_null(row) {
            return Ok(Value::Null);
        }
        let place = places.value(row);
        if place == 0 {
            return fault("places of `element_at` are counted from 1");
        }
        let distance = place.unsigned_abs() as usize;
        let at = if place > 0 { distance.checked_sub(1) } else { inside.len().checked_sub(distance) };
        match at.and_then(|at| inside.into_iter().nth(at)) {
            Some(value) => Ok(value),
            None if lenient => Ok(Value::Null),
            None => fault("a place is outside its array"),
        }
    })
}

/// The type that elements and a value looked for are brought to.
fn sought(arguments: &Arguments<'_>) -> Result<DataType> {
    if arguments.types[1].is_null() {
        return Err(DataFusionError::Plan("a null is in no array".to_owned()));
    }
    sought_or_null(arguments)
}

fn sought_or_null(arguments: &Arguments<'_>) -> Result<DataType> {
    let (of, wanted) = (element(&arguments.types[0]), canonical(&arguments.types[1]));
    let text = |data_type: &DataType| *data_type == DataType::Utf8;
    if !of.is_null() && !wanted.is_null() && text(&of) != text(&wanted) {
        return Err(DataFusionError::Plan(format!("{} is looked for in an array of {}: cast it", word(&wanted), word(&of))));
    }
    common(&[of, wanted])
}

/// A result a row of a list and a value of its kind; null where one is.
fn with_sought<R>(arguments: &[ArrayRef], f: impl Fn(&[Value], &Value) -> Option<R>) -> Result<Vec<Option<R>>> {
    let of = common(&[element(arguments[0].data_type()), arguments[1].data_type().clone()])?;
    let (inside, wanted) = (convert::cast(&arguments[0], &list_type(of.clone()), false)?, convert::cast(&arguments[1], &of, false)?);
    let one = |row| match (read(&inside, row)?, read(&wanted, row)?) {
        (Value::List(inside), wanted) if !wanted.is_null() => Ok(f(&inside, &wanted)),
        _ => Ok(None),
    };
    (0..inside.len()).map(one).collect()
}

fn with_one_more(arguments: &[ArrayRef], to: &DataType, f: impl Fn(Vec<Value>, Value) -> Vec<Value>) -> Result<ArrayRef> {
    let (inside, one_more) = (convert::cast(&arguments[0], to, false)?, convert::cast(&arguments[1], &element(to), false)?);
    let one = |row| match read(&inside, row)? {
        Value::List(inside) => Ok(Value::List(f(inside, read(&one_more, row)?))),
        _ => Ok(Value::Null),
    };
    build((0..inside.len()).map(one).collect::<Result<_>>()?, to)
}

fn array_insert(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let places = ints(&arguments[1]);
    let (inside, new) = (convert::cast(&arguments[0], to, false)?, convert::cast(&arguments[2], &element(to), false)?);
    let one = |row| {
        let Value::List(mut inside) = read(&inside, row)? else { return Ok(Value::Null) };
        if places.is_null(row) {
            return Ok(Value::Null);
        }
        let place = places.value(row);
        let new = read(&new, row)?;
        let length = inside.len();
        match place {
            0 => return fault("places of `array_insert` are counted from 1"),
            1.. => {
                let at = place.unsigned_abs() as usize - 1;
                if at > length {
                    inside.resize(at, Value::Null);
                }
                inside.insert(at, new);
            }
            _ => {
                let distance = place.unsigned_abs() as usize - 1;
                if distance > length {
                    let mut all = vec![new];
                    all.resize(distance - length + 1, Value::Null);
                    all.extend(inside);
                    inside = all;
                } else {
                    inside.insert(length - distance, new);
                }
            }
        }
        Ok(Value::List(inside))
    };
    build((0..inside.len()).map(one).collect::<Result<_>>()?, to)
}

fn array_join(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let inside = convert::cast(&arguments[0], &list_type(DataType::Utf8), false)?;
    let marks = texts(&arguments[1]);
    let one = |row| {
        let Value::List(inside) = read(&inside, row)? else { return Ok(None) };
        if marks.is_null(row) || arguments.get(2).is_some_and(|column| column.is_null(row)) {
            return Ok(None);
        }
        let missing = arguments.get(2).map(|column| texts(column).value(row).to_owned());
        let parts = inside.into_iter().filter_map(|value| if let Value::Text(text) = value { Some(text) } else { missing.clone() });
        Ok(Some(parts.collect::<Vec<_>>().join(marks.value(row))))
    };
    column((0..inside.len()).map(one).collect::<Result<StringArray>>()?)
}

fn both(arguments: &[ArrayRef], to: &DataType, f: impl Fn(Vec<Value>, Vec<Value>) -> Vec<Value>) -> Result<ArrayRef> {
    let (left, right) = (convert::cast(&arguments[0], to, false)?, convert::cast(&arguments[1], to, false)?);
    let one = |row| match (read(&left, row)?, read(&right, row)?) {
        (Value::List(left), Value::List(right)) => Ok(Value::List(f(left, right))),
        _ => Ok(Value::Null),
    };
    build((0..left.len()).map(one).collect::<Result<_>>()?, to)
}

fn arrays_overlap(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let of = common_list(&[arguments[0].data_type().clone(), arguments[1].data_type().clone()])?;
    let (left, right) = (convert::cast(&arguments[0], &of, false)?, convert::cast(&arguments[1], &of, false)?);
    let one = |row| match (read(&left, row)?, read(&right, row)?) {
        (Value::List(left), Value::List(right)) => {
            let meets = left.iter().any(|value| !value.is_null() && right.iter().any(|other| other.is(value)));
            let unknown = !left.is_empty() && !right.is_empty() && left.iter().chain(&right).any(Value::is_null);
            Ok(if meets {
                Some(true)
            } else if unknown {
                None
            } else {
                Some(false)
            })
        }
        _ => Ok(None),
    };
    column((0..left.len()).map(one).collect::<Result<BooleanArray>>()?)
}

fn zip_type(arguments: &Arguments<'_>) -> Result<DataType> {
    let names: Vec<String> = (0..arguments.types.len()).map(|at| at.to_string()).collect();
    Ok(list_type(struct_type(names.iter().map(String::as_str).zip(arguments.types.iter().map(element)))))
}

fn arrays_zip(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let rows = arguments.first().map_or(1, |column| column.len());
    let one = |row| {
        let mut lists = Vec::new();
        for column in arguments {
            match read(column, row)? {
                Value::List(inside) => lists.push(inside),
                _ => return Ok(Value::Null),
            }
        }
        let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
        let at = |at: usize| Value::Struct(lists.iter().map(|inside| inside.get(at).cloned().unwrap_or(Value::Null)).collect());
        Ok(Value::List((0..longest).map(at).collect()))
    };
    build((0..rows).map(one).collect::<Result<_>>()?, to)
}

fn slice(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let (starts, lengths) = (ints(&arguments[1]), ints(&arguments[2]));
    lists(arguments, to, |row, inside| {
        if starts.is_null(row) || lengths.is_null(row) {
            return Ok(Value::Null);
        }
        let (start, length) = (starts.value(row), lengths.value(row));
        let Ok(length) = usize::try_from(length) else { return fault("the length of `slice` is negative") };
        let distance = start.unsigned_abs() as usize;
        let first = match start {
            0 => return fault("the start of `slice` is counted from 1"),
            1.. => distance.checked_sub(1),
            _ => inside.len().checked_sub(distance),
        };
        Ok(Value::List(first.map_or_else(Vec::new, |first| inside.into_iter().skip(first).take(length).collect())))
    })
}

fn sequence_type(arguments: &Arguments<'_>) -> Result<DataType> {
    let of = common(&arguments.types[..2])?;
    match &of {
        DataType::Date32 | DataType::Timestamp(..) => Ok(list_type(of)),
        of if of.is_integer() => Ok(list_type(of.clone())),
        DataType::Null => Ok(list_type(DataType::Int32)),
        _ => Err(DataFusionError::Plan("`sequence` takes whole numbers, dates or timestamps".to_owned())),
    }
}

/// A step: months and microseconds, or a whole number.
fn step_of(column: Option<&ArrayRef>, row: usize, of: &DataType, falls: bool) -> Result<Option<(i64, i64)>> {
    use tributary_lake::arrow::datatypes::{IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType};
    let sign = if falls { -1 } else { 1 };
    let Some(column) = column else {
        return Ok(Some(if of.is_integer() { (0, sign) } else { (0, sign * calendar::DAY) }));
    };
    if column.is_null(row) {
        return Ok(None);
    }
    let span =
        |days: i32, micros: i64| calendar::micros(i64::from(days), micros).map_or_else(|| fault("the step of `sequence` is too long"), Ok);
    Ok(Some(match column.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let step = column.as_primitive::<IntervalMonthDayNanoType>().value(row);
            (i64::from(step.months), span(step.days, step.nanoseconds / 1000)?)
        }
        DataType::Interval(IntervalUnit::YearMonth) => (i64::from(column.as_primitive::<IntervalYearMonthType>().value(row)), 0),
        DataType::Interval(IntervalUnit::DayTime) => {
            let step = column.as_primitive::<IntervalDayTimeType>().value(row);
            (0, span(step.days, i64::from(step.milliseconds) * 1000)?)
        }
        other if other.is_integer() => match read(column, row)? {
            Value::Whole(step) => (0, step),
            _ => (0, 0),
        },
        _ => return fault("the step of `sequence` is a whole number or an interval"),
    }))
}

/// Values of a sequence at most.
const VALUES_MAX: usize = 10_000_000;

fn sequence(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let of = element(to);
    let (starts, ends) = (convert::cast(&arguments[0], &of, false)?, convert::cast(&arguments[1], &of, false)?);
    let number = |value: Value| match value {
        Value::Whole(number) | Value::Instant(number) => Ok(Some(number)),
        Value::Date(day) => calendar::micros(i64::from(day), 0).map_or_else(|| fault("a date is too far away"), |at| Ok(Some(at))),
        _ => Ok(None),
    };
    let one = |row| {
        let (Some(start), Some(end)) = (number(read(&starts, row)?)?, number(read(&ends, row)?)?) else { return Ok(Value::Null) };
        let Some((months, step)) = step_of(arguments.get(2), row, &of, end < start)? else { return Ok(Value::Null) };
        let forward = months > 0 || (months == 0 && step > 0);
        let still = months == 0 && step == 0;
        if start != end && (still || forward != (start < end)) {
            return fault("the step of `sequence` does not lead from its start to its end");
        }
        let mut found = Vec::new();
        for count in 0.. {
            let at = if months == 0 { Some(start) } else { calendar::add_months(start, months * count) };
            let Some(at) = at.and_then(|at| step.checked_mul(count).and_then(|step| at.checked_add(step))) else { break };
            let inside = if forward || still { at <= end } else { at >= end };
            if !inside {
                break;
            }
            if found.len() >= VALUES_MAX {
                return fault("a `sequence` has too many values");
            }
            found.push(match of {
                DataType::Date32 => i32::try_from(at.div_euclid(calendar::DAY)).map_or(Value::Null, Value::Date),
                DataType::Timestamp(..) => Value::Instant(at),
                _ => Value::Whole(at),
            });
            if still {
                break;
            }
        }
        Ok(Value::List(found))
    };
    build((0..starts.len()).map(one).collect::<Result<_>>()?, to)
}
