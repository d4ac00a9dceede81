//! What can stop bronze, and what may be done about it. What is wrong with one record is a quarantine row instead.

use std::ops::Range;

use tributary_cdc_decode as decode;
use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_lake as lake;
use tributary_lake::object_store;
use tributary_specs::{SourceFeed, TableName};

use crate::PartitionBounds;

/// An error of a record source the embedding program brings.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// An error of bronze. Messages name the feed, table, file and line, never values of a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The root of file drops names no place that can be read.
    ///
    /// Give a folder, or let the program hand in an object store.
    #[error("`{root}` cannot hold file drops: {reason}")]
    Root {
        /// As given.
        root: String,
        /// Why.
        reason: String,
    },
    /// The feed's folder or file does not exist.
    ///
    /// Create it, or correct the feed's `path` or the base data path.
    #[error("path `{path}` of feed {feed} does not exist")]
    PathMissing {
        /// The feed.
        feed: String,
        /// Where it was looked for.
        path: String,
    },
    /// A file or folder could not be read. Everything else was; a retry may help.
    #[error("reading `{path}` failed")]
    Read {
        /// The file or folder.
        path: String,
        /// The store's error.
        #[source]
        source: object_store::Error,
    },
    /// A path below the feed's folder, or the folder itself, cannot be read by this program: it may not, or symbolic links lead in a
    /// circle. Everything else was read.
    ///
    /// Give the program the right to read it, remove the link, or let the feed's `glob` pass the path over.
    #[error("`{path}` cannot be read: {reason}; the other files were read")]
    Unreachable {
        /// The file or folder.
        path: String,
        /// Why.
        reason: String,
    },
    /// A compressed file ends early or fails its checksum. It was left whole; the other files were read.
    ///
    /// A file that is still being written is taken by a later run; a damaged one must be replaced or removed.
    #[error("file `{path}` is damaged: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A file is not UTF-8 text. It was left whole; the other files were read.
    ///
    /// Convert it, for example with `iconv -t UTF-8`.
    #[error("file `{path}` is {found}, only UTF-8 is read")]
    Encoding {
        /// The file.
        path: String,
        /// What it is instead.
        found: String,
    },
    /// Two columns of a CSV header have the same name, without regard to case. The file was left whole; the other files were read.
    ///
    /// Name the columns apart.
    #[error("file `{path}` has column `{column}` twice in its header (line 1)")]
    RepeatedHeader {
        /// The file.
        path: String,
        /// The name.
        column: String,
    },
    /// A CSV header cannot be used. The file was left whole; the other files were read.
    #[error("the header of file `{path}` (line 1) cannot be used: {reason}")]
    Header {
        /// The file.
        path: String,
        /// What is wrong, naming the column.
        reason: String,
    },
    /// The feed's declaration contradicts itself, so nothing of it was read.
    #[error("feed {feed} cannot be read: {reason}")]
    Feed {
        /// The feed.
        feed: String,
        /// What is wrong, naming the setting.
        reason: String,
    },
    /// The feed names a record source that the program did not bring.
    #[error("feed {feed} reads the record source `{source_name}`, which this program does not have")]
    NoSource {
        /// The feed.
        feed: String,
        /// The source's name.
        source_name: String,
    },
    /// A record source of the program failed. A retry may help.
    #[error("reading record source `{source_name}` of feed {feed} failed")]
    Source {
        /// The feed.
        feed: String,
        /// The source's name.
        source_name: String,
        /// Its error.
        #[source]
        source: SourceError,
    },
    /// A record source handed back records that are out of order or outside of what was asked for.
    #[error("record source `{source_name}` of feed {feed} gave position {found} of partition {partition}, asked for {from} to {until}")]
    SourceOrder {
        /// The feed.
        feed: String,
        /// The source's name.
        source_name: String,
        /// The partition.
        partition: i32,
        /// The position found.
        found: i64,
        /// First position asked for.
        from: i64,
        /// First position not asked for.
        until: i64,
    },
    /// The source no longer has records that the table has not seen yet, or has gone back behind the table's position.
    ///
    /// Choose `--on-gap earliest` (go on with what there is) or `--on-gap latest` (go on with what comes from now on); the choice is recorded.
    #[error(
        "feed {feed}: table `{table}` is at position {position} of {place}, but the source has {earliest} to {end}: missing {from} to {until}"
    )]
    Gap {
        /// The feed.
        feed: String,
        /// Its table.
        table: TableName,
        /// The partition, with its topic where the source has topics.
        place: String,
        /// Where the table is.
        position: i64,
        /// The first position the source has.
        earliest: i64,
        /// The position after the source's last.
        end: i64,
        /// First missing position.
        from: i64,
        /// First position not missing.
        until: i64,
    },
    /// A record cannot be decoded under the feed's rules, so the feed stopped. What was committed before stays.
    #[error("decoding for table `{table}`")]
    Decode {
        /// The feed's table.
        table: TableName,
        /// What the decoder says.
        #[source]
        source: Box<decode::Error>,
    },
    /// The table exists but is no bronze table: it lacks a column every bronze table has.
    #[error("table `{table}` is no bronze table: it has no column `{column}`")]
    NotBronze {
        /// The table.
        table: TableName,
        /// What it lacks.
        column: String,
    },
    /// The file ledger in the table's log cannot be read.
    #[error("the file ledger of table `{table}` cannot be read: metadata domain `{domain}`")]
    Ledger {
        /// The table.
        table: TableName,
        /// The domain.
        domain: String,
    },
    /// Another run moved the position of this table. Nothing of this run's last batch was committed.
    #[error("another run holds table `{table}`: it moved `{app_id}`")]
    Busy {
        /// The table.
        table: TableName,
        /// The position.
        app_id: String,
    },
    /// Every attempt to commit lost against another writer.
    #[error("{attempts} attempts to commit to table `{table}` lost against other writers")]
    Conflict {
        /// The table.
        table: TableName,
        /// How many.
        attempts: u32,
        /// The last lost race.
        #[source]
        source: lake::Conflict,
    },
    /// The lake failed.
    #[error("{action} of table `{table}`")]
    Lake {
        /// The table.
        table: TableName,
        /// What was tried.
        action: String,
        /// The lake's error.
        #[source]
        source: Box<lake::Error>,
    },
    /// The run was cancelled between two slices; everything committed stays, the rest is taken by the next run.
    #[error("the run was cancelled")]
    Cancelled,
    /// The feed reads Kafka topics, and this program was built without the feature `kafka`.
    ///
    /// Use a program built with it, which is the default.
    #[error("feed {feed} reads Kafka topics, and this program was built without Kafka")]
    KafkaLeftOut {
        /// The feed.
        feed: String,
    },
    /// The settings of a Kafka source do not make a consumer. Values of properties are left out of the message.
    ///
    /// Correct the setting, the feed's `properties`, or the environment they come from.
    #[error("feed {feed} cannot reach Kafka: {reason}")]
    KafkaSettings {
        /// The feed, or the first of those that share the consumer.
        feed: String,
        /// What is wrong, naming the setting.
        reason: String,
    },
    /// One topic belongs to two feeds. Each record goes to one table, so neither feed was read.
    ///
    /// Narrow the `topics` or the `pattern` of one of them.
    #[error("topic `{topic}` is read by feed {feed} and by feed {other}")]
    TopicTwice {
        /// The topic.
        topic: String,
        /// The first feed.
        feed: String,
        /// The second.
        other: String,
    },
    /// A topic that the feed names does not exist. A topic by wildcard or pattern may come later; one by name must be there.
    ///
    /// Create the topic, or correct the feed's `topics`. `tributary doctor` lists what the broker has.
    #[error("topic `{topic}` of feed {feed} does not exist at {bootstrap}")]
    TopicMissing {
        /// The feed.
        feed: String,
        /// The topic.
        topic: String,
        /// The brokers asked.
        bootstrap: String,
    },
    /// No broker answered in time. Nothing of the batch was committed; a retry may help.
    #[error("no answer from Kafka at {bootstrap} for {seconds} s while {doing}: {reason}")]
    KafkaAway {
        /// The brokers asked.
        bootstrap: String,
        /// What was asked for.
        doing: String,
        /// How long was waited.
        seconds: u64,
        /// The last trouble the client had.
        reason: String,
    },
    /// The broker refused this client: wrong credentials, no right to the topic or group, or a certificate that is not trusted.
    ///
    /// Correct the credentials (`kafka_property`), or grant the right that the message names.
    #[error("this program was refused by Kafka at {bootstrap} while {doing}: {reason}")]
    KafkaRefused {
        /// The brokers asked.
        bootstrap: String,
        /// What was asked for.
        doing: String,
        /// What the broker or the client says of it; no secrets.
        reason: String,
    },
    /// The client could not go on with a partition, for example because the records were deleted while they were being read.
    /// A retry begins at the table's position again and says what is missing.
    #[error("reading topic `{topic}`, partition {partition}: {reason}")]
    KafkaPartition {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// What the client says.
        reason: String,
    },
    /// Avro records cannot be decoded because no schema registry is named, or its address or credentials cannot be used.
    ///
    /// Set `schema_registry` (or the source's `registry`) to the registry's URL, and `schema_registry_auth` to the credentials.
    #[error("{reason}")]
    RegistrySettings {
        /// What is wrong, and what to set.
        reason: String,
    },
    /// The schema registry did not answer in time. Nothing of the batch was committed; a retry may help.
    #[error("no answer from the schema registry at {url}: {reason}")]
    RegistryAway {
        /// Its address.
        url: String,
        /// What the network or the registry says.
        reason: String,
    },
    /// The schema registry refused this client, or what answers at the address is no schema registry.
    ///
    /// Correct the address (`schema_registry`) or the credentials (`schema_registry_auth`).
    #[error("the schema registry at {url} refused: {reason}")]
    RegistryRefused {
        /// Its address.
        url: String,
        /// What it says; no secrets.
        reason: String,
    },
    /// A range of offsets cannot be read as it was asked for: the table is short of it or past it, or there is no such partition.
    ///
    /// Correct `starting_offsets` and `ending_offsets`, or read the range into a table that has no position of the partition.
    #[error("{place} cannot be read as asked: {reason}")]
    Range {
        /// The topic, its partition, the feed.
        place: String,
        /// Why not, with the positions.
        reason: String,
    },
    /// A full refresh would build the table from a source that no longer has all that the table was made of. The table is as it was.
    /// Where the loss is meant, say so.
    #[error(
        "a full refresh of `{table}` would lose records: {what}; the table is unchanged, --accept-shorter-history does it all the same"
    )]
    HistoryShorter {
        /// The feed's table.
        table: TableName,
        /// What the source no longer has.
        what: String,
    },
    /// No feed can be proposed: the file cannot be read, or none of the first records is a row.
    ///
    /// Give a file or topic that holds rows, and the format with `--format` where the file's name does not tell it.
    #[error("no feed can be proposed from {from}: {reason}")]
    NoProposal {
        /// The file or topic.
        from: String,
        /// Why.
        reason: String,
    },
    /// Rows counted do not add up. This is a bug of ours; nothing of the batch was committed.
    #[error("counts of table `{table}` do not add up: {rows_in} in, {rows_out} out, {quarantined} quarantined, {ignored} ignored")]
    Counts {
        /// The table.
        table: TableName,
        /// Records taken up.
        rows_in: u64,
        /// Rows.
        rows_out: u64,
        /// Records in quarantine.
        quarantined: u64,
        /// Records left out.
        ignored: u64,
    },
}

impl Error {
    pub(crate) fn lake(table: &TableName, action: &str, source: lake::Error) -> Self {
        Self::Lake { table: table.clone(), action: action.to_owned(), source: Box::new(source) }
    }

    /// A feed's table at `position` of a partition that lacks the positions `missing`.
    pub(crate) fn gap(feed: &SourceFeed, place: String, position: i64, bounds: PartitionBounds, missing: Range<i64>) -> Self {
        Self::Gap {
            feed: feed.name.clone(),
            table: feed.table.clone(),
            place,
            position,
            earliest: bounds.earliest,
            end: bounds.end,
            from: missing.start,
            until: missing.end,
        }
    }

    /// Whether it is about one file, so that others can go on.
    pub(crate) fn about_one_file(&self) -> bool {
        matches!(
            self,
            Self::Read { .. }
                | Self::Unreachable { .. }
                | Self::Damaged { .. }
                | Self::Encoding { .. }
                | Self::RepeatedHeader { .. }
                | Self::Header { .. }
        )
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Read { source: object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }, .. } => {
                FaultClass::BadInput
            }
            Self::Read { .. } | Self::Damaged { .. } | Self::Source { .. } | Self::Cancelled => FaultClass::Transient,
            Self::KafkaAway { .. } | Self::KafkaPartition { .. } | Self::RegistryAway { .. } => FaultClass::Transient,
            Self::Conflict { .. } => FaultClass::Conflict,
            Self::Busy { .. } => FaultClass::Busy,
            Self::Decode { source, .. } => source.class(),
            Self::Lake { source, .. } => source.class(),
            Self::SourceOrder { .. } | Self::Counts { .. } => FaultClass::Bug,
            Self::Root { .. }
            | Self::PathMissing { .. }
            | Self::Unreachable { .. }
            | Self::Encoding { .. }
            | Self::RepeatedHeader { .. }
            | Self::Header { .. }
            | Self::Feed { .. }
            | Self::NoSource { .. }
            | Self::Gap { .. }
            | Self::KafkaLeftOut { .. }
            | Self::KafkaSettings { .. }
            | Self::TopicTwice { .. }
            | Self::TopicMissing { .. }
            | Self::KafkaRefused { .. }
            | Self::NotBronze { .. }
            | Self::RegistrySettings { .. }
            | Self::RegistryRefused { .. }
            | Self::NoProposal { .. }
            | Self::Range { .. }
            | Self::HistoryShorter { .. }
            | Self::Ledger { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Root { .. } => "BR0001",
            Self::PathMissing { .. } => "BR0002",
            Self::Read { .. } => "BR0003",
            Self::Unreachable { .. } => "BR0029",
            Self::Damaged { .. } => "BR0004",
            Self::Encoding { .. } => "BR0005",
            Self::RepeatedHeader { .. } => "BR0006",
            Self::Header { .. } => "BR0007",
            Self::Feed { .. } => "BR0008",
            Self::NoSource { .. } => "BR0009",
            Self::Source { .. } => "BR0010",
            Self::SourceOrder { .. } => "BR0011",
            Self::Gap { .. } => "BR0012",
            Self::NotBronze { .. } => "BR0013",
            Self::Ledger { .. } => "BR0014",
            Self::Busy { .. } => "BR0015",
            Self::Conflict { .. } => "BR0016",
            Self::Cancelled => "BR0017",
            Self::Counts { .. } => "BR0018",
            Self::KafkaLeftOut { .. } => "BR0019",
            Self::KafkaSettings { .. } => "BR0020",
            Self::TopicTwice { .. } => "BR0021",
            Self::TopicMissing { .. } => "BR0022",
            Self::KafkaAway { .. } => "BR0023",
            Self::KafkaRefused { .. } => "BR0024",
            Self::KafkaPartition { .. } => "BR0025",
            Self::RegistrySettings { .. } => "BR0026",
            Self::RegistryAway { .. } => "BR0027",
            Self::RegistryRefused { .. } => "BR0028",
            Self::NoProposal { .. } => "BR0030",
            Self::Range { .. } => "BR0031",
            Self::HistoryShorter { .. } => "BR0032",
            Self::Decode { source, .. } => return source.code(),
            Self::Lake { source, .. } => return source.code(),
        })
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Decode { source, .. } => source.next_command(),
            Self::Lake { source, .. } => source.next_command(),
            Self::Gap { table, .. } => Some(format!("tributary run --only {table} --on-gap earliest")),
            Self::HistoryShorter { table, .. } => Some(format!("tributary run --full-refresh {table} --accept-shorter-history")),
            Self::Busy { table, .. } | Self::Ledger { table, .. } | Self::NotBronze { table, .. } => {
                Some(format!("tributary show history {table}"))
            }
            // what is there, and what is refused, is seen by looking
            Self::TopicMissing { .. } | Self::KafkaRefused { .. } | Self::KafkaAway { .. } | Self::RegistryAway { .. } => {
                Some("tributary doctor".to_owned())
            }
            Self::RegistrySettings { .. } => Some("tributary run --layer bronze --schema-registry URL".to_owned()),
            Self::Conflict { .. } | Self::Cancelled | Self::Read { .. } | Self::Source { .. } | Self::KafkaPartition { .. } => {
                Some("tributary run --layer bronze".to_owned())
            }
            _ => Some(format!("tributary help {}", self.code())),
        }
    }
}
