//! What comes of a plan's rows, and what goes, told from what came to its inputs and went from them.
//!
//! Both may hold a row that in truth neither came nor went: it counts once in each. A join of two changed sides:
//!
//! ```text
//! Δ(L ⋈ R) = ΔL ⋈ R + L ⋈ ΔR - ΔL ⋈ ΔR        L, R: at the newest version
//! ```

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::datafusion::logical_expr::{Join, LogicalPlan};

use crate::follow::Stop;
use crate::follow::changed::{Changes, of_scan};
use crate::follow::rows::{Changed, plan_of};
use crate::follow::shape::Conditions;

/// Plans with the columns of the plan that they are of; none without rows.
#[derive(Default)]
pub(super) struct Bags {
    pub came: Option<LogicalPlan>,
    pub gone: Option<LogicalPlan>,
}

impl Bags {
    fn map(self, over: impl Fn(LogicalPlan) -> Result<LogicalPlan, Stop>) -> Result<Self, Stop> {
        Ok(Self { came: self.came.map(&over).transpose()?, gone: self.gone.map(&over).transpose()? })
    }
}

impl Changes<'_> {
    /// What comes of the rows of a plan that is linear in what moved, and what goes.
    pub(super) fn bags<'b>(&'b self, plan: &'b LogicalPlan) -> BoxFuture<'b, Result<Bags, Stop>> {
        async move {
            if !self.moved.moves(plan) {
                return Ok(Bags::default());
            }
            match plan {
                LogicalPlan::TableScan(scan) => {
                    let changed = self.moved.input_of(scan).and_then(|input| self.of_inputs.get(&input));
                    let Some(changed) = changed else { return Ok(Bags::default()) };
                    let of = |rows: &[RecordBatch]| of_scan(scan, plan.schema(), rows);
                    Ok(Bags { came: of(&changed.came)?, gone: of(&changed.gone)? })
                }
                LogicalPlan::Sort(sort) => self.bags(&sort.input).await,
                LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) | LogicalPlan::Projection(_) => {
                    let over = |bag| Ok(plan.with_new_exprs(plan.expressions(), vec![bag])?);
                    self.bags(plan.inputs()[0]).await?.map(over)
                }
                LogicalPlan::Union(union) => {
                    let mut all = Changed::default();
                    for input in &union.inputs {
                        let of_branch = self.in_memory(input).await?;
                        all.came.extend(of_branch.came);
                        all.gone.extend(of_branch.gone);
                    }
                    self.as_bags(plan, &all)
                }
                LogicalPlan::Join(join) => self.bags_of_join(plan, join).await,
                other => Err(Stop::Full(format!("{} is not linear", other.display()))),
            }
        }
        .boxed()
    }

    async fn in_memory(&self, plan: &LogicalPlan) -> Result<Changed, Stop> {
        let Bags { came, gone } = self.bags(plan).await?;
        let mut changed = Changed::default();
        for (bag, rows) in [(came, &mut changed.came), (gone, &mut changed.gone)] {
            if let Some(bag) = bag {
                *rows = self.collect(bag).await?;
            }
        }
        Ok(changed)
    }

    fn as_bags(&self, plan: &LogicalPlan, changed: &Changed) -> Result<Bags, Stop> {
        let of = |rows: &[RecordBatch]| self.kept(plan.schema(), rows);
        Ok(Bags { came: of(&changed.came)?, gone: of(&changed.gone)? })
    }

    async fn bags_of_join(&self, plan: &LogicalPlan, join: &Join) -> Result<Bags, Stop> {
        let (left, right) = (self.in_memory(&join.left).await?, self.in_memory(&join.right).await?);
        let all_right = self.partners(join, &left, false).await?;
        let all_left = self.partners(join, &right, true).await?;
        let of_left = self.as_bags(&join.left, &left)?;
        let of_right = self.as_bags(&join.right, &right)?;
        let (Bags { came: left_came, gone: left_gone }, Bags { came: right_came, gone: right_gone }) = (&of_left, &of_right);
        let mut joined = Changed::default();
        let came = [(left_came, &all_right), (&all_left, right_came), (left_came, right_gone), (left_gone, right_came)];
        let gone = [(left_gone, &all_right), (&all_left, right_gone), (left_came, right_came), (left_gone, right_gone)];
        for (pairs, rows) in [(came, &mut joined.came), (gone, &mut joined.gone)] {
            for (left, right) in pairs {
                if let (Some(left), Some(right)) = (left, right) {
                    rows.extend(self.pairs(left, right, join).await?);
                }
            }
        }
        self.as_bags(plan, &joined)
    }

    /// The rows at the newest version of the side of a join that may meet the changed rows of the other; none where none changed.
    async fn partners(&self, join: &Join, changed: &Changed, changed_is_right: bool) -> Result<Option<LogicalPlan>, Stop> {
        let (side, other) = if changed_is_right { (&join.left, &join.right) } else { (&join.right, &join.left) };
        let changed: Vec<RecordBatch> = changed.all().cloned().collect();
        let Some(changed) = self.kept(other.schema(), &changed)? else { return Ok(None) };
        let conditions = Conditions { on: join.on.clone(), filter: None };
        let narrowed = self.narrowed(side, &changed, &conditions, changed_is_right).await?;
        Ok(Some(plan_of(side.schema(), &self.collect(narrowed).await?)?))
    }

    async fn pairs(&self, left: &LogicalPlan, right: &LogicalPlan, join: &Join) -> Result<Vec<RecordBatch>, Stop> {
        let (left, right) = (Arc::new(left.clone()), Arc::new(right.clone()));
        let Join { on, filter, join_type, join_constraint, null_equality, .. } = join;
        let pairs = Join::try_new(left, right, on.clone(), filter.clone(), *join_type, *join_constraint, *null_equality, false)?;
        self.collect(LogicalPlan::Join(pairs)).await
    }
}
