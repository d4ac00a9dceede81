//! Objects of one kind have their members in one order, and many members have one value for a long time: what came last
//! time is looked for first, by comparing bytes.

use crate::json::{Broken, Cursor, Kind, Members, Text, Token};

/// The members of an object as they came last time.
#[derive(Debug)]
pub(crate) struct Order<M> {
    members: Vec<Known<M>>,
}

#[derive(Debug)]
struct Known<M> {
    key: Token,
    key_length: usize,
    member: M,
    /// Key and value as they came last time, and what the value was.
    same: Option<(Token, Value)>,
    /// How often in a row the value was another; after a few it is no longer remembered.
    changes: u8,
}

/// A member's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Null,
    Text { escaped: bool },
    Number(Option<i64>),
}

/// A member as it has been found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// The value comes next.
    Next,
    /// It has been taken: null.
    Null,
    /// It has been taken: a text.
    Text(Text<'a>),
    /// It has been taken: a number, its text and its value if it is whole.
    Number(&'a [u8], Option<i64>),
}

/// Longer objects are read without being remembered.
const MOST: usize = 64;
/// Longer values are not remembered.
const VALUE_MOST: usize = 64;
/// A value that has changed so often in a row is expected to change.
const CHANGES_MOST: u8 = 8;

impl<M> Default for Order<M> {
    fn default() -> Self {
        Self { members: Vec::new() }
    }
}

impl<M: Copy> Order<M> {
    /// Takes the next key, and its value too if it is the one of last time; `at` counts the members of this object.
    /// `None` = the object has ended.
    #[inline(always)]
    pub(crate) fn next<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        members: &mut Members,
        at: &mut usize,
        named: impl Fn(&[u8]) -> M,
    ) -> Result<Option<(M, Found<'a>)>, Broken> {
        if !cursor.next_member(members)? {
            return Ok(None);
        }
        let index = *at;
        *at += 1;
        let Some(known) = self.members.get_mut(index) else { return self.learn(cursor, index, named).map(Some) };
        if let Some((token, value)) = &known.same
            && let Some(text) = cursor.same(token)
        {
            known.changes = 0;
            return Ok(Some((known.member, value.of(text, known.key_length))));
        }
        if cursor.key_like(&known.key) {
            if known.changes < CHANGES_MOST {
                known.remember(cursor)?;
            }
            return Ok(Some((known.member, Found::Next)));
        }
        self.learn(cursor, index, named).map(Some)
    }

    #[cold]
    fn learn<'a>(&mut self, cursor: &mut Cursor<'a>, index: usize, named: impl Fn(&[u8]) -> M) -> Result<(M, Found<'a>), Broken> {
        let key = cursor.key()?;
        let member = named(if key.escaped { b"" } else { key.raw });
        let known = Known { key: Token::of_key(key.raw), key_length: key.raw.len() + 3, member, same: None, changes: 0 };
        let room = self.members.len() < MOST;
        match self.members.get_mut(index) {
            Some(slot) => *slot = known,
            None if room => self.members.push(known),
            None => {}
        }
        Ok((member, Found::Next))
    }
}

impl<M> Known<M> {
    /// Remembers the value that comes next, without taking it.
    #[cold]
    fn remember(&mut self, cursor: &Cursor<'_>) -> Result<(), Broken> {
        self.changes += 1;
        self.same = None;
        let mut ahead = cursor.clone();
        let value = match ahead.kind()? {
            Kind::Null => {
                ahead.skip()?;
                Value::Null
            }
            Kind::Text => Value::Text { escaped: ahead.text()?.escaped },
            Kind::Number => Value::Number(ahead.number()?.integer),
            Kind::Boolean | Kind::Array | Kind::Object => return Ok(()),
        };
        let text = ahead.since(cursor.at() - self.key_length);
        if self.changes < CHANGES_MOST && text.len() <= VALUE_MOST + self.key_length {
            self.same = Some((Token::new(text.to_vec()), value));
        }
        Ok(())
    }
}

impl Value {
    /// The value, out of the member's text in the message at hand.
    #[inline(always)]
    fn of(self, text: &[u8], key_length: usize) -> Found<'_> {
        let raw = text.get(key_length..).unwrap_or_default();
        match self {
            Self::Null => Found::Null,
            Self::Text { escaped } => Found::Text(Text { raw: raw.get(1..raw.len() - 1).unwrap_or_default(), escaped }),
            Self::Number(integer) => Found::Number(raw, integer),
        }
    }
}
