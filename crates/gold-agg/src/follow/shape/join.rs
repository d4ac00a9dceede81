//! What of a join can be told from changed rows alone. Pure.

use tributary_lake::datafusion::common::JoinType;
use tributary_lake::datafusion::logical_expr::utils::split_conjunction;
use tributary_lake::datafusion::logical_expr::{Expr, Join, LogicalPlan};

use super::{Moved, Places, Reason, Shape, referenced, shape_of};

/// Pairs of plain columns that a join compares: place left, place right.
fn compared(join: &Join) -> Vec<(usize, usize)> {
    let place =
        |expression: &Expr, plan: &LogicalPlan| expression.try_as_col().and_then(|column| plan.schema().maybe_index_of_column(column));
    join.on.iter().filter_map(|(left, right)| Some((place(left, &join.left)?, place(right, &join.right)?))).collect()
}

/// Conditions of a join that changed rows alone can tell; none of its conditions may be lost but these.
pub(crate) struct Conditions {
    pub on: Vec<(Expr, Expr)>,
    pub filter: Option<Expr>,
}

/// The conditions of a join over columns that are told.
///
/// # Errors
/// When it has conditions, and none of them is told.
pub(crate) fn told_conditions(join: &Join, left: &Shape, right: &Shape) -> Result<Conditions, Reason> {
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let mut on = Vec::new();
    for (one, other) in &join.on {
        let is_told = referenced(one, left_schema)?.is_subset(&left.told) && referenced(other, right_schema)?.is_subset(&right.told);
        if is_told {
            on.push((one.clone(), other.clone()));
        }
    }
    if on.is_empty() && !join.on.is_empty() {
        return Err("it joins by a column that is computed of whole groups".to_owned());
    }
    let both = left_schema.join(right_schema).map_err(|error| error.strip_backtrace())?;
    let width = left_schema.fields().len();
    let is_told = |place: &usize| match place.checked_sub(width) {
        Some(place) => right.told.contains(&place),
        None => left.told.contains(place),
    };
    let mut filter: Option<Expr> = None;
    for condition in join.filter.iter().flat_map(split_conjunction) {
        if referenced(condition, &both)?.iter().all(is_told) {
            filter = Some(filter.map_or_else(|| condition.clone(), |filter| filter.and(condition.clone())));
        }
    }
    Ok(Conditions { on, filter })
}

pub(super) fn of_join(join: &Join, moved: &Moved<'_>) -> Result<Shape, Reason> {
    if join.null_aware && join.join_type == JoinType::LeftMark {
        return Err("IN beside OR looks at every row of its subquery; EXISTS does not".to_owned());
    }
    if join.null_aware && (join.join_type != JoinType::LeftAnti || join.filter.is_some() || join.on.len() != 1) {
        return Err("NOT IN compares more than one column with its subquery; NOT EXISTS may".to_owned());
    }
    let (mut left, mut right) = (shape_of(&join.left, moved)?, shape_of(&join.right, moved)?);
    told_conditions(join, &left, &right)?;
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    for (one, other) in &join.on {
        left.rests_on(&referenced(one, left_schema)?);
        right.rests_on(&referenced(other, right_schema)?);
    }
    let width = left_schema.fields().len();
    if let Some(filter) = &join.filter {
        let both = left_schema.join(right_schema).map_err(|error| error.strip_backtrace())?;
        let used = referenced(filter, &both)?;
        left.rests_on(&used.iter().copied().filter(|place| *place < width).collect());
        right.rests_on(&used.iter().filter_map(|place| place.checked_sub(width)).collect());
    }
    let pairs = compared(join);
    let over = |fence: &Option<Places>, pairs: &[(usize, usize)]| -> Option<Places> {
        fence.as_ref().map(|fence| pairs.iter().filter(|(from, _)| fence.contains(from)).map(|(_, to)| *to).collect())
    };
    let turned: Vec<(usize, usize)> = pairs.iter().map(|(left, right)| (*right, *left)).collect();
    let left_of_right = over(&right.fence, &turned);
    let right_of_left = over(&left.fence, &pairs);
    match join.join_type {
        // whether a row is marked is told of no row alone
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            left_of_right.into_iter().for_each(|fence| left.fence_in(fence));
            return Ok(left);
        }
        JoinType::RightSemi | JoinType::RightAnti => {
            right_of_left.into_iter().for_each(|fence| right.fence_in(fence));
            return Ok(right);
        }
        JoinType::RightMark => return Err("EXISTS or IN beside OR is not followed".to_owned()),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {}
    }
    let (pads_left, pads_right) =
        (matches!(join.join_type, JoinType::Right | JoinType::Full), matches!(join.join_type, JoinType::Left | JoinType::Full));
    let on_right = |places: Places| places.into_iter().map(|place| place + width).collect::<Places>();
    let fence_of_left = left.fence.take().map(|fence| {
        let own = if pads_left { Places::new() } else { fence };
        let other = if pads_right { Places::new() } else { on_right(right_of_left.unwrap_or_default()) };
        &own | &other
    });
    let fence_of_right = right.fence.take().map(|fence| {
        let own = if pads_right { Places::new() } else { on_right(fence) };
        let other = if pads_left { Places::new() } else { left_of_right.unwrap_or_default() };
        &own | &other
    });
    let right = right.behind(width);
    let mut both = Shape { told: &left.told | &right.told, unsure: left.unsure, fence: None };
    both.unsure.extend(right.unsure);
    fence_of_left.into_iter().chain(fence_of_right).for_each(|fence| both.fence_in(fence));
    Ok(both)
}
