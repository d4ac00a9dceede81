//! The groups that changed: what came to each and went from it, and where its row of the view is.

use std::collections::HashMap;
use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use tributary_lake::arrow::compute::{CastOptions, cast_with_options, concat, concat_batches, take};
use tributary_lake::arrow::datatypes::{DataType, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::row::{RowConverter, SortField};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::functions_aggregate::count::count_udaf;
use tributary_lake::datafusion::logical_expr::expr::AggregateFunction;
use tributary_lake::datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::fit::{Kind, Signed};
use super::totals::Part;
use crate::follow::Stop;
use crate::follow::changed::Changes;

impl Changes<'_> {
    /// What the totals of each group come to over a bag of rows: the columns of the groups, then the count of rows, then for each total
    /// two columns, its value and how many values it takes in.
    pub(super) async fn by_group(&self, signed: &Signed, bag: Option<LogicalPlan>) -> Result<RecordBatch, Stop> {
        let over = match bag {
            Some(bag) => bag,
            None => LogicalPlanBuilder::from(signed.aggregate.input.as_ref().clone()).filter(lit(false))?.build()?,
        };
        let mut calls = vec![count(lit(1_i64), None).alias("rows of it")];
        for (at, (total, call)) in signed.totals.all.iter().zip(&signed.aggregate.aggr_expr).enumerate() {
            let call = match call {
                Expr::Alias(alias) => alias.expr.as_ref(),
                other => other,
            };
            let Expr::AggregateFunction(AggregateFunction { params, .. }) = call else { continue };
            let values = count(params.args[0].clone(), params.filter.clone());
            let is_counted = matches!(total.kind, Kind::Count | Kind::Values | Kind::Mean { .. });
            let value = if is_counted { values.clone() } else { call.clone() };
            calls.push(value.alias(format!("value of total {at}")));
            calls.push(values.alias(format!("values of total {at}")));
        }
        let by_group = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(over), signed.aggregate.group_expr.clone(), calls)?);
        let schema = Arc::new(Schema::clone(by_group.schema().as_arrow()));
        let batches = self.collect(by_group).await?;
        let schema = batches.first().map_or(schema, RecordBatch::schema);
        Ok(concat_batches(&schema, &batches)?)
    }
}

pub(super) fn count(argument: Expr, filter: Option<Box<Expr>>) -> Expr {
    Expr::AggregateFunction(AggregateFunction::new_udf(count_udaf(), vec![argument], false, filter, Vec::new(), None))
}

/// A row of the view by number, and the totals in it.
pub(super) type OfView = (u32, Vec<ScalarValue>);

/// The groups to which rows came, or from which some went, each once.
pub(super) struct Groups {
    /// The columns that are grouped by, a row a group.
    pub columns: Vec<ArrayRef>,
    /// What came to each, what went.
    pub parts: Vec<(Part, Part)>,
    numbers: HashMap<Box<[u8]>, usize>,
    converter: Option<RowConverter>,
}

impl Groups {
    /// Of what [`Changes::by_group`] says of both bags.
    pub fn of(signed: &Signed, came: &RecordBatch, gone: &RecordBatch) -> Result<Self, Stop> {
        let width = signed.groups.len();
        let types: Vec<DataType> = (0..width).map(|at| signed.aggregate.schema.field(at).data_type().clone()).collect();
        let mut groups = Self { columns: Vec::new(), parts: Vec::new(), numbers: HashMap::new(), converter: None };
        if width == 0 {
            groups.parts = vec![(part(signed, came, 0)?, part(signed, gone, 0)?)];
            return Ok(groups);
        }
        groups.converter = Some(RowConverter::new(types.iter().cloned().map(SortField::new).collect())?);
        let of_came = cast_all(&came.columns()[..width], &types)?;
        let of_gone = cast_all(&gone.columns()[..width], &types)?;
        let mut first_rows: Vec<u32> = Vec::new();
        for (row, key) in groups.keys(&of_came)?.into_iter().enumerate() {
            groups.numbers.insert(key, groups.parts.len());
            groups.parts.push((part(signed, came, row)?, Part::default()));
            first_rows.push(row as u32);
        }
        for (row, key) in groups.keys(&of_gone)?.into_iter().enumerate() {
            let went = part(signed, gone, row)?;
            let number = *groups.numbers.entry(key).or_insert(groups.parts.len());
            match groups.parts.get_mut(number) {
                Some(parts) => parts.1 = went,
                None => {
                    groups.parts.push((Part::default(), went));
                    first_rows.push((came.num_rows() + row) as u32);
                }
            }
        }
        let first_rows = UInt32Array::from(first_rows);
        for (came, gone) in of_came.iter().zip(&of_gone) {
            let both = concat(&[came.as_ref(), gone.as_ref()])?;
            groups.columns.push(take(&both, &first_rows, None)?);
        }
        Ok(groups)
    }

    /// The groups of rows with these values of the columns that are grouped by; none where no row came to it or went from it.
    pub fn numbers(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Option<usize>>, ArrowError> {
        match columns.is_empty() {
            true => Ok(vec![Some(0); rows]),
            false => Ok(self.keys(columns)?.iter().map(|key| self.numbers.get(key).copied()).collect()),
        }
    }

    fn keys(&self, columns: &[ArrayRef]) -> Result<Vec<Box<[u8]>>, ArrowError> {
        let Some(converter) = &self.converter else { return Ok(Vec::new()) };
        Ok(converter.convert_columns(columns)?.iter().map(|row| Box::from(row.as_ref())).collect())
    }

    /// The row of each group among rows of the view; none where it has none.
    ///
    /// # Errors
    /// [`Stop::Full`] where a group has two: somebody else wrote to the view.
    pub fn rows_of(&self, signed: &Signed, names: &[String], view: &RecordBatch) -> Result<Vec<Option<OfView>>, Stop> {
        let of_view = |place: usize, data_type: &DataType| -> Result<ArrayRef, ArrowError> {
            cast_strictly(view.column(view.schema().index_of(&names[place])?), data_type)
        };
        let types = (0..signed.groups.len()).map(|at| signed.aggregate.schema.field(at).data_type());
        let columns: Vec<ArrayRef> =
            signed.groups.iter().zip(types).map(|(place, data_type)| of_view(*place, data_type)).collect::<Result<_, _>>()?;
        let numbers = self.numbers(&columns, view.num_rows())?;
        let mut totals = Vec::new();
        for total in &signed.totals.all {
            totals.push(total.column.map(|place| of_view(place, &total.data_type)).transpose()?);
        }
        let mut rows = vec![None; self.parts.len()];
        for (row, number) in numbers.into_iter().enumerate() {
            let Some(number) = number else { continue };
            let told = totals.iter().map(|column| match column {
                Some(column) => ScalarValue::try_from_array(column, row),
                None => Ok(ScalarValue::Null),
            });
            let told = told.collect::<Result<Vec<_>, _>>()?;
            if rows[number].replace((row as u32, told)).is_some() {
                return Err(Stop::Full("the view has a group twice".to_owned()));
            }
        }
        Ok(rows)
    }
}

/// A row of what [`Changes::by_group`] gives.
fn part(signed: &Signed, batch: &RecordBatch, row: usize) -> Result<Part, Stop> {
    let whole = |column: &ArrayRef| -> Result<i64, Stop> {
        match ScalarValue::try_from_array(column, row)? {
            ScalarValue::Int64(Some(number)) => Ok(number),
            other => Err(Stop::Full(format!("a count is {}", other.data_type()))),
        }
    };
    let mut columns = batch.columns()[signed.groups.len()..].iter();
    let mut next = || columns.next().ok_or_else(|| Stop::Full("a total of what changed is not there".to_owned()));
    let rows = whole(next()?)?;
    let mut totals = Vec::new();
    for total in &signed.totals.all {
        let value = next()?;
        let data_type = if matches!(total.kind, Kind::Mean { .. }) { &DataType::Int64 } else { &total.data_type };
        let value = ScalarValue::try_from_array(&cast_strictly(&value.slice(row, 1), data_type)?, 0)?;
        let values = whole(next()?)?;
        // which of them appeared or vanished is looked up
        totals.push((value, if total.kind == Kind::Values { 0 } else { values }));
    }
    Ok(Part { rows, totals })
}

pub(super) fn cast_all(columns: &[ArrayRef], types: &[DataType]) -> Result<Vec<ArrayRef>, ArrowError> {
    columns.iter().zip(types).map(|(column, data_type)| cast_strictly(column, data_type)).collect()
}

fn cast_strictly(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    match column.data_type() == data_type {
        true => Ok(ArrayRef::clone(column)),
        false => cast_with_options(column, data_type, &CastOptions { safe: false, ..CastOptions::default() }),
    }
}
