//! How it is told which rows of a view differ, and what they are to be. Pure.

use tributary_lake::datafusion::common::tree_node::TreeNode;
use tributary_lake::datafusion::logical_expr::LogicalPlan;

use super::naming::naming_columns;
use super::shape::{Moved, Reason};
use super::signed::{Signed, signed_of};
use crate::waits;

/// What a view is brought up to date by, in reports: the deltas of its groups' totals.
pub(super) const SIGNED_DELTAS: &str = "signed deltas";

/// The same of a view whose changed groups are computed again.
pub(super) fn changed_groups(why: &str) -> String {
    format!("changed groups, for {why}")
}

/// The means there are for a query, one of them at least.
pub(super) struct Means {
    pub signed: Result<Signed, Reason>,
    /// Columns that may name changed rows.
    pub naming: Result<Vec<usize>, Reason>,
}

impl Means {
    /// # Errors
    /// Why there is none.
    pub fn of(query: &LogicalPlan, moved: &Moved<'_>) -> Result<Self, Reason> {
        let passes = query.exists(|node| Ok(waits::moves(node))).unwrap_or(true);
        let signed =
            if passes { Err("rows of streams that wait for their watermark come alone".to_owned()) } else { signed_of(query, moved) };
        match (signed, naming_columns(query, moved)) {
            (Err(_), Err(why)) => Err(why),
            (signed, naming) => Ok(Self { signed, naming }),
        }
    }

    /// Whether it would tell more to know which columns hold no null.
    pub fn is_open(&self) -> bool {
        self.signed.as_ref().is_ok_and(|signed| signed.open().is_some())
    }

    /// For people.
    pub fn told(&self) -> String {
        match &self.signed {
            Ok(signed) => deltas(signed),
            Err(why) => changed_groups(why),
        }
    }
}

/// The deltas of a view, and which of its groups they do not tell.
pub(super) fn deltas(signed: &Signed) -> String {
    match signed.open() {
        Some(why) => format!("{SIGNED_DELTAS}, and changed groups where rows go, for {why}"),
        None => SIGNED_DELTAS.to_owned(),
    }
}
