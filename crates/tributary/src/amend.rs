//! Leaving out of a dataset what is wrong with it, so that one mistake hides no other.

use tributary_gold_agg::Error as Gold;
use tributary_silver_merge::Error as Silver;
use tributary_spark_sql::Error as Text;
use tributary_specs::{ColumnSelection, GoldSpec, IgnoreNullUpdates, MergePolicy, SilverSpec};

use crate::Error;
use crate::spot::function_of;

/// A dataset as it is looked at.
#[derive(Debug, Clone)]
pub(crate) enum Draft {
    /// A feed, by its number.
    Feed(usize),
    Silver(Box<SilverSpec>),
    Gold(Box<GoldSpec>),
}

/// What was left out of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Left {
    /// A name of the query, which is null from there on: nothing but names of the query can be looked at any more.
    InQuery(Shift),
    /// Something else than the query.
    Clause,
}

/// Columns by which what stands behind a place of a text has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift {
    line: u64,
    column: u64,
    by: i64,
}

impl Shift {
    /// Where something stood before.
    pub(crate) fn undone(&self, (line, column): (u64, u64)) -> (u64, u64) {
        let behind = line == self.line && column > self.column;
        (line, if behind { column.saturating_add_signed(-self.by) } else { column })
    }
}

impl Draft {
    /// Leaves out what an error is about; tells what that was, where it can be left out.
    pub(crate) fn leave_out(&mut self, error: &Error) -> Option<Left> {
        match (self, error) {
            (Self::Gold(gold), Error::Gold(Gold::Sql { source, .. })) => nulled(&mut gold.query, source).map(Left::InQuery),
            (Self::Gold(gold), Error::Gold(Gold::DeclaredSchema { .. })) => clause(|| gold.schema.clear()),
            (Self::Silver(silver), Error::Silver(Silver::Text { clause, source, .. })) => of_text(silver, clause, source),
            (Self::Silver(silver), Error::Silver(Silver::DeclaredSchema { .. })) => clause(|| silver.schema.clear()),
            (Self::Silver(silver), Error::Silver(Silver::NoColumn { clause, column, suggestion, .. })) => {
                of_names(silver, clause, column, suggestion.as_deref())
            }
            _ => None,
        }
    }
}

fn clause(leave_out: impl FnOnce()) -> Option<Left> {
    leave_out();
    Some(Left::Clause)
}

fn of_text(silver: &mut SilverSpec, of: &str, error: &Text) -> Option<Left> {
    match of {
        "select" => silver.select.as_mut().and_then(|select| nulled(select, error)).map(Left::InQuery),
        "sequence_by" if silver.sequence_by.len() > 1 => clause(|| {
            let name = error.name().unwrap_or_default().to_lowercase();
            silver.sequence_by.retain(|text| !text.to_lowercase().contains(&name));
        }),
        "sequence_by" => clause(|| silver.sequence_by.clear()),
        "apply_as_delete_when" => clause(|| silver.deletes.apply_as_delete_when = None),
        "apply_as_truncate_when" => clause(|| silver.deletes.apply_as_truncate_when = None),
        "insert_when" => clause(|| (silver.insert_when, silver.update_when) = (None, None)),
        "delete_when" => clause(|| silver.delete_when = None),
        _ => None,
    }
}

fn of_names(silver: &mut SilverSpec, of: &str, column: &str, meant: Option<&str>) -> Option<Left> {
    let mend = |names: &mut Vec<String>| {
        let had = names.len();
        let known = meant.filter(|meant| !names.iter().any(|name| name.eq_ignore_ascii_case(meant)));
        match (names.iter().position(|name| name == column), known) {
            (Some(at), Some(meant)) => meant.clone_into(&mut names[at]),
            (Some(at), None) => drop(names.remove(at)),
            (None, _) => {}
        }
        had > 0
    };
    let of_selection = |selection: &mut ColumnSelection| match selection {
        ColumnSelection::All => false,
        ColumnSelection::Only(names) | ColumnSelection::Except(names) => mend(names),
    };
    let left = match of {
        "keys" => mend(&mut silver.keys),
        "columns" => of_selection(&mut silver.columns),
        "track_history" => match &mut silver.policy {
            MergePolicy::ScdType2 { track_history } => of_selection(track_history),
            _ => false,
        },
        "policy" => match &mut silver.policy {
            MergePolicy::MonotonicAdvance { columns } => mend(columns),
            _ => false,
        },
        "ignore_null_updates" => match &mut silver.ignore_null_updates {
            IgnoreNullUpdates::Columns(names) => mend(names),
            IgnoreNullUpdates::Off | IgnoreNullUpdates::All => false,
        },
        _ => false,
    };
    left.then_some(Left::Clause)
}

/// Writes NULL for a column, and a function that there is for one that there is not.
fn nulled(text: &mut String, error: &Text) -> Option<Shift> {
    let instead = match error {
        Text::NoColumn { .. } => "NULL",
        other => function_of(other).map(|_| "coalesce")?,
    };
    let (line, column) = error.span()?;
    let start: usize = text.split_inclusive('\n').take(usize::try_from(line).ok()?.checked_sub(1)?).map(str::len).sum();
    let from = start + text[start..].char_indices().nth(usize::try_from(column).ok()?.checked_sub(1)?)?.0;
    let length = dotted(&text[from..]);
    let written = text.get(from..from + length).filter(|written| !written.is_empty())?;
    let by = i64::try_from(instead.len()).ok()? - i64::try_from(written.chars().count()).ok()?;
    text.replace_range(from..from + length, instead);
    Some(Shift { line, column, by })
}

/// Bytes of the dotted name that a text begins with.
fn dotted(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let part = match rest.strip_prefix('`') {
            Some(quoted) => quoted.find('`').map_or(0, |end| end + 2),
            None => rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(rest.len()),
        };
        at += part;
        match text[at..].strip_prefix('.') {
            Some(_) if part > 0 => at += 1,
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_null_and_what_stands_behind_it_is_found_again() {
        let mut text = "select a,\n  o.`no such` + b, x from t".to_owned();
        let missing = |line, column| Text::NoColumn { column: "x".into(), suggestion: None, span: Some((line, column)) };
        let shift = nulled(&mut text, &missing(2, 3)).unwrap();
        assert_eq!(text, "select a,\n  NULL + b, x from t");
        assert_eq!([shift.undone((2, 10)), shift.undone((2, 3)), shift.undone((3, 10))], [(2, 17), (2, 3), (3, 10)]);
        assert_eq!(nulled(&mut text, &missing(9, 1)), None);
        assert_eq!(dotted("`open"), 0);
    }
}
