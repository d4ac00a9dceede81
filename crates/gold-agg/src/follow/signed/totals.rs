//! The new row of a group, of its row before and of what came and went. Pure.

use std::cmp::Ordering;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::ScalarValue;

use super::fit::{Kind, Summed, Total, Totals};

/// What came to a group, or went from it.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    pub rows: i64,
    /// In the order of the totals: what the function comes to over these rows (null: over none), and how many values that are not null
    /// it takes in; of different values, how many appeared with these rows, or vanished.
    pub totals: Vec<(ScalarValue, i64)>,
}

/// What becomes of a group.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// It has no rows.
    Empty,
    /// Its totals.
    Row(Vec<ScalarValue>),
    /// That does not say enough.
    Again,
}

/// The group whose totals were `old`; none where the view has no row of it. Totals that the view does not have are null there.
pub(super) fn of_group(totals: &Totals, old: Option<&[ScalarValue]>, came: &Part, gone: &Part) -> Outcome {
    let net = came.rows - gone.rows;
    let mut has_rows = true;
    match old {
        None if !totals.vanish || !totals.all_groups || net < 0 => return Outcome::Again,
        None if net == 0 => return Outcome::Empty,
        None => {}
        Some(old) if totals.vanish => match totals.rows.map(|at| number(&old[at])) {
            Some(Some(rows)) if rows > 0 && rows + i128::from(net) == 0 => return Outcome::Empty,
            Some(Some(rows)) if rows > 0 && rows + i128::from(net) > 0 => {}
            Some(_) => return Outcome::Again,
            // rows that are as many as before are there still
            None => has_rows = net >= 0,
        },
        Some(_) => {}
    }
    let of = |at: usize| match totals.all[at].kind {
        Kind::Mean { .. } => Some(ScalarValue::Null),
        _ => total(&totals.all[at], at, old, &came.part(at), &gone.part(at)),
    };
    let told: Option<Vec<ScalarValue>> = (0..totals.all.len()).map(of).collect();
    // of fewer rows some are left where a count of them says so
    let counts = |told: &Vec<ScalarValue>| {
        let above_zero = |(total, value): (&Total, &ScalarValue)| total.counts() && number(value).is_some_and(|count| count > 0);
        totals.all.iter().zip(told).any(above_zero)
    };
    let told = told.filter(|told| has_rows || counts(told));
    let with_means = told.and_then(|told| totals.all.iter().enumerate().map(|(at, total)| mean(total, &told, at)).collect());
    with_means.map_or(Outcome::Again, Outcome::Row)
}

impl Part {
    /// A value appeared with these rows, or vanished with them.
    pub fn appears(&mut self, total: usize) {
        if self.totals.len() <= total {
            self.totals.resize(total + 1, (ScalarValue::Null, 0));
        }
        self.totals[total].1 += 1;
    }

    fn part(&self, at: usize) -> (ScalarValue, i64) {
        self.totals.get(at).cloned().unwrap_or((ScalarValue::Null, 0))
    }
}

/// A whole number, or a decimal's digits; none where it is null.
fn number(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int64(value) => value.map(i128::from),
        ScalarValue::Decimal128(value, _, _) => *value,
        _ => None,
    }
}

/// The number in the type of a total; none where it does not fit.
fn typed(number: i128, data_type: &DataType) -> Option<ScalarValue> {
    match data_type {
        DataType::Int64 => i64::try_from(number).ok().map(|number| ScalarValue::Int64(Some(number))),
        DataType::Decimal128(precision, scale) => {
            let fits = number.unsigned_abs() < 10_u128.checked_pow(u32::from(*precision))?;
            fits.then(|| ScalarValue::Decimal128(Some(number), *precision, *scale))
        }
        _ => None,
    }
}

/// What a total comes to; none where the old one and what came and went do not say.
fn total(
    total: &Total,
    at: usize,
    old: Option<&[ScalarValue]>,
    came: &(ScalarValue, i64),
    gone: &(ScalarValue, i64),
) -> Option<ScalarValue> {
    let Total { kind, data_type, .. } = total;
    let before = old.map(|old| &old[at]);
    let net = i128::from(came.1) - i128::from(gone.1);
    match kind {
        Kind::Count | Kind::Values => {
            let before = before.map_or(Some(0), number)?;
            (before + net >= 0).then(|| typed(before + net, data_type))?
        }
        Kind::Sum { values } => {
            let before = before.and_then(number);
            // what is counted and the sum agree, before as after
            let counted = |values: Option<i128>| {
                let values = values.filter(|values| (*values == 0) == before.is_none())?;
                (values + net >= 0).then_some(values + net > 0)
            };
            let is_left = match (old, values) {
                (None, _) => counted(Some(0))?,
                (Some(old), Summed::Counted(at)) => counted(number(&old[*at]))?,
                (Some(_), Summed::EachRow) => before.is_some().then_some(true)?,
                (Some(_), Summed::Unknown) => (net >= 0).then_some(before.is_some() || net > 0)?,
            };
            let moved = |part: &(ScalarValue, i64)| number(&part.0).unwrap_or(0);
            let sum = before.unwrap_or(0).checked_add(moved(came))?.checked_sub(moved(gone))?;
            match is_left {
                true => typed(sum, data_type),
                false => (sum == 0).then(|| ScalarValue::try_from(data_type).ok())?,
            }
        }
        Kind::Least => extreme(data_type, before, came, gone, Ordering::Less),
        Kind::Greatest => extreme(data_type, before, came, gone, Ordering::Greater),
        Kind::Mean { .. } => None,
    }
}

/// The value further out: `out` is how it compares with one further in.
fn extreme(
    data_type: &DataType,
    before: Option<&ScalarValue>,
    came: &(ScalarValue, i64),
    gone: &(ScalarValue, i64),
    out: Ordering,
) -> Option<ScalarValue> {
    let further_out = |one: &ScalarValue, other: &ScalarValue| one.partial_cmp(other).map(|compared| compared == out);
    let before = before.filter(|before| !before.is_null());
    let came_value = (came.1 > 0).then_some(&came.0);
    if gone.1 > 0 {
        let before = before?;
        let stays = further_out(before, &gone.0)?;
        // What is in both bags neither came nor went: what came counts where it is further out than all that went.
        let replaced = came_value
            .is_some_and(|came| further_out(came, &gone.0) == Some(true) && (came == before || further_out(came, before) == Some(true)));
        return match came_value {
            Some(came) if replaced => Some(came.clone()),
            _ => stays.then(|| before.clone()),
        };
    }
    match (before, came_value) {
        (Some(before), Some(came)) => Some(if further_out(came, before)? { came.clone() } else { before.clone() }),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => ScalarValue::try_from(data_type).ok(),
    }
}

fn mean(total: &Total, told: &[ScalarValue], at: usize) -> Option<ScalarValue> {
    let Kind::Mean { sum, values } = total.kind else { return Some(told[at].clone()) };
    let values = number(&told[values])?;
    Some(ScalarValue::Float64(match number(&told[sum]) {
        Some(sum) if values > 0 => Some(sum as f64 / values as f64),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count(*)`, `count(x)`, `sum(x)`, `min(x)`, `max(x)`, `avg(x)`.
    fn totals(counted: bool) -> Totals {
        let values = if counted { Summed::Counted(1) } else { Summed::Unknown };
        let mean = if counted { vec![Kind::Mean { sum: 2, values: 1 }] } else { Vec::new() };
        let kinds = [Kind::Count, Kind::Count, Kind::Sum { values }, Kind::Least, Kind::Greatest].into_iter().chain(mean);
        let all =
            kinds.enumerate().map(|(at, kind)| Total { kind, data_type: DataType::Int64, column: Some(at), text: String::new() }).collect();
        Totals { all, rows: counted.then_some(0), vanish: true, all_groups: true }
    }

    fn whole(number: Option<i64>) -> ScalarValue {
        ScalarValue::Int64(number)
    }

    /// The totals of some rows, as the engine gives them.
    fn over(rows: &[Option<i64>]) -> Vec<ScalarValue> {
        let values: Vec<i64> = rows.iter().flatten().copied().collect();
        let sum: i64 = values.iter().sum();
        let of = |number: i64| (!values.is_empty()).then_some(number);
        vec![
            whole(Some(rows.len() as i64)),
            whole(Some(values.len() as i64)),
            whole(of(sum)),
            whole(values.iter().min().copied()),
            whole(values.iter().max().copied()),
            ScalarValue::Float64(of(sum).map(|sum| sum as f64 / values.len() as f64)),
        ]
    }

    fn part(rows: &[Option<i64>]) -> Part {
        let values = rows.iter().flatten().count() as i64;
        let mut totals: Vec<(ScalarValue, i64)> = over(rows).into_iter().map(|total| (total, values)).collect();
        totals[0].1 = rows.len() as i64;
        Part { rows: rows.len() as i64, totals }
    }

    /// Every bag of at most three rows, as it becomes any other, also where a row is told to come and to go that did neither.
    #[test]
    fn what_is_told_of_a_group_is_what_its_rows_come_to_and_sums_that_are_counted_always_are() {
        let bags = bags_of(&[None, Some(-1), Some(0), Some(2)]);
        let (mut told, mut again) = (0, 0);
        for (totals, places) in [(totals(true), 0..6), (totals(false), 0..5), (sums(&totals(true)), 0..3), (sums(&totals(false)), 0..3)] {
            let sums_are_counted = places.len() == 3 && totals.rows.is_some();
            for (before, after) in bags.iter().flat_map(|before| bags.iter().map(move |after| (before, after))) {
                for passing in [&[][..], &[Some(-2)], &[None]] {
                    let (mut came, mut gone) = differing(before, after);
                    came.extend(passing);
                    gone.extend(passing);
                    if came.is_empty() && gone.is_empty() {
                        continue;
                    }
                    let old = (!before.is_empty()).then(|| over(before));
                    match of_group(&totals, old.as_deref(), &part(&came), &part(&gone)) {
                        Outcome::Again => {
                            assert!(!sums_are_counted, "{before:?} {after:?}");
                            again += 1;
                        }
                        Outcome::Empty => assert!(after.is_empty(), "{before:?} {after:?}"),
                        Outcome::Row(row) => {
                            assert!(!after.is_empty(), "{before:?} {after:?} {row:?}");
                            assert_eq!(row, over(after)[places.clone()], "{before:?} {after:?} {passing:?}");
                            told += 1;
                        }
                    }
                }
            }
        }
        assert!(told > 1_000 && again > 1_000, "{told} {again}");
    }

    /// Sums of values that are never null, beside a count of them and alone, where the rows of a group are not counted.
    #[test]
    fn sums_of_each_row_are_told_where_a_count_says_that_rows_are_left() {
        let bags = bags_of(&[Some(-1), Some(0), Some(2)]);
        let of = |kind| Total { kind, data_type: DataType::Int64, column: Some(0), text: String::new() };
        let (count, sum) = (of(Kind::Count), of(Kind::Sum { values: Summed::EachRow }));
        let (mut told, mut again) = (0, 0);
        for (all, places) in [(vec![count, sum.clone()], 1..3), (vec![sum], 2..3)] {
            let is_counted = all.len() > 1;
            let totals = Totals { all, rows: None, vanish: true, all_groups: true };
            let cut = |part: Part| Part { totals: part.totals[places.clone()].to_vec(), ..part };
            for (before, after) in bags.iter().flat_map(|before| bags.iter().map(move |after| (before, after))) {
                let (came, gone) = differing(before, after);
                if came.is_empty() && gone.is_empty() {
                    continue;
                }
                let old = (!before.is_empty()).then(|| over(before)[places.clone()].to_vec());
                match of_group(&totals, old.as_deref(), &cut(part(&came)), &cut(part(&gone))) {
                    Outcome::Again => {
                        assert!(after.is_empty() || (!is_counted && after.len() < before.len()), "{before:?} {after:?}");
                        again += 1;
                    }
                    Outcome::Empty => panic!("{before:?} {after:?}: nothing says so"),
                    Outcome::Row(row) => {
                        assert!(!after.is_empty(), "{before:?} {after:?} {row:?}");
                        assert_eq!(row, over(after)[places.clone()], "{before:?} {after:?}");
                        told += 1;
                    }
                }
            }
        }
        assert!(told > 300 && again > 100, "{told} {again}");
    }

    fn sums(totals: &Totals) -> Totals {
        Totals { all: totals.all[..3].to_vec(), ..totals.clone() }
    }

    fn bags_of(values: &[Option<i64>]) -> Vec<Vec<Option<i64>>> {
        let mut bags = vec![Vec::new()];
        let mut last = bags.clone();
        for _ in 0..3 {
            let longer = |bag: &Vec<Option<i64>>| {
                let least = bag.last().map_or(0, |last| values.iter().position(|value| value == last).unwrap());
                values[least..].iter().map(|value| [bag.as_slice(), &[*value]].concat()).collect::<Vec<_>>()
            };
            last = last.iter().flat_map(longer).collect();
            bags.extend(last.clone());
        }
        bags
    }

    fn differing(before: &[Option<i64>], after: &[Option<i64>]) -> (Vec<Option<i64>>, Vec<Option<i64>>) {
        let (mut came, mut gone) = (after.to_vec(), Vec::new());
        for row in before {
            match came.iter().position(|other| other == row) {
                Some(at) => drop(came.remove(at)),
                None => gone.push(*row),
            }
        }
        (came, gone)
    }

    #[test]
    fn what_does_not_fit_a_type_or_does_not_agree_is_computed_again() {
        let totals = totals(true);
        let mut old = over(&[Some(i64::MAX)]);
        assert_eq!(of_group(&totals, Some(&old), &part(&[Some(1)]), &Part::default()), Outcome::Again);
        old[1] = whole(Some(0));
        assert_eq!(of_group(&totals, Some(&old), &part(&[Some(-1)]), &Part::default()), Outcome::Again, "a sum of no values");
        assert_eq!(of_group(&totals, None, &Part::default(), &part(&[Some(1)])), Outcome::Again, "it was not there");
        assert_eq!(typed(100, &DataType::Decimal128(2, 0)), None);
        assert_eq!(typed(99, &DataType::Decimal128(2, 0)), Some(ScalarValue::Decimal128(Some(99), 2, 0)));
    }

    #[test]
    fn a_query_without_groups_has_a_row_of_no_rows_and_a_row_that_was_left_out_is_not_taken_for_none() {
        let one = Totals { vanish: false, ..totals(true) };
        assert_eq!(of_group(&one, Some(&over(&[Some(1)])), &Part::default(), &part(&[Some(1)])), Outcome::Again, "the least of none");
        let empty = of_group(&sums(&one), Some(&over(&[Some(1)])[..3]), &Part::default(), &part(&[Some(1)]));
        assert_eq!(empty, Outcome::Row(over(&[])[..3].to_vec()));
        assert_eq!(of_group(&one, None, &part(&[Some(1)]), &Part::default()), Outcome::Again);
        let some = Totals { all_groups: false, ..totals(true) };
        assert_eq!(of_group(&some, None, &part(&[Some(1)]), &Part::default()), Outcome::Again);
    }
}
