//! Changes of rows as a query over the table they change.
//!
//! `UPDATE`, `DELETE` and `MERGE` become one query. Each of its rows says where a row of the table is ([`FILE`], [`ROW`]), which clause
//! takes it ([`CLAUSE`]), what it holds ([`before`]) and what it shall hold ([`after`]). Conditions and values are evaluated only for
//! rows that their clause may take, so that a division by zero in a clause nobody comes to stops nothing.

mod plan;

use std::ops::ControlFlow;

use tributary_lake::datafusion::logical_expr::LogicalPlan;
use tributary_lake::datafusion::sql::sqlparser::ast::{Expr, Ident, SetExpr, TableFactor, Value, Visit, Visitor};
use tributary_specs::Column;

use crate::statement::Name;
use crate::text::Text;
use crate::uses::TableUse;
use crate::{Error, parse};

/// The column that says in which file a row of the table is, by number; null for a row that is new.
pub const FILE: &str = "tributary file";
/// The column that says where in the file it is.
pub const ROW: &str = "tributary row";
/// The column that says which clause takes it, by number.
pub const CLAUSE: &str = "tributary clause";

/// The column with what a row holds in a column of the table, by number.
pub fn before(column: usize) -> String {
    format!("before {column}")
}

/// The column with what a row shall hold in a column of the table, by number.
pub fn after(column: usize) -> String {
    format!("after {column}")
}

/// A statement that changes rows.
#[derive(Debug, Clone)]
pub enum Change {
    /// `INSERT`.
    Insert(Box<Insert>),
    /// `UPDATE`, `DELETE`, `MERGE`.
    Rows(Box<RowChange>),
}

/// `INSERT`.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The table.
    pub target: Name,
    /// Whether all rows that are there go.
    pub overwrite: bool,
    /// Whether columns are found by name.
    pub by_name: bool,
    /// The columns that are given; none = all, by place.
    pub columns: Option<Vec<Name>>,
    /// The rows.
    pub source: Text,
}

impl Insert {
    /// Puts defaults where `VALUES` say `DEFAULT`; `defaults` are those of the columns that are given, in their order.
    ///
    /// # Errors
    /// [`Error::Syntax`] for a default that cannot be read.
    pub fn put_defaults(&mut self, defaults: &[Option<String>]) -> Result<(), Error> {
        let Some(SetExpr::Values(values)) = self.source.as_query_mut().map(|query| query.body.as_mut()) else { return Ok(()) };
        for row in &mut values.rows {
            for (value, default) in row.content.iter_mut().zip(defaults) {
                if is_default(value) {
                    *value = default_of(default.as_deref())?;
                }
            }
        }
        Ok(())
    }
}

/// `UPDATE`, `DELETE`, `MERGE`.
#[derive(Debug, Clone)]
pub struct RowChange {
    uses: Vec<TableUse>,
    levels: usize,
    rows: Rows,
}

/// What a clause does with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowAction {
    /// It goes.
    Delete,
    /// It holds other values.
    Update,
    /// It is new.
    Insert,
}

/// The parts of such a statement.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub target: Name,
    pub alias: Option<Ident>,
    pub source: Option<TableFactor>,
    pub on: Option<Expr>,
    pub clauses: Vec<Clause>,
}

/// `WHEN … [AND condition] THEN …`; `UPDATE … WHERE` and `DELETE … WHERE` are one.
#[derive(Debug, Clone)]
pub(crate) struct Clause {
    pub when: When,
    pub condition: Option<Expr>,
    pub does: Does,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Matched,
    NotMatched,
    NotMatchedBySource,
}

impl When {
    pub fn words(self) -> &'static str {
        match self {
            Self::Matched => "WHEN MATCHED",
            Self::NotMatched => "WHEN NOT MATCHED",
            Self::NotMatchedBySource => "WHEN NOT MATCHED BY SOURCE",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Does {
    Delete,
    Update(Assigned),
    Insert(Assigned),
}

#[derive(Debug, Clone)]
pub(crate) enum Assigned {
    Star,
    Columns(Vec<Assignment>),
}

#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub parts: Vec<Ident>,
    pub value: Expr,
}

impl Visit for Rows {
    fn visit<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break> {
        if let Some(source) = &self.source {
            source.visit(visitor)?;
        }
        if let Some(on) = &self.on {
            on.visit(visitor)?;
        }
        for clause in &self.clauses {
            if let Some(condition) = &clause.condition {
                condition.visit(visitor)?;
            }
            if let Does::Update(Assigned::Columns(assigned)) | Does::Insert(Assigned::Columns(assigned)) = &clause.does {
                assigned.iter().try_for_each(|assignment| assignment.value.visit(visitor))?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// A statement as a query.
#[derive(Debug, Clone)]
pub struct PlannedChange {
    /// Its rows.
    pub plan: LogicalPlan,
    /// For each clause, by number, the generated columns of the table that it gives no value: their numbers. What [`after`] has there says
    /// nothing.
    pub computed: Vec<Vec<usize>>,
}

/// The table that a statement changes.
#[derive(Debug, Clone)]
pub struct Target<'t> {
    /// Catalogue, schema and table, as they are spelled.
    pub names: [&'t str; 3],
    /// Its columns.
    pub columns: &'t [Column],
    /// Whether what rows hold is asked for.
    pub before: bool,
}

impl Change {
    pub(crate) fn of_rows(uses: Vec<TableUse>, levels: usize, rows: Rows) -> Self {
        Self::Rows(Box::new(RowChange { uses, levels, rows }))
    }

    /// The table that is changed.
    pub fn target(&self) -> &Name {
        match self {
            Self::Insert(insert) => &insert.target,
            Self::Rows(change) => &change.rows.target,
        }
    }

    /// The tables that it reads besides.
    pub fn uses(&self) -> &[TableUse] {
        match self {
            Self::Insert(insert) => insert.source.uses(),
            Self::Rows(change) => &change.uses,
        }
    }
}

impl RowChange {
    /// What each clause does, by its number.
    pub fn actions(&self) -> Vec<RowAction> {
        let action = |clause: &Clause| match clause.does {
            Does::Delete => RowAction::Delete,
            Does::Update(_) => RowAction::Update,
            Does::Insert(_) => RowAction::Insert,
        };
        self.rows.clauses.iter().map(action).collect()
    }

    /// Whether several rows of the source may take one row of the table: only to delete it, whatever they hold.
    pub fn may_take_one_row_often(&self) -> bool {
        let mut matched = self.rows.clauses.iter().filter(|clause| clause.when == When::Matched);
        matches!((matched.next(), matched.next()), (Some(Clause { does: Does::Delete, condition: None, .. }), None))
    }

    /// The tables that it reads besides.
    pub fn uses(&self) -> &[TableUse] {
        &self.uses
    }

    /// Whether it is a `MERGE`; else its one action says what it is.
    pub fn is_merge(&self) -> bool {
        self.rows.source.is_some()
    }
}

fn null() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}

/// Whether a value is the word DEFAULT.
fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

fn default_of(default: Option<&str>) -> Result<Expr, Error> {
    default.map_or_else(|| Ok(null()), parse::expression)
}
