//! Masks and row filters that a person recorded though nothing enforces them: `system.tributary.masks`, a row each.
//!
//! Whoever reads the files sees everything, and so does every query here. They are kept for catalogues that do enforce them, and so that
//! they can be found.

use tributary_lake::Lake;
use tributary_specs::TableName;

use super::Error;
use super::kept::{KeptRow, KeptTable};
use super::listing::{Cell, Listing, Of};

/// A mask of a column, or a filter of a table's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mask {
    pub catalogue: String,
    pub table: TableName,
    /// The column; none = the rows.
    pub column: Option<String>,
    pub function: String,
    /// What the function is given, as it is written.
    pub using: Vec<String>,
    pub created_by: Option<String>,
}

impl Mask {
    /// The clause and its table, as people are told it.
    pub(crate) fn in_words(&self) -> String {
        format!("{} on `{}.{}`", self.clause(), self.catalogue, self.table)
    }

    /// The clause.
    pub(super) fn clause(&self) -> String {
        match &self.column {
            Some(column) => format!("MASK {} of `{column}`", self.function),
            None => format!("ROW FILTER {}", self.function),
        }
    }
}

/// `tributary.masks` in the catalogue `system`.
pub(super) const TABLE: KeptTable = KeptTable {
    name: "masks",
    comment: "Masks and row filters that are recorded and not enforced",
    columns: &[
        ("catalogue", Of::Text),
        ("schema", Of::Text),
        ("name", Of::Text),
        ("column", Of::Text),
        ("function", Of::Text),
        ("using", Of::Text),
        ("created_at", Of::Instant),
        ("created_by", Of::Text),
    ],
};

/// Every mask and filter.
pub(crate) async fn load(lake: &Lake) -> tributary_lake::Result<Vec<Mask>> {
    let rows = TABLE.rows(lake).await?;
    let mask = |row: KeptRow| {
        let text = |name: &str| row.text(name);
        Some(Mask {
            catalogue: text("catalogue")?,
            table: TableName::new(text("schema")?, text("name")?),
            column: text("column"),
            function: text("function")?,
            using: text("using").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
            created_by: text("created_by"),
        })
    };
    Ok(rows.into_iter().filter_map(mask).collect())
}

/// Writes a row for each.
pub(crate) async fn append(lake: &Lake, masks: &[Mask]) -> Result<(), Error> {
    let row = |mask: &Mask| {
        [
            mask.catalogue.clone().into(),
            mask.table.schema.clone().into(),
            mask.table.name.clone().into(),
            mask.column.clone().into(),
            mask.function.clone().into(),
            serde_json::json!(mask.using).to_string().into(),
            Cell::Instant(Some(lake.clock().now())),
            mask.created_by.clone().into(),
        ]
    };
    TABLE.append(lake, masks.iter().map(row).collect()).await
}

/// The statement that takes the mask of a column away, or with none the filter of the rows.
pub(crate) fn deletion(catalogue: &str, table: &TableName, column: Option<&str>) -> String {
    TABLE.deletion(&[("catalogue", Some(catalogue)), ("schema", Some(&table.schema)), ("name", Some(&table.name)), ("column", column)])
}

/// The statement that takes all of a table away.
pub(crate) fn deletion_of_table(catalogue: &str, table: &TableName) -> String {
    TABLE.deletion(&[("catalogue", Some(catalogue)), ("schema", Some(&table.schema)), ("name", Some(&table.name))])
}

/// `information_schema.column_masks` or `row_filters`.
pub(super) async fn listing(lake: &Lake, catalogues: &[String], columns: bool) -> Result<Listing, Error> {
    let mut listing = match columns {
        true => Listing::texts(&["table_catalog", "table_schema", "table_name", "column_name", "mask_name", "using_columns"]),
        false => Listing::texts(&["table_catalog", "table_schema", "table_name", "filter_name", "target_columns"]),
    };
    for mask in load(lake).await? {
        if !catalogues.contains(&mask.catalogue) || mask.column.is_some() != columns {
            continue;
        }
        let place = [mask.catalogue.into(), mask.table.schema.into(), Cell::from(mask.table.name)];
        let column = mask.column.map(Cell::from);
        listing.push(place.into_iter().chain(column).chain([mask.function.into(), mask.using.join(", ").into()]));
    }
    Ok(listing)
}
