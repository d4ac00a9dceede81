//! Keys of tables, which are for people and tools: nothing enforces them. They stand in properties of the table.

use tributary_lake::Table;
use tributary_spark_sql::{Key, Name};

/// In front of a key's name.
const PREFIX: &str = "tributary.key.";

/// The properties that say a table's keys.
pub(super) fn properties<'k>(table: &'k str, keys: &'k [Key]) -> impl Iterator<Item = (String, String)> + 'k {
    keys.iter().map(move |key| {
        let named = || match &key.references {
            None => format!("{table}_pk"),
            Some(_) => format!("{table}_{}_fk", key.columns.join("_")),
        };
        let columns = serde_json::json!(key.columns).to_string();
        let text = match &key.references {
            None => columns,
            Some(references) => format!("{columns} references {references}"),
        };
        (format!("{PREFIX}{}", key.name.clone().unwrap_or_else(named)), text)
    })
}

/// The keys of a table, by name.
pub(super) fn of(table: &Table) -> Vec<(String, Key)> {
    let keys = table.properties().iter().filter_map(|(property, text)| {
        let name = property.strip_prefix(PREFIX)?;
        let (columns, references) = match text.split_once(" references ") {
            Some((columns, references)) => (columns, Some(references)),
            None => (text.as_str(), None),
        };
        let references = references.map(|name| Name { parts: name.split('.').map(str::to_owned).collect(), span: None });
        Some((name.to_owned(), Key { name: Some(name.to_owned()), columns: serde_json::from_str(columns).ok()?, references }))
    });
    keys.collect()
}
