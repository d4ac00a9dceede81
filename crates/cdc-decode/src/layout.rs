//! Which field of a message goes where.

use crate::json::{Broken, Cursor, Members, Token};
use crate::source::Member;
use crate::wire::Wire;

/// Where a field's value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A business column, by its place in the table.
    Column(usize),
    /// A field that flattening added about the change.
    About(About),
    /// `_rescued_data`.
    Rescue,
    /// Nowhere: a value other than null sends the record to quarantine.
    Refuse,
    /// Not decided; a value other than null asks for it.
    Open,
}

/// What a field that flattening added says about the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The operation code.
    Op,
    /// `"true"` for a delete.
    Deleted,
    /// When the connector handled the change, ms.
    HandledMs,
    /// A member of the source block.
    Source(Member),
}

impl About {
    /// What a field of this name says, if it is one that flattening adds (`__op`, `__source_ts_ms`, …).
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix("__")?;
        Some(match name {
            "op" => Self::Op,
            "deleted" => Self::Deleted,
            "ts_ms" => Self::HandledMs,
            _ => {
                let name = name.strip_prefix("source_").unwrap_or(name);
                match Member::named(name.as_bytes()) {
                    Member::Other if !matches!(name, "ts_ns" | "ts_us" | "version" | "name" | "thread" | "query" | "xmin") => return None,
                    member => Self::Source(member),
                }
            }
        })
    }
}

/// One field of a message's rows.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    token: Token,
    first_token: Token,
    /// The field's name.
    pub name: String,
    /// Where it goes.
    pub slot: Slot,
    /// How its values are written.
    pub wire: Wire,
    /// Whether its schema says that a null shows as null, which only a nullable column without default does.
    pub shows_null: bool,
}

impl Field {
    pub(crate) fn new(name: &str, slot: Slot, wire: Wire, shows_null: bool) -> Self {
        let mut quoted = Vec::new();
        crate::json::write_text(name.as_bytes(), &mut quoted);
        let raw = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        Self { token: Token::of_key(false, raw), first_token: Token::of_key(true, raw), name: name.to_owned(), slot, wire, shows_null }
    }
}

/// The fields of a message's rows, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub fields: Vec<Field>,
}

/// Where in a row the reading is.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// The field expected next.
    at: usize,
    /// Whether a member has been taken.
    inside: bool,
}

/// The next field of a row.
pub(crate) enum Next<'l> {
    /// The row has ended.
    End,
    /// A field of the layout.
    Field(&'l Field),
    /// One that the layout does not have.
    Unknown(String),
}

impl Layout {
    /// Takes the next key.
    #[inline(always)]
    pub(crate) fn next(&self, cursor: &mut Cursor<'_>, row: &mut Row) -> Result<Next<'_>, Broken> {
        if let Some(field) = self.fields.get(row.at)
            && cursor.expect(if row.inside { &field.token } else { &field.first_token })
        {
            row.at += 1;
            row.inside = true;
            return Ok(Next::Field(field));
        }
        if row.inside && cursor.byte(b'}') {
            return Ok(Next::End);
        }
        self.search(cursor, row)
    }

    /// Finds a field that is not the expected one.
    #[cold]
    fn search(&self, cursor: &mut Cursor<'_>, row: &mut Row) -> Result<Next<'_>, Broken> {
        let mut members = if row.inside { Members::inside() } else { cursor.object()? };
        row.inside = true;
        let Some(key) = cursor.member(&mut members)? else { return Ok(Next::End) };
        let mut scratch = Vec::new();
        let name = key.resolve(&mut scratch)?;
        match self.fields.iter().position(|field| field.name.as_bytes() == name) {
            Some(found) => {
                row.at = found + 1;
                Ok(self.fields.get(found).map_or(Next::End, Next::Field))
            }
            None => Ok(Next::Unknown(String::from_utf8_lossy(name).into_owned())),
        }
    }

    /// Sets a field, new or known by its name.
    pub(crate) fn set(&mut self, field: Field) {
        match self.fields.iter_mut().find(|known| known.name == field.name) {
            Some(known) => *known = field,
            None => self.fields.push(field),
        }
    }

    /// Whether these are the columns of a signal table.
    pub(crate) fn is_signal(&self) -> bool {
        self.fields.len() == 3 && ["id", "type", "data"].iter().all(|name| self.fields.iter().any(|field| field.name == *name))
    }
}
