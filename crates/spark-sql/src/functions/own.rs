//! Functions of one row that are written here, because the engine has not them or means something else by the name.
//!
//! Arguments are brought to the types a function takes by the dialect's own casts, not the engine's.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tributary_lake::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use tributary_lake::arrow::datatypes::{
    DataType, Date32Type, Field, FieldRef, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::convert::{self, word};
use crate::value::{canonical, instant_type, list_type, local_type};
use crate::words::words;

/// What an argument must be, or can be cast to without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything, as it is.
    Any,
    /// A string, or what has a text.
    Text,
    /// A string or a binary, else as a string.
    TextOrBytes,
    /// A binary, or a string's bytes.
    Bytes,
    /// A boolean.
    Boolean,
    /// A whole number of 32 bits.
    Int,
    /// A whole number of 64 bits.
    Long,
    /// Any number as a double.
    Double,
    /// A number as it is; a string as a double.
    Number,
    /// A day.
    Date,
    /// An instant.
    Instant,
    /// A time without a zone.
    Local,
    /// A list.
    List,
    /// A map.
    Map,
}

impl Kind {
    /// The type in which an argument of a type is given; none where the dialect does not cast it.
    fn given(self, from: &DataType) -> Option<DataType> {
        use DataType as D;
        let from = canonical(from);
        let scalar = !matches!(from, D::List(_) | D::Struct(_) | D::Map(..) | D::Interval(_) | D::Duration(_));
        let time = matches!(from, D::Date32 | D::Timestamp(..) | D::Utf8 | D::Null);
        let is_null = from == D::Null;
        match self {
            Self::Any => Some(from),
            Self::Text => (scalar && from != D::Binary).then_some(D::Utf8),
            Self::TextOrBytes => match from {
                D::Binary => Some(D::Binary),
                _ => scalar.then_some(D::Utf8),
            },
            Self::Bytes => matches!(from, D::Utf8 | D::Binary | D::Null).then_some(D::Binary),
            Self::Boolean => matches!(from, D::Boolean | D::Utf8 | D::Null).then_some(D::Boolean),
            Self::Int => (from.is_integer() || from == D::Utf8 || is_null).then_some(D::Int32),
            Self::Long => (from.is_integer() || from == D::Utf8 || is_null).then_some(D::Int64),
            Self::Double => (from.is_numeric() || from == D::Utf8 || is_null).then_some(D::Float64),
            Self::Number => match from {
                D::Utf8 | D::Null => Some(D::Float64),
                from => from.is_numeric().then_some(from),
            },
            Self::Date => time.then_some(D::Date32),
            Self::Instant => time.then(instant_type),
            Self::Local => time.then(local_type),
            Self::List => match from {
                D::List(_) => Some(from),
                _ => is_null.then(|| list_type(D::Null)),
            },
            Self::Map => match from {
                D::Map(..) => Some(from),
                _ => None,
            },
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::Text => "a string",
            Self::TextOrBytes => "a string or a binary",
            Self::Bytes => "a binary",
            Self::Boolean => "a boolean",
            Self::Int | Self::Long => "a whole number",
            Self::Double | Self::Number => "a number",
            Self::Date => "a date",
            Self::Instant => "a timestamp",
            Self::Local => "a timestamp without a zone",
            Self::List => "an array",
            Self::Map => "a map",
        }
    }
}

/// The arguments as far as a plan knows them: their types, and values of literals.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    pub types: &'a [DataType],
    pub literals: &'a [Option<&'a ScalarValue>],
}

impl Arguments<'_> {
    /// The text of a literal argument.
    pub fn text(&self, at: usize) -> Option<&str> {
        match self.literals.get(at) {
            Some(Some(ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)))) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// The number of a literal argument.
    pub fn number(&self, at: usize) -> Option<i64> {
        match self.literals.get(at) {
            Some(Some(value)) => match value.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(number)) => number,
                _ => None,
            },
            _ => None,
        }
    }
}

/// The type of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Gives {
    Boolean,
    Int,
    Long,
    Double,
    Text,
    Texts,
    Bytes,
    Date,
    Instant,
    Local,
    /// As the first argument.
    First,
    /// As the arguments say.
    By(fn(&Arguments<'_>) -> Result<DataType>),
}

/// The results of whole columns, a value a row, in the type they are to have.
pub(crate) type Run = fn(&[ArrayRef], &DataType) -> Result<ArrayRef>;

/// A function of one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own {
    pub name: &'static str,
    pub takes: &'static [Kind],
    /// How many of them must be there.
    pub least: usize,
    /// What may follow them, any number of times.
    pub more: Option<Kind>,
    pub gives: Gives,
    pub run: Run,
    /// What literal arguments must be: a pattern, a unit, a zone that can be read. An error of the plan, so that no row is needed to find it.
    pub literals: Option<Literals>,
}

/// A look at the literal arguments of a call.
pub(crate) type Literals = fn(&Arguments<'_>) -> Result<()>;

impl Own {
    /// A function of just these arguments.
    pub const fn new(name: &'static str, takes: &'static [Kind], gives: Gives, run: Run) -> Self {
        Self { name, takes, least: takes.len(), more: None, gives, run, literals: None }
    }

    /// The last arguments beyond so many may be left out.
    pub const fn at_least(mut self, least: usize) -> Self {
        self.least = least;
        self
    }

    /// Any number of others may follow.
    pub const fn and_more(mut self, more: Kind) -> Self {
        self.more = Some(more);
        self
    }

    /// Literal arguments are looked at when a call is planned.
    pub const fn looking(mut self, literals: Literals) -> Self {
        self.literals = Some(literals);
        self
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.takes.get(at).copied().or(self.more)
    }

    /// The types in which the arguments are given.
    fn given(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let one = |(at, from): (usize, &DataType)| {
            let kind = self.kind(at).ok_or_else(|| DataFusionError::Plan(format!("`{}` takes fewer arguments", self.name)))?;
            kind.given(from).ok_or_else(|| {
                DataFusionError::Plan(format!("argument {} of `{}` must be {}, not {}", at + 1, self.name, kind.word(), word(from)))
            })
        };
        types.iter().enumerate().map(one).collect()
    }

    fn result(&self, arguments: &Arguments<'_>) -> Result<DataType> {
        Ok(match self.gives {
            Gives::Boolean => DataType::Boolean,
            Gives::Int => DataType::Int32,
            Gives::Long => DataType::Int64,
            Gives::Double => DataType::Float64,
            Gives::Text => DataType::Utf8,
            Gives::Texts => list_type(DataType::Utf8),
            Gives::Bytes => DataType::Binary,
            Gives::Date => DataType::Date32,
            Gives::Instant => instant_type(),
            Gives::Local => local_type(),
            Gives::First => arguments.types.first().cloned().unwrap_or(DataType::Null),
            Gives::By(typing) => typing(arguments)?,
        })
    }

    /// As the engine calls it.
    pub fn udf(self) -> ScalarUDF {
        ScalarUDF::from(Function { signature: Signature::new(TypeSignature::UserDefined, Volatility::Immutable), own: self })
    }
}

#[derive(Debug)]
struct Function {
    own: Own,
    signature: Signature,
}

/// There is one function of a name.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.own.name == other.own.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.own.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.own.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let types = self.own.given(types)?;
        self.own.result(&Arguments { types: &types, literals: &[] })
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.own.given(types)?;
        Ok(types.to_vec())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let types = self.own.given(&types)?;
        let given = Arguments { types: &types, literals: arguments.scalar_arguments };
        if let Some(look) = self.own.literals {
            look(&given).map_err(|error| DataFusionError::Plan(words(&error)))?;
        }
        let result = self.own.result(&given)?;
        Ok(Arc::new(Field::new(self.own.name, result, true)))
    }

    /// One value where every argument is one, else a value a row.
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
        let given = self.own.given(&types)?;
        let columns = columns.iter().zip(&given).map(|(column, to)| convert::cast(column, to, false)).collect::<Result<Vec<_>>>()?;
        let values = (self.own.run)(&columns, arguments.return_field.data_type())?;
        let one = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        if one && values.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?));
        }
        Ok(ColumnarValue::Array(values))
    }
}

/// An error of a row; its text names no value.
pub(crate) fn fault<T>(text: &str) -> Result<T> {
    Err(DataFusionError::Execution(text.to_owned()))
}

/// The columns of arguments in the types that a function takes.
pub(crate) fn texts(column: &ArrayRef) -> &StringArray {
    column.as_string()
}

pub(crate) fn bytes(column: &ArrayRef) -> &BinaryArray {
    column.as_binary()
}

pub(crate) fn ints(column: &ArrayRef) -> &Int32Array {
    column.as_primitive::<Int32Type>()
}

pub(crate) fn longs(column: &ArrayRef) -> &Int64Array {
    column.as_primitive::<Int64Type>()
}

pub(crate) fn reals(column: &ArrayRef) -> &Float64Array {
    column.as_primitive::<Float64Type>()
}

/// Days as wide numbers.
pub(crate) fn days(column: &ArrayRef) -> impl Iterator<Item = Option<i64>> {
    column.as_primitive::<Date32Type>().iter().map(|day| day.map(i64::from))
}

pub(crate) fn instants(column: &ArrayRef) -> &TimestampMicrosecondArray {
    column.as_primitive::<TimestampMicrosecondType>()
}

/// A result a row of one argument; null where it is.
pub(crate) fn one<A, R, O: FromIterator<Option<R>>>(
    a: impl IntoIterator<Item = Option<A>>,
    f: impl Fn(A) -> Result<Option<R>>,
) -> Result<O> {
    a.into_iter().map(|a| a.map_or(Ok(None), &f)).collect()
}

/// A result a row of two arguments; null where one is.
pub(crate) fn two<A, B, R, O: FromIterator<Option<R>>>(
    a: impl IntoIterator<Item = Option<A>>,
    b: impl IntoIterator<Item = Option<B>>,
    f: impl Fn(A, B) -> Result<Option<R>>,
) -> Result<O> {
    let rows = a.into_iter().zip(b);
    rows.map(|row| if let (Some(a), Some(b)) = row { f(a, b) } else { Ok(None) }).collect()
}

/// A result a row of three arguments; null where one is.
pub(crate) fn three<A, B, C, R, O: FromIterator<Option<R>>>(
    a: impl IntoIterator<Item = Option<A>>,
    b: impl IntoIterator<Item = Option<B>>,
    c: impl IntoIterator<Item = Option<C>>,
    f: impl Fn(A, B, C) -> Result<Option<R>>,
) -> Result<O> {
    let rows = a.into_iter().zip(b).zip(c);
    rows.map(|row| if let ((Some(a), Some(b)), Some(c)) = row { f(a, b, c) } else { Ok(None) }).collect()
}

/// A column, or another value in every row where the argument is left out.
pub(crate) fn or_literal<T: Clone>(column: Option<impl IntoIterator<Item = Option<T>>>, otherwise: T, rows: usize) -> Vec<Option<T>> {
    match column {
        Some(column) => column.into_iter().collect(),
        None => vec![Some(otherwise); rows],
    }
}

/// As the engine holds it.
pub(crate) fn column<A: Array + 'static>(array: A) -> Result<ArrayRef> {
    Ok(Arc::new(array))
}
