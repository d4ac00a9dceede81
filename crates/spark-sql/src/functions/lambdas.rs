//! Functions of lists and maps that take a function: `transform(list, x -> x + 1)`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use tributary_lake::arrow::compute::take_arrays;
use tributary_lake::arrow::datatypes::{DataType, Field, FieldRef};
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF, HigherOrderUDFImpl,
    LambdaArgument, LambdaParametersProgress, ValueOrLambda, Volatility,
};

use super::own::fault;
use super::{Entry, lambda};
use crate::convert;
use crate::value::{Value, build, canonical, list_type, map_type, read};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    lambda(&["transform"], 2, 2),
    lambda(&["filter"], 2, 2),
    lambda(&["exists"], 2, 2),
    lambda(&["forall"], 2, 2),
    lambda(&["aggregate", "reduce"], 3, 4),
    lambda(&["zip_with"], 3, 3),
    lambda(&["transform_keys"], 2, 2),
    lambda(&["transform_values"], 2, 2),
    lambda(&["map_filter"], 2, 2),
    super::refused(&["map_zip_with"], "say map_concat, or transform_values with element_at"),
];

/// As the engine calls them.
pub(super) fn functions() -> impl Iterator<Item = HigherOrderUDF> {
    let of = |kind| HigherOrderUDF::new_from_impl(Lambda { kind, signature: HigherOrderSignature::variadic_any(Volatility::Immutable) });
    [
        Kind::Transform,
        Kind::Filter,
        Kind::Exists,
        Kind::ForAll,
        Kind::Aggregate,
        Kind::ZipWith,
        Kind::TransformKeys,
        Kind::TransformValues,
        Kind::MapFilter,
    ]
    .into_iter()
    .map(of)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Transform,
    Filter,
    Exists,
    ForAll,
    Aggregate,
    ZipWith,
    TransformKeys,
    TransformValues,
    MapFilter,
}

#[derive(Debug)]
struct Lambda {
    kind: Kind,
    signature: HigherOrderSignature,
}

impl PartialEq for Lambda {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Lambda {}

impl Hash for Lambda {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

fn field(name: &str, data_type: DataType) -> FieldRef {
    Arc::new(Field::new(name, data_type, true))
}

/// What a list is of.
fn element(of: &DataType) -> Result<DataType> {
    match canonical(of) {
        DataType::List(field) => Ok(field.data_type().clone()),
        other => Err(DataFusionError::Plan(format!("this takes an array, not {}", convert::word(&other)))),
    }
}

fn entry(of: &DataType) -> Result<(DataType, DataType)> {
    match canonical(of) {
        map @ DataType::Map(..) => Ok(super::maps::entry(&map)),
        other => Err(DataFusionError::Plan(format!("this takes a map, not {}", convert::word(&other)))),
    }
}

impl Lambda {
    fn wrong<T>(&self) -> Result<T> {
        Err(DataFusionError::Plan(format!("`{}` takes values and a function of them, such as x -> x + 1", self.name())))
    }

    /// The types of the values that come before the functions.
    fn value_type<'a, L>(&self, fields: &'a [ValueOrLambda<FieldRef, L>], at: usize) -> Result<&'a DataType> {
        match fields.get(at) {
            Some(ValueOrLambda::Value(field)) => Ok(field.data_type()),
            _ => self.wrong(),
        }
    }

    /// What one function takes.
    fn parameters(&self, of: &[&DataType]) -> Result<Vec<FieldRef>> {
        Ok(match self.kind {
            Kind::Transform | Kind::Filter => vec![field("x", element(of[0])?), field("i", DataType::Int32)],
            Kind::Exists | Kind::ForAll => vec![field("x", element(of[0])?)],
            Kind::Aggregate => vec![field("acc", canonical(of[1])), field("x", element(of[0])?)],
            Kind::ZipWith => vec![field("x", element(of[0])?), field("y", element(of[1])?)],
            Kind::TransformKeys | Kind::TransformValues | Kind::MapFilter => {
                let (key, value) = entry(of[0])?;
                vec![field("k", key), field("v", value)]
            }
        })
    }

    /// How many values come before the functions.
    fn values(&self) -> usize {
        if matches!(self.kind, Kind::Aggregate | Kind::ZipWith) { 2 } else { 1 }
    }
}

impl HigherOrderUDFImpl for Lambda {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Transform => "transform",
            Kind::Filter => "filter",
            Kind::Exists => "exists",
            Kind::ForAll => "forall",
            Kind::Aggregate => "aggregate",
            Kind::ZipWith => "zip_with",
            Kind::TransformKeys => "transform_keys",
            Kind::TransformValues => "transform_values",
            Kind::MapFilter => "map_filter",
        }
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn lambda_parameters(&self, _step: usize, fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>]) -> Result<LambdaParametersProgress> {
        let of = (0..self.values()).map(|at| self.value_type(fields, at)).collect::<Result<Vec<_>>>()?;
        let mut all = vec![self.parameters(&of)?];
        if fields.len() > self.values() + 1 {
            // what `aggregate` makes of its result
            all.push(vec![field("acc", canonical(of[1]))]);
        }
        if fields[self.values()..].iter().any(|field| matches!(field, ValueOrLambda::Value(_))) {
            return self.wrong();
        }
        Ok(LambdaParametersProgress::Complete(all))
    }

    fn return_field_from_args(&self, arguments: HigherOrderReturnFieldArgs<'_>) -> Result<FieldRef> {
        let fields = arguments.arg_fields;
        let first = canonical(self.value_type(fields, 0)?);
        let told = match fields.last() {
            Some(ValueOrLambda::Lambda(field)) => canonical(field.data_type()),
            _ => return self.wrong(),
        };
        let data_type = match self.kind {
            Kind::Transform | Kind::ZipWith => list_type(told),
            Kind::Filter | Kind::MapFilter => first,
            Kind::Exists | Kind::ForAll => DataType::Boolean,
            Kind::Aggregate if fields.len() == 4 => told,
            Kind::Aggregate => canonical(self.value_type(fields, 1)?),
            Kind::TransformKeys => map_type(told, entry(&first)?.1),
            Kind::TransformValues => map_type(entry(&first)?.0, told),
        };
        Ok(field("", data_type))
    }

    fn invoke_with_args(&self, arguments: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let to = arguments.return_type().clone();
        let rows = arguments.number_rows;
        let mut columns = Vec::new();
        let mut lambdas = Vec::new();
        for argument in &arguments.args {
            match argument {
                ValueOrLambda::Value(value) => {
                    let column = value.to_array(rows)?;
                    columns.push(convert::cast(&column, &canonical(column.data_type()), false)?);
                }
                ValueOrLambda::Lambda(lambda) => lambdas.push(lambda),
            }
        }
        let values = match (self.kind, columns.as_slice(), lambdas.as_slice()) {
            (Kind::Aggregate, [lists, start], [merge, rest @ ..]) => aggregate(lists, start, merge, rest.first().copied())?,
            (_, [of, others @ ..], [f]) => self.each(of, others.first(), f)?,
            _ => return self.wrong(),
        };
        Ok(ColumnarValue::Array(build(values, &to)?))
    }
}

/// The results of a function for many values at once; `rows` says which row each is of.
fn called(f: &LambdaArgument, arguments: &[ArrayRef], rows: &[u64]) -> Result<ArrayRef> {
    let given: Vec<Box<dyn Fn() -> Result<ArrayRef>>> = arguments
        .iter()
        .map(|column| {
            let column = Arc::clone(column);
            Box::new(move || Ok(Arc::clone(&column))) as Box<dyn Fn() -> Result<ArrayRef>>
        })
        .collect();
    let given: Vec<&dyn Fn() -> Result<ArrayRef>> = given.iter().map(AsRef::as_ref).collect();
    let places = UInt64Array::from(rows.to_vec());
    let told = f.evaluate(&given, |captured| Ok(take_arrays(captured, &places, None)?))?;
    let told = told.into_array(rows.len())?;
    convert::cast(&told, &canonical(told.data_type()), false)
}

impl Lambda {
    /// The functions of each element, pair or entry by itself.
    fn each(&self, of: &ArrayRef, other: Option<&ArrayRef>, f: &LambdaArgument) -> Result<Vec<Value>> {
        let mut first = Vec::new();
        let mut second = Vec::new();
        let mut rows = Vec::new();
        let mut lengths = Vec::with_capacity(of.len());
        for row in 0..of.len() {
            let pairs: Option<Vec<(Value, Value)>> = match (read(of, row)?, other.map(|column| read(column, row)).transpose()?) {
                (Value::List(left), Some(Value::List(right))) => {
                    let longest = left.len().max(right.len());
                    let at = |list: &[Value], at: usize| list.get(at).cloned().unwrap_or(Value::Null);
                    Some((0..longest).map(|place| (at(&left, place), at(&right, place))).collect())
                }
                (Value::List(inside), None) => Some(inside.into_iter().zip((0..).map(Value::Whole)).collect()),
                (Value::Map(inside), None) => Some(inside),
                _ => None,
            };
            lengths.push(pairs.as_ref().map(Vec::len));
            for (a, b) in pairs.unwrap_or_default() {
                first.push(a);
                second.push(b);
                rows.push(row as u64);
            }
        }
        let types = [of].into_iter().chain(other).map(|column| column.data_type()).collect::<Vec<_>>();
        let parameters = self.parameters(&types)?;
        let mut given = vec![build(first.clone(), parameters[0].data_type())?];
        if let Some(parameter) = parameters.get(1) {
            given.push(build(second.clone(), parameter.data_type())?);
        }
        let told = called(f, &given, &rows)?;
        let mut values = Vec::with_capacity(lengths.len());
        let mut at = 0;
        for length in lengths {
            let Some(length) = length else {
                values.push(Value::Null);
                continue;
            };
            values.push(self.of_row(&told, &first, &second, at..at + length)?);
            at += length;
        }
        Ok(values)
    }

    fn of_row(&self, told: &ArrayRef, first: &[Value], second: &[Value], range: std::ops::Range<usize>) -> Result<Value> {
        let yes = |at: usize| match told.data_type() {
            DataType::Boolean => Ok(told.is_valid(at).then(|| told.as_boolean().value(at))),
            DataType::Null => Ok(None),
            _ => fault(&format!("the function of `{}` must tell a boolean", self.name())),
        };
        let entries = |keys: &dyn Fn(usize) -> Result<Value>, values: &dyn Fn(usize) -> Result<Value>| {
            super::maps::made(range.clone().map(|at| Ok((keys(at)?, values(at)?))).collect::<Result<_>>()?)
        };
        Ok(match self.kind {
            Kind::Transform | Kind::ZipWith => Value::List(range.map(|at| read(told, at)).collect::<Result<_>>()?),
            Kind::TransformKeys => entries(&|at| read(told, at), &|at| Ok(second[at].clone()))?,
            Kind::TransformValues => entries(&|at| Ok(first[at].clone()), &|at| read(told, at))?,
            Kind::Filter | Kind::MapFilter => {
                let mut kept = Vec::new();
                for at in range {
                    if yes(at)? == Some(true) {
                        kept.push((first[at].clone(), second[at].clone()));
                    }
                }
                match self.kind {
                    Kind::Filter => Value::List(kept.into_iter().map(|(value, _)| value).collect()),
                    _ => Value::Map(kept),
                }
            }
            // three-valued: unknown unless one decides
            _ => {
                let decides = self.kind == Kind::Exists;
                let all = range.map(yes).collect::<Result<Vec<_>>>()?;
                if all.contains(&Some(decides)) {
                    Value::Boolean(decides)
                } else if all.contains(&None) {
                    Value::Null
                } else {
                    Value::Boolean(!decides)
                }
            }
        })
    }
}

/// One element after the other; each step is made for all rows at once.
fn aggregate(lists: &ArrayRef, start: &ArrayRef, merge: &LambdaArgument, finish: Option<&LambdaArgument>) -> Result<Vec<Value>> {
    let of = element(lists.data_type())?;
    let inside = (0..lists.len())
        .map(|row| match read(lists, row)? {
            Value::List(inside) => Ok(Some(inside)),
            _ => Ok(None),
        })
        .collect::<Result<Vec<_>>>()?;
    let mut totals = (0..start.len()).map(|row| read(start, row)).collect::<Result<Vec<_>>>()?;
    let longest = inside.iter().flatten().map(Vec::len).max().unwrap_or(0);
    for step in 0..longest {
        let rows: Vec<u64> =
            (0..lists.len()).filter(|row| inside[*row].as_ref().is_some_and(|list| step < list.len())).map(|row| row as u64).collect();
        let so_far = rows.iter().map(|row| totals[*row as usize].clone()).collect();
        let next = rows.iter().map(|row| inside[*row as usize].as_ref().map_or(Value::Null, |list| list[step].clone())).collect();
        let told = called(merge, &[build(so_far, start.data_type())?, build(next, &of)?], &rows)?;
        let told = convert::cast(&told, start.data_type(), false)?;
        for (at, row) in rows.iter().enumerate() {
            totals[*row as usize] = read(&told, at)?;
        }
    }
    if let Some(finish) = finish {
        let rows: Vec<u64> = (0..lists.len() as u64).collect();
        let told = called(finish, &[build(totals, start.data_type())?], &rows)?;
        totals = (0..told.len()).map(|row| read(&told, row)).collect::<Result<_>>()?;
    }
    Ok(totals.into_iter().zip(inside).map(|(total, list)| if list.is_some() { total } else { Value::Null }).collect())
}
