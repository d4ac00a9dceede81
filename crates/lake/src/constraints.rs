//! What a table asks of its rows: NOT NULL, CHECK, invariants, defaults, generated columns.
//!
//! - An absent column takes its default, or its generated value, or null; a null that is given stays null.
//! - A generated column that is given must equal its expression (null equals null).
//! - A row passes a CHECK or invariant only where the expression is true: false and null refuse it, as in Spark.
//! - Identity columns are refused by name: numbers that two writers hand out at once would not be unique.
//! - Errors name table, constraint, columns and the first row of the batch that breaks it, never values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::cast_with_options;
use arrow::compute::kernels::cmp::distinct;
use arrow::datatypes::{DataType, Field, SchemaRef};
use chrono::{DateTime, Utc};
use tributary_specs::{Check, Column, TableName};

use crate::align::{self, Extra};
use crate::expression::{Expression, Reason};
use crate::{Error, Result};

/// The rules of one table, ready to run.
#[derive(Debug)]
pub(crate) struct Rules {
    table: TableName,
    schema: SchemaRef,
    /// By column index. A default that cannot be evaluated matters only when it is needed.
    defaults: HashMap<usize, Result<Expression, Reason>>,
    generated: Vec<(usize, Expression)>,
    checks: Vec<(String, Expression)>,
}

/// Defaults of columns that no row could be given: the column and why, in the order of the columns.
pub fn refused_defaults(columns: &[Column], now: DateTime<Utc>) -> Vec<(String, String)> {
    let fields: Vec<Field> = columns.iter().map(|column| Field::new(&column.name, column.data_type.to_arrow(), true)).collect();
    let schema = Arc::new(arrow::datatypes::Schema::new(fields));
    let table = TableName::new("of", "columns");
    let Ok(rules) = Rules::new(&table, &schema, columns, &[], now) else { return Vec::new() };
    let absent = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
    let Ok(row) = rules.batch(absent, 1) else { return Vec::new() };
    let mut refused: Vec<(usize, String)> = Vec::new();
    for (index, default) in &rules.defaults {
        let value = default.as_ref().map_err(Clone::clone).and_then(|default| rules.cast(default.evaluate(&row)?, *index));
        refused.extend(value.err().map(|reason| (*index, reason)));
    }
    refused.sort();
    refused.into_iter().map(|(index, reason)| (columns[index].name.clone(), reason)).collect()
}

impl Rules {
    /// Of a table with this schema; `now` is the time that defaults see.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an identity column, or for the expression of a constraint or generated column that cannot be evaluated.
    pub(crate) fn new(table: &TableName, schema: &SchemaRef, columns: &[Column], checks: &[Check], now: DateTime<Utc>) -> Result<Self> {
        let unsupported = |what: String| Error::Unsupported { table: table.clone(), what };
        if let Some(field) = schema.fields().iter().find(|field| field.metadata().keys().any(|key| key.starts_with("delta.identity."))) {
            return Err(unsupported(format!("identity columns (column `{}`)", field.name())));
        }
        let mut defaults = HashMap::new();
        let mut generated = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            if let Some(text) = &column.generated {
                let expression = Expression::new(text, schema, None).map_err(|reason| {
                    unsupported(format!("the generated column `{}`, which cannot be evaluated: {reason}", column.name))
                })?;
                generated.push((index, expression));
            } else if let Some(text) = &column.default {
                defaults.insert(index, Expression::new(text, schema, Some(now)));
            }
        }
        let mut predicates = Vec::new();
        for Check { name, expression } in checks {
            predicates.push((name.clone(), expression.clone()));
        }
        for field in schema.fields() {
            invariants(field, field.name(), &mut predicates);
        }
        let checks = predicates
            .into_iter()
            .map(|(name, text)| match Expression::new(&text, schema, None) {
                Ok(expression) => Ok((name, expression)),
                Err(reason) => Err(unsupported(format!("the constraint `{name}`, which cannot be evaluated: {reason}"))),
            })
            .collect::<Result<_>>()?;
        Ok(Self { table: table.clone(), schema: Arc::clone(schema), defaults, generated, checks })
    }

    /// The batch in the table's schema with absent columns filled in, every rule checked.
    ///
    /// # Errors
    /// [`Error::Batch`] when a column is unknown, absent without recourse or of a type that does not fit; [`Error::Constraint`] when a row breaks a rule.
    pub(crate) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let given = align::columns(batch, &self.schema, Extra::Refuse).map_err(|misfit| misfit.of(&self.table))?;
        let rows = batch.num_rows();
        let null = |index: usize| new_null_array(self.schema.field(index).data_type(), rows);

        // Expressions see the given columns and constant defaults; what is not there yet is null.
        let mut columns: Vec<Option<ArrayRef>> = given;
        let seen =
            self.batch(columns.iter().enumerate().map(|(index, column)| column.clone().unwrap_or_else(|| null(index))).collect(), rows)?;
        for (index, default) in &self.defaults {
            if columns[*index].is_none() {
                columns[*index] = Some(self.default(*index, default, &seen)?);
            }
        }
        let seen =
            self.batch(columns.iter().enumerate().map(|(index, column)| column.clone().unwrap_or_else(|| null(index))).collect(), rows)?;
        for (index, expression) in &self.generated {
            let computed = self.computed(*index, expression, &seen)?;
            match &columns[*index] {
                None => columns[*index] = Some(computed),
                Some(given) => self.refuse_unequal(*index, given, &computed)?,
            }
        }

        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(index, column)| match column {
                Some(column) => Ok(column),
                None if self.schema.field(index).is_nullable() => Ok(null(index)),
                None => Err(align::missing(self.schema.field(index).name()).of(&self.table)),
            })
            .collect::<Result<Vec<_>>>()?;
        for (field, column) in self.schema.fields().iter().zip(&columns) {
            self.refuse_nulls(field, column)?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        for (name, expression) in &self.checks {
            self.refuse_untrue(name, expression, &batch)?;
        }
        Ok(batch)
    }

    /// Columns as a batch that does not mind nulls yet.
    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let fields: Vec<Field> = self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::new(arrow::datatypes::Schema::new(fields)), columns, &options)?)
    }

    fn default(&self, index: usize, default: &Result<Expression, Reason>, batch: &RecordBatch) -> Result<ArrayRef> {
        let name = self.schema.field(index).name();
        let values = default.as_ref().map_err(Clone::clone).and_then(|default| self.cast(default.evaluate(batch)?, index));
        values.map_err(|reason| Error::Unsupported {
            table: self.table.clone(),
            what: format!("the default of column `{name}`, which cannot be evaluated: {reason}"),
        })
    }

    fn computed(&self, index: usize, expression: &Expression, batch: &RecordBatch) -> Result<ArrayRef> {
        let name = self.schema.field(index).name();
        expression.evaluate(batch).and_then(|values| self.cast(values, index)).map_err(|_| Error::Constraint {
            table: self.table.clone(),
            constraint: format!("generated column `{name}`"),
            reason: format!("its expression over {} fails for a row of the batch", named(expression.columns())),
        })
    }

    fn cast(&self, values: ArrayRef, index: usize) -> Result<ArrayRef, Reason> {
        let strict = arrow::compute::CastOptions { safe: false, ..Default::default() };
        cast_with_options(&values, self.schema.field(index).data_type(), &strict).map_err(|_| "a value does not fit the column".to_owned())
    }

    fn refuse_unequal(&self, index: usize, given: &ArrayRef, computed: &ArrayRef) -> Result<()> {
        let unequal = distinct(given, computed)?;
        let Some(row) = unequal.values().set_indices().next() else { return Ok(()) };
        let name = self.schema.field(index).name();
        Err(Error::Constraint {
            table: self.table.clone(),
            constraint: format!("generated column `{name}`"),
            reason: format!(
                "column `{name}` is not what its expression yields in {} rows, first at row {row} of the batch",
                unequal.true_count()
            ),
        })
    }

    fn refuse_nulls(&self, field: &Field, column: &ArrayRef) -> Result<()> {
        if field.is_nullable() || column.logical_null_count() == 0 {
            return Ok(());
        }
        let row = (0..column.len()).find(|row| column.is_null(*row)).unwrap_or_default();
        let name = field.name();
        Err(Error::Constraint {
            table: self.table.clone(),
            constraint: format!("`{name}` not null"),
            reason: format!("column `{name}` is null in {} rows, first at row {row} of the batch", column.logical_null_count()),
        })
    }

    fn refuse_untrue(&self, name: &str, expression: &Expression, batch: &RecordBatch) -> Result<()> {
        let broken = |detail: String| Error::Constraint {
            table: self.table.clone(),
            constraint: name.to_owned(),
            reason: format!("its expression over {} {detail}", named(expression.columns())),
        };
        let verdict = expression.evaluate(batch).map_err(|_| broken("fails for a row of the batch".to_owned()))?;
        if *verdict.data_type() != DataType::Boolean {
            return Err(Error::Unsupported {
                table: self.table.clone(),
                what: format!("the constraint `{name}`, which is not a predicate"),
            });
        }
        let verdict = verdict.as_boolean();
        let rows = verdict.len() - verdict.true_count();
        match (0..verdict.len()).find(|row| verdict.is_null(*row) || !verdict.value(*row)) {
            Some(row) => Err(broken(format!("is not true in {rows} rows, first at row {row} of the batch"))),
            None => Ok(()),
        }
    }
}

fn named(columns: &[String]) -> String {
    match columns {
        [] => "no column".to_owned(),
        [column] => format!("column `{column}`"),
        columns => format!("columns {}", columns.iter().map(|column| format!("`{column}`")).collect::<Vec<_>>().join(", ")),
    }
}

/// The older form of a constraint: `delta.invariants` of a column, at any depth.
fn invariants(field: &Field, path: &str, predicates: &mut Vec<(String, String)>) {
    let expression = field.metadata().get("delta.invariants").and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    if let Some(text) = expression.as_ref().and_then(|value| value["expression"]["expression"].as_str()) {
        predicates.push((format!("invariant of `{path}`"), text.to_owned()));
    }
    if let DataType::Struct(fields) = field.data_type() {
        for inner in fields {
            invariants(inner, &format!("{path}.{}", inner.name()), predicates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Int32Array, Int64Array, StringArray};
    use arrow::datatypes::Schema;
    use tributary_fault::{Fault, FaultClass};

    fn table() -> TableName {
        TableName::new("silver", "orders")
    }

    fn rules(columns: &[(Field, Option<&str>, Option<&str>)], checks: &[(&str, &str)]) -> Result<Rules> {
        let schema = Arc::new(Schema::new(columns.iter().map(|(field, ..)| field.clone()).collect::<Vec<_>>()));
        let columns: Vec<Column> = columns
            .iter()
            .map(|(field, default, generated)| {
                let mut column = Column::new(field.name().clone(), tributary_specs::DataType::String);
                column.default = default.map(str::to_owned);
                column.generated = generated.map(str::to_owned);
                column
            })
            .collect();
        let checks: Vec<Check> =
            checks.iter().map(|(name, expression)| Check { name: (*name).to_owned(), expression: (*expression).to_owned() }).collect();
        Rules::new(&table(), &schema, &columns, &checks, DateTime::from_timestamp(0, 0).unwrap())
    }

    fn field(name: &str, data_type: DataType) -> Field {
        Field::new(name, data_type, true)
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    #[test]
    fn a_null_in_a_column_that_refuses_it_names_column_and_first_row() {
        let rules = rules(&[(field("id", DataType::Int64).with_nullable(false), None, None)], &[]).unwrap();
        let error = rules.apply(&batch(vec![("ID", Arc::new(Int64Array::from(vec![Some(1), None, None])))])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("silver.orders") && text.contains("`id` not null") && text.contains("2 rows, first at row 1"), "{text}");
        assert_eq!(error.class(), FaultClass::BadInput);
        let other = super::tests::rules(
            &[(field("id", DataType::Int64).with_nullable(false), None, None), (field("x", DataType::Int64), None, None)],
            &[],
        )
        .unwrap();
        let absent = other.apply(&batch(vec![("x", Arc::new(Int64Array::from(vec![1])))])).unwrap_err();
        assert!(absent.to_string().contains("column `id` is absent"), "{absent}");
        assert_eq!(absent.class(), FaultClass::BadInput);
    }

    #[test]
    fn a_check_refuses_false_and_null_and_the_error_holds_no_value() {
        let rules = rules(&[(field("amount", DataType::Decimal128(10, 2)), None, None)], &[("positive", "AMOUNT > 0.005")]).unwrap();
        let amounts = |values: Vec<Option<i128>>| {
            batch(vec![("amount", Arc::new(Decimal128Array::from(values).with_precision_and_scale(10, 2).unwrap()))])
        };
        assert!(rules.apply(&amounts(vec![Some(1), Some(77_777)])).is_ok());
        for broken in [vec![Some(1), Some(-77_777)], vec![Some(1), None]] {
            let text = rules.apply(&amounts(broken)).unwrap_err().to_string();
            assert!(
                text.contains("constraint `positive`")
                    && text.contains("column `amount`")
                    && text.contains("row 1")
                    && !text.contains("777"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_absent_column_takes_its_default_and_a_given_null_stays_null() {
        let columns = [
            (field("id", DataType::Int64), None, None),
            (field("state", DataType::Utf8), Some("'new'"), None),
            (field("at", DataType::Date32), Some("current_date()"), None),
        ];
        let rules = rules(&columns, &[]).unwrap();
        let filled = rules.apply(&batch(vec![("id", Arc::new(Int64Array::from(vec![1, 2])))])).unwrap();
        assert_eq!(filled.column(1).as_string::<i32>(), &StringArray::from(vec!["new", "new"]));
        assert_eq!(filled.column(2).null_count(), 0);
        let given = rules
            .apply(&batch(vec![("id", Arc::new(Int64Array::from(vec![1]))), ("state", Arc::new(StringArray::from(vec![None::<&str>])))]))
            .unwrap();
        assert!(given.column(1).is_null(0));
    }

    #[test]
    fn a_default_that_cannot_be_evaluated_matters_only_when_it_is_needed() {
        let rules = rules(&[(field("id", DataType::Utf8), Some("uuid()"), None)], &[]).unwrap();
        assert!(rules.apply(&batch(vec![("id", Arc::new(StringArray::from(vec!["a"])))])).is_ok());
        let empty =
            RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &RecordBatchOptions::new().with_row_count(Some(1)))
                .unwrap();
        let text = rules.apply(&empty).unwrap_err().to_string();
        assert!(text.contains("default of column `id`") && text.contains("uuid"), "{text}");
    }

    #[test]
    fn a_generated_column_is_computed_when_absent_and_checked_when_given() {
        let columns = [(field("qty", DataType::Int32), None, None), (field("double", DataType::Int64), None, Some("qty * 2"))];
        let rules = rules(&columns, &[("small", "double < 100")]).unwrap();
        let qty = || ("qty", Arc::new(Int32Array::from(vec![Some(4), None])) as ArrayRef);
        let computed = rules.apply(&batch(vec![qty()]));
        assert!(computed.unwrap_err().to_string().contains("constraint `small`"), "null is not true");
        let four = || ("qty", Arc::new(Int32Array::from(vec![Some(4)])) as ArrayRef);
        assert_eq!(rules.apply(&batch(vec![four()])).unwrap().column(1).as_primitive::<arrow::datatypes::Int64Type>().value(0), 8);
        assert!(rules.apply(&batch(vec![four(), ("double", Arc::new(Int64Array::from(vec![8])))])).is_ok());
        let text = rules.apply(&batch(vec![four(), ("double", Arc::new(Int64Array::from(vec![9])))])).unwrap_err().to_string();
        assert!(text.contains("generated column `double`") && text.contains("row 0"), "{text}");

        let loose = super::tests::rules(&columns, &[]).unwrap();
        assert!(loose.apply(&batch(vec![qty(), ("double", Arc::new(Int64Array::from(vec![Some(8), None])))])).is_ok(), "null equals null");
    }

    #[test]
    fn what_cannot_be_enforced_is_refused_before_anything_is_written() {
        let identity = field("id", DataType::Int64).with_metadata(HashMap::from([("delta.identity.start".to_owned(), "1".to_owned())]));
        assert!(rules(&[(identity, None, None)], &[]).unwrap_err().to_string().contains("identity columns (column `id`)"));
        let text = rules(&[(field("id", DataType::Int64), None, None)], &[("odd", "pmod(id, 2) = 1")]).unwrap_err().to_string();
        assert!(text.contains("constraint `odd`") && text.contains("pmod"), "{text}");
    }

    #[test]
    fn invariants_of_columns_are_checked_like_constraints() {
        let metadata = HashMap::from([("delta.invariants".to_owned(), r#"{"expression":{"expression":"x > 3"}}"#.to_owned())]);
        let rules = rules(&[(field("x", DataType::Int32).with_metadata(metadata), None, None)], &[]).unwrap();
        assert!(rules.apply(&batch(vec![("x", Arc::new(Int32Array::from(vec![4])))])).is_ok());
        assert!(
            rules.apply(&batch(vec![("x", Arc::new(Int32Array::from(vec![3])))])).unwrap_err().to_string().contains("invariant of `x`")
        );
    }
}
