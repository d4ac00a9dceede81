//! The columns of VALUES in one type: the engine brings them together as it reads them, before anything else sees their types.

use std::ops::ControlFlow;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::ExprSchemable as _;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    CastKind, Expr, ExprWithAlias, Query, SetExpr, Statement, Values, VisitMut as _, VisitorMut,
};

use crate::calls::own_cast;
use crate::convert::word;
use crate::together::meeting;
use crate::value::canonical;
use crate::{Error, ast, literal, meaning};

/// Casts the values of a rewritten statement that are not of their column's common type.
///
/// # Errors
/// For values between which there is no cast without being asked.
pub(crate) fn in_one_type(statement: &mut Statement, state: &SessionState) -> Result<(), Error> {
    match statement.visit(&mut Columns(state)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Columns<'s>(&'s SessionState);

impl VisitorMut for Columns<'_> {
    type Break = Error;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        match self.body(&mut query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Columns<'_> {
    /// What is inside brackets is a query of its own.
    fn body(&self, body: &mut SetExpr) -> Result<(), Error> {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left)?;
                self.body(right)
            }
            SetExpr::Values(values) => self.values(values),
            _ => Ok(()),
        }
    }

    fn values(&self, values: &mut Values) -> Result<(), Error> {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        (0..width).try_for_each(|at| self.column(values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)).collect()))
    }

    fn column(&self, cells: Vec<&mut Expr>) -> Result<(), Error> {
        // one of which nothing is known here, as it asks a query, is the engine's
        let types: Option<Vec<DataType>> = cells.iter().map(|cell| self.type_of(cell)).collect();
        let Some(types) = types else { return Ok(()) };
        let mut distinct = types.clone();
        distinct.sort_by_cached_key(word);
        distinct.dedup();
        let Some(to) = meeting(&distinct).map_err(Error::plan)? else { return Ok(()) };
        for (cell, _) in cells.into_iter().zip(types).filter(|(_, from)| !from.is_null() && *from != to) {
            let value = std::mem::replace(cell, ast::boolean(true));
            *cell = own_cast(&CastKind::Cast, value, &word(&to));
        }
        Ok(())
    }

    fn type_of(&self, cell: &Expr) -> Option<DataType> {
        if let Some(known) = literal::type_of(cell) {
            return Some(known);
        }
        let none = DFSchema::empty();
        let parsed = ExprWithAlias { expr: cell.clone(), alias: None };
        let planned = self.0.create_logical_expr_from_sql_expr(parsed, &none).ok()?;
        let planned = meaning::apply_to(planned, &none).ok()?;
        planned.get_type(&none).ok().map(|data_type| canonical(&data_type))
    }
}
