//! What the footer of a data file says of its form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};

use crate::file_scan::{FileScan, Rows};
use crate::{DataFile, Result, Table};

/// What the footer of a data file says of its form: what a file must look like that takes its place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileForm {
    /// Columns that it has, partition columns left out.
    pub columns: BTreeSet<String>,
    /// Columns that are looked up by value: those with a Bloom filter, in the file's order.
    pub key_columns: Vec<String>,
    /// Names and texts, as [`crate::WriterOptions::says`].
    pub says: BTreeMap<String, String>,
}

impl FileForm {
    fn of(metadata: &ParquetMetaData) -> Self {
        let file = metadata.file_metadata();
        let fields = file.schema_descr().root_schema().get_fields();
        let looked_up = |name: &str| {
            let column = |group: &parquet::file::metadata::RowGroupMetaData| {
                group.columns().iter().any(|column| column.column_path().parts() == [name] && column.bloom_filter_offset().is_some())
            };
            metadata.row_groups().iter().any(column)
        };
        let names = || fields.iter().map(|field| field.name().to_owned());
        let said = file.key_value_metadata().into_iter().flatten().filter(|said| said.key != "ARROW:schema");
        Self {
            columns: names().collect(),
            key_columns: names().filter(|name| looked_up(name)).collect(),
            says: said.filter_map(|said| Some((said.key.clone(), said.value.clone()?))).collect(),
        }
    }
}

impl Table {
    /// What the footer of a live file says of its form.
    ///
    /// # Errors
    /// Store errors.
    pub async fn form(&self, file: &DataFile) -> Result<FileForm> {
        let scan = FileScan {
            log: self.log().clone(),
            path: file.path.clone(),
            size: Some(file.size),
            rows: Rows::All,
            schema: self.schema(),
            partition_values: file.partition_values.clone(),
            read: Arc::default(),
        };
        Ok(FileForm::of(scan.metadata(PageIndexPolicy::Skip).await?.metadata()))
    }
}
