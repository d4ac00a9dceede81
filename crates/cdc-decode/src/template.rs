//! Objects that hardly change from one message to the next: runs of members that are byte for byte those of last time are
//! recognised by one comparison, and only the others are read.

use crate::json::{Broken, Cursor, Kind, Text};

/// An object as it came once.
#[derive(Debug)]
pub(crate) struct Template<M> {
    text: Vec<u8>,
    members: Vec<Place<M>>,
    /// How many members had to be read in the best case since the template was made.
    least: usize,
    /// How many objects in a row needed clearly more.
    surplus: usize,
}

#[derive(Debug, Clone, Copy)]
struct Place<M> {
    member: M,
    /// Where its value begins and ends in the text.
    value: usize,
    end: usize,
    what: What,
}

/// A scalar, or something that is read each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Null,
    Text { escaped: bool },
    Number(Option<i64>),
    Other,
}

/// A member's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Text(Text<'a>),
    /// Its text, and its value where it is whole.
    Number(&'a [u8], Option<i64>),
    Boolean(bool),
    /// An array or object.
    Other,
}

/// After so many objects in a row that needed more reading a new template is made.
const SURPLUS_MOST: usize = 16;

impl<M> Default for Template<M> {
    fn default() -> Self {
        Self { text: Vec::new(), members: Vec::new(), least: usize::MAX, surplus: 0 }
    }
}

/// Takes up the members of an object.
pub(crate) trait Block<'a> {
    /// What a key stands for.
    type Member: Copy;
    /// The member of a name.
    fn named(name: &[u8]) -> Self::Member;
    /// Takes up a value that is the one of last time.
    fn put(&mut self, member: Self::Member, value: Value<'a>);
    /// Takes the next value.
    fn read(&mut self, member: Self::Member, cursor: &mut Cursor<'a>) -> Result<(), Broken>;
}

impl<M: Copy> Template<M> {
    /// Takes an object. `None` = it has to be taken by [`Template::learn`], as if nothing had been taken up; the cursor is
    /// anywhere.
    #[inline]
    pub(crate) fn read<'a, B: Block<'a, Member = M>>(&mut self, cursor: &mut Cursor<'a>, block: &mut B) -> Result<Option<()>, Broken> {
        let mut from = 0;
        let mut next = 0;
        let mut read = 0;
        while next < self.members.len() {
            let same = from + cursor.common(&self.text, from);
            // A member is the same when the byte behind it is, too.
            while let Some(place) = self.members.get(next)
                && place.end < same
            {
                let text = cursor.ahead(place.value - from, place.end - from);
                block.put(place.member, place.what.of(text));
                next += 1;
            }
            let Some(place) = self.members.get(next) else { break };
            if place.value > same {
                return Ok(None);
            }
            cursor.advance(place.value - from);
            block.read(place.member, cursor)?;
            read += 1;
            from = place.end;
            next += 1;
        }
        let Some(last) = self.members.last() else { return Ok(None) };
        cursor.advance(last.end - from);
        if !cursor.byte(b'}') {
            return Ok(None);
        }
        self.least = self.least.min(read);
        self.surplus = if read > self.least + 1 { self.surplus + 1 } else { 0 };
        if self.surplus > SURPLUS_MOST {
            *self = Self::default();
        }
        Ok(Some(()))
    }

    /// Takes an object and remembers it.
    #[cold]
    pub(crate) fn learn<'a, B: Block<'a, Member = M>>(&mut self, cursor: &mut Cursor<'a>, block: &mut B) -> Result<(), Broken> {
        *self = Self::default();
        cursor.kind()?;
        let start = cursor.at();
        let mut members = cursor.object()?;
        while let Some(key) = cursor.member(&mut members)? {
            let member = B::named(if key.escaped { b"" } else { key.raw });
            cursor.kind()?;
            let begin = cursor.at();
            let what = What::from(value(&mut cursor.clone())?);
            block.read(member, cursor)?;
            self.members.push(Place { member, value: begin - start, end: cursor.at() - start, what });
        }
        self.text = cursor.since(start).to_vec();
        Ok(())
    }
}

/// Takes a value.
#[inline]
fn value<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, Broken> {
    let start = cursor.at();
    if let Some(integer) = cursor.small_integer() {
        return Ok(Value::Number(cursor.since(start), Some(integer)));
    }
    if let Some(raw) = cursor.plain_text() {
        return Ok(Value::Text(Text { raw, escaped: false }));
    }
    Ok(match cursor.kind()? {
        Kind::Null => {
            cursor.skip()?;
            Value::Null
        }
        Kind::Text => Value::Text(cursor.text()?),
        Kind::Number => {
            let number = cursor.number()?;
            Value::Number(number.raw, number.integer)
        }
        Kind::Boolean => Value::Boolean(cursor.boolean()?),
        Kind::Array | Kind::Object => {
            cursor.skip()?;
            Value::Other
        }
    })
}

impl What {
    /// The value whose text is the same again.
    #[inline(always)]
    fn of(self, raw: &[u8]) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Text { escaped } => {
                Value::Text(Text { raw: raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default(), escaped })
            }
            Self::Number(integer) => Value::Number(raw, integer),
            Self::Other => match raw.first() {
                Some(b't') => Value::Boolean(true),
                Some(b'f') => Value::Boolean(false),
                _ => Value::Other,
            },
        }
    }
}

impl From<Value<'_>> for What {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Text(text) => Self::Text { escaped: text.escaped },
            Value::Number(_, integer) => Self::Number(integer),
            Value::Boolean(_) | Value::Other => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Name and text of each member.
    #[derive(Debug, Default)]
    struct Shown(Vec<(u8, String)>);

    impl<'a> Block<'a> for Shown {
        type Member = u8;

        fn named(name: &[u8]) -> u8 {
            name.first().copied().unwrap_or(0)
        }

        fn put(&mut self, member: u8, value: Value<'a>) {
            let shown = match value {
                Value::Text(text) => String::from_utf8_lossy(text.raw).into_owned(),
                Value::Number(raw, _) => String::from_utf8_lossy(raw).into_owned(),
                other => format!("{other:?}"),
            };
            self.0.push((member, shown));
        }

        fn read(&mut self, member: u8, cursor: &mut Cursor<'a>) -> Result<(), Broken> {
            let value = value(cursor)?;
            self.put(member, value);
            Ok(())
        }
    }

    fn read(template: &mut Template<u8>, text: &str) -> Vec<(u8, String)> {
        let mut cursor = Cursor::new(text.as_bytes());
        let mut shown = Shown::default();
        if template.read(&mut cursor, &mut shown).unwrap().is_none() {
            shown = Shown::default();
            cursor = Cursor::new(text.as_bytes());
            template.learn(&mut cursor, &mut shown).unwrap();
        }
        assert_eq!(cursor.at(), text.len());
        shown.0
    }

    fn value_text() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("{\"a\":[1]}".to_owned()),
            (-2000i64..2000).prop_map(|number| number.to_string()),
            "[ab]{0,12}".prop_map(|text| format!("\"{text}\"")),
            Just("\"a\\n\"".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn what_is_read_by_a_template_is_what_is_read_anew(
            rows in prop::collection::vec(prop::collection::vec((prop::sample::select(vec!["a", "b", "cc", "ddd"]), value_text()), 0..6), 1..40)
        ) {
            let mut template = Template::default();
            for row in rows {
                let members: Vec<String> = row.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                let text = format!("{{{}}}", members.join(","));
                let expected = read(&mut Template::default(), &text);
                prop_assert_eq!(read(&mut template, &text), expected);
            }
        }
    }
}
