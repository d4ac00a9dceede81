//! One row image of a message, from JSON into the columns of a table.

use tributary_specs::{DataType, SchemaPolicy};

use crate::column::Column;
use crate::infer::kind_type;
use crate::json::{Broken, Cursor, Kind, Text, write_text};
use crate::layout::{About, Field, Layout, Next, Row, Slot};
use crate::read::{Lost, Problem, Read, Reader};
use crate::source::Source;
use crate::template::Block;

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
    /// Whether it came without a schema.
    pub bare: bool,
    /// Flattened rows: what they say about the change.
    pub about: AboutRow<'a>,
}

/// What a flattened row says about its change.
#[derive(Debug, Default)]
pub(crate) struct AboutRow<'a> {
    pub op: Option<Text<'a>>,
    pub deleted: Option<bool>,
    pub handled_ms: Option<i64>,
    pub source: Source,
}

impl Found<'_> {
    pub(crate) fn clear(&mut self) {
        self.unavailable.clear();
        self.rescued.clear();
        self.lost.clear();
        self.nulls = 0;
        self.bare = false;
    }

    /// Notes that a column came as null.
    #[inline(always)]
    pub(crate) fn see_null(&mut self, column: usize) {
        self.nulls |= 1u64.checked_shl(u32::try_from(column).unwrap_or(u32::MAX)).unwrap_or(0);
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

/// Takes an object as row number `row` of the columns. One whose field does not come, or comes as null, may stay behind: nulls are
/// filled in before its next value or at the end.
pub(crate) fn read_row<'a>(
    reader: &mut Reader,
    cursor: &mut Cursor<'a>,
    layout: &Layout,
    columns: &mut [(String, Column)],
    row: usize,
    rules: Rules<'_>,
    found: &mut Found<'a>,
) -> Result<(), Halt> {
    found.bare |= !rules.undeclared.is_empty();
    let mut place = Row::default();
    while let Some(field) = read_in_order(reader, cursor, layout, columns, row, &mut place, found) {
        read_field(reader, cursor, field, columns, row, rules, found)?;
    }
    if place.is_at_end(cursor) {
        return Ok(());
    }
    // From here on a column that is behind is one whose field has not come.
    for field in layout.fields.iter().take(place.at) {
        if let Some((_, column)) = field.column().and_then(|index| columns.get_mut(index)) {
            column.fill(row + 1);
        }
    }
    loop {
        let field = match layout.next(cursor, &mut place)? {
            Next::Field(field) => field,
            Next::End => return Ok(()),
            Next::Unknown(name) => {
                if cursor.null()? {
                    continue;
                }
                return Err(Halt::Unknown(name));
            }
        };
        read_field(reader, cursor, field, columns, row, rules, found)?;
    }
}

/// Takes fields as long as they come in the layout's order, which is mostly to the last, and have one of the commonest values. A
/// column whose field comes as null stays behind. Returns a field whose value is to be read in another way.
#[inline(always)]
fn read_in_order<'l>(
    reader: &mut Reader,
    cursor: &mut Cursor<'_>,
    layout: &'l Layout,
    columns: &mut [(String, Column)],
    row: usize,
    place: &mut Row,
    found: &mut Found<'_>,
) -> Option<&'l Field> {
    if layout.repeats {
        return None;
    }
    let mut here = cursor.clone();
    let field = loop {
        let Some(field) = layout.expected(&mut here, place) else { break None };
        let Some(index) = field.column() else { break Some(field) };
        let Some((_, column)) = columns.get_mut(index).filter(|(_, column)| column.len() <= row) else { break Some(field) };
        if here.is_at(b'n') && here.literal(b"null") {
            found.see_null(index);
            layout.nulls(&mut here, place, |index| found.see_null(index));
            continue;
        }
        column.fill(row);
        if !reader.read_quickly(&mut here, &field.wire, column) {
            break Some(field);
        }
    };
    *cursor = here;
    field
}

/// Takes the value of a field, whatever it is.
#[inline(never)]
fn read_field<'a>(
    reader: &mut Reader,
    cursor: &mut Cursor<'a>,
    field: &Field,
    columns: &mut [(String, Column)],
    row: usize,
    rules: Rules<'_>,
    found: &mut Found<'a>,
) -> Result<(), Halt> {
    let Some(index) = field.column() else { return outside(cursor, field, found) };
    let Some((_, column)) = columns.get_mut(index) else { return Err(Halt::Unknown(field.name.clone())) };
    if column.len() > row {
        again(reader, column, index, row, found);
    } else {
        column.fill(row);
    }
    let start = cursor.at();
    match reader.read(cursor, &field.wire, column) {
        Read::Done => {}
        Read::Null => found.see_null(index),
        other => uncommon(reader, cursor, start, field, (index, column), row, rules, found, other)?,
    }
    Ok(())
}

/// A key that came twice: the last wins.
#[cold]
fn again(reader: &mut Reader, column: &mut Column, index: usize, row: usize, found: &mut Found<'_>) {
    column.truncate(row);
    reader.duplicates += 1;
    found.unavailable.retain(|known| *known != index);
    found.lost.retain(|(known, _)| *known != index);
}

/// A field that is no column.
fn outside<'a>(cursor: &mut Cursor<'a>, field: &Field, found: &mut Found<'a>) -> Result<(), Halt> {
    match field.slot {
        Slot::About(about) => read_about(cursor, about, &mut found.about)?,
        Slot::Rescue => {
            let raw = cursor.raw()?;
            if raw != b"null" {
                found.rescue(&field.name, raw);
            }
        }
        Slot::Refuse if !cursor.null()? => return Err(Halt::Refused(field.name.clone())),
        Slot::Open if !cursor.null()? => return Err(Halt::Unknown(field.name.clone())),
        Slot::Column(_) | Slot::Refuse | Slot::Open => {}
    }
    Ok(())
}

/// What else may become of a value.
#[cold]
#[allow(clippy::too_many_arguments)]
fn uncommon<'a>(
    reader: &mut Reader,
    cursor: &mut Cursor<'a>,
    start: usize,
    field: &Field,
    (index, column): (usize, &mut Column),
    row: usize,
    rules: Rules<'_>,
    found: &mut Found<'a>,
    read: Read,
) -> Result<(), Halt> {
    match read {
        Read::Done | Read::Null => {}
        Read::Unavailable => found.unavailable.push(index),
        Read::Lost(lost) => {
            found.lost.push((index, lost));
            found.rescue(&field.name, cursor.since(start).trim_ascii_start());
        }
        Read::Extras => keep_extras(reader, (index, &field.name), rules.policy, found)?,
        Read::Failed => {
            let problem = as_policy_sees_it(reader.problem(), cursor.back_to(start).kind()?, rules, index);
            reader.extras.clear();
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
    Ok(())
}

/// What becomes of the values in a nested object that its column cannot take.
pub(crate) fn keep_extras(
    reader: &mut Reader,
    (column, name): (usize, &str),
    policy: SchemaPolicy,
    found: &mut Found<'_>,
) -> Result<(), Halt> {
    for extra in std::mem::take(&mut reader.extras) {
        let path = format!("{name}.{}", extra.path);
        match (extra.missing, policy) {
            (None, _) | (Some(_), SchemaPolicy::Rescue) => found.rescue(&path, &extra.json),
            (Some(_), SchemaPolicy::Quarantine) => return Err(Halt::Refused(path)),
            (Some(data_type), SchemaPolicy::Freeze | SchemaPolicy::Add | SchemaPolicy::Widen) => {
                return Err(Halt::Value { column, problem: Problem::NewField(data_type) });
            }
        }
    }
    Ok(())
}

impl Problem {
    /// Whether another type, or `_rescued_data`, would help.
    pub(crate) fn is_about_type(&self) -> bool {
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
        (About::Source(member), _) => return row.source.read(member, cursor),
        (About::Op, Kind::Text) => row.op = Some(cursor.text()?),
        (About::Deleted, Kind::Text) => row.deleted = Some(cursor.text()?.raw == b"true"),
        (About::Deleted, Kind::Boolean) => row.deleted = Some(cursor.boolean()?),
        (About::HandledMs, Kind::Number) => row.handled_ms = cursor.number()?.integer,
        _ => cursor.skip()?,
    }
    Ok(())
}
