//! Feeds proposed from samples: the first records of a file or a topic.
//!
//! What is proposed is the decoder's word ([`tributary_cdc_decode::propose`]); here samples are read and feeds are named.

mod file;
#[cfg(feature = "kafka")]
mod topic;

pub use file::propose_from_file;
#[cfg(feature = "kafka")]
pub use topic::propose_from_topic;

use tributary_cdc_decode::{Record, propose, shape};
use tributary_specs::{Decode, Source, SourceFeed, TableName};

use crate::lane::decoder;
use crate::{Error, Result};

/// A name for a feed and its table: letters, digits and underscores.
fn name_of(text: &str) -> String {
    let name: String = text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' }).collect();
    let name = name.trim_matches('_');
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name.to_owned() } else { format!("feed_{name}") }
}

fn feed_of(name: &str, source: Source, decode: Decode) -> SourceFeed {
    SourceFeed::new(name, TableName::new("bronze", name), source).with_decode(decode)
}

fn none(from: &str, reason: &str) -> Error {
    Error::NoProposal { from: from.to_owned(), reason: reason.to_owned() }
}

/// A feed for records that name no schema of a registry; `None` = none of them is a row.
fn of_records(name: &str, source: Source, records: &[Record<'_>]) -> Result<Option<String>> {
    let Some(shape) = shape(records) else { return Ok(None) };
    let feed = feed_of(name, source, shape.decode);
    let proposal = propose(shape, records, &mut decoder(&feed)?);
    Ok(Some(proposal.to_yaml(name, &feed.table.to_string(), &feed.source)))
}
