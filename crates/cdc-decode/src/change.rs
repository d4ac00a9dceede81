//! Change records: envelopes and flattened rows, into rows of a change table.

use std::borrow::Cow;

use tributary_specs::DataType;

use crate::avro;
use crate::column::Refused;
use crate::decoded::{IgnoreReason, ReasonCode};
use crate::decoder::{Decoder, Outcome, Verdict};
use crate::envelope::{Envelope, Image, Side};
use crate::error::Error;
use crate::ignored;
use crate::infer::Inference;
use crate::json::{Broken, Cursor, Kind, Text};
use crate::layout::{Field, Layout, Slot};
use crate::op::Op;
use crate::position::{Claim, Placed, Position};
use crate::record::{Header, Record};
use crate::row::{AboutRow, Found, Halt, Rules, read_row};
use crate::source::Source;
use crate::struct_text;
use crate::template::Block;
use crate::wire::Wire;
use crate::wrapped::Opened;

/// Header of the delete half of a key change: the key the row has from now on.
const NEW_KEY: &str = "__debezium.newkey";
/// Header of the create half of a key change: the key the row had.
const OLD_KEY: &str = "__debezium.oldkey";
/// Why most headers of key changes go to quarantine.
const UNREADABLE: &str = "cannot be read";

/// The bytes of a value as text; a byte-order mark in front is no part of it. `None` = not UTF-8.
pub(crate) fn utf8(value: &[u8]) -> Option<&[u8]> {
    simdutf8::basic::from_utf8(value).ok()?;
    Some(value.strip_prefix(b"\xef\xbb\xbf").unwrap_or(value))
}

fn not_utf8() -> Verdict {
    Verdict::Rejected(ReasonCode::NotUtf8, "the value is not utf-8".to_owned())
}

/// Which layout a message's rows have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Bare,
    Plan(usize),
}

/// A message whose payload begins at `at`.
struct Payload {
    shape: Shape,
    at: usize,
    /// Whether the wrapper's bracket follows it.
    closing: bool,
    /// Whether it is the whole message.
    whole: bool,
}

/// Takes what follows a payload: the wrapper's bracket and nothing else. A payload that was found by looking through the
/// whole message lies in text that has been looked at already.
fn close(cursor: &mut Cursor<'_>, payload: &Payload) -> Result<(), Broken> {
    if payload.closing {
        cursor.close_object()?;
        return cursor.end();
    }
    if payload.whole { cursor.end() } else { Ok(()) }
}

impl Decoder {
    /// An envelope of Debezium.
    pub(crate) fn change<'r>(&mut self, record: &'r Record<'r>, row: usize, found: &mut (Found<'r>, Found<'r>)) -> Outcome {
        let Some(value) = record.value.filter(|value| !value.is_empty()) else { return Ok(Verdict::Ignored(IgnoreReason::Tombstone)) };
        let Some(value) = utf8(value) else { return Ok(not_utf8()) };
        let payload = match self.payload(value, record, row)? {
            Ok(payload) => payload,
            Err(Verdict::Ignored(IgnoreReason::Tombstone)) => return Ok(Verdict::Ignored(IgnoreReason::Tombstone)),
            Err(verdict) => return Ok(verdict),
        };
        let mut cursor = Cursor::from(value, payload.at);
        if cursor.kind()? != Kind::Object {
            cursor.skip()?;
            return Ok(Verdict::Rejected(ReasonCode::UnknownShape, "the value is no object".to_owned()));
        }
        let policy = self.table.policy();
        let (after_found, before_found) = found;
        let aside = !(self.needs_no_proof() || self.shown.are_complete() || keyless(record));
        let envelope = {
            let Self { plans, bare, table, reader, orders, source, .. } = &mut *self;
            let (layout, undeclared) = layout_of(payload.shape, plans, bare, &table.undeclared);
            let rules = Rules { policy, undeclared };
            let (rows, before, unproved) = (&mut table.rows, &mut table.before, &mut table.unproved);
            Envelope::read::<Halt>(&mut cursor, orders, source, |side, again, cursor| match side {
                Side::After => {
                    if again {
                        rows.iter_mut().for_each(|(_, column)| column.truncate(row));
                        after_found.clear();
                    }
                    read_row(reader, cursor, layout, rows, row, rules, after_found)
                }
                Side::Before => {
                    if again {
                        before.truncate(row);
                        before_found.clear();
                    }
                    let (image, row) = if aside { (unproved.cleared(before), 0) } else { (&mut *before, row) };
                    image.fill(row);
                    let Some(fields) = image.fields() else { return Ok(()) };
                    read_row(reader, cursor, layout, fields, row, rules, before_found)
                }
            })?
        };
        close(&mut cursor, &payload)?;
        self.counts.duplicates += envelope.duplicates;
        let Some(code) = envelope.op else {
            let mut again = Cursor::from(value, payload.at);
            return Ok(match ignored::by_object(record.topic, &mut again)? {
                Some(reason) => Verdict::Ignored(reason),
                None => Verdict::Rejected(ReasonCode::UnknownShape, "no change event: there is no operation code".to_owned()),
            });
        };
        if code.raw == b"m" {
            return Ok(Verdict::Ignored(IgnoreReason::LogicalMessage));
        }
        let Some(op) = Op::of(code.raw) else {
            return Ok(Verdict::Rejected(ReasonCode::UnknownOp, "the operation code is none of r, c, u, d, t, m".to_owned()));
        };
        if let Image::At(at) = envelope.after
            && self.layout(payload.shape).is_signal()
            && ignored::is_signal(&mut Cursor::from(value, at))?
        {
            return Ok(Verdict::Ignored(IgnoreReason::Signal));
        }
        self.envelope_row(record, value, row, op, &payload, &envelope, aside, found)
    }

    #[allow(clippy::too_many_arguments)]
    fn envelope_row<'r>(
        &mut self,
        record: &'r Record<'r>,
        value: &'r [u8],
        row: usize,
        op: Op,
        payload: &Payload,
        envelope: &Envelope<'r>,
        aside: bool,
        found: &mut (Found<'r>, Found<'r>),
    ) -> Outcome {
        let nulls_after = if envelope.after == Image::None { 0 } else { found.0.nulls };
        let trusted = self.trusts_before(payload.shape, envelope, aside, keyless(record), row, nulls_after);
        match op {
            Op::Read | Op::Create | Op::Update => {
                if envelope.after == Image::None {
                    return Ok(Verdict::Rejected(ReasonCode::MissingRow, format!("a {} without its row", op.name())));
                }
            }
            Op::Delete => {
                self.table.rows.iter_mut().for_each(|(_, column)| column.truncate(row));
                found.0.clear();
                match envelope.before {
                    Image::At(at) if trusted => self.image(Side::After, payload.shape, value, at, row, &mut found.0)?,
                    before => {
                        if let Some(verdict) = self.key_row(record, payload.shape, value, before, row, &mut found.0)? {
                            return Ok(verdict);
                        }
                    }
                }
            }
            Op::Truncate => {
                self.table.rows.iter_mut().for_each(|(_, column)| column.truncate(row));
                found.0.clear();
            }
        }
        match envelope.before {
            // A first image may have been followed by a null one. Nulls are filled in later.
            Image::None if envelope.duplicates == 0 => {}
            Image::At(at) if trusted && op != Op::Truncate => {
                if aside {
                    self.image(Side::Before, payload.shape, value, at, row, &mut found.1)?;
                }
                self.close_before(row, &found.1)?;
            }
            _ => self.table.before.truncate(row),
        }
        let about = About { handled_ms: envelope.handled_ms, transaction: envelope.transaction };
        let verdict = self.finish_row(record, row, op, &about, &found.0)?;
        if matches!(verdict, Verdict::Row) {
            self.see_before(op, row);
        }
        Ok(verdict)
    }

    /// Whether an envelope's before-image is the whole old row; see [`crate::before`]. `aside` = it has been read aside, not as row
    /// number `row`.
    fn trusts_before(&mut self, shape: Shape, envelope: &Envelope<'_>, aside: bool, keyless: bool, row: usize, nulls_after: u64) -> bool {
        if self.needs_no_proof() {
            return true;
        }
        if envelope.before == Image::None {
            return false;
        }
        if self.shown.are_complete() || keyless {
            return true;
        }
        let Self { plans, bare, table, .. } = &mut *self;
        let (layout, _) = layout_of(shape, plans, bare, &table.undeclared);
        let is_bare = shape == Shape::Bare;
        let (image, row) = if aside { (table.unproved.image(), 0) } else { (&mut table.before, row) };
        let Some(fields) = image.fields() else { return false };
        layout.fields.iter().any(|field| match field.slot {
            Slot::Column(column) => {
                let takes_null = if is_bare { column < 64 && nulls_after >> column & 1 == 1 } else { field.shows_null };
                takes_null && fields.get(column).is_some_and(|(_, values)| values.is_valid(row))
            }
            _ => false,
        })
    }

    /// Ends a before-image. One with a value that the source did not send is not the whole old row: it is left out.
    pub(crate) fn close_before(&mut self, row: usize, found: &Found<'_>) -> Result<(), Halt> {
        match found.unavailable.is_empty() {
            true => self.table.before.close().map_err(too_large),
            false => {
                self.table.before.truncate(row);
                Ok(())
            }
        }
    }

    /// Whether before-images are complete by declaration or by the kind of source.
    pub(crate) fn needs_no_proof(&self) -> bool {
        self.declared_full || self.source.sends_full_rows()
    }

    /// After a row of a change stands: what it says of before-images.
    pub(crate) fn see_before(&mut self, op: Op, row: usize) {
        if matches!(op, Op::Update | Op::Delete)
            && !self.needs_no_proof()
            && let Some(position) = self.tracks.again().and_then(|track| track.last())
        {
            self.shown.see(position, self.table.before.is_valid(row));
        }
    }

    /// Takes a row image again: into the business columns, or into the struct of before-images, whose row it does not end.
    fn image<'r>(&mut self, side: Side, shape: Shape, value: &'r [u8], at: usize, row: usize, found: &mut Found<'r>) -> Result<(), Halt> {
        let policy = self.table.policy();
        let Self { plans, bare, table, reader, .. } = &mut *self;
        let (layout, undeclared) = layout_of(shape, plans, bare, &table.undeclared);
        let columns = match side {
            Side::After => &mut table.rows,
            Side::Before => {
                table.before.fill(row);
                let Some(fields) = table.before.fields() else { return Ok(()) };
                fields
            }
        };
        let duplicates = reader.duplicates;
        read_row(reader, &mut Cursor::from(value, at), layout, columns, row, Rules { policy, undeclared }, found)?;
        reader.duplicates = duplicates;
        Ok(())
    }

    /// The row of a delete of which only the key can be trusted: from the message key, else the declared keys in the image.
    fn key_row<'r>(
        &mut self,
        record: &'r Record<'r>,
        shape: Shape,
        value: &'r [u8],
        before: Image,
        row: usize,
        found: &mut Found<'r>,
    ) -> Result<Option<Verdict>, Halt> {
        if let Some(done) = self.message_key_row(record, row, found)? {
            return Ok(done);
        }
        if let (Image::At(at), Some(keys)) = (before, self.table.keys.clone().filter(|keys| !keys.is_empty())) {
            self.table.rows.iter_mut().for_each(|(_, column)| column.truncate(row));
            found.clear();
            self.image(Side::After, shape, value, at, row, found)?;
            self.only_keys(&keys, row, found);
            return Ok(None);
        }
        Ok(Some(Self::keyless_delete()))
    }

    /// The row of a delete from its message key. `None` = there is no key; the inner `Some` = it is no row, or is to be read again.
    pub(crate) fn message_key_row<'r>(
        &mut self,
        record: &'r Record<'r>,
        row: usize,
        found: &mut Found<'r>,
    ) -> Result<Option<Option<Verdict>>, Halt> {
        let Some(key) = record.key.filter(|key| !key.is_empty()) else { return Ok(None) };
        if avro::framed(key) {
            return self.avro_key_image(key, row, found).map(Some);
        }
        let Some(key) = utf8(key) else {
            return Ok(Some(Some(Verdict::Rejected(ReasonCode::NotUtf8, "the key is not utf-8".to_owned()))));
        };
        Ok(match self.key_image(record, key, row, found)? {
            Some(true) => Some(None),
            Some(false) => None,
            None => Some(Some(Verdict::Again)),
        })
    }

    /// Makes every column null but those of the key.
    pub(crate) fn only_keys(&mut self, keys: &[String], row: usize, found: &mut Found<'_>) {
        found.clear();
        for (name, column) in &mut self.table.rows {
            if !keys.contains(name) {
                column.truncate(row);
            }
        }
    }

    pub(crate) fn keyless_delete() -> Verdict {
        let message = "a delete without a key, whose before-image cannot be trusted (declare replica_identity or keys)".to_owned();
        Verdict::Rejected(ReasonCode::MissingKey, message)
    }

    /// Takes a key object into the business columns. `Some(false)` = it is null; `None` = read the record again.
    fn key_image<'r>(&mut self, record: &'r Record<'r>, key: &'r [u8], row: usize, found: &mut Found<'r>) -> Result<Option<bool>, Halt> {
        let (shape, at) = match self.key_plans.open(key)? {
            Opened::Null => return Ok(Some(false)),
            Opened::Bare { at, .. } => (Shape::Bare, at),
            Opened::Wrapped { plan, at, .. } => (Shape::Plan(plan), at),
            Opened::New(new) => {
                let mut layout = Layout::default();
                for schema in &new.schema.fields {
                    let wire = schema.wire().unwrap_or(Wire::Anything);
                    let slot = match self.table.place(&schema.field, &wire.natural(), wire.clone(), false, row) {
                        crate::table::Placement::At(slot) => slot,
                        crate::table::Placement::Frozen => Slot::Rescue,
                    };
                    layout.set(Field::new(&schema.field, slot, wire, false));
                }
                self.key_plans.keep(*new, layout);
                return Ok(None);
            }
        };
        let mut cursor = Cursor::from(key, at);
        if cursor.kind()? != Kind::Object {
            return Ok(Some(false));
        }
        let policy = self.table.policy();
        let Self { key_plans, bare_key, table, reader, .. } = &mut *self;
        let (layout, undeclared) = layout_of(shape, key_plans, bare_key, &table.undeclared);
        match read_row(reader, &mut cursor, layout, &mut table.rows, row, Rules { policy, undeclared }, found) {
            Ok(()) => Ok(Some(true)),
            Err(Halt::Unknown(name)) => {
                let mut field = self.table.open_field(&name);
                if field.slot == Slot::Open {
                    if !self.is_wrapped(record) {
                        return Err(Halt::Unknown(name));
                    }
                    // No column of the rows, whose schema is known: what a router added, for example.
                    field.slot = Slot::Rescue;
                }
                self.bare_key.set(field);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// A row of `ExtractNewRecordState`.
    pub(crate) fn flattened<'r>(&mut self, record: &'r Record<'r>, row: usize, found: &mut (Found<'r>, Found<'r>)) -> Outcome {
        let value = record.value.filter(|value| !value.is_empty());
        let Some(value) = value else { return self.flattened_tombstone(record, row, found) };
        let Some(value) = utf8(value) else { return Ok(not_utf8()) };
        let payload = match self.payload(value, record, row)? {
            Ok(payload) => payload,
            Err(Verdict::Ignored(IgnoreReason::Tombstone)) => return self.flattened_tombstone(record, row, found),
            Err(verdict) => return Ok(verdict),
        };
        let mut cursor = Cursor::from(value, payload.at);
        if cursor.kind()? != Kind::Object {
            cursor.skip()?;
            return Ok(Verdict::Rejected(ReasonCode::UnknownShape, "the value is no object".to_owned()));
        }
        let topic = record.topic;
        if (topic.starts_with("__debezium") || topic.ends_with(".transaction") || !topic.contains('.'))
            && let Some(reason) = ignored::by_object(topic, &mut cursor.clone())?
        {
            return Ok(Verdict::Ignored(reason));
        }
        found.0.about = AboutRow::default();
        self.image_at(&payload, &mut cursor, row, &mut found.0)?;
        close(&mut cursor, &payload)?;
        let about = std::mem::take(&mut found.0.about);
        self.deletes_are_rows |= about.deleted.is_some();
        let code = match about.op {
            Some(code) => Some(Cow::Borrowed(code.raw)),
            None => header(record.headers, "__op").map(unquoted),
        };
        let Some(op) = Op::of_flattened(code.as_deref(), about.deleted) else {
            return Ok(Verdict::Rejected(ReasonCode::UnknownOp, "the operation code is none of r, c, u, d, t".to_owned()));
        };
        let trusted = self.begin_flattened(about.source, row);
        if op == Op::Delete && trusted {
            self.image(Side::Before, payload.shape, value, payload.at, row, &mut found.1)?;
            self.close_before(row, &found.1)?;
        } else if op == Op::Delete {
            self.table.rows.iter_mut().for_each(|(_, column)| column.truncate(row));
            found.0.clear();
            if let Some(verdict) = self.key_row(record, payload.shape, value, Image::At(payload.at), row, &mut found.0)? {
                return Ok(verdict);
            }
        }
        let about = About { handled_ms: about.handled_ms, transaction: None };
        self.finish_row(record, row, op, &about, &found.0)
    }

    /// Takes over a flattened row's source; whether the row of a delete is the whole old row.
    pub(crate) fn begin_flattened(&mut self, source: Source, row: usize) -> bool {
        self.source.replace(source);
        self.orders.forget_source();
        self.table.before.truncate(row);
        self.declared_full || self.source.sends_full_rows() || self.source.file.get().is_some()
    }

    /// A null value in a flattened feed: the delete itself, unless deletes come as rows of their own.
    fn flattened_tombstone<'r>(&mut self, record: &'r Record<'r>, row: usize, found: &mut (Found<'r>, Found<'r>)) -> Outcome {
        if self.deletes_are_rows || record.key.is_none_or(<[u8]>::is_empty) {
            return Ok(Verdict::Ignored(IgnoreReason::Tombstone));
        }
        if let Some(verdict) = self.key_row(record, Shape::Bare, &[], Image::None, row, &mut found.0)? {
            return Ok(match verdict {
                Verdict::Rejected(ReasonCode::MissingKey, _) => Verdict::Ignored(IgnoreReason::Tombstone),
                other => other,
            });
        }
        self.source.clear();
        self.orders.forget_source();
        let about = About { handled_ms: record.timestamp_ms, transaction: None };
        self.finish_row_at(record, row, Op::Delete, &about, &found.0, true)
    }

    /// A plain JSON object.
    pub(crate) fn plain<'r>(&mut self, record: &'r Record<'r>, row: usize, found: &mut Found<'r>) -> Outcome {
        let Some(value) = record.value else { return Ok(Verdict::Ignored(IgnoreReason::Tombstone)) };
        let Some(value) = utf8(value) else { return Ok(not_utf8()) };
        let payload = match self.payload(value, record, row)? {
            Ok(payload) => payload,
            Err(verdict) => return Ok(verdict),
        };
        let mut cursor = Cursor::from(value, payload.at);
        if cursor.kind()? != Kind::Object {
            cursor.skip()?;
            return Ok(Verdict::Rejected(ReasonCode::UnknownShape, "the value is no object".to_owned()));
        }
        self.image_at(&payload, &mut cursor, row, found)?;
        close(&mut cursor, &payload)?;
        self.finish_plain(record, row, found)
    }

    /// Ends a row of a feed of plain rows.
    pub(crate) fn finish_plain(&mut self, record: &Record<'_>, row: usize, found: &Found<'_>) -> Outcome {
        self.note_lost(found);
        let write = |out: &mut Vec<u8>| out.extend(format!("{}/{:010}/{:020}", record.topic, record.partition, record.offset).into_bytes());
        let position = (!record.topic.is_empty()).then_some(write);
        write_rescued(found, &mut self.scratch.rescued);
        self.ours.provenance.push(row, record, position, None, &self.scratch.rescued).map_err(too_large)?;
        Ok(Verdict::Row)
    }

    fn image_at<'r>(&mut self, payload: &Payload, cursor: &mut Cursor<'r>, row: usize, found: &mut Found<'r>) -> Result<(), Halt> {
        let policy = self.table.policy();
        let Self { plans, bare, table, reader, .. } = &mut *self;
        let (layout, undeclared) = layout_of(payload.shape, plans, bare, &table.undeclared);
        read_row(reader, cursor, layout, &mut table.rows, row, Rules { policy, undeclared }, found)
    }

    fn layout(&self, shape: Shape) -> &Layout {
        match shape {
            Shape::Bare => &self.bare,
            Shape::Plan(plan) => self.plans.get(plan).map_or(&self.bare, |plan| &plan.layout),
        }
    }

    /// Finds a message's payload and the layout of its rows. The inner error = it is no row, or is to be read again.
    #[allow(clippy::type_complexity)]
    fn payload(&mut self, value: &[u8], record: &Record<'_>, row: usize) -> Result<Result<Payload, Verdict>, Halt> {
        Ok(match self.plans.open(value)? {
            Opened::Bare { at, whole } => Ok(Payload { shape: Shape::Bare, at, closing: false, whole }),
            Opened::Wrapped { plan, at, closing } => Ok(Payload { shape: Shape::Plan(plan), at, closing, whole: false }),
            Opened::Null => Err(Verdict::Ignored(IgnoreReason::Tombstone)),
            Opened::New(new) => Err(self.lay_out(new, record, row)),
        })
    }

    pub(crate) fn finish_row(&mut self, record: &Record<'_>, row: usize, op: Op, about: &About<'_>, found: &Found<'_>) -> Outcome {
        self.finish_row_at(record, row, op, about, found, false)
    }

    /// Places a change and ends its row.
    fn finish_row_at(&mut self, record: &Record<'_>, row: usize, op: Op, about: &About<'_>, found: &Found<'_>, placeless: bool) -> Outcome {
        let mut claim: Claim = self.source.claim(record.offset, op == Op::Read);
        if placeless {
            claim.position = None;
        }
        let track = self.tracks.get(record.topic, record.partition);
        let placed: Placed = match track.place(&claim, self.source.server(), record.offset, self.backwards) {
            Ok(placed) => placed,
            Err((from, to)) => return Ok(Verdict::Stopped(Box::new(self.backwards_error(record, &from, &to)))),
        };
        if let Some(verdict) = self.push_key_change(record, row, op)? {
            return Ok(verdict);
        }
        self.push_ours(record, row, op, &placed.position, about, found)?;
        if let Some(track) = self.tracks.again() {
            track.accept(&placed, &claim, self.source.server());
        }
        if found.bare {
            self.counts.bare_row(row);
        }
        self.counts.repeated += u64::from(placed.repeated);
        self.counts.placeless += u64::from(claim.position.is_none());
        self.note_lost(found);
        self.learn_keys(record);
        Ok(Verdict::Row)
    }

    fn backwards_error(&self, record: &Record<'_>, from: &Position, to: &Position) -> Error {
        let text = |position: &Position| {
            let mut out = Vec::new();
            position.write(&mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        Error::PositionsBackwards { feed: self.feed.clone(), from: text(from), to: text(to), place: record.place() }
    }

    fn push_ours(
        &mut self,
        record: &Record<'_>,
        row: usize,
        op: Op,
        position: &Position,
        about: &About<'_>,
        found: &Found<'_>,
    ) -> Result<(), Halt> {
        let source = &self.source;
        let rescued = &mut self.scratch.rescued;
        write_rescued(found, rescued);
        let mut resolved = Vec::new();
        let transaction = match about.transaction {
            Some(transaction) => Some(transaction.resolve(&mut resolved)?),
            None => source.tx_id.get().or(source.gtid.get()),
        };
        let names = &self.table.rows;
        let unavailable = found.unavailable.iter().map(|column| names.get(*column).map_or("", |(name, _)| name.as_str()));
        if let Some(change) = &mut self.ours.change {
            change.push(row, op, unavailable, source, transaction).map_err(too_large)?;
        }
        let event_time = source.ts_micros().or_else(|| about.handled_ms.and_then(|ms| ms.checked_mul(1000)));
        self.ours.provenance.push(row, record, Some(|out: &mut Vec<u8>| position.write(out)), event_time, rescued).map_err(too_large)
    }

    fn note_lost(&mut self, found: &Found<'_>) {
        for (column, lost) in &found.lost {
            let name = self.table.specs.get(*column).map_or("", |spec| spec.name.as_str());
            let note = format!("column {name}: {} became null, kept in _rescued_data", lost.name());
            *self.counts.notes.entry(note).or_default() += 1;
        }
    }

    /// The first message key tells the key columns where the feed does not.
    fn learn_keys(&mut self, record: &Record<'_>) {
        if self.table.keys.is_some() {
            return;
        }
        if let Some(key) = record.key.filter(|key| avro::framed(key)) {
            self.table.keys = Some(self.avro_key_names(key)).filter(|names| !names.is_empty());
            return;
        }
        let Some(key) = record.key.and_then(utf8) else { return };
        if let Ok(names) = self.key_names(key)
            && !names.is_empty()
        {
            self.table.keys = Some(names);
        }
    }

    fn key_names(&mut self, key: &[u8]) -> Result<Vec<String>, Broken> {
        let at = match self.key_plans.open(key)? {
            Opened::Null => return Ok(Vec::new()),
            Opened::Bare { at, .. } | Opened::Wrapped { at, .. } => at,
            Opened::New(new) => return Ok(new.schema.fields.iter().map(|field| field.field.clone()).collect()),
        };
        let mut cursor = Cursor::from(key, at);
        if cursor.kind()? != Kind::Object {
            return Ok(Vec::new());
        }
        names(&mut cursor)
    }

    /// Both halves of a key change, null in other rows.
    fn push_key_change(&mut self, record: &Record<'_>, row: usize, op: Op) -> Result<Option<Verdict>, Halt> {
        let wanted = match op {
            Op::Delete => header(record.headers, NEW_KEY),
            Op::Read | Op::Create | Op::Update => header(record.headers, OLD_KEY),
            Op::Truncate => None,
        };
        let Some(value) = wanted else {
            // Nulls are filled in later.
            return Ok(None);
        };
        let broken = |problem: &str| Verdict::Rejected(ReasonCode::BrokenHeader, format!("the header of a key change {problem}"));
        self.learn_keys(record);
        self.table.settle_keys(row);
        if self.table.key_changes.is_none() {
            return Ok(Some(broken("comes without a key, and none is declared")));
        }
        if avro::framed(value) {
            let taken = self.avro_key_change(value, op == Op::Delete, row)?;
            return Ok((!taken).then(|| broken(UNREADABLE)));
        }
        let text = unquoted(value);
        let Some(mut text) = utf8(&text).map(Cow::Borrowed) else { return Ok(Some(broken("is not utf-8"))) };
        if struct_text::is_struct(&text) {
            let names = record.key.and_then(utf8).and_then(|key| self.key_names(key).ok()).unwrap_or_default();
            match struct_text::as_json(&text, &names, |name| self.table.find(name).is_some_and(|column| self.table.is_text(column))) {
                Ok(json) => text = Cow::Owned(json),
                Err(problem) => return Ok(Some(broken(problem))),
            }
        }
        let Some((layout, at)) = self.key_columns(&text).ok().flatten() else { return Ok(Some(broken(UNREADABLE))) };
        let Some((from, to)) = &mut self.table.key_changes else { return Ok(Some(broken(UNREADABLE))) };
        let (filled, empty) = if op == Op::Delete { (to, from) } else { (from, to) };
        filled.truncate(row);
        empty.truncate(row);
        filled.fill(row);
        let rules = Rules { policy: tributary_specs::SchemaPolicy::Rescue, undeclared: &[] };
        let mut found = Found::default();
        let Some(fields) = filled.fields() else { return Ok(Some(broken(UNREADABLE))) };
        let read = read_row(&mut self.reader, &mut Cursor::from(&text, at), &layout, fields, row, rules, &mut found);
        if read.is_err() || !found.rescued.is_empty() {
            return Ok(Some(broken("has a value that is none of its column's type")));
        }
        filled.close().map_err(too_large)?;
        Ok(None)
    }

    /// How the fields of a key in a header go into the struct of a key change.
    fn key_columns(&mut self, text: &[u8]) -> Result<Option<(Layout, usize)>, Broken> {
        let Some((from, _)) = &self.table.key_changes else { return Ok(None) };
        let DataType::Struct(specs) = from.data_type().clone() else { return Ok(None) };
        let (schema, at) = match self.key_plans.open(text)? {
            Opened::Null => return Ok(None),
            Opened::Bare { at, .. } => (None, at),
            Opened::Wrapped { plan, at, .. } => (self.key_plans.get(plan).map(|plan| plan.schema.clone()), at),
            Opened::New(new) => {
                let at = new.payload_at();
                (Some(new.schema), at)
            }
        };
        let mut cursor = Cursor::from(text, at);
        if cursor.kind()? != Kind::Object {
            return Ok(None);
        }
        let mut layout = Layout::default();
        for (column, spec) in specs.iter().enumerate() {
            let told = schema.as_ref().and_then(|schema| schema.child(&spec.name)).and_then(|schema| schema.wire());
            let seen = || {
                let field = self.plans.latest()?.layout.fields.iter().find(|field| field.name == spec.name)?;
                Some(field.wire.clone())
            };
            let bare = || self.table.find(&spec.name).and_then(|column| self.table.wires.get(column)).cloned();
            let seen_in_avro = || self.avro.wire(&spec.name).cloned();
            let wire = told.or_else(seen).or_else(seen_in_avro).or_else(bare).unwrap_or(Wire::Anything);
            layout.set(Field::new(&spec.name, Slot::Column(column), wire, false));
        }
        let mut names = self.key_names(text)?;
        names.retain(|name| !specs.iter().any(|spec| spec.name == *name));
        for name in names {
            // A key field that is no column, such as the shard a router adds.
            layout.set(Field::new(&name, Slot::About(crate::layout::About::Source(crate::source::Member::Other)), Wire::Anything, false));
        }
        Ok(Some((layout, at)))
    }

    /// The keys of a bare message's row image, in their order; none when there is no such image.
    pub(crate) fn row_names(&mut self, record: &Record<'_>) -> Vec<String> {
        let Some(value) = record.value.and_then(utf8) else { return Vec::new() };
        let Ok(Opened::Bare { at, .. }) = self.plans.open(value) else { return Vec::new() };
        let image = if self.table.is_plain() || self.is_flattened() {
            Some(at)
        } else {
            images(&mut Cursor::from(value, at)).ok().and_then(|(before, after)| after.or(before))
        };
        image.and_then(|at| names(&mut Cursor::from(value, at)).ok()).unwrap_or_default()
    }

    /// Whether a record's message has a schema block.
    pub(crate) fn is_wrapped(&mut self, record: &Record<'_>) -> bool {
        let Some(value) = record.value.and_then(utf8) else { return false };
        matches!(self.plans.open(value), Ok(Opened::Wrapped { .. }))
    }

    /// Whether an envelope carries a signal to the connector.
    pub(crate) fn is_signal_message(&mut self, record: &Record<'_>) -> bool {
        let Some(value) = record.value.and_then(utf8) else { return false };
        let at = match self.plans.open(value) {
            Ok(Opened::Bare { at, .. } | Opened::Wrapped { at, .. }) => at,
            Ok(Opened::New(new)) => new.payload_at(),
            _ => return false,
        };
        let images = images(&mut Cursor::from(value, at)).unwrap_or_default();
        images.1.is_some_and(|at| ignored::is_signal(&mut Cursor::from(value, at)).unwrap_or(false))
    }

    /// What a record with unknown fields is, if it is no row.
    pub(crate) fn not_a_row(&mut self, record: &Record<'_>) -> Option<IgnoreReason> {
        if self.table.is_plain() {
            return None;
        }
        if self.is_flattened() {
            let value = record.value.and_then(utf8)?;
            let Ok(Opened::Bare { at, .. }) = self.plans.open(value) else { return None };
            return ignored::by_object(record.topic, &mut Cursor::from(value, at)).ok().flatten();
        }
        self.is_signal_message(record).then_some(IgnoreReason::Signal)
    }

    /// Types of the columns that the rows of bare messages bring.
    pub(crate) fn infer(&mut self, records: &[Record<'_>]) -> Vec<(String, DataType)> {
        let mut inference = Inference::default();
        for record in records {
            // A record that cannot be read is judged when its turn comes.
            let _ = self.infer_record(record, &mut inference);
        }
        inference.finish().collect()
    }

    fn infer_record(&mut self, record: &Record<'_>, inference: &mut Inference) -> Result<(), Broken> {
        let value = record.value.filter(|value| !value.is_empty()).and_then(utf8);
        let mut any = false;
        if let Some(value) = value {
            let Opened::Bare { at, .. } = self.plans.open(value)? else { return Ok(()) };
            let mut cursor = Cursor::from(value, at);
            if cursor.kind()? != Kind::Object {
                return Ok(());
            }
            if self.table.is_plain() || self.is_flattened() {
                if self.table.is_plain() || ignored::by_object(record.topic, &mut cursor.clone())?.is_none() {
                    inference.row(&mut cursor)?;
                }
                return Ok(());
            }
            let (before, after) = images(&mut cursor)?;
            if after.is_some_and(|at| ignored::is_signal(&mut Cursor::from(value, at)).unwrap_or(false)) {
                return Ok(());
            }
            for at in [after, before].into_iter().flatten() {
                any = true;
                inference.row(&mut Cursor::from(value, at))?;
            }
        }
        if let (false, Some(key)) = (any, record.key.and_then(utf8)) {
            let Opened::Bare { at, .. } = self.key_plans.open(key)? else { return Ok(()) };
            let mut cursor = Cursor::from(key, at);
            let of_a_row = value.is_none_or(|value| is_delete(value).unwrap_or(false));
            if of_a_row && cursor.kind()? == Kind::Object {
                inference.row(&mut cursor)?;
            }
        }
        Ok(())
    }

    fn is_flattened(&self) -> bool {
        self.table.is_flattened()
    }
}

/// What ends a row besides its values.
pub(crate) struct About<'a> {
    pub handled_ms: Option<i64>,
    pub transaction: Option<Text<'a>>,
}

fn layout_of<'p>(shape: Shape, plans: &'p crate::wrapped::Plans, bare: &'p Layout, undeclared: &'p [bool]) -> (&'p Layout, &'p [bool]) {
    match shape {
        Shape::Bare => (bare, undeclared),
        Shape::Plan(plan) => match plans.get(plan) {
            Some(plan) => (&plan.layout, &[]),
            None => (bare, undeclared),
        },
    }
}

/// Whether a record has no key that would identify its row.
pub(crate) fn keyless(record: &Record<'_>) -> bool {
    record.key.is_none_or(|key| key.is_empty() || key == b"null")
}

/// The keys of an object.
pub(crate) fn names(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Broken> {
    let mut names = Vec::new();
    let mut scratch = Vec::new();
    let mut members = cursor.object()?;
    while let Some(name) = cursor.member(&mut members)? {
        names.push(String::from_utf8_lossy(name.resolve(&mut scratch)?).into_owned());
        cursor.skip()?;
    }
    Ok(names)
}

/// Where an envelope's row images are: before, after.
pub(crate) fn images(cursor: &mut Cursor<'_>) -> Result<(Option<usize>, Option<usize>), Broken> {
    let (mut before, mut after) = (None, None);
    let mut members = cursor.object()?;
    while let Some(key) = cursor.member(&mut members)? {
        let place = match key.raw {
            b"before" => Some(&mut before),
            b"after" => Some(&mut after),
            _ => None,
        };
        if let Some(place) = place {
            *place = (cursor.kind()? == Kind::Object).then(|| cursor.at());
        }
        cursor.skip()?;
    }
    Ok((before, after))
}

/// Whether an envelope is a delete.
fn is_delete(value: &[u8]) -> Result<bool, Broken> {
    let mut cursor = Cursor::new(value);
    let mut members = cursor.object()?;
    while let Some(key) = cursor.member(&mut members)? {
        if key.raw == b"op" && cursor.kind()? == Kind::Text {
            return Ok(cursor.text()?.raw == b"d");
        }
        cursor.skip()?;
    }
    Ok(false)
}

/// Whether a header tells the other key of a key change.
pub(crate) fn is_key_change(header: &str) -> bool {
    header == NEW_KEY || header == OLD_KEY
}

pub(crate) fn header<'r>(headers: &[Header<'r>], name: &str) -> Option<&'r [u8]> {
    headers.iter().find(|header| header.key == name).and_then(|header| header.value)
}

/// A header's text: a JSON string's inside, or the bytes as they are.
pub(crate) fn unquoted(value: &[u8]) -> Cow<'_, [u8]> {
    let mut cursor = Cursor::new(value);
    let mut scratch = Vec::new();
    match cursor.text() {
        Ok(text) if cursor.end().is_ok() => match text.resolve(&mut scratch) {
            Ok(resolved) => Cow::Owned(resolved.to_vec()),
            Err(_) => Cow::Borrowed(value),
        },
        _ => Cow::Borrowed(value),
    }
}

/// `_rescued_data`: a JSON object, or nothing.
fn write_rescued(found: &Found<'_>, out: &mut Vec<u8>) {
    out.clear();
    if !found.rescued.is_empty() {
        out.push(b'{');
        out.extend_from_slice(&found.rescued);
        out.push(b'}');
    }
}

pub(crate) fn too_large(_: Refused) -> Halt {
    Halt::Value { column: usize::MAX, problem: crate::read::Problem::TooLarge }
}
