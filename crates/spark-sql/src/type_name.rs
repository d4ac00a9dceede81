//! Types and names as the dialect writes them.

use tributary_specs::{Column, DataType};

/// A type as `CREATE TABLE` writes it.
///
/// ```
/// use tributary_specs::DataType;
/// assert_eq!(tributary_spark_sql::type_name(&DataType::Array(Box::new(DataType::Long))), "ARRAY<BIGINT>");
/// ```
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Byte => "TINYINT".to_owned(),
        DataType::Short => "SMALLINT".to_owned(),
        DataType::Integer => "INT".to_owned(),
        DataType::Long => "BIGINT".to_owned(),
        DataType::Float => "FLOAT".to_owned(),
        DataType::Double => "DOUBLE".to_owned(),
        DataType::Decimal { precision, scale } => format!("DECIMAL({precision},{scale})"),
        DataType::String => "STRING".to_owned(),
        DataType::Binary => "BINARY".to_owned(),
        DataType::Date => "DATE".to_owned(),
        DataType::Timestamp => "TIMESTAMP".to_owned(),
        DataType::TimestampNtz => "TIMESTAMP_NTZ".to_owned(),
        DataType::Array(element) => format!("ARRAY<{}>", type_name(element)),
        DataType::Map(key, value) => format!("MAP<{}, {}>", type_name(key), type_name(value)),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
    }
}

fn field(field: &Column) -> String {
    let not_null = if field.nullable { "" } else { " NOT NULL" };
    format!("{}: {}{not_null}", quoted_name(&field.name), type_name(&field.data_type))
}

/// A name in back-quotes.
pub fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
