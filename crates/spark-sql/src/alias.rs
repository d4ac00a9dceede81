//! What relations and their columns are called.

use std::ops::ControlFlow;

use tributary_lake::datafusion::sql::sqlparser::ast::{
    Ident, Query, Select, SelectItem, SetExpr, Spanned, TableAlias, TableAliasColumnDef, TableFactor, Visit, Visitor,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::rewrite::refuse_if;
use crate::scope::{Column, Relation, same};
use crate::{Error, asked, error};

/// Refuses names in the quotes of strings: the dialect joins `'a' 'b'` to one string, where the parser takes `b` for a name.
///
/// # Errors
/// [`Error::Refused`] with the place of what is named.
pub(crate) fn refuse_strings(tree: &impl Visit) -> Result<(), Error> {
    match tree.visit(&mut Strings) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Strings;

impl Visitor for Strings {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        query.with.iter().flat_map(|with| &with.cte_tables).try_for_each(|cte| of_table(&cte.alias, cte.query.span()))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        select.projection.iter().try_for_each(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => no_string(alias, expr.span()),
            _ => ControlFlow::Continue(()),
        })
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Error> {
        match table {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => of_table(alias, table.span()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn of_table(alias: &TableAlias, span: Span) -> ControlFlow<Error> {
    std::iter::once(&alias.name).chain(alias.columns.iter().map(|column| &column.name)).try_for_each(|name| no_string(name, span))
}

fn no_string(name: &Ident, span: Span) -> ControlFlow<Error> {
    if !matches!(name.quote_style, Some('\'' | '"')) {
        return ControlFlow::Continue(());
    }
    let hint = "write strings side by side as one string, and a name as AS `name`";
    ControlFlow::Break(Error::refused_with_hint("a string where a name could stand", hint, span))
}

/// A named relation; without a name in the text it is called by its last part, or by all of them where that is taken.
pub(crate) fn relation(
    alias: &mut Option<TableAlias>,
    names: Vec<String>,
    columns: Vec<Column>,
    others: &[Relation],
) -> Result<Relation, Error> {
    if let Some(alias) = alias {
        let columns = renamed(alias, columns)?;
        let name = alias.name.value.clone();
        return Ok(Relation { alias: Some(name.clone()), names: vec![name], columns });
    }
    let last = names.last().cloned().unwrap_or_default();
    let taken = others.iter().any(|other| other.alias.as_ref().is_some_and(|alias| same(alias, &last)));
    let name = if taken { names.join(".") } else { last };
    *alias = Some(TableAlias { explicit: true, name: Ident::new(&name), columns: Vec::new(), at: None });
    Ok(Relation { alias: Some(name), names, columns })
}

/// The columns under the names that an alias gives them.
pub(crate) fn renamed(alias: &TableAlias, columns: Vec<Column>) -> Result<Vec<Column>, Error> {
    let TableAlias { explicit: _, name, columns: names, at } = alias;
    refuse_if(at.is_some(), "the clause AT", name.span)?;
    refuse_if(names.iter().any(|column| column.data_type.is_some()), "a type in a list of names", name.span)?;
    if names.is_empty() {
        return Ok(columns);
    }
    if names.len() != columns.len() {
        let reason = match name.value.as_str() {
            asked::ROWS => format!("IN looks for rows of {} values in a query of {} columns", names.len(), columns.len()),
            name => format!("`{name}` has {} columns but {} names", columns.len(), names.len()),
        };
        return Err(Error::Plan { reason, span: error::position(name.span) });
    }
    Ok(names.iter().zip(columns).map(|(name, column)| Column { name: name.name.value.clone(), called: None, ..column }).collect())
}

/// VALUES give `col1`, `col2`, …, where the engine says `column1`: the alias says it.
pub(crate) fn name_columns_of_values(query: &Query, alias: &mut TableAlias) {
    if let SetExpr::Values(values) = query.body.as_ref()
        && alias.columns.is_empty()
    {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        alias.columns = (1..=width).map(|position| TableAliasColumnDef::from_name(format!("col{position}"))).collect();
    }
}
