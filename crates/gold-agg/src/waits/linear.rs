//! Times that are a column and a span before or behind it. Pure.

use tributary_lake::arrow::datatypes::{DataType, TimeUnit};
use tributary_lake::datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue};
use tributary_lake::datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// A time: a column, and so many microseconds behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linear {
    pub column: Column,
    pub behind: i64,
}

/// Whether a type is of times to the microsecond.
pub(crate) fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(TimeUnit::Microsecond, _))
}

/// What a time is; none where it is not a column of times with a span of fixed length. Days have 24 hours here, as sessions are in UTC.
pub(crate) fn linear(expression: &Expr, schema: &DFSchema) -> Option<Linear> {
    match expression {
        Expr::Column(column) => {
            is_time(schema.field_from_column(column).ok()?.data_type()).then(|| Linear { column: column.clone(), behind: 0 })
        }
        Expr::Alias(alias) => linear(&alias.expr, schema),
        Expr::Cast(cast) if is_time(cast.field.data_type()) => {
            is_time(&cast.expr.get_type(schema).ok()?).then(|| linear(&cast.expr, schema)).flatten()
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) => match (span(left), span(right)) {
            (None, Some(span)) => shifted(linear(left, schema)?, span),
            (Some(span), None) => shifted(linear(right, schema)?, span),
            _ => None,
        },
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => shifted(linear(left, schema)?, span(right)?.checked_neg()?),
        _ => None,
    }
}

fn shifted(time: Linear, by: i64) -> Option<Linear> {
    Some(Linear { behind: time.behind.checked_add(by)?, ..time })
}

/// A literal interval without months, in microseconds.
fn span(expression: &Expr) -> Option<i64> {
    let Expr::Literal(value, _) = expression else { return None };
    match value {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months == 0 && interval.nanoseconds % 1000 == 0 => {
            i64::from(interval.days).checked_mul(MICROS_OF_DAY)?.checked_add(interval.nanoseconds / 1000)
        }
        ScalarValue::IntervalDayTime(Some(interval)) => {
            Some(i64::from(interval.days) * MICROS_OF_DAY + i64::from(interval.milliseconds) * 1000)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tributary_lake::arrow::datatypes::{Field, IntervalMonthDayNano, Schema};
    use tributary_lake::datafusion::logical_expr::{col, lit};

    use super::*;

    fn schema() -> DFSchema {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        DFSchema::try_from(
            Arc::new(Schema::new(vec![Field::new("at", time, true), Field::new("n", DataType::Int64, true)])).as_ref().clone(),
        )
        .unwrap()
    }

    fn interval(months: i32, days: i32, nanoseconds: i64) -> Expr {
        lit(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds })))
    }

    #[test]
    fn a_column_and_spans_of_fixed_length_are_a_time_and_nothing_else_is() {
        let behind = |expression: Expr| linear(&expression, &schema()).map(|time| time.behind);
        assert_eq!(behind(col("at")), Some(0));
        assert_eq!(behind(col("at") + interval(0, 1, 5_000) - interval(0, 0, 2_000)), Some(MICROS_OF_DAY + 3));
        assert_eq!(behind(interval(0, 0, 1_000) + col("at")), Some(1));
        assert_eq!(behind(col("at") + interval(1, 0, 0)), None);
        assert_eq!(behind(col("at") + interval(0, 0, 1)), None);
        assert_eq!((behind(col("n")), behind(lit(1) + lit(2))), (None, None));
    }
}
