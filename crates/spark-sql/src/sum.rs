//! `sum` of whole numbers and of the longest decimals: too large a total is an error, where the engine would wrap.
//!
//! Totals are kept in a wider type and brought back when they are told, so that whether one is too large does not depend on the
//! order of the rows.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, BooleanArray};
use tributary_lake::arrow::compute::{CastOptions, cast, cast_with_options};
use tributary_lake::arrow::datatypes::{DataType, Field, FieldRef};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::functions_aggregate::sum::Sum;
use tributary_lake::datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use tributary_lake::datafusion::logical_expr::utils::AggregateOrderSensitivity;
use tributary_lake::datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

/// The function in place of the engine's.
pub(crate) fn function() -> AggregateUDF {
    AggregateUDF::from(Total::default())
}

/// The engine's function, over a wider type where a total may be too large for its own.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct Total {
    inner: Sum,
}

/// The type that totals are kept in; none where the engine's own cannot be too small.
fn wide(total: &DataType) -> Option<DataType> {
    match total {
        DataType::Int64 => Some(DataType::Decimal128(38, 0)),
        DataType::Decimal128(38, scale) => Some(DataType::Decimal256(76, *scale)),
        _ => None,
    }
}

fn of_type(field: &FieldRef, data_type: DataType) -> FieldRef {
    Arc::new(Field::clone(field).with_data_type(data_type))
}

impl AggregateUDFImpl for Total {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match Widening::of(&arguments) {
            Some(widening) => Ok(Box::new(One { inner: self.inner.accumulator(widening.widened(arguments))?, widening })),
            None => self.inner.accumulator(arguments),
        }
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match Widening::of(&arguments) {
            Some(widening) => Ok(Box::new(One { inner: self.inner.create_sliding_accumulator(widening.widened(arguments))?, widening })),
            None => self.inner.create_sliding_accumulator(arguments),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match wide(arguments.return_type()) {
            Some(wide) => {
                let return_field = of_type(&arguments.return_field, wide);
                self.inner.state_fields(StateFieldsArgs { return_field, ..arguments })
            }
            None => self.inner.state_fields(arguments),
        }
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match Widening::of(&arguments) {
            Some(widening) => {
                Ok(Box::new(OfGroups { inner: self.inner.create_groups_accumulator(widening.widened(arguments))?, widening }))
            }
            None => self.inner.create_groups_accumulator(arguments),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The type of a total and the wider one that it is kept in.
#[derive(Debug)]
struct Widening {
    /// What is summed, for people.
    name: String,
    total: DataType,
    wide: DataType,
}

impl Widening {
    fn of(arguments: &AccumulatorArgs<'_>) -> Option<Self> {
        let total = arguments.return_type().clone();
        Some(Self { name: arguments.name.to_owned(), wide: wide(&total)?, total })
    }

    fn widened<'a>(&self, arguments: AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
        AccumulatorArgs { return_field: of_type(&arguments.return_field, self.wide.clone()), ..arguments }
    }

    fn widen(&self, values: &[ArrayRef]) -> Result<[ArrayRef; 1]> {
        Ok([cast(&values[0], &self.wide)?])
    }

    fn narrow(&self, totals: &ArrayRef) -> Result<ArrayRef> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let narrow = cast_with_options(totals, &self.total, &strict);
        // the kernel would name the values
        narrow
            .map_err(|_| DataFusionError::Execution(format!("{} is too large for its type: cast what is summed to a wider one", self.name)))
    }
}

/// One total.
#[derive(Debug)]
struct One {
    inner: Box<dyn Accumulator>,
    widening: Widening,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&self.widening.widen(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.inner.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&self.widening.narrow(&total)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&self.widening.widen(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// The totals of groups.
struct OfGroups {
    inner: Box<dyn GroupsAccumulator>,
    widening: Widening,
}

impl GroupsAccumulator for OfGroups {
    fn update_batch(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>, count: usize) -> Result<()> {
        self.inner.update_batch(&self.widening.widen(values)?, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        self.widening.narrow(&self.inner.evaluate(emit)?)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.inner.merge_batch(values, groups, count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&self.widening.widen(values)?, filter)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}
