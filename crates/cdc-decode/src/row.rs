//! One row image of a message, from JSON into the columns of a table.

use tributary_specs::{DataType, SchemaPolicy};

use crate::column::Column;
use crate::infer::kind_type;
use crate::json::{Broken, Cursor, Kind, Text, write_text};
use crate::layout::{About, Layout, Next, Slot};
use crate::read::{Lost, Problem, Read, Reader};
use crate::source::Source;

/// Why a row image could not be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// It is no JSON.
    Json(Broken),
    /// A value is the matter.
    Value {
        /// The column's index.
        column: usize,
        /// What is wrong with it.
        problem: Problem,
    },
    /// A field that nobody has decided on, with a value.
    Unknown(String),
    /// A field that the policy sends to quarantine.
    Refused(String),
}

impl From<Broken> for Halt {
    fn from(broken: Broken) -> Self {
        Self::Json(broken)
    }
}

/// What a row image had besides its values.
#[derive(Debug, Default)]
pub(crate) struct Found<'a> {
    /// Columns that were not sent.
    pub unavailable: Vec<usize>,
    /// Values kept in `_rescued_data`: the inside of a JSON object.
    pub rescued: Vec<u8>,
    /// Columns whose value our types do not have.
    pub lost: Vec<(usize, Lost)>,
    /// Columns among the first 64 that came as null, a bit each.
    pub nulls: u64,
    /// Flattened rows: what they say about the change.
    pub about: AboutRow<'a>,
}

/// What a flattened row says about its change.
#[derive(Debug, Default)]
pub(crate) struct AboutRow<'a> {
    pub op: Option<Text<'a>>,
    pub deleted: Option<bool>,
    pub handled_ms: Option<i64>,
    pub source: Source<'a>,
}

impl Found<'_> {
    pub(crate) fn clear(&mut self) {
        self.unavailable.clear();
        self.rescued.clear();
        self.lost.clear();
        self.nulls = 0;
    }

    pub(crate) fn rescue(&mut self, path: &str, raw: &[u8]) {
        if !self.rescued.is_empty() {
            self.rescued.push(b',');
        }
        write_text(path.as_bytes(), &mut self.rescued);
        self.rescued.push(b':');
        self.rescued.extend_from_slice(raw);
    }
}

/// How rows are taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'t> {
    pub policy: SchemaPolicy,
    /// Columns that nobody declared; empty for messages with a schema block.
    pub undeclared: &'t [bool],
}

/// Takes an object as row number `row` of the columns; fields that do not come are null.
#[inline]
pub(crate) fn read_row<'a>(
    reader: &mut Reader,
    cursor: &mut Cursor<'a>,
    layout: &Layout,
    columns: &mut [(String, Column)],
    row: usize,
    rules: Rules<'_>,
    found: &mut Found<'a>,
) -> Result<(), Halt> {
    let mut members = cursor.object()?;
    let mut at = 0;
    loop {
        let field = match layout.next(cursor, &mut members, &mut at)? {
            Next::End => break,
            Next::Unknown(name) => {
                if cursor.null()? {
                    continue;
                }
                return Err(Halt::Unknown(name));
            }
            Next::Field(field) => field,
        };
        match field.slot {
            Slot::Column(index) => {
                let Some((_, column)) = columns.get_mut(index) else { return Err(Halt::Unknown(field.name.clone())) };
                if column.len() > row {
                    column.truncate(row);
                    reader.duplicates += 1;
                    found.unavailable.retain(|known| *known != index);
                    found.lost.retain(|(known, _)| *known != index);
                }
                let first = cursor.peek()?;
                if first == b'n' && index < 64 {
                    found.nulls |= 1 << index;
                }
                let start = cursor.at();
                match reader.read(cursor, &field.wire, column) {
                    Ok(Read::Done) => {}
                    Ok(Read::Unavailable) => found.unavailable.push(index),
                    Ok(Read::Lost(lost)) => {
                        found.lost.push((index, lost));
                        found.rescue(&field.name, cursor.since(start));
                    }
                    Err(problem) => {
                        let problem = as_policy_sees_it(problem, cursor.back_to(start).kind()?, rules, index);
                        let rescues = rules.policy == SchemaPolicy::Rescue && problem.is_about_type();
                        if !rescues {
                            return Err(Halt::Value { column: index, problem });
                        }
                        column.truncate(row);
                        column.push_null();
                        *cursor = cursor.back_to(start);
                        found.rescue(&field.name, cursor.raw()?);
                    }
                }
                if !reader.extras.is_empty() {
                    for (path, raw) in std::mem::take(&mut reader.extras) {
                        found.rescue(&format!("{}.{path}", field.name), &raw);
                    }
                }
            }
            Slot::About(about) => read_about(cursor, about, &mut found.about)?,
            Slot::Rescue => {
                let raw = cursor.raw()?;
                if raw != b"null" {
                    found.rescue(&field.name, raw);
                }
            }
            Slot::Refuse if !cursor.null()? => return Err(Halt::Refused(field.name.clone())),
            Slot::Open if !cursor.null()? => return Err(Halt::Unknown(field.name.clone())),
            Slot::Refuse | Slot::Open => {}
        }
    }
    for (_, column) in columns {
        if column.len() <= row {
            column.push_null();
        }
    }
    Ok(())
}

impl Problem {
    /// Whether another type, or `_rescued_data`, would help.
    fn is_about_type(&self) -> bool {
        matches!(self, Self::WrongType { .. } | Self::DoesNotFit(_))
    }
}

/// A value of another kind in a column whose type was only inferred asks for a wider type; in a declared one it is wrong.
fn as_policy_sees_it(problem: Problem, kind: Kind, rules: Rules<'_>, column: usize) -> Problem {
    match problem {
        Problem::WrongType { .. } if rules.undeclared.get(column).copied().unwrap_or(false) => {
            Problem::DoesNotFit(kind_type(kind).unwrap_or(DataType::String))
        }
        other => other,
    }
}

fn read_about<'a>(cursor: &mut Cursor<'a>, about: About, row: &mut AboutRow<'a>) -> Result<(), Broken> {
    let kind = cursor.kind()?;
    match (about, kind) {
        (About::Source(member), _) => return row.source.set(cursor, member),
        (About::Op, Kind::Text) => row.op = Some(cursor.text()?),
        (About::Deleted, Kind::Text) => row.deleted = Some(cursor.text()?.raw == b"true"),
        (About::Deleted, Kind::Boolean) => row.deleted = Some(cursor.boolean()?),
        (About::HandledMs, Kind::Number) => row.handled_ms = cursor.number()?.integer,
        _ => cursor.skip()?,
    }
    Ok(())
}
