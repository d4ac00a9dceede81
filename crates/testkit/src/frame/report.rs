//! The text of a difference: counts, short lists, and the actual frame to paste.

use std::fmt;

use arrow_schema::Schema;

use super::difference::{ChangedRow, Difference};
use super::{literal, text};
use crate::value::Value;

/// Entries of a list that are shown.
const SHOWN_MAX: usize = 5;
/// Rows of the actual frame that are shown for pasting.
const PASTED_MAX: usize = 50;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return write!(f, "frames are equal: {} rows", self.equal);
        }
        writeln!(f, "frames differ: {} rows, expected {}", self.actual.len(), self.expected_rows)?;
        if self.schema.is_empty() {
            self.write_rows(f)?;
        } else {
            self.write_schema(f)?;
        }
        self.write_actual(f)
    }
}

impl Difference {
    fn write_schema(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schema:")?;
        for one in &self.schema {
            match (&one.actual, &one.expected) {
                (Some(actual), Some(expected)) => writeln!(f, "  {}: {actual}, expected {expected}", one.path)?,
                (Some(actual), None) => writeln!(f, "  {}: {actual}, not expected", one.path)?,
                (None, expected) => writeln!(f, "  {}: missing, expected {}", one.path, expected.as_deref().unwrap_or("nothing"))?,
            }
        }
        Ok(())
    }

    fn write_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (missing, unexpected, changed) = (self.missing.len(), self.unexpected.len(), self.changed.len());
        write!(f, "rows")?;
        if !self.keys.is_empty() {
            write!(f, " by {}", self.keys.join(", "))?;
        }
        writeln!(f, ": {missing} missing, {unexpected} unexpected, {changed} changed, {} equal", self.equal)?;
        let schema = self.actual.schema();
        write_list(f, "missing", &self.missing, |f, row| write_cells(f, &schema, row))?;
        write_list(f, "unexpected", &self.unexpected, |f, row| write_cells(f, &schema, row))?;
        write_list(f, "changed", &self.changed, |f, row| self.write_changed(f, &schema, row))
    }

    fn write_changed(&self, f: &mut fmt::Formatter<'_>, schema: &Schema, row: &ChangedRow) -> fmt::Result {
        match row.position {
            Some(position) => write!(f, "row {position}:")?,
            None => {
                for (at, key) in self.keys.iter().enumerate() {
                    let column = schema.index_of(key).unwrap_or_default();
                    let end = if at + 1 == self.keys.len() { ":" } else { " " };
                    write!(f, "{key}={}{end}", cell(schema, column, &row.expected[column]))?;
                }
            }
        }
        for (at, &column) in row.cells.iter().enumerate() {
            let (actual, expected) = (cell(schema, column, &row.actual[column]), cell(schema, column, &row.expected[column]));
            let separator = if at == 0 { "" } else { "," };
            write!(f, "{separator} {} is {actual}, expected {expected}", schema.field(column).name())?;
        }
        Ok(())
    }

    fn write_actual(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actual, to paste:\n{}", literal::pasteable(&self.actual, PASTED_MAX))
    }
}

fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    list: &[T],
    write_one: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    if list.is_empty() {
        return Ok(());
    }
    writeln!(f, "{name}:")?;
    for one in list.iter().take(SHOWN_MAX) {
        write!(f, "  ")?;
        write_one(f, one)?;
        writeln!(f)?;
    }
    if list.len() > SHOWN_MAX {
        writeln!(f, "  and {} more", list.len() - SHOWN_MAX)?;
    }
    Ok(())
}

fn write_cells(f: &mut fmt::Formatter<'_>, schema: &Schema, row: &[Value]) -> fmt::Result {
    for (at, value) in row.iter().enumerate() {
        let separator = if at == 0 { "" } else { " " };
        write!(f, "{separator}{}={}", schema.field(at).name(), cell(schema, at, value))?;
    }
    Ok(())
}

fn cell(schema: &Schema, column: usize, value: &Value) -> String {
    text::write(value, schema.field(column).data_type())
}
