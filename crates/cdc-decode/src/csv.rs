//! Rows of CSV. A record's value is one record of the file, quoted line breaks included.

use tributary_specs::{CsvOptions, DataType, SchemaPolicy};

use crate::change::utf8;
use crate::decoded::{IgnoreReason, ReasonCode};
use crate::decoder::{Decoder, Outcome, Verdict};
use crate::encoded::decode;
use crate::json::write_text;
use crate::layout::Slot;
use crate::read::{Lost, Problem, number_text, time_text, wanted};
use crate::record::Record;
use crate::row::{Found, Halt};
use crate::scalar::Scalar;
use crate::table::Placement;
use crate::wire::Wire;

/// How a feed's CSV is read, and the header of the file at hand.
#[derive(Debug, Clone)]
pub(crate) struct Csv {
    delimiter: u8,
    quote: u8,
    null_text: Option<String>,
    /// Whether files have a header line.
    header_expected: bool,
    header: Vec<String>,
    /// Where each field goes; empty until the first record after a header.
    slots: Vec<Slot>,
    /// The text of the fields of the record at hand, one after the other.
    text: Vec<u8>,
    /// For each field its end in `text` and whether it was quoted.
    fields: Vec<(usize, bool)>,
}

impl Csv {
    pub(crate) fn new(options: &CsvOptions) -> Self {
        let ascii = |letter: char, other| u8::try_from(letter).ok().filter(u8::is_ascii).unwrap_or(other);
        Self {
            delimiter: ascii(options.delimiter, b','),
            quote: ascii(options.quote, b'"'),
            null_text: options.null_text.clone(),
            header_expected: options.header,
            header: Vec::new(),
            slots: Vec::new(),
            text: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Takes a file's header.
    pub(crate) fn header(&mut self, names: &[&str]) -> Result<(), String> {
        for (at, name) in names.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(format!("column {} has no name", at + 1));
            }
            if let Some(twin) = names.iter().take(at).position(|other| other.eq_ignore_ascii_case(name)) {
                return Err(format!("columns {} and {} are both named {name}", twin + 1, at + 1));
            }
        }
        self.header = names.iter().map(|name| (*name).to_owned()).collect();
        self.slots.clear();
        Ok(())
    }

    /// Splits a record into its fields. `None` = a quote that does not end or that text follows.
    fn split(&mut self, record: &[u8]) -> Option<()> {
        self.text.clear();
        self.fields.clear();
        let mut rest = record.strip_suffix(b"\n").unwrap_or(record);
        rest = rest.strip_suffix(b"\r").unwrap_or(rest);
        loop {
            let quoted = rest.first() == Some(&self.quote);
            rest = if quoted { self.quoted_field(&rest[1..])? } else { self.bare_field(rest) };
            self.fields.push((self.text.len(), quoted));
            match rest.split_first() {
                None => return Some(()),
                Some((byte, tail)) if *byte == self.delimiter => rest = tail,
                Some(_) => return None,
            }
        }
    }

    fn bare_field<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let end = memchr::memchr(self.delimiter, bytes).unwrap_or(bytes.len());
        let (field, rest) = bytes.split_at(end);
        self.text.extend_from_slice(field);
        rest
    }

    fn quoted_field<'b>(&mut self, mut bytes: &'b [u8]) -> Option<&'b [u8]> {
        loop {
            let end = memchr::memchr(self.quote, bytes)?;
            self.text.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            if bytes.first() != Some(&self.quote) {
                return Some(bytes);
            }
            self.text.push(self.quote);
            bytes = &bytes[1..];
        }
    }

    /// A field's text and whether it stands for null.
    fn field(&self, at: usize) -> (&[u8], bool) {
        let start = at.checked_sub(1).and_then(|before| self.fields.get(before)).map_or(0, |(end, _)| *end);
        let (end, quoted) = self.fields.get(at).copied().unwrap_or((start, false));
        let text = self.text.get(start..end).unwrap_or_default();
        let is_null = !quoted && (text.is_empty() || self.null_text.as_ref().is_some_and(|null| null.as_bytes() == text));
        (text, is_null)
    }
}

impl Decoder {
    /// One record of a CSV file.
    pub(crate) fn csv_row<'r>(&mut self, record: &'r Record<'r>, row: usize, found: &mut Found<'r>) -> Outcome {
        let Some(value) = record.value.filter(|value| !value.is_empty()) else { return Ok(Verdict::Ignored(IgnoreReason::Tombstone)) };
        let Some(value) = utf8(value) else {
            return Ok(Verdict::Rejected(ReasonCode::NotUtf8, "the record is not utf-8".to_owned()));
        };
        if self.csv.split(value).is_none() {
            return Ok(Verdict::Rejected(ReasonCode::UnknownShape, "a quoted field does not end where a field should".to_owned()));
        }
        if self.csv.slots.is_empty()
            && let Some(verdict) = self.csv_slots(record, row)
        {
            return Ok(verdict);
        }
        let (got, due) = (self.csv.fields.len(), self.csv.slots.len());
        if got != due {
            return Ok(Verdict::Rejected(ReasonCode::UnknownShape, format!("{got} fields where {due} are due")));
        }
        for at in 0..due {
            self.csv_field(at, row, found)?;
        }
        self.finish_plain(record, row, found)
    }

    /// Decides where the fields of a file go.
    fn csv_slots(&mut self, record: &Record<'_>, row: usize) -> Option<Verdict> {
        let names = if !self.csv.header.is_empty() {
            self.csv.header.clone()
        } else if self.csv.header_expected {
            return Some(Verdict::Rejected(ReasonCode::UnknownShape, "the file's header line is not known".to_owned()));
        } else if self.table.specs.is_empty() {
            (0..self.csv.fields.len()).map(|at| format!("_c{at}")).collect()
        } else {
            self.table.specs.iter().map(|spec| spec.name.clone()).collect()
        };
        let mut slots = Vec::with_capacity(names.len());
        for name in names {
            match self.table.place(&name, &DataType::String, Wire::Anything, true, row) {
                Placement::At(slot) => slots.push(slot),
                Placement::Frozen => return Some(Verdict::Stopped(self.frozen(record, &name, "the table does not have it"))),
            }
        }
        self.csv.slots = slots;
        None
    }

    fn csv_field(&mut self, at: usize, row: usize, found: &mut Found<'_>) -> Result<(), Halt> {
        let (text, is_null) = self.csv.field(at);
        let name = || self.csv.header.get(at).cloned().unwrap_or_else(|| format!("_c{at}"));
        let rescue = |found: &mut Found<'_>| {
            let mut raw = Vec::new();
            write_text(text, &mut raw);
            found.rescue(&name(), &raw);
        };
        let policy = self.table.policy();
        let index = match self.csv.slots.get(at) {
            Some(Slot::Column(index)) => *index,
            Some(Slot::Refuse) if !is_null => return Err(Halt::Refused(name())),
            Some(Slot::Rescue) if !is_null => {
                rescue(found);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let (Some((_, column)), Some(wire)) = (self.table.rows.get_mut(index), self.table.wires.get(index)) else { return Ok(()) };
        if is_null {
            return Ok(());
        }
        column.fill(row);
        let mut bytes = Vec::new();
        let problem = match from_text(text, wire, column.data_type(), &mut bytes, &mut self.reader.cut) {
            Some(Ok(scalar)) => match column.push(scalar) {
                Ok(()) => return Ok(()),
                Err(crate::column::Refused::TooLarge) => Problem::TooLarge,
                Err(crate::column::Refused::DoesNotFit) => Problem::DoesNotFit(scalar.data_type()),
            },
            Some(Err(lost)) => {
                found.lost.push((index, lost));
                rescue(found);
                return Ok(());
            }
            None => Problem::WrongType { found: "text", wanted: wanted(wire) },
        };
        if policy == SchemaPolicy::Rescue && problem != Problem::TooLarge {
            column.truncate(row);
            rescue(found);
            return Ok(());
        }
        Err(Halt::Value { column: index, problem })
    }
}

/// A field's value as its column takes it. `None` = not of the form.
fn from_text<'s>(
    text: &'s [u8],
    wire: &Wire,
    data_type: &DataType,
    bytes: &'s mut Vec<u8>,
    cut: &mut u64,
) -> Option<Result<Scalar<'s>, Lost>> {
    let trimmed = text.trim_ascii();
    match wire {
        Wire::Boolean => Some(Ok(Scalar::Boolean(match trimmed.to_ascii_lowercase().as_slice() {
            b"true" | b"t" | b"1" | b"yes" | b"y" => true,
            b"false" | b"f" | b"0" | b"no" | b"n" => false,
            _ => return None,
        }))),
        Wire::Integer(_) | Wire::Float | Wire::Double | Wire::Number | Wire::Digits | Wire::Unsigned | Wire::DecimalUndeclared => {
            number_text(trimmed, data_type)
        }
        Wire::Date | Wire::WallClock(_) | Wire::Instant { .. } | Wire::Time(_) => time_text(trimmed, wire, cut),
        Wire::Bytes(form) => {
            decode(*form, trimmed, bytes)?;
            Some(Ok(Scalar::Bytes(bytes)))
        }
        Wire::Text | Wire::Anything | Wire::Set(_) => Some(Ok(Scalar::Text(text))),
        _ => None,
    }
}
