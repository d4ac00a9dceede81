//! What a spec comes to once defaults and properties are taken in.

use std::collections::BTreeMap;

use crate::dataset::{Expectation, ExpectationAction};
use crate::dataset::{GoldSpec, MergePolicy, NullKeys, SilverSpec};
use crate::feed::{Decode, FileFormat, Source, SourceFeed};
use crate::properties::{IMPLICIT_DELETES, RESET_ALLOWED, SEQUENCE_TEXT, SEQUENCE_UNIQUE};
use crate::table_name::TableName;

const QUARANTINE: &str = "quarantine";

impl SourceFeed {
    /// Where records that cannot be decoded are kept.
    pub fn quarantine_table(&self) -> TableName {
        self.quarantine.clone().unwrap_or_else(|| TableName::new(QUARANTINE, &self.name))
    }

    /// Whether the table holds what its folder holds.
    pub fn mirrors(&self) -> bool {
        matches!(&self.source, Source::Files(files) if files.mirrors)
    }

    /// Whether every row has a source position, so that changes of a key have an order of their own.
    pub fn has_position(&self) -> bool {
        match (&self.source, self.decode) {
            (_, Decode::Raw) => false,
            (_, Decode::Debezium | Decode::DebeziumFlattened) => true,
            (Source::Files(files), Decode::Json | Decode::Csv | Decode::Avro) => files.format == FileFormat::KafkaJsonl,
            (Source::Kafka(_) | Source::Custom(_), Decode::Json | Decode::Csv | Decode::Avro) => true,
        }
    }
}

impl SilverSpec {
    /// Where rows that fail a rule, or have a null key, are kept.
    pub fn quarantine_table(&self) -> TableName {
        self.quarantine.clone().unwrap_or_else(|| TableName::new(QUARANTINE, &self.table.name))
    }

    /// Whether any row can go to quarantine.
    pub fn may_quarantine(&self) -> bool {
        let by_key = self.policy != MergePolicy::Append && self.null_keys != NullKeys::Refuse;
        by_key || any_quarantines(&self.expectations)
    }

    /// Whether deletes of a change feed are applied without `apply_as_delete_when`: by the field and the property.
    pub fn implicit_deletes(&self) -> bool {
        self.deletes.implicit && self.properties.get(IMPLICIT_DELETES).is_none_or(|value| value != "false")
    }

    /// Whether no two images of a row of the source have one sequence.
    pub fn has_unique_sequence(&self) -> bool {
        self.properties.get(SEQUENCE_UNIQUE).is_some_and(|value| value == "true")
    }

    /// Whether a sequence of text type is asked for.
    pub fn allows_text_sequence(&self) -> bool {
        self.properties.get(SEQUENCE_TEXT).is_some_and(|value| value == "true")
    }

    /// SQL over `source.` columns; upserts for which it is not true are left out before anything else is decided. This is all
    /// that legal `insert_when` and `update_when` come to: `update_when` alone only repeats the order.
    pub fn upserts_when(&self) -> Option<&str> {
        self.insert_when.as_deref()
    }

    /// SQL over `source.` columns; deletes for which it is not true are left out before anything else is decided, but not the
    /// delete half of a key change.
    pub fn deletes_when(&self) -> Option<&str> {
        self.delete_when.as_deref()
    }
}

impl GoldSpec {
    /// Where rows that fail a rule are kept.
    pub fn quarantine_table(&self) -> TableName {
        self.quarantine.clone().unwrap_or_else(|| TableName::new(QUARANTINE, &self.table.name))
    }

    /// Whether any row can go to quarantine.
    pub fn may_quarantine(&self) -> bool {
        any_quarantines(&self.expectations)
    }
}

/// Whether properties let a dataset be refreshed in full.
pub fn reset_allowed(properties: &BTreeMap<String, String>) -> bool {
    let said = properties.iter().find(|(name, _)| name.eq_ignore_ascii_case(RESET_ALLOWED));
    said.is_none_or(|(_, value)| !value.eq_ignore_ascii_case("false"))
}

fn any_quarantines(expectations: &[Expectation]) -> bool {
    expectations.iter().any(|expectation| expectation.action == ExpectationAction::Quarantine)
}

impl MergePolicy {
    /// The policy's word in files and messages.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::InsertOnly { .. } => "insert_only",
            Self::LastWriterWins => "last_writer_wins",
            Self::ScdType1 => "scd_type1",
            Self::ScdType2 { .. } => "scd_type2",
            Self::MonotonicAdvance { .. } => "monotonic_advance",
        }
    }

    /// Whether deletes take rows away or close them.
    pub const fn applies_deletes(&self) -> bool {
        matches!(self, Self::ScdType1 | Self::ScdType2 { .. })
    }
}
