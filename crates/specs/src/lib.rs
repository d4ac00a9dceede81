//! Declarative pipeline types and their validation. Engines see only these.

mod arrow;
mod column;
mod data_type;
mod dataset;
mod encoding;
mod error;
mod feed;
mod nearest;
mod pipeline;
mod report;
mod table_name;
mod table_spec;

pub use column::Column;
pub use data_type::{DECIMAL_DIGITS_MAX, DataType};
pub use dataset::{
    ColumnSelection, Deletes, Expectation, ExpectationAction, GoldSpec, IgnoreNullUpdates, MergePolicy, NullKeys, Refresh, SilverSpec,
};
pub use encoding::Encoding;
pub use error::Error;
pub use feed::{CsvOptions, Decode, FileFormat, FileSource, ReplicaIdentity, SchemaPolicy, Source, SourceFeed};
pub use pipeline::Pipeline;
pub use report::{DatasetReport, ReportedError, Status};
pub use table_name::TableName;
pub use table_spec::{Check, TableSpec};
