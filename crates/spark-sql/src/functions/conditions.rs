//! Conditions, choices and what is known of a query.

use tributary_lake::arrow::array::{Array, ArrayRef, StringArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::{Any, Number};
use super::own::{Arguments, Gives, Own, column};
use super::{Entry, Rewrite, engine_row, of_the_moment, own, refused, rewritten, within_a_query};
use crate::convert::{self, real, word};
use crate::value::{Value, build, canonical, list_type, map_type, read};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    // the engine's looks at an argument only where those before it are null
    engine_row(&["coalesce"], "coalesce", 1, usize::MAX),
    engine_row(&["nvl", "ifnull"], "coalesce", 2, 2),
    rewritten(&["nvl2"], Rewrite::Nvl2, 3),
    own(&["nullif"], Own::new("nullif", &[Any, Any], Gives::First, nullif)),
    own(
        &["nullifzero"],
        Own::new("nullifzero", &[Number], Gives::First, |a, to| {
            let one = |row| Ok(Some(read(&a[0], row)?).filter(|value| real(value) != Some(0.0)).unwrap_or(Value::Null));
            build((0..a[0].len()).map(one).collect::<Result<_>>()?, to)
        }),
    ),
    own(
        &["zeroifnull"],
        Own::new(
            "zeroifnull",
            &[Any],
            Gives::By(|a| Ok(if a.types[0].is_null() { DataType::Int32 } else { a.types[0].clone() })),
            |a, to| {
                let zero = convert::cast(&build(vec![Value::Whole(0)], &DataType::Int64)?, to, false)?;
                let numbers = convert::cast(&a[0], to, false)?;
                let one = |row| if numbers.is_null(row) { read(&zero, 0) } else { read(&numbers, row) };
                build((0..numbers.len()).map(one).collect::<Result<_>>()?, to)
            },
        ),
    ),
    own(&["greatest"], Own::new("greatest", &[Any, Any], Gives::By(same_kind), |a, to| extreme(a, to, true)).and_more(Any)),
    own(&["least"], Own::new("least", &[Any, Any], Gives::By(same_kind), |a, to| extreme(a, to, false)).and_more(Any)),
    rewritten(&["if"], Rewrite::If, 3),
    rewritten(&["isnull"], Rewrite::IsNull, 1),
    rewritten(&["isnotnull"], Rewrite::IsNotNull, 1),
    rewritten(&["equal_null"], Rewrite::EqualNull, 2),
    own(&["typeof"], Own::new("typeof", &[Any], Gives::Text, |a, _| column(StringArray::from(vec![word(a[0].data_type()); a[0].len()])))),
    within_a_query(rewritten(&["current_user", "user", "session_user"], Rewrite::CurrentUser, 0)),
    refused(&["monotonically_increasing_id", "spark_partition_id", "input_file_name"], "it tells of files and tasks of another engine"),
    refused(&["version", "current_catalog", "current_schema", "current_database"], "it tells of another engine"),
    refused(&["reflect", "java_method", "try_reflect"], "there is no Java here"),
    of_the_moment(&["is_account_group_member", "is_member"], "is_account_group_member", 1, 1),
];

/// The type that values of all these types are brought to.
///
/// # Errors
/// For types between which there is no cast without being asked.
pub(crate) fn common(types: &[DataType]) -> Result<DataType> {
    types.iter().map(canonical).try_fold(DataType::Null, |all, one| {
        let (a, b) = (word(&all), word(&one));
        of_two(all, one).ok_or_else(|| DataFusionError::Plan(format!("values of {a} and of {b} do not go together: cast one side")))
    })
}

/// The type of two, where there is one.
pub(crate) fn of_two(a: DataType, b: DataType) -> Option<DataType> {
    use crate::decimal::Digits;
    use DataType as D;
    Some(match (a, b) {
        (a, b) if a == b => a,
        (D::Null, other) | (other, D::Null) => other,
        (D::Utf8, other) | (other, D::Utf8) => match other {
            D::Int8 | D::Int16 | D::Int32 | D::Int64 => D::Int64,
            D::Float32 | D::Float64 | D::Decimal128(..) => D::Float64,
            other @ (D::Boolean | D::Date32 | D::Timestamp(..) | D::Binary) => other,
            _ => return None,
        },
        (a, b) if a.is_integer() && b.is_integer() => {
            if a.primitive_width() >= b.primitive_width() {
                a
            } else {
                b
            }
        }
        (a, b) if a.is_numeric() && b.is_numeric() => match (&a, &b, Digits::of(&a), Digits::of(&b)) {
            (_, _, Some(x), Some(y)) => {
                let scale = x.scale.max(y.scale);
                Digits { precision: (x.precision - x.scale).max(y.precision - y.scale) + scale, scale }.adjusted().data_type()
            }
            _ => D::Float64,
        },
        (D::Date32, at @ D::Timestamp(..)) | (at @ D::Timestamp(..), D::Date32) => at,
        (D::Timestamp(..), D::Timestamp(..)) => crate::value::instant_type(),
        (D::List(a), D::List(b)) => list_type(of_two(a.data_type().clone(), b.data_type().clone())?),
        (D::Map(a, _), D::Map(b, _)) => match (a.data_type(), b.data_type()) {
            (D::Struct(a), D::Struct(b)) => map_type(
                of_two(a[0].data_type().clone(), b[0].data_type().clone())?,
                of_two(a[1].data_type().clone(), b[1].data_type().clone())?,
            ),
            _ => return None,
        },
        (D::Struct(a), D::Struct(b)) if a.len() == b.len() => {
            let fields = a.iter().zip(&b).map(|(a, b)| {
                Some(tributary_lake::arrow::datatypes::Field::new(a.name(), of_two(a.data_type().clone(), b.data_type().clone())?, true))
            });
            D::Struct(fields.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// As [`common`], but a text and a number do not go together.
fn same_kind(arguments: &Arguments<'_>) -> Result<DataType> {
    let texts = arguments.types.contains(&DataType::Utf8);
    if texts && !arguments.types.iter().all(|data_type| matches!(data_type, DataType::Utf8 | DataType::Null)) {
        return Err(DataFusionError::Plan("`greatest` and `least` take values of one type: cast the texts".to_owned()));
    }
    common(arguments.types)
}

fn nullif(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let both = common(&[arguments[0].data_type().clone(), arguments[1].data_type().clone()])?;
    let (left, right) = (convert::cast(&arguments[0], &both, false)?, convert::cast(&arguments[1], &both, false)?);
    let one = |row| {
        let (a, b) = (read(&left, row)?, read(&right, row)?);
        if !a.is_null() && !b.is_null() && a.is(&b) { Ok(Value::Null) } else { read(&arguments[0], row) }
    };
    build((0..left.len()).map(one).collect::<Result<_>>()?, to)
}

/// The greatest or the least that is not null; NaN is greater than any number.
fn extreme(arguments: &[ArrayRef], to: &DataType, greatest: bool) -> Result<ArrayRef> {
    let columns = arguments.iter().map(|column| convert::cast(column, to, false)).collect::<Result<Vec<_>>>()?;
    let one = |row| {
        let mut found = Value::Null;
        for column in &columns {
            let value = read(column, row)?;
            let better = if greatest { value.order(&found).is_gt() } else { value.order(&found).is_lt() };
            if found.is_null() || (!value.is_null() && better) {
                found = value;
            }
        }
        Ok(found)
    };
    build((0..columns[0].len()).map(one).collect::<Result<_>>()?, to)
}
