//! What each source row is: an event of the dataset, a row for quarantine, or nothing to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_lake::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, StringArray, StructArray, UInt32Array, new_null_array,
};
use tributary_lake::arrow::buffer::NullBuffer;
use tributary_lake::arrow::compute::{interleave, take, take_record_batch};
use tributary_lake::arrow::datatypes::{DataType, Field, Fields, Int64Type};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{Table, key_text, partition_refusal};
use tributary_specs::{Column, Expectation, ExpectationAction, IgnoreNullUpdates, MergePolicy, NullKeys, RuleCount, SilverSpec, TableName};

use crate::before_images::{self, BEFORE, BeforeImages};
use crate::conform::conform;
use crate::error::{Error, Result};
use crate::events::{Events, Kind};
use crate::leaves::LeafSet;
use crate::select::{Compiled, Selected, Selection};
use crate::shape::Shape;
use crate::source::{Delivery, Source};
use crate::stop::{has_room, note};

/// The rule that a row without a key breaks.
pub(crate) const NULL_KEY: &str = "NULL_KEY";
/// The rule that a row without a sequence breaks.
pub(crate) const NULL_SEQUENCE: &str = "NULL_SEQUENCE";
/// The rule that a row breaks whose partition no table of Delta's can have.
pub(crate) const NO_PARTITION: &str = "NO_PARTITION";

/// The spec's rules over the rows of its query.
#[derive(Debug)]
pub(crate) struct Judge {
    table: TableName,
    source: TableName,
    delivery: Delivery,
    /// Whether each change of a feed is a row, whatever it does to rows of the source.
    changes_are_rows: bool,
    policy: MergePolicy,
    null_keys: NullKeys,
    implicit_deletes: bool,
    sequence: Vec<Compiled>,
    sequence_fields: Vec<String>,
    delete: Option<Compiled>,
    truncate: Option<Compiled>,
    upserts_when: Option<Compiled>,
    deletes_when: Option<Compiled>,
    expectations: Vec<(Expectation, Compiled)>,
    ignore_nulls: IgnoreNullUpdates,
    /// For each output column the source columns it is made of.
    made_of: Vec<(String, std::collections::BTreeSet<String>)>,
    /// The source column each key column is, where all are one.
    key_origins: Option<Vec<String>>,
    keys: Vec<String>,
    /// Whether a delete without a sequence has a place among the events by its position.
    cuts: bool,
    /// The table's partition columns.
    partition_by: Vec<String>,
    /// How what events say their rows were is found, where it can stand for rows of the table.
    pub before_images: Option<BeforeImages>,
}

/// What a batch of rows came to.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Events, in the shape of the target.
    pub events: Events,
    /// Which events are the preimages of updates in a change feed.
    pub preimages: Vec<bool>,
    /// Rows for quarantine.
    pub rejected: Option<Rejected>,
    /// Rows left out, by reason.
    pub ignored: BTreeMap<String, u64>,
    /// What each expectation came to, in their order.
    pub rules: Vec<Counted>,
    /// What forbids the commit, if anything.
    pub stop: Option<Error>,
}

/// What an expectation came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub passed: u64,
    pub failed: u64,
    /// Left out or set aside because of it before any other.
    pub dropped: u64,
}

/// Adds counts to counts, rule by rule.
pub(crate) fn add_counts(into: &mut Vec<Counted>, from: &[Counted]) {
    into.resize(into.len().max(from.len()), Counted::default());
    for (into, from) in into.iter_mut().zip(from) {
        into.passed += from.passed;
        into.failed += from.failed;
        into.dropped += from.dropped;
    }
}

/// Rows for quarantine.
#[derive(Debug, Clone)]
pub(crate) struct Rejected {
    /// In the shape of the target.
    pub rows: RecordBatch,
    /// The rule each broke.
    pub rules: StringArray,
    /// Source position, file and line, as far as there are any.
    pub positions: ArrayRef,
    pub files: ArrayRef,
    pub lines: ArrayRef,
}

impl Judge {
    /// Plans the rules of `spec` for the table that is there, or will be.
    ///
    /// # Errors
    /// When an expression cannot be planned or the sequence has no order.
    pub fn new(spec: &SilverSpec, source: &Source, selection: &Selection, existing: Option<&Table>) -> Result<Self> {
        let compile = |clause: &str, sql: Option<&str>| sql.map(|sql| selection.compile(clause, sql)).transpose();
        let mut sequence = Vec::new();
        let mut sequence_fields = Vec::new();
        if spec.policy != MergePolicy::Append {
            for (at, sql) in spec.sequence_by.iter().enumerate() {
                let compiled = selection.compile("sequence_by", sql)?;
                check_ordered(&spec.table, sql, &compiled.data_type)?;
                sequence_fields.push(compiled.column.clone().unwrap_or_else(|| format!("sequence_{}", at + 1)));
                sequence.push(compiled);
            }
        }
        let expectations = spec.expectations.iter().map(|expectation| {
            let compiled = selection.compile(&format!("expectation `{}`", expectation.name), &expectation.expression)?;
            Ok((expectation.clone(), compiled))
        });
        let same_as = |key: &String| {
            let at = selection.position(key)?;
            selection.origins[at].same_as.clone()
        };
        let before_images = BeforeImages::of(spec, source, selection, &sequence);
        Ok(Self {
            before_images,
            table: spec.table.clone(),
            source: source.name().clone(),
            delivery: source.delivery,
            changes_are_rows: spec.policy == MergePolicy::Append && spec.stream.is_change_feed(),
            policy: spec.policy.clone(),
            null_keys: spec.null_keys,
            implicit_deletes: spec.implicit_deletes(),
            sequence,
            sequence_fields,
            delete: compile("apply_as_delete_when", spec.deletes.apply_as_delete_when.as_deref())?,
            truncate: compile("apply_as_truncate_when", spec.deletes.apply_as_truncate_when.as_deref())?,
            upserts_when: compile("insert_when", spec.upserts_when())?,
            deletes_when: compile("delete_when", spec.deletes_when())?,
            expectations: expectations.collect::<Result<_>>()?,
            ignore_nulls: spec.ignore_null_updates.clone(),
            made_of: selection
                .columns
                .iter()
                .zip(&selection.origins)
                .map(|(column, origin)| (column.name.clone(), origin.columns.clone()))
                .collect(),
            key_origins: spec.keys.iter().map(same_as).collect(),
            keys: spec.keys.clone(),
            cuts: true,
            partition_by: existing.map_or(&spec.partition_by[..], Table::partition_columns).to_vec(),
        })
    }

    /// A column of the table is computed from others: it is unsent where one of them is, and no before-image has it.
    pub fn is_generated(&mut self, column: &str, from: &[String]) {
        let is_of = |name: &String| from.iter().any(|other| other.eq_ignore_ascii_case(name));
        let made_of = self.made_of.iter().filter(|(name, _)| is_of(name)).flat_map(|(_, origins)| origins.clone()).collect();
        self.made_of.push((column.to_owned(), made_of));
        self.before_images = None;
    }

    /// No delete of one flow's source is before or after what another flow brought, but by the declared sequence.
    pub fn of_several_flows(&mut self) {
        self.cuts = false;
        self.before_images = None;
    }

    /// What the expectations came to, as reports have it.
    pub fn rule_counts(&self, flow: &str, counts: &[Counted]) -> Vec<RuleCount> {
        let count = |((expectation, _), counted): (&(Expectation, Compiled), &Counted)| RuleCount {
            flow: flow.to_owned(),
            rule: expectation.name.clone(),
            action: expectation.action.word().to_owned(),
            passed: counted.passed,
            failed: counted.failed,
            dropped: counted.dropped,
        };
        self.expectations.iter().zip(counts).map(count).collect()
    }

    /// Failures by expectation, where there are any.
    pub fn failures(&self, counts: &[Counted]) -> BTreeMap<String, u64> {
        let failed = self.expectations.iter().zip(counts).filter(|(_, counted)| counted.failed > 0);
        failed.map(|((expectation, _), counted)| (expectation.name.clone(), counted.failed)).collect()
    }

    /// The type of the declared sequence, in Delta's terms; none where the order is the position.
    ///
    /// # Errors
    /// When Delta has no such type.
    pub fn sequence_type(&self) -> Result<Option<tributary_specs::DataType>> {
        let delta = |name: &String, data_type: &DataType| {
            tributary_specs::DataType::for_result(name, data_type).map_err(|error| Error::spec(&self.table, error.to_string()))
        };
        Ok(match (self.sequence.as_slice(), self.sequence_fields.as_slice()) {
            ([], _) => None,
            ([one], [name]) => Some(delta(name, &one.data_type)?),
            (many, names) => {
                let field = |(compiled, name): (&Compiled, &String)| Ok(Column::new(name, delta(name, &compiled.data_type)?));
                Some(tributary_specs::DataType::Struct(many.iter().zip(names).map(field).collect::<Result<_>>()?))
            }
        })
    }

    /// The columns the declared sequence is, where it is nothing but columns.
    pub fn sequence_columns(&self) -> Option<Vec<String>> {
        self.sequence.iter().map(|compiled| compiled.column.clone()).collect()
    }

    /// Judges a batch. `new` says whether its rows can still go to quarantine; those of an earlier attempt are there already.
    ///
    /// # Errors
    /// When an expression fails on the rows.
    pub fn judge(&self, selected: &Selected, shape: &Shape) -> Result<Judged> {
        let fail = |error| Error::kernel(&self.table, error);
        let rows = self.rows(&selected.output, shape)?;
        let mut bench = Bench { judge: self, selected, shape, fates: vec![Fate::Upsert; rows.num_rows()], ignored: BTreeMap::new() };
        bench.read_operations()?;
        bench.apply_policy()?;
        let positions = self.positions(selected, rows.num_rows()).map_err(fail)?;
        let sequence = self.sequence(selected)?;
        let places = Places { positions: &positions, files: text(selected.rider("_file")).map_err(fail)?, lines: selected.rider("_line") };
        let unwritten = self.unwritten(selected, shape, &rows, &bench.fates).map_err(fail)?;
        let mut stop = bench.check_nulls(&rows, sequence.as_ref(), positions.is_some(), &places);
        bench.check_partitions(&rows);
        let rules = bench.check_expectations(&rows, &mut stop, &places)?;
        let Bench { fates, ignored, .. } = bench;

        let kept: UInt32Array = (0..fates.len() as u32).filter(|row| fates[*row as usize].kind().is_some()).collect();
        let pick = |array: &ArrayRef| take(array, &kept, None);
        let kinds: Vec<Kind> = fates.iter().filter_map(Fate::kind).collect();
        let preimages = fates.iter().filter(|fate| fate.kind().is_some()).map(|fate| *fate == Fate::Preimage).collect();
        let other_key = self.other_keys(selected, shape, &fates).map_err(fail)?;
        let before = self.before(selected, shape, sequence.as_ref()).map_err(fail)?;
        let events = Events {
            rows: take_record_batch(&rows, &kept).map_err(fail)?,
            kinds,
            sequence: sequence.as_ref().map(pick).transpose().map_err(fail)?,
            position: if shape.positions {
                positions.as_ref().map(pick).transpose().map_err(fail)?.map(|array| array.as_string::<i32>().clone())
            } else {
                None
            },
            unwritten: if unwritten.is_empty() {
                Vec::new()
            } else {
                kept.values().iter().map(|row| unwritten[*row as usize].clone()).collect()
            },
            carried: Vec::new(),
            other_key: other_key.map(|array| take(&array, &kept, None)).transpose().map_err(fail)?.map(|array| array.as_struct().clone()),
            before: before.map(|array| take(&array, &kept, None)).transpose().map_err(fail)?.map(|array| array.as_struct().clone()),
            covers_row: Vec::new(),
            ends: None,
        };
        let rejected = self.rejected(&rows, &fates, &places).map_err(fail)?;
        Ok(Judged { events, preimages, rejected, ignored, rules, stop })
    }

    /// The output columns as the target has them; what the query no longer yields is null.
    fn rows(&self, output: &RecordBatch, shape: &Shape) -> Result<RecordBatch> {
        let fail = |error| Error::kernel(&self.table, error);
        let column = |field: &Arc<Field>| match output.column_by_name(field.name()) {
            Some(array) => conform(array, field.data_type()),
            None => Ok(new_null_array(field.data_type(), output.num_rows())),
        };
        let columns = shape.schema.fields().iter().map(column).collect::<Result<Vec<_>, _>>().map_err(fail)?;
        let options = RecordBatchOptions::new().with_row_count(Some(output.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&shape.schema), columns, &options).map_err(fail)
    }

    fn sequence(&self, selected: &Selected) -> Result<Option<ArrayRef>> {
        let Some(data_type) = self.sequence_type()? else { return Ok(None) };
        let query = |error| Error::query(&self.table, error);
        let kernel = |error| Error::kernel(&self.table, error);
        let mut values = Vec::with_capacity(self.sequence.len());
        for compiled in &self.sequence {
            values.push(compiled.values(&selected.scope).map_err(query)?);
        }
        if let ([one], false) = (values.as_slice(), matches!(data_type, tributary_specs::DataType::Struct(_)) && self.sequence.len() > 1) {
            return conform(one, &data_type.to_arrow()).map(Some).map_err(kernel);
        }
        let DataType::Struct(fields) = data_type.to_arrow() else { return Ok(None) };
        let cast = |(array, field): (&ArrayRef, &Arc<Field>)| conform(array, field.data_type());
        let columns = values.iter().zip(&fields).map(cast).collect::<Result<Vec<_>, _>>().map_err(kernel)?;
        // One null part makes the whole null: it has no place in the order.
        let nulls = columns.iter().fold(None, |nulls, column| NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref()));
        Ok(Some(Arc::new(StructArray::try_new(fields, columns, nulls).map_err(kernel)?)))
    }

    fn positions(&self, selected: &Selected, rows: usize) -> Result<Option<ArrayRef>, ArrowError> {
        match self.delivery {
            Delivery::Feed => {
                let Some(versions) = selected.rider("_commit_version") else { return Ok(None) };
                let versions = versions.as_primitive::<Int64Type>();
                let text = (0..rows).map(|row| versions.is_valid(row).then(|| format!("{:020}", versions.value(row))));
                Ok(Some(Arc::new(StringArray::from_iter(text))))
            }
            Delivery::Changes | Delivery::Rows => text(selected.rider("_position")),
        }
    }

    /// The leaves each upsert did not write: unsent by the source, or null where null means that.
    fn unwritten(&self, selected: &Selected, shape: &Shape, rows: &RecordBatch, fates: &[Fate]) -> Result<Vec<LeafSet>, ArrowError> {
        let mut sets: Vec<LeafSet> = Vec::new();
        let mut insert = |row: usize, leaf: usize| {
            if sets.is_empty() {
                sets.resize(fates.len(), LeafSet::default());
            }
            sets[row].insert(leaf);
        };
        let may = |column: usize| !shape.keys.contains(&column);
        if let Some(unsent) = selected.rider("_unavailable").filter(|array| array.null_count() < array.len()) {
            let unsent = unsent.as_list::<i32>();
            for row in (0..unsent.len()).filter(|row| unsent.is_valid(*row) && fates[*row] == Fate::Upsert) {
                let names = unsent.value(row);
                for name in names.as_string::<i32>().iter().flatten() {
                    for column in self.columns_made_of(name, shape).filter(|column| may(*column)) {
                        shape.leaves.of_column(column).for_each(|leaf| insert(row, leaf));
                    }
                }
            }
        }
        for leaf in 0..shape.leaves.len() {
            let of = shape.leaves.get(leaf);
            if !may(of.column) || !self.ignores_nulls_of(shape.schema.field(of.column).name()) {
                continue;
            }
            let values = crate::leaves::leaf_array(rows.column(of.column), &of.path)?;
            (0..values.len()).filter(|row| values.is_null(*row) && fates[*row] == Fate::Upsert).for_each(|row| insert(row, leaf));
        }
        Ok(sets)
    }

    fn columns_made_of<'s>(&'s self, source_column: &'s str, shape: &'s Shape) -> impl Iterator<Item = usize> + 's {
        let made = self.made_of.iter().filter(move |(_, columns)| columns.contains(source_column));
        made.filter_map(|(name, _)| shape.schema.index_of(name).ok())
    }

    fn ignores_nulls_of(&self, column: &str) -> bool {
        match &self.ignore_nulls {
            IgnoreNullUpdates::Off => false,
            IgnoreNullUpdates::All => true,
            IgnoreNullUpdates::Columns(columns) => columns.iter().any(|name| name.eq_ignore_ascii_case(column)),
        }
    }

    /// The other key of key changes, where every key column is a column of the source's own key.
    fn other_keys(&self, selected: &Selected, shape: &Shape, fates: &[Fate]) -> Result<Option<StructArray>, ArrowError> {
        if shape.keys.is_empty() {
            return Ok(None);
        }
        let none = || {
            let fields = shape.keys.iter().map(|key| shape.schema.field(*key).clone().with_nullable(true)).collect::<Fields>();
            let columns = fields.iter().map(|field| new_null_array(field.data_type(), fates.len())).collect();
            StructArray::try_new(fields, columns, Some(NullBuffer::new_null(fates.len())))
        };
        let (Some(origins), Some(from), Some(to)) =
            (&self.key_origins, selected.rider("_key_changed_from"), selected.rider("_key_changed_to"))
        else {
            return none().map(Some);
        };
        let (from, to) = (from.as_struct(), to.as_struct());
        let is_upsert = |row: usize| fates[row] == Fate::Upsert;
        let valid = NullBuffer::from_iter((0..fates.len()).map(|row| if is_upsert(row) { from.is_valid(row) } else { to.is_valid(row) }));
        let mut columns = Vec::with_capacity(origins.len());
        for (origin, key) in origins.iter().zip(&shape.keys) {
            let (Some(before), Some(after)) = (from.column_by_name(origin), to.column_by_name(origin)) else { return none().map(Some) };
            let places: Vec<(usize, usize)> = (0..fates.len()).map(|row| (usize::from(!is_upsert(row)), row)).collect();
            let data_type = shape.schema.field(*key).data_type();
            let (before, after) = (conform(before, data_type)?, conform(after, data_type)?);
            columns.push(interleave(&[before.as_ref(), after.as_ref()], &places)?);
        }
        let fields = shape.keys.iter().map(|key| shape.schema.field(*key).clone().with_nullable(true)).collect::<Fields>();
        StructArray::try_new(fields, columns, Some(valid)).map(Some)
    }

    /// What the rows were before, where the source says so and it can stand for rows of the table.
    fn before(&self, selected: &Selected, shape: &Shape, sequence: Option<&ArrayRef>) -> Result<Option<StructArray>, ArrowError> {
        let (Some(images), Some(before), Some(sequence)) = (&self.before_images, before_images::riding(selected.rider(BEFORE)), sequence)
        else {
            return Ok(None);
        };
        images.of_rows(before, shape, sequence.data_type())
    }

    fn rejected(&self, rows: &RecordBatch, fates: &[Fate], places: &Places<'_>) -> Result<Option<Rejected>, ArrowError> {
        let at: UInt32Array = (0..fates.len() as u32).filter(|row| matches!(fates[*row as usize], Fate::Rejected(_))).collect();
        if at.is_empty() {
            return Ok(None);
        }
        let rule = |row: &u32| match &fates[*row as usize] {
            Fate::Rejected(Rule::Key) => NULL_KEY,
            Fate::Rejected(Rule::Sequence) => NULL_SEQUENCE,
            Fate::Rejected(Rule::Partition) => NO_PARTITION,
            Fate::Rejected(Rule::Expectation(at)) => self.expectations[*at].0.name.as_str(),
            _ => "",
        };
        let or_null = |array: Option<&ArrayRef>, data_type: &DataType| match array {
            Some(array) => take(array, &at, None),
            None => Ok(new_null_array(data_type, at.len())),
        };
        Ok(Some(Rejected {
            rows: take_record_batch(rows, &at)?,
            rules: StringArray::from_iter_values(at.values().iter().map(rule)),
            positions: or_null(places.positions.as_ref(), &DataType::Utf8)?,
            files: or_null(places.files.as_ref(), &DataType::Utf8)?,
            lines: or_null(places.lines, &DataType::Int64)?,
        }))
    }
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Upsert,
    Delete,
    /// The preimage of an update in a change feed: a delete of its key, unless the key has a postimage.
    Preimage,
    /// A delete by the source that has no place in the declared order.
    Cut,
    Truncate,
    TruncateCut,
    Ignored,
    Rejected(Rule),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Key,
    Sequence,
    Partition,
    Expectation(usize),
}

impl Fate {
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Upsert => Some(Kind::Upsert),
            Self::Delete | Self::Preimage => Some(Kind::Delete),
            Self::Cut => Some(Kind::Cut),
            Self::Truncate => Some(Kind::Truncate),
            Self::TruncateCut => Some(Kind::TruncateCut),
            Self::Ignored | Self::Rejected(_) => None,
        }
    }
}

/// Where rows stand in the source.
struct Places<'a> {
    positions: &'a Option<ArrayRef>,
    files: Option<ArrayRef>,
    lines: Option<&'a ArrayRef>,
}

impl Places<'_> {
    fn name(&self, row: usize) -> String {
        let value = |array: Option<&ArrayRef>| {
            array.filter(|array| array.is_valid(row)).map(|array| array.as_string::<i32>().value(row).to_owned())
        };
        if let Some(position) = value(self.positions.as_ref()) {
            return format!("position {position}");
        }
        let line = self
            .lines
            .filter(|array| array.is_valid(row))
            .and_then(|array| array.as_primitive_opt::<Int64Type>())
            .map(|lines| lines.value(row));
        match (value(self.files.as_ref()), line) {
            (Some(file), Some(line)) => format!("{file} line {line}"),
            (Some(file), None) => file,
            _ => "an unknown position".to_owned(),
        }
    }
}

/// A batch under judgement.
struct Bench<'a> {
    judge: &'a Judge,
    selected: &'a Selected,
    shape: &'a Shape,
    fates: Vec<Fate>,
    ignored: BTreeMap<String, u64>,
}

impl Bench<'_> {
    fn ignore(&mut self, row: usize, reason: &str) {
        self.fates[row] = Fate::Ignored;
        *self.ignored.entry(reason.to_owned()).or_default() += 1;
    }

    /// For which rows a condition is true; null is not.
    fn is_true(&self, condition: &Compiled) -> Result<BooleanArray> {
        let values = condition.values(&self.selected.scope).map_err(|error| Error::query(&self.judge.table, error))?;
        let values = conform(&values, &DataType::Boolean).map_err(|error| Error::kernel(&self.judge.table, error))?;
        let values = values.as_boolean();
        Ok((0..values.len()).map(|row| Some(values.is_valid(row) && values.value(row))).collect())
    }

    /// What each row does, by the source and by the spec's own conditions.
    fn read_operations(&mut self) -> Result<()> {
        let judge = self.judge;
        let operations = match judge.delivery {
            Delivery::Changes => self.selected.rider("_op"),
            Delivery::Feed => self.selected.rider("_change_type").filter(|_| !judge.changes_are_rows),
            Delivery::Rows => None,
        };
        let operations = text(operations).map_err(|error| Error::kernel(&judge.table, error))?;
        let delete = judge.delete.as_ref().map(|condition| self.is_true(condition)).transpose()?;
        let truncate = judge.truncate.as_ref().map(|condition| self.is_true(condition)).transpose()?;
        for row in 0..self.fates.len() {
            let operation = operations.as_ref().filter(|array| array.is_valid(row)).map(|array| array.as_string::<i32>().value(row));
            let says = |condition: &Option<BooleanArray>| condition.as_ref().map(|values| values.value(row));
            let by_source = match operation {
                Some("delete") => Fate::Delete,
                Some("truncate") => Fate::Truncate,
                Some("update_preimage") => Fate::Preimage,
                _ => Fate::Upsert,
            };
            self.fates[row] = match (says(&truncate), says(&delete), by_source) {
                (Some(true), _, _) => Fate::Truncate,
                (None, _, Fate::Truncate) if judge.implicit_deletes => Fate::Truncate,
                (_, _, Fate::Preimage) => Fate::Preimage,
                (_, Some(true), _) => Fate::Delete,
                (_, None, Fate::Delete) if judge.implicit_deletes => Fate::Delete,
                _ => Fate::Upsert,
            };
        }
        Ok(())
    }

    /// Leaves out what the policy or a condition does not apply.
    fn apply_policy(&mut self) -> Result<()> {
        let judge = self.judge;
        let upserts_when = judge.upserts_when.as_ref().map(|condition| self.is_true(condition)).transpose()?;
        let deletes_when = judge.deletes_when.as_ref().map(|condition| self.is_true(condition)).transpose()?;
        let moves = self.selected.rider("_key_changed_to").cloned();
        for row in 0..self.fates.len() {
            let refuses = |condition: &Option<BooleanArray>| condition.as_ref().is_some_and(|values| !values.value(row));
            let is_half = moves.as_ref().is_some_and(|moves| moves.is_valid(row));
            match self.fates[row] {
                Fate::Delete if !judge.policy.applies_deletes() => self.ignore(row, "delete"),
                Fate::Preimage if !judge.policy.applies_deletes() || !judge.implicit_deletes => self.ignore(row, "preimage"),
                Fate::Truncate if !judge.policy.applies_deletes() => self.ignore(row, "truncate"),
                Fate::Delete if refuses(&deletes_when) && !is_half => self.ignore(row, "delete_when"),
                Fate::Upsert if refuses(&upserts_when) => self.ignore(row, "insert_when"),
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds rows without a key or a place in the order, and deletes that are cuts.
    fn check_nulls(&mut self, rows: &RecordBatch, sequence: Option<&ArrayRef>, positions: bool, places: &Places<'_>) -> Option<Error> {
        let judge = self.judge;
        let operations = text(self.selected.rider("_op")).ok().flatten();
        let by_source = |row: usize, word: &str| {
            operations.as_ref().is_some_and(|array| array.is_valid(row) && array.as_string::<i32>().value(row) == word)
        };
        let has_position = |row: usize| positions && places.positions.as_ref().is_some_and(|array| array.is_valid(row));
        let mut stop = None;
        for row in 0..self.fates.len() {
            let fate = self.fates[row];
            if matches!(fate, Fate::Ignored | Fate::Rejected(_)) || judge.policy == MergePolicy::Append {
                continue;
            }
            let null_key = || self.shape.keys.iter().copied().find(|key| rows.column(*key).is_null(row));
            if judge.null_keys != NullKeys::NullSafe
                && fate != Fate::Truncate
                && let Some(key) = null_key()
            {
                self.fates[row] = Fate::Rejected(Rule::Key);
                if judge.null_keys == NullKeys::Refuse {
                    note(&mut stop, || Error::NullKey {
                        table: judge.table.clone(),
                        source_table: Box::new(judge.source.clone()),
                        column: self.shape.schema.field(key).name().clone(),
                        rows: 0,
                        position: places.name(row),
                    });
                }
                continue;
            }
            let unordered = match sequence {
                Some(sequence) => sequence.is_null(row),
                None => self.shape.positions && !has_position(row),
            };
            if !unordered {
                continue;
            }
            self.fates[row] = match fate {
                Fate::Delete if judge.cuts && sequence.is_some() && by_source(row, "delete") && has_position(row) => Fate::Cut,
                Fate::Truncate if judge.cuts && sequence.is_some() && by_source(row, "truncate") && has_position(row) => Fate::TruncateCut,
                _ => {
                    if judge.null_keys == NullKeys::Refuse {
                        note(&mut stop, || Error::NullSequence {
                            table: judge.table.clone(),
                            source_table: Box::new(judge.source.clone()),
                            rows: 0,
                            position: places.name(row),
                        });
                    }
                    Fate::Rejected(Rule::Sequence)
                }
            };
        }
        stop
    }

    /// Finds rows that no partition can hold. A delete finds its row wherever that is.
    fn check_partitions(&mut self, rows: &RecordBatch) {
        for values in self.judge.partition_by.iter().filter_map(|name| rows.column_by_name(name)) {
            let is_refused = |row: &usize| self.fates[*row] == Fate::Upsert && partition_refusal(values, *row).is_some();
            let refused: Vec<usize> = (0..self.fates.len()).filter(is_refused).collect();
            refused.into_iter().for_each(|row| self.fates[row] = Fate::Rejected(Rule::Partition));
        }
    }

    /// Holds upserts to the expectations; a rule over a column the source did not send says nothing.
    fn check_expectations(&mut self, rows: &RecordBatch, stop: &mut Option<Error>, places: &Places<'_>) -> Result<Vec<Counted>> {
        let judge = self.judge;
        let mut counts = vec![Counted::default(); judge.expectations.len()];
        let mut broken: Vec<Option<(usize, Fate)>> = vec![None; self.fates.len()];
        for (at, (expectation, compiled)) in judge.expectations.iter().enumerate() {
            let passes = self.is_true(compiled)?;
            let unsent = unsent_rows(self.selected, compiled);
            for row in (0..self.fates.len()).filter(|row| self.fates[*row] == Fate::Upsert && !unsent.contains(row)) {
                if passes.value(row) {
                    counts[at].passed += 1;
                    continue;
                }
                counts[at].failed += 1;
                match expectation.action {
                    ExpectationAction::Warn => {}
                    ExpectationAction::Drop => broken[row] = broken[row].or(Some((at, Fate::Ignored))),
                    ExpectationAction::Quarantine => {
                        if !matches!(broken[row], Some((_, Fate::Rejected(_)))) {
                            broken[row] = Some((at, Fate::Rejected(Rule::Expectation(at))));
                        }
                    }
                    ExpectationAction::Fail => {
                        let key = match has_room(stop.as_ref(), &expectation.name) {
                            true => key_text(rows, &judge.keys, row).map_err(|error| Error::kernel(&judge.table, error))?,
                            false => None,
                        };
                        note(stop, || Error::Expectation {
                            table: judge.table.clone(),
                            expectation: expectation.name.clone(),
                            rows: 0,
                            position: places.name(row),
                            keys: key.into_iter().collect(),
                        });
                    }
                }
            }
        }
        for (row, broken) in broken.into_iter().enumerate() {
            let Some((rule, fate)) = broken else { continue };
            counts[rule].dropped += 1;
            match fate {
                Fate::Ignored => self.ignore(row, "expectation"),
                fate => self.fates[row] = fate,
            }
        }
        Ok(counts)
    }
}

fn unsent_rows(selected: &Selected, compiled: &Compiled) -> std::collections::BTreeSet<usize> {
    let Some(unsent) = selected.rider("_unavailable").filter(|array| array.null_count() < array.len()) else { return Default::default() };
    let unsent = unsent.as_list::<i32>();
    let reads = |row: &usize| unsent.value(*row).as_string::<i32>().iter().flatten().any(|name| compiled.reads.contains(name));
    (0..unsent.len()).filter(|row| unsent.is_valid(*row)).filter(reads).collect()
}

/// Text in its plain layout.
fn text(array: Option<&ArrayRef>) -> Result<Option<ArrayRef>, ArrowError> {
    array.map(|array| conform(array, &DataType::Utf8)).transpose()
}

fn check_ordered(table: &TableName, sql: &str, data_type: &DataType) -> Result<()> {
    let ordered = |data_type: &DataType| {
        data_type.is_numeric() || data_type.is_temporal() || matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
    };
    let fine = match data_type {
        DataType::Struct(fields) => !fields.is_empty() && fields.iter().all(|field| ordered(field.data_type())),
        other => ordered(other),
    };
    if fine { Ok(()) } else { Err(Error::spec(table, format!("sequence_by `{sql}` is {data_type}, which has no order of changes"))) }
}
