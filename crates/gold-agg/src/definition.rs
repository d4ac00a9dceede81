//! What a view was made from, kept in its table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tributary_lake::Table;
use tributary_specs::GoldSpec;

use crate::reached::Held;

/// The metadata domain it is kept under.
pub(crate) const DOMAIN: &str = "tributary.view";

/// Rides in every commit of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    /// SHA-256 of everything that decides the rows: of the spec, and of the functions that its texts call.
    pub digest: String,
    /// Whether the query asks for the time, so that its answer changes though no input moves.
    pub asks_for_time: bool,
    /// How far the event times of its streams reach, where rows of it wait for their watermark.
    #[serde(default, skip_serializing_if = "Held::is_empty")]
    pub held: Held,
    /// The greatest event time that each stream with a watermark brought so far, in microseconds; none where it brought none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brought: BTreeMap<String, Option<i64>>,
}

impl Definition {
    /// The definition of a spec, whose texts call functions with these declarations.
    pub fn of(spec: &GoldSpec, called: &[String], asks_for_time: bool) -> Self {
        let mut hash = Sha256::new();
        let mut put = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        put(tributary_spark_sql::MEANING);
        put(&spec.query);
        for source in &spec.sources {
            put(&format!("source {source}"));
        }
        for stream in spec.streams.iter().filter(|stream| stream.watermark.is_some()) {
            put(&format!("stream {} {:?}", stream.table, stream.watermark));
        }
        for column in &spec.schema {
            put(&format!("column {:?} {} {:?} {:?}", column.name, column.data_type, column.default, column.generated));
        }
        for rule in &spec.expectations {
            put(&format!("rule {:?} {:?} {:?}", rule.name, rule.expression, rule.action));
        }
        for function in called {
            put(&format!("function {function}"));
        }
        let digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { digest, asks_for_time, held: Held::default(), brought: BTreeMap::new() }
    }

    /// What a table was made from; none when a view was never made in it, or not by us.
    pub async fn of_table(table: &Table) -> Result<Option<Self>, tributary_lake::Error> {
        let text = table.domain(DOMAIN).await?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// The text form.
    pub fn to_text(&self) -> String {
        // Plain fields: turning them into JSON cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
