//! Decides. Pure.
//!
//! - A view is refreshed exactly when it may differ from its query over the inputs' latest versions.
//! - Columns of its table never change their type and never go; new ones come behind.

use tributary_specs::{Column, GoldSpec, Refresh, TableName};

use crate::definition::Definition;
use crate::explain::RefreshMode;

/// One input as the run finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputState {
    pub table: TableName,
    /// Its latest version.
    pub version: u64,
    /// The version the view records.
    pub recorded: Option<i64>,
    /// Which table it is, and which one the view records; none by a release that did not record it.
    pub identity: i64,
    pub recorded_identity: Option<i64>,
    /// Whether any commit after the recorded version changed rows, as far as the log says.
    pub rows_changed: bool,
}

impl InputState {
    /// Whether it is another table than the one the view was made from: versions of the two say nothing about each other.
    pub(crate) fn is_made_again(&self) -> bool {
        self.recorded_identity.is_some_and(|recorded| recorded != self.identity)
    }

    /// The version of this very table that the view was made from.
    pub(crate) fn made_from(&self) -> Option<u64> {
        self.recorded.filter(|_| !self.is_made_again()).and_then(|recorded| u64::try_from(recorded).ok())
    }
}

/// What a run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing, for this reason.
    Nothing(String),
    /// The first refresh.
    Make(String),
    /// A refresh that may take up what changed, for inputs moved and nothing else is new.
    Follow(String),
    /// A full refresh, for this reason.
    Refresh(String),
}

/// An input whose latest version is below the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WentBack {
    pub table: TableName,
    pub recorded: i64,
    pub latest: u64,
}

/// Whether and why a view is refreshed: `made` is what its table was made from, `wanted` the digest of the spec.
pub(crate) fn decide(made: Option<&Definition>, wanted: &str, inputs: &[InputState]) -> Result<Decision, WentBack> {
    if let Some(back) = inputs.iter().find_map(went_back) {
        return Err(back);
    }
    let Some(made) = made else {
        return Ok(Decision::Make("first refresh".to_owned()));
    };
    if made.digest != wanted {
        return Ok(Decision::Refresh("the definition changed".to_owned()));
    }
    let reasons: Vec<String> = inputs.iter().filter_map(moved).collect();
    if made.asks_for_time && reasons.is_empty() {
        return Ok(Decision::Refresh("the query asks for the time".to_owned()));
    }
    if !reasons.is_empty() {
        let reason = reasons.join(", ");
        let known = inputs.iter().all(|input| input.made_from().is_some());
        return Ok(if made.asks_for_time || !known { Decision::Refresh(reason) } else { Decision::Follow(reason) });
    }
    Ok(Decision::Nothing("no input moved".to_owned()))
}

/// Why a refresh happens, and why in full where it need not have been.
///
/// # Errors
/// Why a view that refuses to be refreshed in full would have been.
pub(crate) fn in_full(refresh: Refresh, asked_for: bool, why: String, because: Option<String>) -> Result<String, String> {
    match because {
        because if refresh == Refresh::Incremental && !asked_for => Err(because.unwrap_or(why)),
        Some(because) => Ok(format!("{why}; in full, for {because}")),
        None => Ok(why),
    }
}

/// How a view would be refreshed, why, and why in full; `why_not` is why it would not follow whatever moved.
pub(crate) fn mode(refresh: Refresh, decision: Decision, why_not: Option<String>) -> (RefreshMode, String, Option<String>) {
    let full = if refresh == Refresh::Incremental { RefreshMode::Refused } else { RefreshMode::Full };
    match (decision, why_not) {
        (Decision::Nothing(reason), why_not) => (RefreshMode::Nothing, reason, why_not),
        (Decision::Make(reason), None) => (RefreshMode::Full, reason.clone(), Some(reason)),
        (Decision::Make(reason), Some(why_not)) => (full, reason, Some(why_not)),
        (Decision::Follow(reason), None) if refresh != Refresh::Full => (RefreshMode::Incremental, reason, None),
        (Decision::Follow(reason), None) => (RefreshMode::Full, reason, Some("it is declared so".to_owned())),
        (Decision::Follow(reason), Some(why_not)) => (full, reason, Some(why_not)),
        (Decision::Refresh(reason), _) => (full, reason.clone(), Some(reason)),
    }
}

/// Why a view follows none of its inputs, by its declaration and whether its query asks for the time.
pub(crate) fn never_follows(spec: &GoldSpec, asks_for_time: bool) -> Option<&'static str> {
    if spec.may_quarantine() {
        return Some("rows that its rules set aside are kept in a table of their own, all together");
    }
    asks_for_time.then_some("the query asks for the time")
}

/// Why the columns of a view, as its table has them, do not let rows of the result take the place of some of its rows.
pub(crate) fn columns_do_not_follow(table: &[Column], declared: &[Column], result: &[Column]) -> Option<&'static str> {
    let wanted = declared_columns(declared, result);
    if wanted.len() > result.len() {
        return Some("columns of the table are filled in by its writer");
    }
    let stay = merge_columns(table, &wanted).is_ok_and(|merged| merged.len() == table.len());
    (!stay).then_some("its columns change")
}

fn went_back(input: &InputState) -> Option<WentBack> {
    let recorded = input.recorded?;
    let behind = !input.is_made_again() && i64::try_from(input.version).is_ok_and(|latest| latest < recorded);
    behind.then(|| WentBack { table: input.table.clone(), recorded, latest: input.version })
}

fn moved(input: &InputState) -> Option<String> {
    let InputState { table, version, recorded, rows_changed, .. } = input;
    match recorded {
        None => Some(format!("{table} is a new input")),
        Some(_) if input.is_made_again() => Some(format!("{table} was made again")),
        Some(recorded) if *rows_changed => Some(format!("{table} moved from version {recorded} to {version}")),
        Some(_) => None,
    }
}

/// Operations that rearrange rows and change none.
const REARRANGING: [&str; 4] = ["OPTIMIZE", "VACUUM START", "VACUUM END", "REORG"];

/// Whether a commit may have changed rows, by what its history entry says.
pub(crate) fn changes_rows(operation: Option<&str>, files_added: u64, files_removed: u64) -> bool {
    let rearranging = operation.is_some_and(|operation| REARRANGING.contains(&operation.to_ascii_uppercase().as_str()));
    !rearranging && files_added + files_removed > 0
}

/// The columns of the view's table after the commit: those it has, then the result's new ones, nullable.
///
/// # Errors
/// Each column of the result that the table has with another type or in another case, and each that refuses null and is not in
/// the result.
pub(crate) fn merge_columns(table: &[Column], result: &[Column]) -> Result<Vec<Column>, Vec<String>> {
    let mut problems = Vec::new();
    let mut merged = table.to_vec();
    for column in result {
        match table.iter().find(|found| found.name.to_lowercase() == column.name.to_lowercase()) {
            Some(found) if found.name != column.name => {
                problems.push(format!("column {:?} of the query is {:?} in the table", column.name, found.name));
            }
            Some(found) if !found.data_type.same_values(&column.data_type) => {
                problems
                    .push(format!("column {:?} is {} in the query and {} in the table", column.name, column.data_type, found.data_type));
            }
            Some(_) => {}
            None => merged.push(Column { nullable: true, ..column.clone() }),
        }
    }
    for found in table {
        let given = result.iter().any(|column| column.name == found.name);
        if !found.nullable && !given && found.default.is_none() && found.generated.is_none() {
            problems.push(format!("column {:?} of the table refuses null and is not in the query", found.name));
        }
    }
    if problems.is_empty() { Ok(merged) } else { Err(problems) }
}

/// The columns of the result as the table is to have them: null allowed and comments as declared, declared columns that the
/// writer fills in (defaults, generated) behind.
pub(crate) fn declared_columns(declared: &[Column], result: &[Column]) -> Vec<Column> {
    let named = |columns: &[Column], name: &str| columns.iter().find(|column| column.name == name).cloned();
    let mut columns: Vec<Column> =
        result.iter().map(|column| named(declared, &column.name).unwrap_or_else(|| Column { nullable: true, ..column.clone() })).collect();
    let filled_in = declared.iter().filter(|column| is_filled_in(column) && named(result, &column.name).is_none());
    columns.extend(filled_in.cloned());
    columns
}

/// Whether the writer gives the column a value where the query does not.
pub(crate) fn is_filled_in(column: &Column) -> bool {
    column.default.is_some() || column.generated.is_some()
}

/// What is wrong with the names of a result's columns.
pub(crate) fn name_problem(names: &[&str]) -> Option<String> {
    for (at, name) in names.iter().enumerate() {
        if let Some(first) = names[..at].iter().find(|first| first.to_lowercase() == name.to_lowercase()) {
            return Some(format!("{first:?} and {name:?} are one name, for case does not count; name one of them with AS"));
        }
        if name.contains([',', ';', '{', '}', '(', ')', '\n', '\t', '=']) {
            return Some(format!("column {} has no name of its own that a table can have: give it one with AS", at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(recorded: Option<i64>, version: u64, rows_changed: bool) -> InputState {
        InputState { table: TableName::new("silver", "orders"), version, recorded, identity: 1, recorded_identity: Some(1), rows_changed }
    }

    fn definition(asks_for_time: bool) -> Definition {
        Definition { asks_for_time, ..serde_json::from_str(r#"{"digest": "d", "asks_for_time": false}"#).unwrap() }
    }

    fn refresh(reason: &str) -> Result<Decision, WentBack> {
        Ok(Decision::Refresh(reason.to_owned()))
    }

    #[test]
    fn a_view_is_refreshed_when_it_may_differ_and_never_else() {
        let made = definition(false);
        assert_eq!(decide(None, "d", &[input(None, 3, true)]), Ok(Decision::Make("first refresh".to_owned())));
        assert_eq!(decide(Some(&made), "e", &[input(Some(3), 3, false)]), refresh("the definition changed"));
        assert_eq!(decide(Some(&made), "d", &[input(None, 3, true)]), refresh("silver.orders is a new input"));
        let moved = |decide: fn(String) -> Decision| Ok(decide("silver.orders moved from version 2 to 3".to_owned()));
        assert_eq!(decide(Some(&made), "d", &[input(Some(2), 3, true)]), moved(Decision::Follow));
        assert_eq!(decide(Some(&definition(true)), "d", &[input(Some(2), 3, true)]), moved(Decision::Refresh));
        assert_eq!(decide(Some(&definition(true)), "d", &[input(Some(3), 3, false)]), refresh("the query asks for the time"));
        assert_eq!(decide(Some(&made), "d", &[input(Some(2), 3, false)]), Ok(Decision::Nothing("no input moved".to_owned())));
        assert_eq!(decide(Some(&made), "d", &[]), Ok(Decision::Nothing("no input moved".to_owned())));
    }

    #[test]
    fn a_view_that_refuses_is_told_to_and_one_that_follows_has_no_reason_for_full() {
        let follow = || Decision::Follow("moved".to_owned());
        assert_eq!(mode(Refresh::Auto, follow(), None), (RefreshMode::Incremental, "moved".to_owned(), None));
        assert_eq!(mode(Refresh::Full, follow(), None).0, RefreshMode::Full);
        assert_eq!(mode(Refresh::Auto, follow(), Some("LIMIT".to_owned())).0, RefreshMode::Full);
        assert_eq!(mode(Refresh::Incremental, follow(), Some("LIMIT".to_owned())).0, RefreshMode::Refused);
        assert_eq!(mode(Refresh::Incremental, Decision::Make("first refresh".to_owned()), None).0, RefreshMode::Full);
        assert_eq!(mode(Refresh::Incremental, Decision::Refresh("the definition changed".to_owned()), None).0, RefreshMode::Refused);
    }

    #[test]
    fn an_input_that_went_back_stops_the_view() {
        let back = WentBack { table: TableName::new("silver", "orders"), recorded: 9, latest: 3 };
        assert_eq!(decide(Some(&definition(false)), "d", &[input(Some(9), 3, false)]), Err(back));
    }

    #[test]
    fn an_input_made_again_is_read_anew_whatever_its_version() {
        for version in [3, 9, 12] {
            let again = InputState { recorded_identity: Some(2), ..input(Some(9), version, false) };
            assert_eq!(decide(Some(&definition(false)), "d", &[again]), refresh("silver.orders was made again"), "{version}");
        }
        let unrecorded = InputState { recorded_identity: None, ..input(Some(9), 9, false) };
        assert_eq!(decide(Some(&definition(false)), "d", &[unrecorded]), Ok(Decision::Nothing("no input moved".to_owned())));
    }

    #[test]
    fn a_commit_without_files_or_an_optimize_changes_no_rows() {
        assert!(changes_rows(Some("WRITE"), 1, 0));
        assert!(changes_rows(None, 0, 1));
        assert!(!changes_rows(Some("MERGE"), 0, 0));
        assert!(!changes_rows(Some("Optimize"), 2, 9));
    }

    #[test]
    fn columns_come_behind_and_none_goes_or_changes() {
        let of = |name: &str, text: &str| Column::new(name, text.parse().unwrap());
        let table = [of("day", "date"), of("old", "long")];
        let merged = merge_columns(&table, &[of("new", "long").not_null(), of("day", "date")]).unwrap();
        assert_eq!(merged, [of("day", "date"), of("old", "long"), of("new", "long")]);
        let problems = merge_columns(&[of("day", "date"), of("n", "long").not_null()], &[of("Day", "date")]).unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(merge_columns(&table, &[of("day", "timestamp")]).unwrap_err()[0].contains("timestamp in the query and date in the table"));
    }

    #[test]
    fn a_result_column_has_a_name_of_its_own() {
        assert_eq!(name_problem(&["a", "per day"]), None);
        assert!(name_problem(&["a", "A"]).is_some());
        assert!(name_problem(&["a", "sum(t.b)"]).is_some_and(|problem| problem.contains("column 2")));
    }
}
