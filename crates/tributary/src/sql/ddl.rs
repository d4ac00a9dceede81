//! A table as statements of the dialect.

use std::fmt::Write as _;

use tributary_spark_sql::{quoted_name as quoted, type_name};
use tributary_specs::{Check, Column, TableName, TableSpec};

use crate::Table;

/// The statements that make a table: `CREATE TABLE`, then an `ALTER TABLE` for each CHECK. Every name is back-quoted, so that
/// any name survives: `time`, blanks, dots and back-quotes.
///
/// ```
/// use tributary::{Column, DataType, TableSpec};
/// let spec = TableSpec::new("silver.`odd name`".parse()?, vec![Column::new("time", DataType::Timestamp).not_null()]);
/// assert_eq!(
///     tributary::sql::create_table("main", &spec),
///     "CREATE TABLE `main`.`silver`.`odd name` (\n  `time` TIMESTAMP NOT NULL\n)\nUSING DELTA;\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create_table(catalogue: &str, spec: &TableSpec) -> String {
    let TableSpec { name, columns, partition_by, cluster_by, checks, comment, properties, row_changes: _ } = spec;
    let table = full_name(catalogue, name);
    let columns: Vec<String> = columns.iter().map(column).collect();
    let mut text = format!("CREATE TABLE {table} (\n  {}\n)\nUSING DELTA", columns.join(",\n  "));
    for (clause, names) in [("PARTITIONED BY", partition_by), ("CLUSTER BY", cluster_by)] {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            let _ = write!(text, "\n{clause} ({})", names.join(", "));
        }
    }
    if let Some(comment) = comment {
        let _ = write!(text, "\nCOMMENT {}", literal(comment));
    }
    if !properties.is_empty() {
        let pairs: Vec<String> = properties.iter().map(|(key, value)| format!("{} = {}", literal(key), literal(value))).collect();
        let _ = write!(text, "\nTBLPROPERTIES (\n  {}\n)", pairs.join(",\n  "));
    }
    text.push_str(";\n");
    for Check { name, expression } in checks {
        let _ = writeln!(text, "ALTER TABLE {table} ADD CONSTRAINT {} CHECK ({expression});", quoted(name));
    }
    text
}

/// The statements that would make a table of the lake as it is.
///
/// ```no_run
/// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
/// println!("{}", tributary::sql::definition(&lake.table("silver.orders").await?));
/// # Ok(()) }
/// ```
pub fn definition(table: &Table) -> String {
    definition_of(&table.clone().into_inner())
}

pub(super) fn definition_of(table: &tributary_lake::Table) -> String {
    let spec = TableSpec {
        partition_by: table.partition_columns().to_vec(),
        cluster_by: table.cluster_columns().to_vec(),
        checks: table.checks().to_vec(),
        comment: table.comment().map(str::to_owned),
        properties: table.properties().clone(),
        ..TableSpec::new(table.name().clone(), table.columns().to_vec())
    };
    create_table(&table.lake().options().catalogue, &spec)
}

fn full_name(catalogue: &str, name: &TableName) -> String {
    [catalogue, &name.schema, &name.name].map(quoted).join(".")
}

fn column(column: &Column) -> String {
    let mut text = format!("{} {}", quoted(&column.name), type_name(&column.data_type));
    if !column.nullable {
        text.push_str(" NOT NULL");
    }
    if let Some(expression) = &column.generated {
        let _ = write!(text, " GENERATED ALWAYS AS ({expression})");
    }
    if let Some(expression) = &column.default {
        let _ = write!(text, " DEFAULT {expression}");
    }
    if let Some(comment) = &column.comment {
        let _ = write!(text, " COMMENT {}", literal(comment));
    }
    text
}

/// A text; the dialect reads a backslash as the beginning of a sign.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\r', "\\r"))
}

#[cfg(test)]
mod tests {
    use tributary_lake::datafusion::sql::sqlparser::ast::Statement;
    use tributary_lake::datafusion::sql::sqlparser::dialect::DatabricksDialect;
    use tributary_lake::datafusion::sql::sqlparser::parser::Parser;
    use tributary_specs::DataType;

    use super::*;

    fn names_after_a_round_trip(names: &[&str]) -> Vec<String> {
        let columns = names.iter().map(|name| Column::new(*name, DataType::String)).collect();
        let text = create_table("main", &TableSpec::new(TableName::new("silver", names[0]), columns));
        let text = text.trim_end().trim_end_matches(';').trim_end_matches("USING DELTA");
        match Parser::parse_sql(&DatabricksDialect, text).unwrap().remove(0) {
            Statement::CreateTable(table) => {
                assert_eq!(table.name.0[2].as_ident().unwrap().value, names[0]);
                table.columns.into_iter().map(|column| column.name.value).collect()
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn words_of_the_language_blanks_dots_and_back_quotes_survive_a_round_trip() {
        let names = ["time", "sex", "update_type", "order", "two words", "a.b", "back`quote", "``", "ünï", "1st", "select"];
        assert_eq!(names_after_a_round_trip(&names), names);
    }

    proptest::proptest! {
        #[test]
        fn any_name_survives_a_round_trip(name in "[^\\x00-\\x1f]{1,20}") {
            proptest::prop_assert_eq!(names_after_a_round_trip(&[&name]), [name.as_str()]);
        }
    }

    #[test]
    fn everything_a_table_has_is_said() {
        let mut spec = TableSpec::new(
            "silver.orders".parse().unwrap(),
            vec![
                Column { comment: Some("it's\nthe key".into()), ..Column::new("id", DataType::Long).not_null() },
                Column { default: Some("'new'".into()), ..Column::new("status", DataType::String) },
                Column { generated: Some("CAST(at AS DATE)".into()), ..Column::new("day", DataType::Date) },
                Column::new("lines", DataType::Array(Box::new(DataType::Struct(vec![Column::new("sku", DataType::String).not_null()])))),
                Column::new("tags", DataType::Map(Box::new(DataType::String), Box::new(DataType::Decimal { precision: 12, scale: 2 }))),
            ],
        );
        spec.partition_by = vec!["day".into()];
        spec.comment = Some("C:\\orders".into());
        spec.checks = vec![Check { name: "positive".into(), expression: "id > 0".into() }];
        spec.properties.insert("delta.enableChangeDataFeed".into(), "true".into());
        assert_eq!(
            create_table("main", &spec),
            "CREATE TABLE `main`.`silver`.`orders` (
  `id` BIGINT NOT NULL COMMENT 'it\\'s\\nthe key',
  `status` STRING DEFAULT 'new',
  `day` DATE GENERATED ALWAYS AS (CAST(at AS DATE)),
  `lines` ARRAY<STRUCT<`sku`: STRING NOT NULL>>,
  `tags` MAP<STRING, DECIMAL(12,2)>
)
USING DELTA
PARTITIONED BY (`day`)
COMMENT 'C:\\\\orders'
TBLPROPERTIES (
  'delta.enableChangeDataFeed' = 'true'
);
ALTER TABLE `main`.`silver`.`orders` ADD CONSTRAINT `positive` CHECK (id > 0);
"
        );
    }
}
