//! The pipeline that is soaked: one feed, and a silver table of each kind.

use std::path::Path;

use anyhow::{Context as _, Result};
use tributary_lake::{Lake, LakeOptions, Stores, Table};
use tributary_specs::TableName;
use tributary_testkit::Value;
use tributary_testkit::oracle::{Event, Model, Row};

use super::changes::Change;

/// What people would write.
pub const PIPELINE: &str = include_str!("../../pipelines/soak.yml");
/// The feed's table.
pub const BRONZE: &str = "bronze.changes";

/// What a silver table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A row a key, as it is now.
    Current,
    /// A row a version of a key.
    History,
    /// A row a change delivered.
    Events,
}

/// One silver table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silver {
    /// As `schema.table`.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Whether delta-rs made it and appends to it; else we did and do.
    pub foreign: bool,
}

/// Every silver table.
pub const SILVER: [Silver; 5] = [
    Silver { name: "silver.current", kind: Kind::Current, foreign: false },
    Silver { name: "silver.copied", kind: Kind::Current, foreign: false },
    Silver { name: "silver.history", kind: Kind::History, foreign: false },
    Silver { name: "silver.events", kind: Kind::Events, foreign: false },
    Silver { name: "silver.plain", kind: Kind::Current, foreign: true },
];

/// The columns of each row that are compared.
pub const fn columns(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Current => &["id", "name", "amount", "seq"],
        Kind::History => &["id", "name", "amount", "__START_AT", "__END_AT"],
        Kind::Events => &["id", "name", "amount", "seq", "op"],
    }
}

/// The rows that the changes come to.
pub fn expected(kind: Kind, delivered: &[Change]) -> Vec<Row> {
    let mut by_key: std::collections::BTreeMap<i64, Vec<Event>> = std::collections::BTreeMap::new();
    delivered.iter().for_each(|change| by_key.entry(change.id).or_default().push(change.event()));
    match kind {
        Kind::Events => delivered.iter().map(Change::row).collect(),
        Kind::Current => {
            let model = Model::new(&["id"], &["id", "name", "amount", "seq"]);
            by_key.values().flat_map(|events| model.scd1(events)).collect()
        }
        Kind::History => {
            let model = Model::new(&["id"], &["id", "name", "amount"]);
            by_key.values().flat_map(|events| model.scd2(events)).collect()
        }
    }
}

/// A row that somebody else appends under a key that no change has.
pub fn appended(kind: Kind, key: i64) -> Row {
    let (name, amount, seq) = (Value::text("somebody else"), Value::from(0), Value::from(0));
    match kind {
        Kind::Current => vec![key.into(), name, amount, seq],
        Kind::History => vec![key.into(), name, amount, seq, Value::Null],
        Kind::Events => vec![key.into(), name, amount, seq, Value::text("u")],
    }
}

/// The lake as this process sees it.
pub fn lake(warehouse: &Path) -> Result<Lake> {
    Ok(Lake::open(Stores::local(warehouse)?, LakeOptions::default())?)
}

/// A table, if it is there.
pub async fn table(lake: &Lake, name: &str) -> Result<Option<Table>> {
    let name: TableName = name.parse().with_context(|| format!("{name} is a table's name"))?;
    lake.table(&name).await.with_context(|| format!("opening {name}"))
}
