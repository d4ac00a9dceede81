//! Joins of two streams that keep rows without a partner: such a row is there once no row that is in time can become its partner. Pure.
//!
//! ```text
//! l LEFT JOIN r ON l.k = r.k AND r.at <= l.at + 5 minutes
//!     ─▶  a row without a partner stays where l.at + 5 minutes lies before the watermark, or is null, for it meets no row then
//! ```
//!
//! - The watermark is the least of all streams that have one, as in the dialect; a stream without a row that has a time holds it back.
//! - It is of the rows that the streams hold, so that the result follows from the tables alone. It may go back where rows are deleted.
//! - What the condition says of time bounds a row: a column of event times of the other side, at most, or less than, something of the
//!   row's own side. A join without such a bound is refused, for its rows would wait for ever.
//! - The view records the event times that its streams had reached: between these and the newest ones lie the rows that may come alone.

mod linear;
mod passed;

use std::sync::Arc;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{Column, DFSchema, JoinType};
use tributary_lake::datafusion::error::Result as QueryResult;
use tributary_lake::datafusion::logical_expr::utils::split_conjunction;
use tributary_lake::datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator, Projection, TableScan, lit,
};
use tributary_specs::GoldSpec;

use crate::query::{Input, input_of};

pub(crate) use linear::{Linear, is_time, linear};
pub(crate) use passed::{Boundary, Passed};

/// The inputs that are read as streams, each with the column of its event times where it has a watermark.
pub(crate) struct Streams<'a> {
    inputs: &'a [Input],
    /// By place among the inputs.
    columns: Vec<(usize, Option<String>)>,
}

/// A join that is not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unbounded {
    pub join_type: JoinType,
    /// What its right side is called.
    pub joined: Option<String>,
    pub reason: String,
}

/// Why a plan was not given its meaning.
pub(crate) enum Refused {
    Join(Unbounded),
    Engine(tributary_lake::datafusion::error::DataFusionError),
}

impl<'a> Streams<'a> {
    pub fn of(spec: &GoldSpec, inputs: &'a [Input]) -> Self {
        let of = |stream: &tributary_specs::StreamedTable| {
            let at = inputs.iter().position(|input| input.table.name().same_without_case(&stream.table))?;
            Some((at, stream.watermark.as_ref().map(|watermark| watermark.column.clone())))
        };
        Self { inputs, columns: spec.streams.iter().filter_map(of).collect() }
    }

    /// What they are among.
    pub fn inputs(&self) -> &'a [Input] {
        self.inputs
    }

    fn of_scan(&self, scan: &TableScan) -> Option<&(usize, Option<String>)> {
        let at = input_of(self.inputs, scan)?;
        self.columns.iter().find(|(input, _)| *input == at)
    }

    /// Whether a plan reads a stream.
    pub fn are_in(&self, plan: &LogicalPlan) -> bool {
        plan.exists(|node| Ok(matches!(node, LogicalPlan::TableScan(scan) if self.of_scan(scan).is_some()))).unwrap_or(true)
    }

    fn joins(&self, plan: &LogicalPlan) -> bool {
        match plan {
            LogicalPlan::Join(join) => keeps(join.join_type) != (false, false) && self.are_in(&join.left) && self.are_in(&join.right),
            _ => false,
        }
    }

    /// Whether rows of a plan wait for the watermark.
    pub fn wait_in(&self, plan: &LogicalPlan) -> bool {
        let mut waits = false;
        let walked = plan.apply_with_subqueries(|node| {
            waits |= self.joins(node);
            Ok(if waits { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        waits || walked.is_err()
    }

    /// Whether a column of a plan is the event time of a stream, unchanged and never made null.
    fn has_event_time(&self, plan: &LogicalPlan, column: &Column) -> bool {
        let Some(place) = plan.schema().maybe_index_of_column(column) else { return false };
        self.is_event_time(plan, place)
    }

    fn is_event_time(&self, plan: &LogicalPlan, place: usize) -> bool {
        match plan {
            LogicalPlan::TableScan(scan) => {
                let name = plan.schema().field(place).name();
                let watermark = self.of_scan(scan).and_then(|(_, column)| column.as_ref());
                watermark.is_some_and(|column| column.eq_ignore_ascii_case(name))
            }
            LogicalPlan::SubqueryAlias(alias) => self.is_event_time(&alias.input, place),
            LogicalPlan::Filter(filter) => self.is_event_time(&filter.input, place),
            LogicalPlan::Sort(sort) => self.is_event_time(&sort.input, place),
            LogicalPlan::Union(union) => union.inputs.iter().all(|input| self.is_event_time(input, place)),
            LogicalPlan::Projection(projection) => {
                let column = projection.expr.get(place).and_then(|expression| match expression {
                    Expr::Alias(alias) => alias.expr.try_as_col(),
                    other => other.try_as_col(),
                });
                column.is_some_and(|column| self.has_event_time(&projection.input, column))
            }
            LogicalPlan::Join(join) => {
                let width = join.left.schema().fields().len();
                let (pads_left, pads_right) = (keeps(join.join_type).1, keeps(join.join_type).0);
                let alone = plan.schema().fields().len() <= width;
                match place.checked_sub(width) {
                    None => {
                        !pads_left
                            && !matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti)
                            && self.is_event_time(&join.left, place)
                    }
                    Some(place) => !pads_right && !alone && self.is_event_time(&join.right, place),
                }
            }
            _ => false,
        }
    }

    /// The plan in which rows without a partner wait for the watermark.
    ///
    /// # Errors
    /// [`Refused::Join`] for a join whose rows would wait for ever.
    pub fn waiting(&self, plan: LogicalPlan, watermark: Boundary) -> Result<LogicalPlan, Refused> {
        let mut refused = None;
        let given = plan.transform_up_with_subqueries(|node| {
            if refused.is_some() || !self.joins(&node) {
                return Ok(Transformed::no(node));
            }
            let LogicalPlan::Join(join) = node else { return Ok(Transformed::no(node)) };
            match self.bounds(&join) {
                Ok(bounds) => patient(&join, bounds, watermark).map(Transformed::yes),
                Err(reason) => {
                    let joined = join.right.schema().iter().find_map(|(qualifier, _)| Some(qualifier?.table().to_owned()));
                    refused = Some(Unbounded { join_type: join.join_type, joined, reason });
                    Ok(Transformed::no(LogicalPlan::Join(join)))
                }
            }
        });
        match (given, refused) {
            (_, Some(join)) => Err(Refused::Join(join)),
            (Ok(plan), None) => Ok(plan.data),
            (Err(error), None) => Err(Refused::Engine(error)),
        }
    }

    /// Of each side that is kept without partner, what its rows wait for.
    fn bounds(&self, join: &Join) -> Result<Vec<Kept>, String> {
        let (left, right) = keeps(join.join_type);
        let mut kept = Vec::new();
        for (keeps, is_left, own, other) in [(left, true, &join.left, &join.right), (right, false, &join.right, &join.left)] {
            if keeps {
                let bounds: Vec<Bound> =
                    at_most(&join.on, join.filter.as_ref()).into_iter().filter_map(|pair| self.bound(&pair, own, other)).collect();
                if bounds.is_empty() {
                    return Err(self.unbounded(other));
                }
                kept.push(Kept { is_left, bounds });
            }
        }
        Ok(kept)
    }

    fn unbounded(&self, other: &LogicalPlan) -> String {
        let mut unwatched = None;
        let mut column = None;
        // the closure fails nowhere
        let _ = other.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some((at, watermark)) = self.of_scan(scan)
            {
                match watermark {
                    Some(watermark) => column = Some(watermark.clone()),
                    None => unwatched = Some(self.inputs[*at].table.name().to_string()),
                }
            }
            Ok(TreeNodeRecursion::Continue)
        });
        match (column, unwatched) {
            (Some(column), _) => format!(
                "it has no bound in time that tells when a row can no longer find a partner: say in ON that `{column}` of the other stream \
                 is at most a time of the row, as in `BETWEEN a.at AND a.at + INTERVAL 5 MINUTES`"
            ),
            (None, Some(table)) => format!("`{table}` has no watermark to wait for: say WATERMARK … DELAY OF INTERVAL … behind it"),
            (None, None) => "it has no watermark to wait for".to_owned(),
        }
    }

    /// What a condition says of the rows of one side: until when one of the other may become their partner.
    fn bound(&self, pair: &AtMost, own: &LogicalPlan, other: &LogicalPlan) -> Option<Bound> {
        let earlier = linear(&pair.earlier, other.schema())?;
        let until = pair.later.column_refs();
        let is_own = !until.is_empty() && until.iter().all(|column| own.schema().has_column(column));
        let data_type = pair.later.get_type(own.schema()).ok().filter(|_| is_own)?;
        let is_timely = is_time(&data_type) || data_type == DataType::Date32;
        (is_timely && self.has_event_time(other, &earlier.column))
            .then(|| Bound { until: pair.later.clone(), behind: earlier.behind.saturating_add(i64::from(pair.strict)) })
    }
}

/// A side of a join whose rows stay without a partner, and what they wait for.
struct Kept {
    is_left: bool,
    bounds: Vec<Bound>,
}

/// A row waits until the watermark, so many microseconds on, lies behind this time of it.
struct Bound {
    until: Expr,
    behind: i64,
}

/// One time is at most another, or less.
#[derive(Debug, Clone)]
pub(crate) struct AtMost {
    pub earlier: Expr,
    pub later: Expr,
    pub strict: bool,
}

/// What the conditions of a join say in this form: equal ones are at most each other.
pub(crate) fn at_most(on: &[(Expr, Expr)], filter: Option<&Expr>) -> Vec<AtMost> {
    let mut pairs = Vec::new();
    for (left, right) in on {
        both(&mut pairs, left, right);
    }
    for condition in filter.into_iter().flat_map(split_conjunction) {
        let mut push = |earlier: &Expr, later: &Expr, strict: bool| {
            pairs.push(AtMost { earlier: earlier.clone(), later: later.clone(), strict });
        };
        match condition {
            Expr::Between(Between { expr, negated: false, low, high }) => {
                push(low, expr, false);
                push(expr, high, false);
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::LtEq => push(left, right, false),
                Operator::Lt => push(left, right, true),
                Operator::GtEq => push(right, left, false),
                Operator::Gt => push(right, left, true),
                Operator::Eq => both(&mut pairs, left, right),
                _ => {}
            },
            _ => {}
        }
    }
    pairs
}

fn both(pairs: &mut Vec<AtMost>, one: &Expr, other: &Expr) {
    for (earlier, later) in [(one, other), (other, one)] {
        pairs.push(AtMost { earlier: earlier.clone(), later: later.clone(), strict: false });
    }
}

/// Whether the left and the right rows of a join stay without a partner.
fn keeps(join_type: JoinType) -> (bool, bool) {
    (matches!(join_type, JoinType::Left | JoinType::Full), matches!(join_type, JoinType::Right | JoinType::Full))
}

/// The join without the rows that still wait.
fn patient(join: &Join, kept: Vec<Kept>, watermark: Boundary) -> QueryResult<LogicalPlan> {
    let mut sides = [Arc::clone(&join.left), Arc::clone(&join.right)];
    let mut condition: Option<Expr> = None;
    for Kept { is_left, bounds } in kept {
        let partner = &mut sides[usize::from(is_left)];
        let mark = free_name(&[join.left.schema(), join.right.schema()], if is_left { "__right_is_there" } else { "__left_is_there" });
        let mut columns: Vec<Expr> = partner.schema().columns().into_iter().map(Expr::Column).collect();
        columns.push(lit(true).alias(&mark));
        *partner = Arc::new(LogicalPlan::Projection(Projection::try_new(columns, Arc::clone(partner))?));
        let is_there = Expr::Column(Column::from_name(mark)).is_not_null();
        let stays = bounds.into_iter().fold(is_there, |stays, Bound { until, behind }| {
            let passed = Passed { time: until.clone(), boundary: watermark.on(behind) };
            stays.or(until.is_null()).or(passed.expression())
        });
        condition = Some(condition.map_or_else(|| stays.clone(), |others| others.and(stays.clone())));
    }
    let [left, right] = sides;
    let (on, filter) = (join.on.clone(), join.filter.clone());
    let marked = Join::try_new(left, right, on, filter, join.join_type, join.join_constraint, join.null_equality, join.null_aware)?;
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let Some(condition) = condition else { return Ok(LogicalPlan::Join(marked)) };
    let patient = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(LogicalPlan::Join(marked)))?);
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(patient))?))
}

/// A name that no column has.
fn free_name(schemas: &[&DFSchema], name: &str) -> String {
    let mut free = name.to_owned();
    while schemas.iter().any(|schema| schema.fields().iter().any(|field| *field.name() == free)) {
        free.push('_');
    }
    free
}

/// Whether a plan has rows that came, or went, because the watermark moved.
pub(crate) fn moves(plan: &LogicalPlan) -> bool {
    let is_moving = |passed: &Passed| passed.boundary.went_over().is_some();
    matches!(plan, LogicalPlan::Filter(filter) if Passed::all_in(&filter.predicate).iter().any(is_moving))
}
