//! Walks FROM: tables, subqueries, and how they are joined.

use tributary_lake::datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectName, Spanned, TableAlias, TableFactor, TableWithJoins,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::alias::{name_columns_of_values, relation, renamed};
use crate::ast::{object_name, quoted};
use crate::rewrite::{Rewriter, refuse_if};
use crate::scope::{Outside, Relation, Scope, same};
use crate::uses::{Read, TableUse};
use crate::{Error, join_keys, range, tables};

impl Rewriter<'_> {
    /// The relations of a FROM clause, in its order.
    pub(crate) fn from(&self, from: &mut [TableWithJoins], outside: Outside<'_>) -> Result<Vec<Relation>, Error> {
        let mut relations = Vec::new();
        for (at, item) in from.iter_mut().enumerate() {
            if at > 0 {
                of_one(&item.relation)?;
            }
            item.joins.iter().try_for_each(|join| of_one(&join.relation))?;
            self.table_with_joins(item, &mut relations, outside)?;
        }
        Ok(relations)
    }

    fn table_with_joins(&self, item: &mut TableWithJoins, relations: &mut Vec<Relation>, outside: Outside<'_>) -> Result<(), Error> {
        let first = relations.len();
        let TableWithJoins { relation, joins } = item;
        self.factor(relation, relations, outside)?;
        for Join { relation, global, join_operator } in joins {
            let span = relation.span();
            refuse_if(*global, "GLOBAL JOIN", span)?;
            let left = relations.len();
            self.factor(relation, relations, outside)?;
            let (constraint, keeps_right) = operator(join_operator, span)?;
            let scope = Scope { relations: relations[first..].to_vec(), outside, ..Scope::default() };
            let keys = join_keys::named(constraint, &scope.relations, left - first)?;
            match (&keys, &mut *constraint) {
                (Some(keys), constraint) => *constraint = JoinConstraint::On(join_keys::condition(keys)),
                (None, JoinConstraint::On(condition)) => drop(self.expression(condition, &scope)?),
                (None, _) => {}
            }
            match keys {
                _ if !keeps_right => relations.truncate(left),
                Some(keys) => join_keys::merge(keys, join_operator, relations, first),
                None => {}
            }
        }
        Ok(())
    }

    /// What stands for `range(…)`, where a factor is that.
    fn range(&self, factor: &mut TableFactor, relations: &mut Vec<Relation>) -> Result<Option<TableFactor>, Error> {
        let TableFactor::Table { name, alias, args: Some(arguments), .. } = factor else { return Ok(None) };
        if !range::is_range(name) {
            return Ok(None);
        }
        let subquery = Box::new(range::query(name, arguments)?);
        relations.push(relation(alias, vec![range::NAME.to_owned()], range::columns(), relations)?);
        Ok(Some(TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None }))
    }

    pub(crate) fn factor(&self, factor: &mut TableFactor, relations: &mut Vec<Relation>, outside: Outside<'_>) -> Result<(), Error> {
        let span = factor.span();
        let used = TableUse::of(factor)?;
        if let Some(rows) = self.range(factor, relations)? {
            *factor = rows;
            return Ok(());
        }
        match factor {
            TableFactor::Table { name, alias, args, with_hints, version, with_ordinality, partitions, json_path, sample, index_hints } => {
                refuse_if(!with_hints.is_empty() || !index_hints.is_empty(), "a hint", span)?;
                refuse_if(*with_ordinality, "WITH ORDINALITY", span)?;
                refuse_if(!partitions.is_empty(), "the clause PARTITION", span)?;
                refuse_if(json_path.is_some(), "a path into JSON", span)?;
                refuse_if(sample.is_some(), "the clause TABLESAMPLE", span)?;
                let Some(used) = used else { return Err(Error::refused("this table", span)) };
                // What the changes of an input are is the input's as it is.
                let is_past = !matches!(used.read, Read::Changes(..));
                if let (false, true, Some(how)) = (self.travels, is_past, used.read.how()) {
                    return Err(Error::refused_with_hint(
                        format!("{how} in a dataset"),
                        "a dataset is over its inputs as they are",
                        name.span(),
                    ));
                }
                let common = (used.parts.len() == 1 && args.is_none() && version.is_none())
                    .then(|| outside.named.iter().rev().find(|one| same(&one.name, &used.parts[0])))
                    .flatten();
                let (names, columns) = match common {
                    Some(common) => {
                        *name = object_name(&common.name);
                        (vec![common.name.clone()], common.columns.clone())
                    }
                    None => {
                        let source = self.tables.get(&used, name.span())?;
                        *name = ObjectName::from(vec![quoted(tables::CATALOGUE), quoted(tables::SCHEMA), quoted(&source.registered)]);
                        (source.names.clone(), source.columns.clone())
                    }
                };
                (*args, *version) = (None, None);
                relations.push(relation(alias, names, columns, relations)?);
                Ok(())
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                refuse_if(*lateral, "LATERAL", span)?;
                refuse_if(sample.is_some(), "the clause TABLESAMPLE", span)?;
                let columns = self.query(subquery, outside)?;
                match alias {
                    Some(named) => {
                        name_columns_of_values(subquery, named);
                        let columns = renamed(named, columns)?;
                        let name = named.name.value.clone();
                        relations.push(Relation { alias: Some(name.clone()), names: vec![name], columns });
                    }
                    None => {
                        let name = join_keys::unnamed(span);
                        let mut named = TableAlias { explicit: true, name: quoted(&name), columns: Vec::new(), at: None };
                        name_columns_of_values(subquery, &mut named);
                        *alias = Some(named);
                        relations.push(Relation { alias: Some(name), names: Vec::new(), columns });
                    }
                }
                Ok(())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                refuse_if(alias.is_some(), "a name for a join in brackets", span)?;
                self.table_with_joins(table_with_joins, relations, outside)
            }
            TableFactor::Pivot { .. } => self.pivot(factor, relations, outside),
            TableFactor::Unpivot { .. } => self.unpivot(factor, relations, outside),
            TableFactor::UNNEST { .. } => Err(Error::refused("UNNEST", span)),
            TableFactor::MatchRecognize { .. } => Err(Error::refused("MATCH_RECOGNIZE", span)),
            TableFactor::Function { name, .. } => Err(Error::refused(format!("the table function `{name}`"), span)),
            other => {
                let text: String = other.to_string().chars().take(40).collect();
                Err(Error::refused(format!("`{text}` in FROM"), span))
            }
        }
    }
}

/// Refuses PIVOT and UNPIVOT behind a join, of which the dialect has them and the parser has them of its last table.
fn of_one(factor: &TableFactor) -> Result<(), Error> {
    let what = match factor {
        TableFactor::Pivot { .. } => "PIVOT",
        TableFactor::Unpivot { .. } => "UNPIVOT",
        _ => return Ok(()),
    };
    let hint = format!("say the join in a query of its own: FROM (SELECT … FROM a JOIN b …) {what} (…)");
    Err(Error::refused_with_hint(format!("{what} behind a join"), hint, factor.span()))
}

/// The constraint of a join and whether its right side can be named afterwards.
fn operator(operator: &mut JoinOperator, span: Span) -> Result<(&mut JoinConstraint, bool), Error> {
    if let JoinOperator::Semi(constraint) = operator {
        *operator = JoinOperator::LeftSemi(constraint.clone());
    }
    if let JoinOperator::Anti(constraint) = operator {
        *operator = JoinOperator::LeftAnti(constraint.clone());
    }
    constraint(operator).ok_or_else(|| Error::refused("this kind of join", span))
}

/// The constraint of a join that is executed, its sides said by LEFT and RIGHT, and whether its right side can be named afterwards.
pub(crate) fn constraint(operator: &mut JoinOperator) -> Option<(&mut JoinConstraint, bool)> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some((constraint, true)),
        JoinOperator::LeftSemi(constraint) | JoinOperator::LeftAnti(constraint) => Some((constraint, false)),
        _ => None,
    }
}
