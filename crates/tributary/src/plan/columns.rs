//! What becomes of the columns of a table when its dataset is run as it is declared now. Pure.

use serde::{Deserialize, Serialize};
use tributary_specs::{Column, GrowthPolicy, SchemaPolicy};

/// What becomes of one column.
///
/// ```no_run
/// # fn f(change: tributary::ColumnChange) {
/// println!("{} {:?}", change.column, change.kind);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnChange {
    /// Its name; of a new field of a struct the path.
    pub column: String,
    /// What becomes of it.
    pub kind: ColumnChangeKind,
    /// The type it has; none where it comes anew.
    pub from: Option<String>,
    /// The type it gets; none where nothing makes it any more.
    pub to: Option<String>,
}

/// What becomes of a column.
///
/// ```
/// assert_ne!(tributary::ColumnChangeKind::Added, tributary::ColumnChangeKind::Widened);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnChangeKind {
    /// It comes anew, nullable; nothing is rewritten.
    Added,
    /// It gets a wider type, for which the table is rewritten.
    Widened,
    /// It stays, and nothing makes it any more: it is null in new rows.
    NoLongerMade,
}

/// How a table may follow its declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Feed(SchemaPolicy),
    Silver(GrowthPolicy),
    View,
}

/// What becomes of the columns, and what does not go.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub changes: Vec<ColumnChange>,
    /// For these the dataset would stop.
    pub stops: Vec<String>,
    /// What stays otherwise than declared.
    pub notes: Vec<String>,
}

/// Compares a table's columns with those that its dataset makes. `changed` = the dataset was last run with another definition: only
/// then is it said what it makes no longer.
pub(super) fn compare(policy: Policy, table: &[Column], declared: &[Column], changed: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for column in declared {
        match table.iter().find(|found| found.name.eq_ignore_ascii_case(&column.name)) {
            None if policy == Policy::Silver(GrowthPolicy::Freeze) && !is_own(column) => {
                outcome.stops.push(format!("column {} is new, and schema_policy is freeze", column.name));
            }
            None => outcome.changes.push(added(&column.name, column)),
            Some(found) => grow(policy, found, column, &mut outcome),
        }
    }
    let follows = !matches!(policy, Policy::Feed(_)) && changed;
    for found in table.iter().filter(|found| follows && !is_own(found)) {
        if !declared.iter().any(|column| column.name.eq_ignore_ascii_case(&found.name)) {
            let (kind, from) = (ColumnChangeKind::NoLongerMade, Some(found.data_type.to_string()));
            outcome.changes.push(ColumnChange { column: found.name.clone(), kind, from, to: None });
        }
    }
    outcome
}

fn added(name: &str, column: &Column) -> ColumnChange {
    let to = Some(column.data_type.to_string());
    ColumnChange { column: name.to_owned(), kind: ColumnChangeKind::Added, from: None, to }
}

/// Whether a column is ours: it follows the business columns.
fn is_own(column: &Column) -> bool {
    column.name.starts_with('_')
}

fn grow(policy: Policy, found: &Column, column: &Column, outcome: &mut Outcome) {
    let (is, wanted) = (&found.data_type, &column.data_type);
    if is.same_values(wanted) {
        return;
    }
    let with_fields = is.with_fields_of(wanted);
    let joined = with_fields.joined(&wanted.with_fields_of(is));
    if joined.same_values(&with_fields) {
        let new = is.fields_only_of(wanted).into_iter();
        // pictures of a row get the fields of its columns, which are told already
        outcome.changes.extend(new.filter(|_| !is_own(column)).map(|field| added(&format!("{}.{}", column.name, field.name), &field)));
        return;
    }
    if is_own(column) {
        return;
    }
    let said = format!("column {} is {is} in the table and {wanted} in the declaration", column.name);
    let widens = match policy {
        Policy::Feed(policy) => policy == SchemaPolicy::Widen && joined.same_values(wanted),
        Policy::Silver(policy) => policy == GrowthPolicy::Widen,
        Policy::View => false,
    };
    match policy {
        _ if widens => outcome.changes.push(ColumnChange {
            column: column.name.clone(),
            kind: ColumnChangeKind::Widened,
            from: Some(is.to_string()),
            to: Some(joined.to_string()),
        }),
        Policy::Feed(_) => outcome.notes.push(format!("{said}; its values go on being read as {is}")),
        Policy::Silver(_) | Policy::View => outcome.stops.push(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> Vec<Column> {
        let of = |pair: &str| {
            let (name, data_type) = pair.split_once(' ').unwrap();
            Column::new(name, data_type.parse().unwrap())
        };
        text.split(", ").map(of).collect()
    }

    fn said(policy: Policy, table: &str, declared: &str) -> Vec<String> {
        let outcome = compare(policy, &columns(table), &columns(declared), true);
        let side = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
        let change = |change: ColumnChange| format!("{} {:?} {} {}", change.column, change.kind, side(change.from), side(change.to));
        let stops = outcome.stops.into_iter().map(|_| "stops".to_owned());
        outcome.changes.into_iter().map(change).chain(stops).chain(outcome.notes.into_iter().map(|_| "note".to_owned())).collect()
    }

    #[test]
    fn each_policy_lets_columns_come_and_types_grow_as_its_layer_does() {
        let (feed, silver) = (Policy::Feed, Policy::Silver);
        for (policy, table, declared, expected) in [
            (feed(SchemaPolicy::Add), "id long", "id long, note string", vec!["note Added - string"]),
            (feed(SchemaPolicy::Add), "id long, came string", "id long", vec![]),
            (feed(SchemaPolicy::Add), "id integer", "id long", vec!["note"]),
            (feed(SchemaPolicy::Widen), "id integer", "id long", vec!["id Widened integer long"]),
            (feed(SchemaPolicy::Widen), "id long", "id integer", vec![]),
            (silver(GrowthPolicy::Freeze), "id long", "id long, note string", vec!["stops"]),
            (silver(GrowthPolicy::Add), "id integer", "id long", vec!["stops"]),
            (silver(GrowthPolicy::Widen), "id integer", "id long", vec!["id Widened integer long"]),
            (silver(GrowthPolicy::Add), "a struct<b:long>", "a struct<b:long,c:date>", vec!["a.c Added - date"]),
            (silver(GrowthPolicy::Add), "id long, old string, __position string", "id long", vec!["old NoLongerMade string -"]),
            (Policy::View, "n long", "n string", vec!["stops"]),
            (Policy::View, "n long", "N long", vec![]),
        ] {
            assert_eq!(said(policy, table, declared), expected, "{policy:?}: {table} -> {declared}");
        }
    }
}
