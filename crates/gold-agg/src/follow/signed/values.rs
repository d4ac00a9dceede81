//! How many values appeared in each group, and how many vanished.
//!
//! A value is in a group as often as rows of it have the value. How often it is there now is looked up in the inputs, for those values
//! alone of which rows came or went; how often it was follows, for both bags are known:
//!
//! ```text
//! was = is - came + gone        appeared: was = 0, is > 0        vanished: was > 0, is = 0
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use tributary_lake::Keys;
use tributary_lake::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use tributary_lake::arrow::compute::{concat_batches, take};
use tributary_lake::arrow::datatypes::{DataType, Int64Type};
use tributary_lake::arrow::row::{RowConverter, SortField};
use tributary_lake::datafusion::logical_expr::expr::AggregateFunction;
use tributary_lake::datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan, Projection, lit};

use super::bags::Bags;
use super::fit::{Kind, Signed};
use super::groups::{Groups, cast_all, count};
use crate::follow::Stop;
use crate::follow::changed::Changes;
use crate::follow::naming::most_telling;
use crate::follow::rows::column;

/// Values of groups: the columns of the groups, the value, how many rows have it.
struct Values {
    columns: Vec<ArrayRef>,
    times: Vec<i64>,
}

/// What is counted: the columns that are grouped by and the argument, of rows with a value that the filter of the call keeps.
struct Counted<'s> {
    signed: &'s Signed,
    call: &'s AggregateFunction,
}

impl Changes<'_> {
    /// Tells the groups how many values appeared in them and how many vanished.
    ///
    /// # Errors
    /// [`Stop::Full`] where the inputs do not agree with what their change feeds say.
    pub(super) async fn count_values(&self, signed: &Signed, bags: &Bags, groups: &mut Groups) -> Result<(), Stop> {
        for (at, (total, call)) in signed.totals.all.iter().zip(&signed.aggregate.aggr_expr).enumerate() {
            let Expr::AggregateFunction(call) = unaliased(call) else { continue };
            if total.kind == Kind::Values {
                let counted = Counted { signed, call };
                let net = self.net(&counted, bags).await?;
                let is = self.times_now(&counted, &net).await?;
                tell(groups, at, &net, &is)?;
            }
        }
        Ok(())
    }

    /// How many more rows have a value than had it, where that is not none.
    async fn net(&self, counted: &Counted<'_>, bags: &Bags) -> Result<Values, Stop> {
        let mut net: HashMap<Box<[u8]>, (i64, u32)> = HashMap::new();
        let mut columns: Vec<Vec<ArrayRef>> = Vec::new();
        let mut first = 0;
        for (bag, sign) in [(&bags.came, 1), (&bags.gone, -1)] {
            let Some(bag) = bag else { continue };
            let Values { columns: of_bag, times } = self.times(counted, counted.rows(bag.clone())?).await?;
            for (row, key) in (first..).zip(keys(&of_bag)?) {
                net.entry(key).or_insert((0, row)).0 += sign * times[(row - first) as usize];
            }
            first += times.len() as u32;
            columns.push(of_bag);
        }
        let mut left: Vec<(i64, u32)> = net.into_values().filter(|(times, _)| *times != 0).collect();
        left.sort_unstable_by_key(|(_, row)| *row);
        let rows = UInt32Array::from_iter_values(left.iter().map(|(_, row)| *row));
        let width = counted.signed.groups.len() + 1;
        let mut of_left = Vec::new();
        for place in 0..width {
            let parts: Vec<&dyn tributary_lake::arrow::array::Array> = columns.iter().map(|columns| columns[place].as_ref()).collect();
            if !parts.is_empty() {
                of_left.push(take(&tributary_lake::arrow::compute::concat(&parts)?, &rows, None)?);
            }
        }
        Ok(Values { columns: of_left, times: left.into_iter().map(|(times, _)| times).collect() })
    }

    /// How often the values are there at the newest versions of the inputs; those that are not are left out.
    async fn times_now(&self, counted: &Counted<'_>, wanted: &Values) -> Result<HashMap<Box<[u8]>, i64>, Stop> {
        if wanted.times.is_empty() {
            return Ok(HashMap::new());
        }
        let mut all = counted.signed.aggregate.input.as_ref().clone();
        let expressions: Vec<Expr> = counted.expressions().collect();
        let plain: Vec<usize> = (0..expressions.len()).filter(|at| expressions[*at].try_as_col().is_some()).collect();
        if !plain.is_empty() && plain.len() < expressions.len() {
            // files and rows are found by columns alone
            let columns: Vec<ArrayRef> = plain.iter().map(|at| ArrayRef::clone(&wanted.columns[*at])).collect();
            let chosen = most_telling(&columns)?;
            let named: Vec<Expr> = chosen.iter().map(|at| expressions[plain[*at]].clone()).collect();
            let keys = keys_of(chosen.iter().map(|at| ArrayRef::clone(&columns[*at])).collect())?;
            all = LogicalPlan::Filter(Filter::try_new(keys.condition(&named)?, Arc::new(all))?);
        }
        let rows = counted.rows(all)?;
        let places: Vec<Expr> = (0..expressions.len()).map(|place| column(rows.schema(), place)).collect();
        let condition = keys_of(wanted.columns.clone())?.condition(&places)?;
        let Values { columns, times } = self.times(counted, LogicalPlan::Filter(Filter::try_new(condition, Arc::new(rows))?)).await?;
        Ok(keys(&columns)?.into_iter().zip(times).collect())
    }

    /// How many of some rows have each value.
    async fn times(&self, counted: &Counted<'_>, rows: LogicalPlan) -> Result<Values, Stop> {
        let places: Vec<Expr> = (0..rows.schema().fields().len()).map(|place| column(rows.schema(), place)).collect();
        let width = places.len();
        let times = count(lit(1_i64), None).alias("rows with it");
        let by_value = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(rows), places, vec![times])?);
        let schema = Arc::new(by_value.schema().as_arrow().clone());
        let batches = self.collect(by_value).await?;
        let all = concat_batches(batches.first().map_or(&schema, RecordBatch::schema_ref), &batches)?;
        let columns = cast_all(&all.columns()[..width], &counted.types()?)?;
        Ok(Values { columns, times: all.column(width).as_primitive::<Int64Type>().values().to_vec() })
    }
}

impl Counted<'_> {
    fn argument(&self) -> &Expr {
        &self.call.params.args[0]
    }

    /// The columns that are grouped by, and what is counted.
    fn expressions(&self) -> impl Iterator<Item = Expr> {
        let groups = self.signed.aggregate.group_expr.iter();
        groups.chain([self.argument()]).map(|expression| expression.clone().unalias())
    }

    /// Of what is grouped.
    fn rows(&self, of: LogicalPlan) -> Result<LogicalPlan, Stop> {
        let mut kept = LogicalPlan::Filter(Filter::try_new(self.argument().clone().is_not_null(), Arc::new(of))?);
        if let Some(filter) = &self.call.params.filter {
            kept = LogicalPlan::Filter(Filter::try_new(filter.as_ref().clone(), Arc::new(kept))?);
        }
        let columns = self.expressions().enumerate().map(|(place, expression)| expression.alias(format!("value {place}"))).collect();
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(kept))?))
    }

    fn types(&self) -> Result<Vec<DataType>, Stop> {
        use tributary_lake::datafusion::logical_expr::ExprSchemable;
        let schema = self.signed.aggregate.input.schema();
        Ok(self.expressions().map(|expression| expression.get_type(schema)).collect::<Result<_, _>>()?)
    }
}

fn unaliased(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

fn keys_of(columns: Vec<ArrayRef>) -> Result<Keys, Stop> {
    Ok(Keys::new((0..columns.len()).map(|place| format!("value {place}")).collect(), columns)?)
}

/// Rows as bytes that are equal where they are.
fn keys(columns: &[ArrayRef]) -> Result<Vec<Box<[u8]>>, Stop> {
    let converter = RowConverter::new(columns.iter().map(|column| SortField::new(column.data_type().clone())).collect())?;
    Ok(converter.convert_columns(columns)?.iter().map(|row| Box::from(row.as_ref())).collect())
}

/// Tells the groups of a total what appeared and vanished.
fn tell(groups: &mut Groups, total: usize, net: &Values, is: &HashMap<Box<[u8]>, i64>) -> Result<(), Stop> {
    let disagrees = || Stop::Full("an input has fewer rows of a value than its change feed says".to_owned());
    let Some((_, of_groups)) = net.columns.split_last() else { return Ok(()) };
    let numbers = groups.numbers(of_groups, net.times.len())?;
    for ((key, more), number) in keys(&net.columns)?.into_iter().zip(&net.times).zip(numbers) {
        let is = is.get(&key).copied().unwrap_or_default();
        let was = is - more;
        let (came, gone) = number.and_then(|number| groups.parts.get_mut(number)).ok_or_else(disagrees)?;
        match (was, is) {
            (..0, _) => return Err(disagrees()),
            (0, 1..) => came.appears(total),
            (1.., 0) => gone.appears(total),
            _ => {}
        }
    }
    Ok(())
}
