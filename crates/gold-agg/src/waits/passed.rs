//! Whether a watermark has passed a time, and had when the view was last brought up to date, as one function of plans.

use std::hash::Hash;
use std::sync::{Arc, LazyLock};

use tributary_lake::arrow::array::{AsArray, BooleanArray};
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

/// Where a watermark was, and where it is, in microseconds; none where there was no row with a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Boundary {
    pub from: Option<i64>,
    pub to: Option<i64>,
}

impl Boundary {
    /// The same, so many microseconds on.
    pub fn on(self, by: i64) -> Self {
        let on = |edge: Option<i64>| edge.map(|edge| edge.saturating_add(by));
        Self { from: on(self.from), to: on(self.to) }
    }

    /// Times that the boundary has gone over, either way: the first, and the first behind them; none where it stayed.
    pub fn went_over(self) -> Option<(i64, i64)> {
        let (from, to) = (edge(self.from), edge(self.to));
        (from != to).then(|| (from.min(to), from.max(to)))
    }
}

/// What is not reached yet passes no time.
fn edge(edge: Option<i64>) -> i64 {
    edge.unwrap_or(i64::MIN)
}

/// A call in a plan.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    pub time: Expr,
    pub boundary: Boundary,
}

impl Passed {
    /// True where the boundary lies behind the time, null where there is no time.
    pub fn expression(self) -> Expr {
        static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Function::default())));
        let Boundary { from, to } = self.boundary;
        FUNCTION.call(vec![self.time, lit(edge(from)), lit(edge(to))])
    }

    /// The calls in an expression.
    pub fn all_in(expression: &Expr) -> Vec<Self> {
        let mut found = Vec::new();
        // the closure fails nowhere
        let _ = expression.apply(|part| {
            found.extend(Self::of(part));
            Ok(TreeNodeRecursion::Continue)
        });
        found
    }

    fn of(expression: &Expr) -> Option<Self> {
        let Expr::ScalarFunction(call) = expression else { return None };
        call.func.inner().downcast_ref::<Function>()?;
        let edge = |at: usize| match call.args.get(at) {
            Some(Expr::Literal(ScalarValue::Int64(edge), _)) => edge.filter(|edge| *edge != i64::MIN),
            _ => None,
        };
        Some(Self { time: call.args.first()?.clone(), boundary: Boundary { from: edge(1), to: edge(2) } })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    signature: Signature,
}

impl Default for Function {
    fn default() -> Self {
        Self { signature: Signature::any(3, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &'static str {
        "__passed"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let [time, _, ColumnarValue::Scalar(ScalarValue::Int64(Some(to)))] = arguments.args.as_slice() else {
            return Err(DataFusionError::Internal("a watermark is a number".to_owned()));
        };
        let times = cast(&time.to_array(rows)?, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
        let passed = times.as_primitive::<TimestampMicrosecondType>().iter().map(|time| time.map(|time| time < *to));
        Ok(ColumnarValue::Array(Arc::new(passed.collect::<BooleanArray>())))
    }
}

#[cfg(test)]
mod tests {
    use tributary_lake::datafusion::logical_expr::col;

    use super::*;

    #[test]
    fn a_call_is_found_again_with_its_boundary() {
        let boundary = Boundary { from: None, to: Some(7) }.on(3);
        let condition = col("b").is_not_null().or(Passed { time: col("a"), boundary }.expression());
        let found = Passed::all_in(&condition);
        assert_eq!((found.len(), &found[0].time, found[0].boundary), (1, &col("a"), Boundary { from: None, to: Some(10) }));
        assert_eq!(found[0].boundary.went_over(), Some((i64::MIN, 10)));
        assert_eq!(Boundary { from: Some(7), to: Some(5) }.went_over(), Some((5, 7)));
        assert_eq!(Boundary { from: Some(7), to: Some(7) }.went_over(), None);
    }
}
