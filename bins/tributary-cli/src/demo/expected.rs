//! The recorded final state of a source database: `<capture>.expected.json`, gzipped or not.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::Deserialize;

/// Every table of the source as it was when recording ended.
#[derive(Debug, Clone, Deserialize)]
pub struct Expected {
    /// The server, for example `PostgreSQL 15.18`.
    pub dumped_from: String,
    /// By table name without schema.
    pub tables: BTreeMap<String, ExpectedTable>,
}

/// One table of the source.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedTable {
    /// Empty for a table without a primary key.
    pub primary_key: Vec<String>,
    /// In the source's order.
    pub columns: Vec<SourceColumn>,
    /// How many rows there were.
    pub row_count: usize,
    /// Values in the server's own text; `None` is SQL NULL.
    pub rows: Vec<BTreeMap<String, Option<String>>>,
}

/// A column in the source's words.
#[derive(Debug, Clone, Deserialize)]
pub struct SourceColumn {
    /// Its name.
    pub name: String,
    /// Its type, for example `numeric(12,2)` or `enum('new','ok')`.
    #[serde(rename = "type")]
    pub source_type: String,
    /// Whether the source refuses null.
    pub not_null: bool,
}

/// Which database's text forms the values have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// As `COPY` writes them.
    Postgres,
    /// As `CAST … AS CHAR` writes them.
    MariaDb,
}

impl Expected {
    /// Reads the JSON text, gunzipping it where it begins with gzip's magic number.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = gunzip(bytes)?;
        serde_json::from_slice(&text).map_err(|error| format!("not a recorded final state: {error}"))
    }

    /// Whose text forms the values have.
    pub fn server(&self) -> Server {
        if self.dumped_from.starts_with("PostgreSQL") { Server::Postgres } else { Server::MariaDb }
    }
}

/// The bytes themselves, or what they gunzip to.
pub fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes.to_vec());
    }
    let mut text = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut text).map_err(|error| format!("not readable as gzip: {error}"))?;
    Ok(text)
}
