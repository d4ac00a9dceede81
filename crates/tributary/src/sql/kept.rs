//! Small tables of ours in the catalogue `system`, whose rows statements add and take away.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use tributary_lake::arrow::util::display::{ArrayFormatter, FormatOptions};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::{Lake, ReadOptions, Result, Table};
use tributary_spark_sql::quoted_name;
use tributary_specs::{Column, DataType, TableName, TableSpec};

use super::listing::{Cell, Listing, Of};
use super::{Error, ddl};
use crate::system;

/// Such a table as it is declared.
pub(crate) struct KeptTable {
    /// Its name in the schema `tributary`.
    pub name: &'static str,
    pub comment: &'static str,
    pub columns: &'static [(&'static str, Of)],
}

/// A row of one: what is not null, by column.
#[derive(Debug)]
pub(crate) struct KeptRow(BTreeMap<String, String>);

impl KeptRow {
    pub(crate) fn text(&self, column: &str) -> Option<String> {
        self.0.get(column).cloned()
    }
}

impl KeptTable {
    pub(crate) fn spec(&self) -> TableSpec {
        let columns = self.columns.iter().map(|(name, of)| Column::new(*name, data_type(*of))).collect();
        let mut spec = TableSpec::new(TableName::new("tributary", self.name), columns);
        spec.row_changes = true;
        spec.comment = Some(self.comment.to_owned());
        spec
    }

    /// Its rows, none where nothing was written yet.
    pub(crate) async fn rows(&self, lake: &Lake) -> Result<Vec<KeptRow>> {
        match system::catalogue(lake)?.table(&TableName::new("tributary", self.name)).await? {
            Some(table) => rows_of(&table).await,
            None => Ok(Vec::new()),
        }
    }

    /// Appends rows, whose cells are in the order of the columns.
    pub(crate) async fn append<const N: usize>(&self, lake: &Lake, rows: Vec<[Cell; N]>) -> std::result::Result<(), Error> {
        let mut listing = Listing::new(self.columns);
        rows.into_iter().for_each(|row| listing.push(row));
        system::append(&system::catalogue(lake)?, &self.spec(), listing.batch()?).await?;
        Ok(())
    }

    /// The statement that takes the rows away that hold these values, none being null.
    pub(crate) fn deletion(&self, holding: &[(&str, Option<&str>)]) -> String {
        let equal = |(column, value): &(&str, Option<&str>)| match value {
            Some(value) => format!("{} = {}", quoted_name(column), ddl::literal(value)),
            None => format!("{} IS NULL", quoted_name(column)),
        };
        format!("DELETE FROM system.tributary.{} WHERE {}", self.name, holding.iter().map(equal).collect::<Vec<_>>().join(" AND "))
    }
}

/// The type of a column that holds such cells.
fn data_type(of: Of) -> DataType {
    match of {
        Of::Text => DataType::String,
        Of::Whole => DataType::Long,
        Of::Truth => DataType::Boolean,
        Of::Instant => DataType::Timestamp,
        Of::Texts => DataType::Array(Box::new(DataType::String)),
    }
}

async fn rows_of(table: &Table) -> Result<Vec<KeptRow>> {
    let mut stream = table.read(ReadOptions::default()).await?;
    let mut rows = Vec::new();
    while let Some(batch) = stream.try_next().await.map_err(tributary_lake::Error::from)? {
        let schema = batch.schema();
        let format = FormatOptions::new();
        let failed = |error| tributary_lake::Error::from(DataFusionError::from(error));
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &format))
            .collect::<std::result::Result<Vec<_>, _>>();
        let columns = columns.map_err(failed)?;
        for row in 0..batch.num_rows() {
            let there = schema.fields().iter().enumerate().filter(|(at, _)| !batch.column(*at).is_null(row));
            rows.push(KeptRow(there.map(|(at, field)| (field.name().clone(), columns[at].value(row).to_string())).collect()));
        }
    }
    Ok(rows)
}
