//! Groups brought up to date by what came to them and what went from them: nothing of a group that stayed is read.
//!
//! ```text
//! rows that came, rows that went ──through projections, filters, joins──▶ two bags ──by group──▶ what came to totals, what went
//!                                                                                                    │
//!                              the group's row of the view, which holds its totals ────────────────▶ the new row
//! ```
//!
//! What must stay true:
//! - Below the groups every step is linear in what moved: the rows that it makes of two bags are those that it makes of the one and
//!   of the other.
//! - The old totals are the view's own columns: they are of the versions that the view records, for both ride in one commit.
//! - A total is told exactly or not at all. Where the row of a group does not say enough (the least value went; whether a row is left
//!   is not counted), the group is computed again from its inputs.

mod bags;
mod fit;
mod groups;
mod not_null;
mod run;
mod totals;
mod values;

pub(super) use fit::{Signed, signed_of};
