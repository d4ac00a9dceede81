//! What a table may have become since it was declared, so that only what nobody expects is a difference. Pure.
//!
//! A table grows beyond its declaration in three ways: the schema policy of a feed adds columns and widens types, the columns of a
//! query that has no declared schema come and go (those that go stay in the table), and our own columns (`_…`, `__…`) follow the
//! business columns. What came by one of these ways is taken into the declaration before it is compared.

use tributary_specs::{Column, ColumnSelection, DataType, GoldSpec, GrowthPolicy, SchemaPolicy, SilverSpec, SourceFeed, TableSpec};

/// How far a table may go beyond its declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Growth {
    /// Columns may come, and fields at the end of a struct.
    adds: bool,
    /// A type may become a wider one.
    widens: bool,
    /// Columns that are declared by nothing but the input come with the next run.
    follows_input: bool,
}

impl Growth {
    /// Of a feed's table. Without declared columns the first batch says what they are, whatever the policy.
    pub fn of_feed(feed: &SourceFeed) -> Self {
        let adds = matches!(feed.schema_policy, SchemaPolicy::Add | SchemaPolicy::Widen) || feed.columns.is_empty();
        Self { adds, widens: feed.schema_policy == SchemaPolicy::Widen, follows_input: false }
    }

    /// Of a silver table; `built` = its query is built in code.
    pub fn of_silver(spec: &SilverSpec, built: bool) -> Self {
        let follows_input = spec.select.is_none() && spec.schema.is_empty() && !built && !matches!(spec.columns, ColumnSelection::Only(_));
        let adds = spec.schema.is_empty() && spec.schema_policy != GrowthPolicy::Freeze;
        Self { adds, widens: spec.schema_policy == GrowthPolicy::Widen, follows_input }
    }

    /// Of a view.
    pub fn of_gold(spec: &GoldSpec) -> Self {
        Self { adds: spec.schema.is_empty(), widens: false, follows_input: false }
    }

    /// The declaration of a table that has these columns, as it may have grown. `new` = nothing was written to it yet.
    pub fn of_table(self, declared: &TableSpec, table: &[Column], new: bool) -> TableSpec {
        let is_own = |column: &Column| column.name.starts_with('_');
        let mut columns: Vec<Column> = Vec::new();
        for column in &declared.columns {
            match table.iter().find(|found| found.name == column.name) {
                Some(found) if !is_own(column) && self.reaches(&column.data_type, &found.data_type) => {
                    columns.push(Column { data_type: found.data_type.clone(), ..column.clone() });
                }
                Some(_) => columns.push(column.clone()),
                None if column.nullable && (self.follows_input || (new && is_own(column))) => {}
                None => columns.push(column.clone()),
            }
        }
        let undeclared = |found: &&Column| !declared.columns.iter().any(|column| column.name == found.name);
        let may_come = |found: &&Column| found.nullable && found.generated.is_none() && (self.adds || is_own(found));
        columns.extend(table.iter().filter(undeclared).filter(may_come).cloned());
        let business: Vec<Column> = columns.iter().filter(|column| !is_own(column)).cloned().collect();
        for column in columns.iter_mut().filter(|column| is_own(column)) {
            if let Some(found) =
                table.iter().find(|found| found.name == column.name && is_image(&column.data_type, &found.data_type, &business))
            {
                column.data_type = found.data_type.clone();
            }
        }
        TableSpec { columns, ..declared.clone() }
    }

    /// Whether a column declared with one type may have come to another, or comes to the declared one with the next run.
    fn reaches(self, declared: &DataType, found: &DataType) -> bool {
        let widens = self.widens && (declared.joined(found).same_values(found) || found.joined(declared).same_values(declared));
        widens || (self.adds && has_fields_of(found, declared))
    }
}

/// Whether a type is another one with nullable fields more in its structs.
fn has_fields_of(found: &DataType, declared: &DataType) -> bool {
    match (found, declared) {
        (DataType::Struct(found), DataType::Struct(declared)) => {
            let kept = |field: &Column| {
                let at = found.iter().find(|found| found.name == field.name);
                at.is_some_and(|found| found.nullable == field.nullable && has_fields_of(&found.data_type, &field.data_type))
            };
            let more = |field: &Column| field.nullable || declared.iter().any(|declared| declared.name == field.name);
            declared.iter().all(kept) && found.iter().all(more)
        }
        (DataType::Array(found), DataType::Array(declared)) => has_fields_of(found, declared),
        (DataType::Map(key, found), DataType::Map(other_key, declared)) => key.same_values(other_key) && has_fields_of(found, declared),
        (found, declared) => found.same_values(declared),
    }
}

/// Whether two columns of ours are pictures of business columns: of all of them, or, like the key before a change, of some.
fn is_image(declared: &DataType, found: &DataType, business: &[Column]) -> bool {
    let (DataType::Struct(_), DataType::Struct(found)) = (declared, found) else { return false };
    let shows = |field: &Column, column: &Column| column.name == field.name && column.data_type.same_values(&field.data_type);
    found.iter().all(|field| business.iter().any(|column| shows(field, column)))
}
