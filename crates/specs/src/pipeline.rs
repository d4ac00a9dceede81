//! A pipeline: feeds, silver, gold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::builder::PipelineBuilder;
use crate::dataset::{GoldSpec, SilverSpec};
use crate::feed::SourceFeed;
use crate::graph::{self, DatasetRef};
use crate::problem::{Errors, Problem};
use crate::rules;
use crate::table_name::TableName;
use crate::yaml;

/// Everything one run keeps current.
///
/// ```
/// use tributary_specs::Pipeline;
///
/// let text = "
/// name: shop
/// feeds:
///   - name: shop_orders
///     table: bronze.shop_orders
///     source: {files: {path: events, format: kafka_jsonl, topics: [shop.public.orders]}}
/// silver:
///   - table: silver.orders
///     sources: [bronze.shop_orders]
///     keys: [order_id]
/// gold:
///   - table: gold.order_count
///     query: SELECT count(*) AS orders FROM silver.orders
/// ";
/// let pipeline = Pipeline::from_yaml("pipeline.yml", text)?;
/// assert_eq!(Pipeline::from_yaml("again.yml", &pipeline.to_yaml())?, pipeline);
///
/// let errors = Pipeline::from_yaml("pipeline.yml", &text.replace("keys", "kesy")).unwrap_err();
/// assert_eq!(
///     errors.problems()[0].to_string(),
///     r#"pipeline.yml:10:5: silver[0].kesy: there is no field "kesy" here; did you mean "keys"? (SP0011)"#
/// );
/// # Ok::<(), tributary_specs::Errors>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// The pipeline's name; in a pipeline of several files in at least one of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Bronze.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feeds: Vec<SourceFeed>,
    /// Silver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silver: Vec<SilverSpec>,
    /// Gold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gold: Vec<GoldSpec>,
    /// Tables that datasets read and that something else makes. Tables of the schemas `system` and `quarantine` need not be listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<TableName>,
}

impl Pipeline {
    /// A builder for a pipeline in Rust.
    pub fn builder(name: impl Into<String>) -> PipelineBuilder {
        PipelineBuilder::new(name)
    }

    /// Reads and validates a pipeline of one file; `file_name` stands in messages.
    ///
    /// # Errors
    /// Every mistake of the file, each with its place.
    pub fn from_yaml(file_name: &str, text: &str) -> Result<Self, Errors> {
        Self::from_files(&[(file_name, text)])
    }

    /// Reads and validates a pipeline that stands in several files, as pairs of name and text. Each may hold any of the lists;
    /// the lists are joined in the order of the files.
    ///
    /// # Errors
    /// Every mistake of all files, each with its place.
    pub fn from_files(files: &[(&str, &str)]) -> Result<Self, Errors> {
        yaml::read_files(files, None)
    }

    /// As [`Pipeline::from_files`]; `sources_of` finds the tables that a gold dataset's query reads, or says why it cannot, so
    /// that what the queries read is validated with the rest.
    ///
    /// # Errors
    /// Every mistake of all files and queries, each with its place.
    pub fn from_files_with(files: &[(&str, &str)], sources_of: impl Fn(&str) -> Result<Vec<TableName>, String>) -> Result<Self, Errors> {
        yaml::read_files(files, Some(&sources_of))
    }

    /// Fills in the sources of gold datasets that name none; `sources_of` as in [`Pipeline::from_files_with`].
    ///
    /// # Errors
    /// Every query that cannot be read.
    pub fn fill_sources(&mut self, sources_of: impl Fn(&str) -> Result<Vec<TableName>, String>) -> Result<(), Errors> {
        let found = yaml::fill_sources(self, &sources_of);
        self.respell_sources();
        Errors::when_any(found).map_or(Ok(()), Err)
    }

    /// The pipeline as one YAML file.
    pub fn to_yaml(&self) -> String {
        // A pipeline is text, numbers, lists and mappings with text keys: turning it into JSON cannot fail.
        serde_json::to_value(self).map(|value| yaml::write(&value)).unwrap_or_default()
    }

    /// Every mistake that shows in the specs alone; empty for a pipeline that can run. Readers and the builder have called it;
    /// call it again after filling the `sources` of gold datasets.
    pub fn validate(&self) -> Vec<Problem> {
        rules::check(self, &rules::Unread::default())
    }

    /// Every dataset: feeds first, then silver, then gold, each in the order of the pipeline.
    pub fn datasets(&self) -> Vec<DatasetRef> {
        graph::datasets(self)
    }

    /// Datasets in the order they can run: each phase reads only what earlier phases make, and is drained before the next.
    /// A gold dataset whose `sources` are not filled in comes after all feeds and silver datasets.
    ///
    /// # Errors
    /// The circles, where datasets read each other.
    pub fn phases(&self) -> Result<Vec<Vec<DatasetRef>>, Errors> {
        graph::phases(self)
    }

    /// Gives every source the spelling of the table it means, where they differ in case.
    pub fn respell_sources(&mut self) {
        graph::respell_sources(self);
    }
}
