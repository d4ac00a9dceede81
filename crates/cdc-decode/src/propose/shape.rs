//! What kind of message samples are.

use tributary_specs::Decode;

use crate::avro::framed;
use crate::change::{images as image_places, names, utf8};
use crate::decoder::Decoder;
use crate::ignored;
use crate::json::{Broken, Cursor, Kind};
use crate::record::Record;
use crate::wrapped::{Opened, Plans};

/// What kind of message samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How they are decoded.
    pub decode: Decode,
    /// Whether they bring their schema or name it.
    pub has_schema: bool,
    /// Whether MySQL or MariaDB wrote them.
    pub from_mysql: bool,
}

/// Told by the first record that is a row; `None` = there is none.
///
/// An Avro record that is not framed by an envelope's fields cannot be told from any other before its schema is known, so a
/// framed value is taken as an envelope when a schema block or its bytes name a connector, else as a plain record.
pub fn shape(records: &[Record<'_>]) -> Option<Shape> {
    records.iter().find_map(of_record)
}

fn of_record(record: &Record<'_>) -> Option<Shape> {
    let value = record.value.filter(|value| !value.is_empty())?;
    if framed(value) {
        let names_a_connector = |connector: &&str| memchr::memmem::find(value, connector.as_bytes()).is_some();
        let from_mysql = ["mysql", "mariadb"].iter().any(names_a_connector);
        let envelope = from_mysql || ["postgresql", "sqlserver", "oracle"].iter().any(names_a_connector);
        let decode = if envelope { Decode::Debezium } else { Decode::Avro };
        return Some(Shape { decode, has_schema: true, from_mysql });
    }
    let value = utf8(value)?;
    let (at, has_schema) = payload(value)?;
    let members = names(&mut Cursor::from(value, at)).ok()?;
    let bytes = || members.iter().map(String::as_bytes);
    if ignored::by_fields(record.topic, bytes()).is_some() {
        return None;
    }
    if image_places(&mut Cursor::from(value, at)).is_ok_and(|(_, after)| after.is_some_and(|at| is_signal(value, at))) {
        return None;
    }
    let has = |name: &str| members.iter().any(|member| member == name);
    let decode = if has("op") && (has("after") || has("before")) {
        Decode::Debezium
    } else if FLATTENED.iter().any(|name| has(name)) || has_schema {
        Decode::DebeziumFlattened
    } else {
        Decode::Json
    };
    let from_mysql = ["\"connector\":\"mysql\"", "\"connector\":\"mariadb\""];
    let from_mysql = from_mysql.iter().any(|connector| memchr::memmem::find(value, connector.as_bytes()).is_some());
    Some(Shape { decode, has_schema, from_mysql })
}

fn is_signal(value: &[u8], at: usize) -> bool {
    ignored::is_signal(&mut Cursor::from(value, at)).unwrap_or(false)
}

/// How the framed values of these records are to be decoded, by the first schema among them that the decoder has learned; `None` = there is none.
pub fn form_of_avro(decoder: &Decoder, records: &[Record<'_>]) -> Option<Decode> {
    let names = records.iter().filter_map(|record| record.value).find_map(|value| {
        let names = decoder.avro_key_names(value);
        (!names.is_empty()).then_some(names)
    })?;
    let has = |name: &str| names.iter().any(|known| known == name);
    Some(if has("op") && (has("after") || has("before")) {
        Decode::Debezium
    } else if FLATTENED.iter().any(|name| has(name)) {
        Decode::DebeziumFlattened
    } else {
        Decode::Avro
    })
}

/// Fields that flattening adds, a usual one of which tells the form.
const FLATTENED: [&str; 5] = ["__op", "__deleted", "__lsn", "__source_ts_ms", "__table"];

/// Where the object of a message begins, and whether a schema stands beside it.
fn payload(value: &[u8]) -> Option<(usize, bool)> {
    let (at, has_schema) = match Plans::default().open(value).ok()? {
        Opened::Bare { at, .. } => (at, false),
        Opened::Wrapped { at, .. } => (at, true),
        Opened::New(new) => (new.payload_at(), true),
        Opened::Null => return None,
    };
    (Cursor::from(value, at).kind().ok()? == Kind::Object).then_some((at, has_schema))
}

/// Hands the row images of a bare message to `take`; whether it is a row.
pub(super) fn images(decode: Decode, record: &Record<'_>, mut take: impl FnMut(&mut Cursor<'_>) -> Result<(), Broken>) -> bool {
    let Some(value) = record.value.and_then(utf8) else { return false };
    let Some((at, false)) = payload(value) else { return false };
    let mut any = false;
    let places = match decode {
        Decode::Debezium => {
            let (before, after) = image_places(&mut Cursor::from(value, at)).unwrap_or_default();
            [after, before]
        }
        _ => [Some(at), None],
    };
    for at in places.into_iter().flatten() {
        any |= take(&mut Cursor::from(value, at)).is_ok();
    }
    any
}

/// The names of the first key's fields.
pub(super) fn keys(records: &[Record<'_>]) -> Vec<String> {
    let of_key = |record: &Record<'_>| {
        let key = record.key.and_then(utf8)?;
        let (at, _) = payload(key)?;
        names(&mut Cursor::from(key, at)).ok().filter(|names| !names.is_empty())
    };
    let is_row = |record: &&Record<'_>| of_record(record).is_some();
    records.iter().filter(is_row).find_map(of_key).unwrap_or_default()
}
