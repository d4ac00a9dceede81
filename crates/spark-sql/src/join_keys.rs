//! USING and NATURAL: which columns of the sides are paired, and the one column that each pair is afterwards.
//!
//! The engine takes that column from the side whose name comes first in the alphabet, which in an outer join may have no row. So the
//! pairs are said by ON, and the column is the side's that keeps its rows: the left's, the right's, or of both the one that is there.

use tributary_fault::nearest;
use tributary_lake::datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Spanned};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{and, boolean, call};
use crate::scope::{Column, Relation, Scope, ambiguous, same};
use crate::{Error, error};

/// A column of each side that are equal.
pub(crate) struct Key {
    left: Side,
    right: Side,
}

/// A column of a side.
struct Side {
    relation: usize,
    column: usize,
    of: Column,
    said: Expr,
}

/// The keys that a constraint tells by names alone; the relations from `left` on are the right side.
///
/// # Errors
/// For a name that is not a column of both sides, or is of several columns of one.
pub(crate) fn named(constraint: &JoinConstraint, relations: &[Relation], left: usize) -> Result<Option<Vec<Key>>, Error> {
    let key = |name: &Ident| Ok(Key { left: side(&relations[..left], 0, name)?, right: side(&relations[left..], left, name)? });
    match constraint {
        JoinConstraint::Using(names) => names.iter().map(|name| key(&plain(name)?)).collect::<Result<_, _>>().map(Some),
        JoinConstraint::Natural => {
            let columns = |side: &[Relation]| {
                let columns = side.iter().flat_map(|relation| relation.columns.clone());
                columns.filter(|column| column.bare && column.starred).collect::<Vec<_>>()
            };
            let right = columns(&relations[left..]);
            let both = columns(&relations[..left]).into_iter().filter(|a| right.iter().any(|b| same(&a.name, &b.name)));
            both.map(|column| key(&Ident::new(column.name))).collect::<Result<_, _>>().map(Some)
        }
        JoinConstraint::On(_) | JoinConstraint::None => Ok(None),
    }
}

/// A name of USING.
fn plain(name: &ObjectName) -> Result<Ident, Error> {
    match name.0.as_slice() {
        [one] => one.as_ident().cloned().ok_or_else(|| Error::refused("this name in USING", name.span())),
        _ => Err(Error::refused("a qualified name in USING", name.span())),
    }
}

fn side(relations: &[Relation], first: usize, name: &Ident) -> Result<Side, Error> {
    let scope = Scope { relations: relations.to_vec(), ..Scope::default() };
    match scope.bare(&name.value).as_slice() {
        [(relation, column)] => {
            let at = |(at, other): (usize, &Relation)| {
                let within = other.columns.iter().position(|one| one == *column)?;
                (other == *relation).then_some((at + first, within))
            };
            let place = scope.relations.iter().enumerate().find_map(at);
            let (relation_at, column_at) = place.unwrap_or_default();
            Ok(Side { relation: relation_at, column: column_at, of: (*column).clone(), said: relation.said(column) })
        }
        [] => {
            let known = relations.iter().flat_map(|relation| &relation.columns).map(|column| column.name.as_str());
            let suggestion = nearest(&name.value, known).map(str::to_owned);
            Err(Error::NoColumn { column: name.value.clone(), suggestion, span: error::position(name.span) })
        }
        several => Err(ambiguous(std::slice::from_ref(name), several.iter().copied())),
    }
}

/// The condition that the keys are.
pub(crate) fn condition(keys: &[Key]) -> Expr {
    let equal = |key: &Key| Expr::BinaryOp {
        left: Box::new(key.left.said.clone()),
        op: BinaryOperator::Eq,
        right: Box::new(key.right.said.clone()),
    };
    keys.iter().map(equal).reduce(and).unwrap_or_else(|| boolean(true))
}

/// What the keys of a join are called afterwards: columns before all others of its sides, which begin at `first`.
pub(crate) fn merge(keys: Vec<Key>, operator: &JoinOperator, relations: &mut Vec<Relation>, first: usize) {
    let mut columns = Vec::with_capacity(keys.len());
    for Key { left, right } in keys {
        for side in [&left, &right] {
            if let Some(column) = relations.get_mut(first + side.relation).and_then(|relation| relation.columns.get_mut(side.column)) {
                column.bare = false;
            }
        }
        let starred = left.of.starred && right.of.starred;
        let (of, said) = match operator {
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (right.of, right.said),
            JoinOperator::FullOuter(_) => (left.of, call("coalesce", vec![left.said, right.said])),
            _ => (left.of, left.said),
        };
        columns.push(Column { called: None, said: Some(said), starred, bare: true, ..of });
    }
    relations.insert(first, Relation { alias: None, names: Vec::new(), columns });
}

/// Where a join is that names no table to be called by.
pub(crate) fn unnamed(span: Span) -> String {
    format!("unnamed {}:{}", span.start.line, span.start.column)
}
