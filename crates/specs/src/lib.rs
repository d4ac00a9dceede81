//! Declarative pipeline types and their validation. Engines see only these.
//!
//! ```text
//!  YAML files ──┐
//!  Rust builder ┼──▶ Pipeline { feeds, silver, gold } ──▶ validate ──▶ phases
//!  SQL, bundles ┘         every mistake at once, with file, line and path
//! ```

mod arrow;
mod builder;
mod column;
mod data_type;
mod dataset;
mod declared;
mod effective;
mod encoding;
mod error;
mod feed;
mod flow;
mod graph;
mod json_schema;
mod pipeline;
mod problem;
mod properties;
mod report;
mod rules;
mod streamed;
mod table_name;
mod table_spec;
mod type_relation;
mod yaml;

pub use builder::PipelineBuilder;
pub use column::{COLUMN_OPTIONS, Column};
pub use data_type::{DECIMAL_DIGITS_MAX, DataType};
pub use dataset::{
    ColumnSelection, Deletes, Expectation, ExpectationAction, GoldSpec, GrowthPolicy, IgnoreNullUpdates, MergePolicy, NullKeys, Refresh,
    SilverSpec,
};
pub use declared::{Mismatch, check_declared};
pub use effective::reset_allowed;
pub use encoding::Encoding;
pub use error::Error;
pub use feed::{
    CsvOptions, Decode, FILE_COLUMNS, FileFormat, FileSource, KafkaSource, KafkaStart, ReplicaIdentity, SchemaPolicy, Source, SourceFeed,
    is_kept_by_the_lake,
};
pub use flow::{Flow, SetExpectation, SetRule, StreamRead};
pub use graph::{DatasetRef, Layer};
pub use pipeline::Pipeline;
pub use problem::{Errors, Location, Path, Place, Problem, Step};
pub use properties::{DELETE_MEMORY_SECONDS, IMPLICIT_DELETES, RESET_ALLOWED, SEQUENCE_TEXT, SEQUENCE_UNIQUE};
pub use report::{DatasetReport, InputRead, PassedGap, ReportedError, RuleCount, Status};
pub use streamed::{LateRows, StreamedTable, Watermark};
pub use table_name::TableName;
pub use table_spec::{Check, TableSpec};
pub use yaml::{Places, PlainScalar};
