//! Decoded records into rows of the table: plain rows, envelopes, flattened rows. The rules are those of `change`.

use std::sync::Arc;

use tributary_specs::{Decode, SchemaPolicy};

use crate::avro::image::Node;
use crate::avro::window::Place;
use crate::avro::{Refused, Rows, framed, value};
use crate::change::{About, header, keyless, unquoted};
use crate::column::Column;
use crate::decoded::{IgnoreReason, ReasonCode};
use crate::decoder::{Decoder, Outcome, Verdict};
use crate::ignored;
use crate::json::Text;
use crate::layout::{self, Layout, Slot};
use crate::op::Op;
use crate::read::{Read, Reader};
use crate::record::Record;
use crate::row::{Found, Halt, keep_extras};
use crate::source::{Source, Told};
use crate::template::Block;

/// What a flattened row says about its change.
#[derive(Debug, Default)]
pub(super) struct Aside {
    op: Option<Vec<u8>>,
    deleted: Option<bool>,
    handled_ms: Option<i64>,
    source: Source,
}

/// A decoded message on its way to a row.
#[derive(Clone, Copy)]
struct Message<'r, 'm> {
    record: &'r Record<'r>,
    place: &'m Place,
    rows: &'m Rows,
    /// Number of the row it becomes.
    row: usize,
}

/// A row image: a decoded record, and where its fields are.
#[derive(Clone, Copy)]
pub(super) struct Image<'i> {
    pub node: &'i Node,
    pub at: usize,
    pub layout: &'i Layout,
    /// The place in the record of each field of the layout.
    pub places: &'i [Option<usize>],
}

impl Decoder {
    /// Whether a record goes this way: its value is framed, or has to be.
    #[inline]
    pub(crate) fn is_avro(&self, record: &Record<'_>) -> bool {
        self.form() == Decode::Avro || record.value.is_some_and(framed)
    }

    /// A record whose value is Avro.
    pub(crate) fn avro_record<'r>(
        &mut self,
        records: &'r [Record<'r>],
        index: usize,
        row: usize,
        found: &mut (Found<'r>, Found<'r>),
    ) -> Outcome {
        let Some(record) = records.get(index) else { return Ok(Verdict::Again) };
        let Some(message) = record.value else { return Ok(Verdict::Ignored(IgnoreReason::Tombstone)) };
        if !framed(message) {
            let message = "the value is not framed: its first byte is not 0".to_owned();
            return Ok(Verdict::Rejected(ReasonCode::BrokenAvro, message));
        }
        let place = match self.avro.window.get(&mut self.avro.schemas, records, index) {
            Ok(place) => place,
            Err(refused) => return Ok(rejected(refused)),
        };
        let Ok(known) = self.avro.schemas.get(place.id) else { return Ok(Verdict::Again) };
        let Some(rows) = known.rows.clone() else { return Ok(self.lay_out_avro(&place, record, row)) };
        self.avro.latest = Some(Arc::clone(&rows));
        match self.form() {
            Decode::Debezium => self.avro_envelope(Message { record, place: &place, rows: &rows, row }, found),
            Decode::DebeziumFlattened => self.avro_flattened(Message { record, place: &place, rows: &rows, row }, found),
            _ => {
                let image = Image { node: &place.image, at: place.at, layout: &rows.layout, places: &rows.after };
                self.avro_image(image, row, &mut found.0)?;
                self.finish_plain(record, row, &found.0)
            }
        }
    }

    /// Decides where the fields of a schema's rows go.
    fn lay_out_avro(&mut self, place: &Place, record: &Record<'_>, row: usize) -> Verdict {
        let Ok(known) = self.avro.schemas.get(place.id) else { return Verdict::Again };
        let message = known.connect.clone();
        let (after, before) = match self.form() {
            Decode::Debezium => {
                let names = message.fields.iter().map(|field| field.field.as_bytes());
                if message.child("op").is_none() {
                    return not_an_envelope(ignored::by_fields(record.topic, names));
                }
                (message.child("after").cloned(), message.child("before").cloned())
            }
            Decode::DebeziumFlattened => {
                let names = message.fields.iter().map(|field| field.field.as_bytes());
                if let Some(reason) = ignored::by_fields(record.topic, names) {
                    return Verdict::Ignored(reason);
                }
                (Some(message), None)
            }
            _ => (Some(message), None),
        };
        if let Some(image) = place.image.named("after").filter(|image| is_signal(image, place.at))
            && self.form() == Decode::Debezium
            && !image.is_null(place.at)
        {
            return Verdict::Ignored(IgnoreReason::Signal);
        }
        let Some(schema) = after.as_ref().or(before.as_ref()) else {
            return Verdict::Rejected(ReasonCode::UnknownShape, "no change event: there is no row image".to_owned());
        };
        let layout = match self.layout_of_schema(schema, record, row) {
            Ok(layout) => layout,
            Err(verdict) => return verdict,
        };
        let places = |schema: &Option<crate::connect::Schema>| {
            let place = |field: &layout::Field| schema.as_ref()?.fields.iter().position(|known| known.field == field.name);
            layout.fields.iter().map(place).collect()
        };
        let (after, before) = (places(&after), places(&before));
        if let Ok(known) = self.avro.schemas.get_mut(place.id) {
            known.rows = Some(Arc::new(Rows { after, before, layout }));
        }
        Verdict::Again
    }

    /// Takes a row image into the business columns.
    pub(super) fn avro_image(&mut self, image: Image<'_>, row: usize, found: &mut Found<'_>) -> Result<(), Halt> {
        let policy = self.table.policy();
        take_row(&mut self.reader, image, &mut self.table.rows, row, policy, found, &mut Aside::default())
    }

    /// Takes a row image into the struct of before-images; the row is not ended.
    fn avro_before(&mut self, image: Image<'_>, row: usize, found: &mut Found<'_>) -> Result<(), Halt> {
        let policy = self.table.policy();
        self.table.before.truncate(row);
        self.table.before.fill(row);
        let Some(fields) = self.table.before.fields() else { return Ok(()) };
        take_row(&mut self.reader, image, fields, row, policy, found, &mut Aside::default())
    }

    fn avro_envelope<'r>(&mut self, message: Message<'r, '_>, found: &mut (Found<'r>, Found<'r>)) -> Outcome {
        let Message { record, place, rows, row } = message;
        let at = place.at;
        let part = |name: &str| place.image.named(name).filter(|part| !part.is_null(at));
        let Some(code) = part("op").and_then(|op| op.text(at)) else {
            return Ok(Verdict::Rejected(ReasonCode::UnknownShape, "no change event: there is no operation code".to_owned()));
        };
        if code == b"m" {
            return Ok(Verdict::Ignored(IgnoreReason::LogicalMessage));
        }
        let Some(op) = Op::of(code) else {
            return Ok(Verdict::Rejected(ReasonCode::UnknownOp, "the operation code is none of r, c, u, d, t, m".to_owned()));
        };
        let image = |node, places| Image { node, at, layout: &rows.layout, places };
        let after = part("after").map(|node| image(node, rows.after.as_slice()));
        let before = part("before").map(|node| image(node, rows.before.as_slice()));
        if after.is_some_and(|image| rows.layout.is_signal() && is_signal(image.node, at)) {
            return Ok(Verdict::Ignored(IgnoreReason::Signal));
        }
        self.orders.forget_source();
        self.source.clear();
        if let Some(block) = part("source") {
            tell_source(&mut self.source, block, at);
        }
        if let Some(before) = before {
            self.avro_before(before, row, &mut found.1)?;
        }
        let trusted = self.avro_trusts_before(keyless(record), before, row);
        match op {
            Op::Read | Op::Create | Op::Update => match after {
                Some(after) => self.avro_image(after, row, &mut found.0)?,
                None => return Ok(Verdict::Rejected(ReasonCode::MissingRow, format!("a {} without its row", op.name()))),
            },
            Op::Delete => match before {
                Some(before) if trusted => self.avro_image(before, row, &mut found.0)?,
                before => {
                    if let Some(verdict) = self.avro_key_row(record, before, row, &mut found.0)? {
                        return Ok(verdict);
                    }
                }
            },
            Op::Truncate => {}
        }
        if before.is_some() && trusted && op != Op::Truncate {
            self.close_before(row, &found.1)?;
        } else {
            self.table.before.truncate(row);
        }
        let transaction = part("transaction").and_then(|block| block.named("id")).and_then(|id| id.text(at));
        let about = About {
            handled_ms: part("ts_ms").and_then(|ms| ms.whole(at)),
            transaction: transaction.map(|raw| Text { raw, escaped: false }),
        };
        let verdict = self.finish_row(record, row, op, &about, &found.0)?;
        if matches!(verdict, Verdict::Row) {
            self.see_before(op, row);
        }
        Ok(verdict)
    }

    /// As `trusts_before` of JSON: whether a before-image is the whole old row.
    fn avro_trusts_before(&mut self, keyless: bool, before: Option<Image<'_>>, row: usize) -> bool {
        if self.needs_no_proof() {
            return true;
        }
        let Some(before) = before else { return false };
        if self.shown.are_complete() || keyless {
            return true;
        }
        let Some(fields) = self.table.before.fields() else { return false };
        before.layout.fields.iter().any(|field| match field.slot {
            Slot::Column(column) => field.shows_null && fields.get(column).is_some_and(|(_, values)| values.is_valid(row)),
            _ => false,
        })
    }

    fn avro_flattened<'r>(&mut self, message: Message<'r, '_>, found: &mut (Found<'r>, Found<'r>)) -> Outcome {
        let Message { record, place, rows, row } = message;
        let image = Image { node: &place.image, at: place.at, layout: &rows.layout, places: &rows.after };
        let mut aside = Aside::default();
        let policy = self.table.policy();
        take_row(&mut self.reader, image, &mut self.table.rows, row, policy, &mut found.0, &mut aside)?;
        self.deletes_are_rows |= aside.deleted.is_some();
        let from_header = || header(record.headers, "__op").map(unquoted);
        let code = aside.op.take().map(std::borrow::Cow::Owned).or_else(from_header);
        let Some(op) = Op::of_flattened(code.as_deref(), aside.deleted) else {
            return Ok(Verdict::Rejected(ReasonCode::UnknownOp, "the operation code is none of r, c, u, d, t".to_owned()));
        };
        let trusted = self.begin_flattened(aside.source, row);
        if op == Op::Delete && trusted {
            self.avro_before(image, row, &mut found.1)?;
            self.close_before(row, &found.1)?;
        } else if op == Op::Delete
            && let Some(verdict) = self.avro_key_row(record, Some(image), row, &mut found.0)?
        {
            return Ok(verdict);
        }
        let about = About { handled_ms: aside.handled_ms, transaction: None };
        self.finish_row(record, row, op, &about, &found.0)
    }

    /// The row of a delete of which only the key can be trusted: from the message key, else the declared keys in the image.
    fn avro_key_row<'r>(
        &mut self,
        record: &'r Record<'r>,
        image: Option<Image<'_>>,
        row: usize,
        found: &mut Found<'r>,
    ) -> Result<Option<Verdict>, Halt> {
        self.table.rows.iter_mut().for_each(|(_, column)| column.truncate(row));
        found.clear();
        if let Some(done) = self.message_key_row(record, row, found)? {
            return Ok(done);
        }
        let (Some(image), Some(keys)) = (image, self.table.keys.clone().filter(|keys| !keys.is_empty())) else {
            return Ok(Some(Self::keyless_delete()));
        };
        self.table.rows.iter_mut().for_each(|(_, column)| column.truncate(row));
        found.clear();
        self.avro_image(image, row, found)?;
        self.only_keys(&keys, row, found);
        Ok(None)
    }
}

fn not_an_envelope(reason: Option<IgnoreReason>) -> Verdict {
    match reason {
        Some(reason) => Verdict::Ignored(reason),
        None => Verdict::Rejected(ReasonCode::UnknownShape, "no change event: there is no operation code".to_owned()),
    }
}

pub(super) fn rejected(refused: Refused) -> Verdict {
    Verdict::Rejected(refused.reason, refused.message)
}

/// Whether a row of `id`, `type` and `data` is a signal to the connector.
fn is_signal(image: &Node, at: usize) -> bool {
    image.field_names().is_some_and(|mut names| names.all(|name| matches!(name, "id" | "type" | "data")))
        && image.named("type").and_then(|kind| kind.text(at)).is_some_and(ignored::is_signal_type)
}

/// Takes over a `source` block.
fn tell_source(source: &mut Source, block: &Node, at: usize) {
    let Some(names) = block.field_names() else { return };
    for name in names {
        if let Some(part) = block.named(name) {
            source.tell(crate::source::Member::named(name.as_bytes()), told(part, at));
        }
    }
}

fn told(part: &Node, at: usize) -> Told<'_> {
    if let Some(text) = part.text(at) {
        return Told::Text(text);
    }
    if let Some(number) = part.whole(at) {
        return Told::Whole(number);
    }
    part.boolean(at).map_or(Told::Nothing, Told::Boolean)
}

/// Takes a row image as row number `row` of the columns; one whose field it does not have stays behind.
pub(super) fn take_row(
    reader: &mut Reader,
    image: Image<'_>,
    columns: &mut [(String, Column)],
    row: usize,
    policy: SchemaPolicy,
    found: &mut Found<'_>,
    aside: &mut Aside,
) -> Result<(), Halt> {
    let at = image.at;
    for (field, place) in image.layout.fields.iter().zip(image.places) {
        let Some(node) = place.and_then(|place| image.node.part(place)) else { continue };
        let json = || {
            let mut json = Vec::new();
            node.write_json(at, &mut json);
            json
        };
        let index = match field.slot {
            Slot::Column(index) => index,
            Slot::About(about) => {
                tell_aside(aside, about, node, at);
                continue;
            }
            _ if node.is_null(at) => continue,
            Slot::Refuse => return Err(Halt::Refused(field.name.clone())),
            Slot::Rescue | Slot::Open => {
                found.rescue(&field.name, &json());
                continue;
            }
        };
        let Some((_, column)) = columns.get_mut(index) else { continue };
        column.fill(row);
        match value::read(reader, node, at, &field.wire, column) {
            Read::Done => {}
            Read::Null => found.see_null(index),
            Read::Unavailable => found.unavailable.push(index),
            Read::Lost(lost) => {
                found.lost.push((index, lost));
                found.rescue(&field.name, &json());
            }
            Read::Extras => keep_extras(reader, (index, &field.name), policy, found)?,
            Read::Failed => {
                let problem = reader.problem();
                reader.extras.clear();
                if policy != SchemaPolicy::Rescue || !problem.is_about_type() {
                    return Err(Halt::Value { column: index, problem });
                }
                column.truncate(row);
                found.rescue(&field.name, &json());
            }
        }
    }
    Ok(())
}

fn tell_aside(aside: &mut Aside, about: layout::About, node: &Node, at: usize) {
    match about {
        layout::About::Op => aside.op = node.text(at).map(<[u8]>::to_vec),
        layout::About::Deleted => {
            let told = node.text(at).map(|text| text == b"true").or_else(|| node.boolean(at));
            aside.deleted = told.or(aside.deleted);
        }
        layout::About::HandledMs => aside.handled_ms = node.whole(at),
        layout::About::Source(member) => aside.source.tell(member, told(node, at)),
    }
}
