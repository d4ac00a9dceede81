//! A feed's declaration beside the table that an earlier one made. Pure.
//!
//! A table keeps its types until the schema policy lets them change. With `widen` a declared type that holds every value of the
//! table's is taken on, for it was asked for; otherwise values go on being read as the table's type, and that is said.

use tributary_specs::{Column, SchemaPolicy, SourceFeed};

/// What a changed declaration asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Differences {
    /// Columns that are to be rewritten in a wider type, in that type.
    pub widened: Vec<Column>,
    /// What stays otherwise than declared, and what may be typed.
    pub remarks: Vec<String>,
}

/// Compares the types of declared columns with those of the table.
pub(crate) fn differences(feed: &SourceFeed, table: &[Column]) -> Differences {
    let mut found = Differences::default();
    for declared in &feed.columns {
        let Some(column) = table.iter().find(|column| column.name == declared.name) else { continue };
        let (is, wanted) = (&column.data_type, &declared.data_type);
        // A struct of the table may have fields that messages have brought, and gets those that are declared.
        let (table, declared) = (is.with_fields_of(wanted), wanted.with_fields_of(is));
        let (is_wider, is_narrower) = (table.joined(&declared) == table, declared.joined(&table) == declared);
        if is_wider && is_narrower {
            continue;
        }
        let widens = feed.schema_policy == SchemaPolicy::Widen;
        let name = &column.name;
        match (widens, is_wider, is_narrower) {
            // It was widened by values since it was declared.
            (true, true, _) => {}
            (true, _, true) => found.widened.push(Column { data_type: table.joined(&declared), ..column.clone() }),
            (false, _, true) => found.remarks.push(format!(
                "column {name} is declared {wanted} and is {is} in the table, as which its values are read: declare it {is}, or set schema_policy: widen, which rewrites the table"
            )),
            _ => found.remarks.push(format!(
                "column {name} is declared {wanted} and is {is} in the table, as which its values are read: declare it {is}, or a type that holds both ({})",
                is.joined(wanted)
            )),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use tributary_specs::DataType;

    use super::*;

    fn feed(policy: &str, declared: &str) -> SourceFeed {
        serde_json::from_value(serde_json::json!({
            "name": "a", "table": "bronze.a", "decode": "json", "schema_policy": policy,
            "source": {"files": {"path": "in", "format": "jsonl"}}, "columns": [{"name": "code", "type": declared}],
        }))
        .unwrap()
    }

    #[test]
    fn a_wider_declaration_is_taken_on_by_widen_and_named_by_every_other_policy() {
        let table = [Column::new("code", DataType::Integer)];
        for wider in ["long", "string"] {
            let found = differences(&feed("widen", wider), &table);
            assert_eq!(found.widened, [Column::new("code", wider.parse().unwrap())]);
            assert!(found.remarks.is_empty(), "{found:?}");
            for policy in ["freeze", "add", "rescue", "quarantine"] {
                let found = differences(&feed(policy, wider), &table);
                assert!(found.widened.is_empty() && found.remarks[0].contains("schema_policy: widen"), "{policy}: {found:?}");
            }
        }
    }

    #[test]
    fn a_type_that_does_not_hold_the_tables_values_is_named_and_one_that_grew_is_not() {
        let table = [Column::new("code", DataType::Long)];
        assert_eq!(differences(&feed("widen", "integer"), &table), Differences::default());
        assert!(differences(&feed("add", "integer"), &table).remarks[0].contains("declare it long"));
        assert!(differences(&feed("widen", "date"), &table).remarks[0].contains("holds both (string)"));
        assert_eq!(differences(&feed("freeze", "long"), &table), Differences::default());
    }
}
