//! Reads, tells the new rows of groups, and computes again those that it cannot tell.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use tributary_lake::arrow::compute::{take, take_record_batch};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::logical_expr::LogicalPlan;
use tributary_lake::{Found, KeyProbe, KeySearch, Keys};

use super::bags::Bags;
use super::fit::Signed;
use super::groups::Groups;
use super::totals::{Outcome, of_group};
use crate::follow::Stop;
use crate::follow::changed::Changes;
use crate::follow::naming::most_telling;
use crate::follow::rows::plan_of;
use crate::follow::run::{Followed, Follower, Naming, Replaced, as_type};

impl Follower<'_> {
    /// The rows of changed groups, old and new; none where no group changed.
    ///
    /// # Errors
    /// [`Stop::Full`] where the changed rows cannot be computed by themselves.
    pub(in crate::follow) async fn by_deltas(
        &self,
        changes: &Changes<'_>,
        query: &LogicalPlan,
        signed: &Signed,
        search: &KeySearch,
        followed: &mut Followed,
    ) -> Result<Option<Replaced>, Stop> {
        let bags = changes.bags(&signed.aggregate.input).await?;
        let Bags { came, gone } = &bags;
        if came.is_none() && gone.is_none() {
            return Ok(None);
        }
        let (came, gone) = (changes.by_group(signed, came.clone()).await?, changes.by_group(signed, gone.clone()).await?);
        let mut groups = Groups::of(signed, &came, &gone)?;
        if groups.parts.is_empty() {
            return Ok(None);
        }
        changes.count_values(signed, &bags, &mut groups).await?;
        let naming = self.names_of(query, signed, &groups)?;
        let found = match &naming {
            Some(naming) => self.found(search, &(Arc::new(naming.keys.clone()) as Arc<dyn KeyProbe>)).await?,
            None => search.all(0..search.files().len()).await?,
        };
        let names: Vec<String> = query.schema().fields().iter().map(|field| field.name().clone()).collect();
        let rows = groups.rows_of(signed, &names, &found.rows)?;
        let outcomes: Vec<Outcome> = groups
            .parts
            .iter()
            .zip(&rows)
            .map(|((came, gone), row)| of_group(&signed.totals, row.as_ref().map(|(_, totals)| totals.as_slice()), came, gone))
            .collect();
        let again: Vec<u32> = places(&outcomes, |outcome| *outcome == Outcome::Again);
        let again = Again::of(naming.as_ref(), &again)?;

        let mut new = again.rows(self, changes, query, followed).await?;
        let covered = again.covers(naming.as_ref().map(|naming| naming.keys.values()), outcomes.len())?;
        let told: Vec<usize> = (0..outcomes.len()).filter(|group| !covered[*group]).collect();
        let made = made_of(signed, &groups, &outcomes, &told)?;
        let plan = LogicalPlan::clone(query).transform_down(|node| match node {
            LogicalPlan::Aggregate(aggregate) => {
                let rows = plan_of(&aggregate.schema, std::slice::from_ref(&made))?;
                Ok(Transformed::new(rows, true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        })?;
        new.extend(self.kept_rows(changes, plan.data, followed).await?);

        let of_told = told.iter().filter_map(|group| rows[*group].as_ref().map(|(row, _)| *row));
        let mut old: Vec<u32> = of_told.chain(again.rows_of_view(&found.rows)?).collect();
        old.sort_unstable();
        old.dedup();
        let places = old.iter().map(|row| found.places[*row as usize]).collect();
        let old = Found { rows: take_record_batch(&found.rows, &UInt32Array::from(old))?, places };
        followed.deltas = Some((told.len() as u64, (outcomes.len() - told.len()) as u64));
        // a row in the place of another is of the same group: readers of the change feed may go by the groups
        let names = signed.groups.iter().map(|place| names[*place].clone()).collect();
        Ok(Some(Replaced { names, old, new }))
    }

    /// The columns that name changed groups best, with their values, a row a group; none where there is one group, of all rows.
    fn names_of(&self, query: &LogicalPlan, signed: &Signed, groups: &Groups) -> Result<Option<Naming>, Stop> {
        if signed.groups.is_empty() {
            return Ok(None);
        }
        let chosen = most_telling(&groups.columns)?;
        let (mut names, mut columns, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for at in chosen {
            let place = signed.groups[at];
            let field = query.schema().field(place);
            names.push(field.name().clone());
            columns.push(as_type(&groups.columns[at], field.data_type())?);
            places.push(place);
        }
        Ok(Some(Naming { keys: Keys::new(names, columns)?, places }))
    }
}

fn places(outcomes: &[Outcome], is_one: impl Fn(&Outcome) -> bool) -> Vec<u32> {
    outcomes.iter().enumerate().filter(|(_, outcome)| is_one(outcome)).map(|(at, _)| at as u32).collect()
}

/// Groups that are computed again: all that agree with one of them in the columns that name groups.
enum Again {
    Nothing,
    /// The one group of all rows.
    Everything,
    Named(Naming),
}

impl Again {
    fn of(naming: Option<&Naming>, groups: &[u32]) -> Result<Self, Stop> {
        let Some(naming) = naming else { return Ok(if groups.is_empty() { Self::Nothing } else { Self::Everything }) };
        if groups.is_empty() {
            return Ok(Self::Nothing);
        }
        let groups = UInt32Array::from(groups.to_vec());
        let columns = naming.keys.values().iter().map(|column| take(column, &groups, None)).collect::<Result<Vec<_>, _>>()?;
        let keys = Keys::new(naming.keys.set().names().to_vec(), columns)?;
        Ok(Self::Named(Naming { keys, places: naming.places.clone() }))
    }

    async fn rows(
        &self,
        follower: &Follower<'_>,
        changes: &Changes<'_>,
        query: &LogicalPlan,
        followed: &mut Followed,
    ) -> Result<Vec<RecordBatch>, Stop> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::Everything => follower.kept_rows(changes, query.clone(), followed).await,
            Self::Named(naming) => follower.new_rows(changes, query, naming, followed).await,
        }
    }

    /// Whether each of so many groups is among them; `names` has a row a group.
    fn covers(&self, names: Option<&[ArrayRef]>, groups: usize) -> Result<Vec<bool>, Stop> {
        let mut covered = vec![matches!(self, Self::Everything); groups];
        if let (Self::Named(naming), Some(names)) = (self, names) {
            naming.keys.set().rows_among(names)?.into_iter().for_each(|group| covered[group as usize] = true);
        }
        Ok(covered)
    }

    /// The rows of the view that they have.
    fn rows_of_view(&self, view: &RecordBatch) -> Result<Vec<u32>, Stop> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::Everything => Ok((0..view.num_rows() as u32).collect()),
            Self::Named(naming) => {
                let columns: Vec<ArrayRef> = naming
                    .keys
                    .set()
                    .names()
                    .iter()
                    .map(|name| Ok(ArrayRef::clone(view.column(view.schema().index_of(name)?))))
                    .collect::<Result<_, tributary_lake::arrow::error::ArrowError>>()?;
                Ok(naming.keys.set().rows_among(&columns)?)
            }
        }
    }
}

/// The new rows of the groups with these numbers, as the aggregate gives them.
fn made_of(signed: &Signed, groups: &Groups, outcomes: &[Outcome], told: &[usize]) -> Result<RecordBatch, Stop> {
    let rows: Vec<(usize, &[ScalarValue])> = told
        .iter()
        .filter_map(|group| match &outcomes[*group] {
            Outcome::Row(totals) => Some((*group, totals.as_slice())),
            Outcome::Empty | Outcome::Again => None,
        })
        .collect();
    let of_groups: UInt32Array = rows.iter().map(|(group, _)| *group as u32).collect();
    let mut columns = groups.columns.iter().map(|column| take(column, &of_groups, None)).collect::<Result<Vec<_>, _>>()?;
    for (at, total) in signed.totals.all.iter().enumerate() {
        columns.push(match rows.is_empty() {
            true => tributary_lake::arrow::array::new_empty_array(&total.data_type),
            false => ScalarValue::iter_to_array(rows.iter().map(|(_, totals)| totals[at].clone()))?,
        });
    }
    let named = columns.into_iter().enumerate().map(|(at, column)| (at.to_string(), column));
    Ok(RecordBatch::try_from_iter_with_nullable(named.map(|(name, column)| (name, column, true)))?)
}
