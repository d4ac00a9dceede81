//! Which rows of a table a slice of keys looks for.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, RecordBatch};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{KeyProbe, KeySet};

use crate::conform::conform;
use crate::keys::{KeyCodec, Slices, Wanted};

/// Where a row is: number of its file, and its position in the file.
pub(crate) type Place = (usize, u64);

/// The rows of wanted keys, in any table that has the key columns.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    pub codec: Arc<KeyCodec>,
    pub wanted: Arc<Wanted>,
    pub slices: Arc<Slices>,
}

impl Probe {
    /// Which rows of key columns in the table's types are wanted, ascending.
    ///
    /// # Errors
    /// When the columns do not have these types.
    pub fn rows(&self, columns: &[ArrayRef]) -> Result<Vec<u32>, ArrowError> {
        match self.wanted.as_ref() {
            Wanted::Keys(keys) => keys.rows_among(columns),
            Wanted::Slice(at) => {
                let encoded = self.codec.encode(columns)?;
                Ok((0..encoded.num_rows() as u32).filter(|row| self.slices.of(encoded.row(*row as usize).as_ref()) == *at).collect())
            }
        }
    }
}

impl KeyProbe for Probe {
    fn columns(&self) -> &[String] {
        &self.codec.names
    }

    fn hits(&self, keys: &RecordBatch) -> Result<Vec<u32>, ArrowError> {
        let columns = keys.columns().iter().zip(&self.codec.types).map(|(column, data_type)| conform(column, data_type));
        self.rows(&columns.collect::<Result<Vec<_>, _>>()?)
    }

    fn keys(&self) -> Option<&KeySet> {
        match self.wanted.as_ref() {
            Wanted::Keys(keys) => Some(keys),
            Wanted::Slice(_) => None,
        }
    }
}
