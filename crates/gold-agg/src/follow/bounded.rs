//! What is read of one side of a join, bounded by the times of the other: `b.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES` says between
//! which times the partners of some rows lie, and statistics of files tell which of these may hold one.
//!
//! What must stay true: what is left out is no partner of a row that is looked at. The condition itself is asked all the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_lake::Found;
use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use tributary_lake::arrow::compute::{cast, max, min, take_record_batch};
use tributary_lake::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::common::{DFSchema, JoinType, ScalarValue};
use tributary_lake::datafusion::error::Result as QueryResult;
use tributary_lake::datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, Filter, Join, LogicalPlan, Projection, SubqueryAlias, Union, lit,
};

use super::Stop;
use super::changed::Changes;
use super::rows::column;
use super::shape::Conditions;
use crate::waits::{AtMost, Linear, at_most, is_time, linear};

/// Between which times a column lies, both among them, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    least: Option<i64>,
    greatest: Option<i64>,
}

/// Spans of columns, by place.
pub(super) type Spans = BTreeMap<usize, Span>;

impl Span {
    fn on(self, by: i64) -> Self {
        let on = |edge: Option<i64>| edge.and_then(|edge| edge.checked_add(by));
        Self { least: on(self.least), greatest: on(self.greatest) }
    }

    fn and(self, other: Self) -> Self {
        let greatest = self.greatest.into_iter().chain(other.greatest).min();
        Self { least: self.least.max(other.least), greatest }
    }

    fn condition(self, time: &Expr, data_type: &DataType) -> Option<Expr> {
        let DataType::Timestamp(TimeUnit::Microsecond, zone) = data_type else { return None };
        let bound = |micros: i64| lit(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()));
        let from = self.least.map(|least| time.clone().gt_eq(bound(least)));
        let to = self.greatest.map(|greatest| time.clone().lt_eq(bound(greatest)));
        from.into_iter().chain(to).reduce(Expr::and)
    }
}

/// The span of a column of times; none of another column, of one with a null, and of no values.
pub(super) fn span_of(column: &ArrayRef) -> Result<Option<Span>, ArrowError> {
    if !is_time(column.data_type()) || column.null_count() > 0 || column.is_empty() {
        return Ok(None);
    }
    let times = micros(column)?;
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Ok(Some(Span { least: min(times), greatest: max(times) }))
}

fn micros(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    cast(column, &DataType::Timestamp(TimeUnit::Microsecond, None))
}

/// Rows that were found, those of them within the spans of columns with these names.
pub(super) fn found_within(found: Found, spans: &[(String, Span)]) -> Result<Found, ArrowError> {
    let mut kept: Vec<u32> = (0..found.rows.num_rows() as u32).collect();
    for (name, span) in spans {
        let times = micros(found.rows.column(found.rows.schema().index_of(name)?))?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let within = |time: i64| span.least.is_none_or(|least| time >= least) && span.greatest.is_none_or(|greatest| time <= greatest);
        let inside: BooleanArray = times.iter().map(|time| Some(time.is_some_and(within))).collect();
        kept.retain(|row| inside.value(*row as usize));
    }
    let places = kept.iter().map(|row| found.places[*row as usize]).collect();
    Ok(Found { rows: take_record_batch(&found.rows, &UInt32Array::from(kept))?, places })
}

impl Changes<'_> {
    /// What the told conditions of a join say of the times of a side whose rows meet changed rows of the other.
    pub(super) async fn near(&self, side: LogicalPlan, changed: &LogicalPlan, conditions: &Conditions) -> Result<LogicalPlan, Stop> {
        let mut near = side;
        for AtMost { earlier, later, .. } in at_most(&[], conditions.filter.as_ref()) {
            let own_is_earlier = is_of(&earlier, near.schema());
            let (own, other) = if own_is_earlier { (&earlier, &later) } else { (&later, &earlier) };
            if !is_of(own, near.schema()) || !is_of(other, changed.schema()) || !is_time(&other.get_type(changed.schema())?) {
                continue;
            }
            let Some(Linear { column, behind }) = linear(own, near.schema()) else { continue };
            let keys = self.keys(changed, &[(other.clone(), "time".to_owned())]).await?;
            let times = micros(&keys.values()[0])?;
            let times = times.as_primitive::<TimestampMicrosecondType>();
            let span = match own_is_earlier {
                true => Span { least: None, greatest: max(times) },
                false => Span { least: min(times), greatest: None },
            };
            let column = Expr::Column(column);
            let data_type = column.get_type(near.schema())?;
            if let Some(condition) = span.on(behind.saturating_neg()).condition(&column, &data_type) {
                near = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(near))?);
            }
        }
        Ok(near)
    }
}

/// Whether an expression is of columns of a schema.
fn is_of(expression: &Expr, schema: &DFSchema) -> bool {
    let columns = expression.column_refs();
    !columns.is_empty() && columns.into_iter().all(|column| schema.has_column(column))
}

/// A plan of which only rows are wanted whose columns lie in these spans: what they are made of is bounded as far as it is told. Rows
/// outside may be other ones than the plan's, or missing.
pub(super) fn bounded(plan: LogicalPlan, spans: &Spans) -> QueryResult<LogicalPlan> {
    if spans.is_empty() {
        return Ok(plan);
    }
    let input = |plan: &Arc<LogicalPlan>, spans: &Spans| bounded(plan.as_ref().clone(), spans).map(Arc::new);
    match plan {
        LogicalPlan::Filter(filter) if is_of_inner(&filter) => match joined(&filter) {
            Some(join) => of_join(join, spans),
            None => kept(LogicalPlan::Filter(filter), spans),
        },
        LogicalPlan::SubqueryAlias(alias) => {
            Ok(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(input(&alias.input, spans)?, alias.alias)?))
        }
        LogicalPlan::Filter(filter) => Ok(LogicalPlan::Filter(Filter::try_new(filter.predicate, input(&filter.input, spans)?)?)),
        LogicalPlan::Projection(projection) => {
            let below = computed(&projection.expr, projection.input.schema(), spans);
            let bounded = input(&projection.input, &below)?;
            Ok(LogicalPlan::Projection(Projection::try_new_with_schema(projection.expr, bounded, projection.schema)?))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let below = computed(&aggregate.group_expr, aggregate.input.schema(), spans);
            let bounded = input(&aggregate.input, &below)?;
            Ok(LogicalPlan::Aggregate(Aggregate::try_new_with_schema(
                bounded,
                aggregate.group_expr,
                aggregate.aggr_expr,
                aggregate.schema,
            )?))
        }
        LogicalPlan::Union(union) => {
            let inputs = union.inputs.iter().map(|one| input(one, spans)).collect::<QueryResult<_>>()?;
            Ok(LogicalPlan::Union(Union { inputs, schema: union.schema }))
        }
        LogicalPlan::Join(join) => of_join(join, spans),
        plan => kept(plan, spans),
    }
}

fn is_of_inner(filter: &Filter) -> bool {
    matches!(filter.input.as_ref(), LogicalPlan::Join(join) if join.join_type == JoinType::Inner && !join.null_aware)
}

/// The inner join of which a filter keeps rows, its condition among those of the join.
pub(super) fn joined(filter: &Filter) -> Option<Join> {
    let LogicalPlan::Join(join) = filter.input.as_ref() else { return None };
    let condition = join.filter.iter().fold(filter.predicate.clone(), |all, condition| condition.clone().and(all));
    is_of_inner(filter).then(|| Join { filter: Some(condition), ..join.clone() })
}

/// Spans of what these expressions are computed of.
fn computed(expressions: &[Expr], schema: &DFSchema, spans: &Spans) -> Spans {
    let mut below = Spans::new();
    for (place, span) in spans {
        let time = expressions.get(*place).and_then(|expression| linear(expression, schema));
        if let Some(Linear { column, behind }) = time
            && let Some(place) = schema.maybe_index_of_column(&column)
        {
            narrow(&mut below, place, span.on(behind.saturating_neg()));
        }
    }
    below
}

fn narrow(spans: &mut Spans, place: usize, span: Span) {
    let span = spans.get(&place).map_or(span, |known| known.and(span));
    spans.insert(place, span);
}

/// Both sides of a join, the partners of wanted rows among them.
fn of_join(join: Join, spans: &Spans) -> QueryResult<LogicalPlan> {
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full) {
        return kept(LogicalPlan::Join(join), spans);
    }
    let both = join.left.schema().join(join.right.schema())?;
    let width = join.left.schema().fields().len();
    let mut wanted = spans.clone();
    for AtMost { earlier, later, .. } in at_most(&join.on, join.filter.as_ref()) {
        let place = |time: &Linear| both.maybe_index_of_column(&time.column);
        let (Some(earlier), Some(later)) = (linear(&earlier, &both), linear(&later, &both)) else { continue };
        let (Some(first), Some(second)) = (place(&earlier), place(&later)) else { continue };
        // only what is wanted of one side bounds the other
        if (first < width) == (second < width) {
            continue;
        }
        if let Some(Span { greatest: Some(greatest), .. }) = spans.get(&second).map(|span| span.on(later.behind)) {
            narrow(&mut wanted, first, Span { least: None, greatest: Some(greatest) }.on(earlier.behind.saturating_neg()));
        }
        if let Some(Span { least: Some(least), .. }) = spans.get(&first).map(|span| span.on(earlier.behind)) {
            narrow(&mut wanted, second, Span { least: Some(least), greatest: None }.on(later.behind.saturating_neg()));
        }
    }
    let right = wanted.split_off(&width);
    let right = right.into_iter().map(|(place, span)| (place - width, span)).collect();
    let left = Arc::new(bounded(join.left.as_ref().clone(), &wanted)?);
    let right = Arc::new(bounded(join.right.as_ref().clone(), &right)?);
    Ok(LogicalPlan::Join(Join { left, right, ..join }))
}

/// The rows of a plan within the spans.
fn kept(plan: LogicalPlan, spans: &Spans) -> QueryResult<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let conditions = spans.iter().filter_map(|(place, span)| span.condition(&column(&schema, *place), schema.field(*place).data_type()));
    match conditions.reduce(Expr::and) {
        Some(condition) => Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?)),
        None => Ok(plan),
    }
}

/// That columns of a plan lie in these spans.
pub(super) fn condition(schema: &DFSchema, spans: &Spans) -> Option<Expr> {
    let conditions = spans.iter().filter_map(|(place, span)| span.condition(&column(schema, *place), schema.field(*place).data_type()));
    conditions.reduce(Expr::and)
}

#[cfg(test)]
mod tests {
    use tributary_lake::arrow::array::{RecordBatch, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn spans_narrow_and_rows_outside_are_not_found() {
        let span = |least, greatest| Span { least, greatest };
        assert_eq!(span(Some(1), None).and(span(Some(3), Some(9))).and(span(None, Some(7))), span(Some(3), Some(7)));
        assert_eq!(span(Some(i64::MAX), Some(3)).on(2), span(None, Some(5)));
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![Some(3), Some(1), None, Some(7)]));
        assert_eq!(span_of(&times).unwrap(), None);
        assert_eq!(span_of(&times.slice(0, 2)).unwrap(), Some(span(Some(1), Some(3))));
        let rows = RecordBatch::try_from_iter([("at", times)]).unwrap();
        let found = Found { rows, places: vec![(0, 0), (0, 1), (1, 0), (1, 1)] };
        let found = found_within(found, &[("at".to_owned(), span(Some(2), Some(7)))]).unwrap();
        assert_eq!((found.places, found.rows.num_rows()), (vec![(0, 0), (1, 1)], 2));
    }
}
