//! Expectations over the rows of a view.
//!
//! A rule that is not true, null included, is failed. A row is left out when it fails a `drop` or `quarantine` rule; one that
//! fails both goes to quarantine, so that it is kept.

use std::collections::BTreeMap;

use tributary_lake::arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StringArray};
use tributary_lake::arrow::compute::filter_record_batch;
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::logical_expr::{Expr, ExprSchemable};
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::{KEYS_SHOWN, key_text};
use tributary_specs::{Expectation, ExpectationAction, GoldSpec, RuleCount, SetRule};

use crate::{Error, Result};

/// Adds a boolean column for each expectation behind the view's columns.
pub(crate) fn ask(spec: &GoldSpec, frame: DataFrame, own: &[String]) -> Result<DataFrame> {
    if spec.expectations.is_empty() {
        return Ok(frame);
    }
    let columns = frame.schema().columns().into_iter().map(Expr::Column);
    let conditions = spec.expectations.iter().enumerate().map(|(at, rule)| Ok(condition(spec, rule, &frame, own)?.alias(column_name(at))));
    let selected = columns.map(Ok).chain(conditions).collect::<Result<Vec<Expr>>>()?;
    frame.select(selected).map_err(|error| Error::planned(&spec.table, error))
}

fn column_name(at: usize) -> String {
    format!("__expectation_{at}")
}

fn condition(spec: &GoldSpec, rule: &Expectation, frame: &DataFrame, own: &[String]) -> Result<Expr> {
    let refused = |reason: String, span| Error::Rule { table: spec.table.clone(), expectation: rule.name.clone(), reason, span };
    let (state, _) = frame.clone().into_parts();
    let condition = tributary_spark_sql::expression(&state, &rule.expression, None, frame.schema(), own);
    let condition = condition.map_err(|error| refused(error.without_place(), error.span()))?;
    match condition.get_type(frame.schema()) {
        Ok(DataType::Boolean) => Ok(condition),
        Ok(other) => Err(refused(format!("it is {other}, not true or false"), None)),
        Err(error) => Err(refused(error.strip_backtrace(), None)),
    }
}

/// What the rules said of a batch.
#[derive(Debug)]
pub(crate) struct Sifted {
    /// Rows that stay in the view.
    pub kept: RecordBatch,
    /// Rows for quarantine.
    pub quarantined: RecordBatch,
    /// For each row of `quarantined` the first `quarantine` rule it fails.
    pub rules: StringArray,
}

/// What the rules said so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Failures by rule.
    pub failed: BTreeMap<String, u64>,
    /// Rows left out by `drop`, by the first rule that did.
    pub dropped: BTreeMap<String, u64>,
    /// Rows set aside, by the first rule that did.
    pub aside: BTreeMap<String, u64>,
    /// Rows held to the rules.
    pub rows: u64,
    /// Up to ten keys of rows that failed a `fail` rule, by rule.
    pub keys: BTreeMap<String, Vec<String>>,
}

/// The columns that are the view's key, as far as a rule of the whole view tells.
pub(crate) fn key_columns(spec: &GoldSpec) -> &[String] {
    let unique = spec.set_expectations.iter().find_map(|rule| match &rule.rule {
        SetRule::Unique(columns) => Some(columns.as_slice()),
        _ => None,
    });
    unique.unwrap_or_default()
}

/// What the rules came to, as reports have it.
pub(crate) fn counts(spec: &GoldSpec, tally: &Tally) -> Vec<RuleCount> {
    let of = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or_default();
    let count = |rule: &Expectation| {
        let failed = of(&tally.failed, &rule.name);
        RuleCount {
            flow: spec.table.name.clone(),
            rule: rule.name.clone(),
            action: rule.action.word().to_owned(),
            passed: tally.rows.saturating_sub(failed),
            failed,
            dropped: of(&tally.dropped, &rule.name) + of(&tally.aside, &rule.name),
        }
    };
    spec.expectations.iter().map(count).collect()
}

/// Takes a batch of [`ask`]ed rows apart; `keys` name rows in messages.
pub(crate) fn sift(rules: &[Expectation], keys: &[String], batch: &RecordBatch, tally: &mut Tally) -> Result<Sifted, ArrowError> {
    let width = batch.num_columns() - rules.len();
    let rows = batch.project(&(0..width).collect::<Vec<_>>())?;
    let answers: Vec<&BooleanArray> = (0..rules.len()).map(|at| batch.column(width + at).as_boolean()).collect();
    let fails = |rule: usize, row: usize| answers[rule].is_null(row) || !answers[rule].value(row);
    let first = |row: usize, action| (0..rules.len()).find(|rule| rules[*rule].action == action && fails(*rule, row));
    let mut quarantined = vec![false; rows.num_rows()];
    let mut dropped = vec![false; rows.num_rows()];
    let mut reasons = Vec::new();
    for (rule, expectation) in rules.iter().enumerate() {
        let failed: Vec<usize> = (0..rows.num_rows()).filter(|row| fails(rule, *row)).collect();
        *tally.failed.entry(expectation.name.clone()).or_default() += failed.len() as u64;
        if expectation.action == ExpectationAction::Fail && !failed.is_empty() {
            let of_rule = tally.keys.entry(expectation.name.clone()).or_default();
            for row in failed.iter().take(KEYS_SHOWN - of_rule.len()) {
                of_rule.extend(key_text(&rows, keys, *row)?);
            }
        }
    }
    tally.rows += rows.num_rows() as u64;
    for row in 0..rows.num_rows() {
        if let Some(rule) = first(row, ExpectationAction::Quarantine) {
            *tally.aside.entry(rules[rule].name.clone()).or_default() += 1;
            quarantined[row] = true;
            reasons.push(rules[rule].name.as_str());
        } else if let Some(rule) = first(row, ExpectationAction::Drop) {
            dropped[row] = true;
            *tally.dropped.entry(rules[rule].name.clone()).or_default() += 1;
        }
    }
    let kept: BooleanArray = quarantined.iter().zip(&dropped).map(|(quarantined, dropped)| Some(!quarantined && !dropped)).collect();
    let quarantined = BooleanArray::from(quarantined);
    Ok(Sifted {
        kept: filter_record_batch(&rows, &kept)?,
        quarantined: filter_record_batch(&rows, &quarantined)?,
        rules: StringArray::from(reasons),
    })
}

/// The first `fail` rule that any row failed.
pub(crate) fn broken<'a>(rules: &'a [Expectation], tally: &Tally) -> Option<(&'a Expectation, u64)> {
    let failing = rules.iter().filter(|rule| rule.action == ExpectationAction::Fail);
    failing.map(|rule| (rule, tally.failed.get(&rule.name).copied().unwrap_or_default())).find(|(_, rows)| *rows > 0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tributary_lake::arrow::array::{ArrayRef, Int64Array};

    use super::*;

    fn rule(name: &str, action: ExpectationAction) -> Expectation {
        Expectation { name: name.to_owned(), expression: String::new(), action }
    }

    #[test]
    fn a_row_is_kept_dropped_or_quarantined_once_and_null_fails() {
        use ExpectationAction::{Drop, Fail, Quarantine, Warn};
        let rules = [rule("warn", Warn), rule("drop", Drop), rule("set aside", Quarantine), rule("fail", Fail)];
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5]));
        let answers = [
            vec![Some(true), Some(false), None, Some(true), Some(true)],
            vec![Some(true), Some(true), Some(false), Some(false), Some(true)],
            vec![Some(true), Some(true), Some(true), None, Some(false)],
            vec![Some(true); 5],
        ];
        let mut columns = vec![("id", ids)];
        for (name, answer) in ["a", "b", "c", "d"].into_iter().zip(answers) {
            columns.push((name, Arc::new(BooleanArray::from(answer)) as ArrayRef));
        }
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut tally = Tally::default();
        let sifted = sift(&rules, &["id".to_owned()], &batch, &mut tally).unwrap();
        let ids = |batch: &RecordBatch| batch.column(0).as_primitive::<tributary_lake::arrow::datatypes::Int64Type>().values().to_vec();
        assert_eq!(ids(&sifted.kept), [1, 2]);
        assert_eq!(ids(&sifted.quarantined), [4, 5]);
        assert_eq!(sifted.rules, StringArray::from(vec!["set aside", "set aside"]));
        let expected = [("drop", 2), ("fail", 0), ("set aside", 2), ("warn", 2)].map(|(name, n)| (name.to_owned(), n));
        assert_eq!(tally.failed, BTreeMap::from(expected));
        assert_eq!(tally.dropped, BTreeMap::from([("drop".to_owned(), 1)]));
        assert_eq!(broken(&rules, &tally), None);
        tally.failed.insert("fail".to_owned(), 3);
        assert_eq!(broken(&rules, &tally).map(|(rule, rows)| (rule.name.as_str(), rows)), Some(("fail", 3)));
    }
}
