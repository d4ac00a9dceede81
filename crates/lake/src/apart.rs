//! In which files two versions of a table differ, as tables of queries.
//!
//! Rows of files that are live in both versions with the same deletion vector are the same rows: who compares two versions reads the
//! other files alone.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::streaming::PartitionStream;

use crate::restore::without;
use crate::{DataFile, Result, Table, read_files};

/// Live rows of the files in which two versions differ, in the columns of both.
#[derive(Debug)]
pub struct Apart {
    /// Of the first version.
    pub before: Arc<dyn TableProvider>,
    /// Of the second one.
    pub after: Arc<dyn TableProvider>,
    /// Bytes of these files.
    pub bytes: u64,
}

impl Table {
    /// What an earlier (or later) version has that this one does not, and the reverse. A column that a version lacks is null in it; of
    /// one that has two types the type of this version is meant.
    ///
    /// # Errors
    /// Store errors.
    pub async fn apart(&self, before: &Self) -> Result<Apart> {
        let (earlier, later) = (before.files().await?, self.files().await?);
        let mut fields: Vec<Field> = self.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let has = |name: &str| self.columns().iter().any(|column| column.name.eq_ignore_ascii_case(name));
        fields.extend(
            before.schema().fields().iter().filter(|field| !has(field.name())).map(|field| field.as_ref().clone().with_nullable(true)),
        );
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let (gone, new) = (without(&earlier, &later), without(&later, &earlier));
        let bytes = gone.iter().chain(&new).map(|file| file.size).sum();
        let rows = |files| -> Result<Arc<dyn TableProvider>> {
            let files = Files { table: self.clone(), files, schema: Arc::clone(&schema) };
            Ok(Arc::new(StreamingTable::try_new(Arc::clone(&schema), vec![Arc::new(files)])?))
        };
        Ok(Apart { before: rows(gone)?, after: rows(new)?, bytes })
    }
}

#[derive(Debug)]
struct Files {
    table: Table,
    files: Vec<DataFile>,
    schema: SchemaRef,
}

impl PartitionStream for Files {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        read_files::stream(self.table.log(), self.files.clone(), Arc::clone(&self.schema))
    }
}
