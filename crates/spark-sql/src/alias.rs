//! What relations and their columns are called.

use tributary_lake::datafusion::sql::sqlparser::ast::{Ident, Query, SetExpr, TableAlias, TableAliasColumnDef};

use crate::Error;
use crate::rewrite::refuse_if;
use crate::scope::{Column, Relation, same};

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
        let reason = format!("`{}` has {} columns but {} names", name.value, columns.len(), names.len());
        return Err(Error::Plan { reason });
    }
    Ok(names.iter().zip(columns).map(|(name, column)| Column { name: name.name.value.clone(), ..column }).collect())
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

/// Whether a query is nothing but VALUES.
pub(crate) fn is_values(query: &Query) -> bool {
    matches!(query.body.as_ref(), SetExpr::Values(_))
}
