//! Stars: which columns `*` and `t.*` stand for.
//!
//! A star is the columns of the rows. What the lake keeps beside them (where a row is from, what its change was) is found by its name
//! and brought by no star, so that a text means what it means where those columns are not.

use tributary_fault::nearest;
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, Spanned,
    WildcardAdditionalOptions,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{call, quoted, text};
use crate::rewrite::refuse_if;
use crate::scope::{Column, Relation, Scope, ambiguous, same};
use crate::unfold::IN_PROJECTION;
use crate::{Error, error};

/// What stands for a star, and the columns that it gives.
pub(crate) struct Brought {
    pub items: Vec<SelectItem>,
    pub columns: Vec<Column>,
}

/// What a star of a select list brings; nothing of what is none.
///
/// # Errors
/// For a table or a column of EXCEPT that there is not, and for what else stands beside a star.
pub(crate) fn brought(item: &SelectItem, scope: &Scope<'_>) -> Result<Option<Brought>, Error> {
    let (of, options) = match item {
        SelectItem::Wildcard(options) => (None, options),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => (Some(name), options),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expression), _) => {
            return Err(Error::refused("the fields of an expression (.*)", expression.span()));
        }
        _ => return Ok(None),
    };
    let (mut items, mut columns) = (Vec::new(), Vec::new());
    for (name, data_type, said) in starred(of, options, scope)? {
        // a column keeps the relation that it is of, so that two may be called alike
        let is_called_so = matches!(&said, Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|last| last.value == name));
        items.push(match is_called_so {
            true => SelectItem::UnnamedExpr(said),
            false => SelectItem::ExprWithAlias { expr: said, alias: quoted(&name) },
        });
        columns.push(Column::new(name, data_type));
    }
    Ok(Some(Brought { items, columns }))
}

/// The columns that a star among the arguments of a call stands for, by their names, as the engine has them; nothing of what is none.
///
/// # Errors
/// As [`brought`].
pub(crate) fn argument(argument: &FunctionArg, scope: &Scope<'_>) -> Result<Option<Vec<(String, Expr)>>, Error> {
    let plain = WildcardAdditionalOptions::default();
    let (of, options) = match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => (None, &plain),
        FunctionArg::Unnamed(FunctionArgExpr::WildcardWithOptions(options)) => (None, options),
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => (Some(name), &plain),
        _ => return Ok(None),
    };
    Ok(Some(starred(of, options, scope)?.into_iter().map(|(name, _, said)| (name, said)).collect()))
}

/// The columns of a star: their names, types as far as they are known, and what stands for them.
fn starred(
    of: Option<&ObjectName>,
    options: &WildcardAdditionalOptions,
    scope: &Scope<'_>,
) -> Result<Vec<(String, Option<DataType>, Expr)>, Error> {
    let excepted = excepted(options)?;
    let brought: Vec<(&Relation, &Column)> = match of {
        None => {
            let relations = scope.relations.iter().filter(|relation| relation.names != [IN_PROJECTION]);
            let columns = relations.flat_map(|relation| relation.columns.iter().map(move |column| (relation, column)));
            columns.filter(|(_, column)| column.bare).collect()
        }
        Some(name) => match scope.relation(name) {
            Ok(relation) => relation.columns.iter().map(|column| (relation, column)).collect(),
            Err(none) => return fields(name, &excepted, scope).ok_or(none),
        },
    };
    for name in &excepted {
        let called: Vec<(&Relation, &Column)> = brought.iter().filter(|(_, column)| same(&column.name, &name.value)).copied().collect();
        match called.as_slice() {
            [_] => {}
            [] => {
                let known = brought.iter().map(|(_, column)| column.name.as_str());
                let suggestion = nearest(&name.value, known).map(str::to_owned);
                return Err(Error::NoColumn { column: name.value.clone(), suggestion, span: error::position(name.span) });
            }
            several => return Err(ambiguous(&[(*name).clone()], several.iter().copied())),
        }
    }
    let is_kept = |column: &Column| column.starred && !excepted.iter().any(|name| same(&name.value, &column.name));
    let kept = brought.into_iter().filter(|(_, column)| is_kept(column));
    Ok(kept.map(|(relation, column)| (column.name.clone(), column.data_type.clone(), relation.said(column))).collect())
}

/// `s.*` of a column that is a struct, as far as its type is known.
fn fields(name: &ObjectName, excepted: &[&Ident], scope: &Scope<'_>) -> Option<Vec<(String, Option<DataType>, Expr)>> {
    let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    let found = scope.resolve(&parts).ok()?;
    let Some(DataType::Struct(fields)) = &found.end.data_type else { return None };
    let of = found.fields.iter().fold(found.column, |inside, field| call("get_field", vec![inside, text(field)]));
    let kept = fields.iter().filter(|field| !excepted.iter().any(|name| same(&name.value, field.name())));
    let said = kept.map(|field| {
        let said = call("get_field", vec![of.clone(), text(field.name())]);
        (field.name().clone(), Some(field.data_type().clone()), said)
    });
    Some(said.collect())
}

/// The names of EXCEPT.
fn excepted(options: &WildcardAdditionalOptions) -> Result<Vec<&Ident>, Error> {
    let WildcardAdditionalOptions { wildcard_token, opt_ilike, opt_exclude, opt_except, opt_replace, opt_rename, opt_alias } = options;
    let span: Span = wildcard_token.0.span;
    refuse_if(opt_ilike.is_some(), "* ILIKE", span)?;
    refuse_if(opt_exclude.is_some(), "* EXCLUDE", span)?;
    refuse_if(opt_replace.is_some(), "* REPLACE", span)?;
    refuse_if(opt_rename.is_some(), "* RENAME", span)?;
    refuse_if(opt_alias.is_some(), "a name for *", span)?;
    let names = opt_except
        .iter()
        .flat_map(|ExceptSelectItem { first_element, additional_elements }| std::iter::once(first_element).chain(additional_elements));
    Ok(names.collect())
}
