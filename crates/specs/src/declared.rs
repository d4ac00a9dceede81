//! A declared schema against what a query yields.

use std::fmt;

use crate::column::Column;
use crate::data_type::DataType;

/// One difference between a declared schema and the columns a query yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// Declared, but the query has no such column.
    NotYielded {
        /// The declared column.
        column: String,
    },
    /// The query yields it, but it is not declared.
    NotDeclared {
        /// The query's column.
        column: String,
    },
    /// The same name in another case.
    Spelling {
        /// As declared.
        declared: String,
        /// As the query has it.
        actual: String,
    },
    /// Another type.
    Type {
        /// The column.
        column: String,
        /// As declared.
        declared: DataType,
        /// As the query has it.
        actual: DataType,
    },
}

impl Mismatch {
    /// The column, as it is declared where it is.
    pub fn column(&self) -> &str {
        match self {
            Self::NotYielded { column } | Self::NotDeclared { column } | Self::Type { column, .. } => column,
            Self::Spelling { declared, .. } => declared,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotYielded { column } => write!(f, "column {column:?} is declared, but the query does not yield it"),
            Self::NotDeclared { column } => write!(f, "column {column:?} comes from the query, but is not declared"),
            Self::Spelling { declared, actual } => write!(f, "column {declared:?} is declared, the query spells it {actual:?}"),
            Self::Type { column, declared, actual } => {
                write!(f, "column {column:?} is declared {declared}, the query yields {actual}; cast it or declare {actual}")
            }
        }
    }
}

/// Compares names and types; order, comments and whether null is allowed do not count, for the writer refuses a null in a column
/// declared not null. A declared type that [holds](DataType::holds) the query's is written with its values. No declaration means no
/// mismatch.
///
/// ```
/// use tributary_specs::{Column, DataType, check_declared};
///
/// let declared = [Column::new("shops", DataType::Long), Column::new("orders", DataType::Integer)];
/// let actual = [Column::new("orders", DataType::Long), Column::new("shops", DataType::Integer)];
/// let found: Vec<String> = check_declared(&declared, &actual).iter().map(ToString::to_string).collect();
/// assert_eq!(found, [r#"column "orders" is declared integer, the query yields long; cast it or declare long"#]);
/// ```
pub fn check_declared(declared: &[Column], actual: &[Column]) -> Vec<Mismatch> {
    if declared.is_empty() {
        return Vec::new();
    }
    let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
    let of_declared = declared.iter().filter_map(|column| {
        let Some(found) = actual.iter().find(|found| same(&found.name, &column.name)) else {
            return Some(Mismatch::NotYielded { column: column.name.clone() });
        };
        if found.name != column.name {
            return Some(Mismatch::Spelling { declared: column.name.clone(), actual: found.name.clone() });
        }
        (!column.data_type.holds(&found.data_type)).then(|| Mismatch::Type {
            column: column.name.clone(),
            declared: column.data_type.clone(),
            actual: found.data_type.clone(),
        })
    });
    let undeclared = actual.iter().filter(|found| !declared.iter().any(|column| same(&column.name, &found.name)));
    of_declared.chain(undeclared.map(|found| Mismatch::NotDeclared { column: found.name.clone() })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_named_and_order_and_nullability_are_none() {
        let declared = [
            Column::new("a", DataType::Long).not_null(),
            Column::new("b", "struct<x:integer not null comment 'c'>".parse().unwrap()),
            Column::new("Total", DataType::Double),
            Column::new("gone", DataType::Date),
        ];
        let actual = [
            Column::new("extra", DataType::Date),
            Column::new("total", DataType::Double),
            Column::new("b", "struct<x:integer>".parse().unwrap()),
            Column::new("a", DataType::Long),
        ];
        assert_eq!(
            check_declared(&declared, &actual),
            [
                Mismatch::Spelling { declared: "Total".into(), actual: "total".into() },
                Mismatch::NotYielded { column: "gone".into() },
                Mismatch::NotDeclared { column: "extra".into() },
            ]
        );
        assert_eq!(check_declared(&[], &actual), []);
    }
}
