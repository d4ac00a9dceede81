//! Declarative pipeline types and their validation. Engines see only these.

mod dataset;
mod feed;
mod pipeline;
mod report;
mod schema;

pub use dataset::{
    ColumnSelection, Deletes, Expectation, ExpectationAction, GoldSpec, IgnoreNullUpdates, MergePolicy, NullKeys, Refresh, SilverSpec,
};
pub use feed::{CsvOptions, Decode, FileFormat, FileSource, ReplicaIdentity, SchemaPolicy, Source, SourceFeed};
pub use pipeline::Pipeline;
pub use report::{DatasetReport, ReportedError, Status};
pub use schema::{Check, Column, DataType, TableName, TableSpec};
