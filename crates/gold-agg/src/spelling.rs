//! Names found without regard to case and spelled as they are.
//!
//! The engine compares names exactly. So before it sees a query, each name in it that is a column, table or alias in another
//! spelling is given that spelling; a name that could be several is left as it is, and the engine says what it makes of it.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use tributary_lake::arrow::datatypes::{DataType, Fields};
use tributary_lake::datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    Statement, TableAlias, TableFactor, Visit, VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};
use tributary_specs::TableName;

/// The spellings a query may use, by their lower case.
#[derive(Debug, Default)]
pub(crate) struct Spelling {
    names: HashMap<String, BTreeSet<String>>,
    tables: HashMap<TableName, TableName>,
}

impl Spelling {
    /// Of tables and their columns.
    pub fn of<'a>(tables: impl IntoIterator<Item = (&'a TableName, &'a Fields)>) -> Self {
        let mut spelling = Self::default();
        for (table, fields) in tables {
            spelling.tables.insert(table.folded(), table.clone());
            spelling.add(&table.schema);
            spelling.add(&table.name);
            spelling.add_fields(fields);
        }
        spelling
    }

    /// Of columns alone.
    pub fn of_columns(fields: &Fields) -> Self {
        let mut spelling = Self::default();
        spelling.add_fields(fields);
        spelling
    }

    fn add(&mut self, name: &str) {
        self.names.entry(name.to_lowercase()).or_default().insert(name.to_owned());
    }

    fn add_fields(&mut self, fields: &Fields) {
        for field in fields {
            self.add(field.name());
            match field.data_type() {
                DataType::Struct(inner) => self.add_fields(inner),
                DataType::List(element) | DataType::LargeList(element) => {
                    if let DataType::Struct(inner) = element.data_type() {
                        self.add_fields(inner);
                    }
                }
                _ => {}
            }
        }
    }

    /// Spells every name of a query; its own aliases count as spellings.
    pub fn apply(mut self, statement: &mut Statement) {
        let mut aliases = Aliases(Vec::new());
        let _ = Visit::visit(&*statement, &mut aliases);
        aliases.0.iter().for_each(|alias| self.add(alias));
        let _ = VisitMut::visit(statement, &mut Speller(&self));
    }

    /// Spells every name of an expression.
    pub fn apply_to(&self, expression: &mut Expr) {
        let _ = VisitMut::visit(expression, &mut Speller(self));
    }

    fn spell(&self, ident: &mut Ident) {
        let Some(spellings) = self.names.get(&ident.value.to_lowercase()) else { return };
        if !spellings.contains(&ident.value)
            && spellings.len() == 1
            && let Some(only) = spellings.first()
        {
            ident.value.clone_from(only);
        }
    }

    fn spell_name(&self, name: &mut ObjectName) {
        for part in &mut name.0 {
            if let ObjectNamePart::Identifier(ident) = part {
                self.spell(ident);
            }
        }
    }

    /// A table as it is registered: `schema.table`, without the catalogue in front. Anything else is a name of `WITH`.
    fn spell_table(&self, name: &mut ObjectName) {
        let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        let table = match parts.as_slice() {
            [.., schema, table] => self.tables.get(&TableName::new(&schema.value, &table.value).folded()),
            _ => None,
        };
        match table {
            Some(table) => {
                let quoted = |value: &str| Ident::with_quote('`', value);
                let mut spelled = ObjectName::from(vec![quoted(&table.schema), quoted(&table.name)]);
                if let [catalogue, _, _] = parts.as_slice() {
                    spelled.0.insert(0, ObjectNamePart::Identifier(catalogue.clone()));
                }
                *name = spelled;
            }
            None => self.spell_name(name),
        }
    }
}

/// Collects every name a query gives.
struct Aliases(Vec<String>);

impl Aliases {
    fn add(&mut self, alias: Option<&TableAlias>) {
        if let Some(alias) = alias {
            self.0.push(alias.name.value.clone());
            self.0.extend(alias.columns.iter().map(|column| column.name.value.clone()));
        }
    }
}

impl Visitor for Aliases {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for Cte { alias, .. } in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.add(Some(alias));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.0.push(alias.value.clone());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => self.add(alias.as_ref()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Gives names their spelling.
struct Speller<'a>(&'a Spelling);

impl Speller<'_> {
    fn wildcard(&self, options: &mut WildcardAdditionalOptions) {
        if let Some(except) = &mut options.opt_except {
            self.0.spell(&mut except.first_element);
            except.additional_elements.iter_mut().for_each(|ident| self.0.spell(ident));
        }
    }

    fn using(&self, operator: &mut JoinOperator) {
        if let JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) = operator
            && let JoinConstraint::Using(columns) = constraint
        {
            columns.iter_mut().for_each(|column| self.0.spell_name(column));
        }
    }
}

impl VisitorMut for Speller<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            match item {
                SelectItem::Wildcard(options) => self.wildcard(options),
                SelectItem::QualifiedWildcard(kind, options) => {
                    if let SelectItemQualifiedWildcardKind::ObjectName(name) = kind {
                        self.0.spell_name(name);
                    }
                    self.wildcard(options);
                }
                _ => {}
            }
        }
        for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
            self.using(&mut join.join_operator);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } => self.0.spell_table(name),
            TableFactor::NestedJoin { table_with_joins, .. } => {
                table_with_joins.joins.iter_mut().for_each(|join| self.using(&mut join.join_operator));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(ident) => self.0.spell(ident),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(|part| self.0.spell(part)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use tributary_lake::arrow::datatypes::Field;

    use super::*;
    use crate::sources::parse;

    fn spelled(query: &str) -> String {
        let fields: Fields = vec![Field::new("OrderId", DataType::Int64, true), Field::new("amount", DataType::Int64, true)].into();
        let table = TableName::new("silver", "Orders");
        let mut statement = parse(query).unwrap();
        Spelling::of([(&table, &fields)]).apply(&mut statement);
        statement.to_string()
    }

    #[test]
    fn names_get_the_spelling_of_the_table_and_aliases_their_own() {
        assert_eq!(spelled("SELECT o.orderid, AMOUNT FROM SILVER.orders O"), "SELECT O.OrderId, amount FROM `silver`.`Orders` O");
        assert_eq!(
            spelled("WITH Big AS (SELECT orderID AS Id FROM silver.orders) SELECT big.ID FROM big JOIN silver.orders USING (ORDERID)"),
            "WITH Big AS (SELECT OrderId AS Id FROM `silver`.`Orders`) SELECT Big.Id FROM Big JOIN `silver`.`Orders` USING(OrderId)"
        );
        assert_eq!(spelled("SELECT * EXCEPT (ORDERID) FROM silver.orders"), "SELECT * EXCEPT (OrderId) FROM `silver`.`Orders`");
        assert_eq!(spelled("SELECT ORDERS.* FROM silver.orders"), "SELECT Orders.* FROM `silver`.`Orders`");
    }

    #[test]
    fn a_name_that_could_be_several_is_left_as_it_is() {
        assert_eq!(
            spelled("SELECT amount AS ORDERID FROM silver.orders ORDER BY orderid"),
            "SELECT amount AS ORDERID FROM `silver`.`Orders` ORDER BY orderid"
        );
    }
}
