//! A lake, the handle everything is done through.

use std::sync::Arc;

use tributary_lake::datafusion::prelude::SessionContext;
use tributary_lake::{LakeOptions, Stores};
use tributary_specs::TableName;
use url::Url;

use crate::{Catalogue, Error, OpenOptions, Pipeline, RunOptions, Table, definition};

/// Tables under one root. Cheap to clone. Two lakes with different options live side by side: nothing is global.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
/// let lake = tributary::Lake::open("memory://", Default::default())?;
/// assert!(lake.tables().await?.is_empty());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Lake {
    inner: tributary_lake::Lake,
    catalogues: Vec<Arc<dyn Catalogue>>,
}

impl Lake {
    /// A lake at `url`: a folder, `file://…`, or `memory://` for one that lives as long as this value and its clones.
    ///
    /// # Errors
    /// [`Error::Url`] for a store this build does not know; [`Error::Lake`] when the folder cannot be made.
    ///
    /// ```
    /// let folder = std::env::temp_dir().join("tributary-open-example");
    /// let lake = tributary::Lake::open(folder.to_str().unwrap(), Default::default())?;
    /// # drop(lake); std::fs::remove_dir_all(folder).ok();
    /// # Ok::<(), tributary::Error>(())
    /// ```
    pub fn open(url: &str, options: OpenOptions) -> Result<Self, Error> {
        let stores = match url.split_once("://") {
            None => Stores::local(url)?,
            Some(("memory", _)) => Stores::memory(),
            Some(("file", _)) => {
                let path = Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
                Stores::local(path.ok_or_else(|| Error::Url { url: url.to_owned() })?)?
            }
            Some(_) => return Err(Error::Url { url: url.to_owned() }),
        };
        Self::open_stores(stores, options)
    }

    /// A lake over an object store of the caller's.
    ///
    /// # Errors
    /// [`Error::Lake`] when the store's scheme cannot hold a lake.
    ///
    /// ```
    /// let lake = tributary::Lake::open_stores(tributary::Stores::memory(), Default::default())?;
    /// # drop(lake);
    /// # Ok::<(), tributary::Error>(())
    /// ```
    pub fn open_stores(stores: Stores, options: OpenOptions) -> Result<Self, Error> {
        let catalogues = options.catalogues.clone();
        let options = LakeOptions {
            catalogue: options.catalogue,
            clock: options.clock,
            memory_limit: options.memory_limit,
            attempts_max: options.attempts_max,
            spill_path: options.spill_path,
            #[cfg(feature = "controls")]
            controls: options.controls,
            ..LakeOptions::default()
        };
        Ok(Self { inner: tributary_lake::Lake::open(stores, options)?, catalogues })
    }

    /// Names of all tables, sorted.
    ///
    /// # Errors
    /// [`Error::Lake`] when the store does not answer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// for table in lake.tables().await? {
    ///     println!("{table}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn tables(&self) -> Result<Vec<TableName>, Error> {
        Ok(self.inner.tables().await?)
    }

    /// The latest version of a table.
    ///
    /// # Errors
    /// [`Error::NoTable`] when there is none of this name.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// assert!(lake.table("silver.orders").await.is_err());
    /// # Ok(()) }
    /// ```
    pub async fn table(&self, name: &str) -> Result<Table, Error> {
        let missing = || Error::NoTable { table: name.to_owned() };
        let parsed: TableName = name.parse().map_err(|_| missing())?;
        self.inner.table(&parsed).await?.map(Table::new).ok_or_else(missing)
    }

    /// A DataFusion context in which every table of the lake is `catalogue.schema.table`, with the lake's memory limit.
    ///
    /// Names are matched without regard to case. Clauses DataFusion would parse and ignore are refused by
    /// [`crate::sql`], not here: for SQL texts of people use that.
    ///
    /// # Errors
    /// [`Error::Lake`] when a table cannot be opened.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// let rows = lake.session().await?.sql("select 1 as one").await?.collect().await?;
    /// assert_eq!(rows[0].num_rows(), 1);
    /// # Ok(()) }
    /// ```
    pub async fn session(&self) -> Result<SessionContext, Error> {
        crate::session::session(&self.inner).await
    }

    /// The object store of the lake and where in it the lake begins.
    ///
    /// ```
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// assert_eq!(lake.stores().root().scheme(), "memory");
    /// # Ok::<(), tributary::Error>(())
    /// ```
    pub fn stores(&self) -> &Stores {
        self.inner.stores()
    }

    /// The same lake with the clock and memory of a run, where those differ.
    pub(crate) fn for_run(&self, options: &RunOptions) -> Result<Self, Error> {
        if options.clock.is_none() && options.memory_limit.is_none() {
            return Ok(self.clone());
        }
        let mut changed = self.inner.options().clone();
        if let Some(clock) = &options.clock {
            changed.clock = Arc::clone(clock);
        }
        if let Some(memory_limit) = options.memory_limit {
            changed.memory_limit = memory_limit;
        }
        let inner = tributary_lake::Lake::open(self.inner.stores().clone(), changed)?;
        Ok(Self { inner, catalogues: self.catalogues.clone() })
    }

    /// The same lake, whose commits leave in each table of the pipeline what the dataset is defined as.
    pub(crate) fn leaving_definitions_of(self, pipeline: &Pipeline) -> Self {
        Self { inner: self.inner.leaving(definition::DOMAIN, definition::texts(pipeline)), catalogues: self.catalogues }
    }

    /// The same lake, of another catalogue.
    pub(crate) fn in_catalogue(&self, inner: tributary_lake::Lake) -> Self {
        Self { inner, catalogues: self.catalogues.clone() }
    }

    /// The lake as the layers see it.
    pub(crate) fn inner(&self) -> &tributary_lake::Lake {
        &self.inner
    }

    pub(crate) fn catalogues(&self) -> &[Arc<dyn Catalogue>] {
        &self.catalogues
    }
}
