//! The decoder of one feed.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, RecordBatch};
use tributary_specs::{Column as Spec, DataType, Decode, Encoding, ReplicaIdentity, SchemaPolicy, Source, SourceFeed};

use crate::avro::Avro;
use crate::batch::{self, Ours};
use crate::before::Shown;
use crate::connect::Schema;
use crate::csv::Csv;
use crate::decoded::{Decoded, IgnoreReason, LastRow, ReasonCode, Reject, Resume, SchemaChange};
use crate::envelope::Orders;
use crate::error::Error;
use crate::layout::{Field, Layout, Slot};
use crate::partitions::Partitions;
use crate::placeholder::{self, Placeholder};
use crate::position::{Backwards, Track};
use crate::raw::Raw;
use crate::read::{Problem, Reader};
use crate::record::Record;
use crate::row::{Found, Halt};
use crate::system;
use crate::table::{Misfit, Placement, Table};
use crate::time::DAY;
use crate::wire::Wire;
use crate::words::same;
use crate::wrapped::{NewPlan, Plans};

/// Property of a feed: what to do when source positions run backwards although the changes are later; `stop` (default),
/// `newEpoch` or `accept`.
const BACKWARDS: &str = "tributary.cdc.positionsBackwards";
/// Property of a feed: the connector's `unavailable.value.placeholder`.
const PLACEHOLDER: &str = "tributary.cdc.unavailableValuePlaceholder";

/// Turns the records of one feed into batches of its bronze table; one a feed, kept between batches.
///
/// It holds the schema so far, the last position of each partition and the epoch. It reads no clock and no environment.
#[derive(Debug)]
pub struct Decoder {
    pub(crate) feed: String,
    decode: Decode,
    pub(crate) table: Table,
    pub(crate) ours: Ours,
    pub(crate) reader: Reader,
    /// Layouts of messages with a schema block.
    pub(crate) plans: Plans,
    /// The same of keys.
    pub(crate) key_plans: Plans,
    /// The layout of rows without schema.
    pub(crate) bare: Layout,
    /// The same of keys.
    pub(crate) bare_key: Layout,
    pub(crate) orders: Orders,
    /// The last source block.
    pub(crate) source: crate::source::Source,
    pub(crate) tracks: Tracks,
    pub(crate) backwards: Backwards,
    /// Whether the feed says that before-images are complete.
    pub(crate) declared_full: bool,
    /// Whether the table has shown that they are.
    pub(crate) shown: Shown,
    /// Flattened: whether deletes come as rows, so that a null value says nothing more.
    pub(crate) deletes_are_rows: bool,
    pub(crate) counts: Counts,
    pub(crate) scratch: Scratch,
    pub(crate) csv: Csv,
    pub(crate) avro: Avro,
    pub(crate) partitions: Partitions,
    raw: Raw,
}

/// What is counted while a batch is decoded.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub notes: BTreeMap<String, u64>,
    pub repeated: u64,
    pub placeless: u64,
    pub duplicates: u64,
    /// The rows of changes that came without a schema, as runs.
    bare: Vec<Range<usize>>,
}

impl Counts {
    /// Takes in that a row came without a schema.
    pub(crate) fn bare_row(&mut self, row: usize) {
        match self.bare.last_mut() {
            Some(run) if run.end == row => run.end += 1,
            _ => self.bare.push(row..row + 1),
        }
    }
}

/// Buffers used again for every record.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub rescued: Vec<u8>,
}

/// What became of a record.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is the next row.
    Row,
    Ignored(IgnoreReason),
    Rejected(ReasonCode, String),
    Stopped(Box<Error>),
    /// The table's columns have changed; it must be read again.
    Again,
}

/// A problem that ends the reading of a record.
pub(crate) type Outcome = Result<Verdict, Halt>;

/// How often one record may change the table's columns: a column a value and a few widenings.
const AGAIN_MAX: usize = 100_000;

impl Decoder {
    /// A decoder for a table that does not exist yet; [`Decoder::resume`] tells it what an existing one holds.
    ///
    /// # Errors
    /// [`Error::Declaration`] when the feed's columns or properties contradict each other.
    pub fn new(feed: &SourceFeed) -> Result<Self, Error> {
        let plain = matches!(feed.decode, Decode::Json | Decode::Csv | Decode::Avro);
        let is_change_feed = matches!(feed.decode, Decode::Debezium | Decode::DebeziumFlattened);
        let mut table = Table::new(feed.schema_policy, plain, feed.decode == Decode::DebeziumFlattened);
        for column in &feed.columns {
            declare(feed, &mut table, column, plain)?;
        }
        table.held = !feed.columns.is_empty();
        if !feed.keys.is_empty() {
            table.keys = Some(feed.keys.clone());
        }
        let property = |name: &str| feed.properties.get(name).map(String::as_str);
        let backwards = match property(BACKWARDS) {
            None | Some("stop") => Backwards::Stop,
            Some("newEpoch") => Backwards::NewEpoch,
            Some("accept") => Backwards::Accept,
            Some(_) => return Err(declaration(feed, BACKWARDS, "must be stop, newEpoch or accept")),
        };
        let csv = match &feed.source {
            Source::Files(files) => Csv::new(&files.csv),
            Source::Kafka(_) | Source::Custom(_) => Csv::new(&tributary_specs::CsvOptions::default()),
        };
        Ok(Self {
            feed: feed.name.clone(),
            decode: feed.decode,
            table,
            ours: Ours::new(is_change_feed),
            reader: Reader::new(Placeholder::new(property(PLACEHOLDER).unwrap_or(placeholder::DEFAULT))),
            plans: Plans::default(),
            key_plans: Plans::default(),
            bare: Layout::default(),
            bare_key: Layout::default(),
            orders: Orders::default(),
            source: crate::source::Source::default(),
            tracks: Tracks::default(),
            backwards,
            declared_full: feed.replica_identity == ReplicaIdentity::Full,
            shown: Shown::default(),
            deletes_are_rows: false,
            counts: Counts::default(),
            scratch: Scratch::default(),
            csv,
            avro: Avro::default(),
            partitions: Partitions::new(&feed.partition_by),
            raw: Raw,
        })
    }

    /// Takes up where the table is. Call once, before the first [`Decoder::decode`].
    pub fn resume(&mut self, resume: Resume) {
        let mut keys = None;
        for column in resume.columns {
            if system::is_ours(&column.name) {
                if column.name == "_key_changed_from"
                    && let DataType::Struct(fields) = column.data_type
                {
                    keys = Some(fields);
                }
                continue;
            }
            match self.table.find(&column.name) {
                Some(known) => self.table.retype(known, &column.data_type),
                None => {
                    let wire = Table::inferred_wire(&column.data_type);
                    self.table.push(column, wire, true, 0);
                }
            }
            self.table.held = true;
        }
        if let Some(fields) = keys {
            self.table.resume_keys(fields);
        }
        for ((topic, partition), LastRow { position, server, source_ts_us }) in resume.partitions {
            *self.tracks.get(&topic, partition) = Track::resumed(&position, server.as_deref(), source_ts_us);
        }
        self.shown = resume.before_images.as_ref().map(Shown::resumed).unwrap_or_default();
    }

    /// Forgets columns, as if no record had shown them: a later one that does adds them again. Positions, the epoch and what the table
    /// has shown of before-images stay. `feed` is the one that this decoder is of.
    ///
    /// # Errors
    /// As [`Decoder::new`].
    pub fn forget(&mut self, feed: &SourceFeed, names: &[&str]) -> Result<(), Error> {
        let columns = self.columns().into_iter().filter(|column| !names.contains(&column.name.as_str())).collect();
        let mut fresh = Self::new(feed)?;
        fresh.resume(Resume { columns, ..Resume::default() });
        fresh.tracks = std::mem::take(&mut self.tracks);
        fresh.shown = std::mem::take(&mut self.shown);
        fresh.csv = std::mem::replace(&mut self.csv, Csv::new(&tributary_specs::CsvOptions::default()));
        fresh.deletes_are_rows = self.deletes_are_rows;
        *self = fresh;
        Ok(())
    }

    /// Names the fields of the CSV records that follow (a file's header line); needed for `Decode::Csv` with a header,
    /// at the start of each file.
    ///
    /// # Errors
    /// [`Error::CsvHeader`] for a repeated or empty name.
    pub fn csv_header(&mut self, names: &[&str]) -> Result<(), Error> {
        self.csv.header(names).map_err(|problem| Error::CsvHeader { feed: self.feed.clone(), problem })
    }

    /// Every column of the bronze table as known so far: business columns, then ours.
    ///
    /// Before the first batch of a feed without declared columns there are no business columns yet, and before the keys are
    /// known, by declaration or from a message, no structs of a key change.
    pub fn columns(&self) -> Vec<Spec> {
        match self.decode {
            Decode::Raw => Raw::columns(),
            _ => batch::columns(&self.table, self.ours.change.is_some()),
        }
    }

    /// Decodes records in their order. Never panics, whatever the bytes.
    ///
    /// `ingested_at_us` (µs since the epoch) becomes `_ingested_at` of every row.
    pub fn decode(&mut self, records: &[Record<'_>], ingested_at_us: i64) -> Decoded {
        if self.decode == Decode::Raw {
            return self.raw.decode(&self.feed, records, ingested_at_us);
        }
        let mut decoded = Decoded {
            batch: RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty())),
            rejects: Vec::new(),
            ignored: BTreeMap::new(),
            schema_change: None,
            notes: BTreeMap::new(),
            duplicate_keys: 0,
            stop: None,
        };
        self.avro.begin();
        self.table.prepare(records.len());
        self.ours.prepare(records.len());
        let mut found = (Found::default(), Found::default());
        let mut rows = 0;
        for (index, record) in records.iter().enumerate() {
            match self.record(records, index, rows, &mut found) {
                Verdict::Row => rows += 1,
                Verdict::Ignored(reason) => *decoded.ignored.entry(reason).or_default() += 1,
                Verdict::Rejected(reason, message) => decoded.rejects.push(Reject { index, reason, message }),
                Verdict::Stopped(error) => {
                    decoded.stop = Some(*error);
                    break;
                }
                Verdict::Again => {
                    let message = "its fields change the table without end".to_owned();
                    decoded.rejects.push(Reject { index, reason: ReasonCode::UnknownShape, message });
                    self.truncate(rows);
                }
            }
            let _ = record;
        }
        match batch::finish(&mut self.table, &mut self.ours, rows, ingested_at_us) {
            Ok(batch) => decoded.batch = batch,
            Err(problem) => {
                decoded.stop.get_or_insert(Error::Inconsistent { feed: self.feed.clone(), problem: problem.to_string() });
            }
        }
        self.table.held |= rows > 0;
        decoded.schema_change = self.schema_change();
        self.notes(&mut decoded);
        decoded
    }

    /// Reads one record until it no longer changes the table.
    fn record<'r>(&mut self, records: &'r [Record<'r>], index: usize, row: usize, found: &mut (Found<'r>, Found<'r>)) -> Verdict {
        let Some(record) = records.get(index) else { return Verdict::Again };
        for _ in 0..AGAIN_MAX {
            found.0.clear();
            found.1.clear();
            let outcome = match self.decode {
                Decode::Debezium | Decode::DebeziumFlattened | Decode::Avro if self.is_avro(record) => {
                    self.avro_record(records, index, row, found)
                }
                Decode::Debezium => self.change(record, row, found),
                Decode::DebeziumFlattened => self.flattened(record, row, found),
                Decode::Json => self.plain(record, row, &mut found.0),
                Decode::Csv => self.csv_row(record, row, &mut found.0),
                Decode::Raw | Decode::Avro => return Verdict::Again,
            };
            let verdict = outcome.unwrap_or_else(|halt| self.halted(halt, records, index, row));
            match verdict {
                Verdict::Row => match self.without_partition(row) {
                    None => return verdict,
                    Some(message) => {
                        self.truncate(row);
                        return Verdict::Rejected(ReasonCode::DoesNotFit, message);
                    }
                },
                Verdict::Again => self.truncate(row),
                _ => {
                    self.truncate(row);
                    return verdict;
                }
            }
        }
        Verdict::Again
    }

    fn truncate(&mut self, rows: usize) {
        self.table.truncate(rows);
        self.ours.truncate(rows);
        self.reader.extras.clear();
    }

    /// What a problem leads to under the feed's policy.
    fn halted(&mut self, halt: Halt, records: &[Record<'_>], index: usize, row: usize) -> Verdict {
        let Some(record) = records.get(index) else { return Verdict::Again };
        match halt {
            Halt::Json(broken) => Verdict::Rejected(reason_of(broken), broken.message()),
            Halt::Refused(name) => Verdict::Rejected(ReasonCode::UnknownColumn, format!("column {name}: the table does not have it")),
            Halt::Value { column, problem } => self.value_problem(record, column, problem),
            Halt::Unknown(name) => self.unknown_field(&name, records, index, row),
        }
    }

    fn value_problem(&mut self, record: &Record<'_>, column: usize, problem: Problem) -> Verdict {
        let (name, data_type) = match self.table.specs.get(column) {
            Some(spec) => (spec.name.clone(), spec.data_type.to_string()),
            None => (String::new(), String::new()),
        };
        match problem {
            Problem::Json(broken) => Verdict::Rejected(reason_of(broken), format!("column {name}: {}", broken.message())),
            Problem::TooLarge => Verdict::Rejected(ReasonCode::BatchTooLarge, format!("column {name}: more than 2 GiB in one batch")),
            Problem::WrongType { found, wanted } => {
                Verdict::Rejected(ReasonCode::WrongType, format!("column {name} of type {data_type}: {found} where {wanted} is due"))
            }
            Problem::Undeclared { found, choices } => Verdict::Stopped(Box::new(Error::EncodingUndeclared {
                feed: self.feed.clone(),
                column: name,
                found,
                data_type,
                choices,
                place: record.place(),
            })),
            Problem::NewField(data_type) => match (self.table.policy(), self.table.new_fields(column, &data_type).first()) {
                (SchemaPolicy::Freeze, Some(field)) => Verdict::Stopped(self.frozen(record, &field.name, "the table does not have it")),
                _ => {
                    self.table.add_fields(column, &data_type);
                    self.relayout();
                    Verdict::Again
                }
            },
            Problem::DoesNotFit(wanted) => {
                let message = format!("column {name} of type {data_type} does not hold a value of type {wanted}");
                match self.table.policy() {
                    SchemaPolicy::Widen if self.table.widen(column, &wanted) => {
                        self.relayout();
                        Verdict::Again
                    }
                    SchemaPolicy::Freeze => Verdict::Stopped(self.frozen(
                        record,
                        &name,
                        &format!("a value needs the type {wanted} where the table has {data_type}"),
                    )),
                    _ => Verdict::Rejected(ReasonCode::DoesNotFit, message),
                }
            }
        }
    }

    /// After a column has changed its type, bare layouts read it by its new one; those of schema blocks do not depend on it.
    fn relayout(&mut self) {
        for layout in [&mut self.bare, &mut self.bare_key] {
            for field in &mut layout.fields {
                if let Slot::Column(column) = field.slot
                    && let Some(wire) = self.table.wires.get(column)
                {
                    field.wire = wire.clone();
                }
            }
        }
    }

    pub(crate) fn frozen(&self, record: &Record<'_>, column: &str, problem: &str) -> Box<Error> {
        Box::new(Error::Frozen { feed: self.feed.clone(), column: column.to_owned(), problem: problem.to_owned(), place: record.place() })
    }

    /// Decides on a field that bare JSON brings and the table does not have, from all its values in the rest of the batch.
    fn unknown_field(&mut self, name: &str, records: &[Record<'_>], index: usize, row: usize) -> Verdict {
        let Some(record) = records.get(index) else { return Verdict::Again };
        if self.is_wrapped(record) {
            return Verdict::Rejected(ReasonCode::BrokenSchema, format!("field {name} is not in the message's schema"));
        }
        if self.table.given_slot(name).is_none() {
            if let Some(reason) = self.not_a_row(record) {
                return Verdict::Ignored(reason);
            }
            let may_add = !self.table.held || matches!(self.table.policy(), SchemaPolicy::Add | SchemaPolicy::Widen);
            if may_add {
                for (name, data_type) in self.infer(records.get(index..).unwrap_or_default()) {
                    let wire = Table::inferred_wire(&data_type);
                    let _ = self.table.place(&name, &data_type, wire, true, row);
                }
            } else {
                match self.table.place(name, &DataType::String, Wire::Anything, true, row) {
                    Placement::Frozen => return Verdict::Stopped(self.frozen(record, name, "the table does not have it")),
                    Placement::At(slot) => {
                        self.set_field(Field::new(name, slot, Wire::Anything, false));
                        return Verdict::Again;
                    }
                }
            }
        }
        let mut field = self.table.open_field(name);
        if field.slot == Slot::Open {
            // Its type shows in no row of the batch; what there is is kept as it is.
            field.slot = Slot::Rescue;
        }
        self.set_field(field);
        self.arrange(record);
        Verdict::Again
    }

    /// Puts the fields of bare rows into the order of a message, those among them that are null so far included, so that each
    /// is found where it is expected.
    fn arrange(&mut self, record: &Record<'_>) {
        let names = self.row_names(record);
        let mut more: Vec<Field> = Vec::new();
        for name in &names {
            if !self.bare.fields.iter().chain(&more).any(|field| field.name == *name) {
                more.push(self.table.open_field(name));
            }
        }
        let place = |field: &Field| names.iter().position(|name| *name == field.name).unwrap_or(usize::MAX);
        self.bare.arrange(more, place);
    }

    fn set_field(&mut self, field: Field) {
        self.bare_key.set(field.clone());
        self.bare.set(field);
    }

    /// Lays out a schema block that was not met before. `None` = done, read the record again.
    pub(crate) fn lay_out(&mut self, new: Box<NewPlan>, record: &Record<'_>, row: usize) -> Verdict {
        let rows = match self.decode {
            Decode::Debezium => match new.schema.child("after").or_else(|| new.schema.child("before")) {
                Some(rows) => rows.clone(),
                None => {
                    self.plans.keep(*new, Layout::default());
                    return Verdict::Again;
                }
            },
            _ => new.schema.clone(),
        };
        if self.decode == Decode::DebeziumFlattened
            && let Some(reason) = crate::ignored::by_fields(record.topic, rows.fields.iter().map(|field| field.field.as_bytes()))
        {
            return Verdict::Ignored(reason);
        }
        let signal = self.decode == Decode::Debezium && self.is_signal_message(record);
        if signal {
            return Verdict::Ignored(IgnoreReason::Signal);
        }
        match self.layout_of_schema(&rows, record, row) {
            Ok(layout) => {
                self.plans.keep(*new, layout);
                Verdict::Again
            }
            Err(verdict) => verdict,
        }
    }

    /// The layout of rows of a schema; new columns are placed by the policy.
    pub(crate) fn layout_of_schema(&mut self, rows: &Schema, record: &Record<'_>, row: usize) -> Result<Layout, Verdict> {
        self.table.layout(rows, row).map_err(|misfit| match misfit {
            Misfit::BrokenSchema(field) => Verdict::Rejected(ReasonCode::BrokenSchema, format!("field {field}: its schema cannot be read")),
            Misfit::Frozen(field) => Verdict::Stopped(self.frozen(record, &field, "the table does not have it")),
        })
    }

    /// How the feed's bytes become columns.
    pub(crate) fn form(&self) -> Decode {
        self.decode
    }

    fn schema_change(&mut self) -> Option<SchemaChange> {
        let (added, widened) = (std::mem::take(&mut self.table.added), std::mem::take(&mut self.table.widened));
        let fields = std::mem::take(&mut self.table.fields_added);
        if added.is_empty() && widened.is_empty() && fields.is_empty() {
            return None;
        }
        let specs =
            |columns: &[usize]| -> Vec<Spec> { columns.iter().filter_map(|column| self.table.specs.get(*column).cloned()).collect() };
        let added = specs(&added).into_iter().chain(fields).collect();
        Some(SchemaChange { columns: self.columns(), added, widened: specs(&widened) })
    }

    fn notes(&mut self, decoded: &mut Decoded) {
        let counts = std::mem::take(&mut self.counts);
        decoded.duplicate_keys = counts.duplicates + std::mem::take(&mut self.reader.duplicates);
        decoded.notes = counts.notes;
        let mut note = |text: &str, count: u64| {
            if count > 0 {
                *decoded.notes.entry(text.to_owned()).or_default() += count;
            }
        };
        note("changes at a position already seen or before it (the source repeats after a restart)", counts.repeated);
        note("changes without a position, placed at the last one of their partition", counts.placeless);
        note("times with digits below a microsecond, cut", std::mem::take(&mut self.reader.cut));
        for name in std::mem::take(&mut self.table.misnamed) {
            note(&format!("field {name} cannot be a column of its own, kept in _rescued_data"), 1);
        }
        for spec in &self.table.specs {
            note(
                &format!("column {}: moments before 1971 or after 2100; is its encoding right?", spec.name),
                far_moments(spec, &decoded.batch),
            );
        }
        let undeclared = self.table.specs.iter().zip(&self.table.undeclared).filter(|(_, undeclared)| **undeclared);
        for (spec, _) in undeclared {
            let Some(array) = decoded.batch.column_by_name(&spec.name) else { continue };
            let values = counts.bare.iter().map(|rows| rows.len() - array.slice(rows.start, rows.len()).null_count()).sum::<usize>();
            note(
                &format!("column {} is not declared, its values are kept as they came ({})", spec.name, spec.data_type),
                u64::try_from(values).unwrap_or(0),
            );
        }
    }
}

/// How many moments of a column whose unit was declared lie where a wrong unit puts them.
fn far_moments(spec: &Spec, batch: &RecordBatch) -> u64 {
    const PLAUSIBLE: std::ops::Range<i64> = 365 * DAY..47_847 * DAY;
    let counted = matches!(spec.encoding, Some(Encoding::Millis | Encoding::Micros | Encoding::Nanos));
    let moments =
        batch.column_by_name(&spec.name).filter(|_| counted).and_then(|array| array.as_primitive_opt::<TimestampMicrosecondType>());
    moments.map_or(0, |moments| moments.iter().flatten().filter(|micros| !PLAUSIBLE.contains(micros)).count() as u64)
}

/// Adds a declared column.
fn declare(feed: &SourceFeed, table: &mut Table, column: &Spec, plain: bool) -> Result<(), Error> {
    if system::is_reserved(&column.name) {
        return Err(declaration(feed, &column.name, "the name is one of ours; names may not begin with __ either"));
    }
    if table.specs.iter().any(|known| known.name.eq_ignore_ascii_case(&column.name)) {
        return Err(declaration(feed, &column.name, "declared twice (case does not tell columns apart)"));
    }
    let wire = Wire::declared(&column.data_type, column.encoding, plain).map_err(|choices| {
        declaration(feed, &column.name, &format!("the encoding does not go with {}; encodings that do: {choices}", column.data_type))
    })?;
    table.push(column.clone(), wire, false, 0);
    Ok(())
}

fn declaration(feed: &SourceFeed, column: &str, problem: &str) -> Error {
    Error::Declaration { feed: feed.name.clone(), column: column.to_owned(), problem: problem.to_owned() }
}

pub(crate) fn reason_of(broken: crate::json::Broken) -> ReasonCode {
    match broken {
        crate::json::Broken::Deep(_) => ReasonCode::TooDeep,
        _ => ReasonCode::BrokenJson,
    }
}

/// The partitions met; the last one of each number is found at once.
#[derive(Debug)]
pub(crate) struct Tracks {
    /// Only asked beyond the first few partitions.
    places: HashMap<String, HashMap<i32, usize>>,
    tracks: Vec<(String, i32, Track)>,
    /// Where a partition was found the last time, by the end of its number.
    recent: [usize; RECENT],
    last: usize,
}

/// Topics seldom have more partitions.
const RECENT: usize = 64;

impl Default for Tracks {
    fn default() -> Self {
        Self { places: HashMap::new(), tracks: Vec::new(), recent: [0; RECENT], last: 0 }
    }
}

impl Tracks {
    /// The track of a partition; a new one where there is none.
    #[inline]
    pub(crate) fn get(&mut self, topic: &str, partition: i32) -> &mut Track {
        let recent = partition.cast_unsigned() as usize % RECENT;
        self.last = self.recent[recent];
        let is = |(known, number, _): &(String, i32, Track)| *number == partition && same(known.as_bytes(), topic.as_bytes());
        if !self.tracks.get(self.last).is_some_and(is) {
            self.last = self.place(topic, partition);
            self.recent[recent] = self.last;
        }
        &mut self.tracks[self.last].2
    }

    /// The track that [`Tracks::get`] gave last.
    #[inline(always)]
    pub(crate) fn again(&mut self) -> Option<&mut Track> {
        self.tracks.get_mut(self.last).map(|(_, _, track)| track)
    }

    fn place(&mut self, topic: &str, partition: i32) -> usize {
        const FEW: usize = 16;
        let is = |(known, number, _): &(String, i32, Track)| *number == partition && known == topic;
        if let Some(place) = self.tracks.iter().take(FEW).position(is) {
            return place;
        }
        if let Some(place) = self.places.get(topic).and_then(|partitions| partitions.get(&partition)) {
            return *place;
        }
        let place = self.tracks.len();
        self.tracks.push((topic.to_owned(), partition, Track::default()));
        self.places.entry(topic.to_owned()).or_default().insert(partition, place);
        place
    }
}
