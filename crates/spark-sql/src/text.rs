//! The door: a text, what it uses, and its plan.

use std::ops::ControlFlow;

use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_lake::datafusion::sql::parser::Statement;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    Expr as ParsedExpr, ExprWithAlias, Query, Spanned, Statement as Parsed, Visit, Visitor,
};

use crate::functions::windows;
use crate::locate::{Locator, in_expression};
use crate::rewrite::Rewriter;
use crate::scope::{Column, Relation, Scope};
use crate::tables::Tables;
use crate::uses::TableUse;
use crate::{Error, alias, breadth, depth, meaning, parse, rewrite, twice, uses, values};

/// A parsed text: one query, or an `EXPLAIN` of one.
#[derive(Debug, Clone)]
pub struct Text {
    statement: Parsed,
    uses: Vec<TableUse>,
    /// Of its deepest expression.
    levels: usize,
    /// Tables that its plan comes to.
    tables: u64,
    /// Whether it may read other versions of a table than the latest, and changes.
    travels: bool,
}

impl Text {
    /// Reads a query or an `EXPLAIN` of one.
    ///
    /// # Errors
    /// [`Error::Syntax`] with line and column, [`Error::Refused`] for another statement, [`Error::Argument`] for a version or an
    /// instant that cannot be read.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::of(parse::statement(text)?)
    }

    /// A query that has been read.
    pub(crate) fn of_query(query: Box<Query>) -> Result<Self, Error> {
        Self::of(Parsed::Query(query))
    }

    /// A statement that has been read.
    pub(crate) fn of(statement: Parsed) -> Result<Self, Error> {
        let (statement, levels) = depth::measured(statement)?;
        alias::refuse_strings(&statement)?;
        let tables = breadth::check(&statement)?;
        let uses = uses::collect(&statement)?;
        Ok(Self { statement, uses, levels, tables, travels: true })
    }

    /// Reads the query of a dataset, which is over its inputs as they are: other versions of a table and its changes are refused
    /// when it is planned.
    ///
    /// # Errors
    /// As [`Text::parse`]; an `EXPLAIN` is refused too.
    pub fn query(text: &str) -> Result<Self, Error> {
        match Self::parse(text)? {
            text @ Self { statement: Parsed::Query(_), .. } => Ok(Self { travels: false, ..text }),
            Self { statement, .. } => Err(Error::refused("EXPLAIN in place of a query", statement.span())),
        }
    }

    /// Every table it uses, names of `WITH` included.
    pub fn uses(&self) -> &[TableUse] {
        &self.uses
    }

    /// The same, made of a text that is at least so deep.
    pub(crate) fn deepened(self, levels: usize) -> Self {
        Self { levels: self.levels.max(levels), ..self }
    }

    /// Its query, where it is one.
    pub(crate) fn as_query_mut(&mut self) -> Option<&mut Query> {
        match &mut self.statement {
            Parsed::Query(query) => Some(query),
            _ => None,
        }
    }

    /// Plans it in a context that [`crate::prepare`] made ready. Functions of `own` are called as they are registered.
    ///
    /// # Errors
    /// [`Error::Refused`] for what is not executed as the dialect means it, [`Error::NoTable`] and [`Error::NoColumn`] with the
    /// nearest name, [`Error::Plan`] for what the engine refuses.
    pub async fn plan(self, context: &SessionContext, state: &SessionState, tables: &Tables, own: &[String]) -> Result<LogicalPlan, Error> {
        tables.register_in(context)?;
        let Self { statement, levels, tables: count, travels, .. } = self;
        let rewriter = Rewriter { tables, own, travels };
        let written = depth::with_room(levels, || statement.clone());
        let planned = planned(statement, levels, &rewriter, state).await;
        planned.map_err(|error| {
            error.placed(|error| depth::with_room(levels, || Locator::new(state, &rewriter, (levels, count), error).statement(&written)))
        })
    }
}

/// Rewrites a statement, whose deepest expression has so many levels, and plans it.
pub(crate) async fn planned(
    mut statement: Parsed,
    levels: usize,
    rewriter: &Rewriter<'_>,
    state: &SessionState,
) -> Result<LogicalPlan, Error> {
    let columns = depth::with_room(levels, || {
        windows::spell(&mut statement);
        let columns = rewrite::statement(&mut statement, rewriter)?;
        values::in_one_type(&mut statement, state)?;
        Ok(columns)
    })?;
    let is_query = matches!(statement, Parsed::Query(_));
    let plan = state.statement_to_plan(Statement::Statement(Box::new(statement))).await.map_err(Error::plan)?;
    let plan = if is_query { twice::under_their_names(plan, &columns).map_err(Error::plan)? } else { plan };
    depth::with_room(levels, || checked(meaning::apply(windows::apply(plan)?)?, state))
}

/// A plan whose types fit, as the engine finds before it executes it.
fn checked(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan, Error> {
    state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {}).map_err(Error::plan)?;
    Ok(plan)
}

/// Calls of functions that there are not, in a query or an expression that cannot be planned; none of a text that cannot be read.
pub fn unknown_functions(text: &str, own: &[String]) -> Vec<Error> {
    struct Calls<'r>(&'r Rewriter<'r>, Vec<Error>);
    impl Visitor for Calls<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &ParsedExpr) -> ControlFlow<()> {
            if let ParsedExpr::Function(function) = expression {
                self.1.extend(self.0.unknown(function));
            }
            ControlFlow::Continue(())
        }
    }
    let rewriter = Rewriter { tables: &Tables::default(), own, travels: false };
    let mut calls = Calls(&rewriter, Vec::new());
    if let Ok(text) = Text::parse(text) {
        let _ = text.statement.visit(&mut calls);
    } else if let Ok((parsed, levels)) = parse::expression(text).and_then(depth::measured) {
        let _ = depth::with_room(levels, || parsed.visit(&mut calls));
    }
    calls.1
}

/// Plans an expression over the columns of `schema`, which a text may also name after `relation`. It may ask no table.
///
/// # Errors
/// As [`Text::plan`].
pub fn expression(state: &SessionState, text: &str, relation: Option<&str>, schema: &DFSchema, own: &[String]) -> Result<Expr, Error> {
    let (parsed, levels) = depth::measured(parse::expression(text)?)?;
    let columns = schema.fields().iter().map(|field| Column::new(field.name(), Some(field.data_type().clone())));
    let of = |alias: &str| vec![alias.to_owned()];
    let relation = Relation { alias: relation.map(str::to_owned), names: relation.map(of).unwrap_or_default(), columns: columns.collect() };
    let scope = Scope { relations: vec![relation], ..Scope::default() };
    let plan = |mut parsed: ParsedExpr| {
        Rewriter { tables: &Tables::default(), own, travels: false }.expression(&mut parsed, &scope)?;
        let parsed = ExprWithAlias { expr: parsed, alias: None };
        let planned = state.create_logical_expr_from_sql_expr(parsed, schema).map_err(Error::plan)?;
        let planned = meaning::apply_to(windows::outside(planned)?, schema)?;
        // its type is only told once it is asked for
        planned.get_type(schema).map_err(Error::plan)?;
        Ok(planned)
    };
    depth::with_room(levels, || {
        plan(parsed.clone()).map_err(|error: Error| error.placed(|error| in_expression(&parsed, &mut |part| plan(part).err(), error)))
    })
}
