//! Objects of one kind have their members in one order: the next key is mostly the one that came here last time, and one
//! comparison of bytes says so.

use crate::json::{Broken, Cursor, Members, Token};

/// The keys of an object as they came last time, each with what it stands for.
#[derive(Debug)]
pub(crate) struct Order<M> {
    keys: Vec<Option<(Token, M)>>,
}

/// Where in an object the reading is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Members taken so far.
    at: usize,
}

/// Longer objects are read without being remembered.
const MOST: usize = 64;

impl<M> Default for Order<M> {
    fn default() -> Self {
        Self { keys: Vec::new() }
    }
}

impl Place {
    /// Behind so many members.
    pub(crate) fn after(members: usize) -> Self {
        Self { at: members }
    }
}

impl<M: Copy> Order<M> {
    /// Takes the next key. `None` = the object has ended.
    #[inline(always)]
    pub(crate) fn next(&mut self, cursor: &mut Cursor<'_>, place: &mut Place, named: impl Fn(&[u8]) -> M) -> Result<Option<M>, Broken> {
        if let Some(Some((token, member))) = self.keys.get(place.at)
            && cursor.expect(token)
        {
            place.at += 1;
            return Ok(Some(*member));
        }
        if place.at > 0 && cursor.byte(b'}') {
            return Ok(None);
        }
        self.learn(cursor, place, named)
    }

    #[cold]
    fn learn(&mut self, cursor: &mut Cursor<'_>, place: &mut Place, named: impl Fn(&[u8]) -> M) -> Result<Option<M>, Broken> {
        let first = place.at == 0;
        let mut members = if first { cursor.object()? } else { Members::inside() };
        let Some(key) = cursor.member(&mut members)? else { return Ok(None) };
        let member = named(if key.escaped { b"" } else { key.raw });
        let learned = (Token::of_key(first, key.raw), member);
        if place.at < MOST {
            let length = self.keys.len().max(place.at + 1);
            self.keys.resize_with(length, || None);
            if let Some(key) = self.keys.get_mut(place.at) {
                *key = Some(learned);
            }
        }
        place.at += 1;
        Ok(Some(member))
    }
}
