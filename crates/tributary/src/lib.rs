#![doc = include_str!("../README.md")]

mod amend;
mod amounts;
mod check;
mod definition;
mod diff;
mod error;
mod expectations;
mod explain;
mod forecast;
mod from_sql;
mod gaps;
mod graph;
mod lake;
mod lakeflow;
mod lineage;
pub mod maintenance;
mod memory;
mod options;
mod past;
mod pipeline;
mod plan;
mod protection;
mod report;
mod run;
mod runs;
mod session;
mod setup;
mod spot;
pub mod sql;
mod system;
mod table;
mod trial;
mod upkeep;

pub use tributary_lake::{arrow, datafusion, object_store};

pub use check::{QueryCheck, QueryNote, QueryProblem};
pub use definition::DefinitionChange;
pub use diff::{DiffOptions, TableDiff};
pub use error::Error;
pub use from_sql::SqlOptions;
pub use graph::{Graph, GraphColumn, GraphFlow, GraphNode, NodeKind, NodeRun};
pub use lake::Lake;
pub use lakeflow::{JobDefinition, JobRun, PipelineDefinition, PipelineUpdate, RunEnd, TaskDefinition, TaskRun};
pub use lineage::{ColumnLineage, ColumnSource, Lineage, LineageSink, LineageSource, Manner, OPENLINEAGE_PRODUCER, OpenLineage};
pub use options::{BatchBounds, Catalogue, Mode, OpenOptions, ProgressEvent, ProgressSink, RunOptions, WithinJob};
pub use pipeline::{Build, BuildWith, Dataset, Pipeline, PipelineBuilder};
pub use plan::{ColumnChange, ColumnChangeKind, DatasetPlan, Differs, FileAmount, Plan, PlannedInput, PlannedWork};
pub use report::RunReport;
pub use setup::{SetupOutcome, TableSetup};
pub use table::Table;
pub use trial::{GivenRow, Trial, Trials, rows_as};
#[cfg(feature = "kafka")]
pub use tributary_bronze::propose_from_topic;
pub use tributary_bronze::{
    Consumers, Extent, KafkaFinding, KafkaMode, KafkaOptions, OnGap, PartitionBounds, RecordSource, Registries, Requeued, SourceError,
    SourceRecord, propose_from_file,
};
pub use tributary_fault::{ExitCode, Fault, FaultClass, FaultCode, chain};
pub use tributary_gold_agg::{Audit, Explained, InputCost, RefreshMode};
pub use tributary_lake::{Clock, CommitEntry, Difference, ManualClock, Stores, SystemClock};
pub use tributary_pipeline_sql::Origins;
pub use tributary_specs::{
    Check, Column, ColumnSelection, CsvOptions, DataType, DatasetReport, Decode, Deletes, Encoding, Expectation, ExpectationAction,
    FileFormat, FileSource, GoldSpec, GrowthPolicy, IgnoreNullUpdates, KafkaSource, KafkaStart, LateRows, Layer, MergePolicy, NullKeys,
    Place, Places, Refresh, ReplicaIdentity, ReportedError, SchemaPolicy, SilverSpec, Source, SourceFeed, Status, StreamedTable, TableName,
    TableSpec, Watermark,
};
