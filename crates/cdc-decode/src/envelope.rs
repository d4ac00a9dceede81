//! Debezium's envelope: before, after, source and the operation.

use crate::json::{Broken, Cursor, Kind, Text};
use crate::order::Order;
use crate::source::{self, Source};

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
    pub source: Option<Source<'a>>,
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
    source: Order<source::Member>,
}

impl<'a> Envelope<'a> {
    /// Reads an envelope; each row image goes to `image`, which must take the object at the cursor.
    ///
    /// # Errors
    /// Those of `image`, and broken JSON.
    #[inline]
    pub(crate) fn read<E: From<Broken>>(
        cursor: &mut Cursor<'a>,
        orders: &mut Orders,
        mut image: impl FnMut(Side, &mut Cursor<'a>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut envelope = Self::default();
        let mut members = cursor.object()?;
        let mut at = 0;
        while let Some(member) = orders.envelope.next(cursor, &mut members, &mut at, Member::named)? {
            match (member, cursor.kind()?) {
                (Member::Before, Kind::Object) => {
                    envelope.duplicates += u64::from(envelope.before != Image::None);
                    envelope.before = Image::At(cursor.at());
                    image(Side::Before, cursor)?;
                }
                (Member::After, Kind::Object) => {
                    envelope.duplicates += u64::from(envelope.after != Image::None);
                    envelope.after = Image::At(cursor.at());
                    image(Side::After, cursor)?;
                }
                (Member::Before, _) => {
                    envelope.duplicates += u64::from(envelope.before != Image::None);
                    envelope.before = Image::None;
                    cursor.skip()?;
                }
                (Member::After, _) => {
                    envelope.duplicates += u64::from(envelope.after != Image::None);
                    envelope.after = Image::None;
                    cursor.skip()?;
                }
                (Member::Source, Kind::Object) => {
                    envelope.duplicates += u64::from(envelope.source.is_some());
                    envelope.source = Some(Source::read(cursor, &mut orders.source)?);
                }
                (Member::Op, Kind::Text) => {
                    envelope.duplicates += u64::from(envelope.op.is_some());
                    envelope.op = Some(cursor.text()?);
                }
                (Member::TsMs, Kind::Number) => {
                    envelope.duplicates += u64::from(envelope.handled_ms.is_some());
                    envelope.handled_ms = cursor.number()?.integer;
                }
                (Member::Transaction, Kind::Object) => envelope.transaction = transaction_id(cursor)?,
                _ => cursor.skip()?,
            }
        }
        Ok(envelope)
    }
}

fn transaction_id<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Text<'a>>, Broken> {
    let mut id = None;
    let mut members = cursor.object()?;
    while let Some(key) = cursor.member(&mut members)? {
        if key.raw == b"id" && cursor.kind()? == Kind::Text {
            id = Some(cursor.text()?);
        } else {
            cursor.skip()?;
        }
    }
    Ok(id)
}
