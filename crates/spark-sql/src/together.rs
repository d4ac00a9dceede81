//! Values of several types where one type is needed: the dialect's common type, where the engine has another or none.
//!
//! The engine's own coercion comes after and finds equal types. It would compute doubles and decimals as decimals of 15 digits behind
//! the point, whole numbers and floats as floats, and dates and instants as times without a zone.

use std::sync::Arc;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::{Column, DFSchema, NullEquality};
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::logical_plan::Subquery;
use tributary_lake::datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, Join, JoinConstraint, JoinType, LogicalPlan, Projection, Union,
};

use crate::functions::common;
use crate::meaning::in_type;
use crate::value::canonical;

/// What kinds of values there are among types, inside of lists, maps and structs too.
#[derive(Debug, Default, Clone, Copy)]
struct Kinds {
    floating: bool,
    exact: bool,
    date: bool,
    instant: bool,
    text: bool,
    boolean: bool,
}

impl Kinds {
    fn note(&mut self, data_type: &DataType) {
        match data_type {
            DataType::List(of) | DataType::Map(of, _) => self.note(of.data_type()),
            DataType::Struct(fields) => fields.iter().for_each(|field| self.note(field.data_type())),
            DataType::Date32 => self.date = true,
            DataType::Timestamp(..) => self.instant = true,
            DataType::Utf8 => self.text = true,
            DataType::Boolean => self.boolean = true,
            of => {
                self.floating |= of.is_floating();
                self.exact |= of.is_integer() || of.is_decimal();
            }
        }
    }

    fn are_mixed(self) -> bool {
        (self.floating && self.exact) || (self.date && self.instant) || (self.text && self.are_no_texts())
    }

    fn are_no_texts(self) -> bool {
        self.floating || self.exact || self.date || self.instant || self.boolean
    }
}

/// The type that values of these types, in canonical form, are brought to; none where the engine brings them together as the dialect.
pub(crate) fn meeting(types: &[DataType]) -> Result<Option<DataType>> {
    let known: Vec<&DataType> = types.iter().filter(|data_type| !data_type.is_null()).collect();
    if known.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(None);
    }
    let has = |is: fn(&DataType) -> bool| known.iter().any(|data_type| is(data_type));
    let is_time = |data_type: &DataType| matches!(data_type, DataType::Date32 | DataType::Timestamp(..));
    let is_text = |data_type: &DataType| *data_type == DataType::Utf8;
    // a number is no time, which the engine would make it
    if has(is_text) || (has(is_time) && has(|data_type| data_type.is_numeric() || *data_type == DataType::Boolean)) {
        return common(types).map(Some);
    }
    let mut kinds = Kinds::default();
    types.iter().for_each(|data_type| kinds.note(data_type));
    // what does not go together is the engine's to refuse
    Ok(if kinds.are_mixed() { common(types).ok() } else { None })
}

/// Values that are compared, or of which one is told: in one type, as the dialect brings them there.
pub(crate) fn together(parts: Vec<Expr>, schema: &DFSchema) -> Result<(Vec<Expr>, bool)> {
    let types: Option<Vec<DataType>> = parts.iter().map(|part| part.get_type(schema).ok().map(|data_type| canonical(&data_type))).collect();
    let Some(types) = types else { return Ok((parts, false)) };
    let Some(to) = meeting(&types)? else { return Ok((parts, false)) };
    let each = parts.into_iter().zip(&types).map(|(part, from)| if from.is_null() { Ok(part) } else { in_type(part, from, &to) });
    Ok((each.collect::<Result<_>>()?, true))
}

/// Both sides of an operator, likewise.
pub(crate) fn both(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr, bool)> {
    let (sides, changed) = together(vec![left, right], schema)?;
    match <[Expr; 2]>::try_from(sides) {
        Ok([left, right]) => Ok((left, right, changed)),
        Err(_) => Err(DataFusionError::Internal("an operator has two sides".to_owned())),
    }
}

/// A value and the column of a query that it is looked for in, likewise.
pub(crate) fn in_one_type(value: Expr, query: Subquery, schema: &DFSchema) -> Result<(Expr, Subquery, bool)> {
    let Ok(from) = value.get_type(schema).map(|data_type| canonical(&data_type)) else { return Ok((value, query, false)) };
    let Some(column) = column_types(&query.subquery).into_iter().next() else { return Ok((value, query, false)) };
    let Some(to) = meeting(&[from.clone(), column])? else { return Ok((value, query, false)) };
    let subquery = Arc::new(in_types(&query.subquery, std::slice::from_ref(&to))?);
    Ok((in_type(value, &from, &to)?, Subquery { subquery, ..query }, true))
}

/// The inputs of a set operation and the keys of a join, likewise.
pub(crate) fn sides(node: LogicalPlan) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Union(union) => united(union),
        LogicalPlan::Join(join) if is_set_operation(&join) => shared(join),
        LogicalPlan::Join(join) => joined(join),
        node => Ok(node),
    }
}

/// The types of a query's columns.
fn column_types(plan: &LogicalPlan) -> Vec<DataType> {
    plan.schema().fields().iter().map(|field| canonical(field.data_type())).collect()
}

/// The types in which the columns of several queries meet; none where they are of these types.
fn met(inputs: &[&LogicalPlan]) -> Option<Vec<DataType>> {
    let columns: Vec<Vec<DataType>> = inputs.iter().map(|input| column_types(input)).collect();
    let first = columns.first()?;
    let to: Vec<DataType> = (0..first.len())
        .map(|at| {
            let types: Vec<DataType> = columns.iter().filter_map(|types| types.get(at).cloned()).collect();
            common(&types).unwrap_or_else(|_| first[at].clone())
        })
        .collect();
    columns.iter().any(|types| *types != to).then_some(to)
}

/// A query whose first columns have these types.
fn in_types(plan: &Arc<LogicalPlan>, to: &[DataType]) -> Result<LogicalPlan> {
    // equal rows are equal as they are brought together
    if let LogicalPlan::Distinct(Distinct::All(input)) = plan.as_ref() {
        return Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(in_types(input, to)?))));
    }
    if column_types(plan).iter().zip(to).all(|(from, to)| from == to) {
        return Ok(LogicalPlan::clone(plan));
    }
    let columns = plan.schema().iter().enumerate().map(|(at, (qualifier, field))| {
        let (from, column) = (canonical(field.data_type()), Expr::Column(Column::from((qualifier, field))));
        match to.get(at) {
            Some(to) if from != *to => Ok(in_type(column, &from, to)?.alias_qualified(qualifier.cloned(), field.name())),
            _ => Ok(column),
        }
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect::<Result<_>>()?, Arc::clone(plan))?))
}

fn united(union: Union) -> Result<LogicalPlan> {
    let inputs: Vec<&LogicalPlan> = union.inputs.iter().map(AsRef::as_ref).collect();
    let Some(to) = met(&inputs) else { return Ok(LogicalPlan::Union(union)) };
    let inputs = union.inputs.iter().map(|input| in_types(input, &to).map(Arc::new)).collect::<Result<_>>()?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// Whether a join is what INTERSECT or EXCEPT is planned as: no join of a text has nulls equal.
fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) && join.null_equality == NullEquality::NullEqualsNull
}

fn shared(join: Join) -> Result<LogicalPlan> {
    let Some(to) = met(&[&join.left, &join.right]) else { return Ok(LogicalPlan::Join(join)) };
    let (left, right) = (Arc::new(in_types(&join.left, &to)?), Arc::new(in_types(&join.right, &to)?));
    LogicalPlan::Join(Join { left, right, ..join }).recompute_schema()
}

fn joined(join: Join) -> Result<LogicalPlan> {
    let Join { left, right, on, join_constraint, .. } = &join;
    let mut is_cast = false;
    let pairs = on.iter().map(|(a, b)| {
        let (from, of) = (canonical(&a.get_type(left.schema())?), canonical(&b.get_type(right.schema())?));
        let Some(to) = meeting(&[from.clone(), of.clone()])? else { return Ok((a.clone(), b.clone())) };
        is_cast = true;
        Ok((in_type(a.clone(), &from, &to)?, in_type(b.clone(), &of, &to)?))
    });
    let on = pairs.collect::<Result<Vec<_>>>()?;
    // names are resolved: a key that is cast is no column that both sides have
    let join_constraint = if is_cast { JoinConstraint::On } else { *join_constraint };
    Ok(LogicalPlan::Join(Join { on, join_constraint, ..join }))
}
