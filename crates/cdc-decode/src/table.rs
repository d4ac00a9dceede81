//! The business columns of a feed's table: what they are, and how they may change.

use tributary_specs::{Column as Spec, DataType, SchemaPolicy};

use crate::column::Column;
use crate::connect::Schema;
use crate::layout::{About, Field, Layout, Slot};
use crate::system;
use crate::wire::Wire;

/// What a field that the table does not have leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placement {
    /// It goes there.
    At(Slot),
    /// The feed must stop.
    Frozen,
}

/// A table of ours has no more business columns than this; what goes beyond is kept in `_rescued_data`.
const COLUMNS_MAX: usize = 4096;

/// The business columns, and their values in the batch under construction.
#[derive(Debug)]
pub(crate) struct Table {
    /// The columns' declarations, as the table has or will have them.
    pub specs: Vec<Spec>,
    /// Values of the rows.
    pub rows: Vec<(String, Column)>,
    /// The `_before` struct.
    pub before: Column,
    /// Where a before-image is read whose completeness is still to be shown by what is in it.
    pub unproved: Unproved,
    /// The `_key_changed_from` and `_key_changed_to` structs; `None` until it is known what the keys are.
    pub key_changes: Option<(Column, Column)>,
    /// Names of the key columns, as far as known.
    pub keys: Option<Vec<String>>,
    /// How each column is read from messages without schema.
    pub wires: Vec<Wire>,
    /// Columns that nobody declared: read from bare JSON as they came.
    pub undeclared: Vec<bool>,
    /// Whether the columns are given and only change by the policy.
    pub held: bool,
    policy: SchemaPolicy,
    plain: bool,
    flattened: bool,
    /// Columns added since the table was last told.
    pub added: Vec<usize>,
    /// Columns made wider since the table was last told.
    pub widened: Vec<usize>,
    /// Fields of structs added since the table was last told: path and type.
    pub fields_added: Vec<Spec>,
    /// Fields kept out of the columns because of their name, for the notes.
    pub misnamed: Vec<String>,
}

/// One before-image, apart from those of the batch: most that are read here are not kept.
#[derive(Debug)]
pub(crate) struct Unproved(Column);

impl Unproved {
    /// Without rows, of the type of the before-images.
    pub(crate) fn cleared(&mut self, before: &Column) -> &mut Column {
        if self.0.data_type() == before.data_type() {
            self.0.truncate(0);
        } else {
            self.0 = Column::new(before.data_type());
        }
        &mut self.0
    }

    /// The image read last.
    pub(crate) fn image(&mut self) -> &mut Column {
        &mut self.0
    }
}

impl Table {
    pub(crate) fn new(policy: SchemaPolicy, plain: bool, flattened: bool) -> Self {
        Self {
            specs: Vec::new(),
            rows: Vec::new(),
            before: Column::new(&DataType::Struct(Vec::new())),
            unproved: Unproved(Column::new(&DataType::Struct(Vec::new()))),
            key_changes: None,
            keys: None,
            wires: Vec::new(),
            undeclared: Vec::new(),
            held: false,
            policy,
            plain,
            flattened,
            added: Vec::new(),
            widened: Vec::new(),
            fields_added: Vec::new(),
            misnamed: Vec::new(),
        }
    }

    /// Appends a column, null in the `rows` so far.
    pub(crate) fn push(&mut self, spec: Spec, wire: Wire, undeclared: bool, rows: usize) -> usize {
        let spec = Spec { nullable: true, default: None, generated: None, ..spec };
        let mut column = Column::new(&spec.data_type);
        column.fill(rows);
        let inner = Spec::new(spec.name.clone(), spec.data_type.clone());
        self.before.add_field(&inner);
        self.rows.push((spec.name.clone(), column));
        self.specs.push(spec);
        self.wires.push(wire);
        self.undeclared.push(undeclared);
        self.specs.len() - 1
    }

    /// The table has a known column in this type, whatever was declared; but fields of structs that are declared are added to it.
    pub(crate) fn retype(&mut self, column: usize, data_type: &DataType) {
        let (Some(spec), Some((name, values))) = (self.specs.get_mut(column), self.rows.get_mut(column)) else { return };
        let data_type = &data_type.with_fields_of(&spec.data_type);
        if spec.data_type == *data_type {
            return;
        }
        let _ = self.before.widen_field(name, data_type);
        *values = Column::new(data_type);
        spec.data_type = data_type.clone();
        if let Some(wire) = self.wires.get_mut(column) {
            let declared = spec.encoding.and_then(|encoding| Wire::declared(data_type, Some(encoding), self.plain).ok());
            *wire = declared.unwrap_or_else(|| Self::inferred_wire(data_type));
        }
    }

    /// The table's own shape of a key change, and the keys it tells. One of every column tells none.
    pub(crate) fn resume_keys(&mut self, fields: Vec<Spec>) {
        if self.keys.is_none() && fields.len() < self.specs.len() {
            self.keys = Some(fields.iter().map(|field| field.name.clone()).collect());
        }
        self.shape_key_changes(fields, 0);
    }

    /// Whether a column holds text.
    pub(crate) fn is_text(&self, column: usize) -> bool {
        self.specs.get(column).is_some_and(|spec| spec.data_type == DataType::String)
    }

    /// How a column whose type came from values is read.
    pub(crate) fn inferred_wire(data_type: &DataType) -> Wire {
        match data_type {
            DataType::Boolean => Wire::Boolean,
            DataType::Byte | DataType::Short | DataType::Integer | DataType::Long => Wire::Integer(64),
            DataType::Float | DataType::Double => Wire::Number,
            DataType::Decimal { .. } => Wire::Double,
            DataType::Array(element) => Wire::Array(Box::new(Self::inferred_wire(element))),
            other => Wire::declared(other, None, true).unwrap_or(Wire::Anything),
        }
    }

    /// The key columns, as far as known.
    pub(crate) fn key_fields(&self) -> Vec<Spec> {
        let keys = self.keys.iter().flatten().filter_map(|key| self.specs.iter().find(|spec| spec.name == *key));
        keys.map(|spec| Spec::new(spec.name.clone(), spec.data_type.clone())).collect()
    }

    /// Settles what a key change looks like once the keys are known: the key columns.
    pub(crate) fn settle_keys(&mut self, rows: usize) {
        if self.key_changes.is_none() {
            let fields = self.key_fields();
            if !fields.is_empty() {
                self.shape_key_changes(fields, rows);
            }
        }
    }

    fn shape_key_changes(&mut self, fields: Vec<Spec>, rows: usize) {
        let data_type = DataType::Struct(fields);
        let mut columns = (Column::new(&data_type), Column::new(&data_type));
        columns.0.fill(rows);
        columns.1.fill(rows);
        self.key_changes = Some(columns);
    }

    /// The column of this very name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| spec.name == name)
    }

    /// A slot that no policy is needed for: a column the table has, a field about the change, a name that no column may have.
    pub(crate) fn given_slot(&mut self, name: &str) -> Option<Slot> {
        if let Some(column) = self.find(name) {
            return Some(Slot::Column(column));
        }
        if self.flattened
            && let Some(about) = About::named(name)
        {
            return Some(Slot::About(about));
        }
        let twin = self.specs.iter().any(|spec| spec.name.eq_ignore_ascii_case(name));
        if name.is_empty() || twin || system::is_reserved(name) {
            match self.policy {
                // To the source it is a column of its own, and the table cannot have it.
                SchemaPolicy::Freeze if twin && self.held => return None,
                SchemaPolicy::Quarantine if twin && self.held => return Some(Slot::Refuse),
                _ => {}
            }
            if !self.misnamed.iter().any(|known| known == name) {
                self.misnamed.push(name.to_owned());
            }
            return Some(Slot::Rescue);
        }
        None
    }

    /// Decides on a field that the table does not have and whose type is known.
    pub(crate) fn place(&mut self, name: &str, data_type: &DataType, wire: Wire, undeclared: bool, rows: usize) -> Placement {
        if let Some(slot) = self.given_slot(name) {
            return Placement::At(slot);
        }
        let adds = matches!(self.policy, SchemaPolicy::Add | SchemaPolicy::Widen);
        if self.specs.len() >= COLUMNS_MAX {
            return Placement::At(Slot::Rescue);
        }
        if !self.held || adds {
            let column = self.push(Spec::new(name, data_type.clone()), wire, undeclared, rows);
            self.added.push(column);
            return Placement::At(Slot::Column(column));
        }
        match self.policy {
            SchemaPolicy::Freeze => Placement::Frozen,
            SchemaPolicy::Rescue => Placement::At(Slot::Rescue),
            SchemaPolicy::Quarantine | SchemaPolicy::Add | SchemaPolicy::Widen => Placement::At(Slot::Refuse),
        }
    }

    /// The layout of rows with a schema block. New columns are placed by the policy.
    ///
    /// # Errors
    /// The first field that cannot be placed: its name and whether its schema is what is wrong.
    pub(crate) fn layout(&mut self, row: &Schema, rows: usize) -> Result<Layout, Misfit> {
        let mut fields = Vec::with_capacity(row.fields.len());
        for schema in &row.fields {
            let Some(natural) = schema.wire() else { return Err(Misfit::BrokenSchema(schema.field.clone())) };
            let data_type = natural.natural();
            let bare = Self::inferred_wire(&data_type);
            let slot = match self.place(&schema.field, &data_type, bare, false, rows) {
                Placement::At(slot) => slot,
                Placement::Frozen => return Err(Misfit::Frozen(schema.field.clone())),
            };
            if let Slot::Column(column) = slot {
                self.take_fields(column, &data_type)?;
            }
            let wire = match slot {
                Slot::Column(column) => self.wire_beside(column, natural),
                _ => natural,
            };
            fields.push(Field::new(&schema.field, slot, wire, schema.shows_null()));
        }
        self.held = true;
        Ok(Layout::new(fields))
    }

    /// A schema tells of fields of a struct before they have a value.
    fn take_fields(&mut self, column: usize, data_type: &DataType) -> Result<(), Misfit> {
        match self.policy {
            SchemaPolicy::Freeze => {
                self.new_fields(column, data_type).first().map_or(Ok(()), |field| Err(Misfit::Frozen(field.name.clone())))
            }
            SchemaPolicy::Add | SchemaPolicy::Widen => {
                self.add_fields(column, data_type);
                Ok(())
            }
            SchemaPolicy::Rescue | SchemaPolicy::Quarantine => Ok(()),
        }
    }

    /// The fields of structs that a column lacks, by their paths.
    pub(crate) fn new_fields(&self, column: usize, wanted: &DataType) -> Vec<Spec> {
        let Some(spec) = self.specs.get(column) else { return Vec::new() };
        let fields = spec.data_type.fields_only_of(wanted).into_iter();
        fields.map(|field| Spec::new(format!("{}.{}", spec.name, field.name), field.data_type)).collect()
    }

    /// Adds the fields of structs that a column lacks.
    pub(crate) fn add_fields(&mut self, column: usize, wanted: &DataType) {
        let new = self.new_fields(column, wanted);
        let Some(wide) = self.specs.get(column).map(|spec| spec.data_type.with_fields_of(wanted)) else { return };
        if self.become_type(column, &wide) && !self.added.contains(&column) {
            self.fields_added.extend(new);
        }
    }

    /// A schema that says only "text" or "number" leaves room for a declared encoding.
    fn wire_beside(&self, column: usize, natural: Wire) -> Wire {
        match (self.specs.get(column).and_then(|spec| spec.encoding), self.wires.get(column)) {
            (Some(_), Some(declared)) if natural.says_little() => declared.clone(),
            _ => natural,
        }
    }

    /// Decides on a field of bare JSON whose value is null or not yet looked at.
    pub(crate) fn open_field(&mut self, name: &str) -> Field {
        let slot = self.given_slot(name).unwrap_or(Slot::Open);
        let wire = match slot {
            Slot::Column(column) => self.wires.get(column).cloned().unwrap_or(Wire::Anything),
            _ => Wire::Anything,
        };
        Field::new(name, slot, wire, false)
    }

    /// Whether the policy allows a wider type.
    pub(crate) fn policy(&self) -> SchemaPolicy {
        self.policy
    }

    /// Whether the producer writes plain JSON or CSV.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether rows are Debezium's flattened ones.
    pub(crate) fn is_flattened(&self) -> bool {
        self.flattened
    }

    /// Gives a column a type that also holds `wanted`. `false` = it has that type already, or a row so far has no form in it, or a
    /// nested column would have to become a plain one.
    pub(crate) fn widen(&mut self, column: usize, wanted: &DataType) -> bool {
        let Some(spec) = self.specs.get(column) else { return false };
        let joined = spec.data_type.joined(wanted);
        let nested = |data_type: &DataType| matches!(data_type, DataType::Array(_) | DataType::Map(..) | DataType::Struct(_));
        if nested(&spec.data_type) != nested(&joined) || !self.become_type(column, &joined) {
            return false;
        }
        if !self.widened.contains(&column) && !self.added.contains(&column) {
            self.widened.push(column);
        }
        true
    }

    /// Gives a column a type that holds all of its own. `false` = as for [`Table::widen`].
    fn become_type(&mut self, column: usize, wide: &DataType) -> bool {
        let (Some(spec), Some((name, values))) = (self.specs.get_mut(column), self.rows.get_mut(column)) else { return false };
        if *wide == spec.data_type {
            return false;
        }
        let Some(wide_values) = values.widened(wide) else { return false };
        if !self.before.widen_field(name, wide) {
            return false;
        }
        if let Some((from, to)) = &mut self.key_changes {
            // Both hold a few keys whose column has just been widened with the same values.
            let _ = from.widen_field(name, wide) && to.widen_field(name, wide);
        }
        *values = wide_values;
        spec.data_type = wide.clone();
        let undeclared = self.undeclared.get(column).copied().unwrap_or(false);
        let encoded = spec.encoding.and_then(|encoding| Wire::declared(wide, Some(encoding), self.plain).ok());
        if let Some(wire) = self.wires.get_mut(column) {
            match encoded {
                Some(encoded) if matches!(wide, DataType::Struct(_)) => *wire = encoded,
                _ if undeclared || spec.encoding.is_none() => *wire = Self::inferred_wire(wide),
                _ => {}
            }
        }
        true
    }

    /// Makes room for so many rows like those of the last batch.
    pub(crate) fn prepare(&mut self, rows: usize) {
        self.rows.iter_mut().for_each(|(_, column)| column.prepare(rows));
        self.before.prepare(rows);
    }

    /// Cuts every column back to so many rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.rows.iter_mut().for_each(|(_, column)| column.truncate(rows));
        self.before.truncate(rows);
        if let Some((from, to)) = &mut self.key_changes {
            from.truncate(rows);
            to.truncate(rows);
        }
    }
}

/// Why rows of a schema cannot be laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The field has no type we know.
    BrokenSchema(String),
    /// The policy forbids the column.
    Frozen(String),
}
