//! Walks a statement clause by clause. A clause that is not handled here is refused: every part of the tree is taken apart by
//! name, so that a part the parser learns later is a compile error and not a clause that is ignored.

use tributary_lake::datafusion::sql::sqlparser::ast::{
    Cte, Distinct, ExceptSelectItem, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, LimitClause, NamedWindowDefinition,
    NamedWindowExpr, ObjectName, ObjectNamePart, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, Spanned, Statement, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins, Values, WildcardAdditionalOptions,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::scope::{Column, Relation, Scope, same};
use crate::tables::Tables;
use crate::uses::TableUse;
use crate::{Error, error, tables};

/// Rewrites a statement for the engine: names spelled, tables as they are registered, meanings made explicit.
pub(crate) fn statement(statement: &mut Statement, rewriter: &Rewriter<'_>) -> Result<(), Error> {
    match statement {
        Statement::Query(query) => rewriter.query(query, &[], None).map(drop),
        Statement::Explain { statement, .. } => self::statement(statement, rewriter),
        other => Err(Error::refused("this statement", other.span())),
    }
}

/// What a text may name besides its own names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rewriter<'t> {
    /// Its tables.
    pub tables: &'t Tables,
    /// Functions that the program brought, by name.
    pub own: &'t [String],
    /// Whether other versions of a table than the latest may be read, and changes.
    pub travels: bool,
}

/// A common table expression that can be named.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    name: String,
    columns: Vec<Column>,
}

/// Refuses a clause that is there.
fn refuse_if(there: bool, what: &str, span: Span) -> Result<(), Error> {
    if there { Err(Error::refused(what, span)) } else { Ok(()) }
}

impl Rewriter<'_> {
    /// Rewrites a query and tells the columns it gives.
    pub(crate) fn query(&self, query: &mut Query, named: &[Named], outer: Option<&Scope<'_>>) -> Result<Vec<Column>, Error> {
        let span = query.span();
        let Query { with, body, order_by, limit_clause, fetch, locks, for_clause, settings, format_clause, pipe_operators } = query;
        refuse_if(fetch.is_some(), "the clause FETCH", span)?;
        refuse_if(!locks.is_empty(), "the clause FOR UPDATE", span)?;
        refuse_if(for_clause.is_some(), "the clause FOR", span)?;
        refuse_if(settings.is_some(), "the clause SETTINGS", span)?;
        refuse_if(format_clause.is_some(), "the clause FORMAT", span)?;
        refuse_if(!pipe_operators.is_empty(), "the pipe |>", span)?;
        let mut named = named.to_vec();
        if let Some(with) = with {
            refuse_if(with.recursive, "WITH RECURSIVE", with.span())?;
            for cte in &mut with.cte_tables {
                let one = self.common_table_expression(cte, &named, outer)?;
                named.push(one);
            }
        }
        let (relations, outputs) = self.body(body, &named, outer)?;
        if let Some(order_by) = order_by {
            let scope = Scope { relations, outputs: outputs.clone(), outputs_first: true, named: &named, outer };
            self.order_by(order_by, &scope)?;
        }
        if let Some(limit) = limit_clause {
            self.limit(limit)?;
        }
        Ok(outputs)
    }

    fn common_table_expression(&self, cte: &mut Cte, named: &[Named], outer: Option<&Scope<'_>>) -> Result<Named, Error> {
        let Cte { alias, query, from, materialized, closing_paren_token: _ } = cte;
        let span = alias.name.span;
        refuse_if(from.is_some(), "FROM in WITH", span)?;
        refuse_if(materialized.is_some(), "the hint MATERIALIZED", span)?;
        let columns = self.query(query, named, outer)?;
        name_columns_of_values(query, alias);
        let name = alias.name.value.clone();
        Ok(Named { name, columns: renamed(alias, columns)? })
    }

    /// The relations a following ORDER BY can still name, and the columns of the body.
    fn body(&self, body: &mut SetExpr, named: &[Named], outer: Option<&Scope<'_>>) -> Result<(Vec<Relation>, Vec<Column>), Error> {
        match body {
            SetExpr::Select(select) => self.select(select, named, outer),
            SetExpr::Query(query) => Ok((Vec::new(), self.query(query, named, outer)?)),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let span = left.span();
                match (op, set_quantifier) {
                    (
                        SetOperator::Union | SetOperator::Except | SetOperator::Intersect,
                        SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None,
                    ) => {}
                    (SetOperator::Minus, _) => return Err(Error::refused_with_hint("MINUS", "say EXCEPT", span)),
                    (op, quantifier) => return Err(Error::refused(format!("{op} {quantifier}"), span)),
                }
                let (_, outputs) = self.body(left, named, outer)?;
                self.body(right, named, outer)?;
                Ok((Vec::new(), outputs))
            }
            SetExpr::Values(values) => self.values(values, named, outer),
            other => {
                let text = other.to_string();
                let word = text.split_whitespace().next().unwrap_or_default().to_owned();
                Err(Error::refused(format!("{word} as a query"), other.span()))
            }
        }
    }

    fn values(&self, values: &mut Values, named: &[Named], outer: Option<&Scope<'_>>) -> Result<(Vec<Relation>, Vec<Column>), Error> {
        let Values { explicit_row, value_keyword, rows } = values;
        refuse_if(*explicit_row || *value_keyword, "ROW in VALUES", Span::empty())?;
        let scope = Scope { named, outer, ..Scope::default() };
        for expression in rows.iter_mut().flat_map(|row| row.content.iter_mut()) {
            self.expression(expression, &scope)?;
        }
        let width = rows.first().map_or(0, |row| row.content.len());
        Ok((Vec::new(), (1..=width).map(|position| Column { name: format!("col{position}"), data_type: None }).collect()))
    }

    fn select(&self, select: &mut Select, named: &[Named], outer: Option<&Scope<'_>>) -> Result<(Vec<Relation>, Vec<Column>), Error> {
        let span = select.select_token.0.span;
        let Select {
            select_token: _,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        refuse_if(!optimizer_hints.is_empty(), "a hint", span)?;
        refuse_if(matches!(distinct, Some(Distinct::On(_))), "DISTINCT ON", span)?;
        refuse_if(select_modifiers.is_some(), "a modifier of SELECT", span)?;
        refuse_if(top.is_some(), "the clause TOP", span)?;
        refuse_if(exclude.is_some(), "the clause EXCLUDE", span)?;
        refuse_if(into.is_some(), "the clause INTO", span)?;
        refuse_if(!lateral_views.is_empty(), "the clause LATERAL VIEW", span)?;
        refuse_if(prewhere.is_some(), "the clause PREWHERE", span)?;
        refuse_if(!connect_by.is_empty(), "the clause CONNECT BY", span)?;
        refuse_if(!cluster_by.is_empty(), "the clause CLUSTER BY", span)?;
        refuse_if(!distribute_by.is_empty(), "the clause DISTRIBUTE BY", span)?;
        refuse_if(!sort_by.is_empty(), "the clause SORT BY", span)?;
        refuse_if(value_table_mode.is_some(), "SELECT AS", span)?;
        refuse_if(!matches!(flavor, SelectFlavor::Standard), "FROM before SELECT", span)?;

        let relations = self.from(from, named, outer)?;
        let scope = Scope { relations, named, outer, ..Scope::default() };
        let outputs = self.projection(projection, &scope)?;
        if let Some(condition) = selection {
            self.expression(condition, &scope)?;
        }
        let scope = Scope { outputs, ..scope };
        self.group_by(group_by, &scope)?;
        for condition in [having, qualify].into_iter().flatten() {
            self.expression(condition, &scope)?;
        }
        for NamedWindowDefinition(name, window) in named_window {
            match window {
                NamedWindowExpr::WindowSpec(window) => self.window(window, &scope)?,
                NamedWindowExpr::NamedWindow(_) => return Err(Error::refused("a window that is another window", name.span)),
            }
        }
        Ok((scope.relations, scope.outputs))
    }

    fn projection(&self, projection: &mut [SelectItem], scope: &Scope<'_>) -> Result<Vec<Column>, Error> {
        let mut outputs = Vec::new();
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expression) => {
                    let text = expression.to_string();
                    let column = self.expression(expression, scope)?;
                    let column = column.unwrap_or(Column { name: text, data_type: None });
                    if !is_plain_column(expression, &column) {
                        *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: Ident::new(&column.name) };
                    }
                    outputs.push(column);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let data_type = self.expression(expr, scope)?.and_then(|column| column.data_type);
                    outputs.push(Column { name: alias.value.clone(), data_type });
                }
                SelectItem::Wildcard(options) => {
                    let columns: Vec<Column> = scope.relations.iter().flat_map(|relation| relation.columns.iter().cloned()).collect();
                    outputs.extend(wildcard(columns, options)?);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let relation = scope.relation(name)?;
                    if let Some(alias) = &relation.alias {
                        *name = object_name(alias);
                    }
                    outputs.extend(wildcard(relation.columns.clone(), options)?);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expression), _) => {
                    return Err(Error::refused("the fields of an expression (.*)", expression.span()));
                }
                SelectItem::ExprWithAliases { expr, .. } => return Err(Error::refused("several names for one expression", expr.span())),
            }
        }
        Ok(outputs)
    }

    fn group_by(&self, group_by: &mut GroupByExpr, scope: &Scope<'_>) -> Result<(), Error> {
        match group_by {
            GroupByExpr::All(_) => Err(Error::refused_with_hint("GROUP BY ALL", "name the columns", group_by.span())),
            GroupByExpr::Expressions(_, modifiers) if !modifiers.is_empty() => {
                Err(Error::refused_with_hint("WITH ROLLUP or WITH CUBE", "say GROUP BY ROLLUP (…)", group_by.span()))
            }
            GroupByExpr::Expressions(expressions, _) => {
                for expression in expressions {
                    match expression {
                        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                            sets.iter_mut().flatten().try_for_each(|expression| self.expression(expression, scope).map(drop))?;
                        }
                        expression => drop(self.expression(expression, scope)?),
                    }
                }
                Ok(())
            }
        }
    }

    fn order_by(&self, order_by: &mut OrderBy, scope: &Scope<'_>) -> Result<(), Error> {
        let span = order_by.span();
        let OrderBy { kind, interpolate } = order_by;
        refuse_if(interpolate.is_some(), "the clause INTERPOLATE", span)?;
        match kind {
            OrderByKind::All(_) => Err(Error::refused_with_hint("ORDER BY ALL", "name the columns", span)),
            OrderByKind::Expressions(expressions) => expressions.iter_mut().try_for_each(|expression| self.order_by_one(expression, scope)),
        }
    }

    pub(crate) fn order_by_one(&self, order_by: &mut OrderByExpr, scope: &Scope<'_>) -> Result<(), Error> {
        let OrderByExpr { expr, options: _, with_fill } = order_by;
        refuse_if(with_fill.is_some(), "the clause WITH FILL", expr.span())?;
        self.expression(expr, scope).map(drop)
    }

    fn limit(&self, limit: &mut LimitClause) -> Result<(), Error> {
        let scope = Scope::default();
        match limit {
            LimitClause::LimitOffset { limit, offset, limit_by } => {
                refuse_if(!limit_by.is_empty(), "the clause LIMIT BY", Span::empty())?;
                for expression in limit.iter_mut().chain(offset.as_mut().map(|offset| &mut offset.value)) {
                    self.expression(expression, &scope)?;
                }
                Ok(())
            }
            LimitClause::OffsetCommaLimit { .. } => Err(Error::refused_with_hint("LIMIT a, b", "say LIMIT b OFFSET a", Span::empty())),
        }
    }

    fn from(&self, from: &mut [TableWithJoins], named: &[Named], outer: Option<&Scope<'_>>) -> Result<Vec<Relation>, Error> {
        let mut relations = Vec::new();
        for item in from {
            self.table_with_joins(item, &mut relations, named, outer)?;
        }
        Ok(relations)
    }

    fn table_with_joins(
        &self,
        item: &mut TableWithJoins,
        relations: &mut Vec<Relation>,
        named: &[Named],
        outer: Option<&Scope<'_>>,
    ) -> Result<(), Error> {
        let first = relations.len();
        let TableWithJoins { relation, joins } = item;
        self.factor(relation, relations, named, outer)?;
        for Join { relation, global, join_operator } in joins {
            let span = relation.span();
            refuse_if(*global, "GLOBAL JOIN", span)?;
            let left = relations.len();
            self.factor(relation, relations, named, outer)?;
            let (constraint, keeps_right) = operator(join_operator, span)?;
            let scope = Scope { relations: relations[first..].to_vec(), named, outer, ..Scope::default() };
            match constraint {
                JoinConstraint::On(condition) => drop(self.expression(condition, &scope)?),
                JoinConstraint::Using(columns) => {
                    columns.iter_mut().try_for_each(|column| using(column, &scope.relations, left - first))?
                }
                JoinConstraint::Natural => natural(&scope.relations, left - first, span)?,
                JoinConstraint::None => {}
            }
            if !keeps_right {
                relations.truncate(left);
            }
        }
        Ok(())
    }

    fn factor(
        &self,
        factor: &mut TableFactor,
        relations: &mut Vec<Relation>,
        named: &[Named],
        outer: Option<&Scope<'_>>,
    ) -> Result<(), Error> {
        let span = factor.span();
        let used = TableUse::of(factor)?;
        match factor {
            TableFactor::Table { name, alias, args, with_hints, version, with_ordinality, partitions, json_path, sample, index_hints } => {
                refuse_if(!with_hints.is_empty() || !index_hints.is_empty(), "a hint", span)?;
                refuse_if(*with_ordinality, "WITH ORDINALITY", span)?;
                refuse_if(!partitions.is_empty(), "the clause PARTITION", span)?;
                refuse_if(json_path.is_some(), "a path into JSON", span)?;
                refuse_if(sample.is_some(), "the clause TABLESAMPLE", span)?;
                let Some(used) = used else { return Err(Error::refused("this table", span)) };
                if let (false, Some(how)) = (self.travels, used.read.how()) {
                    return Err(Error::refused_with_hint(
                        format!("{how} in a dataset"),
                        "a dataset is over its inputs as they are",
                        name.span(),
                    ));
                }
                let common = (used.parts.len() == 1 && args.is_none() && version.is_none())
                    .then(|| named.iter().rev().find(|one| same(&one.name, &used.parts[0])))
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
                let columns = self.query(subquery, named, outer)?;
                match alias {
                    Some(named) => {
                        name_columns_of_values(subquery, named);
                        let columns = renamed(named, columns)?;
                        let name = named.name.value.clone();
                        relations.push(Relation { alias: Some(name.clone()), names: vec![name], columns });
                    }
                    None if is_values(subquery) => {
                        return Err(Error::refused_with_hint("VALUES without a name", "say (VALUES …) AS t(a, b)", span));
                    }
                    None => relations.push(Relation { alias: None, names: Vec::new(), columns }),
                }
                Ok(())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                refuse_if(alias.is_some(), "a name for a join in brackets", span)?;
                self.table_with_joins(table_with_joins, relations, named, outer)
            }
            TableFactor::Pivot { .. } => Err(Error::refused("PIVOT", span)),
            TableFactor::Unpivot { .. } => Err(Error::refused("UNPIVOT", span)),
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

/// The constraint of a join and whether its right side can be named afterwards.
fn operator(operator: &mut JoinOperator, span: Span) -> Result<(&mut JoinConstraint, bool), Error> {
    if let JoinOperator::Semi(constraint) = operator {
        *operator = JoinOperator::LeftSemi(constraint.clone());
    }
    if let JoinOperator::Anti(constraint) = operator {
        *operator = JoinOperator::LeftAnti(constraint.clone());
    }
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Ok((constraint, true)),
        JoinOperator::LeftSemi(constraint) | JoinOperator::LeftAnti(constraint) => Ok((constraint, false)),
        _ => Err(Error::refused("this kind of join", span)),
    }
}

/// A column of USING, spelled as both sides spell it.
fn using(column: &mut ObjectName, relations: &[Relation], left: usize) -> Result<(), Error> {
    let span = column.span();
    let name = match column.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => ident.value.clone(),
        _ => return Err(Error::refused("a qualified name in USING", span)),
    };
    let spelled = |side: &[Relation]| {
        side.iter().flat_map(|relation| &relation.columns).find(|column| same(&column.name, &name)).map(|column| column.name.clone())
    };
    match (spelled(&relations[..left]), spelled(&relations[left..])) {
        (Some(a), Some(b)) if a == b => {
            *column = object_name(&a);
            Ok(())
        }
        (Some(a), Some(b)) => {
            Err(Error::refused_with_hint(format!("USING ({name})"), format!("the sides spell it `{a}` and `{b}`: say ON"), span))
        }
        _ => Err(Error::NoColumn { column: name, suggestion: None, span: error::position(span) }),
    }
}

/// Refuses a natural join of columns that the sides spell differently: the engine would not pair them.
fn natural(relations: &[Relation], left: usize, span: Span) -> Result<(), Error> {
    let columns = |side: &[Relation]| side.iter().flat_map(|relation| relation.columns.clone()).collect::<Vec<_>>();
    let right = columns(&relations[left..]);
    for a in columns(&relations[..left]) {
        if let Some(b) = right.iter().find(|b| same(&a.name, &b.name) && a.name != b.name) {
            let hint = format!("the sides spell `{}` and `{}`: say ON", a.name, b.name);
            return Err(Error::refused_with_hint("this NATURAL JOIN", hint, span));
        }
    }
    Ok(())
}

/// A named relation; without a name in the text it is called by its last part, or by all of them where that is taken.
fn relation(alias: &mut Option<TableAlias>, names: Vec<String>, columns: Vec<Column>, others: &[Relation]) -> Result<Relation, Error> {
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
fn renamed(alias: &TableAlias, columns: Vec<Column>) -> Result<Vec<Column>, Error> {
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
fn name_columns_of_values(query: &Query, alias: &mut TableAlias) {
    if let SetExpr::Values(values) = query.body.as_ref()
        && alias.columns.is_empty()
    {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        alias.columns = (1..=width).map(|position| TableAliasColumnDef::from_name(format!("col{position}"))).collect();
    }
}

fn is_values(query: &Query) -> bool {
    matches!(query.body.as_ref(), SetExpr::Values(_))
}

/// The columns of `*`, less those of its EXCEPT, whose names are spelled.
fn wildcard(mut columns: Vec<Column>, options: &mut WildcardAdditionalOptions) -> Result<Vec<Column>, Error> {
    let WildcardAdditionalOptions { wildcard_token, opt_ilike, opt_exclude, opt_except, opt_replace, opt_rename, opt_alias } = options;
    let span = wildcard_token.0.span;
    refuse_if(opt_ilike.is_some(), "* ILIKE", span)?;
    refuse_if(opt_exclude.is_some(), "* EXCLUDE", span)?;
    refuse_if(opt_replace.is_some(), "* REPLACE", span)?;
    refuse_if(opt_rename.is_some(), "* RENAME", span)?;
    refuse_if(opt_alias.is_some(), "a name for *", span)?;
    if let Some(ExceptSelectItem { first_element, additional_elements }) = opt_except {
        for excepted in std::iter::once(first_element).chain(additional_elements) {
            let Some(column) = columns.iter().find(|column| same(&column.name, &excepted.value)) else {
                return Err(Error::NoColumn { column: excepted.value.clone(), suggestion: None, span: error::position(excepted.span) });
            };
            excepted.value = column.name.clone();
            columns.retain(|column| column.name != excepted.value);
        }
    }
    Ok(columns)
}

/// Whether the engine gives the expression the column's own name.
fn is_plain_column(expression: &Expr, column: &Column) -> bool {
    match expression {
        Expr::Identifier(ident) => ident.value == column.name,
        Expr::CompoundIdentifier(parts) => parts.len() == 2 && parts[1].value == column.name,
        _ => false,
    }
}

pub(crate) fn object_name(name: &str) -> ObjectName {
    ObjectName::from(vec![quoted(name)])
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('`', name)
}
