//! Which row of one table is which row of the other.
//!
//! Rows are first parted into groups that must agree exactly (by key, or by every cell without tolerance), then equal rows
//! inside a group are paired one to one; where tolerances make "equal" a matter of more than one candidate, by augmenting
//! paths, so that a pairing of all rows is found whenever there is one.

use std::collections::BTreeMap;

use arrow_schema::{DataType, Schema};

use super::difference::{ChangedRow, Difference};
use super::options::FrameDiff;
use super::schema::plain;
use crate::value::Value;

type Row = Vec<Value>;

/// Compares the rows of two frames with the same columns.
#[track_caller]
pub(super) fn compare_rows(diff: FrameDiff) -> Difference {
    let schema = diff.expected.schema();
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let column = |name: &String| {
        names.iter().position(|other| other == name).unwrap_or_else(|| panic!("there is no column {name:?} among {names:?}"))
    };
    let keys: Vec<usize> = diff.keys.iter().map(column).collect();
    check_tolerances(&diff, &schema);

    let aligned = diff.actual.select(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (actual, expected) = (aligned.rows(), diff.expected.rows());
    let cells = Cells { names: &names, diff: &diff };
    let mut found = Difference::none(aligned, expected.len(), diff.keys.clone());

    if diff.row_order {
        in_order(&cells, &actual, &expected, &mut found);
    } else if keys.is_empty() {
        let groups = grouped(&actual, &expected, |row| cells.exact_part(row));
        for (_, (actual, expected)) in groups {
            let (missing, unexpected) = leftovers(&cells, &actual, &expected, &mut found.equal);
            found.missing.extend(missing);
            found.unexpected.extend(unexpected);
        }
    } else {
        let groups = grouped(&actual, &expected, |row| keys.iter().map(|&at| row[at].clone()).collect());
        for (_, (actual, expected)) in groups {
            let (mut missing, mut unexpected) = leftovers(&cells, &actual, &expected, &mut found.equal);
            let pairs = missing.len().min(unexpected.len());
            for (expected, actual) in missing.drain(..pairs).zip(unexpected.drain(..pairs)) {
                found.changed.push(cells.changed(None, actual, expected));
            }
            found.missing.extend(missing);
            found.unexpected.extend(unexpected);
        }
    }
    found
}

fn in_order(cells: &Cells<'_>, actual: &[Row], expected: &[Row], found: &mut Difference) {
    for (at, (a, e)) in actual.iter().zip(expected).enumerate() {
        if cells.rows_equal(a, e) {
            found.equal += 1;
        } else {
            found.changed.push(cells.changed(Some(at), a.clone(), e.clone()));
        }
    }
    let shared = actual.len().min(expected.len());
    found.unexpected.extend(actual[shared..].iter().cloned());
    found.missing.extend(expected[shared..].iter().cloned());
}

type Groups<'a> = BTreeMap<Row, (Vec<&'a Row>, Vec<&'a Row>)>;

fn grouped<'a>(actual: &'a [Row], expected: &'a [Row], part: impl Fn(&Row) -> Row) -> Groups<'a> {
    let mut groups = Groups::new();
    for row in actual {
        groups.entry(part(row)).or_default().0.push(row);
    }
    for row in expected {
        groups.entry(part(row)).or_default().1.push(row);
    }
    groups
}

/// Pairs equal rows of one group and returns, sorted, those of `expected` and of `actual` that found no partner.
fn leftovers(cells: &Cells<'_>, actual: &[&Row], expected: &[&Row], equal: &mut usize) -> (Vec<Row>, Vec<Row>) {
    let mut partner_of_actual: Vec<Option<usize>> = vec![None; actual.len()];
    let mut unpaired = Vec::new();
    for at in 0..expected.len() {
        let mut seen = vec![false; actual.len()];
        if pair(cells, actual, expected, at, &mut partner_of_actual, &mut seen) {
            *equal += 1;
        } else {
            unpaired.push(at);
        }
    }
    let mut missing: Vec<Row> = unpaired.into_iter().map(|at| expected[at].clone()).collect();
    let mut unexpected: Vec<Row> =
        actual.iter().zip(&partner_of_actual).filter(|(_, partner)| partner.is_none()).map(|(row, _)| (*row).clone()).collect();
    missing.sort();
    unexpected.sort();
    (missing, unexpected)
}

/// Finds a partner for one expected row, moving earlier pairs along an augmenting path where needed.
fn pair(cells: &Cells<'_>, actual: &[&Row], expected: &[&Row], at: usize, partners: &mut [Option<usize>], seen: &mut [bool]) -> bool {
    let candidates = || (0..actual.len()).filter(|&other| cells.rows_equal(actual[other], expected[at]));
    if let Some(free) = candidates().find(|&other| partners[other].is_none()) {
        partners[free] = Some(at);
        return true;
    }
    if !cells.has_tolerances() {
        return false; // equality is transitive: a taken partner's own partner has no other choice either
    }
    let taken: Vec<usize> = candidates().collect();
    for other in taken {
        if std::mem::replace(&mut seen[other], true) {
            continue;
        }
        if partners[other].is_none_or(|previous| pair(cells, actual, expected, previous, partners, seen)) {
            partners[other] = Some(at);
            return true;
        }
    }
    false
}

/// Equality of cells under the options.
struct Cells<'a> {
    names: &'a [String],
    diff: &'a FrameDiff,
}

impl Cells<'_> {
    fn has_tolerances(&self) -> bool {
        !self.diff.tolerances.is_empty()
    }

    /// The cells in which equal rows are identical: all but those of columns with a tolerance; NaN under one form.
    fn exact_part(&self, row: &Row) -> Row {
        row.iter()
            .zip(self.names)
            .map(|(value, name)| if self.tolerant_inside(name) { Value::Null } else { self.with_one_nan(value) })
            .collect()
    }

    fn tolerant_inside(&self, name: &str) -> bool {
        self.diff.tolerances.keys().any(|path| path == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    }

    fn with_one_nan(&self, value: &Value) -> Value {
        match value {
            Value::Float(float) if float.is_nan() && self.diff.nan_equal => Value::Float(f64::NAN),
            Value::List(elements) => Value::List(elements.iter().map(|element| self.with_one_nan(element)).collect()),
            Value::Struct(fields) => Value::Struct(fields.iter().map(|(name, value)| (name.clone(), self.with_one_nan(value))).collect()),
            Value::Map(entries) => {
                Value::Map(entries.iter().map(|(key, value)| (self.with_one_nan(key), self.with_one_nan(value))).collect())
            }
            other => other.clone(),
        }
    }

    fn rows_equal(&self, actual: &Row, expected: &Row) -> bool {
        self.names.iter().zip(actual.iter().zip(expected)).all(|(name, (a, e))| self.equal(name, a, e))
    }

    fn equal(&self, path: &str, actual: &Value, expected: &Value) -> bool {
        match (actual, expected) {
            (Value::Float(a), Value::Float(e)) if a.is_nan() || e.is_nan() => self.diff.nan_equal && a.is_nan() && e.is_nan(),
            (Value::Float(a), Value::Float(e)) => {
                a.to_bits() == e.to_bits() || self.diff.tolerances.get(path).is_some_and(|tolerance| (a - e).abs() <= *tolerance)
            }
            (Value::List(a), Value::List(e)) => a.len() == e.len() && a.iter().zip(e).all(|(a, e)| self.equal(path, a, e)),
            (Value::Struct(a), Value::Struct(e)) => {
                let find = |name: &String| a.iter().find(|(other, _)| other == name).map(|(_, value)| value);
                a.len() == e.len() && e.iter().all(|(name, e)| find(name).is_some_and(|a| self.equal(&format!("{path}.{name}"), a, e)))
            }
            (Value::Map(a), Value::Map(e)) => {
                a.len() == e.len() && a.iter().zip(e).all(|(a, e)| self.equal(path, &a.0, &e.0) && self.equal(path, &a.1, &e.1))
            }
            (a, e) => a == e,
        }
    }

    fn changed(&self, position: Option<usize>, actual: Row, expected: Row) -> ChangedRow {
        let cells = (0..self.names.len()).filter(|&at| !self.equal(&self.names[at], &actual[at], &expected[at])).collect();
        ChangedRow { position, actual, expected, cells }
    }
}

fn check_tolerances(diff: &FrameDiff, schema: &Schema) {
    for path in diff.tolerances.keys() {
        let found = path.split('.').try_fold(DataType::Struct(schema.fields().clone()), |inside, name| match inside {
            DataType::Struct(fields) => fields.iter().find(|field| field.name() == name).map(|field| plain(field.data_type())),
            _ => None,
        });
        let found = found.unwrap_or_else(|| panic!("a tolerance names {path:?}, which is no column"));
        assert!(holds_floats(&found), "a tolerance names {path:?}, which is {found}: only floats are compared with a tolerance");
    }
}

fn holds_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::List(element) | DataType::FixedSizeList(element, _) | DataType::Map(element, _) => holds_floats(element.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_floats(field.data_type())),
        _ => false,
    }
}
