//! A pipeline with what only Rust can say: functions, datasets built in code, record sources.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tributary_bronze::RecordSource;
use tributary_gold_agg::sources_of;
use tributary_lake::datafusion::error::Result as QueryResult;
use tributary_lake::datafusion::logical_expr::ScalarUDF;
use tributary_lake::datafusion::prelude::{DataFrame, SessionContext};
use tributary_pipeline_sql::Origins;
use tributary_spark_sql::SqlFunction;
use tributary_specs::{GoldSpec, Layer, SilverSpec, SourceFeed, TableName};

use crate::{Error, Lake, sql};

/// Builds a dataset in code: the session of the run and its inputs by `schema.table`, out comes the dataset's rows.
///
/// A silver dataset's first input carries the feed's own columns (`_op`, `_position`, …); the rows that come out keep the ones they pass on.
pub type Build = Arc<dyn Fn(SessionContext, BTreeMap<String, DataFrame>) -> BoxFuture<'static, QueryResult<DataFrame>> + Send + Sync>;

/// A validated pipeline: what to keep current, and the Rust parts of it.
///
/// ```
/// use tributary::{FileFormat, FileSource, Pipeline, SilverSpec, SourceFeed};
///
/// let pipeline = Pipeline::builder("shop")
///     .feed(SourceFeed::new("shop_orders", "bronze.orders".parse()?, FileSource::new("orders", FileFormat::KafkaJsonl)))
///     .silver(SilverSpec::new("silver.orders".parse()?, ["bronze.orders".parse()?]).with_keys(["order_id"]))
///     .build()?;
/// assert_eq!(pipeline.spec().silver.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Pipeline {
    spec: tributary_specs::Pipeline,
    builds: BTreeMap<TableName, Build>,
    functions: Vec<Arc<ScalarUDF>>,
    /// Those of the functions that statements made in the lake.
    declared: Vec<SqlFunction>,
    sources: Vec<Arc<dyn RecordSource>>,
    /// Masks and row filters that are not enforced, in words.
    unprotected: Vec<String>,
    /// Where its specs stand in SQL files.
    origins: Option<Arc<Origins>>,
    /// What else of its text is not executed, in words.
    not_applied: Vec<String>,
}

impl Pipeline {
    /// An empty pipeline to add to.
    ///
    /// ```
    /// assert!(tributary::Pipeline::builder("empty").build().is_ok());
    /// ```
    pub fn builder(name: impl Into<String>) -> PipelineBuilder {
        PipelineBuilder {
            pipeline: Self { spec: tributary_specs::Pipeline { name: name.into(), ..Default::default() }, ..Self::default() },
        }
    }

    /// A pipeline from the text of YAML files, given as (file name, text). Every error of all files comes in one go, each with its line.
    ///
    /// ```
    /// let errors = tributary::Pipeline::from_yaml(&[("shop.yml", "name: shop\nfeedz: []\n")]).unwrap_err().to_string();
    /// assert!(errors.contains("shop.yml:2") && errors.contains("feeds"), "{errors}");
    /// ```
    pub fn from_yaml(files: &[(&str, &str)]) -> Result<Self, Error> {
        let spec = tributary_specs::Pipeline::from_files_with(files, |query| sources_of(query).map_err(|error| error.to_string()))?;
        PipelineBuilder { pipeline: Self { spec, ..Self::default() } }.build()
    }

    /// A pipeline from specs that something else has read, such as the SQL of a bundle.
    ///
    /// # Errors
    /// [`Error::Spec`] with every problem found.
    ///
    /// ```
    /// use tributary::Pipeline;
    /// let read = Pipeline::from_yaml(&[("shop.yml", "name: shop\nfeeds: []\n")])?;
    /// assert_eq!(Pipeline::from_spec(read.spec().clone())?.spec().name, "shop");
    /// # Ok::<(), tributary::Error>(())
    /// ```
    pub fn from_spec(spec: tributary_specs::Pipeline) -> Result<Self, Error> {
        PipelineBuilder { pipeline: Self { spec, ..Self::default() } }.build()
    }

    /// The same pipeline, of which a person accepted that these clauses, which hide data from people, are not enforced. Every report of
    /// its runs says them.
    ///
    /// ```
    /// let pipeline = tributary::Pipeline::builder("shop").build()?.with_unprotected(["MASK of column email".to_owned()]);
    /// assert_eq!(pipeline.unprotected(), ["MASK of column email"]);
    /// # Ok::<(), tributary::Error>(())
    /// ```
    #[must_use]
    pub fn with_unprotected(mut self, clauses: impl IntoIterator<Item = String>) -> Self {
        self.unprotected.extend(clauses);
        self
    }

    /// The same pipeline, whose specs stand in these SQL files: mistakes of queries are then told with file, line and column.
    ///
    /// ```
    /// let pipeline = tributary::Pipeline::builder("shop").build()?.with_origins(Default::default());
    /// assert_eq!(pipeline.spec().name, "shop");
    /// # Ok::<(), tributary::Error>(())
    /// ```
    #[must_use]
    pub fn with_origins(self, origins: Arc<Origins>) -> Self {
        Self { origins: Some(origins), ..self }
    }

    pub(crate) fn origins(&self) -> Option<&Origins> {
        self.origins.as_deref()
    }

    /// What [`Pipeline::with_unprotected`] was told.
    ///
    /// ```
    /// assert!(tributary::Pipeline::default().unprotected().is_empty());
    /// ```
    pub fn unprotected(&self) -> &[String] {
        &self.unprotected
    }

    /// The same pipeline, of whose text these clauses are read and not executed. Every report of its runs says them.
    ///
    /// ```
    /// let pipeline = tributary::Pipeline::builder("shop").build()?.with_not_applied(["SCHEDULE (shop.sql:1:8)".to_owned()]);
    /// assert_eq!(pipeline.not_applied(), ["SCHEDULE (shop.sql:1:8)"]);
    /// # Ok::<(), tributary::Error>(())
    /// ```
    #[must_use]
    pub fn with_not_applied(mut self, clauses: impl IntoIterator<Item = String>) -> Self {
        self.not_applied.extend(clauses);
        self
    }

    /// What [`Pipeline::with_not_applied`] was told.
    ///
    /// ```
    /// assert!(tributary::Pipeline::default().not_applied().is_empty());
    /// ```
    pub fn not_applied(&self) -> &[String] {
        &self.not_applied
    }

    /// The same pipeline run as somebody: what `current_user()` answers in its texts. Without it a text that asks is refused.
    ///
    /// ```
    /// let pipeline = tributary::Pipeline::builder("shop").build()?.run_as("ann@example.com");
    /// assert_eq!(pipeline.spec().name, "shop");
    /// # Ok::<(), tributary::Error>(())
    /// ```
    #[must_use]
    pub fn run_as(mut self, user: &str) -> Self {
        self.functions.push(Arc::new(tributary_spark_sql::current_user(user)));
        self
    }

    /// The declarative part, sources of gold queries filled in.
    ///
    /// ```
    /// let pipeline = tributary::Pipeline::builder("empty").build()?;
    /// assert_eq!(pipeline.spec().name, "empty");
    /// # Ok::<(), tributary::Error>(())
    /// ```
    pub fn spec(&self) -> &tributary_specs::Pipeline {
        &self.spec
    }

    /// The tables that a dataset reads, those of all its flows.
    pub(crate) fn sources_of(&self, layer: Layer, index: usize) -> Vec<&TableName> {
        match layer {
            Layer::Bronze => Vec::new(),
            Layer::Silver => self.spec.silver[index].reads(),
            Layer::Gold => self.spec.gold[index].sources.iter().collect(),
        }
    }

    pub(crate) fn build_of(&self, table: &TableName) -> Option<Build> {
        self.builds.get(table).cloned()
    }

    /// What a silver dataset is planned with.
    pub(crate) fn silver_options(&self, spec: &SilverSpec) -> tributary_silver_merge::Options {
        tributary_silver_merge::Options { functions: self.functions.clone(), build: self.build_of(&spec.table), ..Default::default() }
    }

    /// What a view is planned with.
    pub(crate) fn gold_options(&self, spec: &GoldSpec) -> tributary_gold_agg::Options {
        tributary_gold_agg::Options {
            functions: self.functions.clone(),
            called: self.called_by(spec).into_iter().map(|(name, declaration)| format!("{name}{declaration}")).collect(),
            build: self.build_of(&spec.table),
            ..Default::default()
        }
    }

    /// The functions of the lake that a view may call, by name, each as it is declared: those whose names its texts say, and those
    /// that these say. A name that is said and stands for something else costs a refresh; one that is called is never missed.
    pub(crate) fn called_by(&self, spec: &GoldSpec) -> BTreeMap<String, String> {
        let texts =
            spec.expectations.iter().map(|rule| &rule.expression).chain(spec.schema.iter().filter_map(|column| column.generated.as_ref()));
        self.called_in(texts.chain([&spec.query]).map(|text| text.to_lowercase()).collect())
    }

    /// The same of a silver dataset.
    pub(crate) fn called_by_silver(&self, spec: &SilverSpec) -> BTreeMap<String, String> {
        match self.declared.is_empty() {
            true => BTreeMap::new(),
            // all its texts are in its spec
            false => self.called_in(vec![serde_json::to_string(spec).unwrap_or_default().to_lowercase()]),
        }
    }

    fn called_in(&self, mut texts: Vec<String>) -> BTreeMap<String, String> {
        let mut called = BTreeMap::new();
        while let Some(text) = texts.pop() {
            for function in self.declared.iter().filter(|function| says(&text, &function.names[2].to_lowercase())) {
                if called.insert(function.full_name(), sql::declaration(function)).is_none() {
                    texts.push(function.body.to_lowercase());
                }
            }
        }
        called
    }

    /// The same pipeline, whose texts can call the functions that people made in the lake too, as they can in a run.
    pub(crate) async fn with_functions_of(&self, lake: &Lake) -> Result<Self, Error> {
        let (functions, declared) = sql::functions_beside(lake.inner(), &self.functions).await?;
        let functions = self.functions.iter().cloned().chain(functions.into_iter().map(Arc::new)).collect();
        Ok(Self { functions, declared, ..self.clone() })
    }

    pub(crate) fn functions(&self) -> &[Arc<ScalarUDF>] {
        &self.functions
    }

    pub(crate) fn sources(&self) -> &[Arc<dyn RecordSource>] {
        &self.sources
    }
}

/// Whether a text has this name as a word; one that no bare word can be, anywhere.
fn says(text: &str, name: &str) -> bool {
    let parts = |character: char| !(character.is_alphanumeric() || character == '_');
    if name.contains(parts) { text.contains(name) } else { text.split(parts).any(|word| word == name) }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("spec", &self.spec)
            .field("built_in_code", &self.builds.keys().collect::<Vec<_>>())
            .field("functions", &self.functions.iter().map(|function| function.name()).collect::<Vec<_>>())
            .field("sources", &self.sources)
            .finish()
    }
}

/// Collects a pipeline's parts; [`PipelineBuilder::build`] validates them together.
///
/// ```
/// let builder = tributary::Pipeline::builder("shop");
/// assert!(builder.build().is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct PipelineBuilder {
    pipeline: Pipeline,
}

impl PipelineBuilder {
    /// Adds a bronze feed.
    ///
    /// ```
    /// use tributary::{FileFormat, FileSource, Pipeline, SourceFeed};
    /// let feed = SourceFeed::new("visits", "bronze.visits".parse()?, FileSource::new("visits", FileFormat::Jsonl));
    /// assert_eq!(Pipeline::builder("shop").feed(feed).build()?.spec().feeds.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn feed(mut self, feed: SourceFeed) -> Self {
        self.pipeline.spec.feeds.push(feed);
        self
    }

    /// Adds a silver dataset: a [`SilverSpec`], or one with [`BuildWith::build_with`].
    ///
    /// ```
    /// use tributary::{FileFormat, FileSource, Pipeline, SilverSpec, SourceFeed};
    /// let pipeline = Pipeline::builder("shop")
    ///     .feed(SourceFeed::new("shop_orders", "bronze.orders".parse()?, FileSource::new("orders", FileFormat::KafkaJsonl)))
    ///     .silver(SilverSpec::new("silver.orders".parse()?, ["bronze.orders".parse()?]).with_keys(["order_id"]))
    ///     .build()?;
    /// assert_eq!(pipeline.spec().silver[0].keys, ["order_id"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn silver(mut self, dataset: impl Into<Dataset<SilverSpec>>) -> Self {
        let Dataset { spec, build } = dataset.into();
        self.add_build(&spec.table, build);
        self.pipeline.spec.silver.push(spec);
        self
    }

    /// Adds a gold view: a [`GoldSpec`], or one with [`BuildWith::build_with`].
    ///
    /// ```
    /// use tributary::{FileFormat, FileSource, GoldSpec, Pipeline, SourceFeed};
    /// let pipeline = Pipeline::builder("shop")
    ///     .feed(SourceFeed::new("visits", "bronze.visits".parse()?, FileSource::new("visits", FileFormat::Jsonl)))
    ///     .gold(GoldSpec::new("gold.visit_count".parse()?, "select count(*) as visits from bronze.visits"))
    ///     .build()?;
    /// assert_eq!(pipeline.spec().gold[0].sources[0].to_string(), "bronze.visits");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn gold(mut self, dataset: impl Into<Dataset<GoldSpec>>) -> Self {
        let Dataset { spec, build } = dataset.into();
        self.add_build(&spec.table, build);
        self.pipeline.spec.gold.push(spec);
        self
    }

    /// Registers a scalar function for every SQL text of the pipeline.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tributary::arrow::datatypes::DataType;
    /// use tributary::datafusion::logical_expr::{create_udf, ColumnarValue, Volatility};
    ///
    /// let same = create_udf("same", vec![DataType::Utf8], DataType::Utf8, Volatility::Immutable, Arc::new(|args: &[ColumnarValue]| Ok(args[0].clone())));
    /// assert!(tributary::Pipeline::builder("shop").function(same).build().is_ok());
    /// ```
    #[must_use]
    pub fn function(mut self, function: ScalarUDF) -> Self {
        self.pipeline.functions.push(Arc::new(function));
        self
    }

    /// Brings a record source; feeds name it with `Source::Custom(name)`. See `examples/custom_source.rs`.
    ///
    /// ```no_run
    /// # fn f(source: std::sync::Arc<dyn tributary::RecordSource>) -> Result<(), tributary::Error> {
    /// let pipeline = tributary::Pipeline::builder("shop").source(source).build()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn source(mut self, source: Arc<dyn RecordSource>) -> Self {
        self.pipeline.sources.push(source);
        self
    }

    /// Validates all parts together.
    ///
    /// # Errors
    /// [`Error::Spec`] with every problem found.
    ///
    /// ```
    /// use tributary::{Pipeline, SilverSpec};
    /// let unknown_source = SilverSpec::new("silver.orders".parse()?, ["bronze.orders".parse()?]).with_keys(["order_id"]);
    /// assert!(Pipeline::builder("shop").silver(unknown_source).build().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<Pipeline, Error> {
        let Self { mut pipeline } = self;
        for gold in &mut pipeline.spec.gold {
            if gold.sources.is_empty() && !pipeline.builds.contains_key(&gold.table) {
                gold.sources = sources_of(&gold.query).map_err(|error| of_view(error, &gold.table))?;
            }
        }
        pipeline.spec.respell_sources();
        match tributary_specs::Errors::when_any(pipeline.spec.validate()) {
            Some(errors) => Err(errors.into()),
            None => Ok(pipeline),
        }
    }

    fn add_build(&mut self, table: &TableName, build: Option<Build>) {
        if let Some(build) = build {
            self.pipeline.builds.insert(table.clone(), build);
        }
    }
}

/// What is wrong with a query, with the name of its view.
fn of_view(error: tributary_gold_agg::Error, table: &TableName) -> tributary_gold_agg::Error {
    match error {
        tributary_gold_agg::Error::Query { reason, .. } => tributary_gold_agg::Error::Query { table: Some(table.clone()), reason },
        other => other,
    }
}

/// A dataset's spec and, where it is built in code, the code.
///
/// ```
/// use tributary::{Dataset, SilverSpec};
/// let plain: Dataset<SilverSpec> = SilverSpec::new("silver.orders".parse()?, ["bronze.orders".parse()?]).into();
/// # let _ = plain;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Dataset<S> {
    spec: S,
    build: Option<Build>,
}

impl<S> From<S> for Dataset<S> {
    fn from(spec: S) -> Self {
        Self { spec, build: None }
    }
}

/// Datasets that SQL cannot say, built in code.
///
/// ```
/// use tributary::{BuildWith, SilverSpec};
///
/// let dataset = SilverSpec::new("silver.orders".parse()?, ["bronze.orders".parse()?])
///     .with_keys(["order_id"])
///     .build_with(|_context, mut inputs| async move { Ok(inputs.remove("bronze.orders").expect("the dataset's input")) });
/// # let _ = dataset;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait BuildWith: Sized {
    /// Replaces the dataset's SQL by `build`; see [`Build`] for what goes in and out.
    fn build_with<F, Fut>(self, build: F) -> Dataset<Self>
    where
        F: Fn(SessionContext, BTreeMap<String, DataFrame>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = QueryResult<DataFrame>> + Send + 'static;
}

impl BuildWith for SilverSpec {
    fn build_with<F, Fut>(self, build: F) -> Dataset<Self>
    where
        F: Fn(SessionContext, BTreeMap<String, DataFrame>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = QueryResult<DataFrame>> + Send + 'static,
    {
        Dataset { spec: self, build: Some(erase(build)) }
    }
}

impl BuildWith for GoldSpec {
    fn build_with<F, Fut>(self, build: F) -> Dataset<Self>
    where
        F: Fn(SessionContext, BTreeMap<String, DataFrame>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = QueryResult<DataFrame>> + Send + 'static,
    {
        Dataset { spec: self, build: Some(erase(build)) }
    }
}

fn erase<F, Fut>(build: F) -> Build
where
    F: Fn(SessionContext, BTreeMap<String, DataFrame>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = QueryResult<DataFrame>> + Send + 'static,
{
    Arc::new(move |context, inputs| Box::pin(build(context, inputs)))
}
