//! Changes of rows as a query over the table they change.
//!
//! `UPDATE`, `DELETE` and `MERGE` become one query. Each of its rows says where a row of the table is ([`FILE`], [`ROW`]), which clause
//! takes it ([`CLAUSE`]), what it holds ([`before`]) and what it shall hold ([`after`]). Conditions and values are evaluated only for
//! rows that their clause may take, so that a division by zero in a clause nobody comes to stops nothing.

use std::ops::ControlFlow;

use tributary_fault::nearest;
use tributary_lake::arrow::datatypes::DataType as Arrow;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::LogicalPlan;
use tributary_lake::datafusion::prelude::{DataFrame, SessionContext};
use tributary_lake::datafusion::sql::sqlparser::ast::{
    CaseWhen, CastKind, DataType as Written, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr,
    Spanned, Statement as Parsed, TableAlias, TableFactor, Value, Visit, Visitor,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;
use tributary_specs::{Column, DataType};

use crate::ast::{and, boolean, number, quoted};
use crate::scope::same;
use crate::statement::Name;
use crate::tables::{Source, Tables};
use crate::text::Text;
use crate::uses::{Read, TableUse};
use crate::{Error, error, parse, type_name};

/// The column that says in which file a row of the table is, by number; null for a row that is new.
pub const FILE: &str = "tributary file";
/// The column that says where in the file it is.
pub const ROW: &str = "tributary row";
/// The column that says which clause takes it, by number.
pub const CLAUSE: &str = "tributary clause";
/// The column of a source's rows that is there.
const THERE: &str = "tributary source";

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

    /// Which kind of statement it is, as the history says it.
    pub fn word(&self) -> &'static str {
        match (&self.rows.source, self.actions().first()) {
            (Some(_), _) => "MERGE",
            (None, Some(RowAction::Delete)) => "DELETE",
            (None, _) => "UPDATE",
        }
    }

    /// Plans the query. `tables` has every use, and the table itself by [`Tables::put_target`] with [`FILE`] and [`ROW`] behind its
    /// columns.
    ///
    /// # Errors
    /// As [`Text::plan`]; [`Error::NoColumn`] for a column that is assigned and not there.
    pub async fn plan(
        self,
        context: &SessionContext,
        state: &SessionState,
        mut tables: Tables,
        target: &Target<'_>,
        own: &[String],
    ) -> Result<LogicalPlan, Error> {
        let Self { levels, rows, .. } = self;
        let Rows { target: _, alias, source, on, mut clauses } = rows;
        let changed = Named::target(alias.as_ref(), target);
        let (mut query, from) = match source {
            None => {
                let mut query = template("SELECT 1 FROM `__target`")?;
                let select = select_of(&mut query)?;
                select.selection = clauses.first_mut().and_then(|clause| clause.condition.take());
                (query, None)
            }
            Some(factor) => {
                let from = put_source(factor, context, state, &mut tables, own).await?;
                let mut query = template(join(&clauses))?;
                let select = select_of(&mut query)?;
                let join = select.from.first_mut().and_then(|from| from.joins.first_mut());
                if let Some(join) = join {
                    rename(&mut join.relation, from.alias.clone());
                    if let JoinOperator::Inner(constraint)
                    | JoinOperator::Left(constraint)
                    | JoinOperator::Right(constraint)
                    | JoinOperator::FullOuter(constraint) = &mut join.join_operator
                    {
                        *constraint = JoinConstraint::On(on.unwrap_or_else(|| boolean(true)));
                    }
                }
                (query, Some(from))
            }
        };
        let select = select_of(&mut query)?;
        if let Some(from) = select.from.first_mut() {
            rename(&mut from.relation, alias);
        }
        let made = Made { target, changed, from };
        select.projection = made.projection(clauses)?;
        let text = Text::of(Parsed::Query(query))?.deepened(levels);
        text.plan(context, state, &tables, own).await
    }
}

/// A relation of the query and what its columns are called.
struct Named {
    alias: Option<Ident>,
    qualifier: Vec<Ident>,
    columns: Vec<(String, Arrow)>,
}

impl Named {
    fn target(alias: Option<&Ident>, target: &Target<'_>) -> Self {
        let qualifier = match alias {
            Some(alias) => vec![alias.clone()],
            None => target.names.iter().map(|name| quoted(name)).collect(),
        };
        let columns = target.columns.iter().map(|column| (column.name.clone(), column.data_type.to_arrow())).collect();
        Self { alias: alias.cloned(), qualifier, columns }
    }

    fn column(&self, name: &str) -> Expr {
        Expr::CompoundIdentifier(self.qualifier.iter().cloned().chain([quoted(name)]).collect())
    }
}

/// Registers the source of a merge, with a column that is there in each of its rows.
async fn put_source(
    factor: TableFactor,
    context: &SessionContext,
    state: &SessionState,
    tables: &mut Tables,
    own: &[String],
) -> Result<Named, Error> {
    let (alias, names) = match &factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            (Some(alias.name.clone()), vec![alias.name.value.clone()])
        }
        TableFactor::Table { name, .. } => match TableUse::of(&factor)? {
            Some(used) => (None, tables.get(&used, name.span())?.names.clone()),
            None => (None, vec!["__source".to_owned()]),
        },
        _ => (None, vec!["__source".to_owned()]),
    };
    let mut query = template(&format!("SELECT *, TRUE AS `{THERE}` FROM `__source`"))?;
    if let Some(from) = select_of(&mut query)?.from.first_mut() {
        from.relation = factor;
    }
    let plan = Text::of(Parsed::Query(query))?.plan(context, state, tables, own).await?;
    let columns = plan.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone()));
    let columns = columns.filter(|(name, _)| name != THERE).collect();
    let provider = DataFrame::new(state.clone(), plan).into_view();
    let used = TableUse { parts: vec!["__source".to_owned()], read: Read::Latest };
    tables.put(used, Ok(Source::of_text("source of the merge", names.clone(), provider)));
    let qualifier = match &alias {
        Some(alias) => vec![alias.clone()],
        None => names.iter().map(|name| quoted(name)).collect(),
    };
    Ok(Named { alias, qualifier, columns })
}

/// Which rows of either side the clauses can take decides which are joined.
fn join(clauses: &[Clause]) -> &'static str {
    let has = |when: When| clauses.iter().any(|clause| clause.when == when);
    match (has(When::NotMatched), has(When::NotMatchedBySource)) {
        (true, true) => "SELECT 1 FROM `__target` FULL OUTER JOIN `__source` ON TRUE",
        (true, false) => "SELECT 1 FROM `__target` RIGHT JOIN `__source` ON TRUE",
        (false, true) => "SELECT 1 FROM `__target` LEFT JOIN `__source` ON TRUE",
        (false, false) => "SELECT 1 FROM `__target` INNER JOIN `__source` ON TRUE",
    }
}

fn template(text: &str) -> Result<Box<Query>, Error> {
    match parse::statement(text)? {
        Parsed::Query(query) => Ok(query),
        _ => Err(Error::Syntax { reason: "it is no query".to_owned() }),
    }
}

fn select_of(query: &mut Query) -> Result<&mut Select, Error> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Ok(select),
        _ => Err(Error::Syntax { reason: "it is no query".to_owned() }),
    }
}

fn rename(factor: &mut TableFactor, to: Option<Ident>) {
    if let TableFactor::Table { alias, .. } = factor {
        *alias = to.map(|name| TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    }
}

/// Everything that the select list is made of.
struct Made<'t> {
    target: &'t Target<'t>,
    changed: Named,
    from: Option<Named>,
}

impl Made<'_> {
    fn projection(&self, clauses: Vec<Clause>) -> Result<Vec<SelectItem>, Error> {
        let item = |expr: Expr, name: &str| SelectItem::ExprWithAlias { expr, alias: quoted(name) };
        let mut items = vec![item(self.changed.column(FILE), FILE), item(self.changed.column(ROW), ROW)];
        let numbers = (0..clauses.len()).map(|at| number(&at.to_string())).collect();
        items.push(item(self.by_clause(&clauses, numbers), CLAUSE));
        if self.target.before {
            let columns = self.target.columns.iter().enumerate();
            items.extend(columns.map(|(at, column)| item(self.changed.column(&column.name), &before(at))));
        }
        let assigned = clauses.iter().map(|clause| self.assigned(clause)).collect::<Result<Vec<_>, _>>()?;
        if clauses.iter().any(|clause| !matches!(clause.does, Does::Delete)) {
            for at in 0..self.target.columns.len() {
                let values = assigned.iter().map(|values| values.get(at).cloned().unwrap_or_else(null)).collect();
                items.push(item(self.by_clause(&clauses, values), &after(at)));
            }
        }
        Ok(items)
    }

    /// For each row what stands for the clause that takes it.
    fn by_clause(&self, clauses: &[Clause], values: Vec<Expr>) -> Expr {
        let Some(from) = &self.from else { return values.into_iter().next().unwrap_or_else(null) };
        let is_null = |column: Expr| Expr::IsNull(Box::new(column));
        let is_not_null = |column: Expr| Expr::IsNotNull(Box::new(column));
        let mut cases = Vec::new();
        for when in [When::NotMatched, When::NotMatchedBySource, When::Matched] {
            let of_kind = clauses.iter().zip(&values).filter(|(clause, _)| clause.when == when);
            let branches: Vec<CaseWhen> = of_kind
                .map(|(clause, value)| CaseWhen {
                    condition: clause.condition.clone().unwrap_or_else(|| boolean(true)),
                    result: value.clone(),
                })
                .collect();
            if branches.is_empty() {
                continue;
            }
            let condition = match when {
                When::NotMatched => is_null(self.changed.column(FILE)),
                When::NotMatchedBySource => is_null(from.column(THERE)),
                When::Matched => and(is_not_null(self.changed.column(FILE)), is_not_null(from.column(THERE))),
            };
            cases.push(CaseWhen { condition, result: case(branches) });
        }
        case(cases)
    }

    /// The values of all columns that a clause gives; none where it deletes.
    fn assigned(&self, clause: &Clause) -> Result<Vec<Expr>, Error> {
        let (assigned, inserts) = match &clause.does {
            Does::Delete => return Ok(Vec::new()),
            Does::Update(assigned) => (assigned, false),
            Does::Insert(assigned) => (assigned, true),
        };
        let columns = self.target.columns;
        let mut values: Vec<Option<Expr>> = vec![None; columns.len()];
        match assigned {
            Assigned::Star => {
                for (value, column) in values.iter_mut().zip(columns) {
                    *value = Some(self.of_source(column)?);
                }
            }
            Assigned::Columns(assignments) => {
                for Assignment { parts, value } in assignments {
                    let (at, column) = self.column(parts)?;
                    if values[at].is_some() {
                        let span = parts.first().map(|part| part.span).unwrap_or_else(Span::empty);
                        return Err(Error::refused(format!("a second value for column `{}`", column.name), span));
                    }
                    let value = if is_default(value) { default_of(column.default.as_deref())? } else { value.clone() };
                    values[at] = Some(cast_to(value, &column.data_type));
                }
            }
        }
        let fill = |(value, column): (Option<Expr>, &Column)| match value {
            Some(value) => Ok(value),
            None if inserts => Ok(cast_to(default_of(column.default.as_deref())?, &column.data_type)),
            None => Ok(self.changed.column(&column.name)),
        };
        values.into_iter().zip(columns).map(fill).collect()
    }

    /// The column of the source that is called like one of the table.
    fn of_source(&self, column: &Column) -> Result<Expr, Error> {
        let columns: &[(String, Arrow)] = self.from.as_ref().map_or(&[], |from| &from.columns);
        match (columns.iter().find(|(name, _)| same(name, &column.name)), &self.from) {
            (Some((name, data_type)), Some(from)) if *data_type == column.data_type.to_arrow() => Ok(from.column(name)),
            (Some((name, _)), Some(from)) => Ok(cast_to(from.column(name), &column.data_type)),
            _ => Err(Error::NoColumn {
                column: format!("{} of the source, which * asks for", column.name),
                suggestion: nearest(&column.name, columns.iter().map(|(name, _)| name.as_str())).map(str::to_owned),
                span: None,
            }),
        }
    }

    /// The column that is assigned, by its number.
    fn column(&self, parts: &[Ident]) -> Result<(usize, &Column), Error> {
        let [qualifiers @ .., last] = parts else { return Err(Error::Syntax { reason: "a name is missing".to_owned() }) };
        let names: Vec<&str> = match &self.changed.alias {
            Some(alias) => vec![alias.value.as_str()],
            None => self.target.names.to_vec(),
        };
        let called =
            qualifiers.len() <= names.len() && qualifiers.iter().rev().zip(names.iter().rev()).all(|(part, name)| same(&part.value, name));
        if !called {
            let written: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            let hint = "name a column of the table that is changed, and build a struct anew with named_struct(…)";
            return Err(Error::refused_with_hint(format!("a value for `{}`", written.join(".")), hint, last.span));
        }
        let columns = self.target.columns;
        columns.iter().enumerate().find(|(_, column)| same(&column.name, &last.value)).ok_or_else(|| Error::NoColumn {
            column: last.value.clone(),
            suggestion: nearest(&last.value, columns.iter().map(|column| column.name.as_str())).map(str::to_owned),
            span: error::position(last.span),
        })
    }
}

fn case(conditions: Vec<CaseWhen>) -> Expr {
    match crate::ast::case(boolean(true), null(), None) {
        Expr::Case { case_token, end_token, operand, else_result, .. } => {
            Expr::Case { case_token, end_token, operand, conditions, else_result }
        }
        other => other,
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

/// A value as a column holds it; one that does not fit stops the statement.
fn cast_to(value: Expr, data_type: &DataType) -> Expr {
    let written = type_name(data_type);
    let is_plain = !matches!(data_type, DataType::Array(_) | DataType::Map(..) | DataType::Struct(_) | DataType::Binary);
    let parsed = is_plain.then(|| parse::expression(&format!("CAST(NULL AS {written})")).ok()).flatten();
    match parsed {
        Some(Expr::Cast { kind, data_type, array, format, .. }) => Expr::Cast { kind, expr: Box::new(value), data_type, array, format },
        _ => {
            let data_type = Written::Custom(ObjectName::from(vec![Ident::new(written)]), Vec::new());
            Expr::Cast { kind: CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
        }
    }
}
