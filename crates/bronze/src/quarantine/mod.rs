//! Records that could not become rows, with their bytes, place and reason: table `quarantine.<feed>`.
//!
//! It commits before bronze, with the same positions. A run that finds the quarantine ahead of bronze does not quarantine
//! again what is there; what now decodes supersedes its row, which is marked and stays.

mod kept;
mod marks;
mod places;
mod refused;
mod superseded;

use tributary_lake::Table;
use tributary_specs::{Column, DataType, TableName, TableSpec};

use crate::Error;

pub(crate) use kept::{Kept, open_records};
pub(crate) use marks::Mark;
pub(crate) use places::{Parked, Spot, open_of_content, open_of_positions};
pub(crate) use refused::{Refused, rows};
pub(crate) use superseded::{supersede, supersede_records};

/// The columns of every quarantine table.
fn columns() -> Vec<Column> {
    let header = DataType::Struct(vec![Column::new("key", DataType::String), Column::new("value", DataType::Binary)]);
    let commented =
        |name: &str, data_type: DataType, comment: &str| Column { comment: Some(comment.to_owned()), ..Column::new(name, data_type) };
    vec![
        commented("reason", DataType::String, "what is wrong, for grouping").not_null(),
        commented("message", DataType::String, "what is wrong, for a person; no values"),
        commented("key", DataType::Binary, "key bytes as they came"),
        commented("value", DataType::Binary, "value bytes, or the bytes that are no record, as they came"),
        commented("headers", DataType::Array(Box::new(header)), "headers in their order; of a CSV record the names in its file's header"),
        commented("topic", DataType::String, "topic of the record"),
        commented("partition", DataType::Integer, "partition of the record"),
        commented("offset", DataType::Long, "offset or position of the record"),
        commented("timestamp", DataType::Timestamp, "when the record was produced"),
        commented("file", DataType::String, "file it was read from"),
        commented("line", DataType::Long, "line it begins on, from 1"),
        commented("content", DataType::String, "SHA-256 of the file's content"),
        commented("decoder_version", DataType::String, "program that refused it"),
        commented("first_seen", DataType::Timestamp, "when it was first refused").not_null(),
        commented("superseded_at", DataType::Timestamp, "when it became a row of the table after all; null while it has not"),
    ]
}

/// The table of a feed's quarantine.
pub(crate) fn spec(name: TableName, feed: &str) -> TableSpec {
    TableSpec { comment: Some(format!("records of feed {feed} that could not become rows")), ..TableSpec::new(name, columns()) }
}

/// The table is called like a quarantine and is none.
fn not_ours(table: &Table) -> Error {
    Error::NotBronze { table: table.name().clone(), column: "superseded_at".to_owned() }
}
