//! Source feeds: what becomes a bronze table.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::table_name::TableName;

/// One source that becomes one append-only bronze table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceFeed {
    /// The feed's own name; its quarantine is `quarantine.<name>`.
    pub name: String,
    /// The bronze table.
    pub table: TableName,
    /// Where records come from.
    pub source: Source,
    /// How bytes become columns.
    #[serde(default)]
    pub decode: Decode,
    /// Declared business columns; empty = from the messages, else inferred from the first batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Key columns of the source table; empty = the message key's fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What a column the table does not have does.
    #[serde(default)]
    pub schema_policy: SchemaPolicy,
    /// Whether the source's before-images are complete (PostgreSQL: REPLICA IDENTITY FULL).
    #[serde(default)]
    pub replica_identity: ReplicaIdentity,
    /// Partition columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_by: Vec<String>,
    /// Clustering columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_by: Vec<String>,
    /// Where quarantined records are kept; none = `quarantine.<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<TableName>,
    /// Shown by catalogues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Table properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// Where records come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// Files dropped under a path.
    Files(FileSource),
    /// Topics of a Kafka cluster.
    Kafka(KafkaSource),
    /// A record source the embedding program brings, by name.
    Custom(String),
}

/// Files under a path. Feeds with the same path, glob and format are read in one pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSource {
    /// A folder or one file; relative paths resolve under the base data path.
    pub path: String,
    /// How a file is cut into records.
    pub format: FileFormat,
    /// Which files below the folder; default all. Names that begin with `.` or `_` and names that end in `.tmp` or `.part` are never read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// For `kafka_jsonl`: topics of this feed, exact or with `*`; empty = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// For `csv`: how the text is read.
    #[serde(default)]
    pub csv: CsvOptions,
    /// A file younger than this many seconds is left for the next run (partial-file guard); default 0: taken when size and time hold still while it is read.
    #[serde(default)]
    pub settle_seconds: u64,
    /// The table holds what the folder holds: where a file has changed or gone, all files are read again, and one commit replaces the rows.
    /// Default: what was taken stays, and of a file that has grown only what is new is taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirrors: bool,
    /// The table tells of each row's file how large it was and when it was changed: `_file_size`, `_file_modified_at`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_metadata: bool,
}

/// Topics of a Kafka cluster. Feeds with the same cluster, group and properties are read by one consumer.
///
/// What is not given here comes from the run's settings, where secrets belong.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KafkaSource {
    /// Topics of this feed, exact or with `*`; each topic belongs to one feed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// Topics of this feed by a regular expression over the whole name, besides `topics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Brokers to begin with, `host:port` separated by commas; none = the setting `kafka_bootstrap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<String>,
    /// Consumer group of continuous runs; none = the setting `kafka_group`, else `tributary-<pipeline>`. A drain joins no group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Where a partition without a position in the table begins.
    #[serde(default)]
    pub starting: KafkaStart,
    /// Schema registry (Confluent-compatible) for Avro values and keys; none = the setting `schema_registry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Consumer properties as librdkafka names them, besides those of the settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

impl KafkaSource {
    /// Consumer properties that exactly-once reading decides, with who decides them instead.
    pub const RESERVED_PROPERTIES: &[(&str, &str)] = &[
        ("bootstrap.servers", "it is given as `bootstrap`"),
        ("group.id", "it is given as `group`"),
        ("enable.auto.commit", "positions ride in the table's commits"),
        ("enable.auto.offset.store", "positions ride in the table's commits"),
        ("auto.offset.reset", "a missing position is decided by `starting` and by the setting `on_gap`"),
        ("isolation.level", "only committed records are read"),
        ("enable.partition.eof", "a run's end is fixed when it begins"),
        ("partition.assignment.strategy", "partitions move one by one (cooperative-sticky)"),
    ];
}

/// Where a partition without a position in the table begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KafkaStart {
    /// With the first record the broker has.
    #[default]
    Earliest,
    /// With what comes after its last record.
    Latest,
}

/// How a file is cut into records. `.gz` files are gunzipped whatever the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Comma-separated values, RFC 4180.
    Csv,
    /// A JSON object a line.
    Jsonl,
    /// A recorded Kafka record a line: topic, partition, offset, key, value, headers, timestamp.
    KafkaJsonl,
}

/// CSV dialect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CsvOptions {
    /// Whether the first line names the columns.
    pub header: bool,
    /// One ASCII character.
    pub delimiter: char,
    /// One ASCII character.
    pub quote: char,
    /// Unquoted text that means null besides the empty field; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_text: Option<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { header: true, delimiter: ',', quote: '"', null_text: None }
    }
}

/// How bytes become columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decode {
    /// Debezium envelope: JSON with or without schema wrapper, or Avro framed by a schema registry's id (told by its first byte).
    #[default]
    Debezium,
    /// Debezium's flattened form (`ExtractNewRecordState`), JSON or Avro likewise.
    DebeziumFlattened,
    /// The record is one JSON object.
    Json,
    /// The record is a CSV row.
    Csv,
    /// The record's value is an Avro record, framed by a schema registry's id.
    Avro,
    /// Key, value, topic, partition, offset, timestamp and headers as they came.
    Raw,
}

/// What a column the table does not have does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchemaPolicy {
    /// Stop and name the column.
    Freeze,
    /// Add it as a nullable column.
    #[default]
    Add,
    /// Add it; a wider type rewrites the table in one commit.
    Widen,
    /// Keep it in `_rescued_data`.
    Rescue,
    /// Quarantine the record.
    Quarantine,
}

/// What the source's before-images hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaIdentity {
    /// Only key columns can be trusted in a PostgreSQL before-image; MySQL's and SQL Server's are always full.
    #[default]
    Default,
    /// Before-images are complete.
    Full,
}

/// Columns a decoded change table has after the business columns.
const CHANGE_METADATA: &[&str] = &[
    "_op",
    "_position",
    "_before",
    "_unavailable",
    "_key_changed_from",
    "_key_changed_to",
    "_source",
    "_topic",
    "_partition",
    "_offset",
    "_file",
    "_line",
    "_event_time",
    "_ingested_at",
    "_rescued_data",
];
/// Columns a table of plain rows has after the business columns.
const ROW_METADATA: &[&str] =
    &["_position", "_topic", "_partition", "_offset", "_file", "_line", "_event_time", "_ingested_at", "_rescued_data"];
/// Columns that a feed of files has where it is asked to tell of them.
pub const FILE_COLUMNS: [&str; 2] = ["_file_size", "_file_modified_at"];
/// Columns that tell the order of a table's rows, where changes make it.
const ORDER_COLUMNS: [&str; 2] = ["__position", "__sequence"];
/// All columns of a raw table.
const RAW_COLUMNS: &[&str] = &["key", "value", "topic", "partition", "offset", "timestamp", "headers", "_file", "_line", "_ingested_at"];

/// Whether a column of a table with these columns is one that the lake keeps beside those of the rows: in the table of a feed where a row
/// is from and what its change was, in a table that changes are applied to what tells their order. The table of a feed is one that has
/// all columns that every feed has; a table that was told to hold some of them holds them as its own.
///
/// ```
/// use tributary_specs::{Decode, is_kept_by_the_lake};
///
/// let feed: Vec<&str> = ["id"].iter().chain(Decode::Json.metadata_columns()).copied().collect();
/// assert!(is_kept_by_the_lake(&feed, "_file") && !is_kept_by_the_lake(&feed, "id"));
/// assert!(!is_kept_by_the_lake(&["id", "_file"], "_file"));
/// assert!(is_kept_by_the_lake(&["id", "__position"], "__position"));
/// ```
pub fn is_kept_by_the_lake(columns: &[&str], column: &str) -> bool {
    let has = |names: &[&str]| names.iter().all(|name| columns.contains(name));
    let of_feed = || CHANGE_METADATA.iter().chain(&FILE_COLUMNS).any(|ours| *ours == column) && (has(ROW_METADATA) || has(RAW_COLUMNS));
    ORDER_COLUMNS.contains(&column) || of_feed()
}

impl Decode {
    /// The columns a bronze table of this decoder has besides the business columns, in order; for `raw` all columns.
    pub const fn metadata_columns(self) -> &'static [&'static str] {
        match self {
            Self::Debezium | Self::DebeziumFlattened => CHANGE_METADATA,
            Self::Json | Self::Csv | Self::Avro => ROW_METADATA,
            Self::Raw => RAW_COLUMNS,
        }
    }
}
