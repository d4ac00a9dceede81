//! Objects of one kind have their members in one order: the next key is mostly the one that came here last time, and one
//! comparison of bytes says so.

use crate::json::{Broken, Cursor, Members};

/// The keys of an object as they came last time, each with what it stands for.
#[derive(Debug)]
pub(crate) struct Order<M> {
    keys: Vec<(Vec<u8>, M)>,
}

/// Longer objects are read without being remembered.
const MOST: usize = 64;

impl<M> Default for Order<M> {
    fn default() -> Self {
        Self { keys: Vec::new() }
    }
}

impl<M: Copy> Order<M> {
    /// Takes the next key; `at` counts the keys taken from this object. `None` = the object has ended.
    #[inline]
    pub(crate) fn next(
        &mut self,
        cursor: &mut Cursor<'_>,
        members: &mut Members,
        at: &mut usize,
        named: impl Fn(&[u8]) -> M,
    ) -> Result<Option<M>, Broken> {
        let (token, known) = match self.keys.get(*at) {
            Some((token, member)) => (token.as_slice(), Some(*member)),
            None => (&[][..], None),
        };
        let member = match (cursor.member_like(members, token)?, known) {
            (None, _) => return Ok(None),
            (Some(None), Some(member)) => member,
            (Some(None), None) => return Ok(None),
            (Some(Some(key)), _) => {
                let member = named(if key.escaped { b"" } else { key.raw });
                let learned = (token_of(key.raw), member);
                let room = self.keys.len() < MOST;
                match self.keys.get_mut(*at) {
                    Some(slot) => *slot = learned,
                    None if room => self.keys.push(learned),
                    None => {}
                }
                member
            }
        };
        *at += 1;
        Ok(Some(member))
    }
}

/// A key as it stands in JSON text without blanks: quotes and colon.
pub(crate) fn token_of(raw: &[u8]) -> Vec<u8> {
    let mut token = Vec::with_capacity(raw.len() + 3);
    token.push(b'"');
    token.extend_from_slice(raw);
    token.extend_from_slice(b"\":");
    token
}
