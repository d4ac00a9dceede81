//! Specs in Rust.

use std::collections::BTreeMap;

use crate::column::Column;
use crate::dataset::{
    ColumnSelection, Deletes, Expectation, ExpectationAction, GoldSpec, GrowthPolicy, IgnoreNullUpdates, MergePolicy, NullKeys, Refresh,
    SilverSpec,
};
use crate::feed::{CsvOptions, Decode, FileFormat, FileSource, KafkaSource, ReplicaIdentity, SchemaPolicy, Source, SourceFeed};
use crate::flow::StreamRead;
use crate::pipeline::Pipeline;
use crate::problem::Errors;
use crate::streamed::{LateRows, StreamedTable, Watermark};
use crate::table_name::TableName;

/// Collects datasets and validates them together.
///
/// ```
/// use tributary_specs::{FileFormat, FileSource, GoldSpec, Pipeline, SilverSpec, SourceFeed, TableName};
///
/// let bronze = TableName::new("bronze", "shop_orders");
/// let silver = TableName::new("silver", "orders");
/// let files = FileSource::new("events", FileFormat::KafkaJsonl).with_topics(["shop.public.orders"]);
/// let pipeline = Pipeline::builder("shop")
///     .feed(SourceFeed::new("shop_orders", bronze.clone(), files))
///     .silver(SilverSpec::new(silver, [bronze]).with_keys(["order_id"]))
///     .gold(GoldSpec::new(TableName::new("gold", "order_count"), "SELECT count(*) AS orders FROM silver.orders"))
///     .build()?;
/// assert_eq!(pipeline.phases()?.len(), 3);
/// # Ok::<(), tributary_specs::Errors>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct PipelineBuilder {
    pipeline: Pipeline,
}

impl PipelineBuilder {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { pipeline: Pipeline { name: name.into(), ..Pipeline::default() } }
    }

    /// Adds a feed.
    pub fn feed(mut self, feed: SourceFeed) -> Self {
        self.pipeline.feeds.push(feed);
        self
    }

    /// Adds a silver dataset.
    pub fn silver(mut self, spec: SilverSpec) -> Self {
        self.pipeline.silver.push(spec);
        self
    }

    /// Adds a gold dataset.
    pub fn gold(mut self, spec: GoldSpec) -> Self {
        self.pipeline.gold.push(spec);
        self
    }

    /// Declares a table that datasets read and something else makes.
    pub fn external(mut self, table: TableName) -> Self {
        self.pipeline.external.push(table);
        self
    }

    /// The pipeline, validated; sources are given the spelling of the table they mean.
    ///
    /// # Errors
    /// Every mistake, each with the path of the part it is in.
    pub fn build(mut self) -> Result<Pipeline, Errors> {
        self.pipeline.respell_sources();
        match Errors::when_any(self.pipeline.validate()) {
            Some(errors) => Err(errors),
            None => Ok(self.pipeline),
        }
    }
}

fn texts(values: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    values.into_iter().map(Into::into).collect()
}

fn property(properties: &mut BTreeMap<String, String>, name: impl Into<String>, value: impl Into<String>) {
    properties.insert(name.into(), value.into());
}

impl From<FileSource> for Source {
    fn from(files: FileSource) -> Self {
        Self::Files(files)
    }
}

impl From<KafkaSource> for Source {
    fn from(kafka: KafkaSource) -> Self {
        Self::Kafka(kafka)
    }
}

impl KafkaSource {
    /// These topics, exact or with `*`, of the cluster that the run's settings name.
    pub fn new(topics: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { topics: texts(topics), ..Self::default() }
    }

    /// Brokers to begin with, `host:port` separated by commas.
    #[must_use]
    pub fn with_bootstrap(mut self, bootstrap: impl Into<String>) -> Self {
        self.bootstrap = Some(bootstrap.into());
        self
    }

    /// The schema registry's URL.
    #[must_use]
    pub fn with_registry(mut self, registry: impl Into<String>) -> Self {
        self.registry = Some(registry.into());
        self
    }

    /// Sets a consumer property, by librdkafka's name.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        property(&mut self.properties, name, value);
        self
    }
}

impl FileSource {
    /// All files under `path`; relative paths resolve under the base data path.
    pub fn new(path: impl Into<String>, format: FileFormat) -> Self {
        let csv = CsvOptions::default();
        Self { path: path.into(), format, glob: None, topics: Vec::new(), csv, settle_seconds: 0, mirrors: false, with_metadata: false }
    }

    /// Only files whose path below the folder matches.
    #[must_use]
    pub fn with_glob(mut self, glob: impl Into<String>) -> Self {
        self.glob = Some(glob.into());
        self
    }

    /// Only these topics of recorded Kafka records, exact or with `*`.
    #[must_use]
    pub fn with_topics(mut self, topics: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.topics = texts(topics);
        self
    }

    /// How CSV text is read.
    #[must_use]
    pub fn with_csv(mut self, csv: CsvOptions) -> Self {
        self.csv = csv;
        self
    }
}

impl SourceFeed {
    /// A feed with defaults: CSV files are decoded as CSV, everything else as Debezium.
    pub fn new(name: impl Into<String>, table: TableName, source: impl Into<Source>) -> Self {
        let source = source.into();
        let decode = match &source {
            Source::Files(FileSource { format: FileFormat::Csv, .. }) => Decode::Csv,
            Source::Files(_) | Source::Kafka(_) | Source::Custom(_) => Decode::default(),
        };
        Self {
            name: name.into(),
            table,
            source,
            decode,
            columns: Vec::new(),
            keys: Vec::new(),
            schema_policy: SchemaPolicy::default(),
            replica_identity: ReplicaIdentity::default(),
            partition_by: Vec::new(),
            cluster_by: Vec::new(),
            quarantine: None,
            comment: None,
            properties: BTreeMap::new(),
        }
    }

    /// How bytes become columns.
    #[must_use]
    pub fn with_decode(mut self, decode: Decode) -> Self {
        self.decode = decode;
        self
    }

    /// The declared business columns.
    #[must_use]
    pub fn with_columns(mut self, columns: impl IntoIterator<Item = Column>) -> Self {
        self.columns = columns.into_iter().collect();
        self
    }

    /// The key columns of the source table.
    #[must_use]
    pub fn with_keys(mut self, keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.keys = texts(keys);
        self
    }

    /// What a column the table does not have does.
    #[must_use]
    pub fn with_schema_policy(mut self, policy: SchemaPolicy) -> Self {
        self.schema_policy = policy;
        self
    }

    /// Whether the source's before-images are complete.
    #[must_use]
    pub fn with_replica_identity(mut self, identity: ReplicaIdentity) -> Self {
        self.replica_identity = identity;
        self
    }

    /// The partition columns.
    #[must_use]
    pub fn with_partition_by(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.partition_by = texts(columns);
        self
    }

    /// Sets a table property.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        property(&mut self.properties, name, value);
        self
    }
}

impl SilverSpec {
    /// A table of the latest state of each key (`scd_type1`); the first source is the stream, others are looked up.
    pub fn new(table: TableName, sources: impl IntoIterator<Item = TableName>) -> Self {
        Self {
            table,
            sources: sources.into_iter().collect(),
            select: None,
            flow: None,
            once: false,
            stream: StreamRead::default(),
            watermark: None,
            late: LateRows::default(),
            flows: Vec::new(),
            keys: Vec::new(),
            sequence_by: Vec::new(),
            policy: MergePolicy::default(),
            deletes: Deletes::default(),
            columns: ColumnSelection::default(),
            ignore_null_updates: IgnoreNullUpdates::default(),
            null_keys: NullKeys::default(),
            update_when: None,
            delete_when: None,
            insert_when: None,
            schema: Vec::new(),
            schema_policy: GrowthPolicy::default(),
            expectations: Vec::new(),
            set_expectations: Vec::new(),
            checks: Vec::new(),
            partition_by: Vec::new(),
            cluster_by: Vec::new(),
            quarantine: None,
            comment: None,
            properties: BTreeMap::new(),
        }
    }

    /// How long it is waited for rows of the stream, and what becomes of those that come later.
    #[must_use]
    pub fn with_watermark(mut self, watermark: Watermark, late: LateRows) -> Self {
        (self.watermark, self.late) = (Some(watermark), late);
        self
    }

    /// What a column, or a wider type, of the query does that the table does not have.
    #[must_use]
    pub fn with_schema_policy(mut self, policy: GrowthPolicy) -> Self {
        self.schema_policy = policy;
        self
    }

    /// SQL over the sources, one row out a row in.
    #[must_use]
    pub fn with_select(mut self, select: impl Into<String>) -> Self {
        self.select = Some(select.into());
        self
    }

    /// The key columns.
    #[must_use]
    pub fn with_keys(mut self, keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.keys = texts(keys);
        self
    }

    /// The declared order of a key's changes, most significant first.
    #[must_use]
    pub fn with_sequence_by(mut self, sequence: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sequence_by = texts(sequence);
        self
    }

    /// How changes become rows.
    #[must_use]
    pub fn with_policy(mut self, policy: MergePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Which source rows are deletes and truncates.
    #[must_use]
    pub fn with_deletes(mut self, deletes: Deletes) -> Self {
        self.deletes = deletes;
        self
    }

    /// The columns of the result.
    #[must_use]
    pub fn with_column_selection(mut self, columns: ColumnSelection) -> Self {
        self.columns = columns;
        self
    }

    /// The declared schema.
    #[must_use]
    pub fn with_schema(mut self, schema: impl IntoIterator<Item = Column>) -> Self {
        self.schema = schema.into_iter().collect();
        self
    }

    /// Adds a rule a row must meet.
    #[must_use]
    pub fn with_expectation(mut self, name: impl Into<String>, expression: impl Into<String>, action: ExpectationAction) -> Self {
        self.expectations.push(Expectation { name: name.into(), expression: expression.into(), action });
        self
    }

    /// Sets a table property.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        property(&mut self.properties, name, value);
        self
    }
}

impl GoldSpec {
    /// A view by SQL over the lake's tables.
    pub fn new(table: TableName, query: impl Into<String>) -> Self {
        Self {
            table,
            query: query.into(),
            sources: Vec::new(),
            streams: Vec::new(),
            refresh: Refresh::default(),
            schema: Vec::new(),
            expectations: Vec::new(),
            set_expectations: Vec::new(),
            partition_by: Vec::new(),
            cluster_by: Vec::new(),
            zorder_by: Vec::new(),
            quarantine: None,
            comment: None,
            properties: BTreeMap::new(),
        }
    }

    /// The tables the query reads; needed only where they cannot be read from the query.
    #[must_use]
    pub fn with_sources(mut self, sources: impl IntoIterator<Item = TableName>) -> Self {
        self.sources = sources.into_iter().collect();
        self
    }

    /// Adds a source that is read as a stream.
    #[must_use]
    pub fn with_stream(mut self, stream: StreamedTable) -> Self {
        self.streams.push(stream);
        self
    }

    /// How the view is refreshed.
    #[must_use]
    pub fn with_refresh(mut self, refresh: Refresh) -> Self {
        self.refresh = refresh;
        self
    }

    /// The declared schema.
    #[must_use]
    pub fn with_schema(mut self, schema: impl IntoIterator<Item = Column>) -> Self {
        self.schema = schema.into_iter().collect();
        self
    }

    /// Adds a rule a row must meet.
    #[must_use]
    pub fn with_expectation(mut self, name: impl Into<String>, expression: impl Into<String>, action: ExpectationAction) -> Self {
        self.expectations.push(Expectation { name: name.into(), expression: expression.into(), action });
        self
    }

    /// Sets a table property.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        property(&mut self.properties, name, value);
        self
    }
}
