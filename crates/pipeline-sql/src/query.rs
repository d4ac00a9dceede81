//! Queries and what they read.

use tributary_specs::Place;

use crate::parsed::DatasetName;

/// A query of a definition or flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The text, parameters put in.
    pub text: String,
    /// Where it begins.
    pub place: Place,
    /// Tables and views it reads, in the order of the text.
    pub reads: Vec<Read>,
}

/// One relation that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The table or view; none for a function such as `read_files`.
    pub name: Option<DatasetName>,
    /// Whether only its new rows are read.
    pub streaming: bool,
    /// Where it stands.
    pub place: Place,
}
