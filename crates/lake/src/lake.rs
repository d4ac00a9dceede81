//! A lake: tables under one root.

use std::fmt;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use tributary_specs::{TableName, TableSpec};

use crate::{Clock, Result, Stores, SystemClock, Table};

/// How a lake behaves.
#[derive(Debug, Clone)]
pub struct LakeOptions {
    /// The first folder below the root.
    pub catalogue: String,
    /// Where commit timestamps come from.
    pub clock: Arc<dyn Clock>,
    /// How often one [`Table::commit`] tries a next version before it gives up as conflicted.
    pub attempts_max: u32,
    /// Bytes that queries of one [`Lake::session`] may hold before they spill.
    pub memory_limit: usize,
    /// Where queries spill to; the system's temporary folder by default.
    pub spill_path: Option<std::path::PathBuf>,
    /// Bytes of immutable log objects kept in memory.
    pub log_cache_bytes: usize,
    /// Rules broken on purpose.
    #[cfg(feature = "controls")]
    pub controls: tributary_testkit::Controls,
}

impl Default for LakeOptions {
    fn default() -> Self {
        Self {
            catalogue: "main".to_owned(),
            clock: Arc::new(SystemClock),
            attempts_max: 32,
            memory_limit: 1 << 30,
            spill_path: None,
            log_cache_bytes: 64 << 20,
            #[cfg(feature = "controls")]
            controls: tributary_testkit::Controls::none(),
        }
    }
}

/// One way in which a table differs from its declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The column, constraint or property.
    pub what: String,
    /// As declared; `None` when the declaration has no such thing.
    pub declared: Option<String>,
    /// As the table has it; `None` when it has no such thing.
    pub found: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "absent".to_owned());
        write!(f, "{}: declared {}, found {}", self.what, side(&self.declared), side(&self.found))
    }
}

/// Tables under one root. Cheap to clone; clones share the store, the log cache and the clock.
#[derive(Debug, Clone)]
pub struct Lake {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    stores: Stores,
    options: LakeOptions,
}

impl Lake {
    /// A lake over a root. Nothing is read or written yet.
    ///
    /// # Errors
    /// [`crate::Error::Root`] when the root's scheme has no Delta log.
    pub fn open(stores: Stores, options: LakeOptions) -> Result<Self> {
        Ok(Self { inner: Arc::new(Inner { stores, options }) })
    }

    /// The latest snapshot of a table, or none when there is no such table.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] when the table needs a feature this program does not know; store errors.
    pub async fn table(&self, _name: &TableName) -> Result<Option<Table>> {
        todo!()
    }

    /// Creates a table as declared, or opens the one that is there when it is compatible.
    ///
    /// # Errors
    /// [`crate::Error::Spec`] when the declaration cannot be honoured, [`crate::Error::Incompatible`] when a table is there that
    /// differs in more than columns the declaration lacks.
    pub async fn create(&self, _spec: &TableSpec) -> Result<Table> {
        todo!()
    }

    /// Every table of the catalogue, sorted.
    ///
    /// # Errors
    /// Store errors.
    pub async fn tables(&self) -> Result<Vec<TableName>> {
        todo!()
    }

    /// Every way in which the existing table differs from its declaration; empty when equal, [`Difference`] of the table
    /// itself when there is none.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub async fn difference(&self, _spec: &TableSpec) -> Result<Vec<Difference>> {
        todo!()
    }

    /// A query context with the lake's memory limit, spilling to disk; no tables are registered.
    pub fn session(&self) -> SessionContext {
        todo!()
    }

    /// The clock of the lake.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.inner.options.clock)
    }

    /// The options it was opened with.
    pub fn options(&self) -> &LakeOptions {
        &self.inner.options
    }

    /// The store and root it was opened with.
    pub fn stores(&self) -> &Stores {
        &self.inner.stores
    }
}
