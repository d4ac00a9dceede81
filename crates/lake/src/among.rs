//! A condition that holds exactly for the rows of some keys.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit};

use crate::{Error, KeyProbe, KeySet};

/// So few keys of one column are listed, which the engine finds files, row groups and pages by.
const LISTED_MAX: usize = 32;

/// Keys of rows, with the columns they were made of.
#[derive(Debug, Clone)]
pub struct Keys {
    set: Arc<KeySet>,
    columns: Vec<ArrayRef>,
}

impl Keys {
    /// Keys of these columns, which have the names.
    ///
    /// # Errors
    /// When a type has no order.
    pub fn new(names: Vec<String>, columns: Vec<ArrayRef>) -> Result<Self, Error> {
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
        let set = Arc::new(KeySet::new(names, &types, std::slice::from_ref(&columns))?);
        Ok(Self { set, columns })
    }

    /// The keys, each once.
    pub fn set(&self) -> &KeySet {
        &self.set
    }

    /// The same keys of columns that are called otherwise.
    pub(crate) fn named(&self, names: Vec<String>) -> Result<Self, Error> {
        if names == self.set.names() { Ok(self.clone()) } else { Self::new(names, self.columns.clone()) }
    }

    /// The values of the rows that the keys were made of, column by column.
    pub fn values(&self) -> &[ArrayRef] {
        &self.columns
    }

    /// Holds exactly for the rows whose values of `expressions`, one a key column, are one of the keys; null is equal to null.
    ///
    /// # Errors
    /// None that are known.
    pub fn condition(&self, expressions: &[Expr]) -> Result<Expr> {
        if self.set.is_empty() {
            return Ok(lit(false));
        }
        let signature = Signature::any(expressions.len(), Volatility::Immutable);
        let function = ScalarUDF::from(Among { keys: self.clone(), signature });
        let mut condition = function.call(expressions.to_vec());
        for (at, expression) in expressions.iter().enumerate() {
            condition = self.range(at, expression)?.and(condition);
        }
        Ok(condition)
    }

    /// What the engine can tell from statistics: implied by the keys, of one column.
    fn range(&self, at: usize, expression: &Expr) -> Result<Expr> {
        let Some(range) = self.set.ranges().0.get(&self.set.names()[at]) else { return Ok(lit(true)) };
        let within = match &range.bounds {
            Some((least, greatest)) => {
                let bounds = expression.clone().gt_eq(lit(least.clone())).and(expression.clone().lt_eq(lit(greatest.clone())));
                let column = &self.columns[at];
                match column.len() <= LISTED_MAX {
                    true => bounds.and(expression.clone().in_list(listed(column)?, false)),
                    false => bounds,
                }
            }
            None => lit(false),
        };
        Ok(if range.nulls { within.or(expression.clone().is_null()) } else { within })
    }
}

/// Looks for rows that have one of the keys.
impl KeyProbe for Keys {
    fn columns(&self) -> &[String] {
        self.set.names()
    }

    fn hits(&self, keys: &RecordBatch) -> Result<Vec<u32>, ArrowError> {
        self.set.rows_among(keys.columns())
    }

    fn keys(&self) -> Option<&KeySet> {
        Some(&self.set)
    }
}

fn listed(column: &ArrayRef) -> Result<Vec<Expr>> {
    let valid = (0..column.len()).filter(|row| column.is_valid(*row));
    let mut values: Vec<ScalarValue> = valid.map(|row| ScalarValue::try_from_array(column, row)).collect::<Result<_>>()?;
    let mut seen = std::collections::HashSet::new();
    values.retain(|value| seen.insert(value.clone()));
    Ok(values.into_iter().map(lit).collect())
}

/// The keys that a condition of ours asks for, and the columns of a table that it compares with them; none of any other condition.
pub(crate) fn keys_of(condition: &Expr) -> Option<(&Keys, Vec<String>)> {
    let Expr::ScalarFunction(call) = condition else { return None };
    let among = call.func.inner().downcast_ref::<Among>()?;
    let names = call.args.iter().map(|argument| argument.try_as_col().map(|column| column.name.clone()));
    Some((&among.keys, names.collect::<Option<_>>()?))
}

#[derive(Debug)]
struct Among {
    keys: Keys,
    signature: Signature,
}

impl PartialEq for Among {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.keys.set, &other.keys.set)
    }
}

impl Eq for Among {}

impl Hash for Among {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.keys.set).cast::<()>().hash(state);
    }
}

impl ScalarUDFImpl for Among {
    fn name(&self) -> &'static str {
        "__among"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let columns = arguments.args.into_iter().map(|argument| argument.into_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let mut hits = vec![false; rows];
        let found = self.keys.set.rows_among(&columns).map_err(DataFusionError::from)?;
        found.into_iter().for_each(|row| hits[row as usize] = true);
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(hits))))
    }
}
