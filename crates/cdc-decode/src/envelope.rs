//! Debezium's envelope: before, after, source and the operation.

use crate::json::{Broken, Cursor, Digits, Text};
use crate::order::{Order, Place};
use crate::source::{self, Source, transaction_id};
use crate::template::{Block, Template};

/// A row image of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Image {
    /// Absent, null, or no object.
    #[default]
    None,
    /// An object at this byte.
    At(usize),
}

/// Which of the two images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// What an envelope says besides its row images.
#[derive(Debug, Default)]
pub(crate) struct Envelope<'a> {
    pub op: Option<Text<'a>>,
    /// When the connector handled the change, ms since the epoch.
    pub handled_ms: Option<i64>,
    /// The transaction's id, when the connector gives transaction metadata.
    pub transaction: Option<Text<'a>>,
    pub before: Image,
    pub after: Image,
    /// Keys of the envelope that came twice.
    pub duplicates: u64,
}

/// A member of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Before,
    After,
    Source,
    Op,
    TsMs,
    Transaction,
    Other,
}

impl Member {
    fn named(name: &[u8]) -> Self {
        match name {
            b"before" => Self::Before,
            b"after" => Self::After,
            b"source" => Self::Source,
            b"op" => Self::Op,
            b"ts_ms" => Self::TsMs,
            b"transaction" => Self::Transaction,
            _ => Self::Other,
        }
    }
}

/// What is remembered of the order in which members come.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    envelope: Order<Member>,
    source: Template<source::Member>,
}

impl Orders {
    /// The values kept of the source block are no longer those of the last one.
    pub(crate) fn forget_source(&mut self) {
        self.source.forget();
    }
}

/// Takes a key and a number of so many digits, if they come.
#[inline(always)]
fn time<'a, const DIGITS: usize>(cursor: &mut Cursor<'a>, key: &[u8; 9]) -> Option<Digits<'a>> {
    if cursor.literal(key) { cursor.digits(DIGITS) } else { None }
}

/// What follows the source block in nearly every message of PostgreSQL and others without transaction metadata, up to the
/// closing brace.
struct End<'a> {
    op: Text<'a>,
    handled_ms: Option<i64>,
}

impl<'a> End<'a> {
    /// Takes it, if it comes; the times are those of the years 2001 to 2286. `None` = something else, nothing taken.
    #[inline(always)]
    fn take(cursor: &mut Cursor<'a>) -> Option<Self> {
        let mut ahead = cursor.clone();
        if !ahead.literal(br#","transaction":null,"op":"#) {
            return None;
        }
        let raw = ahead.letter()?;
        let ms = time::<13>(&mut ahead, br#","ts_ms":"#)?;
        time::<16>(&mut ahead, br#","ts_us":"#)?;
        time::<19>(&mut ahead, br#","ts_ns":"#)?;
        if !ahead.byte(b'}') {
            return None;
        }
        *cursor = ahead;
        Some(Self { op: Text { raw, escaped: false }, handled_ms: ms.signed() })
    }
}

impl<'a> Envelope<'a> {
    /// Reads an envelope and its source block; each row image goes to `image`, which must take the object at the cursor and is told whether that
    /// side has come before.
    ///
    /// # Errors
    /// Those of `image`, and broken JSON.
    #[inline]
    pub(crate) fn read<E: From<Broken>>(
        cursor: &mut Cursor<'a>,
        orders: &mut Orders,
        source: &mut Source,
        mut image: impl FnMut(Side, bool, &mut Cursor<'a>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut envelope = Self::default();
        let mut seen_source = false;
        let mut place = Place::default();
        // What nearly every message is: each part in its place.
        if cursor.literal(br#"{"before":null"#) {
            place = Place::after(1);
        } else if cursor.literal_object(br#"{"before":{"#) {
            place = Place::after(1);
            envelope.before = Image::At(cursor.at());
            image(Side::Before, false, cursor)?;
        }
        if place == Place::after(1) && cursor.literal_object(br#","after":{"#) {
            place = Place::after(2);
            envelope.after = Image::At(cursor.at());
            image(Side::After, false, cursor)?;
        }
        if place == Place::after(2) && cursor.literal_object(br#","source":{"#) {
            place = Place::after(3);
            seen_source = true;
            orders.source.read(cursor, source)?;
            if let Some(end) = End::take(cursor) {
                (envelope.op, envelope.handled_ms) = (Some(end.op), end.handled_ms);
                return Ok(envelope);
            }
        }
        while let Some(member) = orders.envelope.next(cursor, &mut place, Member::named)? {
            match member {
                Member::Other => {
                    if !cursor.skip_plain() {
                        cursor.skip()?;
                    }
                }
                Member::Op => match cursor.plain_text() {
                    Some(raw) => envelope.see_op(Text { raw, escaped: false }),
                    // A string near the end of the message is read byte by byte.
                    None if cursor.peek()? == b'"' => envelope.see_op(cursor.text()?),
                    None => cursor.skip()?,
                },
                Member::TsMs => match cursor.small_integer() {
                    Some(ms) => envelope.handled_ms = Some(ms),
                    None if matches!(cursor.peek()?, b'-' | b'0'..=b'9') => envelope.handled_ms = cursor.number()?.integer,
                    None => cursor.skip()?,
                },
                Member::Before | Member::After | Member::Source | Member::Transaction => {
                    if cursor.peek()? != b'{' {
                        cursor.skip()?;
                        envelope.see_null(member);
                        continue;
                    }
                    match member {
                        Member::Before => {
                            let again = envelope.see_image(Side::Before, Image::At(cursor.at()));
                            image(Side::Before, again, cursor)?;
                        }
                        Member::After => {
                            let again = envelope.see_image(Side::After, Image::At(cursor.at()));
                            image(Side::After, again, cursor)?;
                        }
                        Member::Source => {
                            envelope.duplicates += u64::from(seen_source);
                            seen_source = true;
                            orders.source.read(cursor, source)?;
                        }
                        _ => envelope.transaction = transaction_id(cursor)?,
                    }
                }
            }
        }
        if !seen_source {
            source.clear();
            orders.source.forget();
        }
        Ok(envelope)
    }

    fn see_op(&mut self, code: Text<'a>) {
        self.duplicates += u64::from(self.op.is_some());
        self.op = Some(code);
    }

    /// Notes a row image; whether its side has come before.
    fn see_image(&mut self, side: Side, image: Image) -> bool {
        let place = match side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        };
        let again = *place != Image::None;
        *place = image;
        self.duplicates += u64::from(again);
        again
    }

    /// Notes that a member is null or of no use; the last of two wins.
    fn see_null(&mut self, member: Member) {
        match member {
            Member::Before => {
                self.see_image(Side::Before, Image::None);
            }
            Member::After => {
                self.see_image(Side::After, Image::None);
            }
            Member::Source | Member::Op | Member::TsMs | Member::Transaction | Member::Other => {}
        }
    }
}
