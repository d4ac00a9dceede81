//! The dataset's own table: what it is declared with, how it looks to the fold, and how it grows.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_lake::arrow::array::{
    ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, StringArray, StructArray, new_null_array,
};
use tributary_lake::arrow::datatypes::{DataType as Arrow, Field, Fields, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{DELETION_VECTORS_ON, Generated, Lake, Table, TableLayout};
use tributary_specs::{
    Column, ColumnSelection, DELETE_MEMORY_SECONDS, DataType, GrowthPolicy, IgnoreNullUpdates, MergePolicy, SilverSpec, TableSpec,
    check_declared,
};

use crate::assemble::NewRows;
use crate::conform::conform;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::growth::{grown, is_retyped, ordered_alike};
use crate::judge::Judge;
use crate::leaves::Leaves;
use crate::select::Selection;
use crate::shape::{Form, Order, Shape};
use crate::source::ROW_CHANGES;

/// The source position of the event that made the row.
pub(crate) const POSITION: &str = "__position";
/// The declared sequence of the event that made the row, where no column of the table is it.
pub(crate) const SEQUENCE: &str = "__sequence";
/// From when on the row is a version of its key.
pub(crate) const START_AT: &str = "__START_AT";
/// Until when it is.
pub(crate) const END_AT: &str = "__END_AT";

const KEYS: &str = "tributary.keys";
const POLICY: &str = "tributary.policy";
const SEQUENCE_TYPE: &str = "tributary.sequence";

/// A table as it is declared and as it is.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// How the fold sees it.
    pub shape: Shape,
    /// All columns after the next commit.
    pub columns: Vec<Column>,
    /// Whether that commit adds columns.
    pub grows: bool,
    /// Columns, in their new type, for which the table that is there must be written anew first.
    pub widened: Vec<Column>,
    /// The mark of removed rows.
    pub mark: Option<String>,
    /// Columns that are the declared sequence, where `__sequence` is not kept.
    sequence_columns: Option<Vec<String>>,
    /// The declared sequence's type.
    sequence_type: Option<DataType>,
    /// Whether rows that go may be marked as deleted where they stand: unless the declaration forbids it.
    pub vectors: bool,
    /// How the table lies from the next commit on, where that is otherwise than before.
    pub lies: Option<TableLayout>,
    /// How long deletes are remembered, where it is declared: maintenance goes by it.
    pub delete_memory: Option<String>,
    /// Columns of events that the query does not yield, for they are generated.
    generated_of_events: Generated,
    /// The same among all columns of the table.
    generated_of_rows: Generated,
}

impl Target {
    /// The table `spec` comes to, given what its query yields and the table that is there.
    ///
    /// # Errors
    /// When the declared schema does not fit the query, or the table that is there was made by another declaration.
    pub fn new(
        spec: &SilverSpec,
        selection: &Selection,
        judge: &Judge,
        has_positions: Option<bool>,
        existing: Option<&Table>,
    ) -> Result<Self> {
        if spec.deletes.apply_as_truncate_when.is_some() && matches!(spec.policy, MergePolicy::ScdType2 { .. }) {
            let reason = "TRUNCATE_REQUIRES_SCD1: apply_as_truncate_when would erase history, which scd_type2 keeps";
            return Err(Error::spec(&spec.table, reason));
        }
        check_schema(spec, selection)?;
        let sequence_type = kept_sequence(spec.schema_policy, existing.and_then(recorded_sequence), judge.sequence_type()?);
        let mark = spec.deletes.soft_delete_column.clone();
        let is_history = matches!(spec.policy, MergePolicy::ScdType2 { .. });
        let keyed = spec.policy != MergePolicy::Append;
        let positions = keyed && keeps_positions(existing, is_history, has_positions);
        check_order(spec, sequence_type.is_some(), positions || has_positions.is_none())?;
        let business = business_columns(spec, selection, existing, mark.as_deref())?;
        let kept = judge.sequence_columns().filter(|names| names.iter().all(|name| business.iter().any(|column| column.name == *name)));
        if let Some(missing) = kept.iter().flatten().find(|name| existing.is_some() && !is_history && selection.position(name).is_none()) {
            let reason = format!("its sequence is column `{missing}` of the table, which this query does not yield");
            return Err(Error::spec(&spec.table, reason));
        }
        let mut target = Self {
            shape: shape(spec, &business, sequence_type.is_some(), positions)?,
            columns: Vec::new(),
            grows: false,
            widened: Vec::new(),
            mark,
            sequence_columns: kept.filter(|_| sequence_type.is_some()),
            sequence_type,
            vectors: keyed && spec.properties.get(DELETION_VECTORS_ON).is_none_or(|value| value == "true"),
            lies: None,
            delete_memory: spec.properties.get(DELETE_MEMORY_SECONDS).cloned(),
            generated_of_events: generated(spec, selection, &business)?,
            generated_of_rows: generated(spec, selection, &[])?,
        };
        let declared = target.declared(spec, &business);
        match existing {
            None => target.columns = declared,
            Some(table) => {
                target.check_unchanged(spec, table)?;
                target.grow(spec, table, declared)?;
            }
        }
        target.generated_of_rows = generated(spec, selection, &target.columns)?;
        Ok(target)
    }

    /// Generated columns that the query does not yield, each with the columns it is computed from.
    pub fn generated(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.generated_of_events.sources()
    }

    /// Rows of events with the values of generated columns.
    ///
    /// # Errors
    /// When an expression fails for a row.
    pub fn with_generated(&self, rows: RecordBatch) -> Result<RecordBatch, tributary_lake::Error> {
        self.generated_of_events.fill(rows)
    }

    /// Every column, in the order of a new table.
    fn declared(&self, spec: &SilverSpec, business: &[Column]) -> Vec<Column> {
        let mut columns = business.to_vec();
        columns.extend(self.mark.iter().map(|mark| Column::new(mark, DataType::Boolean)));
        let point = || self.sequence_type.clone().unwrap_or(DataType::String);
        match self.shape.form {
            Form::History { .. } => columns.extend([START_AT, END_AT].map(|name| Column::new(name, point()))),
            Form::Current { .. } if spec.policy != MergePolicy::Append => {
                columns.extend(self.shape.positions.then(|| Column::new(POSITION, DataType::String)));
                let own = self.sequence_type.clone().filter(|_| self.sequence_columns.is_none());
                columns.extend(own.map(|data_type| Column::new(SEQUENCE, data_type)));
            }
            Form::Current { .. } => {}
        }
        columns
    }

    /// What is created.
    pub fn table_spec(&self, spec: &SilverSpec) -> TableSpec {
        let mut properties = spec.properties.clone();
        if spec.policy != MergePolicy::Append {
            properties.insert(KEYS.to_owned(), key_list(spec));
            properties.insert(SEQUENCE_TYPE.to_owned(), self.sequence_name());
            properties.insert(ROW_CHANGES.to_owned(), "true".to_owned());
            properties.entry(DELETION_VECTORS_ON.to_owned()).or_insert_with(|| "true".to_owned());
        }
        properties.insert(POLICY.to_owned(), spec.policy.word().to_owned());
        TableSpec {
            columns: self.columns.clone(),
            partition_by: spec.partition_by.clone(),
            cluster_by: spec.cluster_by.clone(),
            checks: spec.checks.clone(),
            comment: spec.comment.clone(),
            properties,
            row_changes: spec.policy != MergePolicy::Append,
            name: spec.table.clone(),
        }
    }

    /// The declared sequence's type; none where the order is the position.
    pub fn sequence_type(&self) -> Option<&DataType> {
        self.sequence_type.as_ref()
    }

    /// What a table is said to be made with, where a wider one is made with something else.
    pub fn widened_properties(&self, table: &Table) -> BTreeMap<String, String> {
        let said = table.properties().contains_key(SEQUENCE_TYPE);
        said.then(|| (SEQUENCE_TYPE.to_owned(), self.sequence_name())).into_iter().collect()
    }

    fn sequence_name(&self) -> String {
        self.sequence_type.as_ref().map_or_else(|| "position".to_owned(), ToString::to_string)
    }

    fn check_unchanged(&self, spec: &SilverSpec, table: &Table) -> Result<()> {
        let declared = [
            (POLICY, "policy", spec.policy.word().to_owned()),
            (KEYS, "keys", key_list(spec)),
            (SEQUENCE_TYPE, "sequence", self.sequence_name()),
        ];
        let keyed = spec.policy != MergePolicy::Append;
        for (property, word, value) in declared.into_iter().take(if keyed { 3 } else { 1 }) {
            let may_widen = property == SEQUENCE_TYPE && self.widens_sequence(spec.schema_policy, table);
            if let Some(found) = table.properties().get(property).filter(|found| **found != value && !may_widen) {
                return Err(Error::Changed {
                    table: spec.table.clone(),
                    found: format!("{word} {found}"),
                    declared: format!("{word} {value}"),
                });
            }
        }
        Ok(())
    }

    fn widens_sequence(&self, policy: GrowthPolicy, table: &Table) -> bool {
        recorded_sequence(table)
            .zip(self.sequence_type.as_ref())
            .is_some_and(|(found, declared)| ordered_alike(policy, &found, declared).as_ref() == Some(declared))
    }

    /// Columns the table has keep their place, and their type where no wider one is asked for; new ones follow.
    fn grow(&mut self, spec: &SilverSpec, table: &Table, declared: Vec<Column>) -> Result<()> {
        let mut columns = table.columns().to_vec();
        for column in declared {
            match columns.iter_mut().find(|found| found.name.eq_ignore_ascii_case(&column.name)) {
                Some(found) => {
                    let grown = grown_column(spec, found, &column)?;
                    self.grows |= grown != found.data_type;
                    if is_retyped(&found.data_type, &grown) {
                        self.widened.push(Column { data_type: grown.clone(), ..found.clone() });
                    }
                    found.data_type = grown;
                }
                None => {
                    self.grows = true;
                    columns.push(Column { nullable: true, ..column });
                }
            }
        }
        self.columns = columns;
        Ok(())
    }

    /// Visible rows as the fold takes them, and which of them are marked as removed.
    pub fn visible(&self, rows: &RecordBatch) -> Result<(Events, Option<BooleanArray>), ArrowError> {
        let shape = &self.shape;
        let business = shape.schema.fields().iter().map(|field| column(rows, field)).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let business = RecordBatch::try_new_with_options(Arc::clone(&shape.schema), business, &options)?;
        let text = |name: &str| column(rows, &Field::new(name, Arrow::Utf8, true)).map(|array| array.as_string::<i32>().clone());
        let is_history = matches!(shape.form, Form::History { .. });
        let point = |name: &str| column(rows, &Field::new(name, self.point_type(), true));
        let sequence = match (&self.sequence_type, is_history) {
            (None, _) => None,
            (Some(_), true) => Some(point(START_AT)?),
            (Some(data_type), false) => Some(self.current_sequence(rows, data_type)?),
        };
        let position = match (shape.positions, is_history, shape.sequence) {
            (false, _, _) => None,
            (true, false, _) => Some(text(POSITION)?),
            (true, true, false) => Some(text(START_AT)?),
            (true, true, true) => Some(StringArray::new_null(rows.num_rows())),
        };
        let mut events = Events::upserts(business, sequence, position);
        if is_history {
            events.ends = Some(point(END_AT)?);
        }
        let mark = |name: &String| column(rows, &Field::new(name, Arrow::Boolean, true)).map(|array| array.as_boolean().clone());
        Ok((events, self.mark.as_ref().map(mark).transpose()?))
    }

    /// The columns of a current table that tell whose a row is, and where it is in the order of its key's events.
    pub fn order_columns(&self) -> Vec<&str> {
        let keys = self.shape.key_names().map(String::as_str);
        let sequence = self.sequence_columns.iter().flatten().map(String::as_str);
        keys.chain(sequence).chain([POSITION, SEQUENCE]).collect()
    }

    fn point_type(&self) -> Arrow {
        self.sequence_type.as_ref().map_or(Arrow::Utf8, DataType::to_arrow)
    }

    fn current_sequence(&self, rows: &RecordBatch, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let arrow = data_type.to_arrow();
        let Some(names) = &self.sequence_columns else { return column(rows, &Field::new(SEQUENCE, arrow, true)) };
        match (names.as_slice(), &arrow) {
            ([name], _) => column(rows, &Field::new(name, arrow, true)),
            (names, Arrow::Struct(fields)) => {
                let named = |(name, field): (&String, &Arc<Field>)| column(rows, &Field::new(name, field.data_type().clone(), true));
                let columns = names.iter().zip(fields).map(named).collect::<Result<Vec<_>, _>>()?;
                Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?))
            }
            _ => Err(ArrowError::SchemaError("a sequence of several columns is a struct".to_owned())),
        }
    }

    /// Rows to write, in the table's columns.
    pub fn rows(&self, rows: &NewRows) -> Result<RecordBatch, ArrowError> {
        let count = rows.business.num_rows();
        let array = |column: &Column| -> Result<ArrayRef, ArrowError> {
            let arrow = column.data_type.to_arrow();
            let found = match column.name.as_str() {
                POSITION => rows.position.clone(),
                SEQUENCE => rows.sequence.clone(),
                START_AT => rows.start.clone(),
                END_AT => rows.end.clone(),
                name if self.mark.as_deref() == Some(name) => Some(Arc::new(rows.removed.clone()) as ArrayRef),
                name => rows.business.column_by_name(name).cloned(),
            };
            found.map_or_else(|| Ok(new_null_array(&arrow, count)), |array| conform(&array, &arrow))
        };
        let columns = self.columns.iter().map(array).collect::<Result<Vec<_>, _>>()?;
        let fields: Fields = self.columns.iter().map(|column| column.to_arrow().with_nullable(true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
        // a row may be put together from several events
        self.generated_of_rows.fill(rows).map_err(|error| ArrowError::ExternalError(Box::new(error)))
    }
}

/// The generated columns that the query does not yield.
fn generated(spec: &SilverSpec, selection: &Selection, columns: &[Column]) -> Result<Generated> {
    let generated = Generated::new(&spec.table, columns, |name| selection.position(name).is_some());
    generated.map_err(|source| Error::lake("compute generated columns of", &spec.table, source))
}

/// Creates the table, or opens it when another run was faster.
///
/// # Errors
/// The lake's.
pub(crate) async fn create(lake: &Lake, spec: &TableSpec) -> Result<Table> {
    lake.create(spec).await.map_err(|source| Error::lake("create", &spec.name, source))
}

fn key_list(spec: &SilverSpec) -> String {
    serde_json::Value::from(spec.keys.clone()).to_string()
}

/// Whether the table has a place for the position of its rows: one that holds rows as it was made, one that never held any as its
/// source has positions.
fn keeps_positions(table: Option<&Table>, is_history: bool, has_positions: Option<bool>) -> bool {
    let kept = |table: &Table| table.columns().iter().any(|column| column.name == POSITION);
    match table {
        Some(table) if !is_history => kept(table) || (is_new(table) && has_positions == Some(true)),
        _ => has_positions == Some(true),
    }
}

/// Whether nothing has been written to the table since it was made.
pub(crate) fn is_new(table: &Table) -> bool {
    table.version() == 0
}

fn check_schema(spec: &SilverSpec, selection: &Selection) -> Result<()> {
    let own = [START_AT, END_AT, POSITION, SEQUENCE];
    let mark = spec.deletes.soft_delete_column.as_deref();
    let is_generated = |column: &Column| column.generated.is_some() && selection.position(&column.name).is_none();
    let is_own = |column: &Column| own.contains(&column.name.as_str()) || mark == Some(column.name.as_str()) || is_generated(column);
    let declared: Vec<Column> = spec.schema.iter().filter(|column| !is_own(column)).cloned().collect();
    match check_declared(&declared, &selection.columns) {
        differences if differences.is_empty() => Ok(()),
        differences => Err(Error::DeclaredSchema { table: spec.table.clone(), differences }),
    }
}

fn check_order(spec: &SilverSpec, sequence: bool, positions: bool) -> Result<()> {
    let needs_order = match spec.policy {
        MergePolicy::Append | MergePolicy::InsertOnly { .. } | MergePolicy::MonotonicAdvance { .. } => false,
        MergePolicy::LastWriterWins | MergePolicy::ScdType1 | MergePolicy::ScdType2 { .. } => true,
    };
    if needs_order && !sequence && !positions {
        return Err(Error::spec(
            &spec.table,
            "its source has no position, so nothing says which change is the later one: declare sequence_by",
        ));
    }
    Ok(())
}

/// Business columns after the next commit: as declared, else as the query has them; those the table has come first.
fn business_columns(spec: &SilverSpec, selection: &Selection, existing: Option<&Table>, mark: Option<&str>) -> Result<Vec<Column>> {
    if selection.columns.iter().any(|column| mark.is_some_and(|mark| column.name.eq_ignore_ascii_case(mark))) {
        return Err(Error::spec(&spec.table, "soft_delete_column has the name of a column of the query: give it another"));
    }
    let own = |name: &str| [POSITION, SEQUENCE, START_AT, END_AT].contains(&name) || mark == Some(name);
    let mut columns: Vec<Column> = match existing {
        Some(table) => table.columns().iter().filter(|column| !own(&column.name)).cloned().collect(),
        None => spec.schema.iter().filter(|column| !own(&column.name)).cloned().collect(),
    };
    let freezes = existing.is_some() && spec.schema_policy == GrowthPolicy::Freeze;
    for column in &selection.columns {
        match columns.iter_mut().find(|found| found.name.eq_ignore_ascii_case(&column.name)) {
            Some(found) => {
                if let Some(field) = found.data_type.fields_only_of(&column.data_type).first().filter(|_| freezes) {
                    return Err(frozen(spec, &format!("{}.{}", found.name, field.name)));
                }
                found.data_type = grown_column(spec, found, column)?;
            }
            None if freezes => return Err(frozen(spec, &column.name)),
            None => columns.push(column.clone()),
        }
    }
    Ok(columns)
}

fn frozen(spec: &SilverSpec, column: &str) -> Error {
    Error::Frozen { table: spec.table.clone(), column: column.to_owned() }
}

/// The type of a column of the table after the next commit.
fn grown_column(spec: &SilverSpec, found: &Column, query: &Column) -> Result<DataType> {
    let named = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case(&found.name));
    let ordered = named(&spec.keys) || matches!(&spec.policy, MergePolicy::MonotonicAdvance { columns } if named(columns));
    let grown = |policy| match ordered {
        true => ordered_alike(policy, &found.data_type, &query.data_type),
        false => grown(policy, &found.data_type, &query.data_type),
    };
    grown(spec.schema_policy).ok_or_else(|| Error::ColumnType {
        table: spec.table.clone(),
        column: found.name.clone(),
        found: found.data_type.to_string().into(),
        query: query.data_type.to_string().into(),
        widens: grown(GrowthPolicy::Widen).is_some(),
    })
}

/// The type of the sequence that a table was made with; none where that is the position, or the table does not say.
fn recorded_sequence(table: &Table) -> Option<DataType> {
    table.properties().get(SEQUENCE_TYPE)?.parse().ok()
}

/// The type of the sequence: that of the table where it holds the declared one's values.
fn kept_sequence(policy: GrowthPolicy, recorded: Option<DataType>, declared: Option<DataType>) -> Option<DataType> {
    let kept = recorded.zip(declared.as_ref()).and_then(|(found, declared)| ordered_alike(policy, &found, declared));
    kept.or(declared)
}

fn shape(spec: &SilverSpec, business: &[Column], sequence: bool, positions: bool) -> Result<Shape> {
    let fields: Fields = business.iter().map(|column| Field::new(&column.name, column.data_type.to_arrow(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let index = |clause: &'static str, name: &String| {
        let found = business.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| Error::NoColumn {
            table: spec.table.clone(),
            clause,
            column: name.clone(),
            suggestion: tributary_fault::nearest(name, business.iter().map(|column| column.name.as_str())).map(Into::into),
        })
    };
    let leaves = Leaves::new(&schema, spec.ignore_null_updates != IgnoreNullUpdates::Off);
    if let IgnoreNullUpdates::Columns(names) = &spec.ignore_null_updates {
        names.iter().try_for_each(|name| index("ignore_null_updates", name).map(drop))?;
    }
    let keys = match spec.policy {
        MergePolicy::Append => Vec::new(),
        _ if spec.keys.is_empty() => return Err(Error::spec(&spec.table, format!("the policy {} needs keys", spec.policy.word()))),
        _ => spec.keys.iter().map(|name| index("keys", name)).collect::<Result<_>>()?,
    };
    let current =
        |order: Order, keep_existing: bool| Form::Current { order, soft_delete: spec.deletes.soft_delete_column.is_some(), keep_existing };
    let form = match &spec.policy {
        MergePolicy::Append | MergePolicy::ScdType1 | MergePolicy::LastWriterWins => current(Order::default(), false),
        MergePolicy::InsertOnly { exact } => current(Order { lead: Vec::new(), earliest: true }, !exact),
        MergePolicy::MonotonicAdvance { columns } => {
            current(Order { lead: columns.iter().map(|name| index("policy", name)).collect::<Result<_>>()?, earliest: true }, false)
        }
        MergePolicy::ScdType2 { track_history } => {
            let is_tracked = |name: &str| match track_history {
                ColumnSelection::All => true,
                ColumnSelection::Only(names) => names.iter().any(|other| other.eq_ignore_ascii_case(name)),
                ColumnSelection::Except(names) => !names.iter().any(|other| other.eq_ignore_ascii_case(name)),
            };
            if let ColumnSelection::Only(names) | ColumnSelection::Except(names) = track_history {
                names.iter().try_for_each(|name| index("track_history", name).map(drop))?;
            }
            let columns = (0..business.len()).filter(|at| !keys.contains(at) && is_tracked(&business[*at].name));
            Form::History { tracked: columns.flat_map(|at| leaves.of_column(at)).collect() }
        }
    };
    Ok(Shape { schema, keys, leaves, form, sequence, positions })
}

fn column(rows: &RecordBatch, field: &Field) -> Result<ArrayRef, ArrowError> {
    match rows.column_by_name(field.name()) {
        Some(array) if !array.is_empty() => conform(array, field.data_type()),
        _ => Ok(new_null_array(field.data_type(), rows.num_rows())),
    }
}
