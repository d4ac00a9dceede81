//! Which field of a message goes where.

use crate::json::{Broken, Cursor, Members, Token, write_text};
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
    /// Its key where the layout expects it: behind a comma, or behind the opening brace.
    token: Token,
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
        Self { token: Self::token(false, name), name: name.to_owned(), slot, wire, shows_null }
    }

    fn token(first: bool, name: &str) -> Token {
        let mut quoted = Vec::new();
        write_text(name.as_bytes(), &mut quoted);
        Token::of_key(first, quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default())
    }

    /// The column that it is.
    #[inline(always)]
    pub(crate) fn column(&self) -> Option<usize> {
        match self.slot {
            Slot::Column(column) => Some(column),
            _ => None,
        }
    }
}

/// The fields of a message's rows, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub fields: Vec<Field>,
    /// What the fields are if all of them are null, from the comma in front of the first to the closing brace.
    null_text: Vec<u8>,
    /// Where in it each field ends.
    null_ends: Vec<usize>,
    /// Whether two fields are of one column.
    pub repeats: bool,
}

/// Where in a row the reading is.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// The field expected next.
    pub at: usize,
    /// Whether a member has been taken.
    inside: bool,
}

impl Row {
    /// Takes the closing brace, if it comes.
    #[inline(always)]
    pub(crate) fn is_at_end(&self, cursor: &mut Cursor<'_>) -> bool {
        self.inside && cursor.byte(b'}')
    }
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
    /// Takes the key of the next field, if it comes at once.
    #[inline(always)]
    pub(crate) fn expected(&self, cursor: &mut Cursor<'_>, row: &mut Row) -> Option<&Field> {
        let field = self.fields.get(row.at)?;
        if !cursor.expect(&field.token) {
            return None;
        }
        row.at += 1;
        row.inside = true;
        Some(field)
    }

    /// Takes the next key.
    pub(crate) fn next(&self, cursor: &mut Cursor<'_>, row: &mut Row) -> Result<Next<'_>, Broken> {
        if let Some(field) = self.expected(cursor, row) {
            return Ok(Next::Field(field));
        }
        if row.is_at_end(cursor) {
            return Ok(Next::End);
        }
        self.search(cursor, row)
    }

    /// After a null, takes the fields that follow and are null, too.
    #[inline]
    pub(crate) fn nulls(&self, cursor: &mut Cursor<'_>, row: &mut Row, mut null: impl FnMut(usize)) {
        let Some(start) = row.at.checked_sub(1).and_then(|last| self.null_ends.get(last)) else { return };
        let same = start + cursor.common(&self.null_text, *start);
        let mut taken = *start;
        while let (Some(end), Some(Field { slot: Slot::Column(column), .. })) = (self.null_ends.get(row.at), self.fields.get(row.at))
            && *end <= same
        {
            null(*column);
            taken = *end;
            row.at += 1;
        }
        cursor.advance(taken - start);
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

    /// Of these fields.
    pub(crate) fn new(fields: Vec<Field>) -> Self {
        let mut new = Self::default();
        fields.into_iter().for_each(|field| new.push(field));
        new
    }

    /// Sets a field, new or known by its name.
    pub(crate) fn set(&mut self, field: Field) {
        match self.fields.iter().position(|known| known.name == field.name) {
            Some(at) => {
                self.repeats |= self.has_column_of(&field, at);
                self.fields[at] = Field { token: Field::token(at == 0, &field.name), ..field };
            }
            None => self.push(field),
        }
    }

    /// Adds fields and puts all into another order.
    pub(crate) fn arrange(&mut self, more: Vec<Field>, place: impl FnMut(&Field) -> usize) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.extend(more);
        fields.sort_by_cached_key(place);
        *self = Self::new(fields);
    }

    fn push(&mut self, field: Field) {
        let at = self.fields.len();
        self.repeats |= self.has_column_of(&field, at);
        // The brace comes last again.
        self.null_text.pop();
        self.null_text.push(b',');
        write_text(field.name.as_bytes(), &mut self.null_text);
        self.null_text.extend_from_slice(b":null");
        self.null_ends.push(self.null_text.len());
        self.null_text.push(b'}');
        self.fields.push(Field { token: Field::token(at == 0, &field.name), ..field });
    }

    /// Whether a field that is to stand at a place is of the column of another.
    fn has_column_of(&self, field: &Field, place: usize) -> bool {
        let column = field.column();
        column.is_some() && self.fields.iter().enumerate().any(|(at, known)| at != place && known.column() == column)
    }

    /// Whether these are the columns of a signal table.
    pub(crate) fn is_signal(&self) -> bool {
        self.fields.len() == 3 && ["id", "type", "data"].iter().all(|name| self.fields.iter().any(|field| field.name == *name))
    }
}
