//! Definitions and flows to specs.

use std::collections::BTreeMap;

use tributary_specs::{Pipeline, Place, TableName};

use crate::fault::{Fault, Faults};
use crate::parsed::Parsed;

/// A pipeline as specs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    /// What engines execute, validated.
    pub pipeline: Pipeline,
    /// The catalogue that the files name; none = the catalogue of the run.
    pub catalog: Option<String>,
    /// Where the dataset of each table is defined.
    pub places: BTreeMap<TableName, Place>,
}

impl Parsed {
    /// The pipeline as specs, of this name.
    ///
    /// # Errors
    /// Every mistake, those of [`Parsed::faults`] first.
    pub fn to_pipeline(&self, name: &str) -> Result<Lowered, Faults> {
        let faults: Vec<Fault> = self.faults.clone();
        let pipeline = Pipeline { name: name.to_owned(), ..Pipeline::default() };
        match Faults::when_any(faults) {
            Some(faults) => Err(faults),
            None => Ok(Lowered { pipeline, catalog: None, places: BTreeMap::new() }),
        }
    }
}
