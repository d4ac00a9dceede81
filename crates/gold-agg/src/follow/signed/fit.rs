//! Which views signed deltas bring up to date. Pure.

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::{DFSchema, JoinType};
use tributary_lake::datafusion::logical_expr::expr::AggregateFunction;
use tributary_lake::datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, Join, LogicalPlan};

use super::not_null::known;
use crate::follow::feed::repeats;
use crate::follow::naming::can_name_rows;
use crate::follow::shape::{Moved, Reason, referenced, shape_of};

/// A view whose groups are brought up to date by what came to them and what went.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    /// The groups, and what is computed of each.
    pub aggregate: Aggregate,
    /// Where the query has the columns that are grouped by, in their order.
    pub groups: Vec<usize>,
    pub totals: Totals,
}

/// What is computed of each group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Totals {
    /// In the order of the aggregate.
    pub all: Vec<Total>,
    /// The one that counts the rows of a group.
    pub rows: Option<usize>,
    /// Whether a group without rows is not there; a query without GROUP BY has one row all the same.
    pub vanish: bool,
    /// Whether a group without a row of the view has no rows: nothing is left out above the groups.
    pub all_groups: bool,
}

/// One total of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Total {
    pub kind: Kind,
    pub data_type: DataType,
    /// Where the query has it.
    pub column: Option<usize>,
    /// For people.
    pub text: String,
}

/// How a total follows from the earlier one and from what came and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Count,
    /// Of different values.
    Values,
    Sum {
        values: Summed,
    },
    Least,
    Greatest,
    /// Of a sum and the count of what is summed, both among the totals.
    Mean {
        sum: usize,
        values: usize,
    },
}

impl Signed {
    /// What of a group whose rows went may not follow from them: then it is computed again.
    pub fn open(&self) -> Option<String> {
        let Totals { all, rows, vanish, .. } = &self.totals;
        let is_counted = rows.is_some() || all.iter().any(Total::counts);
        match all.iter().find(|total| matches!(total.kind, Kind::Sum { values: Summed::Unknown })) {
            _ if *vanish && !is_counted => Some("nothing of it is counted".to_owned()),
            Some(sum) => Some(format!("`{}` may be null then", sum.text)),
            None => None,
        }
    }
}

impl Total {
    /// Whether it is above zero only where there are rows.
    pub fn counts(&self) -> bool {
        matches!(self.kind, Kind::Count | Kind::Values)
    }
}

/// How many values a sum is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Summed {
    /// As many as this total counts.
    Counted(usize),
    /// One of each row, and a group has rows.
    EachRow,
    Unknown,
}

/// How signed deltas bring a query up to date.
///
/// # Errors
/// Why they do not, in words that come behind "changed groups, for".
pub(crate) fn signed_of(query: &LogicalPlan, moved: &Moved<'_>) -> Result<Signed, Reason> {
    let above = above(query)?;
    let aggregate = above.aggregate;
    let schema = &known(&aggregate.input, moved)?;
    for expression in &aggregate.group_expr {
        if matches!(expression, Expr::GroupingSet(_)) {
            return Err("ROLLUP, CUBE and GROUPING SETS have groups within groups".to_owned());
        }
        referenced(expression, schema)?;
    }
    linear(&aggregate.input, moved)?;
    let width = aggregate.group_expr.len();
    let column = |place: usize| above.columns.iter().position(|column| *column == Some(place));
    let mut groups = Vec::new();
    for (at, expression) in aggregate.group_expr.iter().enumerate() {
        let Some(place) = column(at) else { return Err(format!("`{}` is grouped by and is not a column of it", shown(expression))) };
        if !can_name_rows(aggregate.schema.field(at).data_type()) || !can_name_rows(query.schema().field(place).data_type()) {
            return Err(format!("`{}` is of a type that does not name groups", shown(expression)));
        }
        groups.push(place);
    }
    let calls: Vec<Call<'_>> = aggregate.aggr_expr.iter().map(|call| Call::of(call, schema)).collect::<Result<_, _>>()?;
    let columns: Vec<Option<usize>> = (0..calls.len()).map(|at| column(width + at)).collect();
    let counting = |wanted: &Call<'_>| {
        let counts = |at: &usize| calls[*at].is("count") && columns[*at].is_some() && calls[*at].counts(wanted);
        (0..calls.len()).find(counts)
    };
    let mut totals = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let data_type = aggregate.schema.field(width + at).data_type().clone();
        let kind = match call.name {
            "count" if call.distinct && !call.is_looked_up => {
                return Err(format!("`{}` counts values of a type that rows are not looked up by", call.text));
            }
            "count" if call.distinct => Kind::Values,
            _ if call.distinct => return Err(format!("`{}` needs to know which values stay", call.text)),
            "count" => Kind::Count,
            "sum" if matches!(data_type, DataType::Int64 | DataType::Decimal128(..)) => {
                let of_each_row = width > 0 && call.never_null && call.filter.is_none();
                let counted = counting(call).map_or(Summed::Unknown, Summed::Counted);
                Kind::Sum { values: if of_each_row { Summed::EachRow } else { counted } }
            }
            "min" if can_name_rows(&data_type) => Kind::Least,
            "max" if can_name_rows(&data_type) => Kind::Greatest,
            "avg" if data_type == DataType::Float64 && call.is_of_whole_numbers => {
                let is_sum = |at: &usize| calls[*at].is("sum") && columns[*at].is_some() && calls[*at].is_over(call);
                let (Some(sum), Some(values)) = ((0..calls.len()).find(is_sum), counting(call)) else {
                    let of = shown(call.argument);
                    return Err(format!("`{}` needs sum({of}) and count({of}) as columns of it", call.text));
                };
                Kind::Mean { sum, values }
            }
            "sum" | "avg" => return Err(format!("`{}` adds numbers that are rounded", call.text)),
            _ => return Err(format!("`{}` does not follow from what came and went", call.text)),
        };
        if columns[at].is_none() && !matches!(kind, Kind::Mean { .. }) {
            return Err(format!("`{}` is not a column of it by itself", call.text));
        }
        totals.push(Total { kind, data_type, column: columns[at], text: call.text.clone() });
    }
    let rows = (0..calls.len()).find(|at| columns[*at].is_some() && calls[*at].counts_rows());
    let totals = Totals { all: totals, rows, vanish: width > 0, all_groups: !above.filters };
    Ok(Signed { aggregate: aggregate.clone(), groups, totals })
}

/// What stands between the result of a query and its groups.
struct Above<'p> {
    aggregate: &'p Aggregate,
    /// The column of the aggregate that each column is, unchanged.
    columns: Vec<Option<usize>>,
    filters: bool,
}

fn above(plan: &LogicalPlan) -> Result<Above<'_>, Reason> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => {
            Ok(Above { aggregate, columns: (0..aggregate.schema.fields().len()).map(Some).collect(), filters: false })
        }
        LogicalPlan::SubqueryAlias(alias) => above(&alias.input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => above(&sort.input),
        LogicalPlan::Filter(filter) => {
            referenced(&filter.predicate, filter.input.schema())?;
            Ok(Above { filters: true, ..above(&filter.input)? })
        }
        LogicalPlan::Projection(projection) => {
            let below = above(&projection.input)?;
            let schema = projection.input.schema();
            for expression in &projection.expr {
                referenced(expression, schema)?;
            }
            let columns = projection.expr.iter().map(|expression| below.columns[plain(expression, schema)?]).collect();
            Ok(Above { columns, ..below })
        }
        _ => Err("a row of it is not one group".to_owned()),
    }
}

/// The column that an expression is, in a type that holds every value of it.
fn plain(expression: &Expr, schema: &DFSchema) -> Option<usize> {
    match expression {
        Expr::Alias(alias) => plain(&alias.expr, schema),
        Expr::Column(column) => schema.maybe_index_of_column(column),
        Expr::Cast(cast) => {
            let from = cast.expr.get_type(schema).ok()?;
            holds(cast.field.data_type(), &from).then(|| plain(&cast.expr, schema)).flatten()
        }
        _ => None,
    }
}

fn holds(wide: &DataType, narrow: &DataType) -> bool {
    use DataType::{Decimal128, Int8, Int16, Int32, Int64, Utf8, Utf8View};
    match (wide, narrow) {
        (wide, narrow) if wide == narrow => true,
        (Int64, Int8 | Int16 | Int32) | (Int32, Int8 | Int16) | (Int16, Int8) | (Utf8, Utf8View) => true,
        (Decimal128(wide, scale), Decimal128(narrow, same)) => wide >= narrow && scale == same,
        _ => false,
    }
}

/// A call of an aggregate function over one argument.
struct Call<'p> {
    name: &'p str,
    /// Without casts of whole numbers.
    argument: &'p Expr,
    filter: Option<&'p Expr>,
    distinct: bool,
    never_null: bool,
    is_of_whole_numbers: bool,
    /// Whether rows can be looked up by its argument.
    is_looked_up: bool,
    text: String,
}

impl<'p> Call<'p> {
    fn of(expression: &'p Expr, schema: &DFSchema) -> Result<Self, Reason> {
        let text = shown(expression);
        referenced(expression, schema)?;
        let unaliased = match expression {
            Expr::Alias(alias) => alias.expr.as_ref(),
            other => other,
        };
        let Expr::AggregateFunction(AggregateFunction { func, params }) = unaliased else { return Err(format!("`{text}` is not known")) };
        let ([argument], true) = (params.args.as_slice(), params.order_by.is_empty()) else {
            return Err(format!("`{text}` does not follow from what came and went"));
        };
        let is_looked_up = argument.get_type(schema).is_ok_and(|data_type| can_name_rows(&data_type));
        let argument = uncast(argument, schema);
        let is_of_whole_numbers = argument.get_type(schema).is_ok_and(|data_type| data_type.is_signed_integer());
        let never_null = argument.nullable(schema).is_ok_and(|nullable| !nullable);
        let (filter, distinct) = (params.filter.as_deref(), params.distinct);
        Ok(Self { name: func.name(), argument, filter, distinct, never_null, is_of_whole_numbers, is_looked_up, text })
    }

    /// Whether it is this function over every value, the same one as often as it is there.
    fn is(&self, name: &str) -> bool {
        self.name == name && !self.distinct
    }

    fn is_over(&self, other: &Self) -> bool {
        self.argument == other.argument && self.filter == other.filter
    }

    /// Whether this, a count, counts what the other call takes in.
    fn counts(&self, other: &Self) -> bool {
        self.is_over(other) || (self.filter == other.filter && self.never_null && other.never_null)
    }

    fn counts_rows(&self) -> bool {
        self.is("count") && self.filter.is_none() && self.never_null
    }
}

/// Without casts of whole numbers into wider ones or floating ones: functions over both forms take in the same numbers.
fn uncast<'p>(argument: &'p Expr, schema: &DFSchema) -> &'p Expr {
    match argument {
        Expr::Cast(cast) if matches!(cast.field.data_type(), DataType::Int64 | DataType::Float64) => {
            match cast.expr.get_type(schema).is_ok_and(|from| from.is_signed_integer()) {
                true => uncast(&cast.expr, schema),
                false => argument,
            }
        }
        other => other,
    }
}

/// Whether the rows of a plan that two bags of changed rows make are those that each of them makes.
fn linear(plan: &LogicalPlan, moved: &Moved<'_>) -> Result<(), Reason> {
    if !moved.moves(plan) {
        let shape = shape_of(plan, moved)?;
        return match shape.unsure.is_empty() && shape.fence.is_none() {
            true => Ok(()),
            false => Err("what it joins may come out otherwise when it is computed again".to_owned()),
        };
    }
    match plan {
        LogicalPlan::TableScan(scan) => match moved.input_of(scan) {
            Some(input) if scan.filters.is_empty() && scan.fetch.is_none() => repeats(&moved.inputs[input].table).map_or(Ok(()), Err),
            _ => Err(format!("{} is not read as a table that is there", scan.table_name)),
        },
        LogicalPlan::SubqueryAlias(alias) => linear(&alias.input, moved),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => linear(&sort.input, moved),
        LogicalPlan::Filter(filter) => {
            referenced(&filter.predicate, filter.input.schema())?;
            linear(&filter.input, moved)
        }
        LogicalPlan::Projection(projection) => {
            for expression in &projection.expr {
                referenced(expression, projection.input.schema())?;
            }
            linear(&projection.input, moved)
        }
        LogicalPlan::Union(union) => union.inputs.iter().try_for_each(|input| linear(input, moved)),
        LogicalPlan::Join(join) => linear_join(join, moved),
        LogicalPlan::Aggregate(_) => Err("it groups what was grouped or made distinct before".to_owned()),
        LogicalPlan::Window(_) => Err("it groups rows of a window".to_owned()),
        other => Err(format!("{} below its groups is not linear", other.display().to_string().to_lowercase())),
    }
}

fn linear_join(join: &Join, moved: &Moved<'_>) -> Result<(), Reason> {
    if join.null_aware {
        return Err("NOT IN below its groups is not linear".to_owned());
    }
    linear(&join.left, moved)?;
    linear(&join.right, moved)?;
    let (left, right) = (moved.moves(&join.left), moved.moves(&join.right));
    let follows = match join.join_type {
        JoinType::Inner => true,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => !right,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => !left,
        JoinType::Full => false,
    };
    if !follows {
        return Err("what moved decides which rows of the other side of an outer join, EXISTS or IN are there".to_owned());
    }
    let names = |one: &Expr, plan: &LogicalPlan| one.get_type(plan.schema()).is_ok_and(|data_type| can_name_rows(&data_type));
    let looked_up = join.on.iter().any(|(one, other)| names(one, &join.left) && names(other, &join.right));
    if looked_up { Ok(()) } else { Err("it joins by nothing that rows can be looked up by".to_owned()) }
}

/// An expression as people read it.
fn shown(expression: &Expr) -> String {
    expression.human_display().to_string()
}
