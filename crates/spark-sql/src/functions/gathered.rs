//! Aggregates that look at the values of a group themselves, because the engine has not them or means something else by the name.
//!
//! What an aggregate keeps of its rows is its own affair: some keep one, some all. What they keep counts as memory.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef};
use tributary_lake::arrow::datatypes::{DataType, Field, FieldRef};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use tributary_lake::datafusion::logical_expr::utils::format_state_name;
use tributary_lake::datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility};

use crate::value::{Value, build, canonical, in_canonical_form, list_type, read, struct_type};

/// The arguments of a row.
pub(super) type Row = Vec<Value>;

/// An aggregate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gathered {
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    /// The type of the result, of canonical types of the arguments.
    pub typing: fn(&[DataType]) -> Result<DataType>,
    /// Takes a row into what is kept.
    pub keep: fn(&mut Vec<Row>, Row),
    /// The result of what is kept, of its type.
    pub tell: fn(&[Row], &[DataType], &DataType) -> Result<Value>,
}

impl Gathered {
    /// As the engine calls it.
    pub fn udf(self) -> AggregateUDF {
        AggregateUDF::from(Function { of: self, signature: Signature::new(TypeSignature::UserDefined, Volatility::Immutable) })
    }
}

#[derive(Debug)]
struct Function {
    of: Gathered,
    signature: Signature,
}

/// There is one function of a name.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.of.name == other.of.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.name.hash(state);
    }
}

fn types(types: &[DataType]) -> Vec<DataType> {
    types.iter().map(canonical).collect()
}

/// What is kept, as a list of structs.
fn state_type(types: &[DataType]) -> DataType {
    let names: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
    list_type(struct_type(names.iter().map(String::as_str).zip(types.iter().cloned())))
}

impl AggregateUDFImpl for Function {
    fn name(&self) -> &str {
        self.of.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        (self.of.typing)(&types(given))?;
        Ok(given.to_vec())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        (self.of.typing)(&types(given))
    }

    fn is_nullable(&self) -> bool {
        true
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let given: Vec<DataType> = arguments.expr_fields.iter().map(|field| canonical(field.data_type())).collect();
        let seen = arguments.is_distinct.then(HashSet::new);
        Ok(Box::new(Kept { of: self.of, types: given, to: arguments.return_type().clone(), rows: Vec::new(), bytes: 0, seen }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let given: Vec<DataType> = arguments.input_fields.iter().map(|field| canonical(field.data_type())).collect();
        Ok(vec![Arc::new(Field::new(format_state_name(arguments.name, "kept"), state_type(&given), true))])
    }
}

/// What is kept of a group.
#[derive(Debug)]
struct Kept {
    of: Gathered,
    types: Vec<DataType>,
    to: DataType,
    rows: Vec<Row>,
    bytes: usize,
    /// Rows that were there, where each counts once.
    seen: Option<HashSet<String>>,
}

impl Kept {
    fn take(&mut self, row: Row) {
        if let Some(seen) = &mut self.seen {
            let key = format!("{row:?}");
            self.bytes += key.len();
            if !seen.insert(key) {
                return;
            }
        }
        let before = self.rows.len();
        let bytes: usize = row.iter().map(bytes).sum();
        (self.of.keep)(&mut self.rows, row);
        self.bytes += bytes * (self.rows.len() - before.min(self.rows.len()));
    }
}

fn bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(inside) | Value::Struct(inside) => inside.iter().map(bytes).sum(),
            Value::Map(inside) => inside.iter().map(|(key, value)| bytes(key) + bytes(value)).sum(),
            _ => 0,
        }
}

impl Accumulator for Kept {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let columns = values.iter().map(in_canonical_form).collect::<Result<Vec<_>>>()?;
        for row in 0..columns.first().map_or(0, |column| column.len()) {
            let row = columns.iter().map(|column| read(column, row)).collect::<Result<Row>>()?;
            self.take(row);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let found = (self.of.tell)(&self.rows, &self.types, &self.to)?;
        ScalarValue::try_from_array(&build(vec![found], &self.to)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let rows = self.rows.iter().cloned().map(Value::Struct).collect();
        let column = build(vec![Value::List(rows)], &state_type(&self.types))?;
        Ok(vec![ScalarValue::try_from_array(&column, 0)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(states) = states.first() else {
            return Err(DataFusionError::Internal("an aggregate without a state".to_owned()));
        };
        for at in 0..states.len() {
            if let Value::List(rows) = read(states, at)? {
                for row in rows {
                    if let Value::Struct(row) = row {
                        self.take(row);
                    }
                }
            }
        }
        Ok(())
    }
}
