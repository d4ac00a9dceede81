//! Objects that hardly change from one message to the next: runs of members that are byte for byte those of the template are
//! recognised by one comparison, and only the others are read.
//!
//! ```text
//!   template  {"version":"3.6","connector":"postgresql","ts_ms":1770112800000,"db":"shop","lsn":169711976}
//!   message   {"version":"3.6","connector":"postgresql","ts_ms":1770112800007,"db":"shop","lsn":169712344}
//!              same, nothing to do                       read                same        read
//! ```

use crate::json::{Broken, Cursor, Digits, digits_in};

/// Keeps the values of an object's members between messages.
pub(crate) trait Block {
    /// What a key stands for.
    type Member: Copy;
    /// The member of a name.
    fn named(name: &[u8]) -> Self::Member;
    /// Forgets every value: the members that follow are all there are.
    fn clear(&mut self);
    /// Takes the next value and keeps it.
    fn read(&mut self, member: Self::Member, cursor: &mut Cursor<'_>) -> Result<(), Broken>;
    /// Keeps a value that is a whole number, as [`Block::read`] would. `false` = read it the other way.
    fn keep(&mut self, member: Self::Member, digits: Digits<'_>) -> bool;
}

/// An object as it came once.
#[derive(Debug)]
pub(crate) struct Template<M> {
    text: Vec<u8>,
    members: Vec<Place<M>>,
    /// The members whose value kept is not the template's, a bit each.
    stale: u64,
    /// Whether the block holds something else.
    forgotten: bool,
    /// How many members had to be read in the best case since the template was made.
    least: usize,
    /// How many objects in a row needed clearly more.
    surplus: usize,
    /// The members that had to be read last time, a bit each.
    read: u64,
    /// Once the same members have been read twice running: the text before each of them, and the text behind the last.
    path: Option<Path<M>>,
}

/// The members that are read, with the text that stands before each.
#[derive(Debug)]
struct Path<M> {
    steps: Vec<Step<M>>,
    rest: Vec<u8>,
    /// How often it has been gone.
    walks: usize,
}

/// A member on a path.
#[derive(Debug)]
struct Step<M> {
    /// The text between the value before and this one.
    before: Vec<u8>,
    member: M,
    /// How many digits its value was the last time; 0 = it was no whole number.
    digits: usize,
}

/// Where a member's value begins and ends in the text.
#[derive(Debug, Clone, Copy)]
struct Place<M> {
    member: M,
    value: usize,
    end: usize,
}

/// After so many objects in a row that needed more reading a new template is made.
const SURPLUS_MOST: usize = 16;
/// After a path has been gone so often a new template is made: a member may differ from the old one and stay as it is.
const WALKS_MOST: usize = 1024;
/// Objects of more members are read without a template.
const MEMBERS_MOST: usize = 64;

impl<M> Default for Template<M> {
    fn default() -> Self {
        Self { text: Vec::new(), members: Vec::new(), stale: 0, forgotten: false, least: usize::MAX, surplus: 0, read: 0, path: None }
    }
}

impl<M: Copy> Template<M> {
    /// Takes an object (the cursor is at its brace); afterwards the block has its members' values and no others.
    #[inline]
    pub(crate) fn read<B: Block<Member = M>>(&mut self, cursor: &mut Cursor<'_>, block: &mut B) -> Result<(), Broken> {
        let start = cursor.at();
        if self.forgotten {
            self.forgotten = false;
            self.stale = u64::MAX;
            self.path = None;
            block.clear();
        }
        if let Some(path) = &mut self.path {
            if path.walk(cursor, block)? {
                path.walks += 1;
                if path.walks == WALKS_MOST {
                    self.members.clear();
                    self.path = None;
                }
                return Ok(());
            }
            *cursor = cursor.back_to(start);
        }
        match self.follow(cursor, block) {
            Ok(Some(())) => Ok(()),
            Ok(None) => {
                *cursor = cursor.back_to(start);
                self.learn(cursor, block)
            }
            Err(broken) => {
                // A member that the path passes over may have been read.
                self.path = None;
                Err(broken)
            }
        }
    }

    /// What the block holds has been changed by something else: it is emptied and every member read again next time.
    pub(crate) fn forget(&mut self) {
        self.forgotten = true;
    }

    /// Takes an object of the template's shape; `None` = it has another, the cursor is anywhere.
    #[inline]
    fn follow<B: Block<Member = M>>(&mut self, cursor: &mut Cursor<'_>, block: &mut B) -> Result<Option<()>, Broken> {
        let mut from = 0;
        let mut next = 0;
        let (mut read, mut members) = (0, 0u64);
        while next < self.members.len() {
            let same = from + cursor.common(&self.text, from);
            // A member is the same when the byte behind it is, too.
            while let Some(place) = self.members.get(next)
                && place.end < same
            {
                if self.stale >> next & 1 == 1 {
                    block.read(place.member, &mut cursor.ahead(place.value - from))?;
                    self.stale &= !(1 << next);
                }
                next += 1;
            }
            let Some(place) = self.members.get(next) else { break };
            if place.value > same {
                return Ok(None);
            }
            cursor.advance(place.value - from);
            block.read(place.member, cursor)?;
            self.stale |= 1 << next;
            members |= 1 << next;
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
            self.members.clear();
            self.path = None;
        } else if members != self.read || self.path.is_none() {
            self.pave(members);
        }
        Ok(Some(()))
    }

    /// Makes the path past the members that stay, once it is the same twice running. It leads past values kept from the
    /// template only.
    #[cold]
    fn pave(&mut self, members: u64) {
        let again = members == self.read;
        self.read = members;
        self.path = None;
        if !again || self.stale & !members != 0 {
            return;
        }
        let mut steps = Vec::new();
        let mut from = 0;
        for (index, place) in self.members.iter().enumerate() {
            if members >> index & 1 == 1 {
                let before = self.text.get(from..place.value).unwrap_or_default().to_vec();
                steps.push(Step {
                    before,
                    member: place.member,
                    digits: digits_in(self.text.get(place.value..place.end).unwrap_or_default()),
                });
                from = place.end;
            }
        }
        self.path = Some(Path { steps, rest: self.text.get(from..).unwrap_or_default().to_vec(), walks: 0 });
    }

    /// Takes an object and makes it the template.
    #[cold]
    fn learn<B: Block<Member = M>>(&mut self, cursor: &mut Cursor<'_>, block: &mut B) -> Result<(), Broken> {
        *self = Self::default();
        block.clear();
        cursor.kind()?;
        let start = cursor.at();
        let mut keys = Vec::new();
        let mut members = cursor.object()?;
        while let Some(key) = cursor.member(&mut members)? {
            keys.push(key.raw);
            let member = B::named(if key.escaped { b"" } else { key.raw });
            cursor.kind()?;
            let value = cursor.at() - start;
            block.read(member, cursor)?;
            self.members.push(Place { member, value, end: cursor.at() - start });
        }
        self.text = cursor.since(start).to_vec();
        keys.sort_unstable();
        let twice = keys.windows(2).any(|pair| pair.first() == pair.last());
        if self.members.len() > MEMBERS_MOST || twice {
            // The last of two wins, which a member that is passed over could not.
            self.members.clear();
        }
        Ok(())
    }
}

impl<M: Copy> Path<M> {
    /// Reads the members on the path. `false` = the object is another, the cursor is anywhere; what has been read counts as
    /// read, because it is read anew each time.
    #[inline]
    fn walk<B: Block<Member = M>>(&mut self, cursor: &mut Cursor<'_>, block: &mut B) -> Result<bool, Broken> {
        for Step { before, member, digits } in &mut self.steps {
            if !cursor.literal_run(before) {
                return Ok(false);
            }
            let start = cursor.at();
            // That the number ends there is seen by the text that must come next.
            if *digits > 0
                && let Some(number) = cursor.digits(*digits)
            {
                if block.keep(*member, number) {
                    continue;
                }
                *cursor = cursor.back_to(start);
            }
            block.read(*member, cursor)?;
            *digits = digits_in(cursor.since(start));
        }
        Ok(cursor.literal_run(&self.rest))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The text of each member, by the first letter of its name.
    #[derive(Debug, Default)]
    struct Kept(BTreeMap<u8, String>);

    impl Block for Kept {
        type Member = u8;

        fn named(name: &[u8]) -> u8 {
            name.first().copied().unwrap_or(0)
        }

        fn clear(&mut self) {
            self.0.clear();
        }

        fn read(&mut self, member: u8, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
            self.0.insert(member, String::from_utf8_lossy(cursor.raw()?).into_owned());
            Ok(())
        }

        fn keep(&mut self, member: u8, digits: Digits<'_>) -> bool {
            self.0.insert(member, String::from_utf8_lossy(digits.text()).into_owned());
            true
        }
    }

    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("{\"a\":[1]}".to_owned()),
            (-20i64..2000).prop_map(|number| number.to_string()),
            "[ab]{0,3}".prop_map(|text| format!("\"{text}\"")),
            Just("\"a\\n\"".to_owned()),
            Just("nul".to_owned()),
        ]
    }

    #[test]
    fn of_an_object_that_breaks_off_nothing_is_left() {
        let (mut template, mut kept) = (Template::default(), Kept::default());
        let mut read = |text: &str| {
            let result = template.read(&mut Cursor::new(text.as_bytes()), &mut kept);
            result.map(|()| kept.0.values().cloned().collect::<Vec<_>>().join(" "))
        };
        for a in 1..5 {
            assert_eq!(read(&format!("{{\"a\":{a},\"b\":1,\"c\":1}}")), Ok(format!("{a} 1 1")));
        }
        assert!(read("{\"a\":5,\"b\":2,\"c\":nul}").is_err());
        assert_eq!(read("{\"a\":6,\"b\":1,\"c\":1}"), Ok("6 1 1".to_owned()));
    }

    proptest! {
        #[test]
        fn what_is_read_by_a_template_is_what_is_read_anew(
            rows in prop::collection::vec((prop::collection::vec((prop::sample::select(vec!["a", "b", "cc", "ddd"]), value()), 0..6), any::<bool>()), 1..60)
        ) {
            let (mut template, mut kept) = (Template::default(), Kept::default());
            for (row, disturbed) in rows {
                if disturbed {
                    kept.0.insert(b'a', "disturbed".to_owned());
                    template.forget();
                }
                let members: Vec<String> = row.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                let text = format!("{{{}}}", members.join(","));
                let mut cursor = Cursor::new(text.as_bytes());
                let mut anew = Kept::default();
                let expected = Template::default().read(&mut Cursor::new(text.as_bytes()), &mut anew);
                prop_assert_eq!(template.read(&mut cursor, &mut kept), expected);
                if expected.is_ok() {
                    prop_assert_eq!(cursor.at(), text.len());
                    prop_assert_eq!(&kept.0, &anew.0);
                }
            }
        }
    }
}
