//! SQL texts of a spec: names are found without regard to case and keep their spelling; what the engine would parse and then
//! ignore is refused.

use std::ops::ControlFlow;

use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::common::config::Dialect;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::{Expr, LogicalPlan};
use tributary_lake::datafusion::sql::parser::Statement;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Ident, ObjectName, ObjectNamePart, Statement as SqlStatement, TableFactor, VisitMut, VisitorMut,
};

/// The dialect of every SQL text.
pub(crate) const DIALECT: Dialect = Dialect::Databricks;

/// Names that may be written in any case.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Column names.
    pub columns: Vec<String>,
    /// Parts of table names.
    pub tables: Vec<String>,
}

impl Names {
    fn resolve(names: &[String], ident: &mut Ident) {
        if ident.quote_style.is_some() || names.contains(&ident.value) {
            return;
        }
        let mut found = names.iter().filter(|name| name.eq_ignore_ascii_case(&ident.value));
        if let (Some(name), None) = (found.next(), found.next()) {
            *ident = Ident::with_quote('`', name);
        }
    }
}

/// Plans a query over the tables registered in `state`.
///
/// # Errors
/// When it is no query, cannot be planned, or has a clause that would be ignored.
pub(crate) async fn plan_query(state: &SessionState, sql: &str, names: &Names) -> Result<LogicalPlan> {
    let mut statement = match state.sql_to_statement(sql, &DIALECT)? {
        Statement::Statement(statement) if matches!(*statement, SqlStatement::Query(_)) => statement,
        _ => return Err(DataFusionError::Plan("only a query can be the rows of a dataset".to_owned())),
    };
    if let ControlFlow::Break(refused) = statement.visit(&mut Resolver(names)) {
        return Err(DataFusionError::Plan(refused));
    }
    state.statement_to_plan(Statement::Statement(statement)).await
}

/// Plans an expression over the columns of `schema`.
///
/// # Errors
/// When it cannot be planned.
pub(crate) fn plan_expression(state: &SessionState, sql: &str, names: &Names, schema: &DFSchema) -> Result<Expr> {
    let mut parsed = state.sql_to_expr_with_alias(sql, &DIALECT)?;
    if let ControlFlow::Break(refused) = parsed.expr.visit(&mut Resolver(names)) {
        return Err(DataFusionError::Plan(refused));
    }
    state.create_logical_expr_from_sql_expr(parsed, schema)
}

/// Gives names their spelling, and refuses what is not executed.
struct Resolver<'a>(&'a Names);

impl VisitorMut for Resolver<'_> {
    type Break = String;

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<String> {
        for part in &mut relation.0 {
            if let ObjectNamePart::Identifier(ident) = part {
                Names::resolve(&self.0.tables, ident);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<String> {
        match expr {
            SqlExpr::Identifier(ident) => Names::resolve(&self.0.columns, ident),
            SqlExpr::CompoundIdentifier(idents) => {
                if let Some((column, qualifiers)) = idents.split_last_mut() {
                    qualifiers.iter_mut().for_each(|ident| Names::resolve(&self.0.tables, ident));
                    Names::resolve(&self.0.columns, column);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::Table { version: Some(_), .. } => {
                ControlFlow::Break("a source is read as it is: VERSION AS OF has no effect here".to_owned())
            }
            TableFactor::Table { sample: Some(_), .. } => {
                ControlFlow::Break("a source is read whole: TABLESAMPLE has no effect here".to_owned())
            }
            TableFactor::Table { with_hints, .. } if !with_hints.is_empty() => {
                ControlFlow::Break("table hints have no effect here".to_owned())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
