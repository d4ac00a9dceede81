#![doc = include_str!("../README.md")]

mod check;
mod error;
mod gaps;
mod lake;
mod memory;
mod options;
mod pipeline;
mod report;
mod run;
mod runs;
mod session;
mod setup;
pub mod sql;
mod system;
mod table;

pub use tributary_lake::{arrow, datafusion, object_store};

pub use check::{QueryCheck, QueryProblem};
pub use error::Error;
pub use lake::Lake;
pub use options::{BatchBounds, Catalogue, Mode, OpenOptions, ProgressEvent, ProgressSink, RunOptions};
pub use pipeline::{Build, BuildWith, Dataset, Pipeline, PipelineBuilder};
pub use report::RunReport;
pub use setup::{SetupOutcome, TableSetup};
pub use table::Table;
#[cfg(feature = "kafka")]
pub use tributary_bronze::propose_from_topic;
pub use tributary_bronze::{
    Consumers, Extent, KafkaFinding, KafkaMode, KafkaOptions, OnGap, PartitionBounds, RecordSource, Registries, Requeued, SourceError,
    SourceRecord, propose_from_file,
};
pub use tributary_fault::{ExitCode, Fault, FaultClass, FaultCode, chain};
pub use tributary_lake::{Clock, CommitEntry, Difference, ManualClock, Stores, SystemClock};
pub use tributary_specs::{
    Check, Column, ColumnSelection, CsvOptions, DataType, DatasetReport, Decode, Deletes, Encoding, Expectation, ExpectationAction,
    FileFormat, FileSource, GoldSpec, GrowthPolicy, IgnoreNullUpdates, KafkaSource, KafkaStart, Layer, MergePolicy, NullKeys, Places,
    Refresh, ReplicaIdentity, ReportedError, SchemaPolicy, SilverSpec, Source, SourceFeed, Status, TableName, TableSpec,
};
