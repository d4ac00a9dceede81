//! The query of an `UPDATE`, a `DELETE` or a `MERGE`, planned.

use tributary_fault::nearest;
use tributary_lake::arrow::datatypes::DataType as Arrow;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::prelude::{DataFrame, SessionContext};
use tributary_lake::datafusion::sql::sqlparser::ast::{
    CaseWhen, CastKind, DataType as Written, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr,
    Spanned, Statement as Parsed, TableAlias, TableFactor,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;
use tributary_specs::{Column, DataType};

use super::{
    Assigned, Assignment, CLAUSE, Clause, Does, FILE, PlannedChange, ROW, RowChange, Rows, Target, When, after, before, default_of,
    is_default, null,
};
use crate::ast::{and, boolean, cases, long, quoted};
use crate::scope::same;
use crate::tables::{Source, Tables};
use crate::text::Text;
use crate::uses::{Read, TableUse};
use crate::{Error, error, parse, type_name};

/// The column of a source's rows that is there.
const THERE: &str = "tributary source";

impl RowChange {
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
    ) -> Result<PlannedChange, Error> {
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
        let (projection, computed) = made.projection(clauses)?;
        select.projection = projection;
        let text = Text::of(Parsed::Query(query))?.deepened(levels);
        Ok(PlannedChange { plan: text.plan(context, state, &tables, own).await?, computed })
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
    fn projection(&self, clauses: Vec<Clause>) -> Result<(Vec<SelectItem>, Vec<Vec<usize>>), Error> {
        let item = |expr: Expr, name: &str| SelectItem::ExprWithAlias { expr, alias: quoted(name) };
        let mut items = vec![item(self.changed.column(FILE), FILE), item(self.changed.column(ROW), ROW)];
        let numbers = (0..clauses.len()).map(long).collect();
        items.push(item(self.by_clause(&clauses, numbers), CLAUSE));
        if self.target.before {
            let columns = self.target.columns.iter().enumerate();
            items.extend(columns.map(|(at, column)| item(self.changed.column(&column.name), &before(at))));
        }
        let assigned = clauses.iter().map(|clause| self.assigned(clause)).collect::<Result<Vec<_>, _>>()?;
        let (assigned, computed): (Vec<_>, Vec<_>) = assigned.into_iter().unzip();
        if clauses.iter().any(|clause| !matches!(clause.does, Does::Delete)) {
            for at in 0..self.target.columns.len() {
                let values = assigned.iter().map(|values| values.get(at).cloned().unwrap_or_else(null)).collect();
                items.push(item(self.by_clause(&clauses, values), &after(at)));
            }
        }
        Ok((items, computed))
    }

    /// For each row what stands for the clause that takes it.
    fn by_clause(&self, clauses: &[Clause], values: Vec<Expr>) -> Expr {
        let Some(from) = &self.from else { return values.into_iter().next().unwrap_or_else(null) };
        let is_null = |column: Expr| Expr::IsNull(Box::new(column));
        let is_not_null = |column: Expr| Expr::IsNotNull(Box::new(column));
        let mut kinds = Vec::new();
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
            kinds.push(CaseWhen { condition, result: cases(branches, None) });
        }
        cases(kinds, None)
    }

    /// The values of all columns that a clause gives, none where it deletes, and the numbers of the generated ones that it does not.
    fn assigned(&self, clause: &Clause) -> Result<(Vec<Expr>, Vec<usize>), Error> {
        let (assigned, inserts) = match &clause.does {
            Does::Delete => return Ok((Vec::new(), Vec::new())),
            Does::Update(assigned) => (assigned, false),
            Does::Insert(assigned) => (assigned, true),
        };
        let columns = self.target.columns;
        let mut values: Vec<Option<Expr>> = vec![None; columns.len()];
        match assigned {
            Assigned::Star => {
                for (value, column) in values.iter_mut().zip(columns) {
                    *value = match self.of_source(column) {
                        Err(Error::NoColumn { .. }) if column.generated.is_some() => None,
                        found => Some(found?),
                    };
                }
            }
            Assigned::Columns(assignments) => {
                for Assignment { parts, value } in assignments {
                    let (at, column) = self.column(parts)?;
                    if values[at].is_some() {
                        let span = parts.first().map(|part| part.span).unwrap_or_else(Span::empty);
                        return Err(Error::refused(format!("a second value for column `{}`", column.name), span));
                    }
                    if is_default(value) && column.generated.is_some() {
                        continue;
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
        let is_computed = |(value, column): (&Option<Expr>, &Column)| value.is_none() && column.generated.is_some();
        let computed = (0..columns.len()).filter(|at| is_computed((&values[*at], &columns[*at]))).collect();
        let values = values.into_iter().zip(columns).map(fill).collect::<Result<Vec<_>, Error>>()?;
        Ok((values, computed))
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
